/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: files of settings
 *
 * A file has groups of settings, as "keep=20". An error names the group, the
 * setting, its value and the accepted values. If a setting is not given, the
 * functions set a text or list to NULL and a folder to its default. They leave
 * a size, number or flag unchanged.
 */
#ifndef HYPERTRACE_TOOL_CONFIG_H
#define HYPERTRACE_TOOL_CONFIG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * ht_config_load() - read a file of settings
 * @file: filled in
 * @path: the file, which must exist; or NULL
 * @name: if @path is NULL: name of a file in $XDG_CONFIG_HOME/hypertrace or,
 *        if none is there, in /etc/hypertrace. Neither needs to exist
 * @error: set if the file cannot be read or has a wrong syntax; names the file
 */
bool ht_config_load(GKeyFile *file, const char *path, const char *name,
                    GError **error);

/**
 * ht_config_environment() - let variables of the environment replace settings
 * @group: their group
 * @keys: names of settings; NULL after the last
 *
 * The variable of "keep-size" is HYPERTRACE_KEEP_SIZE.
 */
void ht_config_environment(GKeyFile *file, const char *group,
                           const char * const *keys);

/**
 * ht_config_keys() - refuse settings that do not exist
 * @group: the group, which may be missing
 * @known: names of all settings of the group; NULL after the last
 * @error: set if a setting does not exist; suggests a similar name
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
 * @error: set if the value has a wrong escape, as "\\x", or is not UTF-8
 */
bool ht_config_text(GKeyFile *file, const char *group, const char *key,
                    char **value, GError **error);

/**
 * ht_config_list() - get a list that is separated by semicolons
 * @accepted: text of the accepted values, for @error; neither the list nor an
 *            item may be empty
 * @list: set to a new list; NULL if the setting is not given
 * @error: set if the value is wrong
 */
bool ht_config_list(GKeyFile *file, const char *group, const char *key,
                    const char *accepted, char ***list, GError **error);

/**
 * ht_config_size() - get a size; without a unit it is in MiB
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
 * ht_config_number() - get a number from 1 on
 * @most: maximum
 * @n: set to the number
 * @error: set if the value is wrong
 */
bool ht_config_number(GKeyFile *file, const char *group, const char *key,
                      uint64_t most, uint64_t *n, GError **error);

/**
 * ht_config_flag() - get "yes" or "no"
 * @flag: set to true for "yes"
 * @error: set if the value is wrong
 */
bool ht_config_flag(GKeyFile *file, const char *group, const char *key,
                    bool *flag, GError **error);

/**
 * ht_config_folder() - get the folder of recordings
 * @below: the default is this folder in root's or the user's folder of state;
 *         NULL for the folder of state itself
 * @folder: set to the path, newly allocated, also on failure; it is absolute on
 *          success
 * @error: set if the value is wrong
 */
bool ht_config_folder(GKeyFile *file, const char *group, const char *key,
                      const char *below, char **folder, GError **error);

#endif /* HYPERTRACE_TOOL_CONFIG_H */
