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
 * Test whether the help has an option without a value: at the start of a line
 * or after its short form, and with a space after its name.
 */
static bool has_no_value(const char *help, const char *name)
{
    g_autofree char *alone = g_strdup_printf("\n  %s ", name);
    g_autofree char *second = g_strdup_printf(", %s ", name);

    return strstr(help, alone) || strstr(help, second);
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
    return g_option_context_parse(context, argc, argv, error);
}

/*
 * GLib has no list of a context's options, but the help has all. The message
 * of an unknown option ends with the option.
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
