/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up what the vCPUs in the host's part of a recording did
 */
#include <string.h>

#include "host/host-sums.h"
#include "host/threads.h"
#include "hypertrace/atomic.h"

#define CPUS_MAX        4096
/* Number of events between two reads of HtHostSums.stop */
#define STOP_EVENTS     10000
#define THREADS_SIZE    (16u << 20)

/*
 * Bits of sched_switch's prev_state. STATE_WAITS: if none of these bits is set,
 * the task can run; else it sleeps, is stopped or has ended. STATE_DEAD: if one
 * of these bits is set, the task has ended.
 */
#define STATE_WAITS     0xff
#define STATE_DEAD      0x30

struct HtHostSums {
    HtModel *m;
    HtRunstates *x;
    GHashTable *threads;
    /* the events come from this host and are still being recorded */
    bool live;
    /*
     * argument of ht_host_sums_more(): ends the call when it becomes non-zero;
     * atomic; or NULL
     */
    const uint32_t *stop;
    bool seen[CPUS_MAX];
};

typedef HtHostSums Sums;

GHashTable *ht_host_sums_threads(HtModel *m, GError **errp)
{
    size_t size = 0;
    g_autofree char *text = ht_rec_text(ht_model_recording(m), "threads",
                                        THREADS_SIZE, &size, errp);

    return ht_host_threads(text ? text : "", text ? size : 0);
}

/* Get the PID of a thread's process; 0: the process is not known. */
static uint32_t process(const Sums *s, uint32_t tid)
{
    const HtHostThread *t = ht_host_thread(s->threads, tid);

    if (!t && tid && s->live) {
        t = ht_host_thread_add(s->threads, tid);
    }
    return t ? t->pid : 0;
}

static HtVcpuSums *add_vcpu(Sums *s, uint32_t tid, int32_t vcpu)
{
    HtVcpuSums *v = ht_runstates_vcpu(s->x, tid);

    if (v && !v->tid) {
        v->tid = tid;
        v->vcpu = vcpu;
        v->begin = s->x->end;
        v->machine = process(s, tid);
    }
    return v;
}

/*
 * Find the vCPU of a thread in sched_switch. If the thread has no vCPU yet and
 * has a name that QEMU gives vCPUs, create the vCPU. Return NULL if the thread
 * is no vCPU, or if the table of vCPUs is full.
 */
static HtVcpuSums *switched(Sums *s, const HtModelEvent *ev,
                            unsigned pid_field, unsigned comm_field)
{
    uint32_t tid = ht_event_uint(ev, pid_field);
    HtVcpuSums *v = tid ? ht_runstates_find(s->x, tid) : NULL;
    const char *comm;
    int32_t vcpu;
    gsize len;

    if (v || !tid) {
        return v;
    }
    comm = ht_event_text(ev, comm_field, &len);
    if (!ht_host_vcpu_name(comm, len, &vcpu)) {
        return NULL;
    }
    v = add_vcpu(s, tid, vcpu);
    if (v) {
        v->emulated = ht_host_emulated_name(comm, len);
    }
    return v;
}

static HtHostTask host_task(Sums *s, const HtModelEvent *ev,
                            unsigned pid_field, unsigned comm_field)
{
    int32_t pid = ht_event_uint(ev, pid_field);
    uint32_t machine = process(s, pid);
    HtHostTask task = {
        .pid = pid, .machine = machine ? machine : (uint32_t)pid,
        .idle = !pid,
    };
    const char *comm = ht_event_text(ev, comm_field, &task.len);

    task.len = MIN(task.len, sizeof(task.comm));
    memcpy(task.comm, comm, task.len);
    return task;
}

/*
 * The previous task of a sched_switch ran until now: add its time to the takers
 * of the vCPUs that waited for its processor. @vcpu: the vCPU that is the next
 * task, or NULL
 */
static void end_turn(Sums *s, const HtModelEvent *ev, const HtVcpuSums *vcpu)
{
    HtHostTask prev = host_task(s, ev, HT_F_SWITCH_PREV_PID,
                                HT_F_SWITCH_PREV_COMM);
    HtHostTask next = host_task(s, ev, HT_F_SWITCH_NEXT_PID,
                                HT_F_SWITCH_NEXT_COMM);

    ht_runstates_ran(s->x, ev->rec.cpu, &prev, &next, vcpu, ev->rec.ns);
}

/*
 * A thread has ended. If the host is still being recorded, forget the thread:
 * its TID may become that of a thread of another process.
 */
static void forget(Sums *s, uint32_t tid)
{
    if (s->live) {
        g_hash_table_remove(s->threads, GUINT_TO_POINTER(tid));
        ht_runstates_forget(s->x, tid);
    }
}

static void sched_switch(Sums *s, const HtModelEvent *ev)
{
    HtVcpuSums *prev = switched(s, ev, HT_F_SWITCH_PREV_PID,
                                HT_F_SWITCH_PREV_COMM);
    HtVcpuSums *next = switched(s, ev, HT_F_SWITCH_NEXT_PID,
                                HT_F_SWITCH_NEXT_COMM);
    uint64_t state = ht_event_uint(ev, HT_F_SWITCH_PREV_STATE);

    end_turn(s, ev, next);
    if (prev) {
        prev->cpu = ev->rec.cpu;
        ht_runstates_change(s->x, prev, HT_RUN_RUNNING,
                            state & STATE_DEAD ? HT_RUN_OFFLINE :
                            state & STATE_WAITS ? HT_RUN_BLOCKED :
                            HT_RUN_RUNNABLE,
                            ev->rec.ns);
    }
    if (next) {
        next->cpu = ev->rec.cpu;
        ht_runstates_change(s->x, next,
                            next->seen && next->state == HT_RUN_BLOCKED ?
                            HT_RUN_BLOCKED : HT_RUN_RUNNABLE,
                            HT_RUN_RUNNING, ev->rec.ns);
    }
    if (state & STATE_DEAD) {
        forget(s, ht_event_uint(ev, HT_F_SWITCH_PREV_PID));
    }
}

static void sched_waking(Sums *s, const HtModelEvent *ev)
{
    HtVcpuSums *v = ht_runstates_find(s->x, ht_event_uint(ev, HT_F_TASK_PID));

    /*
     * If a task is woken before it has left its processor, it keeps running:
     * change only the state of a blocked vCPU.
     */
    if (v && v->seen && v->state == HT_RUN_BLOCKED) {
        v->cpu = ht_event_uint(ev, HT_F_WAKE_CPU);
        ht_runstates_change(s->x, v, HT_RUN_BLOCKED, HT_RUN_RUNNABLE,
                            ev->rec.ns);
    }
}

/*
 * Get the vCPU of the thread that caused an event of KVM. If the thread has no
 * vCPU yet and the event has a vCPU's number, create the vCPU; without a
 * number, return NULL. The event proves that the vCPU runs: if the vCPU has
 * another state, change the state.
 */
static HtVcpuSums *kvm_vcpu(Sums *s, const HtModelEvent *ev)
{
    bool known = ev->class->field[HT_F_KVM_VCPU];
    HtVcpuSums *v = ht_runstates_find(s->x, ev->rec.pid);

    if (!v && known && ev->rec.pid > 0) {
        v = add_vcpu(s, ev->rec.pid, ht_event_uint(ev, HT_F_KVM_VCPU));
    }
    if (v && (!v->seen || v->state != HT_RUN_RUNNING)) {
        v->cpu = ev->rec.cpu;
        ht_runstates_change(s->x, v, HT_RUN_RUNNING, HT_RUN_RUNNING,
                            ev->rec.ns);
    }
    return v;
}

/*
 * Set the name of an exit's reason, which the event's text has after the word
 * "reason".
 */
static void set_reason_name(Sums *s, const HtModelEvent *ev, HtExitSums *e)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *p;
    size_t n;

    ht_model_print(s->m, ev, text);
    p = strstr(text->str, "reason ");
    n = p ? strspn(p + 7, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_") : 0;
    g_snprintf(e->name, sizeof(e->name), "%.*s", (int)n, p ? p + 7 : "");
}

static void kvm_exit(Sums *s, const HtModelEvent *ev)
{
    HtVcpuSums *v = kvm_vcpu(s, ev);

    if (!v) {
        return;
    }
    ht_runstates_mode(s->x, v, HT_MODE_GUEST, HT_MODE_EXIT, ev->rec.ns);
    ht_runstates_exit(s->x, v, ht_event_uint(ev, HT_F_KVM_REASON),
                      ev->rec.ns);
    if (v->exit && !*v->exit->name) {
        set_reason_name(s, ev, v->exit);
    }
    v->halt = v->exit && !g_ascii_strcasecmp(v->exit->name, "hlt");
}

static void add_event(Sums *s, const HtModelEvent *ev)
{
    HtVcpuSums *v;

    switch (ev->class->kind) {
    case HT_KIND_SCHED_SWITCH:
        sched_switch(s, ev);
        break;
    case HT_KIND_SCHED_WAKING:
        sched_waking(s, ev);
        break;
    case HT_KIND_KVM_EXIT:
        kvm_exit(s, ev);
        break;
    case HT_KIND_KVM_ENTRY:
        v = kvm_vcpu(s, ev);
        if (v) {
            ht_runstates_mode(s->x, v, HT_MODE_VMM, HT_MODE_GUEST, ev->rec.ns);
            ht_runstates_entry(v, ev->rec.ns);
            v->halt = false;
        }
        break;
    case HT_KIND_KVM_USERSPACE:
        v = kvm_vcpu(s, ev);
        if (v) {
            ht_runstates_mode(s->x, v, HT_MODE_EXIT, HT_MODE_VMM, ev->rec.ns);
        }
        break;
    default:
        break;
    }
}

bool ht_host_sums_emulated(const HtVcpuSums *v)
{
    return v->emulated && !v->modes[HT_MODE_GUEST] &&
           !g_hash_table_size(v->exits);
}

static void close_vcpus(Sums *s)
{
    unsigned i;

    for (i = 0; i < s->x->vcpus->len; i++) {
        HtVcpuSums *v = s->x->vcpus->pdata[i];

        if (v->seen && v->state != HT_RUN_OFFLINE) {
            ht_runstates_close(s->x, v, s->x->end);
        }
    }
}

static void end_vcpus(Sums *s)
{
    unsigned i;

    close_vcpus(s);
    for (i = 0; i < s->x->vcpus->len; i++) {
        HtVcpuSums *v = s->x->vcpus->pdata[i];

        if (ht_host_sums_emulated(v)) {
            v->modes[HT_MODE_VMM] += v->modes[HT_MODE_UNKNOWN];
            v->modes[HT_MODE_UNKNOWN] = 0;
        }
    }
}

/*
 * Every STOP_EVENTS events, check whether another thread wants the sums to
 * end.
 */
static bool stopped(const Sums *s, uint64_t events)
{
    return s->stop && events % STOP_EVENTS == 0 && ht_atomic_read(s->stop);
}

/*
 * Add the model's events, up to the first one after the end of the sums.
 * Returns: false if HtHostSums.stop was set meanwhile
 */
static bool add_events(Sums *s)
{
    HtRunstates *x = s->x;
    uint64_t events = 0;
    HtModelEvent ev;

    while (!stopped(s, events++)) {
        if (!ht_model_next(s->m, &ev)) {
            return true;
        }
        uint32_t cpu = ev.rec.cpu;
        bool back = ev.rec.ns < x->end;

        if (!ht_runstates_time(x, &ev.rec.ns)) {
            return true;
        }
        x->backward += back;
        x->records++;
        if (cpu < CPUS_MAX && !s->seen[cpu]) {
            s->seen[cpu] = true;
            x->cpus++;
        }
        if (ev.rec.lost_before) {
            ht_runstates_lost(x, ev.rec.lost_estimate, ev.rec.lost_from_ns ?
                              ev.rec.lost_from_ns : ev.rec.ns);
        }
        add_event(s, &ev);
    }
    return false;
}

HtHostSums *ht_host_sums_new(HtRunstates *x, HtModel *m, GHashTable *threads)
{
    HtHostSums *s = g_new0(HtHostSums, 1);

    s->m = m;
    s->x = x;
    s->threads = threads;
    s->live = true;
    return s;
}

void ht_host_sums_free(HtHostSums *s)
{
    g_free(s);
}

bool ht_host_sums_more(HtHostSums *s, const uint32_t *stop)
{
    bool ok;

    s->stop = stop;
    ok = add_events(s);
    close_vcpus(s);
    return ok;
}

void ht_host_sums(HtRunstates *x, HtModel *m, GHashTable *threads)
{
    g_autoptr(HtHostSums) s = ht_host_sums_new(x, m, threads);

    s->live = false;
    add_events(s);
    ht_runstates_stop(x, true);
    end_vcpus(s);
    ht_runstates_end(x);
}
