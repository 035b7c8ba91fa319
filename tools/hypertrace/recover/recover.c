/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: make a recording from the memory of a guest that ended,
 * or a CTF trace from stream memory
 */
#include <gio/gio.h>
#include <inttypes.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "cli/wrong-option.h"
#include "memory/source.h"
#include "record/record-session.h"
#include "recover/recover-streams.h"
#include "views/last.h"

typedef struct Recover {
    char *dir;
    char *kernel_path;
    char *busybox;
    gboolean quiet;
    gint lines;
    const char *file;
    bool streams;               /* @file has stream memory, not a guest's RAM */
} Recover;

static bool parse(Recover *r, int argc, char **argv, int *status)
{
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &r->dir,
          "write the recording to DIR (recovered-DATE-TIME)", "DIR" },
        { "kernel", 0, 0, G_OPTION_ARG_FILENAME, &r->kernel_path,
          "the guest's kernel image, if the memory does not have all of it",
          "FILE" },
        { "busybox", 0, 0, G_OPTION_ARG_FILENAME, &r->busybox,
          "a static busybox for the guest's architecture", "FILE" },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &r->quiet,
          "do not show the end of the recording", NULL },
        { "log", 'n', 0, G_OPTION_ARG_INT, &r->lines,
          "number of log records, or of events of each stream, to show (15)",
          "N" },
        { 0 }
    };
    g_autoptr(GOptionContext) context =
        g_option_context_new("FILE");
    g_autoptr(GError) error = NULL;

    g_option_context_set_summary(context, "Make a recording from the memory of"
                                 " a guest that ended. FILE is the guest's RAM,"
                                 " or a core from QEMU's dump-guest-memory.\n"
                                 "Or make a CTF trace from the streams of a"
                                 " hypertrace device, or of the memory-only"
                                 " transport. FILE is then the file of the"
                                 " stream memory.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hypertrace recover");
    if (!ht_parse_goptions(context, &argc, &argv, &error)) {
        *status = ht_wrong_goption(context, error);
        return false;
    }
    if (argc < 2) {
        *status = ht_usage_error("give a FILE: the guest's RAM, a core from"
                                 " QEMU's dump-guest-memory, or the file of"
                                 " stream memory");
        return false;
    }
    r->file = argv[1];
    r->streams = ht_recover_is_streams(r->file);
    if (argc > 2) {
        *status = ht_usage_error("unexpected argument '%s': the memory is"
                                 " '%s'", argv[argc - 1], argv[1]);
        return false;
    }
    if (r->streams && r->kernel_path) {
        *status = ht_usage_error("--kernel does not apply: '%s' is stream"
                                 " memory, and has the formats of its events",
                                 r->file);
        return false;
    }
    if (r->lines < 0 || r->lines > HT_LAST_LOG_MAX) {
        *status = ht_usage_error("--log=%d: must be 0 to %d", r->lines,
                                 HT_LAST_LOG_MAX);
        return false;
    }
    if (!r->dir) {
        g_autoptr(GDateTime) t = g_date_time_new_now_local();

        r->dir = g_date_time_format(t, "recovered-%Y%m%d-%H%M%S");
    }
    return true;
}

/* @main_buffer: read the main trace buffer, not a boot-mapped ring */
static HtSession *read_memory(const Recover *r, HtSource *source,
                              const HtKernel *kernel, HtKernelImage *image,
                              bool main_buffer, GError **error)
{
    g_autofree char *command = g_strdup_printf("hypertrace recover %s",
                                               r->file);
    const HtSessionInfo info = {
        .dir = r->dir,
        .command = command,
        .source = "the memory of a guest that had ended",
        .kernel = kernel,
        .image = image,
        .main_buffer = main_buffer,
    };
    g_autoptr(HtSession) s = ht_session_new(&info, error);

    if (!s) {
        return NULL;
    }
    ht_session_add(s, &source->mem, HT_SESSION_ALL);
    if (!ht_session_finish(s, "recovered from the guest's memory", error)) {
        ht_session_discard(s);
        return NULL;
    }
    return g_steal_pointer(&s);
}

static bool record(const Recover *r, HtSource *source, const HtKernel *kernel,
                   HtKernelImage *image, GError **error)
{
    g_autoptr(HtSession) s = read_memory(r, source, kernel, image, false,
                                         error);
    HtSessionStats n;

    if (s && image && !ht_session_stats(s).found) {
        ht_session_discard(s);
        ht_session_free(s);
        s = read_memory(r, source, kernel, image, true, error);
    }
    if (!s) {
        return false;
    }
    n = ht_session_stats(s);
    if (!n.found && n.logged) {
        fprintf(stderr, "hypertrace recover: %s has no ring of events, only"
                " the kernel's log\n", r->file);
    } else if (!n.found) {
        ht_session_discard(s);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "%s has no ring of events: the guest needs words for one"
                    " on its kernel's command line, see hypertrace-record(1)",
                    r->file);
        return false;
    }
    if (!r->quiet) {
        printf("%" PRIu64 " event%s, %.1f MB in %s\n\n", n.events,
               ht_number_s(n.events), n.bytes / 1e6, r->dir);
        /*
         * HtOutput, which writes the next text, does not use stdio: flush stdio
         * first.
         */
        fflush(stdout);
    }
    return true;
}

static bool recover_ring(const Recover *r, GError **error)
{
    g_autoptr(HtKernelImage) image = NULL;
    g_autoptr(HtKernel) kernel = NULL;
    g_autoptr(GError) lacks = NULL;
    /* Open the memory first, to report an error before ht_kernel_get() runs. */
    g_autoptr(HtSource) source = ht_source_open(r->file, error);

    if (source && r->kernel_path) {
        kernel = ht_kernel_get(r->kernel_path, NULL, r->busybox, error);
        /* With the image's types and data symbols, the log can be read, too. */
        image = ht_kernel_image_open(r->kernel_path, NULL);
    } else if (source) {
        image = ht_kernel_image_in(&source->mem, r->quiet, NULL, &lacks);
        kernel = image ? ht_kernel_of_image(image) : NULL;
    }
    if (source && !r->kernel_path && !image) {
        fprintf(stderr, "hypertrace recover: events will have numbers instead"
                " of names: %s\n", lacks->message);
    }
    return source && (kernel || !r->kernel_path) &&
           record(r, source, kernel, image, error);
}

static int show(const Recover *r)
{
    g_autofree char *lines = g_strdup_printf("--log=%d", r->lines);
    char *page[] = { (char *)"last", lines, r->dir, NULL };

    return ht_last(3, page);
}

int ht_recover(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Recover r = { .lines = HT_LAST_LOG };
    int status;

    if (parse(&r, argc, argv, &status)) {
        bool ok = r.streams ?
            ht_recover_streams(r.file, r.dir, r.lines, r.quiet, &error) :
            recover_ring(&r, &error);

        status = !ok ? ht_error("%s", error->message) :
                 r.quiet || r.streams ? HT_EXIT_OK : show(&r);
    }
    g_free(r.dir);
    g_free(r.kernel_path);
    g_free(r.busybox);
    return status;
}
