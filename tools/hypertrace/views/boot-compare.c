/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: compare the boots of several recordings
 *
 * The last recording is compared with the earlier ones.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/number.h"
#include "views/boot.h"

/* A line of the comparison: all phases, initcalls or processes of this name */
typedef struct Row {
    char *name;
    /* by boot: sum of the times of the items with this name, in ns */
    uint64_t *ns;
    /*
     * initcalls and processes: absolute difference in ns between the last boot
     * and the median of the earlier boots, by which the rows are sorted
     */
    uint64_t change;
} Row;

typedef enum What {
    PHASES,
    INITCALLS,
    PROCESSES,
} What;

static void free_row(gpointer data)
{
    Row *row = data;

    g_free(row->name);
    g_free(row->ns);
    g_free(row);
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void ht_boot_spread(const uint64_t *ns, unsigned count, HtBootSpread *s)
{
    g_autofree uint64_t *sorted = g_memdup2(ns, count * sizeof(*ns));

    qsort(sorted, count, sizeof(*sorted), compare_ns);
    s->min = sorted[0];
    s->max = sorted[count - 1];
    s->median = count % 2 ? sorted[count / 2] :
                sorted[count / 2 - 1] +
                (sorted[count / 2] - sorted[count / 2 - 1]) / 2;
    s->count = count;
}

int ht_boot_differs(const HtBootSpread *s, uint64_t ns)
{
    const uint64_t margin = MAX(s->max - s->min, s->median / 20);

    if (s->count < HT_BOOT_EARLIER_MIN) {
        return 0;
    }
    if (ns > s->max) {
        return ns - s->max > margin;
    }
    return ns < s->min && s->min - ns > margin ? -1 : 0;
}

static void add(GHashTable *by_name, GPtrArray *rows, const char *name,
                unsigned boot, unsigned boots, uint64_t ns)
{
    Row *row = g_hash_table_lookup(by_name, name);

    if (!row) {
        row = g_new0(Row, 1);
        row->name = g_strdup(name);
        row->ns = g_new0(uint64_t, boots);
        g_ptr_array_add(rows, row);
        g_hash_table_insert(by_name, row->name, row);
    }
    row->ns[boot] += ns;
}

static uint64_t difference(const Row *row, unsigned boots)
{
    const uint64_t last = row->ns[boots - 1];
    HtBootSpread s;

    ht_boot_spread(row->ns, boots - 1, &s);
    return MAX(last, s.median) - MIN(last, s.median);
}

static gint by_change(gconstpointer a, gconstpointer b)
{
    const Row *x = *(const Row * const *)a, *y = *(const Row * const *)b;

    return x->change < y->change ? 1 : x->change > y->change ? -1 :
           strcmp(x->name, y->name);
}

static GPtrArray *rows_of(const GPtrArray *boots, What what)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *rows = g_ptr_array_new_with_free_func(free_row);
    unsigned n, i;

    for (n = 0; n < boots->len; n++) {
        const HtBoot *b = boots->pdata[n];
        const GArray *items = what == INITCALLS ? b->initcalls : b->processes;

        for (i = 0; what == PHASES && i < b->phases->len; i++) {
            const HtBootPhase *p = &g_array_index(b->phases, HtBootPhase, i);

            add(by_name, rows, p->name, n, boots->len,
                ht_elapsed(p->begin, p->end));
        }
        for (i = 0; what != PHASES && i < items->len; i++) {
            const HtBootItem *c = &g_array_index(items, HtBootItem, i);

            add(by_name, rows, c->name, n, boots->len,
                ht_duration_ns(c->took));
        }
    }
    if (what != PHASES) {
        for (i = 0; i < rows->len; i++) {
            Row *row = rows->pdata[i];

            row->change = difference(row, boots->len);
        }
        g_ptr_array_sort(rows, by_change);
    }
    return rows;
}

static void put_row(HtOutput *o, const Row *row, unsigned boots)
{
    const uint64_t last = row->ns[boots - 1];
    HtBootSpread s;
    double d;
    int differs;

    ht_boot_spread(row->ns, boots - 1, &s);
    d = ((double)last - s.median) / 1e6;
    differs = ht_boot_differs(&s, last);
    g_string_append(o->text, "  ");
    ht_boot_put_name(o, row->name);
    g_string_append_printf(o->text, " %11.3f ", s.median / 1e6);
    if (boots > 2) {
        g_string_append_printf(o->text, "%11.3f %11.3f ", s.min / 1e6,
                               s.max / 1e6);
    }
    g_string_append_printf(o->text, "%11.3f ", last / 1e6);
    if (differs || boots == 2) {
        ht_output_colour(o, d > 0 ? HT_COLOUR_RED : HT_COLOUR_GREEN);
    }
    g_string_append_printf(o->text, "%+11.3f%s", d, differs ? " *" : "");
    ht_output_colour(o, HT_COLOUR_NONE);
    g_string_append_c(o->text, '\n');
}

static void put_rows(HtOutput *o, const GPtrArray *boots, What what,
                     const char *title, unsigned limit)
{
    g_autoptr(GPtrArray) rows = rows_of(boots, what);
    g_autofree char *line = g_strdup_printf(
        "  %-30s %s", title, boots->len > 2 ?
        "  median ms      min ms      max ms     last ms   change ms" :
        "       A ms        B ms    B - A ms");
    unsigned i;

    if (!rows->len) {
        return;
    }
    g_string_append_c(o->text, '\n');
    ht_output_heading(o, line);
    for (i = 0; i < rows->len && i < limit; i++) {
        put_row(o, rows->pdata[i], boots->len);
    }
    if (i < rows->len) {
        g_string_append_printf(o->text, "  and %u that differ%s less;"
                               " --slowest=N lists N\n", rows->len - i,
                               ht_number_form(rows->len - i, "s", ""));
    }
}

static void put_boot(HtOutput *o, const char *label, const HtBoot *b)
{
    g_string_append_printf(o->text, "%s: Linux ", label);
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, b->release);
    g_string_append_printf(o->text, ", %.3f s, %" PRIu64 " event%s\n",
                           ht_elapsed(b->begin, b->end) / 1e9, b->events,
                           ht_number_s(b->events));
}

uint64_t *ht_boot_times(const GPtrArray *boots, const char *phase)
{
    uint64_t *ns = g_new0(uint64_t, boots->len);
    unsigned n, i;

    for (n = 0; n < boots->len; n++) {
        const HtBoot *b = boots->pdata[n];

        if (!phase) {
            ns[n] = ht_elapsed(b->begin, b->end);
        }
        for (i = 0; phase && i < b->phases->len; i++) {
            const HtBootPhase *p = &g_array_index(b->phases, HtBootPhase, i);

            if (!strcmp(p->name, phase)) {
                ns[n] += ht_elapsed(p->begin, p->end);
            }
        }
    }
    return ns;
}

void ht_boot_compare(HtOutput *o, const GPtrArray *boots, unsigned rows)
{
    if (boots->len == 2) {
        put_boot(o, "A", boots->pdata[0]);
        put_boot(o, "B", boots->pdata[1]);
    } else {
        g_autofree uint64_t *ns = ht_boot_times(boots, NULL);
        HtBootSpread s;

        ht_boot_spread(ns, boots->len - 1, &s);
        g_string_append_printf(o->text, "%u earlier boot%s: median %.3f s, %.3f"
                               " to %.3f s\n", s.count, ht_number_s(s.count),
                               s.median / 1e9, s.min / 1e9, s.max / 1e9);
        put_boot(o, "last boot", boots->pdata[boots->len - 1]);
        if (s.count >= HT_BOOT_EARLIER_MIN) {
            g_string_append(o->text, "*: outside of the range of the earlier"
                            " boots by more than that range and 5 % of their"
                            " median\n");
        }
    }
    put_rows(o, boots, PHASES, "phase", UINT_MAX);
    put_rows(o, boots, INITCALLS, "initcalls that differ most", rows);
    put_rows(o, boots, PROCESSES, "processes that differ most", rows);
}
