/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read files of settings
 *
 * A file has groups of settings, as "keep=20". The error of a wrong value names
 * the group, the setting, its value and the accepted values. If the file does
 * not have a setting, the functions below set a text or list to NULL and a
 * folder to its default. They leave the caller's size, number or flag
 * unchanged.
 */
#ifndef HYPERTRACE_TOOL_CONFIG_H
#define HYPERTRACE_TOOL_CONFIG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * ht_config_load() - read a file of settings
 * @file: the settings of the file replace all settings that @file has
 * @path: path of the file, which must exist; or NULL
 * @name: used if @path is NULL: name of the file in $XDG_CONFIG_HOME/hypertrace
 *        (by default ~/.config/hypertrace) or, if that file does not exist, in
 *        /etc/hypertrace. If both are missing, @file does not change, and
 *        this is no failure.
 * @error: set if the file cannot be read or has a wrong syntax; names the file
 *
 * Return: false on failure
 */
bool ht_config_load(GKeyFile *file, const char *path, const char *name,
                    GError **error);

/**
 * ht_config_environment() - set settings from variables of the environment
 * @group: the settings' group
 * @keys: names of settings; NULL after the last
 *
 * The variable HYPERTRACE_KEEP_SIZE, for example, sets or replaces the setting
 * "keep-size". If a variable does not exist, its setting is left alone.
 */
void ht_config_environment(GKeyFile *file, const char *group,
                           const char * const *keys);

/**
 * ht_config_keys() - refuse settings with an unknown name
 * @group: the group, which @file may lack
 * @known: all names that the group accepts; NULL after the last
 * @error: set for the first setting that is not in @known; suggests similar
 *         names
 *
 * Return: true if @known has all settings of the group
 */
bool ht_config_keys(GKeyFile *file, const char *group,
                    const char * const *known, GError **error);

/**
 * ht_config_refuse() - set the error of a wrong value
 * @error: set
 * @value: the wrong value
 * @accepted: text of the accepted values, as "yes or no"
 *
 * Return: false
 */
bool ht_config_refuse(GError **error, const char *group, const char *key,
                      const char *value, const char *accepted);

/**
 * ht_config_text() - get a text
 * @value: set to a new text; NULL if the setting is not given
 * @error: set if the value has a wrong escape, as \x, or is not UTF-8
 */
bool ht_config_text(GKeyFile *file, const char *group, const char *key,
                    char **value, GError **error);

/**
 * ht_config_list() - get a list, which has semicolons between its items
 * @accepted: text of the accepted values, for @error; neither the list nor an
 *            item may be empty
 * @list: set to a new list; NULL if the setting is not given
 * @error: set if the value is wrong
 */
bool ht_config_list(GKeyFile *file, const char *group, const char *key,
                    const char *accepted, char ***list, GError **error);

/**
 * ht_config_size() - get a size; a value without a unit is in MiB
 * @least: minimum in bytes, 1 or more
 * @most: maximum in bytes
 * @accepted: text of the accepted values, for @error
 * @bytes: set to the size
 * @error: set if the value is wrong
 */
bool ht_config_size(GKeyFile *file, const char *group, const char *key,
                    uint64_t least, uint64_t most, const char *accepted,
                    uint64_t *bytes, GError **error);

/**
 * ht_config_number() - get a whole number from 1 to @most
 * @most: maximum
 * @n: set to the number
 * @error: set if the value is wrong
 */
bool ht_config_number(GKeyFile *file, const char *group, const char *key,
                      uint64_t most, uint64_t *n, GError **error);

/**
 * ht_config_flag() - get "yes" or "no"
 * @flag: set to true for "yes", to false for "no"
 * @error: set if the value is wrong
 */
bool ht_config_flag(GKeyFile *file, const char *group, const char *key,
                    bool *flag, GError **error);

/**
 * ht_config_folder() - get the folder of recordings
 * @below: The default is the folder of this name in the state folder; if @below
 *         is NULL, it is the state folder itself. The state folder is
 *         /var/lib/hypertrace for root, and $XDG_STATE_HOME/hypertrace (or
 *         ~/.local/state/hypertrace) for other users.
 * @folder: set to the path, newly allocated, also on failure; it is absolute on
 *          success
 * @error: set if the value is wrong
 */
bool ht_config_folder(GKeyFile *file, const char *group, const char *key,
                      const char *below, char **folder, GError **error);

#endif /* HYPERTRACE_TOOL_CONFIG_H */
