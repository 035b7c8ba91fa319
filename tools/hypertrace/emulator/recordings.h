/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: make and remove recordings in a folder
 */
#ifndef HYPERTRACE_EMULATOR_RECORDINGS_H
#define HYPERTRACE_EMULATOR_RECORDINGS_H

#include <glib.h>
#include <stdint.h>

/**
 * ht_recordings_new() - create a folder for a recording, and remove old ones
 * @folder: folder of all recordings; created if it does not exist
 * @guest: the guest's name, or NULL
 * @keep: number of recordings to keep, the new one included
 * @bytes: the oldest recordings are removed until their sum of disk space is at
 *         most this; the new recording is not part of the sum
 * @lock: set to a descriptor, closed on exec; -1 on failure. The recording is
 *        in use while this descriptor or a child's copy is open.
 * @error: set on failure
 *
 * Recordings in use are not removed, but they count if they have the file
 * "info".
 *
 * Return: the path of the new folder, newly allocated; NULL on failure
 */
char *ht_recordings_new(const char *folder, const char *guest, uint64_t keep,
                        uint64_t bytes, int *lock, GError **error);

#endif
