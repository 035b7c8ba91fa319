/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: interface of the commands
 *
 * A command is a function with the arguments of main(), where argv[0] is the
 * command's name. It returns the exit status. main.c has the table of commands.
 */
#ifndef HYPERTRACE_COMMAND_H
#define HYPERTRACE_COMMAND_H

#include <glib.h>

/**
 * enum ht_exit - exit statuses, the same for all commands
 * @HT_EXIT_OK: success
 * @HT_EXIT_ERROR: failure; standard error has the reason
 * @HT_EXIT_USAGE: the command line is not valid
 * @HT_EXIT_NOTHING: no failure, but the recording is missing or not complete
 * @HT_EXIT_LIMIT: a limit from the command line is exceeded
 */
enum ht_exit {
    HT_EXIT_OK = 0,
    HT_EXIT_ERROR = 1,
    HT_EXIT_USAGE = 2,
    HT_EXIT_NOTHING = 3,
    HT_EXIT_LIMIT = 4,
};

/**
 * ht_error() - print "hypertrace COMMAND: MESSAGE" on stderr, or "hypertrace:
 * MESSAGE" in the system's log
 * @format: as for printf(), without a newline at the end
 *
 * The caller must escape text of the guest, see cli/escape.h.
 *
 * Return: HT_EXIT_ERROR, for a command to end with
 */
int ht_error(const char *format, ...) G_GNUC_PRINTF(1, 2);

/**
 * ht_messages_of() - set the command that all later messages on stderr name
 */
void ht_messages_of(const char *command);

/**
 * ht_errors_to_syslog() - write later messages to the system's log
 *
 * This concerns ht_error(), ht_notice() and ht_usage_error(), which otherwise
 * write to standard error.
 */
void ht_errors_to_syslog(void);

/**
 * ht_notice() - print a message that reports no error, as ht_error() prints it
 * @format: as for printf(), without a newline at the end
 */
void ht_notice(const char *format, ...) G_GNUC_PRINTF(1, 2);

/**
 * ht_usage_error() - print an error and refer to --help
 * @format: as for printf(), without a newline at the end
 *
 * Return: HT_EXIT_USAGE
 */
int ht_usage_error(const char *format, ...) G_GNUC_PRINTF(1, 2);

/**
 * ht_last_brief() - describe the end of a recording in one line
 * @dir: a recording
 * @out: empty; set to the first lines of "hypertrace last" and a record of the
 *       log (the panic, or else the last one), joined by "; " and safe for a
 *       terminal; stays empty if the recording cannot be read
 */
void ht_last_brief(const char *dir, GString *out);

int ht_boot(int argc, char **argv);
int ht_callgraph(int argc, char **argv);
int ht_disable(int argc, char **argv);
int ht_domain(int argc, char **argv);
int ht_enable(int argc, char **argv);
int ht_events(int argc, char **argv);
int ht_export(int argc, char **argv);
int ht_flame(int argc, char **argv);
int ht_formats(int argc, char **argv);
int ht_last(int argc, char **argv);
int ht_latency(int argc, char **argv);
int ht_interference(int argc, char **argv);
int ht_list(int argc, char **argv);
int ht_log(int argc, char **argv);
int ht_record(int argc, char **argv);
int ht_attach(int argc, char **argv);
int ht_recover(int argc, char **argv);
int ht_report(int argc, char **argv);
int ht_set(int argc, char **argv);
int ht_snapshot(int argc, char **argv);
int ht_status(int argc, char **argv);
int ht_top(int argc, char **argv);
int ht_vcpus(int argc, char **argv);
int ht_watch(int argc, char **argv);

#endif
