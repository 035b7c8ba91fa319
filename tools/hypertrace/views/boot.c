/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: show the time of each part of a boot, or compare boots
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "views/boot-limits.h"
#include "views/view.h"

#define NAME_WIDTH      30
#define SLOWEST_DEFAULT 15
/* Maximum number of functions printed for an initcall */
#define INSIDE_ROWS     3

static const HtColour colours[] = {
    HT_COLOUR_BLUE, HT_COLOUR_YELLOW, HT_COLOUR_GREEN, HT_COLOUR_CYAN,
    HT_COLOUR_RED,
};

/* Append a bar from @begin to @end; the full width means the whole boot. */
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

/*
 * Append a name in NAME_WIDTH columns. If @name is longer and has a '/', append
 * only the part after the last '/'.
 */
void ht_boot_put_name(HtOutput *o, const char *name)
{
    const char *base = strlen(name) > NAME_WIDTH ?
                       strrchr(name, '/') : NULL;

    ht_output_padded(o, base && base[1] ? base + 1 : name, NAME_WIDTH);
}

/*
 * Append a line for each of the first INSIDE_ROWS functions of an initcall: own
 * time if it is known, and number of calls.
 */
static void put_functions(HtOutput *o, const GArray *functions)
{
    unsigned i;

    for (i = 0; functions && i < functions->len && i < INSIDE_ROWS; i++) {
        const HtBootFunction *f = &g_array_index(functions, HtBootFunction, i);

        g_string_append(o->text, "    ");
        ht_output_padded(o, f->name, NAME_WIDTH - 2);
        if (f->timed) {
            g_string_append_printf(o->text, " %11s  %11.3f own,", "",
                                   f->own_ns / 1e6);
        } else {
            g_string_append_printf(o->text, " %11s  %11s     ", "", "");
        }
        g_string_append_printf(o->text, " %" PRIu64 " call%s\n", f->calls,
                               ht_number_s(f->calls));
    }
}

static void put_items(HtOutput *o, const HtBoot *b, const GArray *items,
                      unsigned rows, HtColour colour)
{
    g_autoptr(GPtrArray) all = slowest(items);
    unsigned i;

    for (i = 0; i < all->len && i < rows; i++) {
        const HtBootItem *c = all->pdata[i];

        g_string_append(o->text, "  ");
        ht_boot_put_name(o, c->name);
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
        put_functions(o, c->functions);
    }
    if (i < all->len) {
        g_string_append_printf(o->text, "  and %u faster one%s; --slowest=N"
                               " lists N\n", all->len - i,
                               ht_number_s(all->len - i));
    }
}

static void put_text(HtOutput *o, const HtBoot *b, unsigned rows)
{
    unsigned i;

    g_string_append(o->text, *b->release ? "Boot of Linux " :
                    "Boot of the guest");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, b->release);
    g_string_append_printf(o->text, ": %.3f s, %" PRIu64 " event%s",
                           ht_elapsed(b->begin, b->end) / 1e9, b->events,
                           ht_number_s(b->events));
    if (b->gaps) {
        g_string_append_printf(o->text, ", some lost in %" PRIu64 " gap%s",
                               b->gaps, ht_number_s(b->gaps));
    }
    g_string_append_c(o->text, '\n');
    if (b->steps) {
        g_string_append_printf(o->text, "The guest's clock went back by %.3f"
                               " ms. After that, times here are later than"
                               " those of the log.\n", b->back_ns / 1e6);
    }
    if (b->boots > 1) {
        g_string_append_printf(o->text, "This is boot %u of %u; --boot=N"
                               " selects another.\n", b->boot, b->boots);
    }
    g_string_append_c(o->text, '\n');
    if (b->host) {
        ht_host_split_text(b->host, &b->split, o);
    }
    ht_output_heading(o, b->host ? "  phase                             from ms"
                      "          ms   share     exits    stolen" :
                      "  phase                             from ms"
                      "          ms   share");
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
        if (b->host) {
            ht_host_split_share(&p->split, HT_SPLIT_EXITS, o);
            ht_host_split_share(&p->split, HT_SPLIT_STOLEN, o);
        }
        put_bar(o, b, p->begin, p->end, colours[i % G_N_ELEMENTS(colours)]);
    }
    if (b->initcalls->len) {
        g_string_append_c(o->text, '\n');
        ht_output_heading(o, "  slowest initcalls                 from ms"
                          "          ms level");
        put_items(o, b, b->initcalls, rows, HT_COLOUR_YELLOW);
    }
    if (b->processes->len) {
        g_string_append_c(o->text, '\n');
        ht_output_heading(o, "  longest processes                 from ms"
                          "          ms   CPU ms");
        put_items(o, b, b->processes, rows, HT_COLOUR_CYAN);
    }
    if (b->left_out) {
        g_string_append_printf(o->text, "left out, because there are too many"
                               " initcalls or processes: %" PRIu64 "\n",
                               b->left_out);
    }
}

static void json_functions(HtJson *j, const GArray *functions)
{
    unsigned i;

    ht_json_open(j, "functions", '[');
    for (i = 0; i < functions->len; i++) {
        const HtBootFunction *f = &g_array_index(functions, HtBootFunction, i);

        ht_json_open(j, NULL, '{');
        ht_json_str(j, "name", f->name);
        ht_json_uint(j, "calls", f->calls);
        if (f->timed) {
            ht_json_uint(j, "own_ns", f->own_ns);
        }
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
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
        if (c->functions) {
            json_functions(j, c->functions);
        }
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

static void json_boot(HtJson *j, const HtBoot *b)
{
    unsigned i;

    ht_json_begin(j);
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
        if (b->host) {
            ht_host_split_json(&p->split, "host", j);
        }
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
    json_items(j, "initcalls", b->initcalls);
    json_items(j, "processes", b->processes);
    ht_json_close(j, '}');
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

static bool write_junit(const GArray *checks, const char *file, GError **errp)
{
    HtOutput xml;

    if (!ht_output_file(&xml, file, errp)) {
        return false;
    }
    ht_boot_junit(checks, xml.text);
    return ht_output_finish(&xml, errp);
}

static void put_json(HtOutput *o, const GPtrArray *boots)
{
    HtJson j = { .out = o->text };
    unsigned i;

    if (boots->len > 1) {
        ht_json_open(&j, NULL, '[');
    }
    for (i = 0; i < boots->len; i++) {
        json_boot(&j, boots->pdata[i]);
    }
    if (boots->len > 1) {
        ht_json_close(&j, ']');
    }
    g_string_append_c(o->text, '\n');
}

typedef struct Options {
    gint rows;
    char *svg;
    char *to;
    uint64_t to_ns;
    char **max;
    GArray *limits;
    gboolean regression;
    gboolean by_host;
    char *junit;
} Options;

static void free_options(Options *opt)
{
    g_free(opt->svg);
    g_free(opt->to);
    g_strfreev(opt->max);
    g_clear_pointer(&opt->limits, g_array_unref);
    g_free(opt->junit);
}

static bool check_options(Options *opt, unsigned recordings, GError **errp)
{
    bool from_end = false;

    opt->limits = ht_boot_limits_parse(opt->max, errp);
    if (!opt->limits) {
        return false;
    }
    if (opt->to && !ht_number_time("--to", opt->to, &opt->to_ns, &from_end,
                                   errp)) {
        return false;
    }
    if (from_end) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--to: a boot's end is not counted from the end of the"
                    " recording");
    } else if (opt->rows < 0) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--slowest=%d: must be 0 or more", opt->rows);
    } else if (opt->svg && recordings > 1) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--svg draws one recording, not %u", recordings);
    } else if (opt->by_host && recordings > 1) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--host splits the times of one recording, not of %u",
                    recordings);
    } else if (opt->regression && recordings <= HT_BOOT_EARLIER_MIN) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--regression needs at least %d earlier recordings before"
                    " the one that it checks", HT_BOOT_EARLIER_MIN);
    } else if (opt->junit && !opt->limits->len && !opt->regression) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "--junit has nothing to write without --max or"
                    " --regression");
    } else {
        return true;
    }
    return false;
}

static GPtrArray *collect(const HtView *v, const Options *opt, char **dirs,
                          unsigned count, GError **errp)
{
    g_autoptr(GPtrArray) boots =
        g_ptr_array_new_with_free_func((GDestroyNotify)ht_boot_free);
    unsigned i;

    for (i = 0; i < count; i++) {
        HtBoot *b = ht_boot_collect(dirs[i], v->boot, opt->to_ns,
                                    opt->by_host, errp);

        if (!b) {
            return NULL;
        }
        g_ptr_array_add(boots, b);
    }
    return g_steal_pointer(&boots);
}

static int report_checks(const GArray *checks)
{
    unsigned i;

    for (i = 0; i < checks->len; i++) {
        const HtBootCheck *c = &g_array_index(checks, HtBootCheck, i);

        if (c->failure) {
            ht_error("%s", c->failure);
        }
    }
    return ht_boot_failures(checks) ? HT_EXIT_LIMIT : HT_EXIT_OK;
}

/*
 * Check whether the page is printed. If the SVG or JUnit file goes to standard
 * output, the page is printed only with --output or --json.
 */
static bool has_page(const HtView *v, const Options *opt)
{
    return v->output || v->json || !(ht_output_is_stdout(opt->svg) ||
                                     ht_output_is_stdout(opt->junit));
}

static char *clash(const HtView *v, const Options *opt)
{
    const HtOutputName outputs[] = {
        { v->output ? "--output" : "--json",
          v->output ? v->output : has_page(v, opt) ? "-" : NULL },
        { "--svg", opt->svg },
        { "--junit", opt->junit },
    };

    return ht_output_clash(outputs, G_N_ELEMENTS(outputs));
}

static int show(const HtView *v, const Options *opt, const GPtrArray *boots)
{
    g_autoptr(GArray) checks = ht_boot_check(boots, opt->limits,
                                             opt->regression);
    GError *error = NULL;
    HtOutput o;
    int status;
    bool ok;

    ok = (!opt->svg || draw(boots->pdata[0], opt->svg, &error)) &&
         (!opt->junit || write_junit(checks, opt->junit, &error));
    if (ok && !has_page(v, opt)) {
        return report_checks(checks);
    }
    /*
     * The SVG and JUnit files are complete. Only one output file may be open at
     * a time, so the page's file is opened last.
     */
    ht_view_output(v, &o);
    if (ok && v->json) {
        put_json(&o, boots);
    } else if (ok && boots->len > 1) {
        ht_boot_compare(&o, boots, opt->rows);
    } else if (ok) {
        put_text(&o, boots->pdata[0], opt->rows);
    }
    status = ht_view_finish(&o, ok, error);
    return status == HT_EXIT_OK ? report_checks(checks) : status;
}

int ht_boot(int argc, char **argv)
{
    Options opt = { .rows = SLOWEST_DEFAULT, .to_ns = UINT64_MAX };
    const GOptionEntry own[] = {
        { "host", 0, 0, G_OPTION_ARG_NONE, &opt.by_host, HT_HOST_SPLIT_HELP,
          NULL },
        { "slowest", 'n', 0, G_OPTION_ARG_INT, &opt.rows,
          "list N initcalls and N processes (15)", "N" },
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &opt.svg,
          "also draw the boot", "FILE" },
        { "to", 0, 0, G_OPTION_ARG_STRING, &opt.to,
          "ignore events after TIME: 12, 3500ms", "TIME" },
        { "max", 0, 0, G_OPTION_ARG_STRING_ARRAY, &opt.max,
          "exit with 4 if the boot, or a phase, takes longer: 5s, init=2s",
          "[PHASE=]TIME" },
        { "regression", 0, 0, G_OPTION_ARG_NONE, &opt.regression,
          "exit with 4 if the last boot is slower than those before", NULL },
        { "junit", 0, 0, G_OPTION_ARG_FILENAME, &opt.junit,
          "write the results of --max and --regression for CI", "FILE" },
        { 0 }
    };
    HtView v = { 0 };
    g_autoptr(GPtrArray) boots = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    if (ht_view_parse(&v, &argc, argv, "Show the time of each part of a boot;"
                      " with several recordings, the differences of the last"
                      " one to the earlier ones.",
                      HT_VIEW_BOOT | HT_VIEW_OUTPUT | HT_VIEW_MANY, own,
                      &status)) {
        g_autofree char *same = clash(&v, &opt);

        if (same) {
            status = ht_usage_error("%s", same);
        } else if (!check_options(&opt, argc - 1, &error)) {
            status = ht_usage_error("%s", error->message);
        } else {
            boots = collect(&v, &opt, argv + 1, argc - 1, &error);
            status = boots ? show(&v, &opt, boots) :
                             ht_error("%s", error->message);
        }
    }
    free_options(&opt);
    ht_view_free(&v);
    return status;
}
