/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: make and remove recordings in the folder of a flight
 * recorder
 *
 * The folder has numbered recordings, as "12-panic". Only one recorder uses a
 * folder at a time.
 */
#ifndef HYPERTRACE_FLIGHT_DIR_H
#define HYPERTRACE_FLIGHT_DIR_H

#include "hypertrace/recording.h"

/* Number of recordings that are kept: the default and the maximum */
#define HT_FLIGHT_KEEP_DEFAULT  20
#define HT_FLIGHT_KEEP_MAX      10000

/* Causes of a recording, the least important first */
typedef enum HtCause {
    HT_CAUSE_NONE,
    HT_CAUSE_COMMAND,
    HT_CAUSE_SIGNAL,
    HT_CAUSE_EVENT,
    HT_CAUSE_SILENCE,
    HT_CAUSE_RESET,
    HT_CAUSE_END,
    HT_CAUSE_SHUTDOWN,
    HT_CAUSE_IO_ERROR,
    HT_CAUSE_ERROR,
    HT_CAUSE_WATCHDOG,
    HT_CAUSE_PANIC,
    HT_CAUSES
} HtCause;

/**
 * ht_cause_name() - the name of a cause, such as "panic"; static; NULL for
 * HT_CAUSE_NONE
 */
const char *ht_cause_name(HtCause cause);

/**
 * struct HtFlightDir - the folder
 * @path: its name
 * @fd: its descriptor, which holds the lock
 * @keep: maximum number of recordings in it
 * @number: number of the next recording, larger than all in the folder
 */
typedef struct HtFlightDir {
    char *path;
    int fd;
    unsigned keep;
    uint64_t number;
} HtFlightDir;

/**
 * ht_flight_dir_open() - open or create the folder, and lock it
 * @path: its name
 * @keep: maximum number of recordings, 1 to HT_FLIGHT_KEEP_MAX
 * @error: set if it cannot be created or read, if others own it or can write to
 *         it, or if another recorder uses it
 *
 * Removes the incomplete recording of a recorder that was killed.
 *
 * Return: for ht_flight_dir_close(); NULL on failure
 */
HtFlightDir *ht_flight_dir_open(const char *path, unsigned keep,
                                GError **error);
void ht_flight_dir_close(HtFlightDir *d);

/**
 * ht_flight_dir_begin() - begin a recording
 * @d: the folder
 * @error: set on failure
 *
 * First removes the oldest recordings until fewer than @d->keep are left. If
 * the folder cannot be listed, prints a notice and removes none.
 * Does not remove folders with names of another form than "12-panic".
 *
 * Return: its writer; NULL on failure
 */
HtRecWriter *ht_flight_dir_begin(const HtFlightDir *d, GError **error);

/**
 * ht_flight_dir_commit() - rename a complete recording to its final name
 * @d: the folder; the caller must increment @d->number
 * @cause: the cause, with which the name ends; not HT_CAUSE_NONE
 * @error: set on failure
 *
 * The writer of the recording must have been freed.
 *
 * Return: the recording's path, newly allocated; NULL on failure
 */
char *ht_flight_dir_commit(const HtFlightDir *d, HtCause cause, GError **error);

/**
 * ht_flight_dir_number() - parse the number of a recording's name
 * @name: name of a file in the folder
 *
 * Return: as 12 of "12-panic"; 0 if no recorder gives this name to a recording.
 * No recorder removes a recording that a user has renamed to such a name.
 */
uint64_t ht_flight_dir_number(const char *name);

/**
 * ht_flight_dir_is_file() - whether a recording may have a file of this name
 */
bool ht_flight_dir_is_file(const char *name);

/**
 * ht_flight_dir_remove() - remove a recording
 * @dir: descriptor of the folder
 * @name: the recording's name; a symbolic link is not followed
 *
 * Removes the files with names of ht_flight_dir_is_file(), and the folder if it
 * is empty then.
 *
 * Return: true if no folder of that name is left
 */
bool ht_flight_dir_remove(int dir, const char *name);

/**
 * ht_flight_dir_remove_oldest() - make room on a full disk
 * @d: the folder
 *
 * Return: the path of the removed recording, newly allocated; NULL if there is
 * none, or it cannot be removed
 */
char *ht_flight_dir_remove_oldest(const HtFlightDir *d);

/** ht_flight_dir_abort() - remove a recording that was not committed */
void ht_flight_dir_abort(const HtFlightDir *d);

#endif
