/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Append the messages of syslog() to the file that the environment variable
 * HT_SYSLOG names, in place of the system's log.  This is a module for
 * LD_PRELOAD, and a part of the program tool-text-test.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void syslog(int priority, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The name that a call of syslog() has with _FORTIFY_SOURCE */
void __syslog_chk(int priority, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void __attribute__((format(printf, 1, 0)))
append(const char *format, va_list args)
{
    FILE *file = fopen(getenv("HT_SYSLOG"), "ae");

    if (file) {
        vfprintf(file, format, args);
        fputc('\n', file);
        fclose(file);
    }
}

void syslog(int priority, const char *format, ...)
{
    va_list args;

    (void)priority;
    va_start(args, format);
    append(format, args);
    va_end(args);
}

void __syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list args;

    (void)priority;
    (void)flag;
    va_start(args, format);
    append(format, args);
    va_end(args);
}
