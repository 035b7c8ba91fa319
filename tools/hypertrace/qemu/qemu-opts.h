/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse values of QEMU's options
 *
 * QEMU has three syntaxes for the same lists: "name=value,..." with ",," for a
 * comma in a value, JSON, and the groups of a configuration file. These
 * functions convert each of them to a list of names and values. A member of an
 * object inside an object is called "outer.inner", as in QEMU's first syntax.
 */
#ifndef HYPERTRACE_QEMU_OPTS_H
#define HYPERTRACE_QEMU_OPTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct HtOpt - one value
 * @name: its name
 * @value: its text; a boolean of JSON is "on" or "off"
 */
typedef struct HtOpt {
    char *name;
    char *value;
} HtOpt;

/*
 * List of HtOpt, in the order in which they were added. A name can occur
 * several times.
 */
typedef GPtrArray HtOpts;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtOpts, g_ptr_array_unref)

/**
 * ht_opts_new() - create an empty list of values, to be freed by
 * g_ptr_array_unref()
 */
HtOpts *ht_opts_new(void);

/**
 * ht_opts_add() - append a value
 * @name: copied
 * @value: copied
 */
void ht_opts_add(HtOpts *opts, const char *name, const char *value);

/**
 * ht_opts_parse() - append all values of an option's argument
 * @text: the argument; JSON if it begins with '{'
 * @implied: name for a first value that has none; or NULL
 *
 * Any other name without a value is a boolean: "share" is on, "noshare" is off.
 *
 * Return: false if @text begins with '{' and is no valid JSON object; nothing
 * is appended then
 */
bool ht_opts_parse(HtOpts *opts, const char *text, const char *implied);

/**
 * ht_opts_get() - get a value; if a name occurs several times, the last one
 * @name: name of the value
 *
 * Return: the value, owned by @opts; NULL if the list does not have it
 */
const char *ht_opts_get(const HtOpts *opts, const char *name);

/**
 * ht_opts_on() - whether the last value of a name is "on", "yes", "true" or "y"
 */
bool ht_opts_on(const HtOpts *opts, const char *name);

/** ht_opts_text() - convert a list to "name=value,...", newly allocated */
char *ht_opts_text(const HtOpts *opts);

/**
 * typedef HtOptsGroup - handle a group of a configuration file
 * @group: its name, for example "machine"
 * @opts: its values; if the group has an ID, the first value is "id". The
 *        function may keep the list by g_ptr_array_ref()
 * @opaque: argument of ht_opts_config()
 */
typedef void HtOptsGroup(const char *group, HtOpts *opts, void *opaque);

/**
 * ht_opts_config() - read a file for QEMU's option -readconfig
 * @path: the file
 * @group: called for each group
 * @opaque: argument of @group
 *
 * Return: false if the file cannot be read, or its syntax is wrong; @group was
 * called for the groups before the wrong one
 */
bool ht_opts_config(const char *path, HtOptsGroup *group, void *opaque);

#endif
