/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: a recording of what a dead guest's memory has
 */
#include <gio/gio.h>
#include <inttypes.h>

#include "command.h"
#include "escape.h"
#include "record-session.h"
#include "source.h"

typedef struct Recover {
    char *dir;
    char *kernel_path;
    char *busybox;
    gboolean quiet;
    const char *file;
} Recover;

static bool parse(Recover *r, int argc, char **argv, int *status)
{
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &r->dir,
          "the recording (recovered-DATE-TIME)", "DIR" },
        { "kernel", 0, 0, G_OPTION_ARG_FILENAME, &r->kernel_path,
          "the guest's kernel; without it, events are numbers", "FILE" },
        { "busybox", 0, 0, G_OPTION_ARG_FILENAME, &r->busybox,
          "a static busybox for the guest's architecture", "FILE" },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &r->quiet,
          "do not show what the guest did last", NULL },
        { 0 }
    };
    g_autoptr(GOptionContext) context = g_option_context_new("FILE");
    g_autoptr(GError) error = NULL;

    g_option_context_set_summary(context, "Make a recording of the events that"
                                 " are in the memory of a guest that died: a"
                                 " RAM file, or a core that QEMU dumped.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hypertrace recover");
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        *status = ht_usage_error("%s", error->message);
        return false;
    }
    if (argc != 2) {
        *status = ht_usage_error("which memory? give one file: the guest's"
                                 " RAM, or what QEMU's dump-guest-memory"
                                 " wrote");
        return false;
    }
    r->file = argv[1];
    if (!r->dir) {
        g_autoptr(GDateTime) t = g_date_time_new_now_local();

        r->dir = g_date_time_format(t, "recovered-%Y%m%d-%H%M%S");
    }
    return true;
}

/* Nothing of it is to stay if there are no events. */
static void remove_recording(const char *dir)
{
    static const char * const names[] = { "info", "formats", "kallsyms" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        unlink(path);
    }
    rmdir(dir);
}

static bool record(const Recover *r, HtSource *source, const HtKernel *kernel,
                   GError **error)
{
    g_autofree char *command = g_strdup_printf("hypertrace recover %s",
                                               r->file);
    const HtSessionInfo info = {
        .dir = r->dir,
        .command = command,
        .source = "the memory of a guest that did not run any more",
        .kernel = kernel,
    };
    g_autoptr(HtSession) s = ht_session_new(&info, error);
    HtSessionStats n;

    if (!s) {
        return false;
    }
    ht_session_add(s, &source->mem);
    if (!ht_session_finish(s, "recovered from the guest's memory", error)) {
        return false;
    }
    n = ht_session_stats(s);
    if (!n.found) {
        g_clear_pointer(&s, ht_session_free);
        remove_recording(r->dir);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "%s has no ring of events: its kernel has to be 6.12 or"
                    " later, and to have been told to keep one, see"
                    " hypertrace-record(1)", r->file);
        return false;
    }
    if (!r->quiet) {
        printf("%" PRIu64 " events, %.1f MB in %s\n\n", n.events,
               n.bytes / 1e6, r->dir);
        /* what follows is not by stdio */
        fflush(stdout);
    }
    return true;
}

int ht_recover(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtKernel) kernel = NULL;
    g_autoptr(HtSource) source = NULL;
    Recover r = { 0 };
    int status;
    bool ok;

    if (parse(&r, argc, argv, &status)) {
        /* before a kernel is booted for it */
        source = ht_source_open(r.file, &error);
        ok = source;
        if (ok && r.kernel_path) {
            kernel = ht_kernel_get(r.kernel_path, NULL, r.busybox, &error);
            ok = kernel;
        }
        if (ok && !kernel) {
            fputs("hypertrace recover: events will have numbers for names:"
                  " --kernel FILE says which kernel the guest ran\n", stderr);
        }
        status = ok && record(&r, source, kernel, &error) ? HT_EXIT_OK :
                 ht_error("%s", error->message);
        if (!status && !r.quiet) {
            char *page[] = { (char *)"last", r.dir, NULL };

            status = ht_last(2, page);
        }
    }
    g_free(r.dir);
    g_free(r.kernel_path);
    g_free(r.busybox);
    return status;
}
