/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the state of each processor
 */
#include <string.h>

#include "model/running.h"

#define TASKS_MAX       65536

struct HtRunning {
    HtModel *m;
    HtRunCpu *cpus;
    /* table from a task's unique number (ht_model_task_id()) to HtNests */
    GHashTable *tasks;
    bool tasks_only;
    unsigned used;
    unsigned boot, segment;
};

static void clear_nests(HtNests *n)
{
    unsigned i;

    for (i = 0; i < n->nr; i++) {
        g_free(n->names[i]);
    }
    n->nr = n->deeper = 0;
}

static void free_nests(gpointer data)
{
    clear_nests(data);
    g_free(data);
}

static void push(HtNests *n, HtKind kind, char *name)
{
    if (n->nr < HT_RUNNING_NESTED_MAX) {
        n->kinds[n->nr] = kind;
        n->names[n->nr++] = name;
    } else {
        n->deeper++;
        g_free(name);
    }
}

/*
 * End the innermost activity of a kind, and the activities nested in it. If
 * @n->deeper is not 0, assume that an activity without an entry has ended.
 */
static void pop(HtNests *n, HtKind kind)
{
    unsigned i = n->nr;

    if (n->deeper) {
        n->deeper--;
        return;
    }
    while (i && n->kinds[i - 1] != kind) {
        i--;
    }
    while (i && n->nr >= i) {
        g_free(n->names[--n->nr]);
    }
}

HtRunning *ht_running_new(HtModel *m)
{
    HtRunning *r = g_new0(HtRunning, 1);

    r->m = m;
    r->cpus = g_new0(HtRunCpu, HT_FT_CPUS_MAX);
    r->tasks = g_hash_table_new_full(NULL, NULL, NULL, free_nests);
    return r;
}

void ht_running_tasks_only(HtRunning *r)
{
    r->tasks_only = true;
}

static void forget(HtRunning *r)
{
    unsigned i;

    for (i = 0; i < r->used; i++) {
        unsigned version = r->cpus[i].version + 1;

        clear_nests(&r->cpus[i].irqs);
        r->cpus[i] = (HtRunCpu) { .version = version };
    }
    g_hash_table_remove_all(r->tasks);
}

void ht_running_free(HtRunning *r)
{
    if (r) {
        forget(r);
        g_hash_table_destroy(r->tasks);
        g_free(r->cpus);
        g_free(r);
    }
}

const HtRunCpu *ht_running_cpu(const HtRunning *r, uint32_t cpu)
{
    return &r->cpus[cpu];
}

const HtNests *ht_running_task(const HtRunning *r, int32_t pid)
{
    return pid ? g_hash_table_lookup(r->tasks, GSIZE_TO_POINTER(
                     ht_model_task_id(r->m, pid, 0))) : NULL;
}

static HtNests *task_nests(HtRunning *r, const HtModelEvent *ev)
{
    gpointer id = GSIZE_TO_POINTER(ht_event_task_id(ev));
    HtNests *n = g_hash_table_lookup(r->tasks, id);

    if (!n && g_hash_table_size(r->tasks) < TASKS_MAX) {
        n = g_new0(HtNests, 1);
        g_hash_table_insert(r->tasks, id, n);
    }
    return n;
}

const HtRunCpu *ht_running_before(HtRunning *r, const HtModelEvent *ev)
{
    HtRunCpu *cpu;

    if (ev->boot != r->boot || ev->rec.segment != r->segment) {
        forget(r);
        r->boot = ev->boot;
        r->segment = ev->rec.segment;
    }
    if (ev->rec.cpu >= HT_FT_CPUS_MAX) {
        return NULL;
    }
    cpu = &r->cpus[ev->rec.cpu];
    if (!cpu->seen) {
        r->used = MAX(r->used, ev->rec.cpu + 1);
        cpu->seen = true;
        cpu->last = ev->rec.ns;
    }
    if (ev->rec.lost_before || (cpu->known && cpu->pid != ev->rec.pid)) {
        clear_nests(&cpu->irqs);
        cpu->known = false;
        cpu->version++;
        g_hash_table_remove(r->tasks, GSIZE_TO_POINTER(ht_event_task_id(ev)));
    }
    return cpu;
}

static char *softirq_name(uint64_t vec)
{
    static const char * const names[] = {
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET",
        "SCHED", "HRTIMER", "RCU",
    };

    return vec < G_N_ELEMENTS(names) ?
           g_strdup_printf("softirq %s", names[vec]) :
           g_strdup_printf("softirq %u", (unsigned)vec);
}

static char *irq_name(const HtModelEvent *ev)
{
    gsize len;
    const char *s = ht_event_text(ev, HT_F_IRQ_NAME, &len);

    return g_strdup_printf("irq %d %.*s", (int)ht_event_uint(ev, HT_F_IRQ),
                           (int)MIN(len, 64), s);
}

static char *initcall_name(HtRunning *r, const HtModelEvent *ev)
{
    GString *s = g_string_new("initcall ");

    ht_model_function(r->m, ev->boot, ht_event_uint(ev, HT_F_INITCALL_FUNC),
                      s);
    return g_string_free(s, false);
}

static void task_event(HtRunning *r, const HtModelEvent *ev)
{
    HtNests *task = task_nests(r, ev);

    if (!task) {
        return;
    }
    switch (ev->class->kind) {
    case HT_KIND_INITCALL_START:
        push(task, HT_KIND_INITCALL_START, initcall_name(r, ev));
        break;
    case HT_KIND_INITCALL_FINISH:
        pop(task, HT_KIND_INITCALL_START);
        break;
    case HT_KIND_SYS_ENTER:
        /* Drop earlier calls of the task: their end was not recorded. */
        clear_nests(task);
        push(task, HT_KIND_SYS_ENTER,
             g_strdup_printf("system call %d",
                             (int)ht_event_uint(ev, HT_F_SYS_NR)));
        break;
    default:
        pop(task, HT_KIND_SYS_ENTER);
    }
}

void ht_running_after(HtRunning *r, const HtModelEvent *ev)
{
    HtRunCpu *cpu;

    if (ev->rec.cpu >= HT_FT_CPUS_MAX) {
        return;
    }
    cpu = &r->cpus[ev->rec.cpu];
    cpu->last = MAX(cpu->last, ev->rec.ns);
    if (!cpu->known) {
        cpu->version++;
        cpu->known = true;
        cpu->pid = ev->rec.pid;
        cpu->since = ev->rec.ns;
    }
    if (r->tasks_only && ev->class->kind != HT_KIND_SCHED_SWITCH) {
        return;
    }
    switch (ev->class->kind) {
    case HT_KIND_SCHED_SWITCH:
        clear_nests(&cpu->irqs);
        cpu->pid = ht_event_uint(ev, HT_F_SWITCH_NEXT_PID);
        cpu->since = ev->rec.ns;
        break;
    case HT_KIND_IRQ_ENTRY:
        push(&cpu->irqs, HT_KIND_IRQ_ENTRY, irq_name(ev));
        break;
    case HT_KIND_SOFTIRQ_ENTRY:
        push(&cpu->irqs, HT_KIND_SOFTIRQ_ENTRY,
             softirq_name(ht_event_uint(ev, HT_F_SOFTIRQ_VEC)));
        break;
    case HT_KIND_IRQ_EXIT:
        pop(&cpu->irqs, HT_KIND_IRQ_ENTRY);
        break;
    case HT_KIND_SOFTIRQ_EXIT:
        pop(&cpu->irqs, HT_KIND_SOFTIRQ_ENTRY);
        break;
    case HT_KIND_INITCALL_START:
    case HT_KIND_INITCALL_FINISH:
    case HT_KIND_SYS_ENTER:
    case HT_KIND_SYS_EXIT:
        task_event(r, ev);
        break;
    case HT_KIND_SCHED_EXIT:
        g_hash_table_remove(r->tasks, GSIZE_TO_POINTER(ht_event_task_id(ev)));
        break;
    case HT_KIND_TASK_RENAME:
        break;
    default:
        /* the event does not change the processor's state */
        return;
    }
    cpu->version++;
}
