/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: what a guest did last, from its events
 */
#include <gio/gio.h>
#include <string.h>

#include "last.h"

#define BLOCKED_MAX             65536
#define UNINTERRUPTIBLE         2       /* in prev_state */

typedef struct Collect {
    HtLast *l;
    GHashTable *blocked;        /* by PID, of HtLastBlocked */
    uint64_t cpu_last[HT_RUNNING_CPUS_MAX];
    const HtEventClass *cpu_event[HT_RUNNING_CPUS_MAX];
    unsigned lines;
    unsigned segment;
} Collect;

static void free_line(gpointer data)
{
    HtLastLine *line = data;

    g_string_free(line->text, true);
    g_free(line);
}

void ht_last_free(HtLast *l)
{
    if (l) {
        g_queue_clear_full(&l->log, free_line);
        g_array_unref(l->cpus);
        g_array_unref(l->blocked);
        ht_running_free(l->running);
        ht_graph_free(l->graph);
        g_free(l);
    }
}

const char *ht_last_name(const HtLast *l, int32_t pid)
{
    GHashTable *tasks = ht_model_tasks(l->m, l->boot);
    const HtTask *t = tasks && pid ?
                      g_hash_table_lookup(tasks, GINT_TO_POINTER(pid)) : NULL;

    return !pid ? "<idle>" : t ? t->comm : "<...>";
}

static void forget_boot(Collect *c, const HtModelEvent *ev)
{
    HtLast *l = c->l;

    l->boot = ev->boot;
    l->events = l->gaps = l->lost = 0;
    memset(&l->gap, 0, sizeof(l->gap));
    memset(&l->silence, 0, sizeof(l->silence));
    memset(&l->busy, 0, sizeof(l->busy));
    g_queue_clear_full(&l->log, free_line);
}

/* Another boot, or another segment of its clock, begins */
static void forget(Collect *c, const HtModelEvent *ev)
{
    if (ev->boot != c->l->boot) {
        forget_boot(c, ev);
    }
    c->segment = ev->rec.segment;
    c->l->begin = c->l->end = ev->rec.ns;
    memset(c->cpu_last, 0, sizeof(c->cpu_last));
    memset(c->cpu_event, 0, sizeof(c->cpu_event));
    g_hash_table_remove_all(c->blocked);
}

static void longest(Collect *c, HtLastSilence *s, const HtModelEvent *ev,
                    uint64_t from, int32_t pid)
{
    const HtTask *t = ht_model_task(c->l->m, pid);

    if (ev->rec.ns > from && ev->rec.ns - from > s->to - s->from) {
        *s = (HtLastSilence) {
            .from = from, .to = ev->rec.ns, .cpu = ev->rec.cpu, .pid = pid,
            .lost = ev->rec.lost_before ? ev->rec.lost_estimate : 0,
        };
        g_strlcpy(s->comm, t ? t->comm : "<...>", sizeof(s->comm));
    }
}

static void keep_line(Collect *c, const HtModelEvent *ev)
{
    HtLastLine *line;
    const char *s;
    gsize len;

    s = ht_event_text(ev, HT_F_CONSOLE_TEXT, &len);
    line = g_new(HtLastLine, 1);
    line->ns = ev->rec.ns;
    line->text = g_string_new_len(s, len);
    g_queue_push_tail(&c->l->log, line);
    if (c->l->log.length > c->lines) {
        free_line(g_queue_pop_head(&c->l->log));
    }
}

static void switched(Collect *c, const HtModelEvent *ev)
{
    int32_t prev = ht_event_uint(ev, HT_F_SWITCH_PREV_PID);
    uint64_t state = ht_event_uint(ev, HT_F_SWITCH_PREV_STATE);
    HtLastBlocked *b;

    g_hash_table_remove(c->blocked, GUINT_TO_POINTER(
        (uint32_t)ht_event_uint(ev, HT_F_SWITCH_NEXT_PID)));
    if (state & UNINTERRUPTIBLE && g_hash_table_size(c->blocked) <
        BLOCKED_MAX) {
        b = g_new0(HtLastBlocked, 1);
        b->pid = prev;
        b->since = ev->rec.ns;
        g_strlcpy(b->comm, ev->task->comm, sizeof(b->comm));
        g_hash_table_replace(c->blocked, GUINT_TO_POINTER((uint32_t)prev), b);
    }
}

static void see(Collect *c, const HtModelEvent *ev)
{
    const HtRunCpu *cpu;
    HtGraphStep step;
    HtLast *l = c->l;

    if (!l->events || ev->boot != l->boot || ev->rec.segment != c->segment) {
        forget(c, ev);
    }
    l->events++;
    if (ev->rec.lost_before) {
        l->gaps++;
        l->lost += ev->rec.lost_estimate;
        longest(c, &l->gap, ev, ev->rec.lost_from_ns, -1);
    }
    cpu = ht_running_before(l->running, ev);
    if (cpu && cpu->known && cpu->pid) {
        longest(c, &l->busy, ev, cpu->last, cpu->pid);
    }
    if (!ev->rec.lost_before) {
        longest(c, &l->silence, ev, l->end, -1);
    }
    ht_running_after(l->running, ev);
    ht_graph_event(l->graph, ev, &step);
    l->end = MAX(l->end, ev->rec.ns);
    if (cpu) {
        c->cpu_last[ev->rec.cpu] = ev->rec.ns;
        c->cpu_event[ev->rec.cpu] = ev->class;
    }
    switch (ev->class->kind) {
    case HT_KIND_CONSOLE:
        keep_line(c, ev);
        break;
    case HT_KIND_SCHED_SWITCH:
        switched(c, ev);
        break;
    case HT_KIND_SCHED_WAKING:
    case HT_KIND_SCHED_WAKEUP:
        g_hash_table_remove(c->blocked, GUINT_TO_POINTER(
            (uint32_t)ht_event_uint(ev, HT_F_TASK_PID)));
        break;
    default:
        break;
    }
}

static gint by_since(gconstpointer a, gconstpointer b)
{
    const HtLastBlocked *x = a, *y = b;

    return x->since != y->since ? (x->since < y->since ? -1 : 1) :
           x->pid - y->pid;
}

static void finish(Collect *c)
{
    GHashTableIter iter;
    gpointer b;
    uint32_t i;

    for (i = 0; i < HT_RUNNING_CPUS_MAX; i++) {
        HtLastCpu cpu = { i, c->cpu_last[i], c->cpu_event[i] };

        if (cpu.event) {
            g_array_append_val(c->l->cpus, cpu);
        }
    }
    g_hash_table_iter_init(&iter, c->blocked);
    while (g_hash_table_iter_next(&iter, NULL, &b)) {
        g_array_append_vals(c->l->blocked, b, 1);
    }
    g_array_sort(c->l->blocked, by_since);
}

static uint64_t number(HtModel *m, const char *key)
{
    return g_ascii_strtoull(ht_model_info(m, "recording", key), NULL, 10);
}

/* When, by the host's clock, the last look was that saw something new */
static uint64_t seen_last(HtModel *m)
{
    HtRecording *r = ht_model_recording(m);
    uint64_t last = 0;
    uint32_t cpu;
    HtFtPiece p;

    for (cpu = 0; cpu < ht_rec_info(r)->cpus; cpu++) {
        while (ht_rec_next_piece(r, cpu, &p)) {
            last = p.events ? MAX(last, p.host_after) : last;
        }
    }
    ht_model_rewind(m);
    return last;
}

/*
 * What a live recording knows about the time behind its last event; of a
 * memory that was dead there is no such time.
 */
static uint64_t silence_after(HtModel *m)
{
    uint64_t ended = number(m, "ended-monotonic"), seen = seen_last(m);

    return number(m, "poll-us") && ended > seen && seen ? ended - seen : 0;
}

HtLast *ht_last_collect(HtModel *m, unsigned boot, unsigned lines,
                        GError **errp)
{
    g_autofree Collect *c = g_new0(Collect, 1);
    HtLast *l = g_new0(HtLast, 1);
    uint64_t after = silence_after(m);
    HtModelEvent ev;

    c->l = l;
    c->lines = MIN(lines, HT_LAST_LOG_MAX);
    c->blocked = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    l->m = m;
    l->cpus = g_array_new(false, false, sizeof(HtLastCpu));
    l->blocked = g_array_new(false, false, sizeof(HtLastBlocked));
    l->running = ht_running_new(m);
    l->graph = ht_graph_new(m);
    while (ht_model_next(m, &ev)) {
        l->boots = MAX(l->boots, ev.boot);
        if (boot && ev.boot > boot) {
            /* names are kept no longer than this */
            break;
        }
        if (!boot || ev.boot == boot) {
            see(c, &ev);
        }
    }
    finish(c);
    g_hash_table_destroy(c->blocked);
    l->after = boot && boot != l->boots ? 0 : after;
    if (l->events) {
        return l;
    }
    g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT, boot ?
                "boot %u has no events" : "there are no events", boot);
    ht_last_free(l);
    return NULL;
}
