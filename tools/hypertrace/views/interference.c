/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace interference: show which machines of a host wait for each other
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "host/guest-tasks.h"
#include "views/host-view.h"

/*
 * There is advice about a rival only if a machine waited for the rival for at
 * least this share of the time in which the machine ran or waited.
 */
#define ADVICE_SHARE    0.05
/*
 * If the state of a machine's vCPUs is unknown for more than this share of
 * their time, there is no advice for the machine.
 */
#define ADVICE_UNKNOWN  0.1
/*
 * A quota is advised only for a machine that ran for more than this many times
 * the running time of the machine that waited for it.
 */
#define ADVICE_LONGER   1.25
/* maximum number of rivals in the first table for a machine */
#define RIVALS_SHOWN    8
#define TASKS_SHOWN     15
#define TASKS_MAX       65536

/**
 * Machine: a machine of the host
 * @number: PID of the machine's process; if it is not known, ID of the vCPU's
 *          thread; with Xen: number of the domain
 * @vcpus: number of the machine's vCPUs
 * @running: ticks for which the vCPUs ran
 * @runnable: ticks for which the vCPUs waited for a processor
 * @total: ticks of the vCPUs in all states, with @unknown
 * @unknown: ticks for which the state of a vCPU is not known
 * @waiting: the vCPU that waited for the longest time
 * @rivals: HtTaker by HtTaker.machine: what the vCPUs waited for
 */
typedef struct Machine {
    uint32_t number;
    unsigned vcpus;
    uint64_t running;
    uint64_t runnable;
    uint64_t total;
    uint64_t unknown;
    const HtVcpuSums *waiting;
    GHashTable *rivals;
} Machine;

/**
 * TaskPair: what waiting vCPUs had to run, and what ran meanwhile
 * @machine: Machine.number of the waiting vCPUs
 * @rival: HtHostTask.machine of the task that ran
 * @task: the task of the waiting vCPUs; "?" if it is not known
 * @other: the task that ran, of the host or of a guest; "an idle CPU"; or the
 *         name of a vCPU, if the vCPU's task is not known
 * @ticks: time for which @task waited while @other ran
 */
typedef struct TaskPair {
    uint32_t machine;
    uint32_t rival;
    char *task;
    char *other;
    uint64_t ticks;
} TaskPair;

typedef enum Kind {
    /* pin the vCPU that waited longest to a processor that was idle */
    PIN,
    /* limit a rival machine that ran more than ADVICE_LONGER times as long */
    QUOTA,
    /* lower the weight of the rival, which is no machine */
    WEIGHT,
    PROCESSORS,                 /* the host may have too few processors */
} Kind;

static const char *const kinds[] = { "pin", "quota", "weight", "processors" };

/* Why there is no advice to pin a machine to another processor */
typedef enum NoPin {
    /*
     * the total idle time of each other processor is shorter than the time for
     * which the machine waited for the rival
     */
    NOT_IDLE,
    /*
     * another processor may have been idle for as long: not all of its time is
     * known
     */
    NOT_KNOWN,
    /*
     * another processor was idle for as long, but the machine waited for the
     * rival there, too
     */
    WAITED,
} NoPin;

typedef struct Advice {
    Kind kind;
    const Machine *m;
    const HtTaker *rival;
    NoPin no_pin;               /* if @kind is not PIN: why not */
    uint32_t cpu;               /* PIN: number of the idle processor */
    uint64_t idle;              /* PIN: ticks for which @cpu was idle */
    /* QUOTA: limit for @rival, in percent of one processor */
    unsigned percent;
} Advice;

typedef struct View {
    HtHostView h;
    GPtrArray *guests;          /* elements: HtGuestTasks */
    GPtrArray *machines;        /* elements: Machine */
    /* table of TaskPair; the key is a text with both names and machines */
    GHashTable *tasks;
    /*
     * number of parts of waits that were not counted, because @tasks was full
     */
    uint64_t left_out;
} View;

static void free_machine(gpointer p)
{
    Machine *m = p;

    g_hash_table_destroy(m->rivals);
    g_free(m);
}

static void free_guest(gpointer guest)
{
    ht_guest_tasks_free(guest);
}

static void free_pair(gpointer p)
{
    TaskPair *pair = p;

    g_free(pair->task);
    g_free(pair->other);
    g_free(pair);
}

static const HtGuestTasks *find_guest(const View *w, uint32_t process)
{
    unsigned i;

    for (i = 0; i < w->guests->len; i++) {
        const HtGuestTasks *g = w->guests->pdata[i];

        if (ht_guest_tasks_process(g) == process) {
            return g;
        }
    }
    return NULL;
}

/*
 * Get Machine.number of a vCPU. If the process of the vCPU's thread is not
 * known, the thread is a machine of its own, as in HtVcpuSums.rivals.
 */
static uint32_t number_of(const HtVcpuSums *v)
{
    return v->machine || !v->tid ? v->machine : v->tid;
}

static void add_tasks(View *w, const HtVcpuSums *v, const HtHostTask *rival,
                      const char *task, const char *other, uint64_t ticks)
{
    g_autofree char *key = g_strdup_printf("%u %s\n%u %s", number_of(v), task,
                                           rival->machine, other);
    TaskPair *pair = g_hash_table_lookup(w->tasks, key);

    if (!pair) {
        if (g_hash_table_size(w->tasks) >= TASKS_MAX) {
            w->left_out++;
            return;
        }
        pair = g_new0(TaskPair, 1);
        pair->machine = number_of(v);
        pair->rival = rival->machine;
        pair->task = g_strdup(task);
        pair->other = g_strdup(other);
        g_hash_table_insert(w->tasks, g_steal_pointer(&key), pair);
    }
    pair->ticks += ticks;
}

/*
 * An HtTakenFunc: add the time to pairs of tasks, if a recording of the waiting
 * guest, or of the guest that ran, was read
 */
static void taken(void *opaque, const HtVcpuSums *v, const HtHostTask *rival,
                  uint64_t from, uint64_t to)
{
    View *w = opaque;
    const HtGuestTasks *own = find_guest(w, v->machine);
    const HtGuestTasks *guest = find_guest(w, rival->machine);
    const HtVcpuSums *vcpu = ht_runstates_find(w->h.x, rival->pid);
    g_autofree char *host = NULL;
    const char *task = NULL;
    uint64_t until;

    if (!own && !(guest && vcpu)) {
        return;
    }
    /*
     * The waiting vCPU ran nothing from @from to @to, so it has the same task
     * in all of that time. The times of the guest's events are inexact, so ask
     * for the middle, which is farthest from the events before and after.
     */
    if (own) {
        task = ht_guest_tasks_at(own, v->vcpu, from + (to - from) / 2, &until);
    }
    host = rival->idle ? g_strdup("an idle CPU") :
           vcpu ? ht_host_view_name(vcpu) :
           g_strdup_printf("%.*s-%d", (int)rival->len, rival->comm, rival->pid);
    while (from < to) {
        const char *other = NULL;

        until = to;
        if (guest && vcpu) {
            other = ht_guest_tasks_at(guest, vcpu->vcpu, from, &until);
        }
        until = MIN(until, to);
        add_tasks(w, v, rival, task ? task : "?", other ? other : host,
                  until - from);
        from = until;
    }
}

/*
 * Read the guests' recordings, unless there is a file of xentrace. Refuse them
 * if they refer to different recordings of a host: only one host is shown.
 */
static bool read_guests(View *w, int argc, char **argv, GError **errp)
{
    g_autofree char *real = NULL;
    int i;

    for (i = 1; i < argc && !w->h.xentrace; i++) {
        g_autofree char *part = ht_host_view_part(argv[i]);
        g_autofree char *path = part ? realpath(part, NULL) : NULL;
        g_autoptr(GError) error = NULL;
        HtGuestTasks *g = NULL;

        if (path && real && strcmp(path, real)) {
            g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "%s and %s are different recordings of a host; name"
                        " recordings that refer to the same one", real, path);
            return false;
        }
        if (path && !real) {
            real = g_steal_pointer(&path);
            g_free(w->h.v.dir);
            w->h.v.dir = g_strdup(argv[i]);
        }
        if (!part || strcmp(part, argv[i])) {
            g = ht_guest_tasks_new(argv[i], &error);
        }
        if (g) {
            g_ptr_array_add(w->guests, g);
        } else if (error) {
            g_printerr("%s: %s: its tasks are not shown: %s\n",
                       g_get_prgname(), argv[i], error->message);
        }
    }
    return true;
}

static Machine *find_machine(const View *w, uint32_t number)
{
    unsigned i;

    for (i = 0; i < w->machines->len; i++) {
        Machine *m = w->machines->pdata[i];

        if (m->number == number) {
            return m;
        }
    }
    return NULL;
}

static void add_vcpu(View *w, const HtVcpuSums *v)
{
    uint32_t number = number_of(v);
    Machine *m = find_machine(w, number);
    GHashTableIter iter;
    gpointer key, value;

    if (!m) {
        m = g_new0(Machine, 1);
        m->number = number;
        m->rivals = g_hash_table_new_full(NULL, NULL, NULL, ht_taker_free);
        g_ptr_array_add(w->machines, m);
    }
    m->vcpus++;
    m->running += v->ticks[HT_RUN_RUNNING];
    m->runnable += v->ticks[HT_RUN_RUNNABLE];
    m->total += ht_host_view_total(v);
    m->unknown += v->unknown;
    if (!m->waiting ||
        v->ticks[HT_RUN_RUNNABLE] > m->waiting->ticks[HT_RUN_RUNNABLE]) {
        m->waiting = v;
    }
    g_hash_table_iter_init(&iter, v->rivals);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        HtTaker *sum = g_hash_table_lookup(m->rivals, key);

        if (!sum) {
            sum = g_new0(HtTaker, 1);
            g_hash_table_insert(m->rivals, key, sum);
        }
        ht_taker_add(sum, value);
    }
}

static void add_machines(View *w)
{
    unsigned i;

    for (i = 0; i < w->h.x->vcpus->len; i++) {
        const HtVcpuSums *v = w->h.x->vcpus->pdata[i];

        if (v->tid || v->machine != HT_XEN_IDLE) {
            add_vcpu(w, v);
        }
    }
}

/* Get the ticks for which a machine's vCPUs ran or waited for a processor. */
static uint64_t demand(const Machine *m)
{
    return m->running + m->runnable;
}

/*
 * Get the name of a taker's process, which is the name of the process's first
 * thread; if it is not known, the name of the task that ran last.
 */
static const char *process_name(const View *w, const HtTaker *t)
{
    const HtHostThread *first = w->h.threads ?
        ht_host_thread(w->h.threads, t->machine) : NULL;

    return first ? first->name : t->comm;
}

static uint64_t ticks_on(const HtTaker *t, uint32_t cpu)
{
    unsigned i;

    for (i = 0; i < t->cpus->len; i++) {
        const HtCpuTicks *c = &g_array_index(t->cpus, HtCpuTicks, i);

        if (c->cpu == cpu) {
            return c->ticks;
        }
    }
    return 0;
}

/*
 * Find the processor with the most idle time, of those on which a machine spent
 * less than a tenth of its waiting time for @t; NULL if no such processor had
 * events
 */
static const HtCpuSums *most_idle(const View *w, const HtTaker *t,
                                  uint32_t *cpu)
{
    const GArray *sums = w->h.x->cpu_sums;
    const HtCpuSums *best = NULL;
    unsigned i;

    for (i = 0; i < sums->len; i++) {
        const HtCpuSums *c = &g_array_index(sums, HtCpuSums, i);

        if (c->seen && (!best || c->idle > best->idle) &&
            ticks_on(t, i) < t->ticks / 10) {
            best = c;
            *cpu = i;
        }
    }
    return best;
}

/*
 * Get the processor on which a machine waited for @t for the longest time;
 * UINT32_MAX if no processor is known.
 */
static uint32_t main_cpu(const HtTaker *t)
{
    const HtCpuTicks *best = NULL;
    unsigned i;

    for (i = 0; i < t->cpus->len; i++) {
        const HtCpuTicks *c = &g_array_index(t->cpus, HtCpuTicks, i);

        if (!best || c->ticks > best->ticks) {
            best = c;
        }
    }
    return best ? best->cpu : UINT32_MAX;
}

/*
 * Find out why no processor is advised. The time of a processor without events
 * is not known, nor is the time of gaps.
 */
static NoPin why_no_pin(const View *w, const HtTaker *t)
{
    const GArray *sums = w->h.x->cpu_sums;
    uint64_t window = w->h.x->end - w->h.x->begin;
    uint32_t wait_cpu = main_cpu(t);
    NoPin why = NOT_IDLE;
    unsigned i, seen = 0;

    for (i = 0; i < sums->len; i++) {
        const HtCpuSums *c = &g_array_index(sums, HtCpuSums, i);

        seen += c->seen;
        if (!c->seen || i == wait_cpu) {
            continue;
        }
        if (c->idle >= t->ticks) {
            return WAITED;
        }
        if (window - MIN(window, c->busy) >= t->ticks) {
            why = NOT_KNOWN;
        }
    }
    return w->h.cpus > seen ? NOT_KNOWN : why;
}

/*
 * Check whether @m may get advice about @t: the wait of @m for @t was long
 * enough, and not too much of the time of @m is unknown.
 */
static bool is_slowed(const Machine *m, const HtTaker *t)
{
    return t->ticks >= ADVICE_SHARE * demand(m) &&
           m->unknown <= ADVICE_UNKNOWN * m->total;
}

/*
 * Check whether @rival gets advice about @m, because it waited for @m for
 * longer than @m waited for it. @m then gets no advice about @rival. If both
 * waited equally long, the machine with the higher number gets none.
 * @t: the times for which @m waited for @rival
 */
static bool waits_less(const Machine *m, const Machine *rival, const HtTaker *t)
{
    const HtTaker *back = rival ? g_hash_table_lookup(rival->rivals,
        GUINT_TO_POINTER(m->number)) : NULL;

    return back && is_slowed(rival, back) &&
           (back->ticks != t->ticks ? back->ticks > t->ticks :
            rival->number < m->number);
}

/*
 * Derive advice for the machine @m from @t, one of the rivals that @m waited
 * for. Returns false if there is no advice.
 */
static bool advise(const View *w, const Machine *m, const HtTaker *t,
                   Advice *a)
{
    const Machine *rival = find_machine(w, t->machine);
    uint64_t window = w->h.x->end - w->h.x->begin;
    const HtCpuSums *idle;

    if (t->idle || t->machine == m->number || !window || !is_slowed(m, t) ||
        waits_less(m, rival, t)) {
        return false;
    }
    *a = (Advice) {
        .kind = PROCESSORS, .m = m, .rival = t, .no_pin = why_no_pin(w, t),
    };
    idle = most_idle(w, t, &a->cpu);
    if (idle && idle->idle >= t->ticks) {
        a->kind = PIN;
        a->idle = idle->idle;
    } else if (!rival) {
        a->kind = WEIGHT;
    } else if (rival->running > ADVICE_LONGER * m->running) {
        uint64_t half = (m->running + rival->running) / 2;

        a->kind = QUOTA;
        a->percent = MAX(100.0 * half / window, 1);
    }
    return true;
}

static void put_ns(const View *w, GString *out, uint64_t ticks)
{
    g_string_append_c(out, ' ');
    ht_number_duration(out, ht_host_view_ns(&w->h, ticks), 1);
}

/* Append "machine 17", "process 17 (name)" or "domain 17". */
static void put_rival(const View *w, const HtTaker *t, GString *out)
{
    if (w->h.xentrace) {
        g_string_append_printf(out, "domain %u", t->machine);
    } else if (find_machine(w, t->machine)) {
        g_string_append_printf(out, "machine %u", t->machine);
    } else {
        g_string_append_printf(out, "process %u (", t->machine);
        ht_escape_str(out, HT_ESCAPE_TERMINAL, process_name(w, t));
        g_string_append_c(out, ')');
    }
}

static void put_pin(const View *w, const Advice *a, GString *out)
{
    const HtVcpuSums *v = a->m->waiting;

    g_string_append_printf(out, ".\n  CPU %u was idle for", a->cpu);
    put_ns(w, out, a->idle);
    if (w->h.xentrace) {
        g_string_append_printf(out, ". Pin vCPU %d to it: xl vcpu-pin %u %d"
                               " %u", v->vcpu, a->m->number, v->vcpu, a->cpu);
    } else {
        g_string_append_printf(out, ". Pin thread %u to it: taskset -pc %u %u,"
                               " or virsh vcpupin", v->tid, a->cpu, v->tid);
    }
}

static void put_no_pin(const Advice *a, GString *out)
{
    g_string_append(out, ".\n  ");
    switch (a->no_pin) {
    case NOT_IDLE:
        g_string_append(out, "No other CPU was idle for as long.");
        break;
    case NOT_KNOWN:
        g_string_append(out, "No other CPU is known to have been idle for as"
                        " long, but not all\n  times of the CPUs are"
                        " recorded.");
        break;
    case WAITED:
        g_string_append(out, "It waited on each CPU that was idle for as"
                        " long.");
        break;
    }
}

static void put_quota(const View *w, const Advice *a, GString *out)
{
    const Machine *rival = find_machine(w, a->rival->machine);

    g_string_append(out, ", which ran for");
    put_ns(w, out, rival->running);
    put_no_pin(a, out);
    g_string_append_printf(out, " Limit it to %u %% of a CPU: ", a->percent);
    if (w->h.xentrace) {
        g_string_append_printf(out, "xl sched-credit2 -d %u -c %u",
                               rival->number, a->percent);
    } else {
        g_string_append_printf(out, "CPUQuota=%u%% in its systemd unit, or"
                               " virsh schedinfo", a->percent);
    }
}

static void put_advice(const View *w, const Advice *a, HtOutput *o)
{
    GString *out = o->text;

    g_string_append_printf(out, "%s %u waited", w->h.xentrace ? "Domain" :
                           "Machine", a->m->number);
    put_ns(w, out, a->rival->ticks);
    g_string_append_printf(out, " (%.1f%%) for ",
                           100.0 * a->rival->ticks / demand(a->m));
    put_rival(w, a->rival, out);
    switch (a->kind) {
    case PIN:
        put_pin(w, a, out);
        break;
    case QUOTA:
        put_quota(w, a, out);
        break;
    case WEIGHT:
        put_no_pin(a, out);
        g_string_append_printf(out, " Lower its weight: renice -n 10 -p %u",
                               a->rival->machine);
        break;
    case PROCESSORS:
        g_string_append(out, ", which did not run much longer");
        put_no_pin(a, out);
        g_string_append(out, a->no_pin == NOT_IDLE ?
                        " The host has too few CPUs for both" :
                        " The host may have too few CPUs for both");
        break;
    }
    g_string_append(out, ".\n");
}

/*
 * Call a function for each piece of advice: by machine, and for each machine,
 * by falling waiting time.
 */
static void each_advice(const View *w, void (*one)(const View *w,
                                                   const Advice *a,
                                                   void *opaque),
                        void *opaque)
{
    unsigned i;

    for (i = 0; i < w->machines->len; i++) {
        const Machine *m = w->machines->pdata[i];
        g_autoptr(GList) rivals = ht_host_view_sorted(m->rivals);
        Advice a;
        GList *l;

        for (l = rivals; l; l = l->next) {
            if (advise(w, m, l->data, &a)) {
                one(w, &a, opaque);
            }
        }
    }
}

typedef struct Text {
    HtOutput *o;
    bool any;
} Text;

static void text_advice(const View *w, const Advice *a, void *opaque)
{
    Text *t = opaque;

    if (!t->any) {
        g_string_append_c(t->o->text, '\n');
        ht_output_heading(t->o, "Advice");
        t->any = true;
    }
    put_advice(w, a, t->o);
}

static void put_machines(const View *w, HtOutput *o)
{
    unsigned i;

    ht_output_heading(o, "machine      waited for                        "
                      HT_HOST_TAKER_HEADING);
    for (i = 0; i < w->machines->len && ht_output_room(o); i++) {
        const Machine *m = w->machines->pdata[i];
        g_autoptr(GList) rivals = ht_host_view_sorted(m->rivals);
        g_autofree char *name = g_strdup_printf(w->h.xentrace ? "d%u" : "%u",
                                                m->number);
        unsigned n = 0;
        GList *l;

        for (l = rivals; l && n < RIVALS_SHOWN; l = l->next, n++) {
            const HtTaker *t = l->data;
            bool own = t->machine == m->number;
            bool vm = find_machine(w, t->machine) != NULL;

            g_string_append_printf(o->text, "%-12s ", name);
            if (t->idle || own) {
                ht_output_padded(o, own ? "itself" : "an idle CPU", 33);
            } else {
                g_string_append_printf(o->text, "%-8s%7u ",
                                       w->h.xentrace ? "domain" :
                                       vm ? "machine" : "process",
                                       t->machine);
                ht_output_padded(o, process_name(w, t), 17);
            }
            ht_host_view_taker(&w->h, o, t, demand(m));
        }
    }
    if (!w->machines->len) {
        g_string_append(o->text, "(no virtual machine ran)\n");
    }
}

static gint more_ticks(gconstpointer a, gconstpointer b)
{
    const TaskPair *x = a, *y = b;
    gint names = strcmp(x->task, y->task);

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           names ? names : strcmp(x->other, y->other);
}

static GList *sorted_tasks(const View *w)
{
    return g_list_sort(g_hash_table_get_values(w->tasks), more_ticks);
}

static void put_tasks(const View *w, HtOutput *o)
{
    g_autoptr(GList) tasks = sorted_tasks(w);
    unsigned n = 0, i;
    GList *l;

    if (!w->guests->len) {
        return;
    }
    g_string_append_c(o->text, '\n');
    for (i = 0; i < w->guests->len; i++) {
        const HtGuestTasks *g = w->guests->pdata[i];

        g_string_append_printf(o->text, "machine %u: ",
                               ht_guest_tasks_process(g));
        ht_escape_str(o->text, HT_ESCAPE_TERMINAL, ht_guest_tasks_dir(g));
        g_string_append(o->text, "; ");
        ht_host_view_error(ht_guest_tasks_bounds(g), "its", o);
        g_string_append_c(o->text, '\n');
    }
    g_string_append_c(o->text, '\n');
    ht_output_heading(o, "machine  its task               waited while this ran"
                      "                 time");
    for (l = tasks; l && n < TASKS_SHOWN; l = l->next, n++) {
        const TaskPair *pair = l->data;

        g_string_append_printf(o->text, "%-8u ", pair->machine);
        ht_output_padded(o, pair->task, 22);
        g_string_append_printf(o->text, " %7u ", pair->rival);
        ht_output_padded(o, pair->other, 22);
        ht_number_duration(o->text, ht_host_view_ns(&w->h, pair->ticks), 12);
        g_string_append_c(o->text, '\n');
    }
    if (w->left_out) {
        g_string_append(o->text, "more pairs of tasks were left out\n");
    }
}

static void put_text(const View *w, HtOutput *o)
{
    Text t = { .o = o };

    ht_host_view_summary(&w->h, o);
    put_machines(w, o);
    ht_host_view_takers(&w->h, o);
    put_tasks(w, o);
    each_advice(w, text_advice, &t);
}

static void json_rival(const View *w, HtJson *j, const Machine *m,
                       const HtTaker *t)
{
    ht_json_open(j, NULL, '{');
    if (w->h.xentrace) {
        ht_json_uint(j, "domain", t->machine);
    } else {
        ht_json_uint(j, "process", t->machine);
        ht_json_str(j, "name", process_name(w, t));
    }
    ht_json_bool(j, "machine", find_machine(w, t->machine) != NULL);
    ht_json_bool(j, "itself", t->machine == m->number);
    ht_json_bool(j, "idle", t->idle);
    ht_host_view_taker_json(&w->h, j, t);
    ht_json_close(j, '}');
}

static void json_machine(const View *w, HtJson *j, const Machine *m)
{
    g_autoptr(GList) rivals = ht_host_view_sorted(m->rivals);
    const HtGuestTasks *g = find_guest(w, m->number);
    GList *l;

    ht_json_open(j, NULL, '{');
    ht_json_uint(j, w->h.xentrace ? "domain" : "process", m->number);
    ht_json_uint(j, "vcpus", m->vcpus);
    ht_json_uint(j, "running_ns", ht_host_view_ns(&w->h, m->running));
    ht_json_uint(j, "runnable_ns", ht_host_view_ns(&w->h, m->runnable));
    ht_json_uint(j, "unknown_ns", ht_host_view_ns(&w->h, m->unknown));
    if (g) {
        ht_json_str(j, "recording", ht_guest_tasks_dir(g));
        ht_json_uint(j, "bound_ns",
                     ht_bounds_of(ht_guest_tasks_bounds(g), 100));
        ht_json_uint(j, "bound_99_ns",
                     ht_bounds_of(ht_guest_tasks_bounds(g), 99));
    }
    ht_json_open(j, "waited_for", '[');
    for (l = rivals; l; l = l->next) {
        json_rival(w, j, m, l->data);
    }
    ht_json_close(j, ']');
    ht_json_close(j, '}');
}

static void json_vcpu(const View *w, HtJson *j, const HtVcpuSums *v)
{
    ht_json_open(j, NULL, '{');
    ht_json_uint(j, v->tid ? "process" : "domain", v->machine);
    ht_json_int(j, "vcpu", v->vcpu);
    if (v->tid) {
        ht_json_uint(j, "thread", v->tid);
    }
    ht_json_uint(j, "runnable_ns",
                 ht_host_view_ns(&w->h, v->ticks[HT_RUN_RUNNABLE]));
    ht_host_view_takers_json(&w->h, j, v);
    ht_json_close(j, '}');
}

static void json_cpus(const View *w, HtJson *j)
{
    const GArray *sums = w->h.x->cpu_sums;
    unsigned i;

    ht_json_open(j, "processors", '[');
    for (i = 0; i < sums->len; i++) {
        const HtCpuSums *c = &g_array_index(sums, HtCpuSums, i);

        if (c->seen) {
            ht_json_open(j, NULL, '{');
            ht_json_uint(j, "cpu", i);
            ht_json_uint(j, "idle_ns", ht_host_view_ns(&w->h, c->idle));
            ht_json_uint(j, "busy_ns", ht_host_view_ns(&w->h, c->busy));
            ht_json_close(j, '}');
        }
    }
    ht_json_close(j, ']');
}

static void json_tasks(const View *w, HtJson *j)
{
    g_autoptr(GList) tasks = sorted_tasks(w);
    GList *l;

    ht_json_open(j, "tasks", '[');
    for (l = tasks; l; l = l->next) {
        const TaskPair *pair = l->data;

        ht_json_open(j, NULL, '{');
        ht_json_uint(j, "process", pair->machine);
        ht_json_str(j, "task", pair->task);
        ht_json_uint(j, "waited_for_process", pair->rival);
        ht_json_str(j, "waited_for_task", pair->other);
        ht_json_uint(j, "ns", ht_host_view_ns(&w->h, pair->ticks));
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

static void json_advice(const View *w, const Advice *a, void *opaque)
{
    const char *id = w->h.xentrace ? "domain" : "process";
    HtJson *j = opaque;

    ht_json_open(j, NULL, '{');
    ht_json_str(j, "kind", kinds[a->kind]);
    ht_json_uint(j, id, a->m->number);
    ht_json_uint(j, "waited_for", a->rival->machine);
    ht_json_uint(j, "ns", ht_host_view_ns(&w->h, a->rival->ticks));
    if (a->kind == PIN) {
        ht_json_uint(j, "cpu", a->cpu);
        ht_json_uint(j, "idle_ns", ht_host_view_ns(&w->h, a->idle));
    } else {
        ht_json_bool(j, "idle_known", a->no_pin != NOT_KNOWN);
    }
    if (a->kind == QUOTA) {
        ht_json_uint(j, "percent", a->percent);
    }
    ht_json_close(j, '}');
}

static void put_json(const View *w, HtOutput *o)
{
    HtJson j = { .out = o->text };
    unsigned i;

    ht_json_begin(&j);
    ht_host_view_json(&w->h, &j);
    json_cpus(w, &j);
    ht_json_open(&j, "machines", '[');
    for (i = 0; i < w->machines->len && ht_output_room(o); i++) {
        json_machine(w, &j, w->machines->pdata[i]);
    }
    ht_json_close(&j, ']');
    ht_json_open(&j, "vcpus", '[');
    for (i = 0; i < w->h.x->vcpus->len && ht_output_room(o); i++) {
        json_vcpu(w, &j, w->h.x->vcpus->pdata[i]);
    }
    ht_json_close(&j, ']');
    json_tasks(w, &j);
    ht_json_uint(&j, "task_pairs_left_out", w->left_out);
    ht_json_open(&j, "advice", '[');
    each_advice(w, json_advice, &j);
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

static int show(View *w, int argc, char **argv)
{
    GError *error = NULL;
    HtOutput o;
    bool ok;

    ht_view_output(&w->h.v, &o);
    ok = read_guests(w, argc, argv, &error) &&
         ht_host_view_read(&w->h, w->guests->len ? taken : NULL, w, &error);
    if (ok) {
        add_machines(w);
    }
    if (ok && w->h.v.json) {
        put_json(w, &o);
    } else if (ok) {
        put_text(w, &o);
    }
    return ht_view_finish(&o, ok, error);
}

int ht_interference(int argc, char **argv)
{
    View w = { 0 };
    int status;

    w.guests = g_ptr_array_new_with_free_func(free_guest);
    w.machines = g_ptr_array_new_with_free_func(free_machine);
    w.tasks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                    free_pair);
    if (ht_host_view_parse(&w.h, &argc, argv, "Show how long the virtual"
                           " machines of a host waited for each other.",
                           HT_VIEW_TIME | HT_VIEW_OUTPUT | HT_VIEW_MANY,
                           &status)) {
        if (w.h.xentrace && argc > 2) {
            status = ht_usage_error("--xentrace: give one FILE");
        } else {
            status = show(&w, argc, argv);
        }
    }
    g_hash_table_destroy(w.tasks);
    g_ptr_array_unref(w.machines);
    g_ptr_array_unref(w.guests);
    ht_host_view_free(&w.h);
    return status;
}
