/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/number.h"
#include "cli/text.h"

#define NS_S            UINT64_C(1000000000)
/* Limit for times in ns: 285 years */
#define TIME_MAX        (9 * NS_S * NS_S)

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

const char *ht_number_form(uint64_t n, const char *one, const char *more)
{
    return n == 1 ? one : more;
}

const char *ht_number_s(uint64_t n)
{
    return ht_number_form(n, "", "s");
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

    /* From 999.5 on, use the next unit: "%.0f" would print "1000". */
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
        uint64_t ns;
    } units[] = {
        { "", NS_S }, { "s", NS_S }, { "ms", 1000000 }, { "us", 1000 },
        { "ns", 1 }, { "m", 60 * NS_S }, { "min", 60 * NS_S },
        { "h", 3600 * NS_S },
    };
    bool digits = false, too_large = false;
    uint64_t part, whole = 0;
    const char *p, *point;
    unsigned i;

    *from_end = *s == '-';
    p = s + *from_end;
    for (; g_ascii_isdigit(*p); p++) {
        digits = true;
        too_large |= whole > TIME_MAX / 10;
        whole = too_large ? whole : whole * 10 + *p - '0';
    }
    point = p;
    for (p += *p == '.'; p > point && g_ascii_isdigit(*p); p++) {
        digits = true;
    }
    for (i = 0; i < G_N_ELEMENTS(units) && strcmp(p, units[i].name); i++) {
        ;
    }
    if (digits && i < G_N_ELEMENTS(units)) {
        uint64_t unit = units[i].ns;

        /* A double has enough digits for the part after the point. */
        part = *point == '.' ? g_ascii_strtod(point, NULL) * unit + 0.5 : 0;
        if (!too_large && whole <= TIME_MAX / unit) {
            *ns = whole * unit + part;
            return true;
        }
    }
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s=%s: give a time of the guest's clock of less than 285 years"
                " in seconds, or with a unit h, min, s, ms, us or ns; a '-'"
                " before it counts back from the end: 1.5, 20ms, -300us",
                option, s);
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
