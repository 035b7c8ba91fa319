/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace latency: show statistics of the time from one event to another
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "model/duration.h"
#include "model/pairs.h"
#include "views/host-split.h"
#include "views/view.h"

/*
 * Durations are counted in buckets, so that the memory is constant. From 128 ns
 * on, there are 128 buckets from each power of two to the next; below, one for
 * each nanosecond. A percentile is thus at most 0.8 % too high.
 */
#define FINE_BITS       7
#define FINE            ((64 - FINE_BITS + 1) << FINE_BITS)
/*
 * Number of rows of the histogram; they begin at 0, 1, 2, 5, 10, 20 ...
 * nanoseconds.
 */
#define ROWS            58
#define WORST_DEFAULT   5
#define WORST_MAX       10000

typedef struct Worst {
    HtPair pair;
    char comm[HT_COMM_MAX + 1];
    HtSplit split;
} Worst;

typedef struct Latency {
    HtView v;
    HtModel *m;
    HtPairs *pairs;
    HtNames *tasks;
    const char *from, *to;
    uint64_t count, sum, min, max;
    uint64_t fine[FINE];
    uint64_t rows[ROWS];
    /* of Worst: the longest durations, in falling order */
    GArray *worst;
    gint worst_max;
    HtPairsCounts counts;
    unsigned boots;
    gboolean by_host;           /* --host */
    HtHostSplit *host;
    /*
     * with --host: the sum of the durations of all counted pairs, split by the
     * host's part
     */
    HtSplit split;
} Latency;

static const struct {
    const char *name, *json;
    double share;
} percentiles[] = {
    { "50%", "p50_ns", 0.5 }, { "90%", "p90_ns", 0.9 },
    { "99%", "p99_ns", 0.99 }, { "99.9%", "p999_ns", 0.999 },
};

static unsigned fine_bucket(uint64_t ns)
{
    unsigned shift = ns >> FINE_BITS ?
                     63 - FINE_BITS - __builtin_clzll(ns) : 0;

    return (shift << FINE_BITS) + (ns >> shift);
}

/* Get the highest duration in ns that a bucket counts. */
static uint64_t fine_value(unsigned bucket)
{
    unsigned shift = bucket >> FINE_BITS ? (bucket >> FINE_BITS) - 1 : 0;
    uint64_t first = bucket - (shift << FINE_BITS);

    return ((first + 1) << shift) - 1;
}

static uint64_t percentile(const Latency *l, double share)
{
    uint64_t wanted = share * l->count, seen = 0;
    unsigned i;

    wanted += wanted < share * l->count;
    for (i = 0; i < FINE; i++) {
        seen += l->fine[i];
        if (seen >= MAX(wanted, 1)) {
            return CLAMP(fine_value(i), l->min, l->max);
        }
    }
    return l->max;
}

/*
 * Get the lowest duration of a row of the histogram in ns: 0, 1, 2, 5, 10 ...
 */
static uint64_t row_begin(unsigned row)
{
    static const unsigned firsts[] = { 1, 2, 5 };
    uint64_t power = 1;
    unsigned i;

    if (!row) {
        return 0;
    }
    for (i = 0; i < (row - 1) / 3; i++) {
        power *= 10;
    }
    return power * firsts[(row - 1) % 3];
}

static void keep_worst(Latency *l, const HtPair *pair, const HtSplit *split)
{
    uint64_t ns = ht_elapsed(pair->from_ns, pair->to_ns);
    Worst w = { .pair = *pair, .split = *split };
    unsigned at = l->worst->len;

    while (at) {
        const HtPair *p = &g_array_index(l->worst, Worst, at - 1).pair;

        if (ht_elapsed(p->from_ns, p->to_ns) >= ns) {
            break;
        }
        at--;
    }
    if (at >= (unsigned)l->worst_max) {
        return;
    }
    w.pair.task = NULL;
    g_strlcpy(w.comm, pair->task ? pair->task->comm : "<...>", sizeof(w.comm));
    g_array_insert_val(l->worst, at, w);
    if (l->worst->len > (unsigned)l->worst_max) {
        g_array_set_size(l->worst, l->worst_max);
    }
}

/*
 * Split the time of a pair by what the host did for the vCPU of event B, and
 * add the parts to @l->split. If a task is woken on one processor and runs on
 * another one, it waits for the latter. Without --host, the parts are 0.
 */
static HtSplit split_pair(Latency *l, const HtPair *pair, uint32_t segment)
{
    HtSplit split = { 0 };

    if (l->host) {
        ht_host_split_add(l->host, pair->boot, segment, pair->to_cpu,
                          pair->from_ns, pair->to_ns, &split);
    }
    ht_host_split_sum(&l->split, &split);
    return split;
}

static void count(Latency *l, const HtPair *pair, uint32_t segment)
{
    uint64_t ns = ht_elapsed(pair->from_ns, pair->to_ns);
    unsigned row = ROWS - 1;
    HtSplit split;

    if (l->tasks && (!pair->task || !ht_names_task(l->tasks, pair->task))) {
        return;
    }
    l->min = l->count ? MIN(l->min, ns) : ns;
    l->max = MAX(l->max, ns);
    l->sum += ns;
    l->count++;
    l->fine[fine_bucket(ns)]++;
    while (row_begin(row) > ns) {
        row--;
    }
    l->rows[row]++;
    split = split_pair(l, pair, segment);
    keep_worst(l, pair, &split);
}

static bool collect(Latency *l, const char *key, GError **errp)
{
    const HtFtFormats *formats = ht_model_formats(l->m);
    GError *error = NULL;
    HtModelEvent ev;
    HtPair pair;

    if (formats && (!ht_names_check(l->from, formats, errp) ||
                    !ht_names_check(l->to, formats, errp))) {
        return false;
    }
    l->pairs = ht_pairs_new(l->m, l->from, l->to, key, errp);
    while (l->pairs && !error && ht_view_next(&l->v, l->m, &ev)) {
        l->boots = MAX(l->boots, ev.boot);
        if (ht_pairs_event(l->pairs, &ev, &pair, &error)) {
            count(l, &pair, ev.rec.segment);
        }
    }
    if (error) {
        g_propagate_error(errp, error);
    }
    if (!l->pairs || error) {
        return false;
    }
    l->counts = ht_pairs_end(l->pairs);
    if (l->counts.no_from || l->counts.no_to) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "no event '%s' was recorded; 'hypertrace top' lists the"
                    " recorded events", l->counts.no_from ? l->from : l->to);
        return false;
    }
    return true;
}

static void put_bar(HtOutput *o, uint64_t n, uint64_t most)
{
    const char *block = g_get_charset(NULL) ? "\342\226\210" : "#";
    unsigned width = CLAMP(o->columns, 60, 120) - 45;
    unsigned i, length = n ? MAX((double)n / most * width, 1) : 0;

    g_string_append(o->text, length ? "  " : "");
    ht_output_colour(o, HT_COLOUR_CYAN);
    for (i = 0; i < length; i++) {
        g_string_append(o->text, block);
    }
    ht_output_colour(o, HT_COLOUR_NONE);
    g_string_append_c(o->text, '\n');
}

static void put_histogram(const Latency *l, HtOutput *o)
{
    unsigned first = ROWS, last = 0, i;
    uint64_t most = 0;

    for (i = 0; i < ROWS; i++) {
        if (l->rows[i]) {
            first = MIN(first, i);
            last = i;
            most = MAX(most, l->rows[i]);
        }
    }
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append(o->text, "\n        from      below      number\n");
    ht_output_colour(o, HT_COLOUR_NONE);
    for (i = first; i <= last; i++) {
        ht_number_duration(o->text, row_begin(i), 12);
        if (i + 1 < ROWS) {
            ht_number_duration(o->text, row_begin(i + 1), 11);
        } else {
            g_string_append(o->text, "           ");
        }
        g_string_append_printf(o->text, " %11" PRIu64, l->rows[i]);
        put_bar(o, l->rows[i], most);
    }
}

static void put_worst(const Latency *l, HtOutput *o)
{
    unsigned i;

    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "\n     longest %s           from"
                           "               to   CPU%s       task-PID\n",
                           l->boots > 1 ? " boot" : "",
                           l->host ? "     exits    stolen" : "");
    ht_output_colour(o, HT_COLOUR_NONE);
    for (i = 0; i < l->worst->len; i++) {
        const Worst *w = &g_array_index(l->worst, Worst, i);
        const HtPair *p = &w->pair;
        g_autofree char *cpus = p->from_cpu == p->to_cpu ?
            g_strdup_printf("%u", p->to_cpu) :
            g_strdup_printf("%u->%u", p->from_cpu, p->to_cpu);

        ht_number_duration(o->text, ht_elapsed(p->from_ns, p->to_ns), 12);
        if (l->boots > 1) {
            g_string_append_printf(o->text, " %5u", p->boot);
        }
        g_string_append_c(o->text, ' ');
        ht_number_seconds(o->text, p->from_ns, 6);
        g_string_append_c(o->text, ' ');
        ht_number_seconds(o->text, p->to_ns, 6);
        g_string_append_printf(o->text, " %5s", cpus);
        if (l->host) {
            ht_host_split_share(&w->split, HT_SPLIT_EXITS, o);
            ht_host_split_share(&w->split, HT_SPLIT_STOLEN, o);
        }
        g_string_append(o->text, "       ");
        ht_escape_str(o->text, HT_ESCAPE_TERMINAL, w->comm);
        g_string_append_printf(o->text, "-%d\n", p->pid);
    }
}

static void put_counts(const Latency *l, HtOutput *o)
{
    const HtPairsCounts *c = &l->counts;

    g_string_append(o->text, "from ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, l->from);
    g_string_append(o->text, " to ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, l->to);
    g_string_append(o->text, ", by ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, ht_pairs_key(l->pairs));
    g_string_append_printf(o->text, ": %" PRIu64 " pair%s\n", l->count,
                           ht_number_s(l->count));
    if (c->from_alone || c->to_alone) {
        g_string_append_printf(o->text, "not counted: %" PRIu64 " start%s"
                               " without an end, %" PRIu64 " end%s without a"
                               " start\n", c->from_alone,
                               ht_number_s(c->from_alone), c->to_alone,
                               ht_number_s(c->to_alone));
    }
    if (c->across_gaps || c->left_out) {
        ht_output_colour(o, HT_COLOUR_RED);
        g_string_append_printf(o->text, "not counted: %" PRIu64 " pair%s with a"
                               " gap in the recording between the events",
                               c->across_gaps, ht_number_s(c->across_gaps));
        if (c->left_out) {
            g_string_append_printf(o->text, ", %" PRIu64 " start%s because too"
                                   " many were waiting for their end",
                                   c->left_out, ht_number_s(c->left_out));
        }
        ht_output_colour(o, HT_COLOUR_NONE);
        g_string_append_c(o->text, '\n');
    }
}

static void put_text(const Latency *l, HtOutput *o)
{
    unsigned i;

    put_counts(l, o);
    if (!l->count) {
        return;
    }
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "\n%12s%12s", "least", "mean");
    for (i = 0; i < G_N_ELEMENTS(percentiles); i++) {
        g_string_append_printf(o->text, "%12s", percentiles[i].name);
    }
    g_string_append_printf(o->text, "%12s\n", "longest");
    ht_output_colour(o, HT_COLOUR_NONE);
    ht_number_duration(o->text, l->min, 12);
    ht_number_duration(o->text, l->sum / l->count, 12);
    for (i = 0; i < G_N_ELEMENTS(percentiles); i++) {
        ht_number_duration(o->text, percentile(l, percentiles[i].share), 12);
    }
    ht_number_duration(o->text, l->max, 12);
    g_string_append_c(o->text, '\n');
    if (l->host) {
        g_string_append_c(o->text, '\n');
        ht_host_split_text(l->host, &l->split, o);
    }
    put_histogram(l, o);
    if (l->worst->len) {
        put_worst(l, o);
    }
}

static void json_worst(const Latency *l, HtJson *j)
{
    unsigned i;

    ht_json_open(j, "worst", '[');
    for (i = 0; i < l->worst->len; i++) {
        const Worst *w = &g_array_index(l->worst, Worst, i);

        ht_json_open(j, NULL, '{');
        ht_json_uint(j, "ns", ht_elapsed(w->pair.from_ns, w->pair.to_ns));
        ht_json_uint(j, "boot", w->pair.boot);
        ht_json_uint(j, "from_ns", w->pair.from_ns);
        ht_json_uint(j, "to_ns", w->pair.to_ns);
        ht_json_uint(j, "from_cpu", w->pair.from_cpu);
        ht_json_uint(j, "to_cpu", w->pair.to_cpu);
        ht_json_int(j, "pid", w->pair.pid);
        ht_json_str(j, "task", w->comm);
        if (l->host) {
            ht_host_split_json(&w->split, "host", j);
        }
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

static void put_json(const Latency *l, HtOutput *o)
{
    HtJson j = { .out = o->text };
    unsigned i;

    ht_json_begin(&j);
    ht_json_str(&j, "from", l->from);
    ht_json_str(&j, "to", l->to);
    ht_json_str(&j, "key", ht_pairs_key(l->pairs));
    ht_json_uint(&j, "pairs", l->count);
    ht_json_uint(&j, "from_alone", l->counts.from_alone);
    ht_json_uint(&j, "to_alone", l->counts.to_alone);
    ht_json_uint(&j, "across_gaps", l->counts.across_gaps);
    ht_json_uint(&j, "left_out", l->counts.left_out);
    if (l->count) {
        ht_json_uint(&j, "min_ns", l->min);
        ht_json_uint(&j, "mean_ns", l->sum / l->count);
        for (i = 0; i < G_N_ELEMENTS(percentiles); i++) {
            ht_json_uint(&j, percentiles[i].json,
                         percentile(l, percentiles[i].share));
        }
        ht_json_uint(&j, "max_ns", l->max);
    }
    if (l->host) {
        ht_host_split_json(&l->split, "host", &j);
    }
    ht_json_open(&j, "histogram", '[');
    for (i = 0; i < ROWS; i++) {
        if (l->rows[i]) {
            ht_json_open(&j, NULL, '{');
            ht_json_uint(&j, "from_ns", row_begin(i));
            ht_json_uint(&j, "pairs", l->rows[i]);
            ht_json_close(&j, '}');
        }
    }
    ht_json_close(&j, ']');
    json_worst(l, &j);
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

int ht_latency(int argc, char **argv)
{
    g_autofree Latency *l = g_new0(Latency, 1);
    g_autofree char *key = NULL, *task = NULL;
    const GOptionEntry own[] = {
        { "key", 'k', 0, G_OPTION_ARG_STRING, &key,
          "values that must be equal in A and B: task, cpu, FIELD or"
          " FIELD=FIELD", "LIST" },
        { "task", 0, 0, G_OPTION_ARG_FILENAME, &task,
          "only pairs of these tasks: 17,systemd*", "LIST" },
        { "host", 0, 0, G_OPTION_ARG_NONE, &l->by_host, HT_HOST_SPLIT_HELP,
          NULL },
        { "worst", 'n', 0, G_OPTION_ARG_INT, &l->worst_max,
          "number of longest pairs to list (5)", "N" },
        { 0 }
    };
    GError *error = NULL;
    bool ok;
    HtOutput o;
    int status;

    l->worst_max = WORST_DEFAULT;
    if (!ht_view_parse(&l->v, &argc, argv, "Show the time from an event A to"
                       " the next event B with the same task, processor or"
                       " key.", HT_VIEW_TIME | HT_VIEW_BOOT | HT_VIEW_OUTPUT |
                       HT_VIEW_PAIR, own, &status)) {
        ht_view_free(&l->v);
        return status;
    }
    if (l->worst_max < 0 || l->worst_max > WORST_MAX) {
        g_set_error(&error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--worst=%d: must be 0 to %d", l->worst_max, WORST_MAX);
    }
    if (!*argv[1] || !*argv[2]) {
        g_clear_error(&error);
        g_set_error(&error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "the name of an event is empty");
    }
    if (error || !ht_names_whole("--task", task, &error) ||
        !ht_names_whole("--key", key, &error)) {
        status = ht_usage_error("%s", error->message);
        g_error_free(error);
        ht_view_free(&l->v);
        return status;
    }
    l->from = argv[1];
    l->to = argv[2];
    l->worst = g_array_new(false, false, sizeof(Worst));
    l->tasks = task ? ht_names_new(task) : NULL;
    ht_view_output(&l->v, &o);
    l->m = ht_view_open(&l->v, &error);
    l->host = l->m && l->by_host ?
              ht_host_split_new(l->v.dir, l->m, &error) : NULL;
    ok = l->m && !error && collect(l, key, &error);
    if (ok && l->v.json) {
        put_json(l, &o);
    } else if (ok) {
        put_text(l, &o);
    }
    status = ht_view_finish(&o, ok, error);
    ht_pairs_free(l->pairs);
    ht_host_split_free(l->host);
    ht_model_free(l->m);
    g_array_unref(l->worst);
    ht_names_free(l->tasks);
    ht_view_free(&l->v);
    return status;
}
