/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse values of QEMU's options
 */
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "cli/file.h"
#include "qemu/qemu-opts.h"

static void free_opt(void *opaque)
{
    HtOpt *opt = opaque;

    g_free(opt->name);
    g_free(opt->value);
    g_free(opt);
}

HtOpts *ht_opts_new(void)
{
    return g_ptr_array_new_with_free_func(free_opt);
}

void ht_opts_add(HtOpts *opts, const char *name, const char *value)
{
    HtOpt *opt = g_new(HtOpt, 1);

    opt->name = g_strdup(name);
    opt->value = g_strdup(value);
    g_ptr_array_add(opts, opt);
}

/* Parse a value up to the next single comma, and move @p after that comma. */
static char *take_value(const char **p)
{
    GString *value = g_string_new(NULL);

    for (; **p; (*p)++) {
        if (**p == ',') {
            (*p)++;
            if (**p != ',') {
                break;
            }
        }
        g_string_append_c(value, **p);
    }
    return g_string_free(value, false);
}

static void parse_list(HtOpts *opts, const char *p, const char *implied)
{
    for (; *p; implied = NULL) {
        size_t len = strcspn(p, "=,");
        g_autofree char *name = g_strndup(p, len);
        g_autofree char *value = NULL;

        if (p[len] == '=') {
            p += len + 1;
            value = take_value(&p);
            ht_opts_add(opts, name, value);
        } else if (implied) {
            value = take_value(&p);
            ht_opts_add(opts, implied, value);
        } else {
            p += len + (p[len] == ',');
            if (g_str_has_prefix(name, "no")) {
                ht_opts_add(opts, name + 2, "off");
            } else {
                ht_opts_add(opts, name, "on");
            }
        }
    }
}

static void add_node(HtOpts *opts, const char *name, JsonNode *node);

static char *join_names(const char *outer, const char *inner)
{
    return *outer ? g_strconcat(outer, ".", inner, NULL) : g_strdup(inner);
}

static void add_scalar(HtOpts *opts, const char *name, JsonNode *node)
{
    GType type = json_node_get_value_type(node);
    g_autofree char *number = NULL;

    if (type == G_TYPE_BOOLEAN) {
        ht_opts_add(opts, name, json_node_get_boolean(node) ? "on" : "off");
    } else if (type == G_TYPE_STRING) {
        ht_opts_add(opts, name, json_node_get_string(node));
    } else if (type == G_TYPE_INT64) {
        number = g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node));
        ht_opts_add(opts, name, number);
    } else {
        number = g_strdup_printf("%.17g", json_node_get_double(node));
        ht_opts_add(opts, name, number);
    }
}

static void add_array(HtOpts *opts, const char *name, JsonArray *array)
{
    unsigned i;

    for (i = 0; i < json_array_get_length(array); i++) {
        g_autofree char *index = g_strdup_printf("%u", i);
        g_autofree char *inner = join_names(name, index);

        add_node(opts, inner, json_array_get_element(array, i));
    }
}

static void add_node(HtOpts *opts, const char *name, JsonNode *node)
{
    JsonObjectIter iter;
    const char *member;
    JsonNode *value;

    if (JSON_NODE_HOLDS_OBJECT(node)) {
        json_object_iter_init(&iter, json_node_get_object(node));
        while (json_object_iter_next(&iter, &member, &value)) {
            g_autofree char *inner = join_names(name, member);

            add_node(opts, inner, value);
        }
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        add_array(opts, name, json_node_get_array(node));
    } else if (JSON_NODE_HOLDS_VALUE(node)) {
        add_scalar(opts, name, node);
    }
}

/*
 * Convert QEMU's JSON, which may have strings in single quotes, to JSON with
 * double quotes.
 */
static char *double_quotes(const char *text)
{
    GString *out = g_string_new(NULL);
    char quote = 0;

    for (; *text; text++) {
        if (quote && *text == '\\' && text[1]) {
            if (text[1] != '\'') {
                g_string_append_c(out, *text);
            }
            g_string_append_c(out, *++text);
        } else if (!quote && (*text == '"' || *text == '\'')) {
            quote = *text;
            g_string_append_c(out, '"');
        } else if (quote && *text == quote) {
            quote = 0;
            g_string_append_c(out, '"');
        } else if (quote == '\'' && *text == '"') {
            g_string_append(out, "\\\"");
        } else {
            g_string_append_c(out, *text);
        }
    }
    return g_string_free(out, false);
}

static bool parse_json(HtOpts *opts, const char *text)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autofree char *json = double_quotes(text);
    JsonNode *root;

    if (!json_parser_load_from_data(parser, json, -1, NULL)) {
        return false;
    }
    root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        return false;
    }
    add_node(opts, "", root);
    return true;
}

bool ht_opts_parse(HtOpts *opts, const char *text, const char *implied)
{
    if (*text == '{') {
        return parse_json(opts, text);
    }
    parse_list(opts, text, implied);
    return true;
}

const char *ht_opts_get(const HtOpts *opts, const char *name)
{
    unsigned i;

    for (i = opts->len; i-- > 0;) {
        const HtOpt *opt = opts->pdata[i];

        if (!strcmp(opt->name, name)) {
            return opt->value;
        }
    }
    return NULL;
}

bool ht_opts_on(const HtOpts *opts, const char *name)
{
    static const char * const words[] = { "on", "yes", "true", "y", NULL };
    const char *value = ht_opts_get(opts, name);

    return value && g_strv_contains(words, value);
}

char *ht_opts_text(const HtOpts *opts)
{
    GString *text = g_string_new(NULL);
    unsigned i;

    for (i = 0; i < opts->len; i++) {
        const HtOpt *opt = opts->pdata[i];
        const char *p;

        g_string_append_printf(text, "%s%s=", i ? "," : "", opt->name);
        for (p = opt->value; *p; p++) {
            g_string_append_len(text, ",,", *p == ',' ? 2 : 0);
            if (*p != ',') {
                g_string_append_c(text, *p);
            }
        }
    }
    return g_string_free(text, false);
}

/*
 * Parse a line of a configuration file that begins a group, and add the group's
 * ID, if it has one, to @opts. Return the group's name; NULL for other lines
 */
static char *group_of(const char *line, HtOpts *opts)
{
    char group[64], id[64];

    if (sscanf(line, "[%63s \"%63[^\"]\"]", group, id) == 2) {
        ht_opts_add(opts, "id", id);
        return g_strdup(group);
    }
    return sscanf(line, "[%63[^]]]", group) == 1 ? g_strdup(group) : NULL;
}

bool ht_opts_config(const char *path, HtOptsGroup *call, void *opaque)
{
    g_autofree char *text = NULL, *group = NULL;
    g_autoptr(HtOpts) opts = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned i;

    if (!ht_file_read(path, &text, NULL, NULL)) {
        return false;
    }
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        char name[64], value[1024] = "";

        if (!*lines[i] || *lines[i] == '#') {
            continue;
        }
        if (*lines[i] == '[') {
            g_autoptr(HtOpts) next = ht_opts_new();
            char *begun = group_of(lines[i], next);

            if (group && begun) {
                call(group, opts, opaque);
            }
            if (begun) {
                g_free(group);
                group = begun;
                g_clear_pointer(&opts, g_ptr_array_unref);
                opts = g_steal_pointer(&next);
                continue;
            }
        }
        if (!group ||
            (sscanf(lines[i], " %63s = \"%1023[^\"]\"", name, value) != 2 &&
             sscanf(lines[i], " %63s = \"\"", name) != 1)) {
            return false;
        }
        ht_opts_add(opts, name, value);
    }
    if (group) {
        call(group, opts, opaque);
    }
    return true;
}
