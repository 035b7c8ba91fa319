/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format ctf: CTF 1.8, by the writer that the device's
 * backend has
 *
 * A stream a CPU.  Each event begins with the kernel's common_pid and
 * common_flags, which no other field is called; then come its own.
 */
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "escape.h"
#include "export.h"
#include "fields.h"
#include "hypertrace/ctf-writer.h"

#define RUN_BYTES       (48 * 1024)
#define EVENT_MAX       (128 * 1024)
#define ID_EXTENDED     255
#define COMPACT_SPAN    (1u << 23)
#define CPUS_MAX        1024

/* common_pid, common_flags */
#define OWN_FIELDS      2

/* A CPU's events that were not written yet */
typedef struct Stream {
    HtStreamInfo info;
    GByteArray *run;
    uint32_t events;
    uint64_t begin_ns, end_ns;
    uint64_t discarded;
    bool open;
    bool cut;
} Stream;

typedef struct Trace {
    HtExport *x;
    HtCtfWriter *writer;
    HtClass *classes[1 << 16];  /* by type */
    uint32_t nr_classes;
    Stream streams[CPUS_MAX];
    char *path;                 /* in the end */
    int error;
} Trace;

static unsigned scalar(unsigned size, bool is_signed)
{
    unsigned kind = size == 1 ? HT_FIELD_U8 : size == 2 ? HT_FIELD_U16 :
                    size == 4 ? HT_FIELD_U32 : HT_FIELD_U64;

    return is_signed ? kind - HT_FIELD_U8 + HT_FIELD_S8 : kind;
}

/*
 * A counted field x also has a field __x_length in CTF: two names must differ
 * in more than that.
 */
static bool taken(const HtClass *c, const char *name)
{
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const char *other = c->fields[i].name;
        g_autofree char *a = g_strdup_printf("_%s_length", other);
        g_autofree char *b = g_strdup_printf("_%s_length", name);

        if (!strcmp(other, name) || !strcmp(a, name) || !strcmp(b, other)) {
            return true;
        }
    }
    return false;
}

static HtField *add_field(HtClass *c, const char *name, unsigned kind)
{
    HtField *f = &c->fields[c->nr_fields];
    g_autofree char *own = g_strndup(name, HT_FIELD_NAME_MAX - 8);

    g_strcanon(own, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_", '_');
    while (taken(c, own)) {
        char *longer = g_strconcat("field_", own, NULL);

        g_free(own);
        own = longer;
    }
    f->name = g_steal_pointer(&own);
    f->kind = kind;
    c->nr_fields++;
    return f;
}

static void add_format_field(HtClass *c, const HtFtField *f)
{
    HtField *n;

    switch (f->kind) {
    case HT_FT_INT:
        n = add_field(c, f->name, scalar(f->size, f->is_signed));
        n->flags = f->is_pointer ? HT_FIELD_HEX : 0;
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        n = add_field(c, f->name, HT_FIELD_TEXT);
        n->elem = HT_FIELD_U8;
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        n = add_field(c, f->name, HT_FIELD_SEQUENCE);
        n->elem = scalar(f->elem_size, f->is_signed);
        n->flags = f->is_pointer ? HT_FIELD_HEX : 0;
        break;
    default:
        n = add_field(c, f->name, HT_FIELD_SEQUENCE);
        n->elem = HT_FIELD_U8;
        n->flags = HT_FIELD_HEX;
        break;
    }
}

static unsigned own_fields(const HtFtEvent *e)
{
    return MIN(e->nr_fields, HT_FIELDS_MAX - OWN_FIELDS);
}

static HtClass *new_class(Trace *t, const HtEventClass *from)
{
    HtClass *c;
    unsigned i;

    if (t->nr_classes == HT_CLASSES_MAX) {
        return NULL;
    }
    c = g_new0(HtClass, 1);
    c->id = ++t->nr_classes;
    c->name = g_strndup(from->name, HT_CLASS_NAME_MAX);
    g_strcanon(c->name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-", '_');
    c->loglevel = 6;            /* informational */
    c->fields = g_new0(HtField, HT_FIELDS_MAX);
    add_field(c, "common_pid", HT_FIELD_S32);
    add_field(c, "common_flags", HT_FIELD_U8)->flags = HT_FIELD_HEX;
    if (from->format) {
        for (i = 0; i < own_fields(from->format); i++) {
            add_format_field(c, &from->format->fields[i]);
        }
    } else {
        HtField *n = add_field(c, "bytes", HT_FIELD_SEQUENCE);

        n->elem = HT_FIELD_U8;
        n->flags = HT_FIELD_HEX;
    }
    return c;
}

static void free_class(HtClass *c)
{
    unsigned i;

    for (i = 0; c && i < c->nr_fields; i++) {
        g_free(c->fields[i].name);
    }
    if (c) {
        g_free(c->fields);
        g_free(c->name);
        g_free(c);
    }
}

static void put_counted(GByteArray *run, const void *p, size_t bytes,
                        size_t elem)
{
    size_t n = MIN(elem ? bytes / elem : 0, UINT16_MAX);
    uint8_t count[2];

    ht_put_le16(count, n);
    g_byte_array_append(run, count, sizeof(count));
    g_byte_array_append(run, p, n * elem);
}

/* The metadata say that it is UTF-8. */
static void put_text(GByteArray *run, const char *s, size_t len)
{
    g_autoptr(GString) valid = NULL;

    if (s && !g_utf8_validate_len(s, len, NULL)) {
        valid = g_string_sized_new(3 * len);
        ht_escape(valid, HT_ESCAPE_UTF8, s, len);
        s = valid->str;
        len = valid->len;
    }
    put_counted(run, s, len, 1);
}

static void put_field(GByteArray *run, const HtFtField *f,
                      const HtModelEvent *ev)
{
    const uint8_t *p;
    const char *s;
    uint8_t value[8];
    size_t len;

    switch (f->kind) {
    case HT_FT_INT:
        ht_put_le64(value, ht_ft_field_uint(f, ev->rec.data, ev->rec.size));
        g_byte_array_append(run, value, f->size);
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        s = ht_ft_field_str(f, ev->rec.data, ev->rec.size, &len);
        put_text(run, s, len);
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        put_counted(run, p, len, f->elem_size);
        break;
    default:
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        put_counted(run, p, len, 1);
        break;
    }
}

static void put_event(Stream *s, const HtClass *c, const HtModelEvent *ev)
{
    const HtFtEvent *e = ev->class->format;
    uint8_t head[13];
    unsigned i;

    if (c->id < ID_EXTENDED &&
        ev->rec.ns - s->end_ns < COMPACT_SPAN) {
        ht_put_le32(head, (uint32_t)ev->rec.ns << 8 | c->id);
        g_byte_array_append(s->run, head, 4);
    } else {
        head[0] = ID_EXTENDED;
        ht_put_le32(head + 1, c->id);
        ht_put_le64(head + 5, ev->rec.ns);
        g_byte_array_append(s->run, head, 13);
    }
    ht_put_le32(head, ev->rec.pid);
    head[4] = ev->rec.flags;
    g_byte_array_append(s->run, head, 5);
    for (i = 0; e && i < own_fields(e); i++) {
        put_field(s->run, &e->fields[i], ev);
    }
    if (!e) {
        put_counted(s->run, ev->rec.data + HT_FT_EVENT_HEADER,
                    ev->rec.size - HT_FT_EVENT_HEADER, 1);
    }
    s->end_ns = ev->rec.ns;
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

    if (ev->rec.cpu >= CPUS_MAX) {
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
    put_event(s, *c, ev);
    return !t->error;
}

static void remove_tree(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        g_unlink(file);
    }
    g_rmdir(path);
}

static void random_uuid(uint8_t *uuid)
{
    unsigned i;

    for (i = 0; i < 16; i++) {
        uuid[i] = g_random_int();
    }
    uuid[6] = (uuid[6] & 0x0f) | 0x40;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static Trace *begin_trace(HtExport *x, HtExportPart *part, GError **errp)
{
    const char *path = part->path;
    g_autofree char *parent = NULL, *base = NULL, *hidden = NULL;
    HtCtfInfo info = {
        .device = "ftrace",
        .channel = "ring",
        .clock = "the guest's trace clock",
    };
    Trace *t;
    int ret;

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_EXISTS,
                    "'%s' is there already; a trace is a new directory", path);
        return NULL;
    }
    parent = g_path_get_dirname(path);
    base = g_path_get_basename(path);
    hidden = g_strdup_printf(".%s.%08x", base, g_random_int());
    info.vm_name = base;
    random_uuid(info.uuid);
    random_uuid(info.clock_uuid);
    if (!ht_export_wall(x, part->boot, &info.clock_offset_ns)) {
        info.clock_offset_ns = 0;
    }
    t = g_new0(Trace, 1);
    t->x = x;
    t->path = g_strdup(path);
    part->made = true;
    ret = ht_ctf_writer_new(parent, hidden, &info, CPUS_MAX, &t->writer);
    if (ret) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(-ret),
                    "cannot make a directory in '%s': %s", parent,
                    g_strerror(-ret));
        g_free(t->path);
        g_free(t);
        return NULL;
    }
    return t;
}

/* The directory gets its name when all is in it. */
static bool end_trace(Trace *t, bool ok, GError **errp)
{
    g_autofree char *made = g_strdup(ht_ctf_writer_path(t->writer));
    unsigned i;

    for (i = 0; i < CPUS_MAX; i++) {
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
    if (!ok) {
        remove_tree(made);
    }
    for (i = 0; i < G_N_ELEMENTS(t->classes); i++) {
        free_class(t->classes[i]);
    }
    g_free(t->path);
    g_free(t);
    return ok;
}

bool ht_export_ctf(HtExport *x, GError **errp)
{
    unsigned boot = 0, segment = 0;
    HtExportPart *part;
    Trace *t = NULL;
    HtModelEvent ev;
    bool ok = true;

    while (ok && ht_view_next(x->v, x->m, &ev)) {
        if (t && (ev.boot != boot || ev.rec.segment != segment)) {
            ok = end_trace(t, true, errp);
            t = NULL;
        }
        if (ok && !t) {
            part = ht_export_part(x, ev.boot, ev.rec.segment);
            t = part ? begin_trace(x, part, errp) : NULL;
            boot = ev.boot;
            segment = ev.rec.segment;
        }
        ok = ok && t && add_event(t, &ev);
    }
    if (t) {
        ok = end_trace(t, ok, errp) && ok;
    }
    return ok;
}
