/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up the states and exits of the vCPUs of a host
 *
 * The events may be damaged: each table has a limit.
 */
#include <string.h>

#include "host/runstates.h"
#include "hypertrace/base.h"

#define VCPUS_MAX       4096
/* maximum number of HtExitSums of all vCPUs together, of 7.7 KB each */
#define EXIT_ROWS_MAX   8192
/* maximum number of different hypercalls that are counted for a vCPU */
#define CALLS_MAX       256
/* maximum number of HtTaker and HtCpuTicks of all vCPUs together */
#define TAKERS_MAX      262144
#define CPUS_MAX        4096

void ht_taker_free(gpointer taker)
{
    HtTaker *t = taker;

    if (t->cpus) {
        g_array_unref(t->cpus);
    }
    g_free(t);
}

static void free_vcpu(gpointer p)
{
    HtVcpuSums *v = p;

    g_hash_table_destroy(v->exits);
    g_hash_table_destroy(v->hypercalls);
    g_hash_table_destroy(v->takers);
    g_hash_table_destroy(v->rivals);
    g_free(v);
}

HtRunstates *ht_runstates_new(void)
{
    HtRunstates *x = g_new0(HtRunstates, 1);

    x->vcpus = g_ptr_array_new_with_free_func(free_vcpu);
    x->by_id = g_hash_table_new(NULL, NULL);
    x->losses = g_array_new(false, false, sizeof(uint64_t));
    x->cpu_sums = g_array_new(false, true, sizeof(HtCpuSums));
    x->to = x->begin = UINT64_MAX;
    return x;
}

void ht_runstates_free(HtRunstates *x)
{
    if (x) {
        g_hash_table_destroy(x->by_id);
        g_array_unref(x->losses);
        g_array_unref(x->cpu_sums);
        g_ptr_array_unref(x->vcpus);
        g_free(x);
    }
}

HtVcpuSums *ht_runstates_find(const HtRunstates *x, uint32_t id)
{
    return g_hash_table_lookup(x->by_id, GUINT_TO_POINTER(id));
}

HtVcpuSums *ht_runstates_vcpu(HtRunstates *x, uint32_t id)
{
    HtVcpuSums *v = ht_runstates_find(x, id);

    if (!v && x->vcpus->len < VCPUS_MAX) {
        v = g_new0(HtVcpuSums, 1);
        v->exits = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        v->hypercalls = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        v->takers = g_hash_table_new_full(NULL, NULL, NULL, ht_taker_free);
        v->rivals = g_hash_table_new_full(NULL, NULL, NULL, ht_taker_free);
        g_ptr_array_add(x->vcpus, v);
        g_hash_table_insert(x->by_id, GUINT_TO_POINTER(id), v);
    }
    x->others += !v;
    return v;
}

void ht_runstates_forget(HtRunstates *x, uint32_t id)
{
    g_hash_table_remove(x->by_id, GUINT_TO_POINTER(id));
}

void ht_runstates_drop_exit(HtVcpuSums *v)
{
    v->open_exits += v->exit != NULL || v->rest_open;
    v->exit = NULL;
    v->rest_open = false;
}

static void report_span(HtRunstates *x, const HtVcpuSums *v, HtRunstate state,
                        HtRunMode mode, uint64_t from, uint64_t to)
{
    if (x->span && x->begun && to > from) {
        x->span(x->opaque, v, state, mode, from, to);
    }
}

static void add_mode(HtRunstates *x, HtVcpuSums *v, HtRunMode mode, uint64_t t)
{
    if (t > v->mode_since) {
        report_span(x, v, HT_RUN_RUNNING, mode, v->mode_since, t);
        v->modes[mode] += t - v->mode_since;
        v->mode_since = t;
    }
}

static void add_state(HtRunstates *x, HtVcpuSums *v, HtRunstate state,
                      uint64_t from, uint64_t ticks)
{
    v->ticks[state] += ticks;
    v->intervals[state]++;
    if (state != HT_RUN_RUNNING) {
        report_span(x, v, state, HT_MODE_UNKNOWN, from, from + ticks);
    }
    switch (state) {
    case HT_RUN_RUNNING:
        add_mode(x, v, v->mode, from + ticks);
        break;
    case HT_RUN_RUNNABLE:
        v->preempted += v->before == HT_RUN_RUNNING ? ticks : 0;
        v->woken += v->before == HT_RUN_BLOCKED ? ticks : 0;
        break;
    case HT_RUN_BLOCKED:
        v->halted += v->halt ? ticks : 0;
        break;
    default:
        break;
    }
}

/*
 * Check whether any physical CPU lost records since the vCPU's last change of
 * state. The losses of all CPUs count, because a vCPU may move to any of them.
 * If so, @t is set to the time from which on records may be missing.
 */
static bool lost_since(const HtRunstates *x, const HtVcpuSums *v, uint64_t *t)
{
    if (v->losses >= x->losses->len) {
        return false;
    }
    *t = g_array_index(x->losses, uint64_t, v->losses);
    return true;
}

/*
 * End the state that the vCPU has had since @v->since. If @from, the old state
 * according to the event, is another state, the time counts as unknown. If
 * events were lost, only the time from the loss on is unknown. If the vCPU was
 * running, the time up to its last change of mode, @v->mode_since, is known in
 * any case.
 */
static void end_state(HtRunstates *x, HtVcpuSums *v, HtRunstate from,
                      uint64_t t)
{
    uint64_t end = MAX(t, v->since), known = end, lost;
    bool gap = lost_since(x, v, &lost);

    if (gap || v->state != from) {
        known = gap ? CLAMP(lost, v->since, end) : v->since;
        if (v->state == HT_RUN_RUNNING) {
            known = CLAMP(v->mode_since, known, end);
        }
        v->unknown += end - known;
        ht_runstates_drop_exit(v);
    }
    if (gap || v->state == from || known > v->since) {
        add_state(x, v, v->state, v->since, known - v->since);
    }
    if (gap) {
        v->mode = HT_MODE_UNKNOWN;
        v->unknown_kept = v->modes[HT_MODE_UNKNOWN];
        v->halt = false;
    }
}

void ht_runstates_change(HtRunstates *x, HtVcpuSums *v, HtRunstate from,
                         HtRunstate to, uint64_t t)
{
    x->runnable += to == HT_RUN_RUNNABLE;
    if (v->seen) {
        x->runnable -= v->state == HT_RUN_RUNNABLE;
        end_state(x, v, from, t);
    }
    if ((v->exit || v->rest_open) && from == HT_RUN_RUNNING) {
        v->exit_ticks += t > v->exit_since ? t - v->exit_since : 0;
    }
    v->exit_since = t;
    v->mode_since = t;
    v->taken_since = t;
    v->before = from;
    v->state = to;
    v->seen = true;
    v->since = t;
    v->losses = x->losses->len;
}

void ht_runstates_close(HtRunstates *x, HtVcpuSums *v, uint64_t t)
{
    end_state(x, v, v->state, t);
    v->since = t;
}

void ht_runstates_mode(HtRunstates *x, HtVcpuSums *v, HtRunMode from,
                       HtRunMode to, uint64_t t)
{
    uint64_t lost;

    if (!v->seen || v->state != HT_RUN_RUNNING || lost_since(x, v, &lost)) {
        /* A change of the mode proves that the vCPU runs. */
        ht_runstates_change(x, v, HT_RUN_RUNNING, HT_RUN_RUNNING, t);
    } else if (v->mode == HT_MODE_UNKNOWN) {
        /*
         * No event has shown a change of the mode since it became unknown:
         * count the time since then as time in mode @from.
         */
        v->modes[from] += v->modes[HT_MODE_UNKNOWN] - v->unknown_kept;
        v->modes[HT_MODE_UNKNOWN] = v->unknown_kept;
        add_mode(x, v, from, t);
    } else {
        add_mode(x, v, v->mode, t);
    }
    v->mode = to;
    v->mode_since = t;
}

/*
 * Set the sums of a vCPU to 0, and forget the exit that the host handles for
 * the vCPU. Keep the vCPU's state and mode.
 */
static void reset(HtRunstates *x, HtVcpuSums *v, uint64_t t)
{
    if (v->seen) {
        ht_runstates_close(x, v, t);
    }
    v->exit = NULL;
    v->rest_open = false;
    v->rest_exits = v->rest_ticks = 0;
    g_hash_table_remove_all(v->exits);
    g_hash_table_remove_all(v->hypercalls);
    g_hash_table_remove_all(v->takers);
    g_hash_table_remove_all(v->rivals);
    memset(v->ticks, 0, sizeof(v->ticks));
    memset(v->intervals, 0, sizeof(v->intervals));
    memset(v->modes, 0, sizeof(v->modes));
    v->preempted = v->woken = v->unknown = v->halted = v->open_exits = 0;
    v->unknown_kept = 0;
    v->mode_since = t;
    v->taken_since = t;
}

/*
 * Begin the sums at time @t: forget what earlier events added, but keep the
 * states of the vCPUs and the tasks of the processors.
 */
static void begin(HtRunstates *x, uint64_t t)
{
    unsigned i;

    for (i = 0; i < x->vcpus->len; i++) {
        reset(x, x->vcpus->pdata[i], t);
    }
    for (i = 0; i < x->cpu_sums->len; i++) {
        HtCpuSums *c = &g_array_index(x->cpu_sums, HtCpuSums, i);

        c->idle = c->busy = 0;
        c->since = t;
    }
    x->records = x->lost = x->gaps = x->backward = x->others = 0;
    x->rows = x->takers = 0;
    x->begin = t;
    x->begun = true;
}

bool ht_runstates_time(HtRunstates *x, uint64_t *t)
{
    *t = MAX(*t, x->end);
    if (!x->begun && *t >= x->from) {
        begin(x, x->end ? MIN(x->from, x->to) : *t);
    }
    if (*t > x->to) {
        x->end = MAX(x->begin, x->to);
        return false;
    }
    x->end = *t;
    return true;
}

/*
 * A processor's task changes at @t: add the time since the last change to the
 * processor's sums. Leave the time out if the task was not known or events were
 * lost meanwhile.
 */
static void add_turn(HtRunstates *x, HtCpuSums *c, bool known, bool idle,
                     uint64_t t)
{
    uint64_t ticks = t - MIN(MAX(c->since, x->begin), t);

    if (known && c->losses == x->losses->len) {
        *(idle ? &c->idle : &c->busy) += ticks;
    }
    c->losses = x->losses->len;
    c->since = t;
}

static void add_cpu(HtRunstates *x, GArray *cpus, uint32_t cpu, uint64_t ticks)
{
    unsigned i;

    for (i = 0; i < cpus->len; i++) {
        HtCpuTicks *c = &g_array_index(cpus, HtCpuTicks, i);

        if (c->cpu == cpu) {
            c->ticks += ticks;
            return;
        }
    }
    if (!x || x->takers < TAKERS_MAX) {
        HtCpuTicks c = { cpu, ticks };

        if (x) {
            x->takers++;
        }
        g_array_append_val(cpus, c);
    }
}

static void name_taker(HtTaker *taker, const HtHostTask *task)
{
    taker->pid = task->pid;
    taker->machine = task->machine;
    taker->idle = task->idle;
    memcpy(taker->comm, task->comm, task->len);
    taker->comm[task->len] = 0;
}

/*
 * Add @ticks of a vCPU's wait to an entry of @table: to that with the key @key,
 * for the task or the machine that ran meanwhile.
 */
static void add_part(HtRunstates *x, const HtVcpuSums *v, GHashTable *table,
                     gpointer key, uint32_t cpu, const HtHostTask *task,
                     uint64_t ticks)
{
    HtTaker *taker = g_hash_table_lookup(table, key);

    if (!taker) {
        if (x->takers >= TAKERS_MAX) {
            x->others++;
            return;
        }
        x->takers++;
        taker = g_new0(HtTaker, 1);
        taker->cpus = g_array_new(false, false, sizeof(HtCpuTicks));
        g_hash_table_insert(table, key, taker);
    }
    name_taker(taker, task);
    if (!taker->waits || taker->wait != v->since) {
        taker->waits++;
        taker->wait = v->since;
        taker->part = 0;
    }
    taker->ticks += ticks;
    taker->part += ticks;
    taker->longest = MAX(taker->longest, taker->part);
    add_cpu(x, taker->cpus, cpu, ticks);
}

void ht_taker_add(HtTaker *to, const HtTaker *from)
{
    unsigned i;

    to->pid = from->pid;
    to->machine = from->machine;
    to->idle = from->idle;
    memcpy(to->comm, from->comm, sizeof(to->comm));
    to->ticks += from->ticks;
    to->waits += from->waits;
    to->longest = MAX(to->longest, from->longest);
    if (!to->cpus) {
        to->cpus = g_array_new(false, false, sizeof(HtCpuTicks));
    }
    for (i = 0; i < from->cpus->len; i++) {
        const HtCpuTicks *c = &g_array_index(from->cpus, HtCpuTicks, i);

        add_cpu(NULL, to->cpus, c->cpu, c->ticks);
    }
}

/*
 * A task ran until @t while a vCPU was runnable: add the time to the tables
 * @takers and @rivals of the vCPU, unless events were lost since the vCPU's
 * state changed.
 */
static void taken(HtRunstates *x, HtVcpuSums *v, uint32_t cpu,
                  const HtHostTask *task, uint64_t t)
{
    uint64_t lost, from = v->taken_since;

    if (t <= from || lost_since(x, v, &lost)) {
        return;
    }
    v->taken_since = t;
    add_part(x, v, v->takers, GINT_TO_POINTER(task->pid), cpu, task, t - from);
    add_part(x, v, v->rivals, GUINT_TO_POINTER(task->machine), cpu, task,
             t - from);
    if (x->taken && x->begun) {
        x->taken(x->opaque, v, task, from, t);
    }
}

/*
 * A task had a processor until @t: add the time to the tables of each vCPU that
 * waited for the processor. @vcpu: the vCPU that runs next on the processor,
 * for which it may have waited on another processor; or NULL
 */
static void all_taken(HtRunstates *x, uint32_t cpu, const HtHostTask *task,
                      const HtVcpuSums *vcpu, uint64_t t)
{
    const HtVcpuSums *own = ht_runstates_find(x, task->pid);
    unsigned i;

    for (i = 0; x->runnable && i < x->vcpus->len; i++) {
        HtVcpuSums *v = x->vcpus->pdata[i];

        if (v != own && v->seen && v->state == HT_RUN_RUNNABLE &&
            (v == vcpu || v->cpu == cpu)) {
            taken(x, v, cpu, task, t);
        }
    }
}

void ht_runstates_ran(HtRunstates *x, uint32_t cpu, const HtHostTask *task,
                      const HtHostTask *next, const HtVcpuSums *vcpu,
                      uint64_t t)
{
    if (cpu < CPUS_MAX) {
        HtCpuSums *c;

        if (cpu >= x->cpu_sums->len) {
            g_array_set_size(x->cpu_sums, cpu + 1);
        }
        c = &g_array_index(x->cpu_sums, HtCpuSums, cpu);
        c->seen = true;
        add_turn(x, c, task != NULL, task && task->idle, t);
        c->open = next != NULL;
        c->task = next ? *next : (HtHostTask) { 0 };
    }
    if (task) {
        all_taken(x, cpu, task, vcpu, t);
    }
}

void ht_runstates_stop(HtRunstates *x, bool waits)
{
    unsigned i;

    if (!x->begun) {
        begin(x, x->end);
    }
    for (i = 0; i < x->cpu_sums->len; i++) {
        HtCpuSums *c = &g_array_index(x->cpu_sums, HtCpuSums, i);

        if (c->seen) {
            add_turn(x, c, c->open, c->task.idle, x->end);
        }
        if (c->open && waits) {
            all_taken(x, i, &c->task, NULL, x->end);
        }
    }
}

static unsigned bucket(uint64_t ticks)
{
    unsigned e;

    if (ticks < 32) {
        return ticks;
    }
    e = 63 - __builtin_clzll(ticks);
    return (e - 4) * 32 + (ticks >> (e - 5) & 31);
}

/* Get the longest time that a bucket counts. */
static uint64_t bucket_end(unsigned i)
{
    unsigned shift = i < 64 ? 0 : i / 32 - 1;

    return i < 32 ? i : ((i % 32 + 32ULL) << shift) + ((1ULL << shift) - 1);
}

uint64_t ht_runstates_percentile(const HtExitSums *e, unsigned percent)
{
    uint64_t need = (e->count * percent + 99) / 100, sum = 0;
    unsigned i;

    for (i = 0; i < HT_EXIT_BUCKETS; i++) {
        sum += e->buckets[i];
        if (sum >= need) {
            return MIN(bucket_end(i), e->max);
        }
    }
    return e->max;
}

void ht_runstates_exit(HtRunstates *x, HtVcpuSums *v, uint32_t reason,
                       uint64_t t)
{
    gpointer key = GUINT_TO_POINTER(reason);

    ht_runstates_drop_exit(v);
    v->exit = g_hash_table_lookup(v->exits, key);
    if (!v->exit && x->rows >= EXIT_ROWS_MAX) {
        x->others++;
        v->rest_open = true;
    } else if (!v->exit) {
        x->rows++;
        v->exit = g_new0(HtExitSums, 1);
        v->exit->reason = reason;
        g_hash_table_insert(v->exits, key, v->exit);
    }
    v->exit_since = t;
    v->exit_ticks = 0;
}

void ht_runstates_entry(HtVcpuSums *v, uint64_t t)
{
    uint64_t ticks = v->exit_ticks +
                     (t > v->exit_since ? t - v->exit_since : 0);
    HtExitSums *e = v->exit;

    if (v->rest_open) {
        v->rest_exits++;
        v->rest_ticks += ticks;
        v->rest_open = false;
    } else if (e) {
        e->count++;
        e->ticks += ticks;
        e->max = MAX(e->max, ticks);
        e->buckets[bucket(ticks)]++;
        v->exit = NULL;
    }
}

static gint longer(gconstpointer a, gconstpointer b)
{
    const HtExitSums *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           x->reason < y->reason ? -1 : x->reason > y->reason;
}

GList *ht_runstates_exits(const HtVcpuSums *v)
{
    return g_list_sort(g_hash_table_get_values(v->exits), longer);
}

void ht_runstates_hypercall(HtRunstates *x, HtVcpuSums *v, uint32_t number)
{
    gpointer key = GUINT_TO_POINTER(number);
    uint64_t *count = g_hash_table_lookup(v->hypercalls, key);

    if (!count) {
        if (g_hash_table_size(v->hypercalls) >= CALLS_MAX) {
            x->others++;
            return;
        }
        count = g_new0(uint64_t, 1);
        g_hash_table_insert(v->hypercalls, key, count);
    }
    ++*count;
}

void ht_runstates_lost(HtRunstates *x, uint64_t count, uint64_t first)
{
    x->lost += count;
    x->gaps++;
    g_array_append_val(x->losses, first);
}

static gint by_id(gconstpointer a, gconstpointer b)
{
    const HtVcpuSums *v = *(const HtVcpuSums * const *)a;
    const HtVcpuSums *w = *(const HtVcpuSums * const *)b;

    return v->machine != w->machine ? (v->machine < w->machine ? -1 : 1) :
           v->vcpu != w->vcpu ? (v->vcpu < w->vcpu ? -1 : 1) :
           v->tid < w->tid ? -1 : v->tid > w->tid;
}

void ht_runstates_end(HtRunstates *x)
{
    unsigned i;

    x->begin = MIN(x->begin, x->end);
    for (i = 0; i < x->vcpus->len; i++) {
        ht_runstates_drop_exit(x->vcpus->pdata[i]);
    }
    g_ptr_array_sort(x->vcpus, by_id);
}
