/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: read the settings
 *
 * A setting comes from the environment, else from the first of these files that
 * exists, else from the defaults:
 *   $XDG_CONFIG_HOME/hypertrace/emulator.conf, /etc/hypertrace/emulator.conf
 */
#ifndef HYPERTRACE_EMULATOR_SETTINGS_H
#define HYPERTRACE_EMULATOR_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct HtSettings - how the emulator records
 * @record: false to run QEMU unchanged
 * @qemu: QEMU's program, or a folder with a program of the link's name; NULL to
 *        search PATH
 * @recordings: folder that gets a folder for each recording
 * @keep: number of recordings that are kept, the new one included
 * @keep_bytes: before a recording begins, the oldest ones that are not in use
 *              are removed until the sum of the sizes is at most this, in bytes
 * @max_bytes: largest size of one recording, in bytes
 * @events: list as for --event of record; NULL for the default of record
 * @ring_bytes: size of the guest's ring, as --size of record
 */
typedef struct HtSettings {
    bool record;
    char *qemu;
    char *recordings;
    uint64_t keep;
    uint64_t keep_bytes;
    uint64_t max_bytes;
    char *events;
    uint64_t ring_bytes;
} HtSettings;

/**
 * ht_settings_read() - read the environment and the file
 * @s: filled in, also on failure; for ht_settings_clear()
 * @error: set if the file cannot be read or a setting is unknown or wrong
 */
bool ht_settings_read(HtSettings *s, GError **error);
void ht_settings_clear(HtSettings *s);

#endif
