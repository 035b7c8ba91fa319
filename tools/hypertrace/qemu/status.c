/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace status: show the state of the devices of a QEMU
 */
#include <inttypes.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "qemu/control.h"

static void put_text(HtOutput *o, const char *s)
{
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, s);
}

/* Append a number, the name of its unit, and @suffix: "1 event, " */
static void put_count(HtOutput *o, JsonObject *s, const char *member,
                      const char *name, const char *suffix)
{
    uint64_t n = ht_qmp_int(s, member);

    g_string_append_printf(o->text, "%" PRIu64 " %s%s%s", n, name,
                           ht_number_s(n), suffix);
}

/*
 * Append the maximum error of host times. QEMU reports UINT64_MAX if the error
 * is not known; the JSON parser makes this a negative number or INT64_MAX.
 */
static void put_bound(HtOutput *o, JsonObject *s)
{
    int64_t ns = ht_qmp_int(s, "clock-bound-ns");

    if (ns < 0 || ns == INT64_MAX) {
        g_string_append(o->text, "dates not known yet");
        return;
    }
    g_string_append(o->text, "dates within ");
    ht_number_duration(o->text, ns, 0);
}

static void put_backends(HtOutput *o, JsonObject *s)
{
    guint count, i;
    JsonArray *list = ht_qmp_array(s, "backends", &count);

    for (i = 0; i < count; i++) {
        JsonObject *b = json_array_get_object_element(list, i);

        g_string_append(o->text, "  backend ");
        put_text(o, ht_qmp_text(b, "backend"));
        g_string_append(o->text, ": ");
        put_count(o, b, "events", "event", ", ");
        g_string_append_printf(o->text, "%" PRIu64 " discarded, ",
                               ht_qmp_int(b, "discarded"));
        if (ht_qmp_bool(b, "idle")) {
            g_string_append(o->text, "idle\n");
        } else {
            put_count(o, b, "queued", "byte", " queued\n");
        }
    }
}

static void put_counters(HtOutput *o, JsonObject *s)
{
    put_count(o, s, "events", "event", ", ");
    g_string_append_printf(o->text, "%" PRIu64 " lost, %" PRIu64 " dropped, ",
                           ht_qmp_int(s, "lost"), ht_qmp_int(s, "dropped"));
    put_count(o, s, "errors", "error", "");
}

static void put_streams(HtOutput *o, JsonObject *s)
{
    guint count, i;
    JsonArray *list = ht_qmp_array(s, "streams", &count);

    for (i = 0; i < count; i++) {
        JsonObject *st = json_array_get_object_element(list, i);

        if (!ht_qmp_bool(st, "open")) {
            continue;
        }
        g_string_append_printf(o->text, "  stream %" PRIu64 ": ",
                               ht_qmp_int(st, "stream"));
        put_counters(o, st);
        g_string_append(o->text, ht_qmp_bool(st, "stopped") ?
                        "; stopped by a fault\n" : "\n");
    }
}

static void put_device(HtOutput *o, JsonObject *all, JsonObject *s)
{
    g_string_append(o->text, ": device, channel=");
    put_text(o, ht_qmp_text(all, "channel"));
    g_string_append(o->text, " mode=");
    put_text(o, ht_qmp_text(all, "mode"));
    g_string_append(o->text, ht_qmp_bool(all, "unread") ? " unread=on" : "");
    g_string_append(o->text, " events=");
    put_text(o, ht_qmp_text(all, "events"));
    if (*ht_qmp_text(all, "settings")) {
        g_string_append(o->text, " settings=");
        put_text(o, ht_qmp_text(all, "settings"));
    }
    g_string_append(o->text, "\n  ");
    put_counters(o, s);
    g_string_append(o->text, "; ");
    put_bound(o, s);
    g_string_append_c(o->text, '\n');
    put_streams(o, s);
}

static JsonNode *read_all(HtControl *c, const HtQmpObject *of, GError **error)
{
    static const char * const names[] = { "channel", "mode", "unread",
                                          "events", "settings" };
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autoptr(JsonNode) stats = ht_qmp_stats(c->qmp, of, error);
    JsonObject *all = json_object_new();
    unsigned i;

    json_node_take_object(node, all);
    if (!stats) {
        return NULL;
    }
    json_object_set_string_member(all, "id", of->id);
    json_object_set_string_member(all, "type", "hypertrace");
    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        JsonNode *value = ht_qmp_get(c->qmp, of, names[i], error);

        if (!value) {
            return NULL;
        }
        json_object_set_member(all, names[i], value);
    }
    json_object_set_member(all, "stats", g_steal_pointer(&stats));
    return g_steal_pointer(&node);
}

static bool put(HtControl *c, HtOutput *o, const HtQmpObject *of,
                GError **error)
{
    g_autoptr(JsonNode) node = read_all(c, of, error);
    g_autofree char *line = NULL;
    JsonObject *all, *s;

    if (!node) {
        return false;
    }
    if (c->json) {
        line = json_to_string(node, false);
        g_string_append_printf(o->text, "%s\n", line);
        return true;
    }
    all = json_node_get_object(node);
    s = json_object_get_object_member(all, "stats");
    put_text(o, of->id);
    put_device(o, all, s);
    put_backends(o, s);
    return true;
}

int ht_status(int argc, char **argv)
{
    HtControl c = { 0 };
    GError *error = NULL;
    HtOutput o;
    bool ok = true;
    int status;
    guint i;

    if (ht_control_open(&c, argc, argv, "status", HT_CONTROL_JSON, 0, "QMP",
                        "Show the state and the counters of a QEMU's hypertrace"
                        " devices.",
                        &status)) {
        ht_output_stdout(&o);
        for (i = 0; i < c.objects->len && ok; i++) {
            ok = put(&c, &o, c.objects->pdata[i], &error);
        }
        status = ht_control_finish(&o, error);
    }
    ht_control_close(&c);
    return status;
}
