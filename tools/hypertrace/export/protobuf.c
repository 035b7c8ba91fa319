/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the wire format of protocol buffers
 */
#include <string.h>

#include "cli/escape.h"
#include "export/protobuf.h"

#define WIRE_VARINT     0
#define WIRE_64BIT      1
#define WIRE_BYTES      2
#define VARINT_MAX      10

static unsigned varint(uint8_t *p, uint64_t v)
{
    unsigned n = 0;

    while (v >= 0x80) {
        p[n++] = v | 0x80;
        v >>= 7;
    }
    p[n++] = v;
    return n;
}

void ht_pb_uint(GByteArray *b, unsigned field, uint64_t v)
{
    uint8_t buf[2 * VARINT_MAX];
    unsigned n = varint(buf, field << 3 | WIRE_VARINT);

    n += varint(buf + n, v);
    g_byte_array_append(b, buf, n);
}

void ht_pb_double(GByteArray *b, unsigned field, double v)
{
    uint8_t buf[VARINT_MAX];
    unsigned n = varint(buf, field << 3 | WIRE_64BIT);
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    bits = GUINT64_TO_LE(bits);
    g_byte_array_append(b, buf, n);
    g_byte_array_append(b, (const uint8_t *)&bits, sizeof(bits));
}

void ht_pb_bytes(GByteArray *b, unsigned field, const void *data, gsize len)
{
    uint8_t buf[2 * VARINT_MAX];
    unsigned n = varint(buf, field << 3 | WIRE_BYTES);

    n += varint(buf + n, len);
    g_byte_array_append(b, buf, n);
    g_byte_array_append(b, data, len);
}

void ht_pb_str(GByteArray *b, unsigned field, const char *s)
{
    ht_pb_bytes(b, field, s, strlen(s));
}

void ht_pb_guest(GByteArray *b, unsigned field, const char *s, gsize len)
{
    if (g_utf8_validate_len(s, len, NULL)) {
        ht_pb_bytes(b, field, s, len);
    } else {
        g_autoptr(GString) valid = g_string_sized_new(3 * len);

        ht_escape(valid, HT_ESCAPE_UTF8, s, len);
        ht_pb_bytes(b, field, valid->str, valid->len);
    }
}

gsize ht_pb_begin(GByteArray *b, unsigned field)
{
    uint8_t buf[VARINT_MAX + 1];
    unsigned n = varint(buf, field << 3 | WIRE_BYTES);

    buf[n++] = 0;
    g_byte_array_append(b, buf, n);
    return b->len;
}

void ht_pb_end(GByteArray *b, gsize begin)
{
    gsize len = b->len - begin;
    uint8_t buf[VARINT_MAX];
    unsigned n = varint(buf, len);

    if (n > 1) {
        g_byte_array_set_size(b, b->len + n - 1);
        memmove(b->data + begin + n - 1, b->data + begin, len);
    }
    memcpy(b->data + begin - 1, buf, n);
}
