/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace top: list the tasks by CPU time, and the events by number
 *
 * The time between two events of a CPU belongs to the task that the CPU ran
 * meanwhile. It belongs to no task if events were lost between them, or if the
 * CPU switched to another task without a recorded sched_switch.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/number.h"
#include "model/running.h"
#include "views/host-split.h"
#include "views/view.h"

#define TASKS_MAX       65536
#define ROWS_DEFAULT    20
/* Number of entries in Top.recent: a power of two */
#define RECENT          4096

typedef struct TopTask {
    uint64_t id;
    unsigned boot;
    int32_t pid;
    int32_t tgid;
    /* guest time in ns at which the task was created; 0: not recorded */
    uint64_t start_ns;
    char comm[HT_COMM_MAX + 1];
    uint64_t ns;
    uint64_t events;
    /* number of times that a processor has switched to the task */
    uint64_t switches;
    /* with --host: the time @ns, split by what the host did meanwhile */
    HtSplit split;
} TopTask;

typedef struct Top {
    HtView v;
    HtModel *m;
    HtRunning *running;
    GHashTable *tasks;
    /* sums of the tasks for which @tasks has no room */
    TopTask others;
    /*
     * cache: for each value of the lower bits of a unique number, the element
     * of @tasks that was used last
     */
    TopTask *recent[RECENT];
    unsigned nr_cpus;
    uint64_t by_type[1 << 16];
    uint64_t events;
    uint64_t gaps;
    uint64_t lost;
    uint64_t cpu_ns;            /* sum in ns of the times of all processors */
    uint64_t unknown_ns;
    uint64_t idle_ns;
    /*
     * guest time in ns of the first and the last event of the present segment
     * of the guest's clock
     */
    uint64_t begin, end;
    /* sum in ns of the durations of the ended segments of the guest's clock */
    uint64_t span;
    unsigned boot, segment, boots;
    gboolean by_host;           /* --host */
    HtHostSplit *host;
    HtSplit split;
} Top;

/*
 * Get or create the entry of a task. If @t->tasks has no room, return
 * @t->others, but not for an idle task.
 */
static TopTask *top_task(Top *t, uint64_t id, int32_t pid,
                         const HtTask *known)
{
    TopTask **recent = &t->recent[id % RECENT], *task = *recent;

    if (!task || task->id != id) {
        task = g_hash_table_lookup(t->tasks, GSIZE_TO_POINTER(id));
    }
    if (!task && pid && g_hash_table_size(t->tasks) >= TASKS_MAX) {
        return &t->others;
    }
    if (!task) {
        task = g_new0(TopTask, 1);
        task->id = id;
        task->pid = pid;
        task->boot = t->boot;
        task->start_ns = known ? known->start_ns : 0;
        g_hash_table_insert(t->tasks, GSIZE_TO_POINTER(id), task);
    }
    if (known && known->named) {
        memcpy(task->comm, known->comm, sizeof(task->comm));
        task->tgid = known->tgid;
    }
    *recent = task;
    return task;
}

/*
 * Get the entry of the task that had an event. The idle tasks of all
 * processors share one.
 */
static TopTask *event_task(Top *t, const HtModelEvent *ev)
{
    uint64_t id = ev->rec.pid ? ht_event_task_id(ev) :
                  ht_model_task_id(t->m, 0, 0);

    return top_task(t, id, ev->rec.pid, ev->task);
}

static void end_segment(Top *t)
{
    t->span += ht_elapsed(t->begin, t->end);
    t->begin = UINT64_MAX;
    t->end = 0;
}

/*
 * Add the time since the CPU's previous event to @task, the event's task, or to
 * @t->unknown_ns if another task may have run in that time.
 * @cpu: the result of ht_running_before()
 */
static void count_time(Top *t, const HtModelEvent *ev, const HtRunCpu *cpu,
                       TopTask *task)
{
    uint64_t ns = ht_running_time(cpu, ev);
    TopTask *ran = cpu->known ? task : NULL;

    t->cpu_ns += ns;
    t->idle_ns += ran && !ran->pid ? ns : 0;
    *(ran ? &ran->ns : &t->unknown_ns) += ns;
    if (t->host && ran && ran->pid) {
        HtSplit split = { 0 };

        ht_host_split_add(t->host, ev->boot, ev->rec.segment, ev->rec.cpu,
                          cpu->last, ev->rec.ns, &split);
        ht_host_split_sum(&ran->split, &split);
        ht_host_split_sum(&t->split, &split);
    }
}

static void count(Top *t, const HtModelEvent *ev)
{
    const HtRunCpu *cpu;
    TopTask *task;

    if (ev->boot != t->boot || ev->rec.segment != t->segment) {
        end_segment(t);
        t->boots += ev->boot != t->boot;
        t->boot = ev->boot;
        t->segment = ev->rec.segment;
    }
    t->begin = MIN(t->begin, ev->rec.ns);
    t->end = MAX(t->end, ev->rec.ns);
    t->events++;
    t->by_type[ev->rec.type]++;
    t->gaps += ev->rec.lost_before;
    t->lost += ev->rec.lost_before ? ev->rec.lost_estimate : 0;
    cpu = ht_running_before(t->running, ev);
    if (!cpu) {
        return;
    }
    t->nr_cpus = MAX(t->nr_cpus, ev->rec.cpu + 1);
    task = event_task(t, ev);
    count_time(t, ev, cpu, task);
    task->events++;
    if (ev->class->kind == HT_KIND_SCHED_SWITCH) {
        int32_t next = ht_event_uint(ev, HT_F_SWITCH_NEXT_PID);

        if (next) {
            top_task(t, ht_model_task_id(t->m, next, 0), next,
                     ht_model_task(t->m, next))->switches++;
        }
    }
    ht_running_after(t->running, ev);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const TopTask *x = *(const TopTask * const *)a;
    const TopTask *y = *(const TopTask * const *)b;

    if (x->ns != y->ns) {
        return x->ns < y->ns ? 1 : -1;
    }
    if (x->events != y->events) {
        return x->events < y->events ? 1 : -1;
    }
    return x->boot != y->boot ? (x->boot < y->boot ? -1 : 1) :
           x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) :
           x->id < y->id ? -1 : x->id > y->id;
}

static GPtrArray *sorted_tasks(Top *t)
{
    GPtrArray *all = g_ptr_array_new();
    GHashTableIter iter;
    gpointer task;

    g_hash_table_iter_init(&iter, t->tasks);
    while (g_hash_table_iter_next(&iter, NULL, &task)) {
        g_ptr_array_add(all, task);
    }
    g_ptr_array_sort(all, by_time);
    return all;
}

static gint by_number(gconstpointer a, gconstpointer b, gpointer data)
{
    const Top *t = data;
    uint64_t x = t->by_type[*(const uint16_t *)a];
    uint64_t y = t->by_type[*(const uint16_t *)b];

    return x < y ? 1 : x > y ? -1 :
           (int)*(const uint16_t *)a - *(const uint16_t *)b;
}

static GArray *sorted_types(Top *t)
{
    GArray *all = g_array_new(false, false, sizeof(uint16_t));
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(t->by_type); i++) {
        uint16_t type = i;

        if (t->by_type[i]) {
            g_array_append_val(all, type);
        }
    }
    g_array_sort_with_data(all, by_number, t);
    return all;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * part / whole : 0;
}

static void put_share(HtOutput *o, uint64_t ns, uint64_t whole)
{
    g_string_append_printf(o->text, "%6.1f%% %12.6f", percent(ns, whole),
                           ns / 1e9);
}

static void put_times(const Top *t, const TopTask *k, HtOutput *o)
{
    put_share(o, k->ns, t->cpu_ns);
    if (t->host) {
        ht_host_split_share(&k->split, HT_SPLIT_EXITS, o);
        ht_host_split_share(&k->split, HT_SPLIT_STOLEN, o);
    }
    g_string_append_printf(o->text, " %9" PRIu64 " %10" PRIu64 " ",
                           k->switches, k->events);
}

static void put_text(Top *t, HtOutput *o, unsigned rows)
{
    g_autoptr(GPtrArray) tasks = sorted_tasks(t);
    g_autoptr(GArray) types = sorted_types(t);
    unsigned left = rows, more = 0, i;

    g_string_append_printf(o->text, "%" PRIu64 " event%s of %u type%s, %u"
                           " task%s, %u CPU%s, %.6f s", t->events,
                           ht_number_s(t->events), types->len,
                           ht_number_s(types->len), tasks->len,
                           ht_number_s(tasks->len), t->nr_cpus,
                           ht_number_s(t->nr_cpus), t->span / 1e9);
    if (t->gaps) {
        ht_output_colour(o, HT_COLOUR_RED);
        g_string_append_printf(o->text, "; about %" PRIu64 " lost in %" PRIu64
                               " gap%s", t->lost, t->gaps,
                               ht_number_s(t->gaps));
        ht_output_colour(o, HT_COLOUR_NONE);
    }
    g_string_append(o->text, "\n");
    if (t->host) {
        ht_host_split_text(t->host, &t->split, o);
    }
    g_string_append(o->text, "\n");
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "    CPU      seconds%s  switched"
                           "     events     PID  task\n", t->host ?
                           "     exits    stolen" : "");
    ht_output_colour(o, HT_COLOUR_NONE);
    put_share(o, t->idle_ns, t->cpu_ns);
    g_string_append_printf(o->text, "%*s(idle)\n", t->host ? 50 : 30, "");
    if (t->unknown_ns) {
        put_share(o, t->unknown_ns, t->cpu_ns);
        g_string_append_printf(o->text, "%*s(not known: gaps, or before the"
                               " first switch)\n", t->host ? 50 : 30, "");
    }
    for (i = 0; i < tasks->len; i++) {
        const TopTask *k = tasks->pdata[i];

        if (!k->pid) {
            continue;                   /* has a row already */
        }
        if (left == 0) {
            more++;
            continue;
        }
        left--;
        put_times(t, k, o);
        g_string_append_printf(o->text, "%7d  ", k->pid);
        ht_output_padded(o, k->comm[0] ? k->comm : "<...>", 1 - HT_COMM_MAX);
        if (t->boots > 1) {
            g_string_append_printf(o->text, "  boot %u", k->boot);
        }
        g_string_append_c(o->text, '\n');
    }
    if (more) {
        g_string_append_printf(o->text, "and %u more; --rows=N lists N\n",
                               more);
    }
    if (t->others.events || t->others.switches) {
        put_times(t, &t->others, o);
        g_string_append(o->text, "        (all others: too many to list)\n");
    }
    g_string_append_c(o->text, '\n');
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append(o->text, " events      number     a second  event\n");
    ht_output_colour(o, HT_COLOUR_NONE);
    for (i = 0; i < types->len && i < rows; i++) {
        uint16_t type = g_array_index(types, uint16_t, i);
        const HtEventClass *c = ht_model_class(t->m, type);
        uint64_t n = t->by_type[type];
        g_autofree char *name = g_strdup_printf("%s%s%s", c->system,
                                                *c->system ? ":" : "",
                                                c->name);

        g_string_append_printf(o->text, "%6.1f%% %11" PRIu64 " %12.0f  ",
                               percent(n, t->events), n,
                               t->span ? n * 1e9 / t->span : 0);
        ht_output_padded(o, name, 60);
        while (o->text->str[o->text->len - 1] == ' ') {
            g_string_truncate(o->text, o->text->len - 1);
        }
        g_string_append_c(o->text, '\n');
    }
    if (i < types->len) {
        g_string_append_printf(o->text, "and %u more; --rows=N lists N\n",
                               types->len - i);
    }
}

static void json_times(const Top *t, const TopTask *k, HtJson *j)
{
    ht_json_uint(j, "cpu_ns", k->ns);
    if (t->host) {
        ht_host_split_json(&k->split, "host", j);
    }
    ht_json_uint(j, "switches", k->switches);
    ht_json_uint(j, "events", k->events);
}

static void put_json(Top *t, HtOutput *o)
{
    g_autoptr(GPtrArray) tasks = sorted_tasks(t);
    g_autoptr(GArray) types = sorted_types(t);
    HtJson j = { .out = o->text };
    unsigned i;

    ht_json_begin(&j);
    ht_json_uint(&j, "events", t->events);
    ht_json_uint(&j, "ns", t->span);
    ht_json_uint(&j, "cpus", t->nr_cpus);
    ht_json_uint(&j, "gaps", t->gaps);
    ht_json_uint(&j, "lost_estimate", t->lost);
    ht_json_uint(&j, "cpu_ns", t->cpu_ns);
    ht_json_uint(&j, "idle_ns", t->idle_ns);
    ht_json_uint(&j, "unknown_ns", t->unknown_ns);
    if (t->host) {
        ht_host_split_json(&t->split, "host", &j);
    }
    ht_json_open(&j, "tasks", '[');
    for (i = 0; i < tasks->len && ht_output_room(o); i++) {
        const TopTask *k = tasks->pdata[i];

        ht_json_open(&j, NULL, '{');
        ht_json_uint(&j, "boot", k->boot);
        ht_json_int(&j, "pid", k->pid);
        ht_json_int(&j, "tgid", k->tgid);
        if (k->start_ns) {
            ht_json_uint(&j, "start_ns", k->start_ns);
        }
        ht_json_str(&j, "task", k->comm);
        json_times(t, k, &j);
        ht_json_close(&j, '}');
    }
    ht_json_close(&j, ']');
    ht_json_open(&j, "other_tasks", '{');
    json_times(t, &t->others, &j);
    ht_json_close(&j, '}');
    ht_json_open(&j, "types", '[');
    for (i = 0; i < types->len && ht_output_room(o); i++) {
        uint16_t type = g_array_index(types, uint16_t, i);
        const HtEventClass *c = ht_model_class(t->m, type);

        ht_json_open(&j, NULL, '{');
        ht_json_str(&j, "system", c->system);
        ht_json_str(&j, "event", c->name);
        ht_json_uint(&j, "type", type);
        ht_json_uint(&j, "events", t->by_type[type]);
        ht_json_close(&j, '}');
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

int ht_top(int argc, char **argv)
{
    gint rows = ROWS_DEFAULT;
    g_autofree Top *t = g_new0(Top, 1);
    const GOptionEntry own[] = {
        { "rows", 'n', 0, G_OPTION_ARG_INT, &rows,
          "number of tasks and of events to list (20)", "N" },
        { "host", 0, 0, G_OPTION_ARG_NONE, &t->by_host, HT_HOST_SPLIT_HELP,
          NULL },
        { 0 }
    };
    GError *error = NULL;
    bool ok;
    HtOutput o;
    HtModelEvent ev;
    int status;

    if (!ht_view_parse(&t->v, &argc, argv, "List the tasks by CPU time, and"
                       " the events by number.",
                       HT_VIEW_TIME | HT_VIEW_CPU | HT_VIEW_BOOT |
                       HT_VIEW_OUTPUT, own, &status)) {
        ht_view_free(&t->v);
        return status;
    }
    if (rows < 0) {
        ht_view_free(&t->v);
        return ht_usage_error("--rows=%d: must be 0 or more", rows);
    }
    ht_view_output(&t->v, &o);
    t->tasks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    t->others.pid = -1;                 /* not 0, the PID of the idle tasks */
    t->begin = UINT64_MAX;
    t->m = ht_view_open(&t->v, &error);
    t->running = ht_running_new(t->m);
    ht_running_tasks_only(t->running);
    t->host = t->m && t->by_host ?
              ht_host_split_new(t->v.dir, t->m, &error) : NULL;
    ok = t->m && !error;
    if (ok) {
        while (ht_view_next(&t->v, t->m, &ev)) {
            count(t, &ev);
        }
        end_segment(t);
        if (t->v.json) {
            put_json(t, &o);
        } else {
            put_text(t, &o, rows);
        }
    }
    status = ht_view_finish(&o, ok, error);
    ht_running_free(t->running);
    ht_host_split_free(t->host);
    ht_model_free(t->m);
    g_hash_table_destroy(t->tasks);
    ht_view_free(&t->v);
    return status;
}
