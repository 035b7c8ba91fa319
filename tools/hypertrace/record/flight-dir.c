/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: make and remove recordings in the folder of a flight
 * recorder
 *
 * A recording is written under a hidden name and renamed when it is complete.
 */
#include "hypertrace/base.h"
#include <sys/file.h>

#include "cli/command.h"
#include "cli/folder.h"
#include "record/flight-dir.h"

/* Name of a recording until it is complete */
#define HIDDEN  ".hypertrace-flight"

static const char *const cause_names[HT_CAUSES] = {
    [HT_CAUSE_COMMAND] = "command",
    [HT_CAUSE_SIGNAL] = "signal",
    [HT_CAUSE_EVENT] = "event",
    [HT_CAUSE_SILENCE] = "silence",
    [HT_CAUSE_RESET] = "reset",
    [HT_CAUSE_END] = "end",
    [HT_CAUSE_SHUTDOWN] = "shutdown",
    [HT_CAUSE_IO_ERROR] = "io-error",
    [HT_CAUSE_ERROR] = "error",
    [HT_CAUSE_WATCHDOG] = "watchdog",
    [HT_CAUSE_PANIC] = "panic",
};

const char *ht_cause_name(HtCause cause)
{
    return cause_names[cause];
}

static bool fail(GError **error, const char *what, const char *path)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot %s %s: %s", what, path, g_strerror(code));
    return false;
}

bool ht_flight_dir_is_file(const char *name)
{
    static const char * const files[] = {
        "info", "formats", "kallsyms", "log", NULL
    };

    return g_strv_contains(files, name) ||
           g_str_has_prefix(name, ".hypertrace-") ||
           (g_str_has_prefix(name, "cpu") && name[3] &&
            strspn(name + 3, "0123456789") == strlen(name + 3));
}

bool ht_flight_dir_remove(int dir, const char *name)
{
    return ht_folder_remove(dir, name, ht_flight_dir_is_file);
}

/*
 * Parse the number with which a name begins, before a '-'.  Set *@rest to the
 * text after the '-'.  Return 0 if the name begins otherwise
 */
static uint64_t parse_number(const char *name, char **rest)
{
    uint64_t n;

    /* ht_flight_dir_commit() writes no leading 0. */
    if (*name < '1' || *name > '9') {
        return 0;
    }
    n = g_ascii_strtoull(name, rest, 10);
    if (**rest != '-' || n == UINT64_MAX) {
        return 0;
    }
    ++*rest;
    return n;
}

uint64_t ht_flight_dir_number(const char *name)
{
    char *rest;
    uint64_t n = parse_number(name, &rest);
    unsigned i;

    for (i = 0; n && i < HT_CAUSES; i++) {
        if (!g_strcmp0(rest, cause_names[i])) {
            return n;
        }
    }
    return 0;
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    uint64_t x = ht_flight_dir_number(*(char *const *)a);
    uint64_t y = ht_flight_dir_number(*(char *const *)b);

    return x < y ? -1 : x > y;
}

static bool add_name(int fd, const char *name, void *opaque)
{
    if (ht_flight_dir_number(name)) {
        g_ptr_array_add(opaque, g_strdup(name));
    }
    return true;
}

/* Get the names of the recordings, the oldest first; NULL on failure. */
static GPtrArray *list(const HtFlightDir *d, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    if (!ht_folder_each(d->fd, NULL, add_name, names)) {
        fail(error, "read", d->path);
        return NULL;
    }
    g_ptr_array_sort(names, by_number);
    return g_steal_pointer(&names);
}

/*
 * Refuse a folder that other users own or can write to: they could read a
 * recording, or replace it. Lock the folder.
 */
static bool check(const HtFlightDir *d, GError **error)
{
    struct stat st;

    if (fstat(d->fd, &st)) {
        return fail(error, "open", d->path);
    }
    if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PERM,
                    "%s belongs to another user, or others can write to it: "
                    "name another directory", d->path);
        return false;
    }
    if (flock(d->fd, LOCK_EX | LOCK_NB)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                    "another recorder uses %s: name another directory",
                    d->path);
        return false;
    }
    return true;
}

static bool raise_number(int fd, const char *name, void *opaque)
{
    HtFlightDir *d = opaque;
    char *rest;

    (void)fd;
    d->number = MAX(d->number, parse_number(name, &rest) + 1);
    return true;
}

/*
 * Find the number of the next recording: larger than the numbers of all names
 * in the folder, also of a recording that a user has renamed to
 * "12-panic-kept".
 */
static bool find_number(HtFlightDir *d, GError **error)
{
    d->number = 1;
    return ht_folder_each(d->fd, NULL, raise_number, d) ||
           fail(error, "read", d->path);
}

HtFlightDir *ht_flight_dir_open(const char *path, unsigned keep,
                                GError **error)
{
    HtFlightDir *d = g_new0(HtFlightDir, 1);

    d->path = g_strdup(path);
    d->keep = keep;
    d->fd = g_mkdir_with_parents(path, 0700) ? -1 :
            open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->fd < 0) {
        fail(error, "make", path);
    }
    if (d->fd < 0 || !check(d, error) || !find_number(d, error)) {
        ht_flight_dir_close(d);
        return NULL;
    }
    ht_flight_dir_remove(d->fd, HIDDEN);
    return d;
}

void ht_flight_dir_close(HtFlightDir *d)
{
    if (d) {
        if (d->fd >= 0) {
            close(d->fd);
        }
        g_free(d->path);
        g_free(d);
    }
}

HtRecWriter *ht_flight_dir_begin(const HtFlightDir *d, GError **error)
{
    g_autofree char *path = g_build_filename(d->path, HIDDEN, NULL);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GPtrArray) names = list(d, &failure);
    unsigned i;

    if (!names) {
        ht_notice("no old recording is removed: %s", failure->message);
    }
    for (i = 0; names && i + d->keep <= names->len; i++) {
        ht_flight_dir_remove(d->fd, names->pdata[i]);
    }
    ht_flight_dir_remove(d->fd, HIDDEN);
    if (mkdirat(d->fd, HIDDEN, 0700)) {
        fail(error, "make", path);
        return NULL;
    }
    return ht_rec_writer_new_fd(ht_folder_open(d->fd, HIDDEN), path, error);
}

char *ht_flight_dir_commit(const HtFlightDir *d, HtCause cause, GError **error)
{
    g_autofree char *name = g_strdup_printf("%" PRIu64 "-%s", d->number,
                                            ht_cause_name(cause));
    g_autofree char *path = g_build_filename(d->path, name, NULL);

    if (renameat(d->fd, HIDDEN, d->fd, name)) {
        fail(error, "make", path);
        return NULL;
    }
    return g_steal_pointer(&path);
}

char *ht_flight_dir_remove_oldest(const HtFlightDir *d)
{
    g_autoptr(GPtrArray) names = list(d, NULL);

    if (!names || !names->len ||
        !ht_flight_dir_remove(d->fd, names->pdata[0])) {
        return NULL;
    }
    return g_build_filename(d->path, names->pdata[0], NULL);
}

void ht_flight_dir_abort(const HtFlightDir *d)
{
    ht_flight_dir_remove(d->fd, HIDDEN);
}
