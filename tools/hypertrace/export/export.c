/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "export/export.h"
#include "host/host-record.h"
#include "hypertrace/ctf-writer.h"
#include "views/host-view.h"
#include "views/programs.h"

static const struct {
    const char *name;
    const char *suffix;
    bool (*run)(HtExport *x, GError **errp);
} formats[] = {
    { "dat", ".dat", ht_export_dat },
    { "perfetto", ".pftrace", ht_export_perfetto },
    { "ctf", ".ctf", ht_export_ctf },
    { "lttng", ".lttng", ht_export_lttng },
};

/* signal that asks an export to CTF or LTTng to stop, or 0 */
static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
    caught = sig;
}

HtExportPart *ht_export_part(HtExport *x, unsigned boot, uint32_t segment)
{
    unsigned i;

    for (i = x->parts->len; i--;) {
        HtExportPart *p = &g_array_index(x->parts, HtExportPart, i);

        if (p->boot == boot && p->segment == segment) {
            return p;
        }
    }
    return NULL;
}

bool ht_export_next(HtExport *x, HtModelEvent *ev)
{
    do {
        if (caught) {
            x->stopped = true;
            return false;
        }
        if (!ht_view_next(x->v, x->m, ev)) {
            return false;
        }
        if (!x->part || x->part->boot != ev->boot ||
            x->part->segment != ev->rec.segment) {
            x->part = ht_export_part(x, ev->boot, ev->rec.segment);
        }
    } while (!x->part);
    x->part->exported++;
    if (x->v->host) {
        x->dated[ev->bound_ns ? 64 - __builtin_clzll(ev->bound_ns) : 0]++;
        x->worst_ns = MAX(x->worst_ns, ev->bound_ns);
        x->begin_ns = MIN(x->begin_ns, ev->rec.ns);
        x->end_ns = MAX(x->end_ns, ev->rec.ns);
    }
    return true;
}

static gint by_order(gconstpointer a, gconstpointer b)
{
    const HtExportPart *x = a, *y = b;

    if (x->boot != y->boot) {
        return x->boot < y->boot ? -1 : 1;
    }
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/*
 * Sort the parts and set their paths. The part with the most events gets the
 * path @x->path, for example trace.dat. The paths of the other parts have the
 * number of the part, as trace-2.dat for the second one.
 */
static void name_parts(HtExport *x)
{
    g_autofree char *base = g_path_get_basename(x->path);
    const char *dot = strrchr(base, '.');
    gsize stem = strlen(x->path) - (dot && dot != base ? strlen(dot) : 0);
    unsigned i, largest = 0;

    x->part = NULL;
    g_array_sort(x->parts, by_order);
    for (i = 1; i < x->parts->len; i++) {
        if (g_array_index(x->parts, HtExportPart, i).events >
            g_array_index(x->parts, HtExportPart, largest).events) {
            largest = i;
        }
    }
    for (i = 0; i < x->parts->len; i++) {
        HtExportPart *p = &g_array_index(x->parts, HtExportPart, i);

        p->path = i == largest ? g_strdup(x->path) :
                  g_strdup_printf("%.*s-%u%s", (int)stem, x->path, i + 1,
                                  x->path + stem);
    }
}

/*
 * Lower @part->wall_ns to the bound that the piece @p of the recording gives.
 * The guest wrote the last event of @p (at end_ns of the guest's clock) before
 * the poll that read it ended (at host_after of the host's). So the host's
 * clock minus the guest's is at most host_after - end_ns. The smallest bound
 * of all pieces is used. @shift is as in add_piece().
 */
static void add_wall(HtExportPart *part, const HtFtPiece *p, int64_t shift)
{
    if (p->host_after && p->end_ns <= INT64_MAX / 4 &&
        p->host_after <= INT64_MAX / 4) {
        part->wall_ns = MIN(part->wall_ns, (int64_t)p->host_after -
                            (int64_t)p->end_ns + shift);
    }
}

/*
 * Add the events of a piece to the piece's part, which is created if it is new.
 * Skip a piece without events, and one of another boot than that of --boot.
 * @shift is CLOCK_REALTIME - CLOCK_MONOTONIC of the host in ns, or NULL if it
 * is not known. Return false if there are too many parts.
 */
static bool add_piece(HtExport *x, const HtFtPiece *p, const int64_t *shift)
{
    HtExportPart *part;

    if (!p->events || (x->v->boot && p->epoch + 1 != (unsigned)x->v->boot)) {
        return true;
    }
    part = ht_export_part(x, p->epoch + 1, p->segment);
    if (part) {
        part->events += p->events;
        part->begin_ns = MIN(part->begin_ns, p->begin_ns);
    } else {
        HtExportPart new = {
            .boot = p->epoch + 1, .segment = p->segment, .events = p->events,
            .begin_ns = p->begin_ns,
            .wall_ns = INT64_MAX,
        };

        g_array_append_val(x->parts, new);
        part = &g_array_index(x->parts, HtExportPart, x->parts->len - 1);
    }
    if (shift) {
        add_wall(part, p, *shift);
    }
    return x->parts->len <= HT_EXPORT_FILES_MAX;
}

/*
 * Find the parts of the selected boots and their times, by the headers of all
 * pieces of the recording.
 */
static bool find_parts(HtExport *x, GError **errp)
{
    const char *real = ht_model_info(x->m, "recording", "started-realtime");
    const char *mono = ht_model_info(x->m, "recording", "started-monotonic");
    HtRecording *rec = ht_model_recording(x->m);
    uint32_t cpu, cpus = ht_rec_info(rec)->cpus;
    bool clocks, ok = true;
    int64_t shift;
    gint64 r, m;
    HtFtPiece p;

    clocks = g_ascii_string_to_signed(real, 10, 1, INT64_MAX / 2, &r, NULL) &&
             g_ascii_string_to_signed(mono, 10, 0, INT64_MAX / 2, &m, NULL);
    shift = clocks ? r - m : 0;
    ht_model_rewind(x->m);
    for (cpu = 0; cpu < cpus; cpu++) {
        while (ok && ht_rec_next_piece(rec, cpu, &p)) {
            ok = add_piece(x, &p, clocks ? &shift : NULL);
        }
    }
    ht_model_rewind(x->m);
    if (!ok) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the export needs more than %d files, because the guest's"
                    " clock went back too often; select a boot with --boot",
                    HT_EXPORT_FILES_MAX);
        return false;
    }
    if (!x->parts->len && !x->host_part) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "no events are selected");
        return false;
    }
    if (x->parts->len > 1 && !x->v->host && ht_output_is_stream(x->path)) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "'%s' takes one file, but each boot and each part of the"
                    " guest's clock becomes a file, here %u: give -o FILE, or"
                    " --clock=host with perfetto", x->path, x->parts->len);
        return false;
    }
    name_parts(x);
    for (cpu = 0; cpu < x->parts->len && x->v->host; cpu++) {
        HtExportPart *part = &g_array_index(x->parts, HtExportPart, cpu);

        part->worst_ns = ht_host_clock_worst(x->v->host, part->boot,
                                             part->segment, part->begin_ns);
    }
    return true;
}

bool ht_export_wall(const HtExport *x, const HtExportPart *part, int64_t *ns)
{
    if (x->v->host) {
        *ns = x->wall_ns;
        return x->wall_known;
    }
    *ns = part->wall_ns;
    return *ns != INT64_MAX;
}

/*
 * For an export with the host's clock, print the number of exported events, and
 * for a guest the maximum error of their times: a bound for half of the events,
 * and one for all. Also print how many events were left out because their host
 * time is not known. Set these numbers to 0 for the next recording.
 */
static void report_error(HtExport *x)
{
    g_autoptr(GString) name = g_string_new(NULL), text = g_string_new(NULL);
    uint64_t events = 0, sum = 0;
    unsigned i, half = 0;

    for (i = 0; i < G_N_ELEMENTS(x->dated); i++) {
        events += x->dated[i];
    }
    for (sum = x->dated[0]; sum < events - sum; sum += x->dated[half]) {
        half++;
    }
    ht_escape_str(name, HT_ESCAPE_TERMINAL, x->name);
    g_string_printf(text, "hypertrace export: '%s': %" PRIu64 " event%s",
                    name->str, events, ht_number_s(events));
    if (x->host_part) {
        g_string_append(text, " of the host");
    } else {
        g_string_append(text, "; on the host's clock, the error of half of"
                        " them is at most ");
        ht_number_duration(text, UINT64_C(1) << MIN(half, 62), 0);
        g_string_append(text, ", of all at most ");
        ht_number_duration(text, x->worst_ns, 0);
    }
    g_printerr("%s\n", text->str);
    if (x->v->undated) {
        g_printerr("hypertrace export: '%s': %" PRIu64 " event%s left out:"
                   " their host time is not known, because the recorder polled"
                   " the guest less than twice in that part of its clock\n",
                   name->str, x->v->undated,
                   x->v->undated == 1 ? " was" : "s were");
    }
    memset(x->dated, 0, sizeof(x->dated));
    x->worst_ns = 0;
    x->v->undated = 0;
}

/*
 * If the recording becomes several files or directories, print the names of
 * those that are complete.
 */
static void report_files(const HtExport *x)
{
    unsigned i;

    for (i = 0; x->parts->len > 1 && !x->out.path && i < x->parts->len; i++) {
        const HtExportPart *p = &g_array_index(x->parts, HtExportPart, i);
        g_autofree char *base = p->made ? g_path_get_basename(p->path) : NULL;
        g_autoptr(GString) s = g_string_new(NULL);

        if (!p->made) {
            continue;
        }
        /*
         * With several inputs, print the name without its directory: the
         * directory has a temporary name and is renamed later.
         */
        ht_escape_str(s, HT_ESCAPE_TERMINAL, x->several ? base : p->path);
        g_printerr("hypertrace export: boot %u%s: %" PRIu64 " event%s in"
                   " '%s'\n", p->boot, i + 1 < x->parts->len &&
                   p[1].boot == p->boot ?
                   ", before the guest's clock went back" : "",
                   p->exported, ht_number_s(p->exported), s->str);
    }
}

static void report(HtExport *x)
{
    if (x->v->host && !x->stopped) {
        report_error(x);
    }
    report_files(x);
    if (x->unknown_tasks) {
        g_printerr("hypertrace export: the %s of %u thread%s not"
                   " known; the event task:task_newtask was lost or not"
                   " recorded\n",
                   ht_number_form(x->unknown_tasks, "process", "processes"),
                   x->unknown_tasks,
                   ht_number_form(x->unknown_tasks, " is", "s are"));
    }
}

static int find_format(const char *format, const char *path)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (format ? !strcmp(format, formats[i].name) :
            g_str_has_suffix(path, formats[i].suffix)) {
            return i;
        }
    }
    return -1;
}

static void clear_part(gpointer data)
{
    g_free(((HtExportPart *)data)->path);
}

static void set_common_clock(HtExport *x)
{
    if (!x->first) {
        x->first = x->m;
        x->clock_known = true;
        x->host_boot = g_strdup(ht_model_info(x->m, "recording", "host-boot"));
        x->wall_known = ht_host_clock_wall(x->m, &x->wall_ns);
    }
}

static bool run_one(HtExport *x, int which, GError **errp)
{
    g_autoptr(GError) early = NULL;
    bool ok;

    x->parts = g_array_new(false, false, sizeof(HtExportPart));
    g_array_set_clear_func(x->parts, clear_part);
    x->unknown_tasks = 0;
    x->m = ht_view_open(x->v, errp);
    if (x->m) {
        set_common_clock(x);
    }
    x->same_host = x->m && ht_host_clock_shift(x->m, x->first, &x->v->shift,
                                               &early);
    if (x->m && !x->same_host) {
        g_printerr("hypertrace export: '%s' is from another host than the first"
                   " recording, or from another boot of it: its times are as"
                   " exact as the wall clocks of the hosts agree\n", x->name);
    }
    if (early) {
        g_propagate_error(errp, g_steal_pointer(&early));
    }
    ok = x->m && !*errp && find_parts(x, errp) && formats[which].run(x, errp);
    if (ok) {
        report(x);
    } else if (!x->several) {
        report_files(x);
    }
    if (x->m != x->first) {
        ht_model_free(x->m);
    }
    g_array_unref(x->parts);
    return ok;
}

static char *name_of(const char *dir, GHashTable *names)
{
    g_autofree char *real = g_canonicalize_filename(dir, NULL);
    g_autofree char *base = g_path_get_basename(real);
    char *name = g_strdup(base);
    unsigned i;

    for (i = 2; g_hash_table_contains(names, name); i++) {
        g_free(name);
        name = g_strdup_printf("%s-%u", base, i);
    }
    g_hash_table_add(names, name);
    return name;
}

static char *begin_directory(const char *path, GError **errp)
{
    g_autofree char *parent = g_path_get_dirname(path);
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *name = g_strdup_printf(".%s.%08x", base,
                                            g_random_int());
    g_autofree char *hidden = g_build_filename(parent, name, NULL);

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_EXISTS,
                    "'%s' exists; give the name of a new directory", path);
        return NULL;
    }
    if (g_mkdir(hidden, 0777) < 0) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(errno),
                    "cannot create a directory in '%s': %s", parent,
                    g_strerror(errno));
        return NULL;
    }
    return g_steal_pointer(&hidden);
}

static bool is_directory(int which)
{
    return formats[which].run == ht_export_ctf ||
           formats[which].run == ht_export_lttng;
}

static bool end_directory(const char *hidden, const char *path, bool ok,
                          GError **errp)
{
    g_autoptr(GDir) dir = NULL;
    const char *name;

    if (ok && g_rename(hidden, path) == 0) {
        return true;
    }
    if (ok) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(errno),
                    "cannot write '%s': %s", path, g_strerror(errno));
    }
    dir = g_dir_open(hidden, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *trace = g_build_filename(hidden, name, NULL);

        ht_export_remove(trace);
    }
    g_rmdir(hidden);
    return false;
}

/*
 * Check whether @dir is exported as CTF traces: it is a directory without a
 * file "info", and the export is for Perfetto.
 */
static bool is_trace(int which, const char *dir)
{
    g_autofree char *info = g_build_filename(dir, "info", NULL);

    return formats[which].run == ht_export_perfetto &&
           g_file_test(dir, G_FILE_TEST_IS_DIR) &&
           !g_file_test(info, G_FILE_TEST_EXISTS);
}

static gint recordings_first(gconstpointer a, gconstpointer b, gpointer which)
{
    return is_trace(GPOINTER_TO_INT(which), *(char *const *)a) -
           is_trace(GPOINTER_TO_INT(which), *(char *const *)b);
}

/*
 * List the directories to export: those of the command line, and for Perfetto
 * also the trace of programs' events of each recording that has one. Traces are
 * not added if an option selects events by more than their names, or chooses
 * the guest's clock. @dirs is the command line; dirs[0] is the command's name.
 */
static GPtrArray *with_programs(const HtView *v, int which, char **dirs,
                                int count)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    int i;

    for (i = 0; i < count; i++) {
        g_ptr_array_add(all, g_strdup(dirs[i]));
    }
    for (i = 1; i < count && formats[which].run == ht_export_perfetto; i++) {
        char *trace = ht_view_programs(v) ? ht_programs_path(dirs[i]) : NULL;

        if (trace) {
            g_ptr_array_add(all, trace);
        }
    }
    g_ptr_array_add(all, NULL);
    return all;
}

/*
 * List the host's parts of the recordings @dirs, each once, without those that
 * are themselves in @dirs. The list is empty for the format dat, if an option
 * selects events by anything but time and boot, or if the user chose the
 * guest's clock.
 */
static GPtrArray *host_parts(const HtView *v, int which, char **dirs, int count)
{
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                        free, NULL);
    GPtrArray *parts = g_ptr_array_new_with_free_func(g_free);
    int i;

    if (formats[which].run == ht_export_dat || ht_view_filters(v) ||
        (v->clock && !ht_view_on_host(v))) {
        return parts;
    }
    for (i = 0; i < count; i++) {
        char *real = realpath(dirs[i], NULL);

        if (real) {
            g_hash_table_add(known, real);
        }
    }
    for (i = 0; i < count; i++) {
        g_autofree char *part = ht_host_view_part(dirs[i]);
        char *real = part ? realpath(part, NULL) : NULL;

        if (real && g_hash_table_add(known, real)) {
            g_ptr_array_add(parts, g_steal_pointer(&part));
        }
    }
    return parts;
}

/*
 * Get the name of a host's part: "host" for the first one, RECORDING-host for
 * the others; with a number if another input has that name.
 */
static char *host_name(const char *part, unsigned index, GHashTable *names)
{
    g_autofree char *path = g_canonicalize_filename(part, NULL);
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *base = g_path_get_basename(dir);
    g_autofree char *name = g_strdup_printf("%s-%s", base, HT_HOST_FOLDER);

    return name_of(index ? name : HT_HOST_FOLDER, names);
}

/*
 * Export @dir, the host's part of recordings that are already exported. Unless
 * @whole is set, leave out what is before the first or after the last of their
 * exported events.
 */
static bool run_host(HtExport *x, int which, const char *dir, bool whole,
                     GError **errp)
{
    HtView *guest = x->v, v = { .dir = g_strdup(dir), .to_ns = UINT64_MAX };
    bool ok;

    if (!whole) {
        v.from_ns = x->begin_ns;
        v.to_ns = x->end_ns;
    }
    ht_view_use_host(&v, true);
    x->v = &v;
    x->host_part = true;
    ok = run_one(x, which, errp);
    x->host_part = false;
    x->v = guest;
    ht_view_free(&v);
    return ok;
}

static bool run_all(HtExport *x, int which, char **dirs, int count,
                    const GPtrArray *hosts, GError **errp)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash,
                                                        g_str_equal, g_free,
                                                        NULL);
    const char *path = x->path;
    bool in_file = formats[which].run == ht_export_perfetto &&
                   ht_view_on_host(x->v);
    bool in_directory = is_directory(which) && count + hosts->len > 1;
    g_autofree char *hidden = NULL;
    bool ok = true;
    unsigned h;
    int i;

    x->several = count + hosts->len > 1;
    x->begin_ns = UINT64_MAX;
    if (is_directory(which)) {
        /*
         * A signal must not end the process at once: first the unfinished
         * directory is removed.
         */
        ht_output_catch(on_signal);
    }
    if (in_directory) {
        hidden = begin_directory(path, errp);
        ok = hidden;
    } else if (in_file) {
        ok = ht_output_file(&x->out, path, errp);
    }
    for (i = 0; ok && i < count; i++) {
        g_autofree char *trace = NULL;

        if (is_trace(which, dirs[i])) {
            ok = ht_export_trace(x, dirs[i], errp);
            continue;
        }
        g_free(x->v->dir);
        x->v->dir = g_strdup(dirs[i]);
        x->name = name_of(dirs[i], names);
        trace = in_directory ? g_build_filename(hidden, x->name, NULL) : NULL;
        x->path = trace ? trace : path;
        ok = run_one(x, which, errp) && !x->stopped;
    }
    if (ok && in_file && !x->any) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "no events are selected");
        ok = false;
    }
    for (h = 0; ok && h < hosts->len; h++) {
        g_autofree char *trace = NULL;

        x->name = host_name(hosts->pdata[h], h, names);
        trace = in_directory ? g_build_filename(hidden, x->name, NULL) : NULL;
        x->path = trace ? trace : path;
        ok = run_host(x, which, hosts->pdata[h], count > 1 ||
                      !(x->v->boot || ht_view_times(x->v)), errp) &&
             !x->stopped;
    }
    x->path = path;
    if (hidden) {
        ok = end_directory(hidden, path, ok, errp);
    } else if (in_file && !ok && (*errp || !x->out.error)) {
        ht_output_abort(&x->out);
    } else if (in_file) {
        /* If an earlier write failed, ht_output_finish() sets @errp. */
        ok = ht_output_finish(&x->out, errp) && ok;
    }
    ht_model_free(x->first);
    g_free(x->host_boot);
    return ok;
}

/* Check whether options contradict each other. Returns a message, or NULL. */
static const char *mistake(const HtView *v, int which, const char *path,
                           bool several)
{
    if (formats[which].run == ht_export_dat) {
        return ht_view_selects(v) ?
            "trace.dat holds unchanged pages of the ring, so that only --boot"
            " can select events; use perfetto or ctf" :
            ht_view_on_host(v) || several ?
            "trace.dat holds the clock of one guest; use perfetto or ctf" :
            NULL;
    }
    if (is_directory(which) && ht_output_is_stream(path)) {
        return "ctf and lttng create a directory: give its name with -o DIR";
    }
    return several && v->clock && !ht_view_on_host(v) ?
        "each guest has its own clock: several recordings, and traces, need"
        " --clock=host" :
        several && ht_view_times(v) ?
        "--from and --to are times of one guest's clock: give only one"
        " recording" : NULL;
}

int ht_export(int argc, char **argv)
{
    g_autofree char *format = NULL, *path = NULL;
    const GOptionEntry own[] = {
        { "format", 'f', 0, G_OPTION_ARG_STRING, &format,
          "dat, perfetto, ctf or lttng; default by FILE's suffix: .dat,"
          " .pftrace, .ctf, .lttng", "FORMAT" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &path,
          "write to FILE; '-' means standard output; ctf and lttng create a"
          " directory", "FILE" },
        { 0 }
    };
    HtView v = { 0 };
    HtExport x = { .v = &v };
    g_autoptr(GPtrArray) all = NULL, hosts = NULL;
    g_autoptr(GError) error = NULL;
    const char *wrong;
    bool several;
    int status, which = -1;

    if (!ht_view_parse(&v, &argc, argv, "Write recordings for trace-cmd and"
                       " KernelShark (dat), Perfetto, babeltrace2 (ctf), or"
                       " Trace Compass (lttng). Several recordings are put on"
                       " the host's clock. For Perfetto, DIR may also be a CTF"
                       " trace of a device, or of LTTng.",
                       (HT_VIEW_ALL & ~HT_VIEW_OUTPUT) | HT_VIEW_CLOCK |
                       HT_VIEW_MANY, own, &status)) {
        goto out;
    }
    if (!path) {
        status = ht_usage_error("give the output with -o FILE");
        goto out;
    }
    which = find_format(format, path);
    if (which < 0) {
        status = format ?
            ht_usage_error("--format=%s: must be dat, perfetto, ctf or lttng",
                           format) :
            ht_usage_error("give --format: dat, perfetto, ctf or lttng, or a"
                           " FILE with the suffix .dat, .pftrace, .ctf or"
                           " .lttng");
        goto out;
    }
    all = with_programs(&v, which, argv, argc);
    argv = (char **)all->pdata;
    argc = all->len - 1;
    /*
     * Sort recordings before traces, because the host's clock of the first
     * recording is the common clock.
     */
    g_qsort_with_data(argv + 1, argc - 1, sizeof(*argv), recordings_first,
                      GINT_TO_POINTER(which));
    several = argc > 2 || is_trace(which, argv[1]);
    wrong = mistake(&v, which, path, several);
    if (wrong) {
        status = ht_usage_error("%s", wrong);
        goto out;
    }
    hosts = host_parts(&v, which, argv + 1, argc - 1);
    if ((several || hosts->len) && !v.clock) {
        v.clock = g_strdup("host");
    }
    x.path = path;
    ht_ctf_uuid(x.clock_uuid);
    if (run_all(&x, which, argv + 1, argc - 1, hosts, &error)) {
        status = HT_EXIT_OK;
    } else if (caught) {
        /* End the process by the signal that was caught. */
        signal(caught, SIG_DFL);
        raise(caught);
    } else {
        g_autoptr(GString) s = g_string_new(NULL);

        ht_escape_str(s, HT_ESCAPE_TERMINAL,
                      error ? error->message : "unknown error");
        status = ht_error("%s", s->str);
    }
out:
    ht_view_free(&v);
    return status;
}
