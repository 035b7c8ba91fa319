/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: collect the phases, initcalls and processes of a boot
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "model/running.h"
#include "model/tasks.h"
#include "views/boot.h"
#include "views/view.h"

#define LEVELS_MAX      32

/*
 * If PID 1 executes another program within this time in ns after the begin of
 * the phase "init", the phase goes on, with that program as HtBootPhase.detail.
 */
#define STEP_NS         20000000

/* Maximum number of unended initcalls whose functions are counted at a time */
#define INSIDE_MAX      256

/* An initcall that has begun and not ended */
typedef struct Call {
    HtBootItem item;
    uint64_t func;
    /* value of HtBoot.gaps when the initcall began */
    uint64_t gaps;
    /* counts of the functions that the initcall called, or NULL */
    HtBootFunctions *functions;
} Call;

typedef struct Collect {
    HtModel *m;
    HtBoot *b;
    /* the different names of levels of initcalls, as strings */
    GPtrArray *levels;
    const char *level;          /* name in the last initcall_level event */
    /* from a task's unique number to Call: the initcall that the task is in */
    GHashTable *calls;
    /* from a task's unique number to the name of the module that it loads */
    GHashTable *modules;
    /*
     * from a task's unique number to the index of its process in b->processes,
     * plus 1
     */
    GHashTable *images;
    HtRunning *running;
    HtGraph *graph;
    /* number of Call whose member @functions is not NULL */
    unsigned inside;
    unsigned segment;
    /* PID 1 has executed a file: the phases of the kernel are over */
    bool kernel_done;
    /* time in ns at which PID 1 last ended an initcall before @kernel_done */
    uint64_t last_call;
    bool services;
} Collect;

static void clear_item(gpointer data)
{
    HtBootItem *item = data;

    g_free(item->name);
    g_clear_pointer(&item->functions, g_array_unref);
}

static void clear_phase(gpointer data)
{
    g_free(((HtBootPhase *)data)->detail);
}

static gpointer key(const HtModelEvent *ev)
{
    return GSIZE_TO_POINTER(ht_event_task_id(ev));
}

static HtBootPhase *last_phase(HtBoot *b)
{
    return b->phases->len ?
           &g_array_index(b->phases, HtBootPhase, b->phases->len - 1) : NULL;
}

static void begin_phase(HtBoot *b, const char *name, char *detail, uint64_t ns)
{
    HtBootPhase phase = { .name = name, .detail = detail, .begin = ns };
    HtBootPhase *last = last_phase(b);

    if (b->phases->len >= HT_BOOT_ITEMS_MAX) {
        g_free(detail);
        return;
    }
    if (last) {
        last->end = ns;
    }
    g_array_append_val(b->phases, phase);
}

static char *text_of(const HtModelEvent *ev, unsigned field)
{
    gsize len;
    const char *s = ht_event_text(ev, field, &len);

    return g_strndup(s, len);
}

/*
 * Get the name of the level of an initcall_level event, as a string that
 * @c->levels keeps. The guest chooses the names: if there are LEVELS_MAX
 * already, a further name becomes "other".
 */
static const char *intern_level(Collect *c, const HtModelEvent *ev)
{
    char *s = text_of(ev, HT_F_INITCALL_LEVEL);
    unsigned i;

    for (i = 0; i < c->levels->len; i++) {
        if (!strcmp(s, c->levels->pdata[i])) {
            g_free(s);
            return c->levels->pdata[i];
        }
    }
    if (c->levels->len == LEVELS_MAX) {
        g_free(s);
        return "other";
    }
    g_ptr_array_add(c->levels, s);
    return s;
}

static void initcall_level(Collect *c, const HtModelEvent *ev)
{
    c->level = intern_level(c, ev);
    /* The levels "console" and "security" belong to the phase "kernel". */
    if (!c->kernel_done && strcmp(c->level, "console") &&
        strcmp(c->level, "security") &&
        !strcmp(last_phase(c->b)->name, "kernel")) {
        begin_phase(c->b, "initcalls", NULL, ev->rec.ns);
    }
}

/*
 * Note the module that the task loads. The task's next initcall gets the
 * module's name, because the kernel's image has no symbols of modules.
 */
static void loads_module(Collect *c, const HtModelEvent *ev)
{
    if (g_hash_table_size(c->modules) < HT_BOOT_ITEMS_MAX) {
        g_hash_table_replace(c->modules, key(ev),
                             text_of(ev, HT_F_MODULE_NAME));
    }
}

static char *call_name(Collect *c, const HtModelEvent *ev)
{
    gpointer module;
    GString *name;

    if (g_hash_table_steal_extended(c->modules, key(ev), NULL, &module)) {
        return module;
    }
    name = g_string_new(NULL);
    ht_model_symbol(c->m, ev->boot, ht_event_uint(ev, HT_F_INITCALL_FUNC),
                    name);
    return g_string_free(name, false);
}

static void add_call(Collect *c, Call *call, uint64_t end, bool ended)
{
    HtBootItem item = call->item;
    HtBoot *b = c->b;

    if (b->initcalls->len >= HT_BOOT_ITEMS_MAX) {
        b->left_out++;
        return;
    }
    item.ended = ended;
    item.end = end;
    item.took = ht_duration(item.begin, end);
    if (call->functions) {
        item.functions = ht_boot_functions_end(
            g_steal_pointer(&call->functions), c->m, b->boot);
        c->inside--;
    }
    call->item.name = NULL;
    g_array_append_val(b->initcalls, item);
}

/*
 * An initcall's end was lost: add the initcall to the boot's list, with an
 * unknown duration.
 */
static void add_lost(Collect *c, Call *call)
{
    HtBoot *b = c->b;
    guint before = b->initcalls->len;

    add_call(c, call, call->item.begin, false);
    if (b->initcalls->len > before) {
        g_array_index(b->initcalls, HtBootItem, before).took =
            HT_DURATION_UNKNOWN;
    }
}

static void initcall_start(Collect *c, const HtModelEvent *ev)
{
    Call *call = g_hash_table_lookup(c->calls, key(ev));

    if (call) {
        /*
         * A task cannot run an initcall within an initcall, so the end of
         * @call was lost.
         */
        add_lost(c, call);
    } else if (g_hash_table_size(c->calls) >= HT_BOOT_ITEMS_MAX) {
        c->b->left_out++;
        return;
    }
    call = g_new(Call, 1);
    *call = (Call) {
        .item = {
            .name = call_name(c, ev),
            .level = c->kernel_done ? "modules" : c->level,
            .pid = ev->rec.pid,
            .begin = ev->rec.ns,
        },
        .func = ht_event_uint(ev, HT_F_INITCALL_FUNC),
        .gaps = c->b->gaps,
    };
    g_hash_table_replace(c->calls, key(ev), call);
}

static void initcall_finish(Collect *c, const HtModelEvent *ev)
{
    Call *call = g_hash_table_lookup(c->calls, key(ev));

    if (call && call->func == ht_event_uint(ev, HT_F_INITCALL_FUNC)) {
        call->item.ret = ht_event_uint(ev, HT_F_INITCALL_RET);
        add_call(c, call, ev->rec.ns, true);
    } else if (call) {
        /*
         * The event ends another initcall than @call, so the end of @call was
         * lost, and the begin of the other initcall, too.
         */
        add_lost(c, call);
    }
    if (call) {
        g_hash_table_remove(c->calls, key(ev));
    }
    if (!c->kernel_done && ev->rec.pid == 1) {
        c->last_call = ev->rec.ns;
    }
}

/*
 * If an event is of a function tracer, and its task is in an initcall, count
 * the function for that initcall; at most INSIDE_MAX initcalls at a time have
 * counts.
 */
static void step(Collect *c, const HtModelEvent *ev)
{
    HtGraphStep s;
    Call *call;

    if (!ht_graph_event(c->graph, ev, &s)) {
        return;
    }
    call = g_hash_table_lookup(c->calls, key(ev));
    if (call && !call->functions && c->inside < INSIDE_MAX) {
        call->functions = ht_boot_functions_new();
        c->inside++;
    }
    if (call && call->functions) {
        ht_boot_functions_step(call->functions, ev, &s);
    }
}

static void init_executes(Collect *c, const HtModelEvent *ev)
{
    g_autofree char *file = text_of(ev, HT_F_EXEC_FILE);
    HtBootPhase *last = last_phase(c->b);
    const char *name = !strcmp(file, "/init") ? "initramfs" : "init";

    if (!c->kernel_done && c->last_call > last->begin &&
        !strcmp(last->name, "initcalls")) {
        begin_phase(c->b, "kernel, rest", NULL, c->last_call);
    }
    if (c->kernel_done && !c->services && strcmp(last->name, "initramfs") &&
        ht_elapsed(last->begin, ev->rec.ns) < STEP_NS) {
        g_free(last->detail);
        last->detail = g_steal_pointer(&file);
        return;
    }
    c->kernel_done = true;
    c->services = false;
    begin_phase(c->b, name, g_steal_pointer(&file), ev->rec.ns);
}

static HtBootItem *process(Collect *c, gpointer task)
{
    gsize i = GPOINTER_TO_SIZE(g_hash_table_lookup(c->images, task));

    return i ? &g_array_index(c->b->processes, HtBootItem, i - 1) : NULL;
}

static void executes(Collect *c, const HtModelEvent *ev)
{
    const HtTask *task = ht_model_task(c->m, ev->rec.pid);
    HtBootItem *p = process(c, key(ev));
    HtBootItem item = {
        .level = "",
        .pid = ev->rec.pid,
        .begin = ev->rec.ns,
        .service = task && task->ppid == 1,
    };

    if (ev->rec.pid == 1) {
        init_executes(c, ev);
        return;
    }
    if (item.service && !c->services && c->kernel_done &&
        !strcmp(last_phase(c->b)->name, "init")) {
        g_autofree char *file = text_of(ev, HT_F_EXEC_FILE);

        c->services = true;
        /*
         * systemd starts services through systemd-executor, which it executes
         * as /proc/self/fd/N. This path would not help the user.
         */
        begin_phase(c->b, "services", g_str_has_prefix(file, "/proc/self/") ?
                    NULL : g_steal_pointer(&file), ev->rec.ns);
    }
    if (p) {
        g_free(p->name);
        p->name = text_of(ev, HT_F_EXEC_FILE);
        return;
    }
    if (c->b->processes->len >= HT_BOOT_ITEMS_MAX) {
        c->b->left_out++;
        return;
    }
    item.name = text_of(ev, HT_F_EXEC_FILE);
    g_array_append_val(c->b->processes, item);
    g_hash_table_insert(c->images, key(ev),
                        GSIZE_TO_POINTER((gsize)c->b->processes->len));
}

/*
 * Some programs execute /proc/self/exe and then set their task's name. Use the
 * task's name for such a process.
 */
static void renames(Collect *c, const HtModelEvent *ev)
{
    HtBootItem *p = process(c, key(ev));

    if (p && ht_tasks_renamed(ev, ev->task) == ev->rec.pid &&
        !strcmp(p->name, "/proc/self/exe")) {
        g_free(p->name);
        p->name = text_of(ev, HT_F_RENAME_NEW);
    }
}

/*
 * Get the time in ns since the CPU's previous event, if the CPU ran a known
 * task in this time; 0 if the CPU was idle or its task is not known. @cpu: from
 * ht_running_before()
 */
static uint64_t time_of_task(const HtRunCpu *cpu, const HtModelEvent *ev)
{
    return cpu && cpu->known && cpu->pid ? ht_running_time(cpu, ev) : 0;
}

/*
 * Split the @ns before an event by what the host did, and add the parts to
 * the current phase.
 */
static void split_time(Collect *c, const HtModelEvent *ev, uint64_t ns)
{
    HtBootPhase *last = last_phase(c->b);

    if (c->b->host && ns && last) {
        ht_host_split_add(c->b->host, ev->boot, ev->rec.segment, ev->rec.cpu,
                          ev->rec.ns - ns, ev->rec.ns, &last->split);
    }
}

/*
 * Add @ns of CPU time to the process of the event's task. make_monotonic() must
 * have adjusted the event's time, as it has for the begin of the process.
 */
static void account(Collect *c, const HtModelEvent *ev, uint64_t ns)
{
    int32_t tgid = ev->task->tgid;
    HtBootItem *p;

    if (!ns) {
        return;
    }
    p = process(c, tgid && tgid != ev->rec.pid ?
                GSIZE_TO_POINTER(ht_model_task_id(c->m, tgid, 0)) : key(ev));
    if (p) {
        p->cpu_ns += MIN(ns, ht_elapsed(p->begin, ev->rec.ns));
    }
}

static void ends(Collect *c, const HtModelEvent *ev)
{
    HtBootItem *p = process(c, key(ev));

    if (p) {
        p->end = ev->rec.ns;
        p->ended = true;
        g_hash_table_remove(c->images, key(ev));
    }
}

/* Adjust the event's time so that it never goes back: see &HtBoot.back_ns */
static void make_monotonic(Collect *c, HtModelEvent *ev)
{
    HtBoot *b = c->b;

    if (ev->rec.segment != c->segment) {
        uint64_t ns = ev->rec.ns + b->back_ns;

        c->segment = ev->rec.segment;
        b->steps++;
        b->back_ns += ht_elapsed(ns, b->end);
    }
    ev->rec.ns += b->back_ns;
}

static void add_event(Collect *c, HtModelEvent *ev)
{
    uint64_t ran = time_of_task(ht_running_before(c->running, ev), ev);
    HtBoot *b = c->b;

    split_time(c, ev, ran);
    ht_running_after(c->running, ev);
    step(c, ev);
    if (!b->events++) {
        c->segment = ev->rec.segment;
        b->begin = ev->rec.ns;
        begin_phase(b, "kernel", NULL, ev->rec.ns);
    }
    make_monotonic(c, ev);
    account(c, ev, ran);
    b->begin = MIN(b->begin, ev->rec.ns);
    b->end = MAX(b->end, ev->rec.ns);
    b->gaps += ev->rec.lost_before;
    switch (ev->class->kind) {
    case HT_KIND_INITCALL_LEVEL:
        initcall_level(c, ev);
        break;
    case HT_KIND_INITCALL_START:
        initcall_start(c, ev);
        break;
    case HT_KIND_INITCALL_FINISH:
        initcall_finish(c, ev);
        break;
    case HT_KIND_MODULE_LOAD:
        loads_module(c, ev);
        break;
    case HT_KIND_SCHED_EXEC:
        executes(c, ev);
        break;
    case HT_KIND_SCHED_EXIT:
        ends(c, ev);
        break;
    case HT_KIND_TASK_RENAME:
        renames(c, ev);
        break;
    default:
        break;
    }
}

static void finish(Collect *c)
{
    HtBoot *b = c->b;
    HtBootPhase *last = last_phase(b);
    GHashTableIter iter;
    gpointer data;
    unsigned i;

    if (last) {
        last->end = b->end;
    }
    for (i = 0; i < b->phases->len; i++) {
        ht_host_split_sum(&b->split,
                          &g_array_index(b->phases, HtBootPhase, i).split);
    }
    g_hash_table_iter_init(&iter, c->calls);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        Call *call = data;

        if (call->gaps == b->gaps) {
            add_call(c, call, b->end, false);
        } else {
            add_lost(c, call);
        }
    }
    for (i = 0; i < b->processes->len; i++) {
        HtBootItem *p = &g_array_index(b->processes, HtBootItem, i);

        if (!p->ended) {
            p->end = b->end;
        }
        p->took = ht_duration(p->begin, p->end);
    }
    for (i = 0; i < b->initcalls->len; i++) {
        HtBootItem *p = &g_array_index(b->initcalls, HtBootItem, i);

        p->level = g_intern_string(p->level);
    }
}

static void free_call(gpointer data)
{
    ht_boot_functions_free(((Call *)data)->functions);
    clear_item(data);
    g_free(data);
}

static HtBoot *new_boot(HtModel *m)
{
    HtBoot *b = g_new0(HtBoot, 1);

    b->release = g_strdup(ht_model_info(m, "guest", "release"));
    b->phases = g_array_new(false, false, sizeof(HtBootPhase));
    b->initcalls = g_array_new(false, false, sizeof(HtBootItem));
    b->processes = g_array_new(false, false, sizeof(HtBootItem));
    g_array_set_clear_func(b->phases, clear_phase);
    g_array_set_clear_func(b->initcalls, clear_item);
    g_array_set_clear_func(b->processes, clear_item);
    return b;
}

/*
 * Count the boots, by the ends of the recording's files; if an end is damaged,
 * by all events.
 */
static unsigned count_boots(HtModel *m)
{
    unsigned boots = 0;
    HtModelEvent ev;
    HtRecEnd end;

    if (ht_rec_end(ht_model_recording(m), &end)) {
        return end.epoch + 1;
    }
    while (ht_model_next(m, &ev)) {
        boots = MAX(boots, ev.boot);
    }
    return boots;
}

HtBoot *ht_boot_collect(const char *dir, unsigned boot, uint64_t to_ns,
                        bool by_host, GError **errp)
{
    g_autoptr(HtModel) m = ht_model_open(dir, errp);
    g_autoptr(HtBoot) b = NULL;
    Collect c = { .m = m, .level = "" };
    unsigned boots;
    HtModelEvent ev;

    if (!m) {
        return NULL;
    }
    boots = count_boots(m);
    if (!boots) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "'%s' has no events", dir);
        return NULL;
    }
    if (boot > boots) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "'%s' has no boot %u: --boot is 1 to %u", dir, boot,
                    boots);
        return NULL;
    }
    ht_model_rewind(m);
    b = new_boot(m);
    if (by_host) {
        b->host = ht_host_split_new(dir, m, errp);
        if (!b->host) {
            return NULL;
        }
    }
    b->boots = boots;
    b->boot = boot ? boot : boots;
    c.b = b;
    c.levels = g_ptr_array_new_with_free_func(g_free);
    c.calls = g_hash_table_new_full(NULL, NULL, NULL, free_call);
    c.modules = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    c.images = g_hash_table_new(NULL, NULL);
    c.running = ht_running_new(m);
    ht_running_tasks_only(c.running);
    ht_rec_until(ht_model_recording(m), b->boot - 1, to_ns);
    c.graph = ht_graph_new(m);
    while (ht_model_next(m, &ev)) {
        if (ev.boot == b->boot && ev.rec.ns <= to_ns) {
            add_event(&c, &ev);
        }
    }
    ht_view_trouble(m);
    finish(&c);
    g_hash_table_destroy(c.calls);
    g_hash_table_destroy(c.modules);
    g_hash_table_destroy(c.images);
    g_ptr_array_unref(c.levels);
    ht_running_free(c.running);
    ht_graph_free(c.graph);
    if (!b->events) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "boot %u of '%s' has no events before that time",
                    b->boot, dir);
        return NULL;
    }
    return g_steal_pointer(&b);
}

void ht_boot_free(HtBoot *b)
{
    if (b) {
        g_free(b->release);
        ht_host_split_free(b->host);
        g_array_unref(b->phases);
        g_array_unref(b->initcalls);
        g_array_unref(b->processes);
        g_free(b);
    }
}
