/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: where the time of a boot went, and of two boots where they
 * differ
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "model/running.h"
#include "views/boot.h"
#include "views/view.h"

#define LEVELS_MAX      32

/* An init that executes another one as quickly as this is only a step to it. */
#define STEP_NS         20000000

/* An initcall that did not end */
typedef struct Call {
    HtBootItem item;
    uint64_t func;
    uint64_t gaps;              /* HtBoot.gaps when it began */
} Call;

typedef struct Collect {
    HtModel *m;
    HtBoot *b;
    GPtrArray *levels;          /* of the texts of levels, interned */
    const char *level;
    /* by the number of a task */
    GHashTable *calls;          /* the Call that it runs */
    GHashTable *modules;        /* the module that it loads */
    GHashTable *images;         /* 1 + index in b->processes */
    HtRunning *running;
    unsigned segment;
    bool kernel_done;           /* PID 1 executed a file */
    uint64_t last_call;         /* end of the last initcall before that */
    bool services;
} Collect;

static void clear_item(gpointer data)
{
    g_free(((HtBootItem *)data)->name);
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

/* The guest names levels: only so many different ones are kept. */
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
    /* the console's and security's run while the kernel sets itself up */
    if (!c->kernel_done && strcmp(c->level, "console") &&
        strcmp(c->level, "security") &&
        !strcmp(last_phase(c->b)->name, "kernel")) {
        begin_phase(c->b, "initcalls", NULL, ev->rec.ns);
    }
}

/* Its own symbols are in no image: the module's name is what there is. */
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

static void add_call(HtBoot *b, Call *call, uint64_t end, bool ended)
{
    HtBootItem item = call->item;

    if (b->initcalls->len >= HT_BOOT_ITEMS_MAX) {
        b->left_out++;
        return;
    }
    item.ended = ended;
    item.end = end;
    item.took = ht_duration(item.begin, end);
    call->item.name = NULL;
    g_array_append_val(b->initcalls, item);
}

/* The end of a call was lost. */
static void add_lost(HtBoot *b, Call *call)
{
    guint before = b->initcalls->len;

    add_call(b, call, call->item.begin, false);
    if (b->initcalls->len > before) {
        g_array_index(b->initcalls, HtBootItem, before).took =
            HT_DURATION_UNKNOWN;
    }
}

static void initcall_start(Collect *c, const HtModelEvent *ev)
{
    Call *call = g_hash_table_lookup(c->calls, key(ev));

    if (call) {
        /* initcalls do not nest within a task */
        add_lost(c->b, call);
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
        add_call(c->b, call, ev->rec.ns, true);
    } else if (call) {
        /* of another call, whose begin was lost with the end of this one */
        add_lost(c->b, call);
    }
    if (call) {
        g_hash_table_remove(c->calls, key(ev));
    }
    if (!c->kernel_done && ev->rec.pid == 1) {
        c->last_call = ev->rec.ns;
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
        /* systemd has an executor, which it knows by a descriptor */
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

/* Some programs execute themselves and then say who they are. */
static void renames(Collect *c, const HtModelEvent *ev)
{
    HtBootItem *p = process(c, key(ev));

    if (p && !strcmp(p->name, "/proc/self/exe")) {
        g_free(p->name);
        p->name = text_of(ev, HT_F_RENAME_NEW);
    }
}

/* The time of a thread is that of its process. */
static void account(Collect *c, const HtModelEvent *ev, const HtRunCpu *cpu)
{
    int32_t tgid = ev->task->tgid;
    uint64_t ns = ht_running_time(cpu, ev);
    HtBootItem *p;

    /* if the CPU's task is known, it is that of this event */
    if (!cpu->known || !cpu->pid || !ns) {
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

/* Let the time go on where the guest's clock went back */
static void straighten(Collect *c, HtModelEvent *ev)
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

static void look(Collect *c, HtModelEvent *ev)
{
    const HtRunCpu *cpu = ht_running_before(c->running, ev);
    HtBoot *b = c->b;

    if (cpu) {
        account(c, ev, cpu);
    }
    ht_running_after(c->running, ev);
    if (!b->events++) {
        c->segment = ev->rec.segment;
        b->begin = ev->rec.ns;
        begin_phase(b, "kernel", NULL, ev->rec.ns);
    }
    straighten(c, ev);
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
    g_hash_table_iter_init(&iter, c->calls);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        Call *call = data;

        if (call->gaps == b->gaps) {
            add_call(b, call, b->end, false);
        } else {
            add_lost(b, call);
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

/* How many boots there are is known when all was read. */
static unsigned count_boots(HtModel *m)
{
    unsigned boots = 0;
    HtModelEvent ev;

    while (ht_model_next(m, &ev)) {
        boots = MAX(boots, ev.boot);
    }
    return boots;
}

HtBoot *ht_boot_collect(const char *dir, unsigned boot, uint64_t to_ns,
                        GError **errp)
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
    b->boots = boots;
    b->boot = boot ? boot : boots;
    c.b = b;
    c.levels = g_ptr_array_new_with_free_func(g_free);
    c.calls = g_hash_table_new_full(NULL, NULL, NULL, free_call);
    c.modules = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    c.images = g_hash_table_new(NULL, NULL);
    c.running = ht_running_new(m);
    ht_running_tasks_only(c.running);
    while (ht_model_next(m, &ev)) {
        if (ev.boot == b->boot && ev.rec.ns <= to_ns) {
            look(&c, &ev);
        }
    }
    finish(&c);
    g_hash_table_destroy(c.calls);
    g_hash_table_destroy(c.modules);
    g_hash_table_destroy(c.images);
    g_ptr_array_unref(c.levels);
    ht_running_free(c.running);
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
        g_array_unref(b->phases);
        g_array_unref(b->initcalls);
        g_array_unref(b->processes);
        g_free(b);
    }
}

#define NAME_WIDTH      30
#define SLOWEST_DEFAULT 15

static const HtColour colours[] = {
    HT_COLOUR_BLUE, HT_COLOUR_YELLOW, HT_COLOUR_GREEN, HT_COLOUR_CYAN,
    HT_COLOUR_RED,
};

static void head(HtOutput *o, const char *s)
{
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "%s\n", s);
    ht_output_colour(o, HT_COLOUR_NONE);
}

/* Where in the boot it was */
static void put_bar(HtOutput *o, const HtBoot *b, uint64_t begin, uint64_t end,
                    HtColour colour)
{
    const char *block = g_get_charset(NULL) ? "\342\226\210" : "#";
    unsigned width = o->columns > 90 ? o->columns - 70 : 20;
    double scale = (double)width / MAX(ht_elapsed(b->begin, b->end), 1);
    unsigned from = MIN(ht_elapsed(b->begin, begin) * scale, width - 1);
    unsigned to = MIN(ht_elapsed(b->begin, end) * scale + 0.5, width);

    g_string_append_c(o->text, ' ');
    g_string_append_printf(o->text, "%*s", (int)from, "");
    ht_output_colour(o, colour);
    for (to = MAX(to, from + 1); from < to; from++) {
        g_string_append(o->text, block);
    }
    ht_output_colour(o, HT_COLOUR_NONE);
    g_string_append_c(o->text, '\n');
}

static gint by_duration(gconstpointer a, gconstpointer b)
{
    const HtBootItem *x = *(const HtBootItem * const *)a;
    const HtBootItem *y = *(const HtBootItem * const *)b;
    int order = ht_duration_longer(x->took, y->took);

    if (order) {
        return order;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static GPtrArray *slowest(const GArray *items)
{
    GPtrArray *all = g_ptr_array_sized_new(items->len);
    unsigned i;

    for (i = 0; i < items->len; i++) {
        g_ptr_array_add(all, &g_array_index(items, HtBootItem, i));
    }
    g_ptr_array_sort(all, by_duration);
    return all;
}

/* Of a path that is too long its end says more. */
static void put_name(HtOutput *o, const char *name)
{
    const char *base = strlen(name) > NAME_WIDTH ?
                       strrchr(name, '/') : NULL;

    ht_output_padded(o, base && base[1] ? base + 1 : name, NAME_WIDTH);
}

static void put_items(HtOutput *o, const HtBoot *b, const GArray *items,
                      unsigned rows, HtColour colour)
{
    g_autoptr(GPtrArray) all = slowest(items);
    unsigned i;

    for (i = 0; i < all->len && i < rows; i++) {
        const HtBootItem *c = all->pdata[i];

        g_string_append(o->text, "  ");
        put_name(o, c->name);
        g_string_append_printf(o->text, " %11.3f ", c->begin / 1e6);
        if (ht_duration_known(c->took)) {
            g_string_append_printf(o->text, "%c%11.3f ", c->ended ? ' ' : '>',
                                   c->took.ns / 1e6);
        } else {
            g_string_append(o->text, "   not known ");
        }
        if (*c->level) {
            ht_output_padded(o, c->level, 8);
        } else {
            g_string_append_printf(o->text, "%8.3f", c->cpu_ns / 1e6);
        }
        put_bar(o, b, c->begin, c->end, colour);
    }
    if (i < all->len) {
        g_string_append_printf(o->text, "  and %u faster ones; --slowest says"
                               " how many to list\n", all->len - i);
    }
}

static void put_text(HtOutput *o, const HtBoot *b, unsigned rows)
{
    unsigned i;

    g_string_append(o->text, "Boot of Linux ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, b->release);
    g_string_append_printf(o->text, ": %.3f s, %" PRIu64 " events",
                           ht_elapsed(b->begin, b->end) / 1e9, b->events);
    if (b->gaps) {
        g_string_append_printf(o->text, ", some lost in %" PRIu64 " gaps",
                               b->gaps);
    }
    g_string_append_c(o->text, '\n');
    if (b->steps) {
        g_string_append_printf(o->text, "The guest's clock went back by %.3f"
                               " ms; here it goes on, so that times are later"
                               " than those of the log.\n", b->back_ns / 1e6);
    }
    if (b->boots > 1) {
        g_string_append_printf(o->text, "This is boot %u of %u; --boot picks"
                               " another.\n", b->boot, b->boots);
    }
    g_string_append_c(o->text, '\n');
    head(o, "  phase                             from ms          ms   share");
    for (i = 0; i < b->phases->len; i++) {
        const HtBootPhase *p = &g_array_index(b->phases, HtBootPhase, i);
        g_autofree char *name = p->detail ?
            g_strdup_printf("%s (%s)", p->name, p->detail) :
            g_strdup(p->name);

        g_string_append(o->text, "  ");
        ht_output_padded(o, name, NAME_WIDTH);
        g_string_append_printf(o->text, " %11.3f  %11.3f  %5.1f%% ",
                               p->begin / 1e6,
                               ht_elapsed(p->begin, p->end) / 1e6,
                               100.0 * ht_elapsed(p->begin, p->end) /
                               MAX(ht_elapsed(b->begin, b->end), 1));
        put_bar(o, b, p->begin, p->end, colours[i % G_N_ELEMENTS(colours)]);
    }
    if (b->initcalls->len) {
        g_string_append_c(o->text, '\n');
        head(o, "  slowest initcalls                 from ms          ms"
             " level");
        put_items(o, b, b->initcalls, rows, HT_COLOUR_YELLOW);
    }
    if (b->processes->len) {
        g_string_append_c(o->text, '\n');
        head(o, "  longest processes                 from ms          ms"
             "   CPU ms");
        put_items(o, b, b->processes, rows, HT_COLOUR_CYAN);
    }
    if (b->left_out) {
        g_string_append_printf(o->text, "%" PRIu64 " more were not kept\n",
                               b->left_out);
    }
}

static void json_items(HtJson *j, const char *name, const GArray *items)
{
    unsigned i;

    ht_json_open(j, name, '[');
    for (i = 0; i < items->len; i++) {
        const HtBootItem *c = &g_array_index(items, HtBootItem, i);

        ht_json_open(j, NULL, '{');
        ht_json_str(j, "name", c->name);
        ht_json_int(j, "pid", c->pid);
        ht_json_uint(j, "begin_ns", c->begin);
        ht_json_uint(j, "end_ns", c->end);
        ht_json_bool(j, "ended", c->ended);
        if (ht_duration_known(c->took)) {
            ht_json_uint(j, "duration_ns", c->took.ns);
        } else {
            ht_json_str(j, "duration_ns", NULL);
        }
        if (*c->level) {
            ht_json_str(j, "level", c->level);
            ht_json_int(j, "ret", c->ret);
        } else {
            ht_json_uint(j, "cpu_ns", c->cpu_ns);
            ht_json_bool(j, "service", c->service);
        }
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

static void json_boot(HtJson *j, const HtBoot *b)
{
    unsigned i;

    ht_json_open(j, NULL, '{');
    ht_json_str(j, "release", b->release);
    ht_json_uint(j, "boot", b->boot);
    ht_json_uint(j, "boots", b->boots);
    ht_json_uint(j, "begin_ns", b->begin);
    ht_json_uint(j, "end_ns", b->end);
    ht_json_uint(j, "events", b->events);
    ht_json_uint(j, "gaps", b->gaps);
    ht_json_uint(j, "clock_back_ns", b->back_ns);
    ht_json_open(j, "phases", '[');
    for (i = 0; i < b->phases->len; i++) {
        const HtBootPhase *p = &g_array_index(b->phases, HtBootPhase, i);

        ht_json_open(j, NULL, '{');
        ht_json_str(j, "name", p->name);
        ht_json_str(j, "detail", p->detail);
        ht_json_uint(j, "begin_ns", p->begin);
        ht_json_uint(j, "end_ns", p->end);
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
    json_items(j, "initcalls", b->initcalls);
    json_items(j, "processes", b->processes);
    ht_json_close(j, '}');
}

/* One name in two boots: how long, summed over all of that name */
typedef struct Pair {
    char *name;
    uint64_t ns[2];             /* of those that are known */
} Pair;

static void free_pair(gpointer data)
{
    Pair *p = data;

    g_free(p->name);
    g_free(p);
}

static void add_pair(GHashTable *by_name, GPtrArray *all, const char *name,
                     unsigned side, uint64_t ns)
{
    Pair *p = g_hash_table_lookup(by_name, name);

    if (!p) {
        p = g_new0(Pair, 1);
        p->name = g_strdup(name);
        g_ptr_array_add(all, p);
        g_hash_table_insert(by_name, p->name, p);
    }
    p->ns[side] += ns;
}

static gint by_difference(gconstpointer a, gconstpointer b)
{
    const Pair *x = *(const Pair * const *)a, *y = *(const Pair * const *)b;
    uint64_t dx = MAX(x->ns[0], x->ns[1]) - MIN(x->ns[0], x->ns[1]);
    uint64_t dy = MAX(y->ns[0], y->ns[1]) - MIN(y->ns[0], y->ns[1]);

    return dx < dy ? 1 : dx > dy ? -1 : strcmp(x->name, y->name);
}

enum { PHASES, INITCALLS, PROCESSES };

static GPtrArray *pairs(HtBoot * const boots[2], int what)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *all = g_ptr_array_new_with_free_func(free_pair);
    unsigned side, i;

    for (side = 0; side < 2; side++) {
        const HtBoot *b = boots[side];
        const GArray *items = what == INITCALLS ? b->initcalls : b->processes;

        for (i = 0; what == PHASES && i < b->phases->len; i++) {
            const HtBootPhase *p = &g_array_index(b->phases, HtBootPhase, i);

            add_pair(by_name, all, p->name, side,
                     ht_elapsed(p->begin, p->end));
        }
        for (i = 0; what != PHASES && i < items->len; i++) {
            const HtBootItem *c = &g_array_index(items, HtBootItem, i);

            add_pair(by_name, all, c->name, side, ht_duration_ns(c->took));
        }
    }
    if (what != PHASES) {
        g_ptr_array_sort(all, by_difference);
    }
    return all;
}

static void put_pairs(HtOutput *o, HtBoot * const boots[2], int what,
                      const char *title, unsigned rows)
{
    g_autoptr(GPtrArray) all = pairs(boots, what);
    g_autofree char *line = g_strdup_printf("  %-30s        A ms        B ms"
                                            "    B - A ms", title);
    unsigned i;

    if (!all->len) {
        return;
    }
    g_string_append_c(o->text, '\n');
    head(o, line);
    for (i = 0; i < all->len && i < rows; i++) {
        const Pair *p = all->pdata[i];
        double d = ((double)p->ns[1] - p->ns[0]) / 1e6;

        g_string_append(o->text, "  ");
        put_name(o, p->name);
        g_string_append_printf(o->text, " %11.3f %11.3f ", p->ns[0] / 1e6,
                               p->ns[1] / 1e6);
        ht_output_colour(o, d > 0 ? HT_COLOUR_RED : HT_COLOUR_GREEN);
        g_string_append_printf(o->text, "%+11.3f", d);
        ht_output_colour(o, HT_COLOUR_NONE);
        g_string_append_c(o->text, '\n');
    }
    if (i < all->len) {
        g_string_append_printf(o->text, "  and %u that differ less;"
                               " --slowest says how many to list\n",
                               all->len - i);
    }
}

static void compare_text(HtOutput *o, HtBoot * const boots[2], unsigned rows)
{
    unsigned side;

    for (side = 0; side < 2; side++) {
        g_string_append_printf(o->text, "%c: Linux ", 'A' + side);
        ht_escape_str(o->text, HT_ESCAPE_TERMINAL, boots[side]->release);
        g_string_append_printf(o->text, ", %.3f s, %" PRIu64 " events\n",
                               ht_elapsed(boots[side]->begin,
                                          boots[side]->end) / 1e9,
                               boots[side]->events);
    }
    put_pairs(o, boots, PHASES, "phase", UINT_MAX);
    put_pairs(o, boots, INITCALLS, "initcalls that differ most", rows);
    put_pairs(o, boots, PROCESSES, "processes that differ most", rows);
}

static bool draw(const HtBoot *b, const char *file, GError **errp)
{
    HtOutput svg;

    if (!ht_output_file(&svg, file, errp)) {
        return false;
    }
    ht_boot_svg(b, svg.text);
    return ht_output_finish(&svg, errp);
}

static bool show(const HtView *v, HtOutput *o, HtBoot *boots[2],
                 const char *svg, int rows, GError **errp)
{
    if (svg && !draw(boots[0], svg, errp)) {
        return false;
    }
    if (v->json) {
        HtJson j = { .out = o->text };

        if (boots[1]) {
            ht_json_open(&j, NULL, '[');
        }
        json_boot(&j, boots[0]);
        if (boots[1]) {
            json_boot(&j, boots[1]);
            ht_json_close(&j, ']');
        }
        g_string_append_c(o->text, '\n');
    } else if (boots[1]) {
        compare_text(o, boots, rows);
    } else {
        put_text(o, boots[0], rows);
    }
    return true;
}

int ht_boot(int argc, char **argv)
{
    g_autofree char *svg = NULL;
    g_autofree char *to = NULL;
    gint rows = SLOWEST_DEFAULT;
    uint64_t to_ns = UINT64_MAX;
    const GOptionEntry own[] = {
        { "slowest", 'n', 0, G_OPTION_ARG_INT, &rows,
          "initcalls and processes to list (15)", "N" },
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &svg,
          "draw it, too", "FILE" },
        { "to", 0, 0, G_OPTION_ARG_STRING, &to,
          "look at no event after TIME: 12, 3500ms", "TIME" },
        { 0 }
    };
    HtView v = { 0 };
    HtBoot *boots[2] = { NULL, NULL };
    GError *error = NULL;
    bool ok, from_end;
    HtOutput o;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Show where the time of a boot went;"
                       " with two recordings, where they differ.",
                       HT_VIEW_BOOT | HT_VIEW_OUTPUT |
                       HT_VIEW_TWO, own, &status)) {
        ht_view_free(&v);
        return status;
    }
    if (rows < 0 || (svg && argc > 2)) {
        ht_view_free(&v);
        return rows < 0 ? ht_usage_error("--slowest=%d: it is 0 or more", rows)
               : ht_usage_error("--svg draws one recording, not two");
    }
    if (to && (!ht_number_time("--to", to, &to_ns, &from_end, &error) ||
               from_end)) {
        ht_view_free(&v);
        status = ht_usage_error("%s", error ? error->message :
                                "--to: a boot's end is not counted from the"
                                " end of the recording");
        g_clear_error(&error);
        return status;
    }
    ht_view_output(&v, &o);
    boots[0] = ht_boot_collect(v.dir, v.boot, to_ns, &error);
    ok = boots[0] != NULL;
    if (ok && argc > 2) {
        boots[1] = ht_boot_collect(argv[2], v.boot, to_ns, &error);
        ok = boots[1] != NULL;
    }
    ok = ok && show(&v, &o, boots, svg, rows, &error);
    status = ht_view_finish(&o, ok, error);
    ht_boot_free(boots[0]);
    ht_boot_free(boots[1]);
    ht_view_free(&v);
    return status;
}
