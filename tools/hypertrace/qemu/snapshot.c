/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace snapshot: let QEMU record the present contents of a guest's ring
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "qemu/control.h"

static void put_json(HtOutput *o, const HtQmpObject *of, JsonObject *s)
{
    HtJson j = { .out = o->text };

    ht_json_open(&j, NULL, '{');
    ht_json_str(&j, "device", of->id);
    ht_json_str(&j, "directory", ht_qmp_text(s, "directory"));
    ht_json_uint(&j, "events", ht_qmp_int(s, "events"));
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

/* Print a recording. Returns false if QEMU could not write it completely. */
static bool put(const HtControl *c, HtOutput *o, const HtQmpObject *of,
                JsonObject *s, GPtrArray *dirs, GError **error)
{
    const char *why = ht_qmp_text(s, "error");
    const char *dir = ht_qmp_text(s, "directory");

    if (*why) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s: %s",
                    of->id, why);
        return false;
    }
    if (c->json) {
        put_json(o, of, s);
        return true;
    }
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, dir);
    g_string_append_printf(o->text, "  %" G_GINT64_FORMAT " events\n",
                           ht_qmp_int(s, "events"));
    g_ptr_array_add(dirs, g_strdup(dir));
    return true;
}

/* Check whether an object writes recordings; others only deliver events. */
static bool has_flight(HtControl *c, const HtQmpObject *of)
{
    g_autoptr(JsonNode) node = ht_qmp_get(c->qmp, of, "flight", NULL);

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_string(node) &&
           *json_node_get_string(node);
}

/* Wait until QEMU has written @count recordings. */
static void wait_for(HtControl *c, HtOutput *o, const HtQmpObject *of,
                     int64_t count, GPtrArray *dirs, GError **error)
{
    while (count > 0 && !*error) {
        g_autoptr(JsonNode) node = ht_qmp_event(c->qmp, "HYPERTRACE_SNAPSHOT",
                                                of->path, error);
        JsonObject *data = node ? json_node_get_object(node) : NULL;
        JsonNode *s = data ? json_object_get_member(data, "snapshot") : NULL;

        if (!s || !JSON_NODE_HOLDS_OBJECT(s) ||
            strcmp(ht_qmp_text(json_node_get_object(s), "trigger"),
                   "command")) {
            continue;
        }
        put(c, o, of, json_node_get_object(s), dirs, error);
        count--;
    }
}

static void take(HtControl *c, HtOutput *o, GPtrArray *dirs, GError **error)
{
    bool any = false;
    guint i;

    for (i = 0; i < c->objects->len && !*error; i++) {
        const HtQmpObject *of = c->objects->pdata[i];
        g_autoptr(JsonNode) node = NULL;

        if (!c->device && !has_flight(c, of)) {
            continue;
        }
        any = true;
        node = ht_qmp_command(c->qmp, error, "hypertrace-snapshot", "object",
                              of->path, NULL);
        if (node && JSON_NODE_HOLDS_OBJECT(node)) {
            wait_for(c, o, of, ht_qmp_int(json_node_get_object(node), "count"),
                     dirs, error);
        }
    }
    if (!any && !*error) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "QEMU has no"
                    " object hypertrace-ftrace that writes recordings; set its"
                    " property flight to a directory");
    }
}

int ht_snapshot(int argc, char **argv)
{
    g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);
    HtControl c = { 0 };
    GError *error = NULL;
    HtOutput o;
    int status;

    if (ht_control_open(&c, argc, argv, "snapshot", HT_CONTROL_RINGS |
                        HT_CONTROL_JSON | HT_CONTROL_QUIET, 0, "QMP",
                        "Let QEMU record the present contents of a guest's ring"
                        " in the directory that the\nproperty flight of its"
                        " object hypertrace-ftrace names, and show the end of"
                        " the\nrecording.", &status)) {
        ht_output_stdout(&o);
        take(&c, &o, dirs, &error);
        status = ht_control_finish(&o, error);
        if (!status && !c.quiet && dirs->len == 1) {
            char *page[] = { (char *)"last", dirs->pdata[0], NULL };

            puts("");
            fflush(stdout);
            status = ht_last(2, page);
        }
    }
    ht_control_close(&c);
    return status;
}
