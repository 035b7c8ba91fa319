/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/number.h"
#include "views/boot-limits.h"

/* The names of phases in boot-collect.c */
static const char *const phase_names[] = {
    "kernel", "initcalls", "kernel, rest", "initramfs", "init", "services",
};

static void clear_limit(gpointer data)
{
    HtBootLimit *limit = data;

    g_free(limit->text);
}

static void clear_check(gpointer data)
{
    HtBootCheck *check = data;

    g_free(check->name);
    g_free(check->failure);
}

static const char *phase_of(const char *name, gsize len)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(phase_names); i++) {
        if (strlen(phase_names[i]) == len &&
            !strncmp(phase_names[i], name, len)) {
            return phase_names[i];
        }
    }
    return NULL;
}

GArray *ht_boot_limits_parse(char *const *options, GError **errp)
{
    g_autoptr(GArray) limits = g_array_new(false, false, sizeof(HtBootLimit));

    g_array_set_clear_func(limits, clear_limit);
    for (; options && *options; options++) {
        const char *equal = strrchr(*options, '=');
        HtBootLimit limit = { 0 };
        bool from_end;

        if (equal) {
            limit.phase = phase_of(*options, equal - *options);
        }
        if (equal && !limit.phase) {
            g_autofree char *names = g_strjoinv("; ", (char **)phase_names);

            g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                        "--max=%s: no such phase; phases are: %s", *options,
                        names);
            return NULL;
        }
        if (!ht_number_time("--max", equal ? equal + 1 : *options, &limit.ns,
                            &from_end, errp)) {
            return NULL;
        }
        if (from_end) {
            g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                        "--max=%s: a duration is not negative", *options);
            return NULL;
        }
        limit.text = g_strdup(*options);
        g_array_append_val(limits, limit);
    }
    return g_steal_pointer(&limits);
}

static bool has_phase(const HtBoot *b, const char *phase)
{
    unsigned i;

    for (i = 0; i < b->phases->len; i++) {
        if (!strcmp(g_array_index(b->phases, HtBootPhase, i).name, phase)) {
            return true;
        }
    }
    return false;
}

/*
 * Check whether each of the boots has a phase of this name; otherwise its
 * times cannot be compared.
 */
static bool all_have_phase(const GPtrArray *boots, const char *phase)
{
    unsigned i;

    for (i = 0; i < boots->len; i++) {
        if (!has_phase(boots->pdata[i], phase)) {
            return false;
        }
    }
    return true;
}

static void check_limit(GArray *checks, const GPtrArray *boots,
                        const HtBootLimit *limit)
{
    const HtBoot *last = boots->pdata[boots->len - 1];
    g_autofree uint64_t *ns = ht_boot_times(boots, limit->phase);
    const char *what = limit->phase ? limit->phase : "the boot";
    HtBootCheck check = {
        .name = g_strdup_printf("--max=%s", limit->text),
        .ns = ns[boots->len - 1],
    };

    if (limit->phase && !has_phase(last, limit->phase)) {
        check.failure = g_strdup_printf("the recording has no phase '%s'",
                                        limit->phase);
    } else if (check.ns > limit->ns) {
        check.failure = g_strdup_printf("%s took %.3f s; at most %.3f s are"
                                        " allowed", what, check.ns / 1e9,
                                        limit->ns / 1e9);
    }
    g_array_append_val(checks, check);
}

static void check_change(GArray *checks, const GPtrArray *boots,
                         const char *phase)
{
    g_autofree uint64_t *ns = ht_boot_times(boots, phase);
    const char *what = phase ? phase : "the boot";
    HtBootCheck check = {
        .name = g_strdup_printf("%s as before", what),
        .ns = ns[boots->len - 1],
    };
    HtBootSpread s;

    ht_boot_spread(ns, boots->len - 1, &s);
    if (ht_boot_differs(&s, check.ns) > 0) {
        check.failure = g_strdup_printf("%s took %.3f s; %u earlier boot%s took"
                                        " %.3f to %.3f s", what,
                                        check.ns / 1e9, s.count,
                                        ht_number_s(s.count), s.min / 1e9,
                                        s.max / 1e9);
    }
    g_array_append_val(checks, check);
}

GArray *ht_boot_check(const GPtrArray *boots, const GArray *limits,
                      bool regression)
{
    GArray *checks = g_array_new(false, false, sizeof(HtBootCheck));
    unsigned i;

    g_array_set_clear_func(checks, clear_check);
    for (i = 0; i < limits->len; i++) {
        check_limit(checks, boots, &g_array_index(limits, HtBootLimit, i));
    }
    if (regression) {
        check_change(checks, boots, NULL);
    }
    for (i = 0; regression && i < G_N_ELEMENTS(phase_names); i++) {
        if (all_have_phase(boots, phase_names[i])) {
            check_change(checks, boots, phase_names[i]);
        }
    }
    return checks;
}

unsigned ht_boot_failures(const GArray *checks)
{
    unsigned i, failures = 0;

    for (i = 0; i < checks->len; i++) {
        failures += g_array_index(checks, HtBootCheck, i).failure != NULL;
    }
    return failures;
}

void ht_boot_junit(const GArray *checks, GString *out)
{
    unsigned i;

    g_string_append_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                           "<testsuites>\n<testsuite name=\"hypertrace boot\""
                           " tests=\"%u\" failures=\"%u\" errors=\"0\">\n",
                           checks->len, ht_boot_failures(checks));
    for (i = 0; i < checks->len; i++) {
        const HtBootCheck *c = &g_array_index(checks, HtBootCheck, i);
        g_autofree char *name = g_markup_escape_text(c->name, -1);

        g_string_append_printf(out, "<testcase classname=\"boot\" name=\"%s\""
                               " time=\"%.6f\"", name, c->ns / 1e9);
        if (c->failure) {
            g_autofree char *text = g_markup_escape_text(c->failure, -1);

            g_string_append_printf(out, "><failure message=\"%s\"/>"
                                   "</testcase>\n", text);
        } else {
            g_string_append(out, "/>\n");
        }
    }
    g_string_append(out, "</testsuite>\n</testsuites>\n");
}
