/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the threads of a guest by its events
 *
 * Names come from events of the groups sched and task. The process of a thread
 * comes from task_newtask. A boot starts without tasks.
 */
#include <string.h>

#include "model/tasks.h"

/* Number of entries in HtTasks.recent: a power of two */
#define RECENT          1024

#define CLONE_PARENT    0x00008000
#define CLONE_THREAD    0x00010000

/*
 * EXIT_DEAD and EXIT_ZOMBIE in sched_switch's prev_state: the task will not run
 * again. The task's sched_process_exit comes earlier; between the two events,
 * the task may be preempted and run again.
 */
#define EXITED          0x30

/*
 * A task, and the events seen of it, which show whether its PID is used again
 */
typedef struct Known {
    HtTask task;
    /* task_newtask has reported the task, and sched_process_fork has not yet */
    bool made;
    /* sched_process_exit has reported the task */
    bool exits;
    /* after its exit, the task was switched out for the last time */
    bool gone;
} Known;

struct HtTasks {
    unsigned max;
    GHashTable *by_pid;         /* table from a PID to Known */
    /*
     * cache: the entry of @by_pid that was used last, by the PID's lower bits
     */
    Known *recent[RECENT];
    /* the table @by_pid as it was at the end of boot @earlier_boot */
    GHashTable *earlier;
    uint32_t ids;
    unsigned boot;
    unsigned earlier_boot;
    /* used for a running task for which @by_pid has no room */
    HtTask untracked;
};

static const HtTask idle = { .comm = "<idle>", .named = true };

HtTasks *ht_tasks_new(unsigned max)
{
    HtTasks *t = g_new0(HtTasks, 1);

    t->max = max;
    t->by_pid = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    t->earlier = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return t;
}

void ht_tasks_free(HtTasks *t)
{
    if (t) {
        g_hash_table_destroy(t->by_pid);
        g_hash_table_destroy(t->earlier);
        g_free(t);
    }
}

void ht_tasks_clear(HtTasks *t)
{
    memset(t->recent, 0, sizeof(t->recent));
    g_hash_table_remove_all(t->by_pid);
    g_hash_table_remove_all(t->earlier);
    t->boot = 0;
    t->earlier_boot = 0;
    t->ids = 0;
}

static Known *find(const HtTasks *t, int32_t pid)
{
    Known *k = t->recent[(uint32_t)pid % RECENT];

    if (!pid) {
        return NULL;
    }
    return k && k->task.pid == pid ? k :
           g_hash_table_lookup(t->by_pid, GINT_TO_POINTER(pid));
}

const HtTask *ht_tasks_find(const HtTasks *t, int32_t pid)
{
    const Known *k = find(t, pid);

    return !pid ? &idle : k ? &k->task : NULL;
}

GHashTable *ht_tasks_all(const HtTasks *t, unsigned boot)
{
    return boot == t->boot ? t->by_pid :
           boot == t->earlier_boot ? t->earlier : NULL;
}

/* Get a task that @recent does not have; add it if it is new. */
static Known *add(HtTasks *t, int32_t pid)
{
    Known *k = find(t, pid);

    if (!k && g_hash_table_size(t->by_pid) < t->max) {
        k = g_new(Known, 1);
        *k = (Known) { .task = {
            .id = ++t->ids, .boot = t->boot, .pid = pid, .ppid = -1,
            .comm = "<...>",
        } };
        g_hash_table_insert(t->by_pid, GINT_TO_POINTER(pid), k);
    }
    if (k) {
        t->recent[(uint32_t)pid % RECENT] = k;
    }
    return k;
}

static inline Known *known(HtTasks *t, int32_t pid)
{
    Known *k = t->recent[(uint32_t)pid % RECENT];

    return !pid ? NULL : k && k->task.pid == pid ? k : add(t, pid);
}

/* Reset an entry, because its PID now belongs to a new task. */
static void reset_task(HtTasks *t, Known *k, uint64_t start_ns)
{
    *k = (Known) { .task = {
        .id = ++t->ids, .boot = t->boot, .start_ns = start_ns,
        .pid = k->task.pid, .ppid = -1, .comm = "<...>",
    } };
}

/*
 * Get the entry of a task that runs. If the known task of that PID has exited,
 * the PID was reused: reset the entry.
 */
static Known *running(HtTasks *t, int32_t pid)
{
    Known *k = known(t, pid);

    if (k && k->gone) {
        reset_task(t, k, 0);
    }
    return k;
}

/*
 * Test whether a field has the bytes of a task's name. It does not matter if
 * bytes differ after the name's end: the name is then set again.
 */
static bool has_name(const Known *k, const HtModelEvent *ev, unsigned field)
{
    const HtFtField *f = ev->class->field[field];

    return k->task.named && f && f->kind == HT_FT_STRING &&
           f->size == HT_COMM_MAX && ev->rec.size >= f->offset &&
           ev->rec.size - f->offset >= HT_COMM_MAX &&
           !memcmp(k->task.comm, ev->rec.data + f->offset, HT_COMM_MAX);
}

static void name_field(HtTasks *t, const HtModelEvent *ev, int32_t pid,
                       unsigned field)
{
    Known *k = find(t, pid);
    const char *s;
    gsize len;

    if (k && has_name(k, ev, field)) {
        return;
    }
    s = ht_event_text(ev, field, &len);
    k = len ? known(t, pid) : NULL;
    if (k) {
        memset(k->task.comm, 0, sizeof(k->task.comm));
        memcpy(k->task.comm, s, MIN(len, HT_COMM_MAX));
        k->task.named = true;
    }
}

int32_t ht_tasks_renamed(const HtModelEvent *ev, const HtTask *running)
{
    const char *s;
    gsize len;

    if (ev->class->field[HT_F_RENAME_PID]) {
        return ht_event_uint(ev, HT_F_RENAME_PID);
    }
    s = ht_event_text(ev, HT_F_RENAME_OLD, &len);
    len = MIN(len, HT_COMM_MAX);
    return !running || !running->named || !len ||
           (!memcmp(running->comm, s, len) && !running->comm[len]) ?
           ev->rec.pid : 0;
}

static void name_renamed(HtTasks *t, const HtModelEvent *ev, unsigned field)
{
    name_field(t, ev, ht_tasks_renamed(ev, ht_tasks_find(t, ev->rec.pid)),
               field);
}

const HtTask *ht_tasks_before(HtTasks *t, const HtModelEvent *ev)
{
    int32_t pid = ev->rec.pid;
    const Known *k;

    if (ev->boot != t->boot) {
        GHashTable *old = t->earlier;

        memset(t->recent, 0, sizeof(t->recent));
        g_hash_table_remove_all(old);
        t->earlier = t->by_pid;
        t->earlier_boot = t->boot;
        t->by_pid = old;
        t->boot = ev->boot;
    }
    switch (ev->class->kind) {
    case HT_KIND_SCHED_SWITCH:
        running(t, ht_event_uint(ev, HT_F_SWITCH_NEXT_PID));
        name_field(t, ev, ht_event_uint(ev, HT_F_SWITCH_PREV_PID),
                   HT_F_SWITCH_PREV_COMM);
        name_field(t, ev, ht_event_uint(ev, HT_F_SWITCH_NEXT_PID),
                   HT_F_SWITCH_NEXT_COMM);
        break;
    case HT_KIND_SCHED_WAKING:
    case HT_KIND_SCHED_WAKEUP:
    case HT_KIND_SCHED_WAKEUP_NEW:
    case HT_KIND_SCHED_MIGRATE:
    case HT_KIND_SCHED_EXIT:
    case HT_KIND_SCHED_FREE:
        name_field(t, ev, ht_event_uint(ev, HT_F_TASK_PID), HT_F_TASK_COMM);
        break;
    case HT_KIND_SCHED_FORK:
        name_field(t, ev, ht_event_uint(ev, HT_F_FORK_PARENT),
                   HT_F_FORK_PARENT_COMM);
        break;
    case HT_KIND_TASK_RENAME:
        name_renamed(t, ev, HT_F_RENAME_OLD);
        break;
    default:
        break;
    }
    if (!pid) {
        return &idle;
    }
    k = running(t, pid);
    if (!k) {
        t->untracked = (HtTask) {
            .boot = t->boot, .pid = pid, .ppid = -1, .comm = "<...>"
        };
    }
    return k ? &k->task : &t->untracked;
}

uint32_t ht_tasks_id(HtTasks *t, int32_t pid)
{
    const Known *k = known(t, pid);

    return k ? k->task.id : 0;
}

static void new_task(HtTasks *t, const HtModelEvent *ev)
{
    int32_t pid = ht_event_uint(ev, HT_F_NEW_PID);
    uint64_t flags = ht_event_uint(ev, HT_F_NEW_FLAGS);
    const HtTask *maker = ht_tasks_find(t, ev->rec.pid);
    int32_t process = maker ? maker->tgid : 0, parent = -1;
    Known *made = known(t, pid);
    HtTask *k = made ? &made->task : NULL;

    if (!k) {
        return;
    }
    reset_task(t, made, ev->rec.ns);
    made->made = true;
    if (maker) {
        parent = maker->ppid;
    }
    if (flags & CLONE_THREAD) {
        k->tgid = process;
        k->ppid = parent;
    } else {
        k->tgid = pid;
        k->ppid = flags & CLONE_PARENT ? parent :
                  process ? process : ev->rec.pid;
    }
    name_field(t, ev, pid, HT_F_NEW_COMM);
}

/*
 * Handle sched_process_fork. If task_newtask has already reported the new task,
 * do not create it again.
 */
static void forked(HtTasks *t, const HtModelEvent *ev)
{
    int32_t pid = ht_event_uint(ev, HT_F_FORK_CHILD);
    Known *k = known(t, pid);

    if (k && !k->made) {
        reset_task(t, k, ev->rec.ns);
        name_field(t, ev, pid, HT_F_FORK_CHILD_COMM);
    } else if (k) {
        k->made = false;
    }
}

void ht_tasks_after(HtTasks *t, const HtModelEvent *ev)
{
    Known *k;

    switch (ev->class->kind) {
    case HT_KIND_TASK_NEW:
        new_task(t, ev);
        break;
    case HT_KIND_SCHED_FORK:
        forked(t, ev);
        break;
    case HT_KIND_SCHED_EXIT:
        k = known(t, ev->rec.pid);
        if (k) {
            k->exits = true;
        }
        break;
    case HT_KIND_SCHED_SWITCH:
        k = known(t, ht_event_uint(ev, HT_F_SWITCH_PREV_PID));
        if (k) {
            k->gone = k->exits && ht_event_uint(ev, HT_F_SWITCH_PREV_STATE) &
                                  EXITED;
        }
        break;
    case HT_KIND_TASK_RENAME:
        name_renamed(t, ev, HT_F_RENAME_NEW);
        break;
    default:
        break;
    }
}
