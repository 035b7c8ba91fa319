/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace events: list the events of a kernel or of a recording
 */
#include <errno.h>
#include <gio/gio.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/wrong-option.h"
#include "hypertrace/ftrace-format.h"
#include "kernel/kernel.h"
#include "model/patterns.h"

static HtFtFormats *read_formats(const char *path, const char *busybox,
                                 GError **error)
{
    g_autofree char *file = g_build_filename(path, "formats", NULL);
    g_autofree char *text = NULL;
    g_autoptr(HtKernel) kernel = NULL;
    struct stat st;
    gsize size;

    if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
        if (stat(file, &st) && errno == ENOENT) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                        "%s has no file \"formats\": it is no recording, or"
                        " its kernel was not known", path);
            return NULL;
        }
        /*
         * Accept only a regular file: the open of a FIFO would wait for a
         * writer.
         */
        if (!stat(file, &st) && !S_ISREG(st.st_mode)) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "cannot read %s: it is no regular file", file);
            return NULL;
        }
        if (!g_file_get_contents(file, &text, &size, error)) {
            return NULL;
        }
        return ht_ft_formats_parse(text, size, error);
    }
    kernel = ht_kernel_get(path, NULL, busybox, error);
    return kernel ? ht_ft_formats_parse(kernel->formats, kernel->formats_size,
                                        error) : NULL;
}

static void put_fields(const HtFtEvent *e, GString *out)
{
    unsigned i;

    for (i = 0; i < e->nr_fields; i++) {
        g_string_append_c(out, i ? ' ' : '\t');
        ht_escape_str(out, HT_ESCAPE_TERMINAL, e->fields[i].name);
    }
}

int ht_events(int argc, char **argv)
{
    g_autofree char *busybox = NULL;
    gboolean fields = false;
    const GOptionEntry entries[] = {
        { "fields", 'f', 0, G_OPTION_ARG_NONE, &fields,
          "also print the names of fields, for --where", NULL },
        { "busybox", 0, 0, G_OPTION_ARG_FILENAME, &busybox,
          "a static busybox for the kernel's architecture", "FILE" },
        { 0 }
    };
    g_autoptr(GOptionContext) context =
        g_option_context_new("KERNEL|DIR [LIST]");
    g_autoptr(HtFtFormats) formats = NULL;
    g_autoptr(GError) error = NULL;
    HtNames *names;
    unsigned i;

    g_option_context_set_summary(context, "List the events of a kernel's image"
                                 " or of a recording, as system:event;\n"
                                 "LIST chooses some: sched,irq_*,*:sys_*.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hypertrace events");
    if (!ht_parse_goptions(context, &argc, &argv, &error)) {
        return ht_wrong_goption(context, error);
    }
    if (argc < 2 || argc > 3) {
        return ht_usage_error("give a kernel's image or a recording, and at"
                              " most one list of events");
    }
    if (!ht_names_whole("LIST", argc > 2 ? argv[2] : NULL, &error)) {
        return ht_usage_error("%s", error->message);
    }
    formats = read_formats(argv[1], busybox, &error);
    if (!formats ||
        (argc > 2 && !ht_names_check(argv[2], formats, &error))) {
        return ht_error("%s", error->message);
    }
    names = argc > 2 ? ht_names_new(argv[2]) : NULL;
    for (i = 0; i < ht_ft_formats_count(formats); i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);
        g_autoptr(GString) line = g_string_new(NULL);
        g_autofree char *full = g_strdup_printf("%s:%s", e->system, e->name);

        if (names && !ht_names_match(names, e->system, e->name)) {
            continue;
        }
        ht_escape_str(line, HT_ESCAPE_TERMINAL, full);
        if (fields) {
            put_fields(e, line);
        }
        puts(line->str);
    }
    ht_names_free(names);
    return HT_EXIT_OK;
}
