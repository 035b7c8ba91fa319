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
 * ht_wrong_option() - print what is wrong with an option of getopt_long()
 * @c: '?' or ':', which getopt_long() returned; opterr must be 0, and the
 *     string of short options must begin with ':'
 * @argv: argument of getopt_long()
 * @longs: argument of getopt_long()
 *
 * For an unknown long option, the message suggests similar names.
 *
 * Return: HT_EXIT_USAGE
 */
int ht_wrong_option(int c, char **argv, const struct option *longs);

/**
 * ht_parse_goptions() - check arguments and call g_option_context_parse()
 * @context: the context
 * @argc: number of arguments; updated
 * @argv: the arguments; updated
 * @error: set on failure
 *
 * Without the check, GLib would ignore a value of an option that takes none,
 * and keep only the last value of an option that is given several times. This
 * function refuses a value as in "--json=no", joins the values of a list, and
 * refuses a second condition or regular expression. Unlike GLib, it accepts a
 * value in the same argument as a short option, as in "-kcpu", unless another
 * short option precedes it in this argument. In "-kx cpu", "x" is the value of
 * -k, also if there is an option -x.
 */
bool ht_parse_goptions(GOptionContext *context, int *argc, char ***argv,
                       GError **error);

/**
 * ht_wrong_goption() - print what is wrong with an option of GLib's parser
 * @context: the context that ht_parse_goptions() got
 * @error: the error of ht_parse_goptions(), or of a later check of an option
 *
 * For an unknown option, the message suggests similar names.
 *
 * Return: HT_EXIT_USAGE
 */
int ht_wrong_goption(GOptionContext *context, const GError *error);

#endif
