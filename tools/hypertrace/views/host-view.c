/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the events of a host, and show its vCPUs, for several views
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/file.h"
#include "cli/number.h"
#include "host/host-record.h"
#include "host/host-sums.h"
#include "host/xentrace.h"
#include "views/host-view.h"

#define HZ_MIN      1e6
#define HZ_MAX      1e11
/* Ticks per second of a recording: its times are nanoseconds */
#define HZ_NS       1e9
/*
 * Maximum number of rows, for a vCPU, in the table of the tasks that it
 * waited for
 */
#define TAKERS_MAX  5
#define CPUS_SHOWN  4

/*
 * Parse "2596135000", "2596.135M" or "2.596135G". Returns 0 on failure, and
 * also if the number is not from HZ_MIN to HZ_MAX.
 */
static double parse_hz(const char *s)
{
    char *end;
    double hz = g_ascii_strtod(s, &end);

    if (*end == 'M' || *end == 'G') {
        hz *= *end++ == 'M' ? 1e6 : 1e9;
    }
    return end != s && !*end && hz >= HZ_MIN && hz <= HZ_MAX ? hz : 0;
}

static bool check(HtHostView *h, int *status)
{
    h->hz = !h->xentrace ? HZ_NS : h->frequency ? parse_hz(h->frequency) : 0;
    if (!h->hz) {
        *status = ht_usage_error("--cpu-hz=%s: give the TSC frequency of the"
                                 " host, 1M to 100G; 'xl info' shows it as"
                                 " cpu_mhz: --cpu-hz=2596.135M",
                                 h->frequency ? h->frequency : "");
        return false;
    }
    if (h->frequency && !h->xentrace) {
        *status = ht_usage_error("--cpu-hz needs --xentrace");
        return false;
    }
    if (h->xentrace && g_file_test(h->v.dir, G_FILE_TEST_IS_DIR)) {
        *status = ht_usage_error("--xentrace: give the FILE that xentrace"
                                 " wrote");
        return false;
    }
    return true;
}

bool ht_host_view_parse(HtHostView *h, int *argc, char **argv,
                        const char *summary, unsigned which, int *status)
{
    const GOptionEntry own[] = {
        { "xentrace", 0, 0, G_OPTION_ARG_NONE, &h->xentrace,
          "the argument is a file that xentrace wrote", NULL },
        { "cpu-hz", 0, 0, G_OPTION_ARG_STRING, &h->frequency,
          "TSC cycles per second: 2596135000, 2596.135M or 2.596G", "N" },
        { 0 }
    };

    return ht_view_parse(&h->v, argc, argv, summary, which, own, status) &&
           check(h, status);
}

void ht_host_view_free(HtHostView *h)
{
    ht_runstates_free(h->x);
    if (h->threads) {
        g_hash_table_destroy(h->threads);
    }
    g_free(h->frequency);
    ht_view_free(&h->v);
}

uint64_t ht_host_view_ns(const HtHostView *h, uint64_t ticks)
{
    double ns = ticks / h->hz * 1e9;

    if (h->hz == HZ_NS) {
        return ticks;
    }
    return ns < 0x1p63 ? ns + 0.5 : INT64_MAX;
}

/* Convert nanoseconds to the ticks in which the sums are. */
static uint64_t to_ticks(const HtHostView *h, uint64_t ns)
{
    double ticks = ns / 1e9 * h->hz;

    if (h->hz == HZ_NS) {
        return ns;
    }
    return ticks < 0x1p63 ? ticks + 0.5 : UINT64_MAX;
}

/*
 * Add up a trace of xentrace. With --from or --to, the file is read twice:
 * first to find the trace's begin and end, from which these times count.
 */
static bool read_xen(HtHostView *h, GError **errp)
{
    g_autoptr(GMappedFile) file = ht_file_map(h->v.dir, errp);
    const char *data = file ? g_mapped_file_get_contents(file) : NULL;
    gsize size = file ? g_mapped_file_get_length(file) : 0;
    const uint8_t *bytes = (const uint8_t *)(data ? data : "");

    if (!file) {
        return false;
    }
    if (ht_view_times(&h->v)) {
        g_autoptr(HtRunstates) whole = ht_runstates_new();

        if (!ht_xentrace_read(whole, bytes, size, errp) ||
            !ht_view_end(&h->v, ht_host_view_ns(h, whole->end - whole->begin),
                         errp)) {
            return false;
        }
        h->x->from = whole->begin + to_ticks(h, h->v.from_ns);
        h->x->to = h->v.to_ns == UINT64_MAX ? UINT64_MAX :
                   whole->begin + to_ticks(h, h->v.to_ns);
    }
    return ht_xentrace_read(h->x, bytes, size, errp);
}

char *ht_host_view_part(const char *dir)
{
    g_autofree char *part = g_build_filename(dir, HT_HOST_FOLDER, NULL);
    g_autofree char *info = g_build_filename(part, "info", NULL);
    g_autofree char *own = g_build_filename(dir, "threads", NULL);

    if (g_file_test(info, G_FILE_TEST_EXISTS)) {
        return g_steal_pointer(&part);
    }
    return g_file_test(own, G_FILE_TEST_EXISTS) ? g_strdup(dir) : NULL;
}

void ht_host_view_no_part(const char *dir, GError **errp)
{
    if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "there is no directory '%s'", dir);
        return;
    }
    if (access(dir, X_OK)) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_ACCES,
                    "cannot read '%s': %s", dir, g_strerror(errno));
        return;
    }
    g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                "%s has no events of the host; record them as root with"
                " 'hypertrace record --host'", dir);
}

static bool read_host(HtHostView *h, GError **errp)
{
    g_autofree char *part = ht_host_view_part(h->v.dir);
    g_autoptr(HtModel) m = NULL;
    GError *error = NULL;

    if (!part) {
        ht_host_view_no_part(h->v.dir, errp);
        return false;
    }
    g_free(h->v.dir);
    h->v.dir = g_steal_pointer(&part);
    m = ht_view_open(&h->v, errp);
    if (!m) {
        return false;
    }
    h->threads = ht_host_sums_threads(m, &error);
    if (error) {
        g_propagate_error(errp, error);
        return false;
    }
    h->x->from = h->v.from_ns;
    h->x->to = h->v.to_ns;
    ht_host_sums(h->x, m, h->threads);
    h->cpus = strtoul(ht_model_info(m, "host", "cpus"), NULL, 10);
    if (!h->cpus) {
        /*
         * Recordings of older versions do not have the number of the host's
         * processors: count the processors that have a ring in the recording.
         */
        h->cpus = ht_rec_info(ht_model_recording(m))->cpus;
    }
    h->x->damaged = ht_rec_damaged(ht_model_recording(m));
    ht_view_trouble(m);
    return true;
}

void ht_host_view_error(const HtBounds *b, const char *whose, HtOutput *o)
{
    uint64_t most = ht_bounds_of(b, 99), worst = ht_bounds_of(b, 100);

    g_string_append_printf(o->text, "99 %% of %s times have an error of at"
                           " most ", whose);
    ht_number_duration(o->text, most, 0);
    if (worst > 2 * most) {
        g_string_append(o->text, "; the largest error is ");
        ht_number_duration(o->text, worst, 0);
    }
}

bool ht_host_view_read(HtHostView *h, HtTakenFunc *taken, void *opaque,
                       GError **errp)
{
    h->x = ht_runstates_new();
    h->x->taken = taken;
    h->x->opaque = opaque;
    if (!h->xentrace) {
        return read_host(h, errp);
    }
    if (!read_xen(h, errp)) {
        return false;
    }
    h->cpus = h->x->cpus;
    return true;
}

uint64_t ht_host_view_total(const HtVcpuSums *v)
{
    uint64_t sum = v->unknown;
    unsigned i;

    for (i = 0; i < HT_RUN_STATES; i++) {
        sum += v->ticks[i];
    }
    return sum;
}

/*
 * With Xen, @tid is 0, and the mode is never known: do not count the time of an
 * unknown mode.
 */
uint64_t ht_host_view_unknown(const HtVcpuSums *v)
{
    return v->unknown + (v->tid ? v->modes[HT_MODE_UNKNOWN] : 0);
}

void ht_host_view_summary(const HtHostView *h, HtOutput *o)
{
    const HtRunstates *x = h->x;

    g_string_append_printf(o->text, "%" PRIu64 " record%s of %u CPU%s, %u"
                           " vCPU%s, %.6f s", x->records,
                           ht_number_s(x->records), x->cpus,
                           ht_number_s(x->cpus), x->vcpus->len,
                           ht_number_s(x->vcpus->len),
                           ht_host_view_ns(h, x->end - x->begin) / 1e9);
    ht_output_colour(o, HT_COLOUR_RED);
    if (x->gaps) {
        g_string_append_printf(o->text, "; %" PRIu64 " lost in %" PRIu64
                               " gap%s", x->lost, x->gaps,
                               ht_number_s(x->gaps));
    }
    if (x->damaged) {
        g_string_append_printf(o->text, "; %" PRIu64 " byte%s of damaged"
                               " records", x->damaged, ht_number_s(x->damaged));
    }
    if (x->backward) {
        g_string_append_printf(o->text, "; the clock went back %" PRIu64
                               " time%s", x->backward,
                               ht_number_s(x->backward));
    }
    if (x->others) {
        g_string_append_printf(o->text, "; %" PRIu64 " record%s left out: too"
                               " many vCPUs, reasons, hypercalls or tasks",
                               x->others, ht_number_s(x->others));
    }
    ht_output_colour(o, HT_COLOUR_NONE);
    g_string_append(o->text, "\n\n");
}

void ht_host_view_json(const HtHostView *h, HtJson *j)
{
    const HtRunstates *x = h->x;

    ht_json_uint(j, "records", x->records);
    ht_json_uint(j, "cpus", x->cpus);
    ht_json_uint(j, "ns", ht_host_view_ns(h, x->end - x->begin));
    ht_json_uint(j, "lost", x->lost);
    ht_json_uint(j, "gaps", x->gaps);
    ht_json_uint(j, "damaged_bytes", x->damaged);
    ht_json_uint(j, "times_back", x->backward);
    ht_json_uint(j, "left_out", x->others);
}

char *ht_host_view_name(const HtVcpuSums *v)
{
    return v->tid && v->vcpu < 0 ? g_strdup_printf("%u all", v->machine) :
           v->tid ? g_strdup_printf("%u v%d", v->machine, v->vcpu) :
           v->machine == HT_XEN_IDLE ? g_strdup_printf("idle v%d", v->vcpu) :
           g_strdup_printf("d%u v%d", v->machine, v->vcpu);
}

void ht_host_view_vcpu(const HtVcpuSums *v, HtOutput *o)
{
    g_autofree char *name = ht_host_view_name(v);

    g_string_append_printf(o->text, "%-12s", name);
}

void ht_host_view_share(const HtHostView *h, HtOutput *o, uint64_t ticks,
                        uint64_t whole)
{
    g_string_append_printf(o->text, " %5.1f%% ",
                           whole ? 100.0 * ticks / whole : 0);
    ht_number_duration(o->text, ht_host_view_ns(h, ticks), 8);
}

static gint longer(gconstpointer a, gconstpointer b)
{
    const HtTaker *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           x->pid < y->pid ? -1 : x->pid > y->pid;
}

GList *ht_host_view_sorted(GHashTable *takers)
{
    return g_list_sort(g_hash_table_get_values(takers), longer);
}

static gint more_ticks(gconstpointer a, gconstpointer b)
{
    const HtCpuTicks *x = a, *y = b;

    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) :
           x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

void ht_host_view_taker(const HtHostView *h, HtOutput *o, const HtTaker *t,
                        uint64_t whole)
{
    unsigned i;

    ht_host_view_share(h, o, t->ticks, whole);
    g_string_append_printf(o->text, " %9" PRIu64, t->waits);
    ht_number_duration(o->text, ht_host_view_ns(h, t->longest), 9);
    g_array_sort(t->cpus, more_ticks);
    for (i = 0; i < MIN(t->cpus->len, CPUS_SHOWN); i++) {
        g_string_append_printf(o->text, "%s%" PRIu32, i ? "," : "  ",
                               g_array_index(t->cpus, HtCpuTicks, i).cpu);
    }
    g_string_append(o->text, t->cpus->len > CPUS_SHOWN ? ",...\n" : "\n");
}

void ht_host_view_takers(const HtHostView *h, HtOutput *o)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < h->x->vcpus->len && ht_output_room(o); i++) {
        const HtVcpuSums *v = h->x->vcpus->pdata[i];
        g_autoptr(GList) takers = ht_host_view_sorted(v->takers);
        unsigned n = 0;
        GList *l;

        for (l = takers; l && n < TAKERS_MAX; l = l->next, n++) {
            const HtTaker *t = l->data;
            const HtVcpuSums *other = ht_runstates_find(h->x, t->pid);
            g_autofree char *vcpu = other ? ht_host_view_name(other) : NULL;
            g_autofree char *pid = g_strdup_printf("%d", t->pid);

            if (!any) {
                g_string_append_c(o->text, '\n');
                ht_output_heading(o, "vCPU         waited while this ran     "
                                  HT_HOST_TAKER_HEADING);
                any = true;
            }
            ht_host_view_vcpu(v, o);
            g_string_append_c(o->text, ' ');
            ht_output_padded(o, t->idle ? "an idle CPU" : vcpu ? vcpu :
                             t->comm, 17);
            g_string_append_printf(o->text, " %7s", t->idle || h->xentrace ?
                                   "" : pid);
            ht_host_view_taker(h, o, t, v->ticks[HT_RUN_RUNNABLE]);
        }
    }
}

void ht_host_view_taker_json(const HtHostView *h, HtJson *j, const HtTaker *t)
{
    unsigned i;

    ht_json_uint(j, "ns", ht_host_view_ns(h, t->ticks));
    ht_json_uint(j, "waits", t->waits);
    ht_json_uint(j, "longest_ns", ht_host_view_ns(h, t->longest));
    ht_json_open(j, "cpus", '[');
    for (i = 0; i < t->cpus->len; i++) {
        const HtCpuTicks *c = &g_array_index(t->cpus, HtCpuTicks, i);

        ht_json_open(j, NULL, '{');
        ht_json_uint(j, "cpu", c->cpu);
        ht_json_uint(j, "ns", ht_host_view_ns(h, c->ticks));
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}

void ht_host_view_takers_json(const HtHostView *h, HtJson *j,
                              const HtVcpuSums *v)
{
    g_autoptr(GList) takers = ht_host_view_sorted(v->takers);
    GList *l;

    ht_json_open(j, "waited_for", '[');
    for (l = takers; l; l = l->next) {
        const HtTaker *t = l->data;
        const HtVcpuSums *other = ht_runstates_find(h->x, t->pid);

        ht_json_open(j, NULL, '{');
        if (h->xentrace) {
            ht_json_uint(j, "domain", t->machine);
        } else {
            ht_json_int(j, "pid", t->pid);
            ht_json_str(j, "name", t->comm);
            ht_json_uint(j, "process", t->machine);
        }
        if (other) {
            ht_json_int(j, "vcpu", other->vcpu);
        }
        ht_json_bool(j, "idle", t->idle);
        ht_host_view_taker_json(h, j, t);
        ht_json_close(j, '}');
    }
    ht_json_close(j, ']');
}
