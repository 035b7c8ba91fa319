/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>

#include "qemu/qmp.h"

#define TIMEOUT_S   10

struct HtQmp {
    GSocketConnection *connection;
    GDataInputStream *in;
    char *address;
};

static JsonNode *receive(HtQmp *q, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) err = NULL;
    g_autofree char *line = NULL;
    gsize len;

    line = g_data_input_stream_read_line(q->in, &len, NULL, &err);
    if (!line) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: QEMU %s",
                    q->address, !err ? "has closed the connection" :
                    g_error_matches(err, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ?
                    "does not answer; a socket serves one client at a time" :
                    err->message);
        return NULL;
    }
    if (!json_parser_load_from_data(parser, line, len, NULL) ||
        !JSON_NODE_HOLDS_OBJECT(json_parser_get_root(parser))) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "%s: the peer does not speak QMP", q->address);
        return NULL;
    }
    return json_parser_steal_root(parser);
}

/* Wait for a reply; skip the events that come before it. */
static JsonNode *answer(HtQmp *q, GError **error)
{
    for (;;) {
        g_autoptr(JsonNode) node = receive(q, error);
        JsonObject *o = node ? json_node_get_object(node) : NULL;

        if (!o) {
            return NULL;
        }
        if (json_object_has_member(o, "return")) {
            return json_node_copy(json_object_get_member(o, "return"));
        }
        if (json_object_has_member(o, "error")) {
            JsonNode *e = json_object_get_member(o, "error");
            const char *why = JSON_NODE_HOLDS_OBJECT(e) ?
                json_object_get_string_member_with_default(
                    json_node_get_object(e), "desc", NULL) : NULL;

            g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "QEMU: %s",
                        why ? why : "error");
            return NULL;
        }
    }
}

static JsonNode *execute(HtQmp *q, const char *name, JsonObject *arguments,
                         GError **error)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *o = json_object_new();
    g_autofree char *text = NULL, *line = NULL;

    json_object_set_string_member(o, "execute", name);
    json_object_set_object_member(o, "arguments", arguments);
    json_node_take_object(node, o);
    text = json_to_string(node, false);
    line = g_strdup_printf("%s\n", text);
    if (!g_output_stream_write_all(
            g_io_stream_get_output_stream(G_IO_STREAM(q->connection)), line,
            strlen(line), NULL, NULL, error)) {
        g_prefix_error(error, "%s: ", q->address);
        return NULL;
    }
    return answer(q, error);
}

JsonNode *ht_qmp_command(HtQmp *q, GError **error, const char *name, ...)
{
    JsonObject *arguments = json_object_new();
    const char *key;
    va_list args;

    va_start(args, name);
    while ((key = va_arg(args, const char *))) {
        json_object_set_string_member(arguments, key,
                                      va_arg(args, const char *));
    }
    va_end(args);
    return execute(q, name, arguments, error);
}

JsonNode *ht_qmp_stats(HtQmp *q, const HtQmpObject *o, GError **error)
{
    g_autoptr(JsonNode) list = ht_qmp_command(q, error, "query-hypertrace",
                                              "object", o->path, NULL);
    JsonArray *a = list && JSON_NODE_HOLDS_ARRAY(list) ?
                   json_node_get_array(list) : NULL;

    if (a && json_array_get_length(a) == 1 &&
        JSON_NODE_HOLDS_OBJECT(json_array_get_element(a, 0))) {
        return json_node_copy(json_array_get_element(a, 0));
    }
    if (list) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "%s: QEMU returned no statistics", o->id);
    }
    return NULL;
}

JsonNode *ht_qmp_get(HtQmp *q, const HtQmpObject *o, const char *property,
                     GError **error)
{
    return ht_qmp_command(q, error, "qom-get", "path", o->path, "property",
                          property, NULL);
}

static GSocketConnection *connect_to(const char *address, GError **error)
{
    g_autoptr(GSocketClient) client = g_socket_client_new();

    g_socket_client_set_timeout(client, TIMEOUT_S);
    if (!g_file_test(address, G_FILE_TEST_EXISTS) && strchr(address, ':')) {
        return g_socket_client_connect_to_host(client, address, 0, NULL,
                                               error);
    } else {
        g_autoptr(GSocketAddress) path = g_unix_socket_address_new(address);

        return g_socket_client_connect(client, G_SOCKET_CONNECTABLE(path),
                                       NULL, error);
    }
}

HtQmp *ht_qmp_open(const char *address, GError **error)
{
    g_autoptr(HtQmp) q = g_new0(HtQmp, 1);
    g_autoptr(JsonNode) greeting = NULL, ready = NULL;

    q->address = g_strdup(address);
    q->connection = connect_to(address, error);
    if (!q->connection) {
        g_prefix_error(error, "%s: ", address);
        return NULL;
    }
    q->in = g_data_input_stream_new(
        g_io_stream_get_input_stream(G_IO_STREAM(q->connection)));
    greeting = receive(q, error);
    if (!greeting) {
        return NULL;
    }
    if (!json_object_has_member(json_node_get_object(greeting), "QMP")) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "%s: the peer does not speak QMP", address);
        return NULL;
    }
    ready = ht_qmp_command(q, error, "qmp_capabilities", NULL);
    return ready ? g_steal_pointer(&q) : NULL;
}

void ht_qmp_free(HtQmp *q)
{
    if (q) {
        g_clear_object(&q->in);
        g_clear_object(&q->connection);
        g_free(q->address);
        g_free(q);
    }
}

static void free_object(gpointer data)
{
    HtQmpObject *o = data;

    g_free(o->path);
    g_free(o->id);
    g_free(o);
}

/*
 * Append the hypertrace devices that are children of a QOM path. If @id is not
 * NULL, append only the device of that id.
 */
static bool add_children(HtQmp *q, GPtrArray *out, const char *path,
                         const char *id, GError **error)
{
    g_autoptr(JsonNode) node = ht_qmp_command(q, error, "qom-list", "path",
                                              path, NULL);
    JsonArray *children = node && JSON_NODE_HOLDS_ARRAY(node) ?
                          json_node_get_array(node) : NULL;
    guint i;

    for (i = 0; children && i < json_array_get_length(children); i++) {
        JsonObject *c = json_array_get_object_element(children, i);
        const char *name = ht_qmp_text(c, "name");

        if (!strcmp(ht_qmp_text(c, "type"), "child<hypertrace>") &&
            (!id || !strcmp(id, name))) {
            HtQmpObject *o = g_new0(HtQmpObject, 1);

            o->path = g_strdup_printf("%s/%s", path, name);
            o->id = g_strdup(name);
            g_ptr_array_add(out, o);
        }
    }
    return node;
}

GPtrArray *ht_qmp_find(HtQmp *q, const char *id, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_object);

    if (!add_children(q, all, "/machine/peripheral", id, error) ||
        !add_children(q, all, "/machine/peripheral-anon", id, error)) {
        return NULL;
    }
    if (!all->len) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s: there is no"
                    " hypertrace device%s%s%s", q->address, id ? " '" : "",
                    id ? id : "", id ? "'" : "");
        return NULL;
    }
    return g_steal_pointer(&all);
}

/*
 * Get a member of a JSON object if it is a string, a number or a boolean, else
 * NULL.
 */
static JsonNode *value(JsonObject *o, const char *name)
{
    JsonNode *n = json_object_get_member(o, name);

    return n && JSON_NODE_HOLDS_VALUE(n) ? n : NULL;
}

int64_t ht_qmp_int(JsonObject *o, const char *name)
{
    JsonNode *n = value(o, name);

    return n ? json_node_get_int(n) : 0;
}

const char *ht_qmp_text(JsonObject *o, const char *name)
{
    JsonNode *n = value(o, name);
    const char *s = n ? json_node_get_string(n) : NULL;

    return s ? s : "";
}

bool ht_qmp_bool(JsonObject *o, const char *name)
{
    JsonNode *n = value(o, name);

    return n && json_node_get_boolean(n);
}

JsonArray *ht_qmp_array(JsonObject *o, const char *name, guint *count)
{
    JsonNode *n = json_object_get_member(o, name);
    JsonArray *a = n && JSON_NODE_HOLDS_ARRAY(n) ? json_node_get_array(n) :
                   NULL;

    *count = a ? json_array_get_length(a) : 0;
    return a;
}
