/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace callgraph: show calls of functions, nested, with their durations
 *
 * Lines are in the order of time. The begin and the end of a call share one
 * line if no other line of its processor comes between them. Later events show
 * whether this is so. Until then, the line of the begin and all later lines are
 * queued, up to LINES_MAX.
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "hypertrace/pattern.h"
#include "model/duration.h"
#include "model/graph.h"
#include "views/view.h"

/* maximum length of the queue of lines after an event */
#define LINES_MAX       4096
#define INDENT_MAX      64
#define FUNCTIONS_MAX   (1u << 20)

typedef struct Line {
    /* without @call: the whole line; else the part before the duration */
    GString *text;
    /* line of a call's begin: the part after the duration; else NULL */
    GString *call;
    uint64_t func;
    int32_t pid, depth;
    /* if @what is LEAF: duration of the call in ns */
    uint64_t ns;
    /* if @what is LEAF: the call made calls that are not printed */
    bool cut;
    enum { BEGAN, LEAF, CALLER } what;
} Line;

typedef struct Callgraph {
    HtView v;
    HtModel *m;
    HtOutput o;
    HtGraph *graph;
    /* further events to print among the calls; NULL: none */
    HtNames *events;
    char *function;
    char **functions;
    gint depth;
    GQueue lines;               /* of Line */
    /* by CPU: the CPU's last line, while its @what is BEGAN; else NULL */
    Line *open[HT_FT_CPUS_MAX];
    GString *name;
    /*
     * cache, by the address of a function: whether a pattern of @functions
     * matches it
     */
    GHashTable *asked;
    unsigned asked_boot;
    unsigned boot, segment;
    bool any, found, shown;
} Callgraph;

static void free_line(gpointer data)
{
    Line *l = data;

    g_string_free(l->text, true);
    if (l->call) {
        g_string_free(l->call, true);
    }
    g_free(l);
}

static void put_duration(Callgraph *c, uint64_t ns)
{
    ht_output_colour(&c->o, ns >= 1000000 ? HT_COLOUR_RED :
                     ns >= 100000 ? HT_COLOUR_YELLOW : HT_COLOUR_NONE);
    ht_number_duration(c->o.text, ns, 9);
    ht_output_colour(&c->o, HT_COLOUR_NONE);
}

static void put_line(Callgraph *c, const Line *l)
{
    g_string_append_len(c->o.text, l->text->str, l->text->len);
    if (l->call) {
        if (l->what == LEAF) {
            put_duration(c, l->ns);
        } else {
            g_string_append(c->o.text, "         ");
        }
        g_string_append(c->o.text, " | ");
        g_string_append_len(c->o.text, l->call->str, l->call->len);
        g_string_append(c->o.text, l->what != LEAF ? "() {" :
                        l->cut ? "() { ... }" : "();");
    }
    g_string_append_c(c->o.text, '\n');
}

/*
 * Write the queued lines before the first BEGAN line. If @all is set, write all
 * lines. While the queue is longer than LINES_MAX, write BEGAN lines, too.
 */
static void put_lines(Callgraph *c, bool all)
{
    Line *l;

    while ((l = g_queue_peek_head(&c->lines)) != NULL &&
           (all || l->what != BEGAN || c->lines.length > LINES_MAX)) {
        unsigned cpu;

        for (cpu = 0; l->what == BEGAN && cpu < HT_FT_CPUS_MAX; cpu++) {
            c->open[cpu] = c->open[cpu] == l ? NULL : c->open[cpu];
        }
        put_line(c, l);
        free_line(g_queue_pop_head(&c->lines));
    }
}

static Line *new_line(Callgraph *c)
{
    Line *l = g_new0(Line, 1);

    l->text = g_string_new(NULL);
    l->what = CALLER;
    g_queue_push_tail(&c->lines, l);
    return l;
}

static void indent(GString *out, int32_t depth)
{
    int i;

    for (i = 0; i < MIN(depth, INDENT_MAX); i++) {
        g_string_append(out, "  ");
    }
}

static void put_name(Callgraph *c, const HtModelEvent *ev, uint64_t func,
                     GString *out)
{
    g_string_truncate(c->name, 0);
    ht_model_function(c->m, ev->boot, func, c->name);
    ht_escape(out, HT_ESCAPE_TERMINAL, c->name->str, c->name->len);
}

static Line *event_line(Callgraph *c, const HtModelEvent *ev)
{
    Line *l = new_line(c);
    gsize start;

    ht_number_seconds(l->text, ev->rec.ns, 6);
    g_string_append_printf(l->text, " [%03" PRIu32 "] ", ev->rec.cpu);
    start = l->text->len;
    ht_escape_str(l->text, HT_ESCAPE_TERMINAL, ev->task->comm);
    g_string_append_printf(l->text, "-%" PRId32, ev->rec.pid);
    while (l->text->len - start < 22) {
        g_string_append_c(l->text, ' ');
    }
    g_string_append_c(l->text, ' ');
    return l;
}

/*
 * Make the line in a processor's @open a CALLER: the line shows the begin of
 * the call, but not the end.
 */
static void close_line(Callgraph *c, uint32_t cpu)
{
    if (c->open[cpu]) {
        c->open[cpu]->what = CALLER;
        c->open[cpu] = NULL;
    }
}

static void put_lost(Callgraph *c, const HtModelEvent *ev,
                     const HtGraphStep *s)
{
    unsigned i;

    for (i = 0; i < s->lost->len; i++) {
        const HtFrame *f = &g_array_index(s->lost, HtFrame, i);

        if (f->mark) {
            Line *l;

            close_line(c, ev->rec.cpu);
            l = event_line(c, ev);
            g_string_append(l->text, "          | ");
            indent(l->text, f->depth);
            g_string_append(l->text, "} ");
            put_name(c, ev, f->func, l->text);
            g_string_append(l->text, ", its end was not recorded");
        }
    }
}

static void put_entry(Callgraph *c, const HtModelEvent *ev,
                      const HtGraphStep *s)
{
    Line *l = event_line(c, ev);

    l->what = BEGAN;
    l->func = s->frame.func;
    l->depth = s->frame.depth;
    l->pid = ev->rec.pid;
    l->call = g_string_new(NULL);
    indent(l->call, s->frame.depth);
    put_name(c, ev, s->frame.func, l->call);
    c->open[ev->rec.cpu] = l;
}

static void put_exit(Callgraph *c, const HtModelEvent *ev,
                     const HtGraphStep *s)
{
    Line *open = c->open[ev->rec.cpu];
    uint64_t ns = ht_elapsed(s->frame.ns, s->end_ns);
    Line *l;

    close_line(c, ev->rec.cpu);
    if (open && open->func == s->frame.func && open->pid == ev->rec.pid &&
        open->depth == s->frame.depth && !ev->rec.lost_before) {
        open->what = LEAF;
        open->ns = ns;
        open->cut = s->frame.cut;
        return;
    }
    l = event_line(c, ev);
    ht_number_duration(l->text, ns, 9);
    g_string_append(l->text, " | ");
    indent(l->text, s->frame.depth);
    g_string_append(l->text, "} ");
    put_name(c, ev, s->frame.func, l->text);
    if (!s->known) {
        g_string_append(l->text, ", from ");
        ht_number_seconds(l->text, s->frame.ns, 0);
    }
}

static void put_function(Callgraph *c, const HtModelEvent *ev,
                         const HtGraphStep *s)
{
    Line *l = event_line(c, ev);

    g_string_append(l->text, "          | ");
    indent(l->text, s->frame.depth);
    put_name(c, ev, ht_event_uint(ev, HT_F_FUNCTION_IP), l->text);
    g_string_append(l->text, " <- ");
    put_name(c, ev, ht_event_uint(ev, HT_F_FUNCTION_PARENT), l->text);
}

static void put_other(Callgraph *c, const HtModelEvent *ev)
{
    Line *l = event_line(c, ev);

    g_string_append(l->text, "          | ");
    ht_escape_str(l->text, HT_ESCAPE_TERMINAL, ev->class->name);
    g_string_append(l->text, ": ");
    ht_view_text(c->m, ev, false, c->name, l->text);
}

static void json_call(Callgraph *c, const HtModelEvent *ev, const HtFrame *f,
                      const uint64_t *end, bool known)
{
    HtJson j = { .out = c->o.text };

    g_string_truncate(c->name, 0);
    ht_model_function(c->m, ev->boot, f->func, c->name);
    ht_json_open(&j, NULL, '{');
    ht_json_text(&j, "func", c->name->str, c->name->len);
    ht_json_int(&j, "depth", f->depth);
    ht_json_uint(&j, "begin_ns", f->ns);
    if (end) {
        ht_json_uint(&j, "end_ns", *end);
    }
    ht_json_bool(&j, "begin_recorded", known);
    ht_json_uint(&j, "boot", ev->boot);
    ht_json_uint(&j, "segment", ev->rec.segment);
    ht_json_uint(&j, "cpu", ev->rec.cpu);
    ht_json_int(&j, "pid", ev->rec.pid);
    ht_json_str(&j, "task", ev->task->comm);
    ht_json_close(&j, '}');
    g_string_append_c(c->o.text, '\n');
}

static void put_json(Callgraph *c, const HtModelEvent *ev,
                     const HtGraphStep *s)
{
    HtKind kind = ev->class->kind;
    unsigned i;

    for (i = 0; i < s->lost->len; i++) {
        const HtFrame *f = &g_array_index(s->lost, HtFrame, i);

        if (f->mark) {
            json_call(c, ev, f, NULL, true);
        }
    }
    if (s->frame.mark && kind != HT_KIND_GRAPH_ENTRY) {
        json_call(c, ev, &s->frame,
                  kind == HT_KIND_GRAPH_EXIT ? &s->end_ns : NULL,
                  kind == HT_KIND_FUNCTION || s->known);
    }
}

static void put_sections(Callgraph *c, const HtModelEvent *ev)
{
    if (c->any && (ev->boot != c->boot || ev->rec.segment != c->segment)) {
        memset(c->open, 0, sizeof(c->open));
        put_lines(c, true);
        ht_view_section(ev, c->boot, c->o.text);
        g_string_append_c(c->o.text, '\n');
    }
    c->any = true;
    c->boot = ev->boot;
    c->segment = ev->rec.segment;
    if (ev->rec.lost_before) {
        ht_view_gap(ev, new_line(c)->text);
    }
}

static bool is_asked(Callgraph *c, const HtModelEvent *ev, uint64_t func)
{
    gpointer known;
    unsigned i;

    if (c->asked_boot != ev->boot) {
        g_hash_table_remove_all(c->asked);
        c->asked_boot = ev->boot;
    }
    if (g_hash_table_lookup_extended(c->asked, GSIZE_TO_POINTER(func), NULL,
                                     &known)) {
        return known != NULL;
    }
    g_string_truncate(c->name, 0);
    ht_model_function(c->m, ev->boot, func, c->name);
    for (i = 0; c->functions[i]; i++) {
        if (ht_pattern_match(c->functions[i], c->name->str)) {
            break;
        }
    }
    if (g_hash_table_size(c->asked) < FUNCTIONS_MAX) {
        g_hash_table_insert(c->asked, GSIZE_TO_POINTER(func),
                            GINT_TO_POINTER(c->functions[i] != NULL));
    }
    return c->functions[i] != NULL;
}

/* Get the innermost known call around the call of a step; NULL: none */
static HtFrame *caller(const HtModelEvent *ev, const HtGraphStep *s)
{
    const GArray *frames = s->stack->frames;
    bool itself = frames->len && ev->class->kind != HT_KIND_GRAPH_EXIT;
    unsigned outer = frames->len - itself;

    return outer ? &g_array_index(frames, HtFrame, outer - 1) : NULL;
}

/*
 * Check whether to show a call. For the end of a call, use the result for its
 * begin, if that was recorded. Without --function, show calls with a depth less
 * than --depth. With --function, set @frame->base to the depth of the innermost
 * call of such a function, which is @frame itself or a call around it, or to -1
 * without such a call. Show the calls less than --depth levels below that
 * depth.
 */
static bool wanted(Callgraph *c, const HtModelEvent *ev, const HtGraphStep *s,
                   HtFrame *frame)
{
    const HtFrame *outer = caller(ev, s);

    if (ev->class->kind == HT_KIND_GRAPH_EXIT && s->known) {
        return s->frame.mark;
    }
    if (!c->functions) {
        return s->frame.depth < c->depth;
    }
    frame->base = outer ? outer->base : -1;
    if (is_asked(c, ev, s->frame.func)) {
        frame->base = s->frame.depth;
    }
    return frame->base >= 0 && s->frame.depth >= frame->base &&
           s->frame.depth - frame->base < c->depth;
}

static void put_step(Callgraph *c, const HtModelEvent *ev, HtGraphStep *s)
{
    HtKind kind = ev->class->kind;
    GArray *frames = s->stack->frames;

    s->frame.mark = wanted(c, ev, s, &s->frame);
    c->shown |= s->frame.mark;
    if (kind != HT_KIND_GRAPH_EXIT && frames->len) {
        HtFrame *last = &g_array_index(frames, HtFrame, frames->len - 1);

        last->mark = s->frame.mark;
        last->base = s->frame.base;
    }
    if (c->v.json) {
        put_json(c, ev, s);
        return;
    }
    put_lost(c, ev, s);
    if (!s->frame.mark) {
        HtFrame *outer = caller(ev, s);

        if (outer) {
            outer->cut = true;
        }
        return;
    }
    if (kind != HT_KIND_GRAPH_EXIT) {
        close_line(c, ev->rec.cpu);
    }
    if (kind == HT_KIND_GRAPH_ENTRY) {
        put_entry(c, ev, s);
    } else if (kind == HT_KIND_GRAPH_EXIT) {
        put_exit(c, ev, s);
    } else {
        put_function(c, ev, s);
    }
}

static bool show(Callgraph *c, GError **errp)
{
    HtGraphStep step;
    HtModelEvent ev;

    while (ht_output_room(&c->o) && ht_view_next(&c->v, c->m, &ev)) {
        if (ev.rec.cpu >= HT_FT_CPUS_MAX) {
            continue;
        }
        if (!c->v.json) {
            put_sections(c, &ev);
        }
        if (ht_graph_event(c->graph, &ev, &step)) {
            c->found = true;
            put_step(c, &ev, &step);
        } else if (c->events && !c->v.json &&
                   ht_names_event(c->events, ev.class)) {
            close_line(c, ev.rec.cpu);
            put_other(c, &ev);
        }
        put_lines(c, false);
    }
    put_lines(c, true);
    if (c->found && !c->shown && c->function) {
        g_printerr("hypertrace callgraph: --function=%s: no such function was"
                   " called\n", c->function);
    }
    if (!c->found) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "no functions were recorded: they come from the kernel's"
                    " tracers function_graph and function, see"
                    " hypertrace-callgraph(1)");
    }
    return c->found;
}

static HtModel *open_model(Callgraph *c, const char *event, GError **errp)
{
    HtModel *m = ht_view_open(&c->v, errp);
    const HtFtFormats *formats = m ? ht_model_formats(m) : NULL;

    if (formats && event && !ht_names_check(event, formats, errp)) {
        g_prefix_error(errp, "--event: ");
        g_clear_pointer(&m, ht_model_free);
    }
    return m;
}

int ht_callgraph(int argc, char **argv)
{
    g_autofree Callgraph *c = g_new0(Callgraph, 1);
    g_autofree char *event = NULL;
    const GOptionEntry own[] = {
        { "function", 'f', 0, G_OPTION_ARG_FILENAME, &c->function,
          "only calls of these functions, and the calls within:"
          " vfs_*,do_exit", "LIST" },
        { "depth", 'd', 0, G_OPTION_ARG_INT, &c->depth,
          "only N levels of calls, counted from those of --function", "N" },
        { "event", 0, 0, G_OPTION_ARG_FILENAME, &event,
          "show these events among the calls: sched_switch,irq_*", "LIST" },
        { 0 }
    };
    GError *error = NULL;
    bool ok;
    int status;

    c->depth = G_MAXINT;
    if (!ht_view_parse(&c->v, &argc, argv, "Show calls of functions and their"
                       " durations.", HT_VIEW_TIME | HT_VIEW_CPU |
                       HT_VIEW_TASK | HT_VIEW_BOOT | HT_VIEW_OUTPUT, own,
                       &status)) {
        ht_view_free(&c->v);
        return status;
    }
    if (c->depth < 1) {
        g_set_error(&error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--depth=%d: must be 1 or more", c->depth);
    }
    if (error || !ht_names_whole("--function", c->function, &error) ||
        !ht_names_whole("--event", event, &error)) {
        status = ht_usage_error("%s", error->message);
        g_error_free(error);
        g_free(c->function);
        ht_view_free(&c->v);
        return status;
    }
    ht_view_output(&c->v, &c->o);
    c->name = g_string_new(NULL);
    c->events = event ? ht_names_new(event) : NULL;
    c->functions = c->function ? g_strsplit(c->function, ",", -1) : NULL;
    c->m = open_model(c, event, &error);
    c->graph = ht_graph_new(c->m);
    c->asked = g_hash_table_new(NULL, NULL);
    ok = c->m && show(c, &error);
    status = ht_view_finish(&c->o, ok, error);
    ht_graph_free(c->graph);
    g_hash_table_destroy(c->asked);
    ht_model_free(c->m);
    g_queue_clear_full(&c->lines, free_line);
    ht_names_free(c->events);
    g_clear_pointer(&c->functions, g_strfreev);
    g_string_free(c->name, true);
    g_free(c->function);
    ht_view_free(&c->v);
    return status;
}
