/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace vcpus: show what the host did with the vCPUs of its guests
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/number.h"
#include "cli/output.h"
#include "host/host-record.h"
#include "host/host-sums.h"
#include "host/threads.h"
#include "host/xentrace.h"
#include "views/view.h"

#define HZ_MIN      1e6
#define HZ_MAX      1e11
/* Frequency of the times in a recording, which are nanoseconds */
#define HZ_NS       1e9
/* Maximum size of the file "threads" of a host's part */
#define THREADS_MAX (16u << 20)
/* Rows for tasks that a vCPU waited for */
#define TAKERS_MAX  5

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

static uint64_t total(const HtVcpuSums *v)
{
    uint64_t sum = v->unknown;
    unsigned i;

    for (i = 0; i < HT_RUN_STATES; i++) {
        sum += v->ticks[i];
    }
    return sum;
}

static gint exit_longer(gconstpointer a, gconstpointer b)
{
    const HtExitSums *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           x->reason < y->reason ? -1 : x->reason > y->reason;
}

static gint number_less(gconstpointer a, gconstpointer b)
{
    unsigned x = GPOINTER_TO_UINT(a), y = GPOINTER_TO_UINT(b);

    return x < y ? -1 : x > y;
}

static void put_name(const HtVcpuSums *v, HtOutput *o)
{
    g_autofree char *name =
        v->tid && v->vcpu < 0 ? g_strdup_printf("%u all", v->machine) :
        v->tid ? g_strdup_printf("%u v%d", v->machine, v->vcpu) :
        v->machine == HT_XEN_IDLE ? g_strdup_printf("idle v%d", v->vcpu) :
        g_strdup_printf("d%u v%d", v->machine, v->vcpu);

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

static void put_states(const HtRunstates *x, double hz, HtOutput *o)
{
    unsigned i, k;

    put_heading(o, "vCPU                running        runnable         blocked"
                   "         offline         unknown  switches\n");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        put_name(v, o);
        for (k = 0; k < HT_RUN_STATES; k++) {
            put_share(o, v->ticks[k], total(v), hz);
        }
        put_share(o, v->unknown, total(v), hz);
        g_string_append_printf(o->text, " %9" PRIu64 "\n",
                               v->intervals[HT_RUN_RUNNING]);
    }
    put_heading(o, "\nRunnable since      preempted          woken\n");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];

        put_name(v, o);
        put_share(o, v->preempted, v->ticks[HT_RUN_RUNNABLE], hz);
        put_share(o, v->woken, v->ticks[HT_RUN_RUNNABLE], hz);
        g_string_append_c(o->text, '\n');
    }
}

static void put_exits(const HtRunstates *x, double hz, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        g_autoptr(GList) exits = g_list_sort(g_hash_table_get_values(v->exits),
                                             exit_longer);
        GList *l;

        for (l = exits; l; l = l->next) {
            const HtExitSums *e = l->data;

            if (!e->count) {
                continue;
            }
            if (!any) {
                put_heading(o, "\nvCPU         exit reason            number"
                               "    total     mean     99 %      max\n");
                any = true;
            }
            put_name(v, o);
            if (*e->name) {
                ht_output_padded(o, e->name, 20);
            } else {
                g_string_append_printf(o->text, "0x%-18" PRIx32, e->reason);
            }
            g_string_append_printf(o->text, " %9" PRIu64, e->count);
            ht_number_duration(o->text, to_ns(e->ticks, hz), 9);
            ht_number_duration(o->text, to_ns(e->ticks / e->count, hz), 9);
            ht_number_duration(o->text,
                               to_ns(ht_runstates_percentile(e, 99), hz), 9);
            ht_number_duration(o->text, to_ns(e->max, hz), 9);
            g_string_append_c(o->text, '\n');
        }
    }
}

static void put_calls(const HtRunstates *x, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
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

/* Xen's records do not tell the mode. */
static uint64_t unknown(const HtVcpuSums *v)
{
    return v->unknown + (v->tid ? v->modes[HT_MODE_UNKNOWN] : 0);
}

static gint taker_longer(gconstpointer a, gconstpointer b)
{
    const HtTaker *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void put_host_states(const HtRunstates *x, HtOutput *o)
{
    unsigned i;

    put_heading(o, "vCPU                  guest           exits"
                   "            QEMU       preempted           woken"
                   "          halted         waiting         unknown\n");
    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        const uint64_t parts[] = {
            v->modes[HT_MODE_GUEST], v->modes[HT_MODE_EXIT],
            v->modes[HT_MODE_VMM], v->preempted, v->woken, v->halted,
            v->ticks[HT_RUN_BLOCKED] - v->halted, unknown(v),
        };
        unsigned k;

        put_name(v, o);
        for (k = 0; k < G_N_ELEMENTS(parts); k++) {
            put_share(o, parts[k], total(v), HZ_NS);
        }
        g_string_append_c(o->text, '\n');
    }
}

static void put_takers(const HtRunstates *x, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        g_autoptr(GList) takers = g_list_sort(
            g_hash_table_get_values(v->takers), taker_longer);
        unsigned n = 0;
        GList *l;

        for (l = takers; l && n < TAKERS_MAX; l = l->next, n++) {
            const HtTaker *t = l->data;
            g_autofree char *pid = g_strdup_printf("%d", t->pid);

            if (!any) {
                put_heading(o, "\nvCPU         waited while this ran"
                               "               time\n");
                any = true;
            }
            put_name(v, o);
            ht_output_padded(o, t->pid ? t->comm : "an idle CPU", 17);
            g_string_append_printf(o->text, " %7s", t->pid ? pid : "");
            put_share(o, t->ticks, v->ticks[HT_RUN_RUNNABLE], HZ_NS);
            g_string_append_c(o->text, '\n');
        }
    }
}

static void put_text(const HtRunstates *x, double hz, bool xen, HtOutput *o)
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
    if (xen) {
        put_states(x, hz, o);
    } else {
        put_host_states(x, o);
        put_takers(x, o);
    }
    put_exits(x, hz, o);
    put_calls(x, o);
}

static void json_host(HtJson *j, const HtVcpuSums *v)
{
    g_autoptr(GList) takers = g_list_sort(g_hash_table_get_values(v->takers),
                                          taker_longer);
    GList *l;

    ht_json_uint(j, "guest_ns", v->modes[HT_MODE_GUEST]);
    ht_json_uint(j, "exits_ns", v->modes[HT_MODE_EXIT]);
    ht_json_uint(j, "qemu_ns", v->modes[HT_MODE_VMM]);
    ht_json_uint(j, "halted_ns", v->halted);
    ht_json_uint(j, "waiting_ns", v->ticks[HT_RUN_BLOCKED] - v->halted);
    ht_json_open(j, "waited_for", '[');
    for (l = takers; l; l = l->next) {
        const HtTaker *t = l->data;

        ht_json_open(j, NULL, '{');
        ht_json_int(j, "pid", t->pid);
        ht_json_str(j, "name", t->comm);
        ht_json_uint(j, "ns", t->ticks);
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

static void json_vcpu(HtJson *j, const HtVcpuSums *v, double hz)
{
    g_autoptr(GList) exits = g_list_sort(g_hash_table_get_values(v->exits),
                                         exit_longer);
    g_autoptr(GList) calls = g_list_sort(g_hash_table_get_keys(v->hypercalls),
                                         number_less);
    GList *l;
    unsigned i;

    ht_json_open(j, NULL, '{');
    if (v->tid) {
        ht_json_uint(j, "process", v->machine);
        ht_json_int(j, "vcpu", v->vcpu);
        ht_json_uint(j, "thread", v->tid);
        json_host(j, v);
    } else {
        ht_json_uint(j, "domain", v->machine);
        ht_json_int(j, "vcpu", v->vcpu);
        ht_json_bool(j, "idle", v->machine == HT_XEN_IDLE);
    }
    for (i = 0; i < HT_RUN_STATES; i++) {
        ht_json_open(j, states[i], '{');
        ht_json_uint(j, "ns", to_ns(v->ticks[i], hz));
        ht_json_uint(j, "intervals", v->intervals[i]);
        ht_json_close(j, '}');
    }
    ht_json_uint(j, "preempted_ns", to_ns(v->preempted, hz));
    ht_json_uint(j, "woken_ns", to_ns(v->woken, hz));
    ht_json_uint(j, "unknown_ns", to_ns(unknown(v), hz));
    ht_json_uint(j, "open_exits", v->open_exits);
    ht_json_open(j, "exits", '[');
    for (l = exits; l; l = l->next) {
        const HtExitSums *e = l->data;

        if (e->count) {
            ht_json_open(j, NULL, '{');
            ht_json_uint(j, "reason", e->reason);
            if (v->tid) {
                ht_json_str(j, "name", e->name);
            }
            ht_json_uint(j, "number", e->count);
            ht_json_uint(j, "ns", to_ns(e->ticks, hz));
            ht_json_uint(j, "mean_ns", to_ns(e->ticks / e->count, hz));
            ht_json_uint(j, "p99_ns",
                         to_ns(ht_runstates_percentile(e, 99), hz));
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

static void put_json(const HtRunstates *x, double hz, HtOutput *o)
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

/* Add up a trace of xentrace. */
static HtRunstates *read_xen(const char *path, GError **errp)
{
    g_autoptr(GMappedFile) file = g_mapped_file_new(path, false, errp);
    const char *data = file ? g_mapped_file_get_contents(file) : NULL;

    return file ? ht_xentrace_read((const uint8_t *)(data ? data : ""),
                                   g_mapped_file_get_length(file), errp) :
                  NULL;
}

/* Add up the host's part of a recording; @dir may also be that part. */
static HtRunstates *read_host(const char *dir, GError **errp)
{
    g_autofree char *part = g_build_filename(dir, HT_HOST_FOLDER, NULL);
    g_autofree char *info = g_build_filename(part, "info", NULL);
    g_autofree char *own = g_build_filename(dir, "threads", NULL);
    g_autoptr(HtModel) m = NULL;
    g_autoptr(GHashTable) threads = NULL;
    g_autofree char *text = NULL;
    HtRunstates *x;
    size_t size = 0;

    if (!g_file_test(info, G_FILE_TEST_EXISTS) &&
        !g_file_test(own, G_FILE_TEST_EXISTS)) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "%s has no events of the host; record them as root with"
                    " 'hypertrace record --host'", dir);
        return NULL;
    }
    m = ht_model_open(g_file_test(info, G_FILE_TEST_EXISTS) ? part : dir,
                      errp);
    text = m ? ht_rec_text(ht_model_recording(m), "threads", THREADS_MAX,
                           &size, errp) : NULL;
    if (!m || (errp && *errp)) {
        return NULL;
    }
    threads = ht_host_threads(text ? text : "", size);
    x = ht_host_sums(m, threads);
    x->damaged = ht_rec_damaged(ht_model_recording(m));
    ht_view_trouble(m);
    return x;
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
    g_autoptr(HtRunstates) x = NULL;
    GError *error = NULL;
    double hz;
    HtOutput o;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Show what the host did with the vCPUs"
                       " of its guests.", HT_VIEW_OUTPUT, own, &status)) {
        ht_view_free(&v);
        return status;
    }
    hz = !xentrace ? HZ_NS : frequency ? parse_hz(frequency) : 0;
    if (!hz) {
        status = ht_usage_error("--cpu-hz=%s: give the TSC frequency of the"
                                " host, 1M to 100G; 'xl info' shows it as"
                                " cpu_mhz: --cpu-hz=2596.135M",
                                frequency ? frequency : "");
    } else if (frequency && !xentrace) {
        status = ht_usage_error("--cpu-hz needs --xentrace");
    } else if (xentrace && g_file_test(v.dir, G_FILE_TEST_IS_DIR)) {
        status = ht_usage_error("--xentrace: give the FILE that xentrace"
                                " wrote");
    } else {
        ht_view_output(&v, &o);
        x = xentrace ? read_xen(v.dir, &error) : read_host(v.dir, &error);
        if (x && v.json) {
            put_json(x, hz, &o);
        } else if (x) {
            put_text(x, hz, xentrace, &o);
        }
        status = ht_view_finish(&o, x != NULL, error);
    }
    ht_view_free(&v);
    return status;
}
