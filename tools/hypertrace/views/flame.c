/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: show the time of each stack of names
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "views/flame.h"
#include "views/view.h"

/* Least percentage of the whole time for which a node is printed as text */
#define TREE_PART   0.5
#define TREE_DEPTH  24

typedef struct Flame {
    HtView v;
    HtModel *m;
    HtOutput o;
    char *of;
    char *svg;
    char *speedscope;
    gboolean folded;
    /*
     * print the tree as text: @folded is not set; and --output names a text
     * file, or neither @svg nor @speedscope is set
     */
    bool tree;
    /* a tree for each value of --of; NULL: not collected */
    HtFlame *calls, *cpu, *off;
    /* the tree to show: @calls, @cpu or @off */
    HtFlame *chosen;
    char *title;
    gboolean by_host;
    HtHostSplit *host;
} Flame;

/*
 * Collect what --of names. Without --of, collect functions and cpu, and choose
 * functions if their tree has any time, else cpu.
 */
static bool collect(Flame *f, GError **errp)
{
    HtFlameCalls *calls = NULL;
    HtFlameCpu *cpu = NULL;
    HtFlameOff *off = NULL;
    HtModelEvent ev;

    if (!f->of || !strcmp(f->of, "functions")) {
        f->calls = ht_flame_new();
        calls = ht_flame_calls_new(f->calls, f->m);
    }
    if (!f->of || !strcmp(f->of, "cpu")) {
        f->cpu = ht_flame_new();
        cpu = ht_flame_cpu_new(f->cpu, f->m, f->host);
    }
    if (f->of && !strcmp(f->of, "off-cpu")) {
        f->off = ht_flame_new();
        off = ht_flame_off_new(f->off, f->m);
    }
    while (ht_view_next(&f->v, f->m, &ev)) {
        if (calls) {
            ht_flame_calls_event(calls, &ev);
        }
        if (cpu) {
            ht_flame_cpu_event(cpu, &ev);
        }
        if (off) {
            ht_flame_off_event(off, &ev);
        }
    }
    if (calls) {
        ht_flame_calls_end(calls);
        f->chosen = f->calls;
    }
    if (cpu) {
        ht_flame_cpu_end(cpu);
        if (!calls || !ht_flame_sum(ht_flame_root(f->calls))) {
            f->chosen = f->cpu;
        }
    }
    if (off) {
        ht_flame_off_end(off);
        f->chosen = f->off;
    }
    if (ht_flame_sum(ht_flame_root(f->chosen))) {
        return true;
    }
    g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                f->chosen == f->calls ?
                "no functions were recorded, see hypertrace-callgraph(1);"
                " --of=cpu works with every recording" :
                "there is no time between two events, so that there is nothing"
                " to show");
    return false;
}

static void put_name(GString *out, const char *name)
{
    gsize from = out->len;

    ht_escape_str(out, HT_ESCAPE_TERMINAL, name);
    for (; from < out->len; from++) {
        if (out->str[from] == ';') {
            out->str[from] = ':';
        }
    }
}

/*
 * Print a line "outer;inner nanoseconds" for each node with time of its own
 * (HtFlameNode.self).
 */
static void put_folded(HtOutput *o, const HtFlameNode *n, GString *stack)
{
    g_autoptr(GPtrArray) above = ht_flame_sorted(n);
    gsize len = stack->len;
    unsigned i;

    if (n->self) {
        g_string_append_printf(o->text, "%s %" PRIu64 "\n", stack->str,
                               n->self);
    }
    for (i = 0; i < above->len && ht_output_room(o); i++) {
        const HtFlameNode *child = above->pdata[i];

        g_string_append(stack, len ? ";" : "");
        put_name(stack, child->name);
        put_folded(o, child, stack);
        g_string_truncate(stack, len);
    }
}

static gint by_total(gconstpointer a, gconstpointer b)
{
    const HtFlameNode *x = *(HtFlameNode * const *)a;
    const HtFlameNode *y = *(HtFlameNode * const *)b;

    return x->total < y->total ? 1 : x->total > y->total ? -1 :
           strcmp(x->name, y->name);
}

/*
 * Print a line for each node above @n that has at least TREE_PART percent of
 * the time @all. Nodes directly above the same node are sorted by falling time.
 * Returns false if a node was left out because of TREE_DEPTH.
 */
static bool put_tree(HtOutput *o, const HtFlameNode *n, uint64_t all,
                     unsigned depth)
{
    g_autoptr(GPtrArray) above = ht_flame_sorted(n);
    bool whole = true;
    unsigned i;

    g_ptr_array_sort(above, by_total);
    for (i = 0; i < above->len && ht_output_room(o); i++) {
        const HtFlameNode *child = above->pdata[i];
        double part = 100.0 * child->total / all;

        if (part < TREE_PART) {
            break;
        }
        if (depth >= TREE_DEPTH) {
            return false;
        }
        g_string_append_printf(o->text, "%5.1f %%  %10.3f ms  %*s", part,
                               child->total / 1e6, 2 * (int)depth, "");
        ht_escape_str(o->text, HT_ESCAPE_TERMINAL, child->name);
        g_string_append_c(o->text, '\n');
        whole &= put_tree(o, child, all, depth + 1);
    }
    return whole;
}

static bool write_file(const char *path, HtFlame *f, const char *title,
                       void (*put)(HtFlame *, const char *, GString *),
                       GError **errp)
{
    HtOutput o;

    if (!ht_output_file(&o, path, errp)) {
        return false;
    }
    put(f, title, o.text);
    return ht_output_finish(&o, errp);
}

static bool draw(Flame *f, GError **errp)
{
    const char *release = ht_model_info(f->m, "guest", "release");

    f->title = g_strdup_printf("%s%s%s",
                               f->chosen == f->calls ? "Calls of functions" :
                               f->chosen == f->cpu ? "Time on the CPUs" :
                               "Time off the CPUs",
                               *release ? ", Linux " : "", release);
    if (f->svg && !write_file(f->svg, f->chosen, f->title, ht_flame_svg,
                              errp)) {
        return false;
    }
    if (f->speedscope && !write_file(f->speedscope, f->chosen, f->title,
                                     ht_flame_speedscope, errp)) {
        return false;
    }
    return true;
}

static void print(Flame *f)
{
    if (f->tree) {
        g_string_append_printf(f->o.text, "%s\n", f->title);
        if (!put_tree(&f->o, ht_flame_root(f->chosen),
                      MAX(ht_flame_root(f->chosen)->total, 1), 0)) {
            g_string_append_printf(f->o.text, "names within more than %d others"
                                   " were left out; --folded prints all\n",
                                   TREE_DEPTH);
        }
    } else if (f->folded) {
        g_autoptr(GString) stack = g_string_new(NULL);

        put_folded(&f->o, ht_flame_root(f->chosen), stack);
    }
}

static bool clashes(const Flame *f, int *status)
{
    const char *page = f->v.output ? f->v.output : "-";
    const HtOutputName outputs[] = {
        { f->folded ? "--folded" : "--output",
          f->folded || f->tree ? page : NULL },
        { "--svg", f->svg },
        { "--speedscope", f->speedscope },
    };
    g_autofree char *same = ht_output_clash(outputs, G_N_ELEMENTS(outputs));

    if (same) {
        *status = ht_usage_error("%s", same);
    }
    return same;
}

static bool check(Flame *f, int *status)
{
    if (f->of && strcmp(f->of, "functions") && strcmp(f->of, "cpu") &&
        strcmp(f->of, "off-cpu")) {
        *status = ht_usage_error("--of=%s: must be functions, cpu or off-cpu",
                                 f->of);
        return false;
    }
    if (f->by_host && f->of && strcmp(f->of, "cpu")) {
        *status = ht_usage_error("--host splits the time on the CPUs: give"
                                 " --of=cpu");
        return false;
    }
    if (f->by_host && !f->of) {
        f->of = g_strdup("cpu");
    }
    if (f->v.output && g_str_has_suffix(f->v.output, ".svg") && !f->svg) {
        f->svg = g_steal_pointer(&f->v.output);
    } else if (f->v.output && g_str_has_suffix(f->v.output, ".json") &&
               !f->speedscope) {
        f->speedscope = g_steal_pointer(&f->v.output);
    } else if (f->v.output && g_str_has_suffix(f->v.output, ".folded")) {
        f->folded = true;
    }
    f->tree = !f->folded && (f->v.output || (!f->svg && !f->speedscope));
    return !clashes(f, status);
}

static void free_flame(Flame *f)
{
    ht_flame_free(f->calls);
    ht_flame_free(f->cpu);
    ht_flame_free(f->off);
    ht_host_split_free(f->host);
    ht_model_free(f->m);
    ht_view_free(&f->v);
    g_free(f->of);
    g_free(f->svg);
    g_free(f->speedscope);
    g_free(f->title);
}

int ht_flame(int argc, char **argv)
{
    Flame f = { 0 };
    const GOptionEntry own[] = {
        { "of", 0, 0, G_OPTION_ARG_STRING, &f.of,
          "functions, cpu or off-cpu (default: functions if they were"
          " recorded, else cpu)", "KIND" },
        { "host", 0, 0, G_OPTION_ARG_NONE, &f.by_host, HT_HOST_SPLIT_HELP,
          NULL },
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &f.svg,
          "draw a flame graph; a click on a name enlarges it", "FILE" },
        { "folded", 0, 0, G_OPTION_ARG_NONE, &f.folded,
          "print a line for each stack, with nanoseconds", NULL },
        { "speedscope", 0, 0, G_OPTION_ARG_FILENAME, &f.speedscope,
          "write a file for speedscope.app", "FILE" },
        { 0 }
    };
    GError *error = NULL;
    bool ok;
    int status;

    if (!ht_view_parse(&f.v, &argc, argv, "Show the time of each stack of"
                       " names.", HT_VIEW_TIME | HT_VIEW_CPU | HT_VIEW_BOOT |
                       HT_VIEW_FILE,
                       own, &status) || !check(&f, &status)) {
        free_flame(&f);
        return status;
    }
    f.m = ht_view_open(&f.v, &error);
    f.host = f.m && f.by_host ? ht_host_split_new(f.v.dir, f.m, &error) : NULL;
    ok = f.m && !error && collect(&f, &error) && draw(&f, &error);
    /*
     * Only one output file may be open at a time: open that of --output after
     * draw() has closed the SVG and speedscope files.
     */
    ht_view_output(&f.v, &f.o);
    if (ok) {
        print(&f);
    }
    status = ht_view_finish(&f.o, ok, error);
    free_flame(&f);
    return status;
}
