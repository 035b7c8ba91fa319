/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/duration.h"
#include "views/boot-functions.h"

/* Maximum number of functions that are counted for one initcall */
#define NAMES_MAX       4096

typedef struct Function {
    uint64_t func;
    uint64_t calls;
    uint64_t own_ns;
    bool timed;
} Function;

struct HtBootFunctions {
    /* table from the address of a function to Function */
    GHashTable *functions;
    /* by depth in the stack: the sums that within() describes */
    GArray *within;
};

HtBootFunctions *ht_boot_functions_new(void)
{
    HtBootFunctions *f = g_new0(HtBootFunctions, 1);

    f->functions = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
                                         g_free);
    f->within = g_array_new(false, true, sizeof(uint64_t));
    return f;
}

void ht_boot_functions_free(HtBootFunctions *f)
{
    if (f) {
        g_hash_table_unref(f->functions);
        g_array_unref(f->within);
        g_free(f);
    }
}

static Function *find_function(HtBootFunctions *f, uint64_t func)
{
    Function *n = g_hash_table_lookup(f->functions, &func);

    if (!n && g_hash_table_size(f->functions) < NAMES_MAX) {
        n = g_new0(Function, 1);
        n->func = func;
        g_hash_table_insert(f->functions, &n->func, n);
    }
    return n;
}

/* Add @ns to @sum, but not beyond UINT64_MAX: a guest may report any times. */
static void add(uint64_t *sum, uint64_t ns)
{
    *sum += MIN(ns, UINT64_MAX - *sum);
}

/*
 * Get the place of a sum in ns: of the times of the calls at @depth that have
 * ended while their caller goes on.
 */
static uint64_t *within(HtBootFunctions *f, int32_t depth)
{
    if (f->within->len <= (guint)depth) {
        g_array_set_size(f->within, depth + 1);
    }
    return &g_array_index(f->within, uint64_t, depth);
}

static void ended(HtBootFunctions *f, const HtGraphStep *s)
{
    Function *n = find_function(f, s->frame.func);
    uint64_t took = ht_elapsed(s->frame.ns, s->end_ns);
    uint64_t *called = within(f, s->frame.depth + 1);

    if (n) {
        n->calls++;
        add(&n->own_ns, ht_elapsed(*called, took));
        n->timed = true;
    }
    *called = 0;
    add(within(f, s->frame.depth), took);
}

void ht_boot_functions_step(HtBootFunctions *f, const HtModelEvent *ev,
                            const HtGraphStep *s)
{
    Function *n;

    if (ev->class->kind == HT_KIND_GRAPH_EXIT) {
        ended(f, s);
    } else if (ev->class->kind == HT_KIND_GRAPH_ENTRY) {
        *within(f, s->frame.depth + 1) = 0;
    } else {
        n = find_function(f, s->frame.func);
        if (n) {
            n->calls++;
        }
    }
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const Function *x = *(const Function * const *)a;
    const Function *y = *(const Function * const *)b;

    if (x->own_ns != y->own_ns) {
        return x->own_ns < y->own_ns ? 1 : -1;
    }
    if (x->calls != y->calls) {
        return x->calls < y->calls ? 1 : -1;
    }
    return x->func < y->func ? -1 : x->func > y->func;
}

static void clear_function(gpointer data)
{
    g_free(((HtBootFunction *)data)->name);
}

GArray *ht_boot_functions_end(HtBootFunctions *f, HtModel *m, unsigned boot)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    GArray *found = NULL;
    GHashTableIter iter;
    gpointer value;
    unsigned i;

    g_hash_table_iter_init(&iter, f->functions);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        g_ptr_array_add(all, value);
    }
    g_ptr_array_sort(all, by_time);
    for (i = 0; i < all->len && i < HT_BOOT_FUNCTIONS_MAX; i++) {
        const Function *n = all->pdata[i];
        GString *name = g_string_new(NULL);
        HtBootFunction out = {
            .calls = n->calls, .own_ns = n->own_ns, .timed = n->timed,
        };

        if (!found) {
            found = g_array_new(false, false, sizeof(HtBootFunction));
            g_array_set_clear_func(found, clear_function);
        }
        ht_model_function(m, boot, n->func, name);
        out.name = g_string_free(name, false);
        g_array_append_val(found, out);
    }
    ht_boot_functions_free(f);
    return found;
}
