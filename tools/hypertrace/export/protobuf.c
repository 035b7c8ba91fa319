/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the wire format of protocol buffers
 */
#include <string.h>

#include "cli/escape.h"
#include "cli/text.h"
#include "export/protobuf.h"

#define WIRE_VARINT     0
#define WIRE_64BIT      1
#define WIRE_BYTES      2
#define VARINT_MAX      10

static char *varint(char *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = v | 0x80;
        v >>= 7;
    }
    *p++ = v;
    return p;
}

void ht_pb_uint(GString *b, unsigned field, uint64_t v)
{
    char *p = ht_text_room(b, 2 * VARINT_MAX);

    p = varint(p, field << 3 | WIRE_VARINT);
    ht_text_end(b, varint(p, v));
}

void ht_pb_double(GString *b, unsigned field, double v)
{
    char *p = ht_text_room(b, VARINT_MAX + sizeof(v));
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    bits = GUINT64_TO_LE(bits);
    p = varint(p, field << 3 | WIRE_64BIT);
    memcpy(p, &bits, sizeof(bits));
    ht_text_end(b, p + sizeof(bits));
}

void ht_pb_bytes(GString *b, unsigned field, const void *data, gsize len)
{
    char *p = ht_text_room(b, 2 * VARINT_MAX);

    p = varint(p, field << 3 | WIRE_BYTES);
    ht_text_end(b, varint(p, len));
    ht_text_append(b, data, len);
}

void ht_pb_str(GString *b, unsigned field, const char *s)
{
    ht_pb_bytes(b, field, s, strlen(s));
}

void ht_pb_guest(GString *b, unsigned field, const char *s, gsize len)
{
    if (g_utf8_validate_len(s, len, NULL)) {
        ht_pb_bytes(b, field, s, len);
    } else {
        g_autoptr(GString) valid = g_string_sized_new(3 * len);

        ht_escape(valid, HT_ESCAPE_UTF8, s, len);
        ht_pb_bytes(b, field, valid->str, valid->len);
    }
}

gsize ht_pb_begin(GString *b, unsigned field)
{
    char *p = ht_text_room(b, VARINT_MAX + 1);

    p = varint(p, field << 3 | WIRE_BYTES);
    *p++ = 0;
    ht_text_end(b, p);
    return b->len;
}

void ht_pb_end(GString *b, gsize begin)
{
    gsize len = b->len - begin;
    char buf[VARINT_MAX];
    gsize n = varint(buf, len) - buf;

    if (n > 1) {
        char *p = ht_text_room(b, n - 1);

        memmove(b->str + begin + n - 1, b->str + begin, len);
        ht_text_end(b, p + n - 1);
    }
    memcpy(b->str + begin - 1, buf, n);
}
