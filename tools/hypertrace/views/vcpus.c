/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace vcpus: show the vCPUs of a Xen host, from a trace of xentrace
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/number.h"
#include "cli/output.h"
#include "host/xentrace.h"
#include "views/view.h"

#define HZ_MIN  1e6
#define HZ_MAX  1e11

static const char *const states[] = {
    "running", "runnable", "blocked", "offline",
};

/* Parse "2596135000", "2596.135M" or "2.596135G". Returns 0 on failure. */
static double parse_hz(const char *s)
{
    char *end;
    double hz = g_ascii_strtod(s, &end);

    if (*end == 'M' || *end == 'G') {
        hz *= *end++ == 'M' ? 1e6 : 1e9;
    }
    return end != s && !*end && hz >= HZ_MIN && hz <= HZ_MAX ? hz : 0;
}

static uint64_t to_ns(uint64_t cycles, double hz)
{
    double ns = cycles / hz * 1e9;

    return ns < 0x1p63 ? ns + 0.5 : INT64_MAX;
}

static uint64_t total(const HtXenVcpu *v)
{
    uint64_t sum = v->unknown;
    unsigned i;

    for (i = 0; i < HT_XEN_STATES; i++) {
        sum += v->cycles[i];
    }
    return sum;
}

static gint exit_longer(gconstpointer a, gconstpointer b)
{
    const HtXenExit *x = a, *y = b;

    return x->cycles != y->cycles ? (x->cycles < y->cycles ? 1 : -1) :
           x->reason < y->reason ? -1 : x->reason > y->reason;
}

static gint number_less(gconstpointer a, gconstpointer b)
{
    unsigned x = GPOINTER_TO_UINT(a), y = GPOINTER_TO_UINT(b);

    return x < y ? -1 : x > y;
}

static void put_name(const HtXenVcpu *v, HtOutput *o)
{
    g_autofree char *name = v->domain == HT_XEN_IDLE ?
        g_strdup_printf("idle v%u", v->vcpu) :
        g_strdup_printf("d%u v%u", v->domain, v->vcpu);

    g_string_append_printf(o->text, "%-12s", name);
}

static void put_share(HtOutput *o, uint64_t cycles, uint64_t whole, double hz)
{
    g_string_append_printf(o->text, " %5.1f%% ",
                           whole ? 100.0 * cycles / whole : 0);
    ht_number_duration(o->text, to_ns(cycles, hz), 8);
}

static void put_heading(HtOutput *o, const char *s)
{
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append(o->text, s);
    ht_output_colour(o, HT_COLOUR_NONE);
}

static void put_states(const HtXentrace *x, double hz, HtOutput *o)
{
    unsigned i, k;

    put_heading(o, "vCPU                running        runnable         blocked"
                   "         offline         unknown  switches\n");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtXenVcpu *v = x->vcpus->pdata[i];

        put_name(v, o);
        for (k = 0; k < HT_XEN_STATES; k++) {
            put_share(o, v->cycles[k], total(v), hz);
        }
        put_share(o, v->unknown, total(v), hz);
        g_string_append_printf(o->text, " %9" PRIu64 "\n",
                               v->intervals[HT_XEN_RUNNING]);
    }
    put_heading(o, "\nRunnable since      preempted          woken\n");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtXenVcpu *v = x->vcpus->pdata[i];

        put_name(v, o);
        put_share(o, v->preempted, v->cycles[HT_XEN_RUNNABLE], hz);
        put_share(o, v->woken, v->cycles[HT_XEN_RUNNABLE], hz);
        g_string_append_c(o->text, '\n');
    }
}

static void put_exits(const HtXentrace *x, double hz, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtXenVcpu *v = x->vcpus->pdata[i];
        g_autoptr(GList) exits = g_list_sort(g_hash_table_get_values(v->exits),
                                             exit_longer);
        GList *l;

        for (l = exits; l; l = l->next) {
            const HtXenExit *e = l->data;

            if (!e->count) {
                continue;
            }
            if (!any) {
                put_heading(o, "\nvCPU         exit reason    number    total"
                               "     mean     99 %      max\n");
                any = true;
            }
            put_name(v, o);
            g_string_append_printf(o->text, "  0x%-8" PRIx32 " %9" PRIu64,
                                   e->reason, e->count);
            ht_number_duration(o->text, to_ns(e->cycles, hz), 9);
            ht_number_duration(o->text, to_ns(e->cycles / e->count, hz), 9);
            ht_number_duration(o->text,
                               to_ns(ht_xentrace_percentile(e, 99), hz), 9);
            ht_number_duration(o->text, to_ns(e->max, hz), 9);
            g_string_append_c(o->text, '\n');
        }
    }
}

static void put_calls(const HtXentrace *x, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtXenVcpu *v = x->vcpus->pdata[i];
        g_autoptr(GList) calls = g_list_sort(
            g_hash_table_get_keys(v->hypercalls), number_less);
        GList *l;

        for (l = calls; l; l = l->next) {
            const uint64_t *n = g_hash_table_lookup(v->hypercalls, l->data);

            if (!any) {
                put_heading(o, "\nvCPU         hypercall    number\n");
                any = true;
            }
            put_name(v, o);
            g_string_append_printf(o->text, " %9u %9" PRIu64 "\n",
                                   GPOINTER_TO_UINT(l->data), *n);
        }
    }
}

static void put_text(const HtXentrace *x, double hz, HtOutput *o)
{
    g_string_append_printf(o->text, "%" PRIu64 " records of %u CPUs, %u vCPUs,"
                           " %.6f s", x->records, x->cpus, x->vcpus->len,
                           to_ns(x->end - x->begin, hz) / 1e9);
    ht_output_colour(o, HT_COLOUR_RED);
    if (x->gaps) {
        g_string_append_printf(o->text, "; %" PRIu64 " lost in %" PRIu64
                               " gaps", x->lost, x->gaps);
    }
    if (x->damaged) {
        g_string_append_printf(o->text, "; %" PRIu64 " bytes of damaged"
                               " records", x->damaged);
    }
    if (x->backward) {
        g_string_append_printf(o->text, "; the clock went back %" PRIu64
                               " times", x->backward);
    }
    if (x->others) {
        g_string_append_printf(o->text, "; %" PRIu64 " records left out: too"
                               " many vCPUs, reasons or hypercalls", x->others);
    }
    ht_output_colour(o, HT_COLOUR_NONE);
    g_string_append(o->text, "\n\n");
    put_states(x, hz, o);
    put_exits(x, hz, o);
    put_calls(x, o);
}

static void json_vcpu(HtJson *j, const HtXenVcpu *v, double hz)
{
    g_autoptr(GList) exits = g_list_sort(g_hash_table_get_values(v->exits),
                                         exit_longer);
    g_autoptr(GList) calls = g_list_sort(g_hash_table_get_keys(v->hypercalls),
                                         number_less);
    GList *l;
    unsigned i;

    ht_json_open(j, NULL, '{');
    ht_json_uint(j, "domain", v->domain);
    ht_json_uint(j, "vcpu", v->vcpu);
    ht_json_bool(j, "idle", v->domain == HT_XEN_IDLE);
    for (i = 0; i < HT_XEN_STATES; i++) {
        ht_json_open(j, states[i], '{');
        ht_json_uint(j, "ns", to_ns(v->cycles[i], hz));
        ht_json_uint(j, "intervals", v->intervals[i]);
        ht_json_close(j, '}');
    }
    ht_json_uint(j, "preempted_ns", to_ns(v->preempted, hz));
    ht_json_uint(j, "woken_ns", to_ns(v->woken, hz));
    ht_json_uint(j, "unknown_ns", to_ns(v->unknown, hz));
    ht_json_uint(j, "open_exits", v->open_exits);
    ht_json_open(j, "exits", '[');
    for (l = exits; l; l = l->next) {
        const HtXenExit *e = l->data;

        if (e->count) {
            ht_json_open(j, NULL, '{');
            ht_json_uint(j, "reason", e->reason);
            ht_json_uint(j, "number", e->count);
            ht_json_uint(j, "ns", to_ns(e->cycles, hz));
            ht_json_uint(j, "mean_ns", to_ns(e->cycles / e->count, hz));
            ht_json_uint(j, "p99_ns",
                         to_ns(ht_xentrace_percentile(e, 99), hz));
            ht_json_uint(j, "max_ns", to_ns(e->max, hz));
            ht_json_close(j, '}');
        }
    }
    ht_json_close(j, ']');
    ht_json_open(j, "hypercalls", '[');
    for (l = calls; l; l = l->next) {
        const uint64_t *n = g_hash_table_lookup(v->hypercalls, l->data);

        ht_json_open(j, NULL, '{');
        ht_json_uint(j, "hypercall", GPOINTER_TO_UINT(l->data));
        ht_json_uint(j, "number", *n);
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
    ht_json_close(j, '}');
}

static void put_json(const HtXentrace *x, double hz, HtOutput *o)
{
    HtJson j = { .out = o->text };
    unsigned i;

    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "records", x->records);
    ht_json_uint(&j, "cpus", x->cpus);
    ht_json_uint(&j, "ns", to_ns(x->end - x->begin, hz));
    ht_json_uint(&j, "lost", x->lost);
    ht_json_uint(&j, "gaps", x->gaps);
    ht_json_uint(&j, "damaged_bytes", x->damaged);
    ht_json_uint(&j, "times_back", x->backward);
    ht_json_uint(&j, "left_out", x->others);
    ht_json_open(&j, "vcpus", '[');
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        json_vcpu(&j, x->vcpus->pdata[i], hz);
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

int ht_vcpus(int argc, char **argv)
{
    gboolean xentrace = false;
    g_autofree char *frequency = NULL;
    const GOptionEntry own[] = {
        { "xentrace", 0, 0, G_OPTION_ARG_NONE, &xentrace,
          "the argument is a file that xentrace wrote", NULL },
        { "cpu-hz", 0, 0, G_OPTION_ARG_STRING, &frequency,
          "TSC cycles per second: 2596135000, 2596.135M or 2.596G", "N" },
        { 0 }
    };
    HtView v = { 0 };
    g_autoptr(GMappedFile) file = NULL;
    HtXentrace *x = NULL;
    GError *error = NULL;
    double hz;
    HtOutput o;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Show the runstates, exits and"
                       " hypercalls of the vCPUs of a Xen host.",
                       HT_VIEW_OUTPUT | HT_VIEW_TRACE, own, &status)) {
        ht_view_free(&v);
        return status;
    }
    hz = frequency ? parse_hz(frequency) : 0;
    if (!xentrace) {
        status = ht_usage_error("give --xentrace: other kinds of host traces"
                                " are not supported");
    } else if (!hz) {
        status = ht_usage_error("--cpu-hz=%s: give the TSC frequency of the"
                                " host, 1M to 100G; 'xl info' shows it as"
                                " cpu_mhz: --cpu-hz=2596.135M",
                                frequency ? frequency : "");
    } else {
        ht_view_output(&v, &o);
        file = g_mapped_file_new(v.dir, false, &error);
        if (file) {
            const char *data = g_mapped_file_get_contents(file);

            x = ht_xentrace_read((const uint8_t *)(data ? data : ""),
                                 g_mapped_file_get_length(file), &error);
        }
        if (x && v.json) {
            put_json(x, hz, &o);
        } else if (x) {
            put_text(x, hz, &o);
        }
        status = ht_view_finish(&o, x != NULL, error);
        ht_xentrace_free(x);
    }
    ht_view_free(&v);
    return status;
}
