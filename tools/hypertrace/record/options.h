/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse values of options that record and attach share
 */
#ifndef HYPERTRACE_RECORD_OPTIONS_H
#define HYPERTRACE_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Default of --max-size, in bytes */
#define HT_RECORD_MAX_SIZE      (UINT64_C(16) << 30)

/**
 * ht_record_duration() - parse a duration
 * @option: name of the option, for the message
 * @text: its argument
 * @ns: set to nanoseconds, more than 0
 * @status: set to the exit status on failure
 *
 * Return: false after a usage error
 */
bool ht_record_duration(const char *option, const char *text, uint64_t *ns,
                        int *status);

/**
 * ht_record_memory() - parse the size of the memory of a guest's programs
 * @option: name of the option, for the message
 * @text: its argument; NULL: the default
 * @bytes: set to a power of two, 8 MiB to 64 GiB; the default is 256 MiB
 * @status: set to the exit status on failure
 *
 * Return: false after a usage error
 */
bool ht_record_memory(const char *option, const char *text, uint64_t *bytes,
                      int *status);

/**
 * ht_record_lttng_name() - parse the argument of --lttng
 * @text: the argument, or NULL
 * @name: set to a copy of @text, to be freed; unchanged if @text is NULL or
 *        wrong. A previous value is freed
 * @status: set to the exit status on failure
 *
 * Return: false after a usage error
 */
bool ht_record_lttng_name(const char *text, char **name, int *status);

/**
 * ht_record_lttng_default() - make a valid name for the guest in LTTng
 * @name: any name; it is cut to 64 bytes, and "_" replaces invalid characters
 *
 * Return: the name, to be freed
 */
char *ht_record_lttng_default(const char *name);

#endif
