/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: read the settings
 *
 * The options of the command line are settings of the group "watch" of the
 * file, and replace those that the file has. The groups "vm PATTERN" of the
 * file are further rules.
 */
#ifndef HYPERTRACE_WATCH_SETTINGS_H
#define HYPERTRACE_WATCH_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct HtWatchRule - a rule: which virtual machines are recorded, and how
 * @name: pattern of their names, with "*" and "?"
 * @any_user: machines of all users
 * @user: without @any_user: the only user
 * @size: bytes of memory for the events of each machine
 * @silence_ns: a recording is made after this many nanoseconds without events;
 *              0: silence causes no recording
 * @match: events, or lines of the kernel's log, that cause a recording, as for
 *         ht_match_new(); or NULL
 */
typedef struct HtWatchRule {
    char *name;
    bool any_user;
    uid_t user;
    uint64_t size;
    uint64_t silence_ns;
    char *match;
} HtWatchRule;

/**
 * struct HtWatchSettings - settings
 * @dir: folder of all recordings, an absolute path
 * @keep: maximum number of recordings of a virtual machine
 * @max_vms: maximum number of machines of a user that are recorded or wait for
 *           their recorder
 * @max_memory: maximum sum in bytes of HtWatchRule.size of the recorders that
 *              run
 * @max_disk: maximum sum of the sizes of all recordings, in bytes
 * @rules: of HtWatchRule; for a machine, the first rule that fits is used
 */
typedef struct HtWatchSettings {
    char *dir;
    unsigned keep;
    unsigned max_vms;
    uint64_t max_memory;
    uint64_t max_disk;
    GPtrArray *rules;
} HtWatchSettings;

/**
 * ht_watch_settings_read() - read the settings
 * @s: set; for ht_watch_settings_clear() in any case
 * @options: settings of the command line, in the form of the file
 * @path: the file; NULL for the user's file or, if it does not exist, the file
 *        of the system, which need not exist either
 * @error: set if the file cannot be read, if a setting is not valid, or if no
 *         rule is given
 *
 * Return: false on failure
 */
bool ht_watch_settings_read(HtWatchSettings *s, GKeyFile *options,
                            const char *path, GError **error);
void ht_watch_settings_clear(HtWatchSettings *s);

/**
 * ht_watch_settings_recording() - get the assumed maximum size of a recording
 *
 * Return: bytes on the disk: the events of the rule with the largest size, and
 * the kernel's log, formats and symbols
 */
uint64_t ht_watch_settings_recording(const HtWatchSettings *s);

/**
 * ht_watch_settings_has_user() - whether a rule can fit machines of a user
 * @uid: the user
 */
bool ht_watch_settings_has_user(const HtWatchSettings *s, uid_t uid);

/**
 * ht_watch_settings_match() - find the rule for a virtual machine
 * @name: its name
 * @uid: its user
 *
 * Return: a rule, or NULL
 */
const HtWatchRule *ht_watch_settings_match(const HtWatchSettings *s,
                                           const char *name, uid_t uid);

#endif
