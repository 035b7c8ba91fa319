/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: run a flight recorder for each virtual machine of a host
 */
#include "hypertrace/base.h"

#include "cli/command.h"
#include "cli/wrong-option.h"
#include "watch/watch.h"

static char *config;
static GKeyFile *given;

static gboolean set_option(const char *option, const char *value, void *data,
                           GError **error)
{
    const char *key = option + strspn(option, "-");

    const bool is_dir = !key[1] || !strcmp(key, "output") ||
                        !strcmp(key, "dir");
    g_autofree char *path = is_dir && *value ?
                            g_canonicalize_filename(value, NULL) : NULL;

    g_key_file_set_string(given, "watch", is_dir ? "dir" : key,
                          path ? path : value);
    return true;
}

/*
 * Add the value of an option to its list in @given: the option may be given
 * several times.
 */
static gboolean add_option(const char *option, const char *value, void *data,
                           GError **error)
{
    const char *key = option + strspn(option, "-");
    g_auto(GStrv) list = g_key_file_get_string_list(given, "watch", key, NULL,
                                                    NULL);
    unsigned n = list ? g_strv_length(list) : 0;

    list = g_renew(char *, list, n + 2);
    list[n] = g_strdup(value);
    list[n + 1] = NULL;
    g_key_file_set_string_list(given, "watch", key,
                               (const char * const *)list, n + 1);
    return true;
}

static const GOptionEntry entries[] = {
    { "name", 0, 0, G_OPTION_ARG_CALLBACK, add_option,
      "record machines with such a name, as 'web*'; repeatable", "PATTERN" },
    { "user", 0, 0, G_OPTION_ARG_CALLBACK, add_option,
      "record machines of this user only; repeatable", "USER" },
    { "output", 'o', 0, G_OPTION_ARG_CALLBACK, set_option,
      "directory of the recordings", "DIR" },
    { "dir", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_CALLBACK, set_option, NULL,
      NULL },
    { "size", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "memory for the events of each machine (default: 16M)", "SIZE" },
    { "keep", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "number of recordings of each machine (default: 10)", "N" },
    { "silence", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "also make a recording if there are no events for TIME", "TIME" },
    { "match", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "also make a recording at an event, as 'NAME where FIELD == 1', or at a"
      " line of the kernel's log, as 'log:REGEX'",
      "EVENT" },
    { "max-memory", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "limit for the sum of --size of all machines (default: 1G)", "SIZE" },
    { "max-disk", 0, 0, G_OPTION_ARG_CALLBACK, set_option,
      "limit for all recordings; the oldest go first (default: 4G)", "SIZE" },
    { "config", 0, 0, G_OPTION_ARG_FILENAME, &config,
      "file with these settings", "FILE" },
    { 0 }
};

static int run(void)
{
    g_autoptr(GError) error = NULL;
    HtWatchSettings settings;
    int status;

    if (ht_watch_settings_read(&settings, given, config, &error)) {
        status = ht_watch_run(&settings);
    } else {
        status = ht_usage_error("%s", error->message);
    }
    ht_watch_settings_clear(&settings);
    return status;
}

int ht_watch(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;
    int status;

    given = g_key_file_new();
    g_option_context_set_summary(context, "Follow virtual machines of this host"
                                 " with a flight recorder each, and make a\n"
                                 "recording when one panics, is reset or ends."
                                 " New machines are found.");
    g_option_context_set_description(context, "Without --config, the settings"
                                     " are those of ~/.config/hypertrace/watch"
                                     ".conf,\nor of /etc/hypertrace/watch.conf."
                                     " Machines of other users need root.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hypertrace watch");
    if (!ht_parse_goptions(context, &argc, &argv, &error)) {
        status = ht_wrong_goption(context, error);
    } else if (argc > 1) {
        status = ht_usage_error("unexpected argument '%s'", argv[1]);
    } else {
        status = run();
    }
    g_key_file_free(given);
    g_free(config);
    return status;
}
