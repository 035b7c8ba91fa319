/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>
#include <string.h>

#include "cli/near.h"
#include "hypertrace/pattern.h"
#include "model/patterns.h"

typedef struct Pattern {
    char *name;
    bool excluded;              /* the list has a '!' before the pattern */
} Pattern;

struct HtNames {
    GArray *all;
    bool some;                  /* the list has a pattern without '!' */
    /*
     * cache, by type of event, whether the list matches the event; 0: not
     * known, 1: no, 2: yes
     */
    uint8_t by_type[1 << 16];
};

static void clear_pattern(gpointer data)
{
    g_free(((Pattern *)data)->name);
}

HtNames *ht_names_new(const char *list)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    HtNames *p = g_new0(HtNames, 1);
    unsigned i;

    p->all = g_array_new(false, false, sizeof(Pattern));
    g_array_set_clear_func(p->all, clear_pattern);
    for (i = 0; parts[i]; i++) {
        bool excluded = *parts[i] == '!';
        const char *name = parts[i] + excluded;

        if (*name) {
            Pattern one = { g_strdup(name), excluded };

            g_array_append_val(p->all, one);
            p->some |= !excluded;
        }
    }
    return p;
}

bool ht_names_whole(const char *option, const char *list, GError **errp)
{
    g_auto(GStrv) parts = g_strsplit(list ? list : "", ",", -1);
    unsigned i;

    if (list && !*list) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s is empty; omit it to select all", option);
        return false;
    }
    for (i = 0; parts[i]; i++) {
        if (!parts[i][*parts[i] == '!']) {
            g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "%s=%s: a name in this list is empty", option, list);
            return false;
        }
    }
    return true;
}

void ht_names_free(HtNames *p)
{
    if (p) {
        g_array_unref(p->all);
        g_free(p);
    }
}

static bool matches(const char *pattern, const char *full, const char *system,
                    const char *name)
{
    return strchr(pattern, ':') ? ht_pattern_match(pattern, full) :
           ht_pattern_match(pattern, name) || !strcmp(pattern, system);
}

bool ht_names_match(const HtNames *p, const char *system, const char *name)
{
    g_autofree char *full = g_strdup_printf("%s:%s", system, name);
    bool found = !p->some;
    unsigned i;

    for (i = 0; i < p->all->len; i++) {
        const Pattern *one = &g_array_index(p->all, Pattern, i);

        if (matches(one->name, full, system, name)) {
            if (one->excluded) {
                return false;
            }
            found = true;
        }
    }
    return found;
}

static bool matches_any(const char *pattern, const HtFtFormats *formats)
{
    unsigned n = ht_ft_formats_count(formats), i;

    for (i = 0; i < n; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);
        g_autofree char *full = g_strdup_printf("%s:%s", e->system, e->name);

        if (matches(pattern, full, e->system, e->name)) {
            return true;
        }
    }
    return false;
}

static char *near_names(const char *pattern, const HtFtFormats *formats)
{
    unsigned n = ht_ft_formats_count(formats), i;
    GString *hint = g_string_new(NULL);
    HtNear near = { .name = pattern };

    for (i = 0; i < n; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);
        g_autofree char *full = g_strdup_printf("%s:%s", e->system, e->name);

        ht_near_add(&near, strchr(pattern, ':') ? full : e->name);
        ht_near_add(&near, e->system);
    }
    ht_near_text(&near, hint);
    return g_string_free(hint, false);
}

bool ht_names_check(const char *list, const HtFtFormats *formats,
                    GError **errp)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    unsigned i;

    for (i = 0; parts[i]; i++) {
        const char *name = parts[i] + (*parts[i] == '!');
        g_autofree char *hint = NULL;

        if (!*name || g_str_has_prefix(name, "type-") ||
            matches_any(name, formats)) {
            continue;
        }
        hint = near_names(name, formats);
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "there is no event or group '%s'%s", name, hint);
        return false;
    }
    return true;
}

bool ht_names_event(HtNames *p, const HtEventClass *c)
{
    uint8_t *known = &p->by_type[c->type];

    if (!*known) {
        *known = ht_names_match(p, c->system, c->name) ? 2 : 1;
    }
    return *known == 2;
}

bool ht_names_task(const HtNames *p, const HtTask *t)
{
    g_autofree char *pid = g_strdup_printf("%d", t->pid);
    bool found = !p->some;
    unsigned i;

    for (i = 0; i < p->all->len; i++) {
        const Pattern *one = &g_array_index(p->all, Pattern, i);

        if (ht_pattern_match(one->name, pid) ||
            ht_pattern_match(one->name, t->comm)) {
            if (one->excluded) {
                return false;
            }
            found = true;
        }
    }
    return found;
}

GRegex *ht_grep_new(const char *regex, GError **errp)
{
    return g_regex_new(regex, G_REGEX_OPTIMIZE | G_REGEX_RAW, 0, errp);
}
