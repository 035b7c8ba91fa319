/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: output of a command
 */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/escape.h"
#include "cli/output.h"
#include "cli/progress.h"

#define COLUMNS_DEFAULT 100
#define COLUMNS_MAX     1000

/*
 * Path of the unfinished file, which the signal handler remove_unfinished()
 * removes. It is changed only while the signals of @deadly are blocked.
 */
static char unfinished[4096];
static const int deadly[] = { SIGHUP, SIGINT, SIGTERM };

static void remove_unfinished(int sig)
{
    if (unfinished[0]) {
        unlink(unfinished);
    }
    /*
     * SA_RESETHAND has restored the signal's default action, which ends the
     * process.
     */
    raise(sig);
}

static void block_deadly(sigset_t *before)
{
    sigset_t block;
    unsigned i;

    sigemptyset(&block);
    for (i = 0; i < G_N_ELEMENTS(deadly); i++) {
        sigaddset(&block, deadly[i]);
    }
    sigprocmask(SIG_BLOCK, &block, before);
}

void ht_output_catch(void (*handler)(int sig))
{
    struct sigaction sa = {
        .sa_handler = handler,
        .sa_flags = SA_RESETHAND,
    }, old;
    unsigned i;

    sigemptyset(&sa.sa_mask);
    for (i = 0; i < G_N_ELEMENTS(deadly); i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 &&
            old.sa_handler != SIG_IGN) {
            sigaction(deadly[i], &sa, NULL);
        }
    }
}

static void set_unfinished(const char *path)
{
    sigset_t before;

    block_deadly(&before);
    if (!path || g_strlcpy(unfinished, path, sizeof(unfinished)) >=
        sizeof(unfinished)) {
        unfinished[0] = 0;
    }
    if (path) {
        ht_output_catch(remove_unfinished);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static unsigned terminal_columns(void)
{
    const char *env = getenv("COLUMNS");
    struct winsize size;
    guint64 n = 0;

    if (env) {
        g_ascii_string_to_unsigned(env, 10, 1, UINT32_MAX, &n, NULL);
    }
    if (!n && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        n = size.ws_col;
    }
    return n ? CLAMP(n, 40, COLUMNS_MAX) : COLUMNS_DEFAULT;
}

void ht_output_stdout(HtOutput *o)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    *o = (HtOutput) {
        .text = g_string_sized_new(2 * 65536),
        .terminal = isatty(STDOUT_FILENO),
        .fd = STDOUT_FILENO,
        .target = -1,
        .columns = terminal_columns(),
    };
    o->colour = o->terminal && !(no && *no) && term && strcmp(term, "dumb");
}

static bool is_stream(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool ht_output_is_stdout(const char *path)
{
    struct stat st, out;

    return path && (!strcmp(path, "-") ||
                    (stat(path, &st) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
                     same_file(&st, &out)));
}

/*
 * Open @path if it must not be replaced by a new file: standard output, a pipe
 * or a character device. Returns -1 for any other @path, and on failure with
 * @errp set. A path such as /dev/stdout counts as standard output even if
 * standard output is a regular file: a rename would replace the link in /dev.
 */
static int open_target(const char *path, GError **errp)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int fd = -1;

    if (ht_output_is_stdout(path)) {
        fd = dup(STDOUT_FILENO);
    } else if (exists && is_stream(&st)) {
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else if (exists && !S_ISREG(st.st_mode)) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_REGULAR_FILE,
                    "cannot write '%s': it is neither a regular file nor a"
                    " pipe", path);
        return -1;
    } else {
        return -1;
    }
    if (fd < 0) {
        int saved = errno;

        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(saved),
                    "cannot open '%s': %s", path, g_strerror(saved));
    }
    return fd;
}

bool ht_output_is_stream(const char *path)
{
    struct stat st;

    return !strcmp(path, "-") || (stat(path, &st) == 0 && is_stream(&st));
}

static bool is_null(const char *path)
{
    struct stat st, null;

    return stat(path, &st) == 0 && stat("/dev/null", &null) == 0 &&
           same_file(&st, &null);
}

/*
 * Check whether two paths mean the same file. If a file does not exist, only
 * the texts of the paths are compared. Neither path is standard output.
 */
static bool same_path(const char *a, const char *b)
{
    g_autofree char *x = g_canonicalize_filename(a, NULL);
    g_autofree char *y = g_canonicalize_filename(b, NULL);
    struct stat s, t;

    return !strcmp(x, y) || (stat(a, &s) == 0 && stat(b, &t) == 0 &&
                             same_file(&s, &t));
}

char *ht_output_clash(const HtOutputName *outputs, unsigned count)
{
    unsigned i, k;

    for (i = 0; i < count; i++) {
        const HtOutputName *a = &outputs[i];
        bool out = ht_output_is_stdout(a->path);

        for (k = 0; a->path && !is_null(a->path) && k < i; k++) {
            const HtOutputName *b = &outputs[k];

            if (!b->path || out != ht_output_is_stdout(b->path) ||
                (!out && !same_path(a->path, b->path))) {
                continue;
            }
            return out ?
                g_strdup_printf("%s and %s cannot both write to standard"
                                " output", b->option, a->option) :
                g_strdup_printf("%s and %s cannot both write to '%s'",
                                b->option, a->option, a->path);
        }
    }
    return NULL;
}

/*
 * Collect the output in a file without a name, because ht_output_patch() may
 * change it.
 */
static bool collect_for(HtOutput *o, int target, const char *path,
                        GError **errp)
{
    g_autofree char *name = NULL;
    int fd = g_file_open_tmp("hypertrace-XXXXXX", &name, errp);

    if (fd < 0) {
        close(target);
        return false;
    }
    unlink(name);
    o->fd = fd;
    o->target = target;
    o->path = g_strdup(path);
    o->text = g_string_sized_new(2 * 65536);
    return true;
}

bool ht_output_file(HtOutput *o, const char *path, GError **errp)
{
    g_autoptr(GError) error = NULL;
    sigset_t before;
    mode_t mask;
    int fd, target, saved;

    *o = (HtOutput) { .fd = -1, .target = -1, .columns = COLUMNS_DEFAULT };
    target = open_target(path, &error);
    if (error) {
        g_propagate_error(errp, g_steal_pointer(&error));
        return false;
    }
    if (target >= 0) {
        return collect_for(o, target, path, errp);
    }
    o->temporary = g_strdup_printf("%s.XXXXXX", path);
    /*
     * Block the signals of @deadly until @unfinished is set: such a signal,
     * after the file is created, must remove the file.
     */
    block_deadly(&before);
    fd = g_mkstemp_full(o->temporary, O_RDWR | O_CLOEXEC, 0600);
    saved = errno;
    if (fd >= 0) {
        set_unfinished(o->temporary);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (fd < 0) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(saved),
                    "cannot create a file in the directory of '%s': %s", path,
                    g_strerror(saved));
        g_clear_pointer(&o->temporary, g_free);
        return false;
    }
    mask = umask(0);
    umask(mask);
    if (fchmod(fd, 0666 & ~mask) < 0) {
        o->error = errno;
    }
    o->fd = fd;
    o->path = g_strdup(path);
    o->text = g_string_sized_new(2 * 65536);
    return true;
}

static int write_all(int fd, const char *p, gsize left)
{
    while (left) {
        ssize_t n = write(fd, p, left);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        n = MAX(n, 0);
        p += n;
        left -= n;
    }
    return 0;
}

bool ht_output_flush(HtOutput *o)
{
    if (o->terminal && o->text->len) {
        /* Remove the progress line, before the text is on the terminal. */
        ht_progress_end();
    }
    if (!o->error) {
        o->error = write_all(o->fd, o->text->str, o->text->len);
        o->written += o->error ? 0 : o->text->len;
    }
    g_string_truncate(o->text, 0);
    return !o->error;
}

bool ht_output_patch(HtOutput *o, uint64_t at, const void *data, gsize len)
{
    const char *p = data;

    while (len && !o->error) {
        ssize_t n = pwrite(o->fd, p, len, at);

        if (n < 0) {
            if (errno != EINTR) {
                o->error = errno;
            }
            continue;
        }
        p += n;
        at += n;
        len -= n;
    }
    return !o->error;
}

static void release(HtOutput *o)
{
    if (o->path) {
        if (o->fd >= 0) {
            close(o->fd);
        }
        if (o->target >= 0) {
            close(o->target);
        } else {
            set_unfinished(NULL);
        }
    }
    g_free(o->path);
    g_free(o->temporary);
    if (o->text) {
        g_string_free(o->text, true);
    }
    *o = (HtOutput) { .fd = -1, .target = -1 };
}

/* Copy the collected output to its target. Returns 0 or an errno. */
static int send_to_target(HtOutput *o)
{
    char buffer[65536];
    uint64_t at = 0;
    int error = 0;

    while (at < o->written && !error) {
        ssize_t n = pread(o->fd, buffer, sizeof(buffer), at);

        if (n <= 0) {
            return n ? errno : EIO;
        }
        error = write_all(o->target, buffer, n);
        at += n;
    }
    return error;
}

/* Rename a completely written file to its final name. Returns 0 or an errno. */
static int give_name(HtOutput *o)
{
    /* Sync before the rename: a power cut must not leave a partial file. */
    if ((fsync(o->fd) < 0 && errno != EINVAL) ||
        rename(o->temporary, o->path) < 0) {
        return errno;
    }
    return 0;
}

bool ht_output_finish(HtOutput *o, GError **errp)
{
    int error;

    ht_output_flush(o);
    if (o->path && !o->error) {
        o->error = o->temporary ? give_name(o) : send_to_target(o);
    }
    if (o->temporary && o->error) {
        unlink(o->temporary);
    }
    error = o->error;
    if (error && (o->temporary || error != EPIPE)) {
        g_set_error(errp, G_IO_ERROR, g_io_error_from_errno(error),
                    "cannot write %s%s%s: %s", o->path ? "'" : "",
                    o->path ? o->path : "standard output", o->path ? "'" : "",
                    g_strerror(error));
    } else {
        error = 0;
    }
    release(o);
    return !error;
}

void ht_output_abort(HtOutput *o)
{
    if (o->temporary) {
        unlink(o->temporary);
    }
    release(o);
}

void ht_output_colour(HtOutput *o, HtColour colour)
{
    static const char * const sequences[] = {
        [HT_COLOUR_NONE] = "\033[0m", [HT_COLOUR_DIM] = "\033[2m",
        [HT_COLOUR_BOLD] = "\033[1m", [HT_COLOUR_RED] = "\033[31m",
        [HT_COLOUR_GREEN] = "\033[32m", [HT_COLOUR_YELLOW] = "\033[33m",
        [HT_COLOUR_BLUE] = "\033[34m", [HT_COLOUR_CYAN] = "\033[36m",
    };

    if (o->colour) {
        g_string_append(o->text, sequences[colour]);
    }
}

void ht_output_heading(HtOutput *o, const char *s)
{
    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "%s\n", s);
    ht_output_colour(o, HT_COLOUR_NONE);
}

void ht_output_padded(HtOutput *o, const char *s, int width)
{
    gsize start = o->text->len;
    glong wide = ABS(width), len;

    ht_escape_str(o->text, HT_ESCAPE_TERMINAL, s);
    len = g_utf8_strlen(o->text->str + start, o->text->len - start);
    if (len > wide && wide > 1) {
        char *end = g_utf8_offset_to_pointer(o->text->str + start, wide - 1);

        g_string_truncate(o->text, end - o->text->str);
        g_string_append_c(o->text, '~');
        len = wide;
    }
    for (; len < wide; len++) {
        g_string_insert_c(o->text, width < 0 ? (gssize)start : -1, ' ');
    }
}
