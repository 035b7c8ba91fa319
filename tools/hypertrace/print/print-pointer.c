/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print objects for the kernel's %p conversions, and bitmasks
 *
 * The output is meant to be that of libtraceevent.
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-program.h"

#define SOCKADDR_IN     2
#define SOCKADDR_IN6    10

static void put_mac(const char *letters, const uint8_t *p, size_t len,
                    GString *out)
{
    const char *between = *letters == 'm' ? "" :
                          strchr(letters, 'F') ? "-" : ":";
    bool reverse = strchr(letters, 'R');
    unsigned i;

    if (len != 6) {
        g_string_append(out, "INVALIDMAC");
        return;
    }
    for (i = 0; i < 6; i++) {
        g_string_append_printf(out, "%s%02x", i ? between : "",
                               p[reverse ? 5 - i : i]);
    }
}

static void put_ip4(const char *letters, const uint8_t *p, GString *out)
{
    bool reverse = strchr(letters, 'h') || strchr(letters, 'l');
    unsigned i;

    for (i = 0; i < 4; i++) {
        g_string_append_printf(out, *letters == 'i' ? "%s%03d" : "%s%d",
                               i ? "." : "", p[reverse ? 3 - i : i]);
    }
}

static unsigned word(const uint8_t *p, unsigned i)
{
    return p[2 * i] << 8 | p[2 * i + 1];
}

/*
 * Find the longest run of at least two zero words among the first @words, and
 * return the index of its first word. Return @words if there is no such run.
 */
static unsigned longest_zeros(const uint8_t *p, unsigned words,
                              unsigned *length)
{
    unsigned i, run = 0, begin = 0;

    *length = 1;
    for (i = 0; i < words; i++) {
        run = word(p, i) ? 0 : run + 1;
        if (run > *length) {
            *length = run;
            begin = i + 1 - run;
        }
    }
    return *length > 1 ? begin : words;
}

/*
 * Print an IPv6 address as RFC 5952 recommends. The last 32 bits of a mapped or
 * ISATAP address are printed as an IPv4 address.
 */
static void put_ip6_short(const uint8_t *p, GString *out)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    bool ip4 = !memcmp(p, mapped, sizeof(mapped)) ||
               ((p[8] & 0xfd) == 0 && p[9] == 0 && p[10] == 0x5e &&
                p[11] == 0xfe);
    unsigned i = 0, words = ip4 ? 6 : 8, length;
    unsigned begin = longest_zeros(p, words, &length);
    bool colon = false;

    while (i < words) {
        if (i == begin) {
            g_string_append(out, "::");
            colon = false;
            i += length;
            continue;
        }
        g_string_append_printf(out, "%s%x", colon ? ":" : "", word(p, i));
        colon = true;
        i++;
    }
    if (ip4) {
        g_string_append(out, colon ? ":" : "");
        put_ip4("I4", p + 12, out);
    }
}

static void put_ip6(const char *letters, const uint8_t *p, GString *out)
{
    unsigned i;

    if (strchr(letters, 'c')) {
        put_ip6_short(p, out);
        return;
    }
    for (i = 0; i < 8; i++) {
        g_string_append_printf(out, "%s%04x", i && *letters == 'I' ? ":" : "",
                               word(p, i));
    }
}

static void put_sockaddr(const char *letters, const uint8_t *p, size_t len,
                         GString *out)
{
    unsigned family = len >= 2 ? ht_get_le(p, 2, false) : 0;
    bool port = strchr(letters, 'p');

    if (family == SOCKADDR_IN && len >= 16) {
        put_ip4(letters, p + 4, out);
        if (port) {
            g_string_append_printf(out, ":%u", word(p, 1));
        }
    } else if (family == SOCKADDR_IN6 && len >= 28) {
        g_string_append(out, port ? "[" : "");
        put_ip6(letters, p + 8, out);
        if (port) {
            g_string_append_printf(out, "]:%u", word(p, 1));
        }
    } else if (family == SOCKADDR_IN || family == SOCKADDR_IN6) {
        g_string_append(out, family == SOCKADDR_IN ? "INVALIDIPv4" :
                        "INVALIDIPv6");
    }
}

static void put_uuid(const char *letters, const uint8_t *p, size_t len,
                     GString *out)
{
    static const uint8_t guid[16] = {
        3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15
    };
    bool little = letters[1] == 'l' || letters[1] == 'L';
    bool upper = letters[1] == 'B' || letters[1] == 'L';
    unsigned i;

    if (len != 16) {
        g_string_append(out, "INVALIDUUID");
        return;
    }
    for (i = 0; i < 16; i++) {
        g_string_append_printf(out, upper ? "%02X" : "%02x",
                               p[little ? guid[i] : i]);
        g_string_append(out, i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    }
}

static void put_buffer(const char *letters, const uint8_t *p, size_t len,
                       int width, GString *out)
{
    const char *between = letters[1] == 'C' ? ":" : letters[1] == 'D' ? "-" :
                          letters[1] == 'N' ? "" : " ";
    size_t i;

    for (i = 0; i < len && (int)i < width; i++) {
        g_string_append_printf(out, "%s%02x", i ? between : "", p[i]);
    }
}

static void put_ranges(const uint8_t *p, size_t bits, GString *out)
{
    size_t i, end;
    bool any = false;

    for (i = 0; i < bits; i = end + 1) {
        for (end = i; end < bits && p[end / 8] & 1 << end % 8; end++) {
            ;
        }
        if (end == i) {
            continue;
        }
        g_string_append_printf(out, "%s%zu", any ? "," : "", i);
        if (end > i + 1) {
            g_string_append_printf(out, "-%zu", end - 1);
        }
        any = true;
    }
}

/* Print %*pb and %*pbl: the lowest @width bits of a bitmap. */
static void put_bitmap(const char *letters, const uint8_t *p, size_t len,
                       int width, GString *out)
{
    size_t bits = MIN(len * 8, (size_t)MAX(width, 0)), chunk;

    if (letters[1] == 'l') {
        put_ranges(p, bits, out);
        return;
    }
    for (chunk = (bits + 31) / 32; chunk--; ) {
        unsigned n = MIN(bits - chunk * 32, 32), i;
        uint32_t word = 0;

        for (i = 0; i < 4 && chunk * 4 + i < len; i++) {
            word |= (uint32_t)p[chunk * 4 + i] << 8 * i;
        }
        word &= UINT32_MAX >> (32 - n);
        g_string_append_printf(out, "%0*x%s", (n + 3) / 4, word,
                               chunk ? "," : "");
    }
}

void ht_print_pointer(const char *letters, const uint8_t *p, size_t len,
                      int width, GString *out)
{
    switch (*letters) {
    case 'M':
    case 'm':
        put_mac(letters, p, len, out);
        break;
    case 'U':
        put_uuid(letters, p, len, out);
        break;
    case 'h':
        put_buffer(letters, p, len, width < 0 ? 1 : width, out);
        break;
    case 'b':
        put_bitmap(letters, p, len, width, out);
        break;
    default:
        if (letters[1] == 'S') {
            put_sockaddr(letters, p, len, out);
        } else if (letters[1] == '4' && len == 4) {
            put_ip4(letters, p, out);
        } else if (letters[1] == '6' && len == 16) {
            put_ip6(letters, p, out);
        } else {
            g_string_append_printf(out, "INVALIDIPv%c", letters[1]);
        }
    }
}

void ht_print_mask(const uint8_t *p, size_t len, bool ranges, GString *out)
{
    size_t i;

    if (ranges) {
        put_ranges(p, len * 8, out);
        return;
    }
    /* Print the last byte first, with a comma between words of 32 bits. */
    for (i = len; i--;) {
        g_string_append_printf(out, "%02x%s", p[i],
                               i && i % 4 == 0 ? "," : "");
    }
}
