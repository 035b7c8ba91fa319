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
 * enum ht_exit - exit statuses of commands. "record" may also return another
 * status: that of QEMU, or 128 and the number of the signal that killed QEMU
 * @HT_EXIT_OK: success
 * @HT_EXIT_ERROR: failure; a message states the reason
 * @HT_EXIT_USAGE: the command line is not valid
 * @HT_EXIT_NOTHING: no failure, but the recording has no events or is not
 *                   complete
 * @HT_EXIT_LIMIT: a check of --max or --regression of "boot" has failed
 */
enum ht_exit {
    HT_EXIT_OK = 0,
    HT_EXIT_ERROR = 1,
    HT_EXIT_USAGE = 2,
    HT_EXIT_NOTHING = 3,
    HT_EXIT_LIMIT = 4,
};

/**
 * ht_error() - print "hypertrace COMMAND: MESSAGE" on standard error; after
 * ht_errors_to_syslog(), write "hypertrace: LINE" to the system's log for each
 * line of the message
 * @format: as for printf(), without a newline at the end
 *
 * The caller must escape text of the guest, see cli/escape.h.
 *
 * Return: HT_EXIT_ERROR, for a command to end with
 */
int ht_error(const char *format, ...) G_GNUC_PRINTF(1, 2);

/**
 * ht_messages_of() - set COMMAND of later messages on standard error; see
 * ht_error()
 * @command: name of a command; not copied, so it must stay valid
 */
void ht_messages_of(const char *command);

/**
 * ht_errors_to_syslog() - write later messages to the system's log
 *
 * This applies to the messages of ht_error(), ht_notice() and ht_usage_error().
 * Only the reference to --help of ht_usage_error() still goes to standard
 * error.
 */
void ht_errors_to_syslog(void);

/**
 * ht_notice() - print a message like ht_error(), but about something that is no
 * error
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
 * @out: an empty string. The function appends the first lines of the output of
 *       "hypertrace last", and the record of the guest's kernel log that
 *       reports a panic, or else the last record. "; " replaces the newlines
 *       between them. The text is safe for a terminal. If the recording cannot
 *       be read, nothing is appended.
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
