/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: add up the time of tasks on the processors and off them
 */
#include <string.h>

#include "model/duration.h"
#include "model/gaps.h"
#include "model/running.h"
#include "views/flame.h"

#define TASKS_MAX       65536

#define FLAG_HARDIRQ    0x08    /* Bits of common_flags in an event */
#define FLAG_SOFTIRQ    0x10

/*
 * The node to which a processor's time now belongs; valid while
 * HtRunCpu.version is @version
 */
typedef struct Place {
    HtFlameNode *node;
    unsigned version;
} Place;

struct HtFlameCpu {
    HtFlame *f;
    HtModel *m;
    /* the host's part of the recording, by which times are split; or NULL */
    HtHostSplit *host;
    HtRunning *running;
    Place *places;
};

HtFlameCpu *ht_flame_cpu_new(HtFlame *f, HtModel *m, HtHostSplit *host)
{
    HtFlameCpu *c = g_new0(HtFlameCpu, 1);

    c->f = f;
    c->m = m;
    c->host = host;
    c->running = ht_running_new(m);
    c->places = g_new0(Place, HT_FT_CPUS_MAX);
    return c;
}

void ht_flame_cpu_end(HtFlameCpu *c)
{
    ht_running_free(c->running);
    g_free(c->places);
    g_free(c);
}

static HtFlameNode *put_nests(HtFlameCpu *c, HtFlameNode *n,
                              const HtNests *nests)
{
    unsigned i;

    for (i = 0; nests && i < nests->nr; i++) {
        n = ht_flame_child(c->f, n, nests->names[i]);
    }
    return n;
}

static HtFlameNode *find_node(HtFlameCpu *c, const HtRunCpu *cpu)
{
    const HtTask *t = ht_model_task(c->m, cpu->pid);
    HtFlameNode *n = ht_flame_child(c->f, ht_flame_root(c->f),
                                    !cpu->known ? "(not known)" :
                                    !cpu->pid ? "(idle)" :
                                    t ? t->comm : "<...>");

    if (cpu->known) {
        n = put_nests(c, n, ht_running_task(c->running, cpu->pid));
    }
    return put_nests(c, n, &cpu->irqs);
}

static void add_time(HtFlameCpu *c, HtFlameNode *n, const HtRunCpu *cpu,
                     const HtModelEvent *ev)
{
    HtSplit split = { 0 };
    unsigned i;

    if (!c->host) {
        n->self += ht_running_time(cpu, ev);
        return;
    }
    ht_host_split_add(c->host, ev->boot, ev->rec.segment, ev->rec.cpu,
                      cpu->last, ev->rec.ns, &split);
    n->self += split.ns[HT_SPLIT_GUEST];
    for (i = HT_SPLIT_GUEST + 1; i < HT_SPLIT_PARTS; i++) {
        g_autofree char *name = split.ns[i] ?
            g_strdup_printf("(%s)", ht_host_split_name(i)) : NULL;

        if (name) {
            ht_flame_child(c->f, n, name)->self += split.ns[i];
        }
    }
}

void ht_flame_cpu_event(HtFlameCpu *c, const HtModelEvent *ev)
{
    const HtRunCpu *cpu = ht_running_before(c->running, ev);
    Place *p = cpu ? &c->places[ev->rec.cpu] : NULL;

    if (p && ht_running_time(cpu, ev)) {
        if (!p->node || p->version != cpu->version) {
            p->node = find_node(c, cpu);
            p->version = cpu->version;
        }
        add_time(c, p->node, cpu, ev);
    }
    ht_running_after(c->running, ev);
}

typedef struct Off {
    uint64_t since;
    uint64_t state;
    /* time in ns at which the task was woken; 0: not yet */
    uint64_t woken;
    char waker[HT_COMM_MAX + 1];
} Off;

struct HtFlameOff {
    HtFlame *f;
    HtModel *m;
    HtGaps *gaps;
    GHashTable *tasks;          /* table from a task's unique number to Off */
    unsigned boot, segment;
};

HtFlameOff *ht_flame_off_new(HtFlame *f, HtModel *m)
{
    HtFlameOff *o = g_new0(HtFlameOff, 1);

    o->f = f;
    o->m = m;
    o->gaps = ht_gaps_new(m);
    o->tasks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return o;
}

void ht_flame_off_end(HtFlameOff *o)
{
    ht_gaps_free(o->gaps);
    g_hash_table_destroy(o->tasks);
    g_free(o);
}

static const char *state_name(uint64_t state)
{
    return state & 0x02 ? "uninterruptible" :
           state & 0x80 ? "idle worker" :
           state & 0x0c ? "stopped" :
           state & 0x40 ? "parked" :
           state & 0x01 ? "sleeping" : "ended";
}

static void switched_in(HtFlameOff *o, const HtModelEvent *ev, int32_t pid,
                        const Off *off)
{
    const HtTask *t = ht_model_task(o->m, pid);
    HtFlameNode *n;
    uint64_t woken = MAX(MIN(off->woken, ev->rec.ns), off->since);
    bool runs = !(off->state & 0xff);

    if (ht_gaps_between(o->gaps, ev, HT_GAPS_ANY, off->since, ev->rec.ns)) {
        return;
    }
    n = ht_flame_child(o->f, ht_flame_root(o->f), t ? t->comm : "<...>");
    if (runs) {
        n = ht_flame_child(o->f, n, "waiting for a CPU");
        n = ht_flame_child(o->f, n, "preempted");
        n->self += ht_elapsed(off->since, ev->rec.ns);
    } else if (off->woken) {
        HtFlameNode *wait = ht_flame_child(o->f, n, "waiting for a CPU");

        wait = ht_flame_child(o->f, wait, "woken");
        wait->self += ht_elapsed(woken, ev->rec.ns);
        n = ht_flame_child(o->f, n, state_name(off->state));
        n = ht_flame_child(o->f, n, off->waker);
        n->self += ht_elapsed(off->since, woken);
    } else {
        n = ht_flame_child(o->f, n, state_name(off->state));
        n->self += ht_elapsed(off->since, ev->rec.ns);
    }
}

static gpointer task_key(HtFlameOff *o, const HtModelEvent *ev, int32_t pid)
{
    return GSIZE_TO_POINTER(ht_model_task_id(o->m, pid, ev->rec.cpu));
}

static void switched(HtFlameOff *o, const HtModelEvent *ev)
{
    int32_t prev = ht_event_uint(ev, HT_F_SWITCH_PREV_PID);
    int32_t next = ht_event_uint(ev, HT_F_SWITCH_NEXT_PID);
    gpointer next_id = task_key(o, ev, next);
    Off *off = g_hash_table_lookup(o->tasks, next_id);

    if (off) {
        switched_in(o, ev, next, off);
        g_hash_table_remove(o->tasks, next_id);
    }
    if (prev && g_hash_table_size(o->tasks) < TASKS_MAX) {
        off = g_new0(Off, 1);
        off->since = ev->rec.ns;
        off->state = ht_event_uint(ev, HT_F_SWITCH_PREV_STATE);
        g_hash_table_replace(o->tasks, task_key(o, ev, prev), off);
    }
}

static void woken(HtFlameOff *o, const HtModelEvent *ev)
{
    int32_t pid = ht_event_uint(ev, HT_F_TASK_PID);
    Off *off = g_hash_table_lookup(o->tasks, task_key(o, ev, pid));

    if (off && !off->woken) {
        off->woken = ev->rec.ns;
        g_strlcpy(off->waker, ev->rec.flags & FLAG_HARDIRQ ? "(interrupt)" :
                  ev->rec.flags & FLAG_SOFTIRQ ? "(softirq)" :
                  ev->task->comm, sizeof(off->waker));
    }
}

void ht_flame_off_event(HtFlameOff *o, const HtModelEvent *ev)
{
    if (ev->boot != o->boot || ev->rec.segment != o->segment) {
        g_hash_table_remove_all(o->tasks);
        o->boot = ev->boot;
        o->segment = ev->rec.segment;
    }
    switch (ev->class->kind) {
    case HT_KIND_SCHED_SWITCH:
        switched(o, ev);
        break;
    case HT_KIND_SCHED_WAKING:
    case HT_KIND_SCHED_WAKEUP:
        woken(o, ev);
        break;
    default:
        break;
    }
}
