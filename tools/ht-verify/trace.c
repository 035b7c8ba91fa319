/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: traces, read with libbabeltrace2
 */
#include <errno.h>
#include <string.h>

#include "trace.h"

/* A stream of the trace, looked at once for each of its packets */
typedef struct Stream {
    TraceKind kind;
    const char *device;
    char *channel;
    uint64_t instance;
    uint32_t index;
} Stream;

typedef struct Reading {
    const TraceReader *reader;
    bt_message_iterator *iterator;
    GHashTable *classes;        /* bt_event_class: TraceClass */
    GHashTable *streams;        /* bt_stream: Stream */
    GStringChunk *strings;
    /* the last ones asked for: events come in runs */
    const bt_event_class *last_class;
    TraceClass *class;
    const bt_stream *last_stream;
    Stream *stream;
    GError *err;
} Reading;

static void G_GNUC_PRINTF(2, 3) fail(GError **err, const char *fmt, ...)
{
    const bt_error *why = bt_current_thread_take_error();
    GString *text = g_string_new(NULL);
    va_list ap;

    va_start(ap, fmt);
    g_string_append_vprintf(text, fmt, ap);
    va_end(ap);
    if (why) {
        /* the first cause is the most specific */
        const bt_error_cause *cause =
            bt_error_borrow_cause_by_index(why, 0);

        g_string_append_printf(text, ": %s",
                               bt_error_cause_get_message(cause));
        bt_error_release(why);
    }
    if (err && !*err) {
        *err = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_FAILED,
                                   text->str);
    }
    g_string_free(text, TRUE);
}

/* What is read ------------------------------------------------------------- */

static const char *env_string(const bt_trace *trace, const char *name)
{
    const bt_value *v =
        bt_trace_borrow_environment_entry_value_by_name_const(trace, name);

    return v && bt_value_is_string(v) ? bt_value_string_get(v) : NULL;
}

static TraceKind trace_kind(const bt_trace *trace)
{
    const char *tracer = env_string(trace, "tracer_name");

    if (tracer && !strcmp(tracer, "hypertrace")) {
        return TRACE_CTF;
    }
    if (tracer && !strcmp(tracer, "lttng-ust")) {
        return TRACE_LTTNG;
    }
    return TRACE_OTHER;
}

/* "/some/where/shm_1_0" is of channel "shm": _CPU, _NUMBER of the file */
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
                r->strings, env_string(trace, "device") ?: "?");
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

static bool is_unsigned(const bt_field_class *c)
{
    return bt_field_class_type_is(bt_field_class_get_type(c),
                                  BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

static bool member_index(const bt_field_class *c, const char *name,
                         uint64_t *index)
{
    uint64_t i, n = bt_field_class_structure_get_member_count(c);

    for (i = 0; i < n; i++) {
        const bt_field_class_structure_member *m =
            bt_field_class_structure_borrow_member_by_index_const(c, i);

        if (!strcmp(bt_field_class_structure_member_get_name(m), name)) {
            *index = i;
            return is_unsigned(
                bt_field_class_structure_member_borrow_field_class_const(m));
        }
    }
    return false;
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
                   member_index(c->fields, "stream", &c->stream_field) &&
                   member_index(c->fields, "guest_ns", &c->guest_ns_field)) {
            g_autofree char *device = g_strndup(name, colon - name);

            c->device = g_string_chunk_insert_const(r->strings, device);
            c->name = g_string_chunk_insert_const(r->strings, colon + 1);
            c->discarded = !strcmp(c->name, "discarded") &&
                           member_index(c->fields, "events",
                                        &c->events_field) &&
                           member_index(c->fields, "total", &c->total_field);
        } else {
            c->kind = TRACE_OTHER;
        }
        g_hash_table_insert(r->classes, (gpointer)bc, c);
    }
    r->last_class = bc;
    r->class = c;
    return c;
}

static uint64_t unsigned_member(const bt_field *structure, uint64_t index)
{
    return bt_field_integer_unsigned_get_value(
        bt_field_structure_borrow_member_field_by_index_const(structure,
                                                              index));
}

static uint64_t clock_ns(const bt_clock_snapshot *snapshot)
{
    const bt_clock_class *c =
        bt_clock_snapshot_borrow_clock_class_const(snapshot);
    uint64_t value = bt_clock_snapshot_get_value(snapshot);
    uint64_t hz = bt_clock_class_get_frequency(c);

    /*
     * Without the clock's offset: both LTTng's and our clocks count
     * CLOCK_MONOTONIC, and only their offsets make a time of day of it.
     */
    return hz == 1000000000 ? value :
           (uint64_t)((unsigned __int128)value * 1000000000 / hz);
}

static void read_event(Reading *r, const bt_message *msg)
{
    const bt_event *be = bt_message_event_borrow_event_const(msg);
    const Stream *s = stream_of(r, bt_event_borrow_stream_const(be));
    TraceClass *c = class_of(r, bt_event_borrow_class_const(be), s);
    TraceEvent ev = {
        .cls = c,
        .payload = bt_event_borrow_payload_field_const(be),
    };
    uint64_t now;

    if (c->kind == TRACE_OTHER) {
        return;
    }
    now = clock_ns(bt_message_event_borrow_default_clock_snapshot_const(msg));
    if (c->kind == TRACE_CTF) {
        ev.stream = s->index;
        ev.instance = s->instance;
        ev.guest_ns = now;
    } else {
        ev.stream = unsigned_member(ev.payload, c->stream_field);
        ev.guest_ns = unsigned_member(ev.payload, c->guest_ns_field);
        ev.delivered_ns = now;
    }
    if (c->discarded) {
        TraceLoss loss = {
            .kind = c->kind,
            .device = c->device,
            .stream = ev.stream,
            .events = unsigned_member(ev.payload, c->events_field),
            .total = unsigned_member(ev.payload, c->total_field),
        };

        r->reader->loss(r->reader->opaque, &loss);
        return;
    }
    r->reader->event(r->reader->opaque, &ev);
}

static void read_packet(Reading *r, const bt_message *msg)
{
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

static void read_message(Reading *r, const bt_message *msg)
{
    switch (bt_message_get_type(msg)) {
    case BT_MESSAGE_TYPE_EVENT:
        read_event(r, msg);
        break;
    case BT_MESSAGE_TYPE_PACKET_BEGINNING:
        read_packet(r, msg);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        read_loss(r, msg, false);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        read_loss(r, msg, true);
        break;
    default:
        break;
    }
}

/* The graph: a ctf.fs for each trace, one muxer, our sink ------------------ */

static bt_graph_simple_sink_component_initialize_func_status
sink_init(bt_message_iterator *iterator, void *opaque)
{
    Reading *r = opaque;

    r->iterator = iterator;
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

static bt_graph_simple_sink_component_consume_func_status
sink_consume(bt_message_iterator *iterator, void *opaque)
{
    bt_message_array_const msgs;
    bt_message_iterator_next_status status;
    uint64_t i, n;

    status = bt_message_iterator_next(iterator, &msgs, &n);
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
        for (i = 0; i < n; i++) {
            read_message(opaque, msgs[i]);
            bt_message_put_ref(msgs[i]);
        }
    }
    /* the two kinds of status have the same values */
    return (bt_graph_simple_sink_component_consume_func_status)status;
}

static const bt_plugin *find_plugin(const char *name, GError **err)
{
    const bt_plugin *p = NULL;

    if (bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE,
                       &p) != BT_PLUGIN_FIND_STATUS_OK) {
        fail(err, "babeltrace2's plugin '%s' is missing", name);
    }
    return p;
}

static bool add_source(bt_graph *graph, const bt_plugin *ctf,
                       const bt_component_filter *muxer, const char *dir,
                       unsigned *inputs, GError **err)
{
    const bt_component_class_source *fs =
        bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs");
    const bt_component_source *source;
    bt_value *params = bt_value_map_create(), *list = NULL;
    uint64_t i;

    bt_value_map_insert_empty_array_entry(params, "inputs", &list);
    bt_value_array_append_string_element(list, dir);
    if (bt_graph_add_source_component(graph, fs, dir, params,
                                      BT_LOGGING_LEVEL_NONE, &source) !=
        BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
        bt_value_put_ref(params);
        fail(err, "%s cannot be read", dir);
        return false;
    }
    bt_value_put_ref(params);
    for (i = 0; i < bt_component_source_get_output_port_count(source); i++) {
        if (bt_graph_connect_ports(
                graph,
                bt_component_source_borrow_output_port_by_index_const(source,
                                                                      i),
                bt_component_filter_borrow_input_port_by_index_const(
                    muxer, *inputs), NULL) !=
            BT_GRAPH_CONNECT_PORTS_STATUS_OK) {
            fail(err, "%s cannot be read", dir);
            return false;
        }
        ++*inputs;
    }
    return true;
}

static bool build(Reading *r, bt_graph *graph, GPtrArray *dirs, GError **err)
{
    const bt_plugin *ctf = find_plugin("ctf", err);
    const bt_plugin *utils = ctf ? find_plugin("utils", err) : NULL;
    const bt_component_class_filter *muxer_class;
    const bt_component_filter *muxer;
    const bt_component_sink *sink;
    unsigned inputs = 0, i;
    bool ok = false;

    if (!utils) {
        goto out;
    }
    muxer_class = bt_plugin_borrow_filter_component_class_by_name_const(
        utils, "muxer");
    if (bt_graph_add_filter_component(graph, muxer_class, "muxer", NULL,
                                      BT_LOGGING_LEVEL_NONE, &muxer) !=
            BT_GRAPH_ADD_COMPONENT_STATUS_OK ||
        bt_graph_add_simple_sink_component(graph, "verify", sink_init,
                                           sink_consume, NULL, r, &sink) !=
            BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
        fail(err, "babeltrace2 cannot make a graph");
        goto out;
    }
    for (i = 0; i < dirs->len; i++) {
        if (!add_source(graph, ctf, muxer, dirs->pdata[i], &inputs, err)) {
            goto out;
        }
    }
    if (bt_graph_connect_ports(
            graph,
            bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
            bt_component_sink_borrow_input_port_by_index_const(sink, 0),
            NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK) {
        fail(err, "babeltrace2 cannot make a graph");
        goto out;
    }
    ok = true;
out:
    bt_plugin_put_ref(ctf);
    bt_plugin_put_ref(utils);
    return ok;
}

static bool run(Reading *r, GPtrArray *dirs, GError **err)
{
    bt_graph *graph = bt_graph_create(0);
    bool ok = build(r, graph, dirs, err);

    if (ok && bt_graph_run(graph) != BT_GRAPH_RUN_STATUS_OK) {
        fail(err, "babeltrace2 refuses the trace");
        ok = false;
    }
    bt_graph_put_ref(graph);
    return ok;
}

/* Traces below a directory ------------------------------------------------- */

static bool find_traces(const char *path, GPtrArray *found, GError **err)
{
    g_autofree char *metadata = g_build_filename(path, "metadata", NULL);
    g_autoptr(GDir) dir = NULL;
    const char *name;

    if (g_file_test(metadata, G_FILE_TEST_IS_REGULAR)) {
        g_ptr_array_add(found, g_strdup(path));
        return true;
    }
    dir = g_dir_open(path, 0, err);
    if (!dir) {
        return false;
    }
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *sub = g_build_filename(path, name, NULL);

        if (g_file_test(sub, G_FILE_TEST_IS_DIR) &&
            !g_file_test(sub, G_FILE_TEST_IS_SYMLINK) &&
            !find_traces(sub, found, err)) {
            return false;
        }
    }
    return true;
}

int trace_read(const char *path, const TraceReader *reader, GError **err)
{
    g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);
    Reading r = {
        .reader = reader,
    };
    int ret = -1;

    if (!find_traces(path, dirs, err)) {
        return -1;
    }
    if (dirs->len == 0) {
        fail(err, "%s: no trace there (no file 'metadata')", path);
        return -1;
    }
    r.classes = g_hash_table_new_full(NULL, NULL, NULL, class_free);
    r.streams = g_hash_table_new_full(NULL, NULL, NULL, stream_free);
    r.strings = g_string_chunk_new(1024);
    if (run(&r, dirs, err)) {
        ret = dirs->len;
    }
    g_hash_table_destroy(r.classes);
    g_hash_table_destroy(r.streams);
    g_string_chunk_free(r.strings);
    return ret;
}
