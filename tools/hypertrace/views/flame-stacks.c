/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: build a tree of stacks of names
 */
#include <string.h>

#include "views/flame.h"

struct HtFlame {
    HtFlameNode *root;
    /* each name of a node once; owns these strings */
    GHashTable *names;
    /* number of nodes, with those of ht_flame_node() that are in no tree yet */
    unsigned nodes;
};

static void free_node(gpointer data)
{
    HtFlameNode *n = data;

    g_clear_pointer(&n->children, g_hash_table_unref);
    g_free(n);
}

HtFlame *ht_flame_new(void)
{
    HtFlame *f = g_new0(HtFlame, 1);

    f->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->root = ht_flame_node(f, "all");
    return f;
}

void ht_flame_free(HtFlame *f)
{
    if (f) {
        free_node(f->root);
        g_hash_table_destroy(f->names);
        g_free(f);
    }
}

HtFlameNode *ht_flame_root(HtFlame *f)
{
    return f->root;
}

/* Get the only copy of a name in @f, so that equal names are equal pointers. */
static const char *intern(HtFlame *f, const char *name)
{
    gpointer known;

    if (!g_hash_table_lookup_extended(f->names, name, &known, NULL)) {
        known = g_strdup(name);
        g_hash_table_add(f->names, known);
    }
    return known;
}

HtFlameNode *ht_flame_node(HtFlame *f, const char *name)
{
    HtFlameNode *n;

    if (f->nodes >= HT_FLAME_NODES_MAX) {
        return NULL;
    }
    f->nodes++;
    n = g_new0(HtFlameNode, 1);
    n->name = intern(f, name);
    return n;
}

static void add(HtFlameNode *n, HtFlameNode *child)
{
    if (!n->children) {
        n->children = g_hash_table_new_full(NULL, NULL, NULL, free_node);
    }
    g_hash_table_insert(n->children, (char *)child->name, child);
}

static HtFlameNode *find(const HtFlameNode *n, const char *interned)
{
    return n->children ? g_hash_table_lookup(n->children, interned) : NULL;
}

HtFlameNode *ht_flame_child(HtFlame *f, HtFlameNode *n, const char *name)
{
    gpointer known;
    HtFlameNode *child;

    if (g_hash_table_lookup_extended(f->names, name, &known, NULL)) {
        child = find(n, known);
        if (child) {
            return child;
        }
    }
    child = ht_flame_node(f, name);
    if (!child) {
        return n;
    }
    add(n, child);
    return child;
}

void ht_flame_adopt(HtFlame *f, HtFlameNode *n, HtFlameNode *child)
{
    HtFlameNode *same = find(n, child->name);
    GHashTableIter iter;
    gpointer above;

    if (!same) {
        add(n, child);
        return;
    }
    same->self += child->self;
    if (child->children) {
        g_hash_table_iter_init(&iter, child->children);
        while (g_hash_table_iter_next(&iter, NULL, &above)) {
            g_hash_table_iter_steal(&iter);
            ht_flame_adopt(f, same, above);
        }
    }
    free_node(child);
    f->nodes--;
}

uint64_t ht_flame_sum(HtFlameNode *n)
{
    GHashTableIter iter;
    gpointer above;

    n->total = n->self;
    if (n->children) {
        g_hash_table_iter_init(&iter, n->children);
        while (g_hash_table_iter_next(&iter, NULL, &above)) {
            n->total += ht_flame_sum(above);
        }
    }
    return n->total;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(HtFlameNode * const *)a)->name,
                  (*(HtFlameNode * const *)b)->name);
}

GPtrArray *ht_flame_sorted(const HtFlameNode *n)
{
    GPtrArray *all = g_ptr_array_new();
    GHashTableIter iter;
    gpointer above;

    if (n->children) {
        g_hash_table_iter_init(&iter, n->children);
        while (g_hash_table_iter_next(&iter, NULL, &above)) {
            g_ptr_array_add(all, above);
        }
    }
    g_ptr_array_sort(all, by_name);
    return all;
}
