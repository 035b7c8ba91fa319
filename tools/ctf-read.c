/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read traces in the Common Trace Format with libbabeltrace2
 *
 * libbabeltrace2 runs a graph of components: a source "ctf.fs" for each trace,
 * one muxer that sorts the messages by time, and the sink of this file.
 */
#include <string.h>

#include "ctf-read.h"

typedef struct Reading {
    const HtCtfReader *reader;
    void *opaque;
    bool ended;
} Reading;

uint64_t ht_ctf_ns(const bt_clock_snapshot *snapshot)
{
    const bt_clock_class *c =
        bt_clock_snapshot_borrow_clock_class_const(snapshot);
    uint64_t value = bt_clock_snapshot_get_value(snapshot);
    uint64_t hz = bt_clock_class_get_frequency(c);

    return hz == 1000000000 ? value :
           (uint64_t)((unsigned __int128)value * 1000000000 / hz);
}

const char *ht_ctf_env(const bt_trace *trace, const char *name)
{
    const bt_value *v =
        bt_trace_borrow_environment_entry_value_by_name_const(trace, name);

    return v && bt_value_is_string(v) ? bt_value_string_get(v) : NULL;
}

bool ht_ctf_number(const bt_field *structure, const char *name, int64_t *v)
{
    const bt_field *f = structure ?
        bt_field_structure_borrow_member_field_by_name_const(structure,
                                                             name) : NULL;
    bt_field_class_type type = f ? bt_field_get_class_type(f) : 0;

    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        *v = MIN(bt_field_integer_unsigned_get_value(f), INT64_MAX);
        return true;
    }
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        *v = bt_field_integer_signed_get_value(f);
        return true;
    }
    return false;
}

static const bt_field_class_structure_member *member(const bt_field_class *c,
                                                     uint64_t i)
{
    return bt_field_class_structure_borrow_member_by_index_const(c, i);
}

const char *ht_ctf_member(const bt_field_class *structure, uint64_t i)
{
    return bt_field_class_structure_member_get_name(member(structure, i));
}

static bool is_unsigned(const bt_field_class *structure, uint64_t i)
{
    return bt_field_class_type_is(
        bt_field_class_get_type(
            bt_field_class_structure_member_borrow_field_class_const(
                member(structure, i))),
        BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

bool ht_ctf_unsigned_find(const bt_field_class *structure, const char *name,
                          uint64_t *i)
{
    uint64_t n = bt_field_class_structure_get_member_count(structure);

    for (*i = 0; *i < n; ++*i) {
        if (!strcmp(ht_ctf_member(structure, *i), name)) {
            return is_unsigned(structure, *i);
        }
    }
    return false;
}

uint64_t ht_ctf_unsigned_value(const bt_field *structure, uint64_t i)
{
    return bt_field_integer_unsigned_get_value(
        bt_field_structure_borrow_member_field_by_index_const(structure, i));
}

bool ht_ctf_is_length(const bt_field_class *structure, uint64_t i)
{
    const char *name = ht_ctf_member(structure, i), *next;
    gsize len;

    if (name[0] != '_' || !is_unsigned(structure, i) ||
        i + 1 == bt_field_class_structure_get_member_count(structure)) {
        return false;
    }
    next = ht_ctf_member(structure, i + 1);
    len = strlen(next);
    return !strncmp(name + 1, next, len) &&
           !strcmp(name + 1 + len, "_length");
}

static void G_GNUC_PRINTF(2, 3) fail(GError **err, const char *fmt, ...)
{
    const bt_error *why = bt_current_thread_take_error();
    GString *text = g_string_new(NULL);
    va_list ap;

    va_start(ap, fmt);
    g_string_append_vprintf(text, fmt, ap);
    va_end(ap);
    if (why) {
        /* Use the first cause of the error: it is the most specific one. */
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

static bool read_message(const Reading *r, const bt_message *msg)
{
    HtCtfMessage *message = NULL;

    switch (bt_message_get_type(msg)) {
    case BT_MESSAGE_TYPE_EVENT:
        message = r->reader->event;
        break;
    case BT_MESSAGE_TYPE_PACKET_BEGINNING:
        message = r->reader->packet;
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        message = r->reader->lost_events;
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        message = r->reader->lost_packets;
        break;
    default:
        break;
    }
    return !message || message(r->opaque, msg);
}

static bt_graph_simple_sink_component_consume_func_status
sink_consume(bt_message_iterator *iterator, void *opaque)
{
    Reading *r = opaque;
    bt_message_array_const msgs;
    bt_message_iterator_next_status status;
    uint64_t i, n;

    status = bt_message_iterator_next(iterator, &msgs, &n);
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
        for (i = 0; i < n; i++) {
            r->ended = r->ended || !read_message(r, msgs[i]);
            bt_message_put_ref(msgs[i]);
        }
    }
    if (r->ended) {
        return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
    }
    /*
     * The statuses of bt_message_iterator_next() have the same numbers as those
     * of this function with the same meanings.
     */
    return (bt_graph_simple_sink_component_consume_func_status)status;
}

static const bt_plugin *find_plugin(const char *name, GError **err)
{
    const bt_plugin *p = NULL;

    if (bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE,
                       &p) != BT_PLUGIN_FIND_STATUS_OK) {
        fail(err, "the plugin '%s' of babeltrace2 is missing", name);
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
        bt_graph_add_simple_sink_component(graph, "sink", NULL, sink_consume,
                                           NULL, r, &sink) !=
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

bool ht_ctf_read(GPtrArray *dirs, const HtCtfReader *reader, void *opaque,
                 GError **err)
{
    Reading r = { .reader = reader, .opaque = opaque };
    bt_graph *graph = bt_graph_create(0);
    bool ok = build(&r, graph, dirs, err);

    if (ok && bt_graph_run(graph) != BT_GRAPH_RUN_STATUS_OK) {
        fail(err, "babeltrace2 refuses the trace");
        ok = false;
    }
    bt_graph_put_ref(graph);
    return ok;
}

bool ht_ctf_find(const char *path, GPtrArray *found, GError **err)
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
            !ht_ctf_find(sub, found, err)) {
            return false;
        }
    }
    return true;
}

