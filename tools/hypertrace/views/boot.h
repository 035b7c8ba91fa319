/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace boot: where the time of one boot went
 */
#ifndef HYPERTRACE_TOOL_BOOT_H
#define HYPERTRACE_TOOL_BOOT_H

#include "cli/output.h"
#include "model/duration.h"
#include "model/model.h"
#include "views/boot-functions.h"

/* More is counted, but not kept: a guest decides how many there are. */
#define HT_BOOT_ITEMS_MAX       65536

/**
 * HtBootPhase: a part of a boot; the next one begins where it ends
 * @name: what people call it
 * @detail: what began it, from the guest, or NULL
 * @begin: nanoseconds of guest time
 * @end: likewise
 */
typedef struct HtBootPhase {
    const char *name;
    char *detail;
    uint64_t begin;
    uint64_t end;
} HtBootPhase;

/**
 * HtBootItem: an initcall or a process
 * @name: its function or the file that was executed last
 * @level: of an initcall: the name of its level, interned
 * @pid: who ran it, or the process
 * @begin: nanoseconds, see &HtBoot.back_ns
 * @end: likewise; the end of what was recorded if it never ended, and @begin
 *       if events were lost that may have told its end
 * @took: from @begin to @end; unknown if the end was lost
 * @cpu_ns: of a process: time on a CPU
 * @ret: what an initcall returned
 * @ended: its end was recorded
 * @service: a process made by PID 1
 * @functions: of HtBootFunction: functions that an initcall called; or NULL
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
 * @boots: boots in the recording
 * @boot: which of them this is, counted from 1
 * @release: of the kernel, escaped as little as it came
 * @begin: of the first event
 * @end: of the last event that was looked at
 * @events: how many those were
 * @gaps: places where events were lost
 * @steps: how often the guest's clock went back
 * @back_ns: by how much in all.  All times here go on where the clock went
 *           back: they are its own before the first step, and later than its
 *           own by at most @back_ns after that.
 * @phases: of HtBootPhase
 * @initcalls: of HtBootItem, by their ends
 * @processes: of HtBootItem, by their beginnings
 * @left_out: items beyond HT_BOOT_ITEMS_MAX
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
} HtBoot;

/**
 * ht_boot_collect: read one boot of a recording
 * @dir: the recording
 * @boot: which, counted from 1; 0 for the last one that has events
 * @to_ns: look at no later event
 * @errp: why not
 *
 * Returns: the boot, or NULL
 */
HtBoot *ht_boot_collect(const char *dir, unsigned boot, uint64_t to_ns,
                        GError **errp);

/**
 * ht_boot_free: give up a boot
 * @b: boot or NULL
 */
void ht_boot_free(HtBoot *b);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtBoot, ht_boot_free)

/**
 * ht_boot_svg: draw a boot
 * @b: boot
 * @out: appended to: a whole SVG document
 *
 * Every text is drawn as text and escaped; the picture has no script and
 * loads nothing.
 */
void ht_boot_svg(const HtBoot *b, GString *out);

#endif /* HYPERTRACE_TOOL_BOOT_H */
