/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: show the time of each part of a boot, or compare two boots
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "views/boot.h"
#include "views/view.h"

#define NAME_WIDTH      30
#define SLOWEST_DEFAULT 15
/* Functions printed for each initcall */
#define INSIDE_ROWS     3

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

/* Draw a bar whose position and length show the part of the boot. */
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

/* If a path is too long, show only the file's name. */
static void put_name(HtOutput *o, const char *name)
{
    const char *base = strlen(name) > NAME_WIDTH ?
                       strrchr(name, '/') : NULL;

    ht_output_padded(o, base && base[1] ? base + 1 : name, NAME_WIDTH);
}

/* The functions of an initcall, below it: own time, number of calls */
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
                               f->calls == 1 ? "" : "s");
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
        put_functions(o, c->functions);
    }
    if (i < all->len) {
        g_string_append_printf(o->text, "  and %u faster ones; --slowest=N"
                               " lists N\n", all->len - i);
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
                               " ms. After that, times here are later than"
                               " those of the log.\n", b->back_ns / 1e6);
    }
    if (b->boots > 1) {
        g_string_append_printf(o->text, "This is boot %u of %u; --boot=N"
                               " selects another.\n", b->boot, b->boots);
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
        g_string_append_printf(o->text, "%" PRIu64 " more initcalls and"
                               " processes were left out: too many\n",
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
                               " --slowest=N lists N\n", all->len - i);
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
          "also draw the boot as a picture", "FILE" },
        { "to", 0, 0, G_OPTION_ARG_STRING, &to,
          "skip events after TIME: 12 (seconds), 3500ms", "TIME" },
        { 0 }
    };
    HtView v = { 0 };
    HtBoot *boots[2] = { NULL, NULL };
    GError *error = NULL;
    bool ok, from_end;
    HtOutput o;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Show the time of each part of a boot,"
                       " or compare the boots of two recordings.",
                       HT_VIEW_BOOT | HT_VIEW_OUTPUT |
                       HT_VIEW_TWO, own, &status)) {
        ht_view_free(&v);
        return status;
    }
    if (rows < 0 || (svg && argc > 2)) {
        ht_view_free(&v);
        return rows < 0 ? ht_usage_error("--slowest=%d: must be 0 or more",
                                         rows)
               : ht_usage_error("--svg draws one recording, not two");
    }
    if (to && (!ht_number_time("--to", to, &to_ns, &from_end, &error) ||
               from_end)) {
        ht_view_free(&v);
        status = ht_usage_error("%s", error ? error->message :
                                "--to: a negative time is not possible here;"
                                " give a time of the guest's clock");
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
