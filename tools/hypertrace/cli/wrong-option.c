/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/near.h"
#include "cli/wrong-option.h"

static int unknown(HtNear *near)
{
    g_autoptr(GString) hint = g_string_new(NULL);

    ht_near_text(near, hint);
    return ht_usage_error("there is no option '%s'%s", near->name, hint->str);
}

static int unknown_long(const char *word, const struct option *longs)
{
    g_autofree char *name = g_strndup(word, strcspn(word, "="));
    HtNear near = { .name = name };
    unsigned i;

    for (i = 0; longs[i].name; i++) {
        g_autofree char *known = g_strconcat("--", longs[i].name, NULL);

        ht_near_add(&near, known);
    }
    return unknown(&near);
}

int ht_wrong_option(int c, char **argv, const struct option *longs)
{
    const char *word = argv[optind - 1];

    if (c == ':') {
        return ht_usage_error("the option '%s' needs a value", word);
    }
    if (g_str_has_prefix(word, "--") && optopt) {
        return ht_usage_error("the option '%.*s' has no value",
                              (int)strcspn(word, "="), word);
    }
    return g_str_has_prefix(word, "--") ? unknown_long(word, longs) :
           ht_usage_error("there is no option '-%c'", optopt);
}

/*
 * Test whether @help, a command's help, lists the option @name without a value:
 * at the start of a line or after its short form, and followed by a space.
 */
static bool has_no_value(const char *help, const char *name)
{
    g_autofree char *alone = g_strdup_printf("\n  %s ", name);
    g_autofree char *second = g_strdup_printf(", %s ", name);

    return strstr(help, alone) || strstr(help, second);
}

/*
 * Test whether @help, a command's help, lists the option @name with a value
 * whose placeholder begins with @metavar.
 */
static bool has_value(const char *help, const char *name, const char *metavar)
{
    g_autofree char *text = g_strconcat(name, "=", metavar, NULL);

    return strstr(help, text);
}

/*
 * Get the long name and the value of the option at argv[*i], and set *i to the
 * index of the argument that has the value: the same or the next one. If the
 * value follows a short option in the same argument, as in "-kcpu", replace
 * that argument by "--key=cpu", which GLib knows. Return false if argv[*i] is
 * no option with a value, or if the value is missing.
 */
static bool next_value(const char *help, int argc, char **argv, int *i,
                       char **name, const char **value)
{
    const char *word = argv[*i], *equal = strchr(word, '='), *at;
    bool valued;

    if (g_str_has_prefix(word, "--")) {
        *name = g_strndup(word, strcspn(word, "="));
    } else if (word[0] == '-' && word[1]) {
        g_autofree char *both = g_strdup_printf("-%c, --", word[1]);

        equal = NULL;
        at = strstr(help, both);
        if (!at) {
            return false;
        }
        at += strlen("-k, ");
        *name = g_strndup(at, strcspn(at, "= "));
    } else {
        return false;
    }
    valued = has_value(help, *name, "");
    if (valued && word[1] != '-' && word[2]) {
        g_autofree char *all = g_strconcat(*name, "=", word + 2, NULL);

        argv[*i] = (char *)g_intern_string(all);
        equal = strchr(argv[*i], '=');
    }
    if (!valued || (!equal && *i + 1 >= argc)) {
        g_clear_pointer(name, g_free);
        return false;
    }
    *value = equal ? equal + 1 : argv[++*i];
    return true;
}

/*
 * If an option with the placeholder LIST is given several times, join its
 * values with commas, because GLib keeps only the last value. Refuse an option
 * with the placeholder CONDITION or REGEX that is given more than once. Options
 * that next_value() does not find are left as they are.
 */
static bool merge_lists(const char *help, int *argc, char **argv,
                        GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    int i, out = 1;

    for (i = 1; i < *argc && strcmp(argv[i], "--"); i++) {
        g_autofree char *name = NULL, *all = NULL;
        const char *value;
        int begin = i;
        void *first;

        if (!next_value(help, *argc, argv, &i, &name, &value)) {
            argv[out++] = argv[i];
            continue;
        }
        first = g_hash_table_lookup(seen, name);
        if (first && has_value(help, name, "LIST")) {
            char **word = &argv[GPOINTER_TO_INT(first)];

            all = g_strconcat(*word, ",", value, NULL);
            *word = (char *)g_intern_string(all);
            continue;
        }
        if (first && (has_value(help, name, "REGEX") ||
                      has_value(help, name, "CONDITION"))) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "%s: give it once%s", name,
                        has_value(help, name, "REGEX") ?
                        "; 'A|B' matches both" : ", with '&&' or '||'");
            return false;
        }
        for (; begin <= i; begin++) {
            argv[out++] = argv[begin];
        }
        g_hash_table_insert(seen, g_steal_pointer(&name),
                            GINT_TO_POINTER(out - 1));
    }
    while (i < *argc) {
        argv[out++] = argv[i++];
    }
    argv[out] = NULL;
    *argc = out;
    return true;
}

bool ht_parse_goptions(GOptionContext *context, int *argc, char ***argv,
                       GError **error)
{
    g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
    int i;

    for (i = 1; i < *argc && strcmp((*argv)[i], "--"); i++) {
        const char *word = (*argv)[i];
        g_autofree char *name = g_strndup(word, strcspn(word, "="));

        if (g_str_has_prefix(word, "--") && strchr(word, '=') &&
            has_no_value(help, name)) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "the option '%s' has no value", name);
            return false;
        }
    }
    return merge_lists(help, argc, *argv, error) &&
           g_option_context_parse(context, argc, argv, error);
}

/*
 * Search the help for similar names, because GLib has no function that lists
 * the options of a context. The unknown option is the last word of GLib's
 * message.
 */
int ht_wrong_goption(GOptionContext *context, const GError *error)
{
    const char *word = strrchr(error->message, ' ');
    g_autofree char *help = NULL, *name = NULL;
    g_auto(GStrv) words = NULL;
    HtNear near = { 0 };
    unsigned i;

    if (!g_error_matches(error, G_OPTION_ERROR,
                         G_OPTION_ERROR_UNKNOWN_OPTION) || !word) {
        return ht_usage_error("%s", error->message);
    }
    name = g_strndup(word + 1, strcspn(word + 1, "="));
    near.name = name;
    help = g_option_context_get_help(context, TRUE, NULL);
    words = g_strsplit_set(help, " ,=\n", -1);
    for (i = 0; words[i]; i++) {
        if (g_str_has_prefix(words[i], "--")) {
            ht_near_add(&near, words[i]);
        }
    }
    return unknown(&near);
}
