/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: count the functions that initcalls called
 */
#ifndef HYPERTRACE_TOOL_BOOT_FUNCTIONS_H
#define HYPERTRACE_TOOL_BOOT_FUNCTIONS_H

#include "model/graph.h"

/* Maximum number of functions that are reported for an initcall */
#define HT_BOOT_FUNCTIONS_MAX   8

/**
 * HtBootFunction: a function that an initcall called
 * @name: name or address
 * @calls: number of calls that ended within the initcall; if ends of calls are
 *         not recorded, number of calls that began
 * @own_ns: time in the function, without the time in functions that it called
 *          and that were recorded
 * @timed: ends of calls were recorded
 */
typedef struct HtBootFunction {
    char *name;
    uint64_t calls;
    uint64_t own_ns;
    bool timed;
} HtBootFunction;

typedef struct HtBootFunctions HtBootFunctions;

/**
 * ht_boot_functions_new: start to count the functions of an initcall
 */
HtBootFunctions *ht_boot_functions_new(void);

/**
 * ht_boot_functions_step: count a call
 * @f: functions of the initcall that the task of @ev is in
 * @ev: the event
 * @s: effect of @ev on the calls of its task
 */
void ht_boot_functions_step(HtBootFunctions *f, const HtModelEvent *ev,
                            const HtGraphStep *s);

/**
 * ht_boot_functions_end: get the functions with the most time
 * @f: functions; ownership passes to this function
 * @m: the model, for names
 * @boot: boot, from 1
 *
 * Returns: at most HT_BOOT_FUNCTIONS_MAX of HtBootFunction, for
 * g_array_unref(); NULL if no call was counted. They are sorted by own time,
 * the longest first; with equal times or without times, by number of calls, the
 * highest first.
 */
GArray *ht_boot_functions_end(HtBootFunctions *f, HtModel *m, unsigned boot);

/**
 * ht_boot_functions_free: free the functions
 * @f: functions or NULL
 */
void ht_boot_functions_free(HtBootFunctions *f);

#endif /* HYPERTRACE_TOOL_BOOT_FUNCTIONS_H */
