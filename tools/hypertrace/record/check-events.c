/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: are there such events in this kernel?
 */
#include <string.h>

#include "cli/near.h"
#include "hypertrace/base.h"
#include "hypertrace/ftrace-format.h"
#include "record/check-events.h"

/* As the kernel: "system:event"; else a group, or an event of any group */
static bool matches(const char *pattern, const HtFtEvent *e)
{
    g_autofree char *full = g_strdup_printf("%s:%s", e->system, e->name);

    return strchr(pattern, ':') ? g_pattern_match_simple(pattern, full) :
           g_pattern_match_simple(pattern, e->system) ||
           g_pattern_match_simple(pattern, e->name);
}

static bool check(const char *pattern, const HtFtFormats *formats,
                  const HtKernel *kernel, GError **error)
{
    g_autoptr(GString) hint = g_string_new(NULL);
    HtNear near = { .name = pattern };
    unsigned n = ht_ft_formats_count(formats), i;

    for (i = 0; i < n; i++) {
        if (matches(pattern, ht_ft_formats_nth(formats, i))) {
            return true;
        }
    }
    for (i = 0; i < n; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);
        g_autofree char *full = g_strdup_printf("%s:%s", e->system, e->name);

        if (strchr(pattern, ':')) {
            ht_near_add(&near, full);
        } else {
            ht_near_add(&near, e->system);
            ht_near_add(&near, e->name);
        }
    }
    ht_near_text(&near, hint);
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "--event: Linux %s has no event or group '%s'%s%s",
                kernel->release, pattern, hint->str, hint->len ? "" :
                "; those of modules cannot be given on its command line");
    return false;
}

bool ht_check_events(const char *list, const HtKernel *kernel, GError **error)
{
    g_autoptr(HtFtFormats) formats =
        ht_ft_formats_parse(kernel->formats, kernel->formats_size, NULL);
    g_auto(GStrv) patterns = g_strsplit(list, ",", -1);
    unsigned i;

    for (i = 0; formats && patterns[i]; i++) {
        if (*patterns[i] && !check(patterns[i], formats, kernel, error)) {
            return false;
        }
    }
    return true;
}
