/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace list, enable, disable: list and switch the classes of a guest's
 * events; hypertrace set: change a setting of the guest's event sources;
 * functions that other commands for a QEMU share (control.h)
 */
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/wrong-option.h"
#include "qemu/control.h"

bool ht_control_open(HtControl *c, int argc, char **argv, const char *name,
                     unsigned flags, unsigned words, const char *usage,
                     const char *summary, int *status)
{
    const GOptionEntry device[] = {
        { "device", 'd', 0, G_OPTION_ARG_STRING, &c->device,
          "use only the device with this id", "ID" },
        { 0 }
    };
    const GOptionEntry json[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &c->json,
          "print JSON instead of text", NULL },
        { 0 }
    };
    g_autofree char *program = g_strdup_printf("hypertrace %s", name);
    g_autoptr(GOptionContext) context = g_option_context_new(usage);
    GError *error = NULL;

    g_option_context_set_summary(context, summary);
    g_option_context_add_main_entries(context, device, NULL);
    if (flags & HT_CONTROL_JSON) {
        g_option_context_add_main_entries(context, json, NULL);
    }
    g_option_context_set_description(context, "QMP is HOST:PORT, or the PATH of"
                                     " the socket that QEMU's option -qmp"
                                     " unix:PATH,server=on,wait=off creates.");
    g_set_prgname(program);
    if (!ht_parse_goptions(context, &argc, &argv, &error)) {
        *status = ht_wrong_goption(context, error);
        g_error_free(error);
        return false;
    }
    if (argc != 2 + (int)words) {
        *status = ht_usage_error("give: %s", usage);
        return false;
    }
    c->rest = g_strdupv(argv + 2);
    c->qmp = ht_qmp_open(argv[1], &error);
    c->objects = c->qmp ? ht_qmp_find(c->qmp, c->device, &error) : NULL;
    if (!c->objects) {
        *status = ht_error("%s", error->message);
        g_error_free(error);
        return false;
    }
    return true;
}

void ht_control_close(HtControl *c)
{
    g_clear_pointer(&c->objects, g_ptr_array_unref);
    ht_qmp_free(c->qmp);
    g_strfreev(c->rest);
    g_free(c->device);
}

int ht_control_finish(HtOutput *o, GError *error)
{
    int status = HT_EXIT_OK;

    if (error) {
        ht_output_flush(o);
        status = ht_error("%s", error->message);
        g_clear_error(&error);
    }
    if (!ht_output_finish(o, &error)) {
        status = ht_error("%s", error->message);
        g_error_free(error);
    }
    return status;
}

static void put_class(HtOutput *o, HtJson *j, const HtQmpObject *of,
                      JsonObject *c)
{
    const char *name = ht_qmp_text(c, "name");
    bool on = ht_qmp_bool(c, "on");

    if (j) {
        ht_json_open(j, NULL, '{');
        ht_json_str(j, "device", of->id);
        ht_json_uint(j, "id", ht_qmp_int(c, "id"));
        ht_json_str(j, "class", name);
        ht_json_bool(j, "on", on);
        ht_json_close(j, '}');
        g_string_append_c(o->text, '\n');
        j->comma = false;
        return;
    }
    g_string_append(o->text, on ? "on   " : "off  ");
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, of->id);
    g_string_append_c(o->text, ':');
    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, name);
    g_string_append_c(o->text, '\n');
}

int ht_list(int argc, char **argv)
{
    HtControl c = { 0 };
    GError *error = NULL;
    HtOutput o;
    guint i, k;
    int status;

    if (ht_control_open(&c, argc, argv, "list", HT_CONTROL_JSON, 0, "QMP",
                        "List the classes of events that a guest has"
                        " registered,\nand whether they are enabled.",
                        &status)) {
        HtJson j;

        ht_output_stdout(&o);
        j = (HtJson) { .out = o.text };
        for (i = 0; i < c.objects->len && !error; i++) {
            const HtQmpObject *of = c.objects->pdata[i];
            g_autoptr(JsonNode) node = ht_qmp_get(c.qmp, of, "classes",
                                                  &error);
            guint count = 0;
            JsonArray *list = node && JSON_NODE_HOLDS_OBJECT(node) ?
                ht_qmp_array(json_node_get_object(node), "classes",
                             &count) : NULL;

            for (k = 0; k < count; k++) {
                put_class(&o, c.json ? &j : NULL, of,
                          json_array_get_object_element(list, k));
            }
        }
        status = ht_control_finish(&o, error);
    }
    ht_control_close(&c);
    return status;
}

/*
 * Append a pattern to a list of the property "events": for each class, the last
 * pattern that matches its name decides. Earlier entries with the same pattern
 * are dropped, except the first entry of the list, which also decides about
 * classes that no pattern matches. The pattern "*" replaces the whole list.
 */
static char *with_pattern(const char *list, const char *pattern, bool on)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(GStrv) old = g_strsplit_set(list, ",:", -1);
    unsigned i;

    if (strcmp(pattern, "*")) {
        for (i = 0; old[i]; i++) {
            if (i == 0 || strcmp(old[i] + (*old[i] == '!'), pattern)) {
                g_string_append_printf(out, "%s,", old[i]);
            }
        }
    }
    g_string_append_printf(out, "%s%s", on ? "" : "!", pattern);
    return g_string_free(g_steal_pointer(&out), false);
}

/*
 * In a list of settings, replace the setting that has the name in @word
 * (NAME=VALUE) by @word; append @word if there is no such setting.
 */
static char *with_setting(const char *list, const char *word)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(GStrv) old = g_strsplit(list, " ", -1);
    size_t name = strcspn(word, "=") + 1;
    bool there = false;
    unsigned i;

    for (i = 0; old[i]; i++) {
        bool same = !strncmp(old[i], word, name);

        if (*old[i] && !(same && there)) {
            g_string_append_printf(out, "%s%s", out->len ? " " : "",
                                   same ? word : old[i]);
        }
        there |= same;
    }
    if (!there) {
        g_string_append_printf(out, "%s%s", out->len ? " " : "", word);
    }
    return g_string_free(g_steal_pointer(&out), false);
}

typedef struct HtChange {
    const char *property;
    /* value that @change gets if the property is not set */
    const char *unset;
    char *(*change)(const char *value, const char *word);
} HtChange;

static char *with(const char *list, const char *pattern)
{
    return with_pattern(list, pattern, true);
}

static char *without(const char *list, const char *pattern)
{
    return with_pattern(list, pattern, false);
}

static const HtChange enables = { "events", "*", with };
static const HtChange disables = { "events", "*", without };
static const HtChange sets = { "settings", "", with_setting };

static bool change(HtControl *c, const HtQmpObject *of, const HtChange *what,
                   GError **error)
{
    g_autoptr(JsonNode) node = ht_qmp_get(c->qmp, of, what->property, error);
    g_autoptr(JsonNode) done = NULL;
    g_autofree char *value = NULL;

    if (!node) {
        return false;
    }
    value = what->change(JSON_NODE_HOLDS_VALUE(node) &&
                         json_node_get_string(node) ?
                         json_node_get_string(node) : what->unset, c->rest[0]);
    done = ht_qmp_command(c->qmp, error, "qom-set", "path", of->path,
                          "property", what->property, "value", value, NULL);
    return done;
}

static int change_all(HtControl *c, const HtChange *what)
{
    GError *error = NULL;
    int status = HT_EXIT_OK;
    guint i;

    for (i = 0; i < c->objects->len && !status; i++) {
        if (!change(c, c->objects->pdata[i], what, &error)) {
            status = ht_error("%s", error->message);
            g_error_free(error);
        }
    }
    return status;
}

static int enable(int argc, char **argv, bool on)
{
    HtControl c = { 0 };
    int status;

    if (ht_control_open(&c, argc, argv, on ? "enable" : "disable",
                        0, 1, "QMP PATTERN", on ?
                        "Enable the classes of events of the guest's programs"
                        " and kernel that match\nPATTERN, for example"
                        " 'sched_*'. Other classes do not change." :
                        "Disable the classes of events of the guest's programs"
                        " and kernel that match\nPATTERN, for example"
                        " 'sched_*'. Other classes do not change.",
                        &status)) {
        status = !*c.rest[0] || strpbrk(c.rest[0], ",:!") ?
            ht_usage_error("PATTERN '%s': give one pattern without ',', ':'"
                           " and '!', for example 'sched_*'", c.rest[0]) :
            change_all(&c, on ? &enables : &disables);
    }
    ht_control_close(&c);
    return status;
}

int ht_enable(int argc, char **argv)
{
    return enable(argc, argv, true);
}

int ht_disable(int argc, char **argv)
{
    return enable(argc, argv, false);
}

int ht_set(int argc, char **argv)
{
    HtControl c = { 0 };
    int status;

    if (ht_control_open(&c, argc, argv, "set", 0, 1,
                        "QMP NAME=VALUE",
                        "Change a setting of the guest's event sources, for"
                        " example\n'functions=entry:vfs_*'. Other settings do"
                        " not change.", &status)) {
        status = !strchr(c.rest[0], '=') || strchr(c.rest[0], ' ') ?
            ht_usage_error("'%s': give one NAME=VALUE without blanks",
                           c.rest[0]) :
            change_all(&c, &sets);
    }
    ht_control_close(&c);
    return status;
}
