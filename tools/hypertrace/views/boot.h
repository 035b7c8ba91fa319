/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: collect, draw and compare where the time of boots went
 */
#ifndef HYPERTRACE_TOOL_BOOT_H
#define HYPERTRACE_TOOL_BOOT_H

#include "cli/output.h"
#include "model/duration.h"
#include "model/model.h"
#include "views/boot-functions.h"
#include "views/host-split.h"

/* Maximum number of items in each list: the guest decides how many exist. */
#define HT_BOOT_ITEMS_MAX       65536

/**
 * HtBootPhase: a part of a boot; the next phase begins where it ends
 * @name: for example "kernel" or "services"
 * @detail: the file that a process executed when the phase began or, of phase
 *          "init", soon after that, as the guest names it; or NULL
 * @begin: nanoseconds, see &HtBoot.back_ns
 * @end: nanoseconds, see &HtBoot.back_ns
 * @split: with &HtBoot.host: the time in which the processors ran a task, split
 *         by what the host did; the sum of all processors
 */
typedef struct HtBootPhase {
    const char *name;
    char *detail;
    uint64_t begin;
    uint64_t end;
    HtSplit split;
} HtBootPhase;

/**
 * HtBootItem: an initcall or a process
 * @name: the function of an initcall, or the name of the module that it belongs
 *        to; the file that a process executed last, or the task's name if that
 *        file is /proc/self/exe
 * @level: the level's name for an initcall, interned; "" if it is not known,
 *         and for a process
 * @pid: the task that ran the initcall; the process
 * @begin: nanoseconds, see &HtBoot.back_ns
 * @end: nanoseconds, see &HtBoot.back_ns; &HtBoot.end if the item had not
 *       ended then; @begin if an initcall's end may be lost
 * @took: time from @begin to @end; unknown if an initcall's end may be lost
 * @cpu_ns: CPU time of a process in nanoseconds
 * @ret: return value of an initcall, with @ended
 * @ended: the end was recorded
 * @service: the parent of a process was PID 1 when it first executed a file
 * @functions: of HtBootFunction: functions that an initcall called, from
 *             ht_boot_functions_end(); or NULL
 */
typedef struct HtBootItem {
    char *name;
    const char *level;
    int32_t pid;
    uint64_t begin;
    uint64_t end;
    HtDuration took;
    uint64_t cpu_ns;
    int ret;
    bool ended;
    bool service;
    GArray *functions;
} HtBootItem;

/**
 * HtBoot: one boot
 * @boots: number of boots in the recording
 * @boot: number of this boot, counted from 1
 * @release: release of the kernel, not escaped
 * @begin: time of the first event, in nanoseconds, see @back_ns
 * @end: time of the last event that was read, in nanoseconds
 * @events: number of events that were read
 * @gaps: number of places where events were lost
 * @steps: number of times that the guest's clock went back
 * @back_ns: sum of those steps. Times in this structure never go back: after a
 *           step, the steps so far are added to the guest's time.
 * @phases: of HtBootPhase
 * @initcalls: of HtBootItem, by their ends; those without an end are not in
 *             this order
 * @processes: of HtBootItem, by their beginnings
 * @left_out: number of initcalls and processes beyond HT_BOOT_ITEMS_MAX
 * @host: what the host did, to split times by it; NULL: times are not split
 * @split: sum of the phases' @split
 */
typedef struct HtBoot {
    unsigned boots;
    unsigned boot;
    char *release;
    uint64_t begin;
    uint64_t end;
    uint64_t events;
    uint64_t gaps;
    unsigned steps;
    uint64_t back_ns;
    GArray *phases;
    GArray *initcalls;
    GArray *processes;
    uint64_t left_out;
    HtHostSplit *host;
    HtSplit split;
} HtBoot;

/**
 * ht_boot_collect: read one boot of a recording
 * @dir: the recording
 * @boot: number of the boot, counted from 1; 0 for the last one that has events
 * @to_ns: skip events later than this guest time
 * @by_host: split times by what the host did, see HtSplit
 * @errp: set on failure; also if there is no such boot or no event, or with
 *        @by_host if ht_host_split_new() fails
 *
 * Returns: the boot, or NULL
 */
HtBoot *ht_boot_collect(const char *dir, unsigned boot, uint64_t to_ns,
                        bool by_host, GError **errp);

/**
 * ht_boot_free: free a boot
 * @b: boot or NULL
 */
void ht_boot_free(HtBoot *b);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtBoot, ht_boot_free)

/**
 * ht_boot_svg: draw a boot
 * @b: boot
 * @out: appended to: a whole SVG document
 *
 * All text is escaped. The document has no script and loads no other file.
 */
void ht_boot_svg(const HtBoot *b, GString *out);

/**
 * ht_boot_put_name: append a name of a function or file, padded or cut to the
 *                   width of a column
 * @name: name, which may have any bytes
 */
void ht_boot_put_name(HtOutput *o, const char *name);

/* Number of earlier boots that ht_boot_differs() needs to decide */
#define HT_BOOT_EARLIER_MIN     3

/**
 * HtBootSpread: the times of several boots
 * @count: number of boots
 * @min: shortest time in nanoseconds
 * @median: median in nanoseconds
 * @max: longest time in nanoseconds
 */
typedef struct HtBootSpread {
    unsigned count;
    uint64_t min;
    uint64_t median;
    uint64_t max;
} HtBootSpread;

/**
 * ht_boot_spread: get the spread of times
 * @ns: nanoseconds
 * @count: number of times, at least 1
 * @s: filled in
 */
void ht_boot_spread(const uint64_t *ns, unsigned count, HtBootSpread *s);

/**
 * ht_boot_differs: compare a time with the times of earlier boots
 * @s: spread of the earlier times
 * @ns: the time to compare, in nanoseconds
 *
 * A time differs if it is outside of the range of the earlier times by more
 * than the size of that range, and by more than 5 % of their median.
 *
 * Returns: 1 if it is longer, -1 if it is shorter; 0 if it does not differ or
 * there are fewer than HT_BOOT_EARLIER_MIN earlier times
 */
int ht_boot_differs(const HtBootSpread *s, uint64_t ns);

/**
 * ht_boot_times: get the time of a phase in each boot
 * @boots: of HtBoot
 * @phase: name of the phase; NULL: the whole boot
 *
 * Returns: nanoseconds, one number for each boot: the sum of all phases of this
 * name; 0 if the boot has no such phase
 */
uint64_t *ht_boot_times(const GPtrArray *boots, const char *phase);

/**
 * ht_boot_compare: print how the last boot differs from the earlier ones
 * @boots: of HtBoot, at least two
 * @rows: maximum number of initcalls and of processes to list
 */
void ht_boot_compare(HtOutput *o, const GPtrArray *boots, unsigned rows);

#endif /* HYPERTRACE_TOOL_BOOT_H */
