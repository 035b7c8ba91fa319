/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: messages for options that getopt_long() or GLib refuses
 */
#ifndef HYPERTRACE_TOOL_WRONG_OPTION_H
#define HYPERTRACE_TOOL_WRONG_OPTION_H

#include <getopt.h>
#include <glib.h>
#include <stdbool.h>

/**
 * ht_wrong_option() - print what is wrong with an option
 * @c: '?' or ':' as getopt_long() returned it; opterr must be 0, and the short
 *     options must have a ':' at the start
 * @argv: argument of getopt_long()
 * @longs: argument of getopt_long()
 *
 * For an unknown option, the message has similar names.
 *
 * Return: HT_EXIT_USAGE
 */
int ht_wrong_option(int c, char **argv, const struct option *longs);

/**
 * ht_parse_goptions() - g_option_context_parse() that refuses "--json=no" and
 *                       joins the values of a repeated list
 * @context: the context
 * @argc: number of arguments; updated
 * @argv: the arguments; updated
 * @error: set on failure
 *
 * GLib accepts a value of an option that has none, and ignores it; of an option
 * that is given several times, it keeps only the last value.
 */
bool ht_parse_goptions(GOptionContext *context, int *argc, char ***argv,
                       GError **error);

/**
 * ht_wrong_goption() - print what is wrong with an option
 * @context: the context of g_option_context_parse()
 * @error: the error of that function, or of a later check of an option
 *
 * For an unknown option, the message has similar names.
 *
 * Return: HT_EXIT_USAGE
 */
int ht_wrong_goption(GOptionContext *context, const GError *error);

#endif
