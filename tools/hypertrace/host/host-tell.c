/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --tell-guest: tell the guest what the host does with its
 * vCPUs
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "host/host-sums.h"
#include "host/host-tell.h"
#include "host/threads.h"
#include "hypertrace/atomic.h"
#include "hypertrace/base.h"
#include "hypertrace/thread.h"

#define PERIOD_NS   INT64_C(100000000)
/*
 * Minimum age in ns of an event that is added to the sums. The recorder writes
 * the host's events every 20 to 50 ms. If it writes an event after later events
 * were added to the sums, the event's time is raised to the time of the last of
 * them.
 */
#define AGE_NS      INT64_C(100000000)
/* Time in ns for which a process may have no vCPU before this is reported */
#define NOTE_NS     INT64_C(10000000000)

struct HtHostTell {
    char *part;
    HtHostPage *page;
    /* process ID of the machine, set by ht_host_tell_process(); atomic */
    uint32_t pid;
    HtThread thread;
    HtMutex lock;               /* for @wake */
    HtCond wake;
    /* the thread must end; atomic, set with @lock held */
    uint32_t quit;

    /*
     * Until the thread has ended, it alone uses @model to @sums. They are NULL
     * until the thread can read the host's part.
     */
    HtModel *model;
    GHashTable *threads;
    HtRunstates *x;
    HtHostSums *sums;
    /* time in ns of the first note_vcpus() with a known process; 0: none yet */
    int64_t since;
    /* note_vcpus() has seen a vCPU or has printed its message */
    bool noted;
};

static bool has_vcpus(const HtRunstates *x, uint32_t pid)
{
    unsigned i;

    for (i = 0; i < x->vcpus->len; i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        if (v->machine == pid) {
            return true;
        }
    }
    return false;
}

static void put_causes(const HtRunstates *x, const HtVcpuSums *v,
                       struct ht_host_stats *s)
{
    GHashTableIter it;
    gpointer value;

    g_hash_table_iter_init(&it, v->rivals);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        const HtTaker *t = value;

        *(t->idle ? &s->idle_ns : t->machine == v->machine ? &s->own_ns :
          has_vcpus(x, t->machine) ? &s->machines_ns : &s->tasks_ns) +=
            t->ticks;
    }
}

static void put_exits(const HtVcpuSums *v, struct ht_host_stats *s)
{
    g_autoptr(GList) exits = ht_runstates_exits(v);
    GList *l;

    s->other_exits = v->rest_exits;
    s->other_exits_ns = v->rest_ticks;
    for (l = exits; l; l = l->next) {
        const HtExitSums *e = l->data;

        if (!e->count) {
            continue;
        }
        if (s->nr_exits < HT_HOST_EXITS) {
            struct ht_host_exit *to = &s->exits[s->nr_exits++];

            to->reason = e->reason;
            g_strlcpy(to->name, e->name, sizeof(to->name));
            to->count = e->count;
            to->ns = e->ticks;
        } else {
            s->other_exits += e->count;
            s->other_exits_ns += e->ticks;
        }
    }
}

/*
 * Convert the sums of a vCPU, counted up to @x->end, to the structure that the
 * guest reads.  The four parts of the stolen time (own_ns, machines_ns,
 * tasks_ns, idle_ns) count a wait only up to the last change of the task on the
 * processor for which the vCPU waits.
 */
static void stats_of(const HtRunstates *x, const HtVcpuSums *v,
                     struct ht_host_stats *s)
{
    uint64_t no_mode = v->modes[HT_MODE_UNKNOWN];
    bool emulated = ht_host_sums_emulated(v);

    *s = (struct ht_host_stats) {
        .from_ns = MAX(x->begin, v->begin),
        .to_ns = x->end,
        .vcpu = v->vcpu,
        .guest_ns = v->modes[HT_MODE_GUEST],
        .exits_ns = v->modes[HT_MODE_EXIT],
        .vmm_ns = v->modes[HT_MODE_VMM] + (emulated ? no_mode : 0),
        .preempted_ns = v->preempted,
        .woken_ns = v->woken,
        .halted_ns = v->halted,
        .waiting_ns = v->ticks[HT_RUN_BLOCKED] - v->halted,
        .unknown_ns = v->unknown + (emulated ? 0 : no_mode),
    };
    put_causes(x, v, s);
    put_exits(v, s);
}

/*
 * Open the host's part, unless it is open already. Returns false if it cannot
 * be read yet.
 */
static bool open_part(HtHostTell *t)
{
    if (!t->model) {
        t->model = ht_model_open(t->part, NULL);
        if (!t->model) {
            return false;
        }
        t->threads = ht_host_sums_threads(t->model, NULL);
        t->x = ht_runstates_new();
        t->sums = ht_host_sums_new(t->x, t->model, t->threads);
    }
    return true;
}

/*
 * Fill @slots with the vCPUs of process @pid, by number; a thread that runs all
 * vCPUs gets slot 0. Of several vCPUs with the same number, use the newest one:
 * a vCPU that was unplugged and plugged in again has a new thread.
 */
static void put_slots(const HtRunstates *x, uint32_t pid,
                      const HtVcpuSums **slots)
{
    unsigned i;

    for (i = 0; pid && i < x->vcpus->len; i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        if (v->machine == pid && v->vcpu < (int32_t)HT_HOST_VCPUS &&
            v->state != HT_RUN_OFFLINE) {
            slots[MAX(v->vcpu, 0)] = v;
        }
    }
}

/* After NOTE_NS without a vCPU of the process, print a notice once. */
static void note_vcpus(HtHostTell *t, uint32_t pid)
{
    int64_t now = ht_now_ns();

    if (t->noted || !pid) {
        return;
    }
    t->since = t->since ? t->since : now;
    if (t->x && has_vcpus(t->x, pid)) {
        t->noted = true;
    } else if (now - t->since >= NOTE_NS) {
        t->noted = true;
        ht_notice("--tell-guest: the guest is told nothing, because process "
                  "%" PRIu32 " has no vCPU so far. Is it QEMU itself, and not "
                  "a program that starts QEMU?", pid);
    }
}

static void update(HtHostTell *t)
{
    const HtVcpuSums *slots[HT_HOST_VCPUS] = { NULL };
    uint32_t pid = ht_atomic_read(&t->pid);
    unsigned i;

    if (!open_part(t)) {
        return;
    }
    ht_rec_more(ht_model_recording(t->model), ht_now_ns() - AGE_NS);
    if (!ht_host_sums_more(t->sums, &t->quit)) {
        return;
    }
    put_slots(t->x, pid, slots);
    for (i = 0; i < HT_HOST_VCPUS; i++) {
        struct ht_host_stats stats;

        if (slots[i]) {
            stats_of(t->x, slots[i], &stats);
            ht_host_page_write(t->page, i, &stats);
        }
    }
}

static void *tell(void *opaque)
{
    HtHostTell *t = opaque;

    ht_mutex_lock(&t->lock);
    while (!t->quit) {
        int64_t end = ht_now_ns() + PERIOD_NS;

        ht_mutex_unlock(&t->lock);
        update(t);
        note_vcpus(t, ht_atomic_read(&t->pid));
        ht_mutex_lock(&t->lock);
        while (!t->quit && ht_cond_wait_until(&t->wake, &t->lock, end)) {
            /*
             * The thread was woken before @end: wait for the rest of the time.
             */
        }
    }
    ht_mutex_unlock(&t->lock);
    return NULL;
}

HtHostTell *ht_host_tell_new(const char *part, HtHostPage *page)
{
    HtHostTell *t = g_new0(HtHostTell, 1);

    t->part = g_strdup(part);
    t->page = page;
    ht_mutex_init(&t->lock);
    ht_cond_init(&t->wake);
    ht_thread_start(&t->thread, "ht-tell", tell, t);
    return t;
}

void ht_host_tell_process(HtHostTell *t, uint32_t pid)
{
    if (t) {
        ht_atomic_set(&t->pid, pid);
    }
}

void ht_host_tell_free(HtHostTell *t)
{
    if (!t) {
        return;
    }
    ht_mutex_lock(&t->lock);
    ht_atomic_set(&t->quit, 1);
    ht_cond_signal(&t->wake);
    ht_mutex_unlock(&t->lock);
    ht_thread_join(&t->thread);
    ht_mutex_destroy(&t->lock);
    ht_cond_destroy(&t->wake);
    ht_host_sums_free(t->sums);
    ht_runstates_free(t->x);
    g_clear_pointer(&t->threads, g_hash_table_destroy);
    ht_model_free(t->model);
    g_free(t->part);
    g_free(t);
}
