/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/changes.h"
#include "host/guest-tasks.h"
#include "model/host-clock.h"
#include "model/running.h"

/* Maximum number of Changes of all processors together; each takes 16 bytes */
#define CHANGES_MAX     (8u << 20)

typedef struct Change {
    uint64_t ns;
    const char *task;
} Change;

struct HtGuestTasks {
    char *dir;
    uint32_t process;
    HtBounds bounds;
    uint64_t end;               /* host time of the last event in ns */
    unsigned changes;           /* total length of all arrays in @cpus */
    /*
     * host time in ns from which on changes were dropped, because @changes was
     * at its maximum; UINT64_MAX: no change was dropped
     */
    uint64_t full;
    /*
     * by number of the processor: its GArray of Change; NULL: no event with a
     * known host time
     */
    GPtrArray *cpus;
    GStringChunk *names;
};

static void free_cpu(gpointer cpu)
{
    if (cpu) {
        g_array_unref(cpu);
    }
}

/*
 * Record that a processor runs a task from @ns on; @task is NULL if the task is
 * not known. Drop the change if CHANGES_MAX is reached.
 */
static void add_change(HtGuestTasks *g, uint32_t cpu, uint64_t ns,
                       const char *task)
{
    Change c = { ns, task };
    const Change *last;
    GArray *a;

    if (cpu >= g->cpus->len) {
        g_ptr_array_set_size(g->cpus, cpu + 1);
    }
    a = g->cpus->pdata[cpu];
    if (!a) {
        a = g->cpus->pdata[cpu] = g_array_new(false, false, sizeof(Change));
    }
    last = a->len ? &g_array_index(a, Change, a->len - 1) : NULL;
    if (last && last->task == task) {
        return;
    }
    if (g->changes >= CHANGES_MAX) {
        g->full = MIN(g->full, ns);
        return;
    }
    c.ns = last ? MAX(last->ns, ns) : ns;
    g_array_append_val(a, c);
    g->changes++;
}

/*
 * Get the task that a processor runs after the current event, as "NAME-PID" or
 * "idle"; NULL if it is not known.
 */
static const char *name_task(HtGuestTasks *g, HtModel *m, const HtRunCpu *cpu)
{
    const HtTask *t = ht_model_task(m, cpu->pid);
    g_autofree char *name = cpu->pid ?
        g_strdup_printf("%s-%d", t ? t->comm : "<...>", cpu->pid) :
        g_strdup("idle");

    return cpu->known ? g_string_chunk_insert_const(g->names, name) : NULL;
}

static void read_tasks(HtGuestTasks *g, HtModel *m, HtHostClock *clock)
{
    HtRunning *running = ht_running_new(m);
    HtModelEvent ev;
    unsigned i;

    ht_running_tasks_only(running);
    while (ht_model_next(m, &ev)) {
        bool fits = ht_running_before(running, &ev) != NULL;
        const char *task;

        ht_running_after(running, &ev);
        if (!fits || !ht_host_clock_date(clock, &ev)) {
            continue;
        }
        task = name_task(g, m, ht_running_cpu(running, ev.rec.cpu));
        if (ev.rec.lost_before) {
            add_change(g, ev.rec.cpu, ev.rec.lost_from_ns, NULL);
        }
        add_change(g, ev.rec.cpu, ev.rec.ns, task);
        ht_bounds_add(&g->bounds, ev.bound_ns);
        g->end = MAX(g->end, ev.rec.ns);
    }
    for (i = 0; i < g->cpus->len; i++) {
        add_change(g, i, g->end, NULL);
    }
    ht_running_free(running);
}

bool ht_guest_tasks_find_process(HtModel *m, uint32_t *process, GError **errp)
{
    guint64 pid;

    if (!g_ascii_string_to_unsigned(ht_model_info(m, "recording", "process"),
                                    10, 1, INT32_MAX, &pid, NULL)) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "the recording does not have the process of its virtual"
                    " machine");
        return false;
    }
    *process = pid;
    return true;
}

HtGuestTasks *ht_guest_tasks_new(const char *dir, GError **errp)
{
    g_autoptr(HtModel) m = ht_model_open(dir, errp);
    g_autoptr(HtHostClock) clock = NULL;
    HtGuestTasks *g;
    uint32_t process;

    if (!m || !ht_guest_tasks_find_process(m, &process, errp)) {
        return NULL;
    }
    clock = ht_host_clock_new(m, errp);
    if (!clock) {
        return NULL;
    }
    g = g_new0(HtGuestTasks, 1);
    g->dir = g_strdup(dir);
    g->process = process;
    g->full = UINT64_MAX;
    g->cpus = g_ptr_array_new_with_free_func(free_cpu);
    g->names = g_string_chunk_new(4096);
    read_tasks(g, m, clock);
    return g;
}

void ht_guest_tasks_free(HtGuestTasks *g)
{
    if (g) {
        g_ptr_array_unref(g->cpus);
        g_string_chunk_free(g->names);
        g_free(g->dir);
        g_free(g);
    }
}

uint32_t ht_guest_tasks_process(const HtGuestTasks *g)
{
    return g->process;
}

const char *ht_guest_tasks_dir(const HtGuestTasks *g)
{
    return g->dir;
}

const HtBounds *ht_guest_tasks_bounds(const HtGuestTasks *g)
{
    return &g->bounds;
}

const char *ht_guest_tasks_at(const HtGuestTasks *g, int32_t vcpu, uint64_t ns,
                              uint64_t *until)
{
    const GArray *a;
    unsigned n;

    *until = UINT64_MAX;
    if (ns >= g->full) {
        return NULL;
    }
    /*
     * If one thread of the host runs all processors, the task is known only if
     * all events are of processor 0.
     */
    vcpu = vcpu < 0 && g->cpus->len == 1 ? 0 : vcpu;
    a = vcpu >= 0 && (unsigned)vcpu < g->cpus->len ? g->cpus->pdata[vcpu] :
        NULL;
    n = ht_changes_until(a, ns);
    if (a && n < a->len) {
        *until = g_array_index(a, Change, n).ns;
    }
    *until = MIN(*until, g->full);
    return n ? g_array_index(a, Change, n - 1).task : NULL;
}
