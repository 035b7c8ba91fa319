/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the functions that each task is in
 */
#include "model/graph.h"

/* Maximum number of tasks with a stack: a hostile guest may invent tasks. */
#define STACKS_MAX      65536

struct HtGraph {
    HtModel *m;
    GHashTable *stacks;
    /* stack for an event of a task that has no room in @stacks */
    HtStack other;
    GArray *lost;
    unsigned boot, segment;
};

static void free_stack(gpointer data)
{
    HtStack *s = data;

    g_array_unref(s->frames);
    g_free(s);
}

HtGraph *ht_graph_new(HtModel *m)
{
    HtGraph *g = g_new0(HtGraph, 1);

    g->m = m;
    g->stacks = g_hash_table_new_full(NULL, NULL, NULL, free_stack);
    g->other.frames = g_array_new(false, false, sizeof(HtFrame));
    g->lost = g_array_new(false, false, sizeof(HtFrame));
    return g;
}

void ht_graph_free(HtGraph *g)
{
    if (g) {
        g_hash_table_destroy(g->stacks);
        g_array_unref(g->other.frames);
        g_array_unref(g->lost);
        g_free(g);
    }
}

GHashTable *ht_graph_stacks(HtGraph *g)
{
    return g->stacks;
}

static HtStack *find_stack(HtGraph *g, const HtModelEvent *ev)
{
    gpointer p = GSIZE_TO_POINTER(ht_event_task_id(ev));
    HtStack *s;

    if (ev->boot != g->boot || ev->rec.segment != g->segment) {
        g_hash_table_remove_all(g->stacks);
        g->boot = ev->boot;
        g->segment = ev->rec.segment;
    }
    s = g_hash_table_lookup(g->stacks, p);
    if (!s && g_hash_table_size(g->stacks) < STACKS_MAX) {
        s = g_new0(HtStack, 1);
        s->pid = ev->rec.pid;
        s->frames = g_array_new(false, false, sizeof(HtFrame));
        g_hash_table_insert(g->stacks, p, s);
    }
    if (!s) {
        s = &g->other;
        g_array_set_size(s->frames, 0);
        s->pid = ev->rec.pid;
    }
    s->cpu = ev->rec.cpu;
    return s;
}

static HtFrame *top(const HtStack *s)
{
    return s->frames->len ?
           &g_array_index(s->frames, HtFrame, s->frames->len - 1) : NULL;
}

static void pop(HtStack *s)
{
    g_array_set_size(s->frames, s->frames->len - 1);
}

/*
 * Move the calls at @depth and deeper from a stack to @g->lost: they must have
 * ended, but no event of their ends was recorded.
 */
static void drop(HtGraph *g, HtStack *s, int32_t depth)
{
    while (top(s) && top(s)->depth >= depth) {
        g_array_append_val(g->lost, *top(s));
        pop(s);
    }
}

static void enter(HtGraph *g, HtStack *s, const HtFrame *f)
{
    drop(g, s, f->depth);
    if (s->frames->len < HT_GRAPH_DEPTH_MAX) {
        g_array_append_val(s->frames, *f);
    }
}

static void leave(HtGraph *g, HtStack *s, HtGraphStep *step)
{
    HtFrame *f = &step->frame;

    drop(g, s, f->depth + 1);
    if (!top(s) || top(s)->depth != f->depth) {
        return;
    }
    if (top(s)->func == f->func) {
        step->known = true;
        f->mark = top(s)->mark;
        f->cut = top(s)->cut;
        pop(s);
    } else {
        drop(g, s, f->depth);
    }
}

/*
 * Add a call that the function tracer reports. Its caller is the innermost
 * frame of the function that the event names as parent. Drop the frames inside
 * the caller's frame, because these calls have ended. If the stack has no frame
 * of the parent, drop all frames.
 */
static void call(HtGraph *g, HtStack *s, const HtModelEvent *ev, HtFrame *f)
{
    uint64_t parent = ht_event_uint(ev, HT_F_FUNCTION_PARENT);
    uint64_t caller = ht_model_function(g->m, ev->boot, parent, NULL);

    f->func = ht_model_function(g->m, ev->boot,
                                ht_event_uint(ev, HT_F_FUNCTION_IP), NULL);
    while (top(s) && top(s)->func != caller) {
        pop(s);
    }
    f->depth = s->frames->len;
    if (s->frames->len < HT_GRAPH_DEPTH_MAX) {
        g_array_append_val(s->frames, *f);
    }
}

bool ht_graph_event(HtGraph *g, const HtModelEvent *ev, HtGraphStep *step)
{
    HtKind kind = ev->class->kind;
    HtFrame f = { .ns = ev->rec.ns };
    uint64_t begin, end;
    HtStack *s;

    if (kind != HT_KIND_GRAPH_ENTRY && kind != HT_KIND_GRAPH_EXIT &&
        kind != HT_KIND_FUNCTION) {
        return false;
    }
    s = find_stack(g, ev);
    g_array_set_size(g->lost, 0);
    *step = (HtGraphStep) { .stack = s, .lost = g->lost };
    if (kind == HT_KIND_FUNCTION) {
        call(g, s, ev, &f);
        step->frame = f;
        return true;
    }
    f.func = ht_event_uint(ev, HT_F_GRAPH_FUNC);
    f.depth = CLAMP((int32_t)ht_event_uint(ev, HT_F_GRAPH_DEPTH), 0,
                    HT_GRAPH_DEPTH_MAX);
    step->frame = f;
    if (kind == HT_KIND_GRAPH_ENTRY) {
        enter(g, s, &f);
        return true;
    }
    begin = ht_event_uint(ev, HT_F_GRAPH_CALLTIME);
    end = ht_event_uint(ev, HT_F_GRAPH_RETTIME);
    /* If begin and end in the event are impossible, use the event's time. */
    if (begin > end || end > ev->rec.ns) {
        begin = end = ev->rec.ns;
    }
    step->frame.ns = begin;
    step->end_ns = end;
    leave(g, s, step);
    return true;
}
