/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: values in QEMU's options
 */
#include <math.h>
#include <string.h>

#include "record/record-args.h"

/* The next "name=value" with ",," made ","; false at the end */
static bool next_opt(const char **p, GString *opt)
{
    if (!**p) {
        return false;
    }
    g_string_truncate(opt, 0);
    for (; **p; (*p)++) {
        if (**p == ',') {
            (*p)++;
            if (**p != ',') {
                break;
            }
        }
        g_string_append_c(opt, **p);
    }
    return true;
}

char *ht_record_opt(const char *list, const char *name)
{
    g_autoptr(GString) opt = g_string_new(NULL);
    char *value = NULL, *equals;
    bool first = true;

    while (list && next_opt(&list, opt)) {
        equals = strchr(opt->str, '=');
        if (equals ? !strncmp(opt->str, name, equals - opt->str) &&
                     !name[equals - opt->str] && *name : first && !*name) {
            g_free(value);
            value = g_strdup(equals ? equals + 1 : opt->str);
        }
        first = false;
    }
    return value;
}

bool ht_record_size(const char *text, char suffix, uint64_t *bytes)
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
