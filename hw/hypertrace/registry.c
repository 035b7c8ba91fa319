/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: keep the state of traces by name, as long as QEMU runs
 *
 * LTTng-UST cannot remove an event, and a trace on disk has one class for each
 * id.  A trace's classes must therefore keep their ids when its device is
 * unplugged and another device gets the same name.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "registry.h"

/* Table of HtTrace by name.  The BQL protects it; no HtTrace is ever freed */
static GHashTable *traces;

/*
 * LTTng-UST requires strlen(provider) + 1 + strlen(event) < 256; the provider
 * has the trace's name.
 */
#define NAME_MAX_LEN 63

static bool name_valid(const char *name)
{
    const char *p;

    for (p = name; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("_.-", *p)) {
            return false;
        }
    }
    return p > name && p - name <= NAME_MAX_LEN && name[0] != '.';
}

static HtTrace *trace_get(const char *name)
{
    HtTrace *t;

    if (!traces) {
        traces = g_hash_table_new(g_str_hash, g_str_equal);
    }
    t = g_hash_table_lookup(traces, name);
    if (!t) {
        t = g_new0(HtTrace, 1);
        t->name = g_strdup(name);
        t->classes = ht_class_table_new();
        g_hash_table_insert(traces, t->name, t);
    }
    return t;
}

HtTrace *ht_trace_claim(const char *name, Error **errp)
{
    HtTrace *t = NULL;

    if (!name) {
        for (unsigned i = 0; !t || t->used; i++) {
            g_autofree char *candidate = g_strdup_printf("ht%u", i);

            t = trace_get(candidate);
        }
    } else if (!name_valid(name)) {
        error_setg(errp, "name '%s' is not valid: 1 to %d characters of"
                   " [A-Za-z0-9_.-], the first not a dot", name,
                   NAME_MAX_LEN);
        return NULL;
    } else {
        t = trace_get(name);
        if (t->used) {
            error_setg(errp, "another hypertrace device is named '%s'", name);
            error_append_hint(errp, "Give each device a name of its own:"
                              " name=..., or id=...\n");
            return NULL;
        }
    }
    t->used = true;
    return t;
}

void ht_trace_release(HtTrace *trace)
{
    trace->used = false;
}
