/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: messages on standard error, or in the system's log
 */
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>

#include "cli/command.h"
#include "cli/progress.h"

static const char *current;
static bool to_syslog;

void ht_messages_of(const char *command)
{
    current = command;
}

void ht_errors_to_syslog(void)
{
    to_syslog = true;
}

static void print_message(int priority, const char *format, va_list args)
{
    if (to_syslog) {
        g_autofree char *text = g_strdup_vprintf(format, args);
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        unsigned i;

        /* Some loggers print a newline within a message as "#012". */
        for (i = 0; lines[i]; i++) {
            syslog(priority | LOG_USER, "hypertrace: %s", lines[i]);
        }
        return;
    }
    ht_progress_clear();
    fprintf(stderr, "hypertrace%s%s: ", current ? " " : "",
            current ? current : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int ht_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(LOG_WARNING, format, args);
    va_end(args);
    return HT_EXIT_ERROR;
}

void ht_notice(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(LOG_NOTICE, format, args);
    va_end(args);
}

int ht_usage_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(LOG_WARNING, format, args);
    va_end(args);
    fprintf(stderr, "see: hypertrace%s%s --help\n", current ? " " : "",
            current ? current : "");
    return HT_EXIT_USAGE;
}
