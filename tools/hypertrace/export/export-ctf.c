/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format ctf, lttng: write CTF 1.8
 *
 * Each segment of the guest's clock that has selected events becomes a trace.
 * The export uses the CTF writer of the device's CTF backend, with a stream for
 * each CPU that has selected events. The events of the function tracers and of
 * initcalls have the address of a function. If their class has room for it,
 * they get another field with the function's name, because readers of CTF have
 * no symbols.
 */
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "export/export.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/ftrace-class.h"

#define RUN_BYTES       (48 * 1024)
#define EVENT_MAX       (128 * 1024)
#define NAME_FIELD      "function"
#define NAME_MAX_BYTES  1024

/*
 * The CTF stream of a CPU, with the events that are collected in @run until
 * they are given to the writer together, as one HtRun
 */
typedef struct Stream {
    HtStreamInfo info;
    GByteArray *run;
    uint32_t events;
    /*
     * times of the first and the last event in @run, in ns. If @run is empty,
     * @end_ns is the time of the last event that was given to the writer;
     * before that, it is the time of the first event.
     */
    uint64_t begin_ns, end_ns;
    /* estimated number of lost events since the start of the stream */
    uint64_t discarded;
    bool open;
    bool cut;                   /* the next run needs the flag HT_RUN_CUT */
} Stream;

typedef struct Trace {
    HtExport *x;
    HtCtfWriter *writer;
    /* by type of the kernel's event: its class in the CTF trace */
    HtClass *classes[1 << 16];
    /*
     * by type of the kernel's event: the class has NAME_FIELD as its last
     * field
     */
    bool named[1 << 16];
    uint32_t nr_classes;
    Stream streams[HT_FT_CPUS_MAX];
    char *path;
    HtExportPart *part;
    int error;
} Trace;

/*
 * Get the index of the field, in ht_kinds, that has the address of a function;
 * -1 if events of this class have none.
 */
static int function_field(const HtEventClass *c)
{
    return c->kind == HT_KIND_FUNCTION ? HT_F_FUNCTION_IP :
           c->kind == HT_KIND_INITCALL_START ||
           c->kind == HT_KIND_INITCALL_FINISH ? HT_F_INITCALL_FUNC :
           c->kind == HT_KIND_GRAPH_ENTRY ||
           c->kind == HT_KIND_GRAPH_EXIT ? HT_F_GRAPH_FUNC : -1;
}

/*
 * If the events of a class have the address of a function, add NAME_FIELD to
 * the class. Return false if they do not, or if the class already has the
 * maximum number of fields or a field of that name.
 */
static bool add_name(HtClass *c, const HtEventClass *from)
{
    if (function_field(from) < 0 || c->nr_fields == HT_FIELDS_MAX ||
        !ht_class_field_free(c, NAME_FIELD)) {
        return false;
    }
    c->fields[c->nr_fields++] = (HtField) {
        .name = g_strdup(NAME_FIELD),
        .kind = HT_FIELD_TEXT,
        .elem = HT_FIELD_U8,
    };
    return true;
}

static HtClass *new_class(Trace *t, const HtEventClass *from)
{
    HtClass *c;

    if (t->nr_classes == HT_CLASSES_MAX) {
        return NULL;
    }
    c = ht_ft_class_new(from->name, from->format);
    c->id = ++t->nr_classes;
    t->named[from->type] = add_name(c, from);
    return c;
}

static void put_name(Trace *t, Stream *s, const HtModelEvent *ev)
{
    g_autoptr(GString) name = g_string_new(NULL);
    uint64_t addr = ht_event_uint(ev, function_field(ev->class));

    ht_model_function(t->x->m, ev->boot, addr, name);
    ht_ft_put_text(s->run, name->str, MIN(name->len, NAME_MAX_BYTES));
}

static void put_event(Trace *t, Stream *s, const HtClass *c,
                      const HtModelEvent *ev)
{
    HtFtRecord r = {
        .ns = ev->rec.ns,
        .data = ev->rec.data,
        .size = ev->rec.size,
    };

    ht_run_put_header(s->run, c->id, r.ns, s->end_ns);
    ht_ft_class_payload(s->run, ev->class->format, &r, SIZE_MAX);
    if (t->named[ev->rec.type]) {
        put_name(t, s, ev);
    }
    s->end_ns = r.ns;
    s->events++;
}

static void run_writer(Trace *t, Stream *s, unsigned flags)
{
    HtRun run = {
        .stream = &s->info,
        .flags = flags | (s->cut ? HT_RUN_CUT : 0),
        .events = s->events,
        .data = s->run->data,
        .size = s->run->len,
        .begin_ns = s->begin_ns,
        .end_ns = s->end_ns,
        .counter = s->begin_ns,
        .discarded = s->discarded,
    };
    int ret = ht_ctf_writer_run(t->writer, &run);

    if (ret && !t->error) {
        t->error = -ret;
    }
    g_byte_array_set_size(s->run, 0);
    s->events = 0;
    s->cut = false;
}

static void flush_stream(Trace *t, Stream *s)
{
    if (s->events) {
        run_writer(t, s, 0);
    }
}

static void open_stream(Trace *t, Stream *s, const HtModelEvent *ev)
{
    s->info = (HtStreamInfo) {
        .index = ev->rec.cpu,
        .vcpu = ev->rec.cpu,
        .instance = ev->rec.cpu + 1,
    };
    g_snprintf(s->info.name, sizeof(s->info.name), "cpu%u", ev->rec.cpu);
    s->run = g_byte_array_sized_new(RUN_BYTES + EVENT_MAX);
    s->begin_ns = s->end_ns = ev->rec.ns;
    s->open = true;
    run_writer(t, s, HT_RUN_OPEN);
    s->cut = true;
}

static bool add_event(Trace *t, const HtModelEvent *ev)
{
    HtClass **c = &t->classes[ev->rec.type];
    Stream *s;
    int ret;

    if (ev->rec.cpu >= HT_FT_CPUS_MAX) {
        return true;
    }
    s = &t->streams[ev->rec.cpu];
    if (!*c) {
        *c = new_class(t, ev->class);
        if (!*c) {
            t->error = ENOSPC;
            return false;
        }
        ret = ht_ctf_writer_class(t->writer, *c);
        if (ret) {
            t->error = -ret;
            return false;
        }
    }
    if (!s->open) {
        open_stream(t, s, ev);
    }
    if (ev->rec.lost_before || s->run->len > RUN_BYTES) {
        flush_stream(t, s);
    }
    if (ev->rec.lost_before) {
        s->discarded += MAX(ev->rec.lost_estimate, 1);
        s->cut = true;
    }
    if (!s->events) {
        s->begin_ns = ev->rec.ns;
        s->end_ns = s->cut ? ev->rec.ns : s->end_ns;
    }
    put_event(t, s, *c, ev);
    return !t->error;
}

void ht_export_remove(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        g_unlink(file);
    }
    g_rmdir(path);
}

static Trace *begin_trace(HtExport *x, HtExportPart *part, bool lttng,
                          GError **errp)
{
    const char *path = part->path;
    g_autofree char *parent = NULL, *base = NULL, *hidden = NULL;
    HtCtfInfo info = {
        .device = "ftrace",
        .channel = "ring",
        .clock = "the guest's trace clock",
        .lttng = lttng,
    };
    Trace *t;
    int ret;

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_EXISTS,
                    "'%s' exists; give the name of a new directory", path);
        return NULL;
    }
    parent = g_path_get_dirname(path);
    base = g_path_get_basename(path);
    hidden = g_strdup_printf(".%s.%08x", base, g_random_int());
    info.vm_name = x->name;
    ht_ctf_uuid(info.uuid);
    if (x->v->host) {
        info.clock = "the host's CLOCK_MONOTONIC";
        info.host_boot = x->host_boot && *x->host_boot ? x->host_boot : NULL;
        info.precision_ns = part->worst_ns;
        memcpy(info.clock_uuid, x->clock_uuid, sizeof(info.clock_uuid));
    } else {
        ht_ctf_uuid(info.clock_uuid);
    }
    if (!ht_export_wall(x, part, &info.clock_offset_ns)) {
        info.clock_offset_ns = 0;
    }
    t = g_new0(Trace, 1);
    t->x = x;
    t->path = g_strdup(path);
    t->part = part;
    ret = ht_ctf_writer_new(parent, hidden, &info, HT_FT_CPUS_MAX, &t->writer);
    if (ret) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(-ret),
                    "cannot create a directory in '%s': %s", parent,
                    g_strerror(-ret));
        g_free(t->path);
        g_free(t);
        return NULL;
    }
    return t;
}

/*
 * Write the collected events, and rename the trace's directory to its final
 * name. If @ok is false or an error occurs, remove the directory instead and
 * return false. Free @t in each case.
 */
static bool end_trace(Trace *t, bool ok, GError **errp)
{
    g_autofree char *made = g_strdup(ht_ctf_writer_path(t->writer));
    unsigned i;

    for (i = 0; i < HT_FT_CPUS_MAX; i++) {
        Stream *s = &t->streams[i];

        if (s->open) {
            flush_stream(t, s);
            s->begin_ns = s->end_ns;
            run_writer(t, s, HT_RUN_CLOSE);
            g_byte_array_unref(s->run);
        }
    }
    ht_ctf_writer_free(t->writer);
    if (ok && !t->error && g_rename(made, t->path) < 0) {
        t->error = errno;
    }
    if (t->error) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(t->error),
                    "cannot write '%s': %s", t->path, g_strerror(t->error));
    }
    ok = ok && !t->error;
    t->part->made = ok;
    if (!ok) {
        ht_export_remove(made);
    }
    for (i = 0; i < G_N_ELEMENTS(t->classes); i++) {
        ht_class_free(t->classes[i]);
    }
    g_free(t->path);
    g_free(t);
    return ok;
}

static bool export(HtExport *x, bool lttng, GError **errp)
{
    unsigned boot = 0, segment = 0;
    Trace *t = NULL;
    HtModelEvent ev;
    bool ok = true;

    while (ok && ht_export_next(x, &ev)) {
        if (t && (ev.boot != boot || ev.rec.segment != segment)) {
            ok = end_trace(t, true, errp);
            t = NULL;
        }
        if (ok && !t) {
            t = begin_trace(x, x->part, lttng, errp);
            boot = ev.boot;
            segment = ev.rec.segment;
        }
        ok = ok && t && add_event(t, &ev);
    }
    if (t) {
        ok = end_trace(t, ok && !x->stopped, errp) && ok;
    }
    return ok;
}

bool ht_export_ctf(HtExport *x, GError **errp)
{
    return export(x, false, errp);
}

bool ht_export_lttng(HtExport *x, GError **errp)
{
    return export(x, true, errp);
}
