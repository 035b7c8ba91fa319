/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace snapshot: request a recording from a flight recorder
 */
#include "hypertrace/base.h"
#include <json-glib/json-glib.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "cli/wrong-option.h"
#include "qemu/qmp.h"
#include "record/flight-control.h"

/* Maximum size of a reply in bytes */
#define REPLY_MAX 65536

static bool has_socket(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, HT_FLIGHT_SOCKET, NULL);
    struct stat st;

    return !lstat(path, &st) && S_ISSOCK(st.st_mode);
}

/*
 * Find the directory of a running flight recorder: the working directory or a
 * directory in it. Fail if there are several, or none.
 */
static char *find_dir(GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(".", 0, error);
    g_autofree char *found = has_socket(".") ? g_strdup(".") : NULL;
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        if (!has_socket(name)) {
            continue;
        }
        if (found) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "%s and %s are directories of flight recorders: name "
                        "one", found, name);
            return NULL;
        }
        found = g_strdup(name);
    }
    if (dir && !found) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no flight "
                    "recorder uses a directory in the working directory: name "
                    "that of 'hypertrace record --flight'");
    }
    return g_steal_pointer(&found);
}

/* Wait for the recorder's reply, one line; NULL if it ends without a reply. */
static char *receive(int fd, GError **error)
{
    g_autoptr(GString) line = g_string_new(NULL);
    char buf[4096];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0 ||
           (n < 0 && errno == EINTR)) {
        g_string_append_len(line, buf, MAX(n, 0));
        if (line->len > REPLY_MAX) {
            break;
        }
    }
    if (!line->len || line->str[line->len - 1] != '\n') {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "the recorder "
                    "ended, or failed, and made no recording; its messages "
                    "say why");
        return NULL;
    }
    g_string_truncate(line, line->len - 1);
    return g_string_free(g_steal_pointer(&line), false);
}

static int show(const char *line, bool json, bool quiet, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GString) safe = g_string_new(NULL);
    JsonObject *o;
    const char *dir;

    if (!json_parser_load_from_data(parser, line, -1, error)) {
        return HT_EXIT_ERROR;
    }
    o = JSON_NODE_HOLDS_OBJECT(json_parser_get_root(parser)) ?
        json_node_get_object(json_parser_get_root(parser)) : NULL;
    if (!o || *ht_qmp_text(o, "error")) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "no recording: "
                    "%s", o ? ht_qmp_text(o, "error") : "no reply");
        return HT_EXIT_ERROR;
    }
    dir = ht_qmp_text(o, "directory");
    if (json) {
        puts(line);
        return HT_EXIT_OK;
    }
    ht_escape_str(safe, HT_ESCAPE_TERMINAL, dir);
    printf("%s  %" PRId64 " event%s\n", safe->str, ht_qmp_int(o, "events"),
           ht_number_s(ht_qmp_int(o, "events")));
    if (!quiet) {
        char *page[] = { (char *)"last", (char *)dir, NULL };

        puts("");
        fflush(stdout);
        return ht_last(2, page);
    }
    return HT_EXIT_OK;
}

static int snapshot(const char *given, bool json, bool quiet)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = given ? g_strdup(given) : find_dir(&error);
    g_autofree char *line = NULL;
    int fd = dir ? ht_flight_control_connect(dir, &error) : -1;
    int status = HT_EXIT_ERROR;

    if (fd >= 0) {
        line = receive(fd, &error);
        close(fd);
    }
    if (line) {
        status = show(line, json, quiet, &error);
    }
    return error ? ht_error("%s", error->message) : status;
}

int ht_snapshot(int argc, char **argv)
{
    gboolean json = false, quiet = false;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "write JSON", NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet,
          "do not show the end of the recording", NULL },
        { 0 }
    };
    g_autoptr(GOptionContext) context = g_option_context_new("[DIR]");
    g_autoptr(GError) error = NULL;

    g_option_context_set_summary(context, "Request a recording of the events in"
                                 " memory from\n'hypertrace record --flight',"
                                 " and show the end of the recording.");
    g_option_context_set_description(context, "DIR is the recorder's directory"
                                     " of recordings; default: the one in the"
                                     "\nworking directory.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hypertrace snapshot");
    if (!ht_parse_goptions(context, &argc, &argv, &error)) {
        return ht_wrong_goption(context, error);
    }
    if (argc > 2) {
        return ht_usage_error("unexpected argument '%s'", argv[2]);
    }
    return snapshot(argv[1], json, quiet);
}
