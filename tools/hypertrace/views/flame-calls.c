/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: build stacks of functions from the ends of calls
 *
 * The event at the end of a call has the call's begin and depth. If call A of a
 * task began later and ended earlier than the task's call B, then B counts as a
 * direct or indirect caller of A. So a call that has ended is kept until its
 * caller ends, or until too many calls are kept.
 */
#include <string.h>

#include "model/duration.h"
#include "model/graph.h"
#include "views/flame.h"

/*
 * If more calls of a task are kept, all of them are put into the tree before
 * their callers end.
 */
#define WAITING_MAX     4096

/*
 * A call that has ended before its caller, or several such calls of the same
 * caller
 */
typedef struct Call {
    /*
     * node of the call, not in the tree yet; NULL: the tree has the call's time
     * already
     */
    HtFlameNode *node;
    uint64_t begin;
    /* duration in ns; of several calls, the sum */
    uint64_t ns;
    int32_t depth;
} Call;

typedef struct Task {
    HtStack *stack;
    /* of Call, in the order in which the calls ended */
    GArray *calls;
    char comm[HT_COMM_MAX + 1];
} Task;

struct HtFlameCalls {
    HtFlame *f;
    HtModel *m;
    HtGraph *graph;
    GHashTable *tasks;          /* table from HtStack to Task */
    GString *name;
    unsigned boot, segment;
};

static void free_task(gpointer data)
{
    Task *t = data;

    g_array_unref(t->calls);
    g_free(t);
}

HtFlameCalls *ht_flame_calls_new(HtFlame *f, HtModel *m)
{
    HtFlameCalls *c = g_new0(HtFlameCalls, 1);

    c->f = f;
    c->m = m;
    c->graph = ht_graph_new(m);
    c->tasks = g_hash_table_new_full(NULL, NULL, NULL, free_task);
    c->name = g_string_new(NULL);
    return c;
}

static const char *function(HtFlameCalls *c, uint64_t func)
{
    g_string_truncate(c->name, 0);
    ht_model_function(c->m, c->boot, func, c->name);
    return c->name->str;
}

/*
 * Count the frames of the task's stack, from the outermost one, that were open
 * when @call began. They are the callers of @call.
 */
static unsigned within(const Task *t, const Call *call)
{
    unsigned n = t->stack->frames->len;

    while (n) {
        const HtFrame *f = &g_array_index(t->stack->frames, HtFrame, n - 1);

        if (f->depth < call->depth && f->ns <= call->begin) {
            break;
        }
        n--;
    }
    return n;
}

/*
 * Add a call to the tree, with the first @callers frames of the task's stack
 * as its callers.
 */
static void put(HtFlameCalls *c, Task *t, Call *call, unsigned callers)
{
    HtFlameNode *n = ht_flame_child(c->f, ht_flame_root(c->f), t->comm);
    unsigned i;

    for (i = 0; i < callers; i++) {
        n = ht_flame_child(c->f, n, function(
            c, g_array_index(t->stack->frames, HtFrame, i).func));
    }
    if (!callers && call->depth) {
        n = ht_flame_child(c->f, n, "(caller not recorded)");
    }
    ht_flame_adopt(c->f, n, call->node);
    call->node = NULL;
}

/*
 * Put all kept calls of a task into the tree. Their entries in @t->calls stay,
 * because their times are later subtracted from the caller's time. Adjacent
 * entries with the same caller become one entry.
 */
static void put_all(HtFlameCalls *c, Task *t)
{
    unsigned i, last = 0, kept = 0;

    for (i = 0; i < t->calls->len; i++) {
        Call call = g_array_index(t->calls, Call, i);
        unsigned callers = within(t, &call);
        Call *before = kept ? &g_array_index(t->calls, Call, kept - 1) : NULL;

        if (call.node) {
            put(c, t, &call, callers);
        }
        if (before && callers == last) {
            before->ns += call.ns;
        } else {
            g_array_index(t->calls, Call, kept++) = call;
        }
        last = callers;
    }
    g_array_set_size(t->calls, kept);
}

static void end_all(HtFlameCalls *c)
{
    GHashTableIter iter;
    gpointer t;

    g_hash_table_iter_init(&iter, c->tasks);
    while (g_hash_table_iter_next(&iter, NULL, &t)) {
        put_all(c, t);
    }
    g_hash_table_remove_all(c->tasks);
}

static void set_comm(Task *t, const HtModelEvent *ev)
{
    g_strlcpy(t->comm, ev->task->comm, sizeof(t->comm));
}

/*
 * Handle the end of a call. Its callees are the newest kept calls, as far back
 * as they are deeper and did not begin before it. If the tree is full, the call
 * gets no node: its own time counts for its caller, which also gets the
 * callees. The caller of an outermost call is the task.
 */
static void ended(HtFlameCalls *c, Task *t, const HtGraphStep *s)
{
    Call call = {
        .node = ht_flame_node(c->f, function(c, s->frame.func)),
        .begin = s->frame.ns,
        .ns = ht_elapsed(s->frame.ns, s->end_ns),
        .depth = s->frame.depth,
    };
    HtFlameNode *own = call.node;
    uint64_t above = 0;

    if (!own && call.depth) {
        return;
    }
    if (!own) {
        own = ht_flame_child(c->f, ht_flame_root(c->f), t->comm);
    }
    while (t->calls->len) {
        Call *last = &g_array_index(t->calls, Call, t->calls->len - 1);

        if (last->begin < call.begin || last->depth <= call.depth) {
            break;
        }
        above += last->ns;
        if (last->node) {
            HtFlameNode *n = own;

            if (last->depth > call.depth + 1) {
                n = ht_flame_child(c->f, n, "(caller not recorded)");
            }
            ht_flame_adopt(c->f, n, last->node);
        }
        g_array_set_size(t->calls, t->calls->len - 1);
    }
    own->self += ht_elapsed(above, call.ns);
    if (!call.node) {
        return;
    }
    /* A hostile guest may report a call shorter than the calls nested in it. */
    call.ns = MAX(call.ns, above);
    if (call.depth == 0) {
        put(c, t, &call, 0);
    } else {
        g_array_append_val(t->calls, call);
    }
    if (t->calls->len > WAITING_MAX) {
        put_all(c, t);
    }
}

void ht_flame_calls_event(HtFlameCalls *c, const HtModelEvent *ev)
{
    HtGraphStep s;
    Task *t;

    if (ev->boot != c->boot || ev->rec.segment != c->segment) {
        /*
         * Put the kept calls into the tree before ht_graph_event() frees the
         * stacks of the old segment.
         */
        end_all(c);
        c->boot = ev->boot;
        c->segment = ev->rec.segment;
    }
    if (!ht_graph_event(c->graph, ev, &s) ||
        ev->class->kind == HT_KIND_FUNCTION) {
        return;
    }
    t = g_hash_table_lookup(c->tasks, s.stack);
    if (!t) {
        t = g_new0(Task, 1);
        t->stack = s.stack;
        t->calls = g_array_new(false, false, sizeof(Call));
        g_hash_table_insert(c->tasks, s.stack, t);
    }
    set_comm(t, ev);
    if (ev->class->kind == HT_KIND_GRAPH_EXIT) {
        ended(c, t, &s);
    }
}

void ht_flame_calls_end(HtFlameCalls *c)
{
    end_all(c);
    g_hash_table_destroy(c->tasks);
    ht_graph_free(c->graph);
    g_string_free(c->name, true);
    g_free(c);
}
