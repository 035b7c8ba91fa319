/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: check a boot against limits and earlier boots, for CI
 */
#ifndef HYPERTRACE_TOOL_BOOT_LIMITS_H
#define HYPERTRACE_TOOL_BOOT_LIMITS_H

#include "views/boot.h"

/**
 * HtBootLimit: the longest time that a boot or one of its phases may take
 * @text: the option's argument
 * @phase: name of the phase; NULL: the whole boot
 * @ns: nanoseconds
 */
typedef struct HtBootLimit {
    char *text;
    const char *phase;
    uint64_t ns;
} HtBootLimit;

/**
 * HtBootCheck: the result of a check
 * @name: description of the check
 * @ns: time that the last boot, or the checked phase of it, took, in
 *      nanoseconds
 * @failure: the reason why it failed; NULL: it passed
 */
typedef struct HtBootCheck {
    char *name;
    uint64_t ns;
    char *failure;
} HtBootCheck;

/**
 * ht_boot_limits_parse: parse the arguments of --max
 * @options: NULL-terminated, each "TIME" or "PHASE=TIME"; NULL: none
 * @errp: set if a phase does not exist or a time cannot be parsed
 *
 * Returns: an array of HtBootLimit, or NULL
 */
GArray *ht_boot_limits_parse(char *const *options, GError **errp);

/**
 * ht_boot_check: check the last boot
 * @boots: of HtBoot, at least one; with @regression at least
 *         HT_BOOT_EARLIER_MIN + 1
 * @limits: of HtBootLimit
 * @regression: also check that the last boot and its phases did not take longer
 *              than before, see ht_boot_differs(). Of the phases, only those
 *              that all boots have are checked.
 *
 * Returns: an array of HtBootCheck
 */
GArray *ht_boot_check(const GPtrArray *boots, const GArray *limits,
                      bool regression);

/**
 * ht_boot_failures: count the checks of a boot that failed
 * @checks: array of HtBootCheck
 */
unsigned ht_boot_failures(const GArray *checks);

/**
 * ht_boot_junit: append the checks of a boot in JUnit's XML format
 * @checks: array of HtBootCheck
 * @out: appended to
 */
void ht_boot_junit(const GArray *checks, GString *out);

#endif /* HYPERTRACE_TOOL_BOOT_LIMITS_H */
