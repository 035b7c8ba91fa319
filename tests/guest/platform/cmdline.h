/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: parse a command line "FUNCTION [NAME=VALUE]...", from
 * the loader or from the serial port
 */
#ifndef PAYLOAD_CMDLINE_H
#define PAYLOAD_CMDLINE_H

#include <stddef.h>
#include <stdint.h>

/**
 * cmdline_init() - copy and split a command line; a later call replaces the
 *                  copy
 * @text: the command line, which may have words before the function's name,
 *        such as the kernel's path; NULL: none
 * @functions: names of the known functions, then NULL
 *
 * Return: index of the function that @text names, or -1 if it names none. If
 * @text is too long or has too many options, the payload ends.
 */
int cmdline_init(const char *text, const char *const *functions);

/*
 * Get the value of option @name; without this option, get @otherwise, also if
 * @otherwise is not within @min and @max.  A bad value ends the payload with a
 * message.
 */
const char *cmdline_str(const char *name, const char *otherwise);
uint64_t cmdline_u64(const char *name, uint64_t otherwise,
                     uint64_t min, uint64_t max);

/*
 * Call this after the last option is read: if the command line has an option
 * that was not read, the payload ends with a message.
 */
void cmdline_done(void);

#endif /* PAYLOAD_CMDLINE_H */
