/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/number.h"
#include "cli/text.h"

static const char digits[201] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

void ht_number_decimal(GString *out, uint64_t v, unsigned width, char pad)
{
    char buf[64], *end = buf + sizeof(buf), *p = end;

    width = MIN(width, sizeof(buf));
    for (; v >= 100; v /= 100) {
        p -= 2;
        memcpy(p, digits + v % 100 * 2, 2);
    }
    if (v >= 10) {
        p -= 2;
        memcpy(p, digits + v * 2, 2);
    } else {
        *--p = '0' + v;
    }
    while (end - p < (int)width) {
        *--p = pad;
    }
    ht_text_append(out, p, end - p);
}

void ht_number_seconds(GString *out, uint64_t ns, unsigned width)
{
    ht_number_decimal(out, ns / 1000000000, width, ' ');
    g_string_append_c(out, '.');
    ht_number_decimal(out, ns % 1000000000, 9, '0');
}

void ht_number_duration(GString *out, uint64_t ns, unsigned width)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = { { 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" } };
    char digits[G_ASCII_DTOSTR_BUF_SIZE], text[64];
    unsigned i = 0;
    double v = ns;

    /* Use the next unit from 999.5 on, which "%.0f" would round to "1000". */
    while (i < G_N_ELEMENTS(units) - 1 && ns / units[i].ns >= 999.5) {
        v = ns / units[++i].ns;
    }
    g_ascii_formatd(digits, sizeof(digits), !i || v >= 99.95 ? "%.0f" :
                    v >= 9.995 ? "%.1f" : "%.2f", v);
    g_snprintf(text, sizeof(text), "%s %s", digits, units[i].name);
    g_string_append_printf(out, "%*s", (int)width, text);
}

bool ht_number_time(const char *option, const char *s, uint64_t *ns,
                    bool *from_end, GError **errp)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {
        { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 },
    };
    char *end;
    double v;
    unsigned i;

    *from_end = *s == '-';
    v = g_ascii_strtod(s + *from_end, &end);
    for (i = 0; i < G_N_ELEMENTS(units); i++) {
        if (!strcmp(end, units[i].name) && end != s + *from_end &&
            v >= 0 && v * units[i].ns < 9e18) {
            *ns = v * units[i].ns + 0.5;
            return true;
        }
    }
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s=%s: give a time of the guest's clock in seconds, or with a"
                " unit s, ms, us or ns; a '-' before it counts back from the"
                " end: 1.5, 20ms, -300us", option, s);
    return false;
}

bool ht_number_size(const char *text, char suffix, uint64_t *bytes)
{
    static const char units[] = "BKMGT";
    const char *unit;
    char *end;
    double n = g_ascii_strtod(text, &end);

    if (end == text || !(n > 0)) {
        return false;
    }
    if (*end) {
        suffix = g_ascii_toupper(*end++);
    }
    unit = strchr(units, suffix);
    if (!unit || !suffix || *end) {
        return false;
    }
    n *= (double)(UINT64_C(1) << (10 * (unit - units)));
    if (n >= (double)(UINT64_C(1) << 60) || n != floor(n)) {
        return false;
    }
    *bytes = n;
    return true;
}
