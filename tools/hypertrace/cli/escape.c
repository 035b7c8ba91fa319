/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: escape text of a guest for the place where it is shown
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/text.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define FILE_NAME_BYTES 64

/*
 * Check for the most common characters from 0x80 on that are invisible or
 * change how other text is shown: C1 controls, marks of direction, others of
 * Unicode's format characters and noncharacters
 */
static bool deceives(gunichar c)
{
    return (c >= 0x80 && c < 0xa0) || c == 0x61c || c == 0xad ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff0 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static void put_byte(GString *out, HtEscape how, unsigned char b)
{
    switch (how) {
    case HT_ESCAPE_TERMINAL:
    case HT_ESCAPE_XML:
        g_string_append_printf(out, "\\x%02x", b);
        break;
    case HT_ESCAPE_JSON:
    case HT_ESCAPE_UTF8:
        g_string_append(out, REPLACEMENT);
        break;
    }
}

/*
 * Append an escape for a byte below 128 that needs one, by plain[], in the
 * destination @how.
 */
static void put_ascii(GString *out, HtEscape how, unsigned char b)
{
    switch (how) {
    case HT_ESCAPE_TERMINAL:
        break;
    case HT_ESCAPE_XML:
        switch (b) {
        case '<':
            g_string_append(out, "&lt;");
            return;
        case '>':
            g_string_append(out, "&gt;");
            return;
        case '&':
            g_string_append(out, "&amp;");
            return;
        case '"':
            g_string_append(out, "&quot;");
            return;
        case '\'':
            g_string_append(out, "&#39;");
            return;
        }
        break;
    case HT_ESCAPE_JSON:
        if (b == '"' || b == '\\') {
            g_string_append_c(out, '\\');
            g_string_append_c(out, b);
        } else {
            g_string_append_printf(out, "\\u%04x", b);
        }
        return;
    case HT_ESCAPE_UTF8:
        /* This is NUL: plain[] has BIT(UTF8) for all other bytes below 128. */
        break;
    }
    put_byte(out, how, b);
}

static void put_wide(GString *out, HtEscape how, gunichar c, const char *s,
                     gsize len)
{
    if (how == HT_ESCAPE_UTF8 || !deceives(c)) {
        g_string_append_len(out, s, len);
    } else if (how != HT_ESCAPE_JSON) {
        g_string_append_printf(out, "\\u{%x}", c);
    } else if (c < 0x10000) {
        g_string_append_printf(out, "\\u%04x", c);
    } else {
        c -= 0x10000;
        g_string_append_printf(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10),
                               0xdc00 + (c & 0x3ff));
    }
}

#define BIT(how)    (1 << HT_ESCAPE_ ## how)
#define ALL         (BIT(TERMINAL) | BIT(XML) | BIT(JSON) | BIT(UTF8))

/* For each byte, the destinations where it needs no escape: bits of BIT() */
static const uint8_t plain[256] = {
    [1 ... ' ' - 1] = BIT(UTF8),
    [' ' ... '!'] = ALL,
    ['"'] = BIT(TERMINAL) | BIT(UTF8),
    ['#' ... '%'] = ALL,
    ['&'] = BIT(TERMINAL) | BIT(UTF8),
    ['\''] = ALL & ~BIT(XML),
    ['(' ... ';'] = ALL,
    ['<'] = BIT(TERMINAL) | BIT(UTF8),
    ['='] = ALL,
    ['>'] = BIT(TERMINAL) | BIT(UTF8),
    ['?' ... '['] = ALL,
    ['\\'] = ALL & ~BIT(JSON),
    [']' ... '~'] = ALL,
    [0x7f] = BIT(UTF8),
};

/* Check whether each of 8 bytes is a printable character of ASCII. */
static bool is_printable(const char *s)
{
    const uint64_t ones = UINT64_MAX / 255;
    uint64_t v;

    memcpy(&v, s, sizeof(v));
    return !(((v - ones * ' ') | (v + ones) | v) & ones * 0x80);
}

static gsize plain_length(const char *s, gsize len, HtEscape how)
{
    gsize n = 0;

    while (how == HT_ESCAPE_TERMINAL && len - n >= 8 && is_printable(s + n)) {
        n += 8;
    }
    while (n < len && plain[(unsigned char)s[n]] & 1 << how) {
        n++;
    }
    return n;
}

void ht_escape(GString *out, HtEscape how, const char *s, gsize len)
{
    while (len) {
        gsize n = plain_length(s, len, how);
        gunichar c;

        ht_text_append(out, s, n);
        s += n;
        len -= n;
        if (!len) {
            break;
        }
        n = 1;
        if ((unsigned char)*s < 0x80) {
            put_ascii(out, how, *s);
        } else {
            c = g_utf8_get_char_validated(s, len);
            if (c == (gunichar)-1 || c == (gunichar)-2) {
                put_byte(out, how, *s);
            } else {
                n = g_utf8_skip[(unsigned char)*s];
                put_wide(out, how, c, s, n);
            }
        }
        s += n;
        len -= n;
    }
}

void ht_escape_str(GString *out, HtEscape how, const char *s)
{
    ht_escape(out, how, s, strlen(s));
}

char *ht_escape_file_name(const char *text)
{
    g_autofree char *name = g_strndup(text, FILE_NAME_BYTES);

    g_strcanon(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-", '_');
    return g_strconcat(*name == '.' || !*name ? "_" : "", name, NULL);
}
