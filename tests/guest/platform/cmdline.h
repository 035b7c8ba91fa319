/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: parse the guest's command line,
 * "FUNCTION [NAME=VALUE]..."
 */
#ifndef PAYLOAD_CMDLINE_H
#define PAYLOAD_CMDLINE_H

#include <stddef.h>
#include <stdint.h>

/**
 * cmdline_init() - copy the command line; a later call replaces the copy
 * @text: the loader's text, kernel path first; NULL: none
 * @functions: known functions, then NULL
 *
 * Return: index of the function named, or -1
 */
int cmdline_init(const char *text, const char *const *functions);

/*
 * Get the value of option @name, or @otherwise; a bad value ends the payload
 * with a message.
 */
const char *cmdline_str(const char *name, const char *otherwise);
uint64_t cmdline_u64(const char *name, uint64_t otherwise,
                     uint64_t min, uint64_t max);

/*
 * Call this after the last option is read: an option that was not read is an
 * error.
 */
void cmdline_done(void);

#endif /* PAYLOAD_CMDLINE_H */
