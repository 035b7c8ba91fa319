/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: show the end of each stream of a device's CTF trace
 *
 * `hypertrace recover` and hypertrace-backend-ctf write such traces.
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "ctf-read.h"
#include "model/duration.h"
#include "model/traces.h"
#include "views/ctf-fields.h"
#include "views/last.h"

typedef struct Stream {
    uint64_t id;
    int64_t index;
    int64_t vcpu;
    uint64_t events;
    /*
     * number of events that the trace reports as discarded; a report without a
     * number counts as one event
     */
    uint64_t missing;
    uint64_t end_ns;
    /* of GString: the stream's last events, each as text or as JSON */
    GQueue lines;
} Stream;

typedef struct Last {
    HtOutput *o;
    unsigned lines;
    bool json;
    bool several;               /* the output has another trace already */
} Last;

/* The part of the output that shows one trace */
typedef struct Page {
    HtOutput *o;
    const char *dir;
    unsigned lines;
    bool json;
    char *device;
    char *vm;
    GHashTable *by_stream;      /* table from bt_stream to Stream */
    GPtrArray *streams;
    uint64_t events;
    uint64_t end_ns;
    GError *error;
} Page;

static void free_line(gpointer line)
{
    g_string_free(line, true);
}

static void free_stream(gpointer data)
{
    Stream *s = data;

    g_queue_clear_full(&s->lines, free_line);
    g_free(s);
}

static Stream *stream_of(Page *p, const bt_stream *bs)
{
    const bt_trace *trace = bt_stream_borrow_trace_const(bs);
    const char *tracer = ht_ctf_env(trace, "written_by") ?:
                         ht_ctf_env(trace, "tracer_name");
    Stream *s = g_hash_table_lookup(p->by_stream, bs);

    if (s) {
        return s;
    }
    if (!tracer || strcmp(tracer, "hypertrace") ||
        !bt_stream_class_borrow_default_clock_class_const(
            bt_stream_borrow_class_const(bs))) {
        g_set_error(&p->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "'%s' was not written by hypertrace", p->dir);
        return NULL;
    }
    if (!p->device) {
        p->device = g_strdup(ht_ctf_env(trace, "device") ?: "?");
        p->vm = g_strdup(ht_ctf_env(trace, "vm_name") ?: "?");
    }
    s = g_new0(Stream, 1);
    s->id = bt_stream_get_id(bs);
    s->vcpu = -1;
    g_hash_table_insert(p->by_stream, (gpointer)bs, s);
    g_ptr_array_add(p->streams, s);
    return s;
}

static bool read_packet(void *opaque, const bt_message *msg)
{
    Page *p = opaque;
    const bt_packet *packet =
        bt_message_packet_beginning_borrow_packet_const(msg);
    Stream *s = stream_of(p, bt_packet_borrow_stream_const(packet));
    const bt_field *context = bt_packet_borrow_context_field_const(packet);

    if (s) {
        ht_ctf_number(context, "stream_index", &s->index);
        ht_ctf_number(context, "cpu_id", &s->vcpu);
    }
    return s;
}

static void put_event(GString *line, const Page *p, const Stream *s,
                      const char *name, const bt_field *payload)
{
    g_string_printf(line, "%" PRIu64 ".%09" PRIu64 " ",
                    s->end_ns / 1000000000, s->end_ns % 1000000000);
    ht_escape_str(line, HT_ESCAPE_TERMINAL, p->device);
    g_string_append_printf(line, " stream %" PRId64 " vcpu %" PRId64 " ",
                           s->index, s->vcpu);
    ht_escape_str(line, HT_ESCAPE_TERMINAL, name);
    if (payload) {
        ht_ctf_put_fields(line, payload);
    }
}

static void json_event(GString *line, const Stream *s, const char *name,
                       const bt_field *payload)
{
    HtJson j = { .out = line };

    g_string_truncate(line, 0);
    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "ns", s->end_ns);
    ht_json_str(&j, "event", name);
    ht_json_open(&j, "fields", '{');
    if (payload) {
        ht_ctf_json_fields(&j, payload);
    }
    ht_json_close(&j, '}');
    ht_json_close(&j, '}');
}

static bool read_event(void *opaque, const bt_message *msg)
{
    Page *p = opaque;
    const bt_event *event = bt_message_event_borrow_event_const(msg);
    const bt_field *payload = bt_event_borrow_payload_field_const(event);
    Stream *s = stream_of(p, bt_event_borrow_stream_const(event));
    const char *name;
    GString *line;

    if (!s) {
        return false;
    }
    s->events++;
    p->events++;
    s->end_ns = ht_ctf_ns(
        bt_message_event_borrow_default_clock_snapshot_const(msg));
    p->end_ns = MAX(p->end_ns, s->end_ns);
    if (!p->lines) {
        return true;
    }
    line = s->lines.length == p->lines ? g_queue_pop_head(&s->lines) :
           g_string_new(NULL);
    name = bt_event_class_get_name(bt_event_borrow_class_const(event)) ?: "?";
    if (p->json) {
        json_event(line, s, name, payload);
    } else {
        put_event(line, p, s, name, payload);
    }
    g_queue_push_tail(&s->lines, line);
    return true;
}

static bool read_loss(void *opaque, const bt_message *msg)
{
    Page *p = opaque;
    Stream *s = stream_of(p,
        bt_message_discarded_events_borrow_stream_const(msg));
    uint64_t count = 1;

    if (s) {
        bt_message_discarded_events_get_count(msg, &count);
        s->missing += count;
    }
    return s;
}

static const HtCtfReader reader = {
    .event = read_event,
    .packet = read_packet,
    .lost_events = read_loss,
};

static gint by_index(gconstpointer a, gconstpointer b)
{
    const Stream *x = *(Stream *const *)a, *y = *(Stream *const *)b;

    if (x->index != y->index) {
        return x->index < y->index ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

static void put_stream(HtOutput *o, const Page *p, const Stream *s)
{
    GList *l;

    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "\nstream %" PRId64, s->index);
    ht_output_colour(o, HT_COLOUR_NONE);
    if (s->vcpu >= 0) {
        g_string_append_printf(o->text, ", vCPU %" PRId64, s->vcpu);
    }
    g_string_append_printf(o->text, ": %" PRIu64 " event%s, %" PRIu64
                           " missing", s->events, ht_number_s(s->events),
                           s->missing);
    if (s->events) {
        g_string_append(o->text, "; silent for ");
        ht_number_duration(o->text, ht_elapsed(s->end_ns, p->end_ns), 0);
    }
    g_string_append_c(o->text, '\n');
    for (l = s->lines.head; l; l = l->next) {
        g_string_append_printf(o->text, "  %s\n", ((GString *)l->data)->str);
    }
}

static void put_page(const Page *p)
{
    HtOutput *o = p->o;
    unsigned i;

    g_string_append_printf(o->text, "%" PRIu64 " event%s of ", p->events,
                           ht_number_s(p->events));
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, p->device ?: "?");
    g_string_append(o->text, " of ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, p->vm ?: "?");
    g_string_append(o->text, " in ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, p->dir);
    g_string_append_c(o->text, '\n');
    for (i = 0; i < p->streams->len && ht_output_room(o); i++) {
        put_stream(o, p, p->streams->pdata[i]);
    }
}

static void json_stream(HtJson *j, const Stream *s)
{
    GList *l;

    ht_json_open(j, NULL, '{');
    ht_json_int(j, "stream", s->index);
    ht_json_int(j, "vcpu", s->vcpu);
    ht_json_uint(j, "events", s->events);
    ht_json_uint(j, "missing", s->missing);
    if (s->events) {
        ht_json_uint(j, "end_ns", s->end_ns);
    }
    ht_json_open(j, "last", '[');
    for (l = s->lines.head; l; l = l->next) {
        ht_json_made(j, l->data);
    }
    ht_json_close(j, ']');
    ht_json_close(j, '}');
}

static void json_page(const Page *p)
{
    HtJson j = { .out = p->o->text };
    unsigned i;

    ht_json_begin(&j);
    ht_json_str(&j, "trace", p->dir);
    ht_json_str(&j, "device", p->device);
    ht_json_str(&j, "vm", p->vm);
    ht_json_uint(&j, "events", p->events);
    ht_json_uint(&j, "end_ns", p->end_ns);
    ht_json_open(&j, "streams", '[');
    for (i = 0; i < p->streams->len && ht_output_room(p->o); i++) {
        json_stream(&j, p->streams->pdata[i]);
    }
    ht_json_close(&j, ']');
    ht_json_close(&j, '}');
    g_string_append_c(p->o->text, '\n');
}

static bool show_trace(void *opaque, const char *dir, GError **errp)
{
    g_autoptr(GPtrArray) dirs = g_ptr_array_new();
    Last *last = opaque;
    Page p = {
        .o = last->o,
        .dir = dir,
        .lines = last->lines,
        .json = last->json,
        .by_stream = g_hash_table_new(NULL, NULL),
        .streams = g_ptr_array_new_with_free_func(free_stream),
    };
    bool ok;

    if (last->several && !last->json) {
        g_string_append_c(last->o->text, '\n');
    }
    last->several = true;
    g_ptr_array_add(dirs, (gpointer)dir);
    ok = ht_ctf_read(dirs, &reader, &p, &p.error) && !p.error;
    if (ok) {
        g_ptr_array_sort(p.streams, by_index);
        (p.json ? json_page : put_page)(&p);
    } else {
        g_propagate_error(errp, p.error);
    }
    g_hash_table_destroy(p.by_stream);
    g_ptr_array_unref(p.streams);
    g_free(p.device);
    g_free(p.vm);
    return ok;
}

bool ht_last_streams(HtOutput *o, const char *dir, unsigned lines, bool json,
                     GError **errp)
{
    Last last = { .o = o, .lines = lines, .json = json };

    return ht_traces_each(dir, show_trace, &last, errp);
}
