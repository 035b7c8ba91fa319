/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "ctf-read.h"
#include "trace.h"

/*
 * A stream of a trace, and the names and numbers that the trace gives for it:
 * @device, @instance and @index with TRACE_CTF, else @channel
 */
typedef struct Stream {
    TraceKind kind;
    const char *device;
    char *channel;
    uint64_t instance;
    uint32_t index;
} Stream;

typedef struct Reading {
    const TraceReader *reader;
    GHashTable *classes;        /* table from bt_event_class to TraceClass */
    GHashTable *streams;        /* table from bt_stream to Stream */
    GStringChunk *strings;
    /*
     * Results of the previous lookups in the tables: the next event often has
     * the same class and the same stream.
     */
    const bt_event_class *last_class;
    TraceClass *class;
    const bt_stream *last_stream;
    Stream *stream;
} Reading;

static TraceKind trace_kind(const bt_trace *trace)
{
    const char *tracer = ht_ctf_env(trace, "tracer_name");

    if (tracer && !strcmp(tracer, "hypertrace")) {
        return TRACE_CTF;
    }
    if (tracer && !strcmp(tracer, "lttng-ust")) {
        return TRACE_LTTNG;
    }
    return TRACE_OTHER;
}

/* Get the name of LTTng's channel from a path: "shm" from "/dir/shm_1_0". */
static char *channel_name(const char *path)
{
    g_autofree char *base = g_path_get_basename(path ?: "");
    g_autofree char *stem = NULL;
    g_autoptr(GRegex) suffix = g_regex_new("_[0-9]+(_[0-9]+)?$", 0, 0, NULL);

    stem = g_regex_replace_literal(suffix, base, -1, 0, "", 0, NULL);
    return g_strdup(stem);
}

static Stream *stream_of(Reading *r, const bt_stream *bs)
{
    const bt_trace *trace;
    Stream *s;

    if (bs == r->last_stream) {
        return r->stream;
    }
    s = g_hash_table_lookup(r->streams, bs);
    if (!s) {
        trace = bt_stream_borrow_trace_const(bs);
        s = g_new0(Stream, 1);
        s->kind = trace_kind(trace);
        if (s->kind == TRACE_CTF) {
            s->device = g_string_chunk_insert_const(
                r->strings, ht_ctf_env(trace, "device") ?: "?");
            s->instance = bt_stream_get_id(bs);
        } else {
            s->channel = channel_name(bt_stream_get_name(bs));
        }
        g_hash_table_insert(r->streams, (gpointer)bs, s);
    }
    r->last_stream = bs;
    r->stream = s;
    return s;
}

static void class_free(gpointer p)
{
    TraceClass *c = p;

    g_free(c->user);
    g_free(c);
}

static void stream_free(gpointer p)
{
    Stream *s = p;

    g_free(s->channel);
    g_free(s);
}

static TraceClass *class_of(Reading *r, const bt_event_class *bc,
                            const Stream *s)
{
    const char *name, *colon;
    TraceClass *c;

    if (bc == r->last_class) {
        return r->class;
    }
    c = g_hash_table_lookup(r->classes, bc);
    if (!c) {
        c = g_new0(TraceClass, 1);
        c->kind = s->kind;
        c->fields = bt_event_class_borrow_payload_field_class_const(bc);
        name = bt_event_class_get_name(bc) ?: "?";
        colon = strchr(name, ':');
        if (s->kind == TRACE_CTF) {
            c->device = s->device;
            c->name = g_string_chunk_insert_const(r->strings, name);
        } else if (s->kind == TRACE_LTTNG && colon && c->fields &&
                   ht_ctf_unsigned_find(c->fields, "stream",
                                        &c->stream_field) &&
                   ht_ctf_unsigned_find(c->fields, "guest_ns",
                                        &c->guest_ns_field)) {
            g_autofree char *device = g_strndup(name, colon - name);

            c->device = g_string_chunk_insert_const(r->strings, device);
            c->name = g_string_chunk_insert_const(r->strings, colon + 1);
            c->discarded = !strcmp(c->name, "discarded") &&
                           ht_ctf_unsigned_find(c->fields, "events",
                                                &c->events_field) &&
                           ht_ctf_unsigned_find(c->fields, "total",
                                                &c->total_field);
        } else {
            c->kind = TRACE_OTHER;
        }
        g_hash_table_insert(r->classes, (gpointer)bc, c);
    }
    r->last_class = bc;
    r->class = c;
    return c;
}

static bool read_event(void *opaque, const bt_message *msg)
{
    Reading *r = opaque;
    const bt_event *be = bt_message_event_borrow_event_const(msg);
    const Stream *s = stream_of(r, bt_event_borrow_stream_const(be));
    TraceClass *c = class_of(r, bt_event_borrow_class_const(be), s);
    TraceEvent ev = {
        .cls = c,
        .payload = bt_event_borrow_payload_field_const(be),
    };
    uint64_t now;

    if (c->kind == TRACE_OTHER) {
        return true;
    }
    now = ht_ctf_ns(bt_message_event_borrow_default_clock_snapshot_const(msg));
    if (c->kind == TRACE_CTF) {
        ev.stream = s->index;
        ev.instance = s->instance;
        ev.guest_ns = now;
    } else {
        ev.stream = ht_ctf_unsigned_value(ev.payload, c->stream_field);
        ev.guest_ns = ht_ctf_unsigned_value(ev.payload, c->guest_ns_field);
        ev.delivered_ns = now;
    }
    if (c->discarded) {
        TraceLoss loss = {
            .kind = c->kind,
            .device = c->device,
            .stream = ev.stream,
            .events = ht_ctf_unsigned_value(ev.payload, c->events_field),
            .total = ht_ctf_unsigned_value(ev.payload, c->total_field),
        };

        r->reader->loss(r->reader->opaque, &loss);
        return true;
    }
    r->reader->event(r->reader->opaque, &ev);
    return true;
}

static bool read_packet(void *opaque, const bt_message *msg)
{
    Reading *r = opaque;
    const bt_packet *p = bt_message_packet_beginning_borrow_packet_const(msg);
    Stream *s = stream_of(r, bt_packet_borrow_stream_const(p));
    const bt_field *context = bt_packet_borrow_context_field_const(p);
    const bt_field *index;

    if (s->kind == TRACE_CTF && context) {
        index = bt_field_structure_borrow_member_field_by_name_const(
            context, "stream_index");
        if (index) {
            s->index = bt_field_integer_unsigned_get_value(index);
        }
    }
    return true;
}

static void read_loss(Reading *r, const bt_message *msg, bool packets)
{
    const bt_stream *bs = packets ?
        bt_message_discarded_packets_borrow_stream_const(msg) :
        bt_message_discarded_events_borrow_stream_const(msg);
    const Stream *s = stream_of(r, bs);
    TraceLoss loss = {
        .kind = s->kind,
        .device = s->device,
        .channel = s->channel,
        .stream = s->index,
        .instance = s->instance,
    };
    bt_property_availability known = packets ?
        bt_message_discarded_packets_get_count(msg, &loss.packets) :
        bt_message_discarded_events_get_count(msg, &loss.events);

    loss.unknown = known != BT_PROPERTY_AVAILABILITY_AVAILABLE;
    r->reader->loss(r->reader->opaque, &loss);
}

static bool read_lost_events(void *opaque, const bt_message *msg)
{
    read_loss(opaque, msg, false);
    return true;
}

static bool read_lost_packets(void *opaque, const bt_message *msg)
{
    read_loss(opaque, msg, true);
    return true;
}

static const HtCtfReader messages = {
    .event = read_event,
    .packet = read_packet,
    .lost_events = read_lost_events,
    .lost_packets = read_lost_packets,
};

int trace_read(const char *path, const TraceReader *reader, GError **err)
{
    g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);
    Reading r = {
        .reader = reader,
    };
    int ret = -1;

    if (!ht_ctf_find(path, dirs, err)) {
        return -1;
    }
    if (dirs->len == 0) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "%s has no trace: there is no file 'metadata'", path);
        return -1;
    }
    r.classes = g_hash_table_new_full(NULL, NULL, NULL, class_free);
    r.streams = g_hash_table_new_full(NULL, NULL, NULL, stream_free);
    r.strings = g_string_chunk_new(1024);
    if (ht_ctf_read(dirs, &messages, &r, err)) {
        ret = dirs->len;
    }
    g_hash_table_destroy(r.classes);
    g_hash_table_destroy(r.streams);
    g_string_chunk_free(r.strings);
    return ret;
}
