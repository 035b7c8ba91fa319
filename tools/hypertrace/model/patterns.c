/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: lists of events and tasks as they are given on a command line
 */
#include <string.h>

#include "model/patterns.h"

typedef struct Pattern {
    GPatternSpec *spec;
    bool full;                  /* system:event */
} Pattern;

struct HtNames {
    GArray *all;
    uint8_t by_type[1 << 16];   /* 0 not asked, 1 no, 2 yes */
};

static void clear_pattern(gpointer data)
{
    g_pattern_spec_free(((Pattern *)data)->spec);
}

HtNames *ht_names_new(const char *list)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    HtNames *p = g_new0(HtNames, 1);
    unsigned i;

    p->all = g_array_new(false, false, sizeof(Pattern));
    g_array_set_clear_func(p->all, clear_pattern);
    for (i = 0; parts[i]; i++) {
        if (*parts[i]) {
            Pattern one = { g_pattern_spec_new(parts[i]),
                            strchr(parts[i], ':') };

            g_array_append_val(p->all, one);
        }
    }
    return p;
}

void ht_names_free(HtNames *p)
{
    if (p) {
        g_array_unref(p->all);
        g_free(p);
    }
}

bool ht_names_match(const HtNames *p, const char *system, const char *name)
{
    g_autofree char *full = g_strdup_printf("%s:%s", system, name);
    unsigned i;

    for (i = 0; i < p->all->len; i++) {
        const Pattern *one = &g_array_index(p->all, Pattern, i);

        if (g_pattern_spec_match_string(one->spec, one->full ? full : name)) {
            return true;
        }
    }
    return false;
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
    unsigned i;

    for (i = 0; i < p->all->len; i++) {
        GPatternSpec *spec = g_array_index(p->all, Pattern, i).spec;

        if (g_pattern_spec_match_string(spec, pid) ||
            g_pattern_spec_match_string(spec, t->comm)) {
            return true;
        }
    }
    return false;
}
