/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export: a recording in other programs' formats
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "escape.h"
#include "export.h"

static const struct {
    const char *name;
    const char *suffix;
    bool (*run)(HtExport *x, GError **errp);
} formats[] = {
    { "dat", ".dat", ht_export_dat },
    { "perfetto", ".pftrace", ht_export_perfetto },
    { "ctf", "", ht_export_ctf },
};

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

static gint by_order(gconstpointer a, gconstpointer b)
{
    const HtExportPart *x = a, *y = b;

    if (x->boot != y->boot) {
        return x->boot < y->boot ? -1 : 1;
    }
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* The largest is trace.dat, others trace-1.dat, trace-3.dat */
static void name_parts(HtExport *x)
{
    g_autofree char *base = g_path_get_basename(x->path);
    const char *dot = strrchr(base, '.');
    gsize stem = strlen(x->path) - (dot && dot != base ? strlen(dot) : 0);
    unsigned i, largest = 0;

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

static void add_wall(HtExport *x, const HtFtPiece *p, int64_t shift)
{
    const int64_t unknown = INT64_MAX;
    int64_t *wall;

    if (p->epoch >= HT_EXPORT_FILES_MAX || !p->host_after ||
        p->end_ns > INT64_MAX / 4 || p->host_after > INT64_MAX / 4) {
        return;
    }
    while (x->walls->len <= p->epoch) {
        g_array_append_val(x->walls, unknown);
    }
    /* the narrowest of the bounds that all pieces give */
    wall = &g_array_index(x->walls, int64_t, p->epoch);
    *wall = MIN(*wall, (int64_t)p->host_after - (int64_t)p->end_ns + shift);
}

static bool add_piece(HtExport *x, const HtFtPiece *p)
{
    HtExportPart *part;

    if (!p->events || (x->v->boot && p->epoch + 1 != (unsigned)x->v->boot)) {
        return true;
    }
    part = ht_export_part(x, p->epoch + 1, p->segment);
    if (part) {
        part->events += p->events;
    } else {
        HtExportPart new = {
            .boot = p->epoch + 1, .segment = p->segment, .events = p->events,
        };

        g_array_append_val(x->parts, new);
    }
    return x->parts->len <= HT_EXPORT_FILES_MAX;
}

/* What files there will be, and when: one way through all pieces */
static bool look_ahead(HtExport *x, GError **errp)
{
    const char *real = ht_model_info(x->m, "recording", "started-realtime");
    const char *mono = ht_model_info(x->m, "recording", "started-monotonic");
    HtRecording *rec = ht_model_recording(x->m);
    uint32_t cpu, cpus = ht_rec_info(rec)->cpus;
    bool clocks, ok = true;
    gint64 r, m;
    HtFtPiece p;

    clocks = g_ascii_string_to_signed(real, 10, 1, INT64_MAX / 2, &r, NULL) &&
             g_ascii_string_to_signed(mono, 10, 0, INT64_MAX / 2, &m, NULL);
    ht_model_rewind(x->m);
    for (cpu = 0; cpu < cpus; cpu++) {
        while (ok && ht_rec_next_piece(rec, cpu, &p)) {
            ok = add_piece(x, &p);
            if (clocks) {
                add_wall(x, &p, r - m);
            }
        }
    }
    ht_model_rewind(x->m);
    if (!ok) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the guest's clock went back more than %d times, and each"
                    " needs a file; pick a boot with --boot",
                    HT_EXPORT_FILES_MAX - 1);
        return false;
    }
    if (!x->parts->len) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "there is no event to be written");
        return false;
    }
    name_parts(x);
    return true;
}

bool ht_export_wall(const HtExport *x, unsigned boot, int64_t *ns)
{
    *ns = boot <= x->walls->len ?
          g_array_index(x->walls, int64_t, boot - 1) : INT64_MAX;
    return *ns != INT64_MAX;
}

static void say(const HtExport *x)
{
    unsigned i;

    for (i = 0; i < x->parts->len; i++) {
        const HtExportPart *p = &g_array_index(x->parts, HtExportPart, i);
        g_autoptr(GString) s = g_string_new(NULL);

        ht_escape_str(s, HT_ESCAPE_TERMINAL, p->path);
        if (p->made && x->parts->len > 1) {
            g_printerr("hypertrace export: boot %u%s: %" PRIu64 " events in"
                       " '%s'\n", p->boot, i + 1 < x->parts->len &&
                       p[1].boot == p->boot ?
                       ", before the guest's clock went back" : "",
                       p->events, s->str);
        }
    }
    if (x->unknown_tasks) {
        g_printerr("hypertrace export: the processes of %u threads are not"
                   " known; task:task_newtask was lost or not recorded then\n",
                   x->unknown_tasks);
    }
}

/* Its name says what a file is, if nobody else does. */
static int find_format(const char *format, const char *path)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (format ? !strcmp(format, formats[i].name) :
            *formats[i].suffix && g_str_has_suffix(path, formats[i].suffix)) {
            return i;
        }
    }
    return -1;
}

static void clear_part(gpointer data)
{
    g_free(((HtExportPart *)data)->path);
}

int ht_export(int argc, char **argv)
{
    g_autofree char *format = NULL, *path = NULL;
    const GOptionEntry own[] = {
        { "format", 'f', 0, G_OPTION_ARG_STRING, &format,
          "dat, perfetto or ctf; by default as FILE's name ends: .dat,"
          " .pftrace", "FORMAT" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &path,
          "file, or directory of ctf, to make", "FILE" },
        { 0 }
    };
    HtView v = { 0 };
    HtExport x = { .v = &v };
    g_autoptr(GError) error = NULL;
    int status, which = -1;
    bool ok;

    if (!ht_view_parse(&v, &argc, argv, "Write a recording for trace-cmd and"
                       " KernelShark (dat), Perfetto, or babeltrace2 and Trace"
                       " Compass (ctf).", HT_VIEW_ALL & ~HT_VIEW_OUTPUT, own,
                       &status)) {
        goto out;
    }
    if (!path) {
        status = ht_usage_error("where to? say it with -o FILE");
        goto out;
    }
    which = find_format(format, path);
    if (which < 0) {
        status = format ?
            ht_usage_error("--format=%s: it is dat, perfetto or ctf", format) :
            ht_usage_error("which format? --format=dat, perfetto or ctf");
        goto out;
    }
    if (formats[which].run == ht_export_dat && ht_view_selects(&v)) {
        status = ht_usage_error("trace.dat has the ring's pages as they are:"
                                " only --boot picks some; use perfetto or"
                                " ctf");
        goto out;
    }
    x.path = path;
    x.parts = g_array_new(false, false, sizeof(HtExportPart));
    g_array_set_clear_func(x.parts, clear_part);
    x.walls = g_array_new(false, false, sizeof(int64_t));
    x.m = ht_view_open(&v, &error);
    ok = x.m && look_ahead(&x, &error) && formats[which].run(&x, &error);
    if (ok) {
        say(&x);
        status = HT_EXIT_OK;
    } else {
        g_autoptr(GString) s = g_string_new(NULL);

        ht_escape_str(s, HT_ESCAPE_TERMINAL, error->message);
        status = ht_error("%s", s->str);
    }
    ht_model_free(x.m);
    g_array_unref(x.parts);
    g_array_unref(x.walls);
out:
    ht_view_free(&v);
    return status;
}
