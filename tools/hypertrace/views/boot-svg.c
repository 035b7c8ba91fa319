/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot --svg: draw a boot as a picture
 *
 * Time runs to the right. There is one row for the phases, one for each level
 * of initcalls, and one for each of the longest processes.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/number.h"
#include "views/boot.h"

#define WIDTH           1200
#define LEFT            24
#define RIGHT           24
#define TOP             84
#define ROW             20
#define BAR             14
#define ROWS_MAX        80
#define LEVELS_MAX      32
/* Maximum number of bars of a level */
#define CALLS_MAX       200
/* width of a character in pixels; approximate, for the font below */
#define CHAR_WIDTH      6.8
#define PLOT            (WIDTH - LEFT - RIGHT)

typedef struct Picture {
    GString *out;
    uint64_t begin;
    uint64_t span;
    double bottom;
    double y;
} Picture;

static const char style[] =
    "<style>"
    "svg{background:#fff;color-scheme:light}"
    "text{font:11px 'DejaVu Sans',Verdana,sans-serif;fill:#24292f}"
    ".title{font-size:15px;font-weight:bold}"
    ".dim{fill:#57606a}"
    ".head{font-weight:bold}"
    ".grid{stroke:#d8dee4;stroke-width:1}"
    ".p0{fill:#8fb4d9}.p1{fill:#e3a857}.p2{fill:#b9c8a0}.p3{fill:#c9a3c7}"
    ".p4{fill:#8cc7b5}.p5{fill:#d99a8f}"
    ".call{fill:#c77f1e}.run{fill:#bcd9cf}.cpu{fill:#2f8f74}"
    "</style>\n";

static void number(GString *out, double v)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append(out, g_ascii_formatd(buf, sizeof(buf), "%.2f", v));
}

static void attribute(GString *out, const char *name, double v)
{
    g_string_append_printf(out, " %s=\"", name);
    number(out, v);
    g_string_append_c(out, '"');
}

static double at(const Picture *p, uint64_t ns)
{
    uint64_t since = ht_elapsed(p->begin, ns);

    return LEFT + (double)MIN(since, p->span) / p->span * PLOT;
}

static void duration(GString *out, uint64_t ns)
{
    const char *unit = "s";
    double v = ns / 1e9;
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    if (ns < 1000000) {
        v = ns / 1e3;
        unit = "\302\265s";
    } else if (ns < 1000000000) {
        v = ns / 1e6;
        unit = "ms";
    }
    g_string_append_printf(out, "%s %s",
                           g_ascii_formatd(buf, sizeof(buf),
                                           v < 10 ? "%.2f" :
                                           v < 100 ? "%.1f" : "%.0f", v),
                           unit);
}

static void text(const Picture *p, const char *class, double x, double y,
                 bool to_the_left, const char *s)
{
    g_string_append_printf(p->out, "<text class=\"%s\"", class);
    attribute(p->out, "x", x);
    attribute(p->out, "y", y);
    g_string_append(p->out, to_the_left ? " text-anchor=\"end\">" : ">");
    ht_escape_str(p->out, HT_ESCAPE_XML, s);
    g_string_append(p->out, "</text>\n");
}

/* Draw a bar. @tip is its tooltip, and already escaped. */
static void bar(const Picture *p, const char *class, uint64_t begin,
                uint64_t end, double y, double height, const char *tip)
{
    double x = at(p, begin), width = at(p, end) - x;

    g_string_append_printf(p->out, "<rect class=\"%s\"", class);
    attribute(p->out, "x", x);
    attribute(p->out, "y", y);
    attribute(p->out, "width", MAX(width, 0.75));
    attribute(p->out, "height", height);
    g_string_append_printf(p->out, "><title>%s</title></rect>\n", tip);
}

static char *tip(const char *name, uint64_t begin, HtDuration took)
{
    GString *s = g_string_new(NULL);

    ht_escape_str(s, HT_ESCAPE_XML, name);
    g_string_append(s, ": ");
    if (ht_duration_known(took)) {
        duration(s, took.ns);
    } else {
        g_string_append(s, "duration not known");
    }
    g_string_append(s, ", from ");
    number(s, begin / 1e6);
    g_string_append(s, " ms");
    return g_string_free(s, false);
}

/*
 * Choose a step of 1, 2 or 5 times a power of ten, so that the plot has about
 * eight steps.
 */
static double grid_step(double span)
{
    double power = pow(10, floor(log10(span / 8)));
    double f = span / 8 / power;

    return (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10) * power;
}

static void grid(const Picture *p)
{
    double step = grid_step(p->span), ns;

    for (ns = 0; ns <= p->span; ns += step) {
        double x = LEFT + ns / p->span * PLOT;
        g_autoptr(GString) label = g_string_new(NULL);

        g_string_append(p->out, "<line class=\"grid\"");
        attribute(p->out, "x1", x);
        attribute(p->out, "x2", x);
        attribute(p->out, "y1", TOP - 14);
        attribute(p->out, "y2", p->bottom);
        g_string_append(p->out, "/>\n");
        if (ns == 0) {
            g_string_append_c(label, '0');
        } else {
            duration(label, ns);
        }
        text(p, "dim", MIN(x + 3, WIDTH - RIGHT - 30), TOP - 17, false,
             label->str);
    }
}

static void draw_phases(Picture *p, const HtBoot *b)
{
    unsigned i;

    text(p, "head", LEFT, p->y + 11, false, "phases");
    p->y += ROW;
    for (i = 0; i < b->phases->len; i++) {
        const HtBootPhase *f = &g_array_index(b->phases, HtBootPhase, i);
        g_autofree char *t = tip(f->name, f->begin,
                                 ht_duration(f->begin, f->end));
        g_autoptr(GString) label = g_string_new(f->name);
        char class[] = "p0";
        double x = at(p, f->begin), room = at(p, f->end) - x;

        class[1] = '0' + i % 6;
        bar(p, class, f->begin, f->end, p->y, ROW + 4, t);
        g_string_append_c(label, ' ');
        duration(label, ht_elapsed(f->begin, f->end));
        if (g_utf8_strlen(label->str, -1) * CHAR_WIDTH + 8 < room) {
            text(p, "", x + 4, p->y + 16, false, label->str);
        } else if (strlen(f->name) * CHAR_WIDTH + 8 < room) {
            text(p, "", x + 4, p->y + 16, false, f->name);
        }
    }
    p->y += ROW + 4 + 16;
}

static gint by_duration(gconstpointer a, gconstpointer b)
{
    const HtBootItem *x = *(const HtBootItem * const *)a;
    const HtBootItem *y = *(const HtBootItem * const *)b;
    return ht_duration_longer(x->took, y->took);
}

/*
 * List the first LEVELS_MAX levels of initcalls. @others is set to the number
 * of initcalls of other levels.
 */
static GPtrArray *choose_levels(const HtBoot *b, unsigned *others)
{
    GPtrArray *levels = g_ptr_array_new();
    unsigned i;

    *others = 0;
    for (i = 0; i < b->initcalls->len; i++) {
        const HtBootItem *c = &g_array_index(b->initcalls, HtBootItem, i);

        if (g_ptr_array_find(levels, c->level, NULL)) {
            continue;
        }
        if (levels->len < LEVELS_MAX) {
            g_ptr_array_add(levels, (gpointer)c->level);
        } else {
            ++*others;
        }
    }
    return levels;
}

/*
 * Draw a row for each level of initcalls, with the name of its longest
 * initcall.
 */
static void draw_initcalls(Picture *p, const HtBoot *b)
{
    unsigned others, i, k;
    g_autoptr(GPtrArray) levels = choose_levels(b, &others);

    if (!levels->len) {
        return;
    }
    text(p, "head", LEFT, p->y + 11, false, "initcalls");
    p->y += ROW;
    for (k = 0; k < levels->len; k++) {
        g_autoptr(GPtrArray) calls = g_ptr_array_new();
        const HtBootItem *longest;
        g_autoptr(GString) label = g_string_new(NULL);
        uint64_t begin = UINT64_MAX, end = 0;
        double width;

        for (i = 0; i < b->initcalls->len; i++) {
            const HtBootItem *c = &g_array_index(b->initcalls, HtBootItem, i);

            if (c->level == levels->pdata[k]) {
                g_ptr_array_add(calls, (gpointer)c);
                begin = MIN(begin, c->begin);
                end = MAX(end, c->end);
            }
        }
        g_ptr_array_sort(calls, by_duration);
        for (i = 0; i < MIN(calls->len, CALLS_MAX); i++) {
            const HtBootItem *c = calls->pdata[i];
            g_autofree char *t = tip(c->name, c->begin, c->took);

            bar(p, "call", c->begin, c->end, p->y, BAR, t);
        }
        longest = calls->pdata[0];
        g_string_append_printf(label, "%s: %u, longest %s ",
                               *longest->level ? longest->level : "(no level)",
                               calls->len, longest->name);
        duration(label, ht_duration_ns(longest->took));
        if (calls->len > CALLS_MAX) {
            unsigned n = calls->len - CALLS_MAX;

            g_string_append_printf(label, "; %u shorter %s not drawn", n,
                                   ht_number_form(n, "one is", "ones are"));
        }
        width = g_utf8_strlen(label->str, -1) * CHAR_WIDTH;
        if (at(p, end) + 6 + width < WIDTH) {
            text(p, "", at(p, end) + 6, p->y + 11, false, label->str);
        } else if (at(p, begin) - 6 - width > 0) {
            text(p, "", at(p, begin) - 6, p->y + 11, true, label->str);
        } else {
            p->y += ROW;
            text(p, "", LEFT, p->y + 11, false, label->str);
        }
        p->y += ROW;
    }
    if (others) {
        g_autofree char *more = g_strdup_printf("and %u of other levels",
                                                others);

        text(p, "dim", LEFT, p->y + 11, false, more);
        p->y += ROW;
    }
    p->y += 12;
}

static gint by_begin(gconstpointer a, gconstpointer b)
{
    const HtBootItem *x = *(const HtBootItem * const *)a;
    const HtBootItem *y = *(const HtBootItem * const *)b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static GPtrArray *choose_processes(const HtBoot *b)
{
    GPtrArray *all = g_ptr_array_new();
    unsigned i;

    for (i = 0; i < b->processes->len; i++) {
        g_ptr_array_add(all, &g_array_index(b->processes, HtBootItem, i));
    }
    g_ptr_array_sort(all, by_duration);
    g_ptr_array_set_size(all, MIN(all->len, ROWS_MAX));
    g_ptr_array_sort(all, by_begin);
    return all;
}

static void draw_process(Picture *p, const HtBootItem *c)
{
    uint64_t ns = ht_duration_ns(c->took);
    g_autofree char *t = tip(c->name, c->begin, c->took);
    g_autofree char *name = g_path_get_basename(c->name);
    g_autoptr(GString) label = g_string_new(name);
    double x = at(p, c->begin), right = at(p, c->end);
    double width;

    g_string_append_printf(label, " (%d) ", c->pid);
    duration(label, ns);
    bar(p, "run", c->begin, c->end, p->y, BAR, t);
    if (c->cpu_ns) {
        bar(p, "cpu", c->begin, c->begin + MIN(c->cpu_ns, ns),
            p->y + BAR - 4, 4, t);
    }
    width = g_utf8_strlen(label->str, -1) * CHAR_WIDTH;
    if (right + 6 + width < WIDTH) {
        text(p, "", right + 6, p->y + 11, false, label->str);
    } else if (x - 6 - width > 0) {
        text(p, "", x - 6, p->y + 11, true, label->str);
    } else {
        text(p, "", x + 4, p->y + 10, false, label->str);
    }
    p->y += ROW;
}

static void draw_processes(Picture *p, const HtBoot *b)
{
    g_autoptr(GPtrArray) chosen = choose_processes(b);
    unsigned i;

    if (!chosen->len) {
        return;
    }
    text(p, "head", LEFT, p->y + 11, false,
         "processes (dark: share of the time on a CPU)");
    p->y += ROW;
    for (i = 0; i < chosen->len; i++) {
        draw_process(p, chosen->pdata[i]);
    }
    if (b->processes->len > chosen->len) {
        unsigned n = b->processes->len - chosen->len;
        g_autofree char *more = g_strdup_printf("and %u shorter one%s", n,
                                                ht_number_s(n));

        text(p, "dim", LEFT, p->y + 11, false, more);
        p->y += ROW;
    }
}

static void draw_left_out(Picture *p, const HtBoot *b)
{
    if (b->left_out) {
        g_autofree char *more = g_strdup_printf(
            "left out, because there are too many initcalls or processes: %"
            PRIu64, b->left_out);

        text(p, "dim", LEFT, p->y + 11, false, more);
        p->y += ROW;
    }
}

/*
 * Draw the bars into a buffer first: their rows give the height of the grid,
 * which must come before the bars in the document.
 */
void ht_boot_svg(const HtBoot *b, GString *out)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) head = g_string_new(NULL);
    Picture p = {
        .out = body,
        .begin = b->begin,
        .span = MAX(ht_elapsed(b->begin, b->end), 1000),
        .y = TOP,
    };

    draw_phases(&p, b);
    draw_initcalls(&p, b);
    draw_processes(&p, b);
    draw_left_out(&p, b);
    p.bottom = p.y;

    g_string_append_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                           "<svg xmlns=\"http://www.w3.org/2000/svg\""
                           " width=\"%d\" height=\"%d\""
                           " viewBox=\"0 0 %d %d\">\n",
                           WIDTH, (int)p.bottom + 16, WIDTH,
                           (int)p.bottom + 16);
    g_string_append(out, style);
    p.out = out;
    g_string_append(head, *b->release ? "Boot of Linux " :
                    "Boot of the guest");
    g_string_append(head, b->release);
    text(&p, "title", LEFT, 26, false, head->str);
    g_string_truncate(head, 0);
    duration(head, ht_elapsed(b->begin, b->end));
    g_string_append_printf(head, ", %" PRIu64 " event%s", b->events,
                           ht_number_s(b->events));
    if (b->gaps) {
        g_string_append_printf(head, ", lost in %" PRIu64 " place%s", b->gaps,
                               ht_number_s(b->gaps));
    }
    text(&p, "dim", LEFT, 44, false, head->str);
    grid(&p);
    g_string_append_len(out, body->str, body->len);
    g_string_append(out, "</svg>\n");
}
