/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: what a guest did last
 */
#ifndef HYPERTRACE_TOOL_LAST_H
#define HYPERTRACE_TOOL_LAST_H

#include "cli/output.h"
#include "model/graph.h"
#include "model/running.h"

/* How many lines of the log are shown, and are at most */
#define HT_LAST_LOG             15
#define HT_LAST_LOG_MAX         1000

/**
 * HtLastSilence: a time without an event
 * @from: when the one before was, by the guest's clock in nanoseconds
 * @to: when the next one was
 * @cpu: of which processor
 * @comm: of the task that ran there meanwhile
 * @pid: of it
 * @lost: about how many events are missing, of a gap
 */
typedef struct HtLastSilence {
    uint64_t from;
    uint64_t to;
    uint32_t cpu;
    char comm[HT_COMM_MAX + 1];
    int32_t pid;
    uint64_t lost;
} HtLastSilence;

/**
 * HtLastCpu: a processor in the end
 * @number: its number
 * @last: when its last event was
 * @event: what that was
 */
typedef struct HtLastCpu {
    uint32_t number;
    uint64_t last;
    const HtEventClass *event;
} HtLastCpu;

/**
 * HtLastLine: a record of the log
 * @ns: when
 * @text: any bytes
 */
typedef struct HtLastLine {
    uint64_t ns;
    GString *text;
} HtLastLine;

/**
 * HtLastBlocked: a task in uninterruptible sleep
 * @pid: task
 * @comm: its name
 * @since: when it was switched out
 */
typedef struct HtLastBlocked {
    int32_t pid;
    char comm[HT_COMM_MAX + 1];
    uint64_t since;
} HtLastBlocked;

/**
 * HtLast: the end of a boot
 * @m: its recording
 * @boot: which, from 1
 * @boots: how many there are
 * @begin: of its last segment of the clock
 * @end: its last event
 * @events: in all of it
 * @gaps: in all of it
 * @lost: about how many events those are
 * @gap: the longest of them
 * @silence: the longest of all processors together
 * @busy: the longest of one that was not idle
 * @guest_ended: the guest ended there; else only the recording did
 * @after: nanoseconds by the host's clock from the last event to the end of
 *         the recording; 0 if not known
 * @log: of HtLastLine
 * @cpus: of HtLastCpu
 * @blocked: of HtLastBlocked, the longest first
 * @running: what processors are at
 * @graph: functions that did not end
 */
typedef struct HtLast {
    HtModel *m;
    unsigned boot;
    unsigned boots;
    uint64_t begin;
    uint64_t end;
    uint64_t events;
    uint64_t gaps;
    uint64_t lost;
    HtLastSilence gap;
    HtLastSilence silence;
    HtLastSilence busy;
    bool guest_ended;
    uint64_t after;
    GQueue log;
    GArray *cpus;
    GArray *blocked;
    HtRunning *running;
    HtGraph *graph;
} HtLast;

/**
 * ht_last_collect: read a recording up to the end of a boot
 * @m: model; not to be used meanwhile, since names are of that moment
 * @dir: its recording
 * @boot: which, from 1; 0: the last one that has events
 * @max_lines: of the log to keep, at most HT_LAST_LOG_MAX
 * @errp: why not
 *
 * Returns: for ht_last_free(), before @m is freed; NULL on failure
 */
HtLast *ht_last_collect(HtModel *m, const char *dir, unsigned boot,
                        unsigned max_lines, GError **errp);

/**
 * ht_last_name: the name of a task then
 * @l: last
 * @pid: task
 *
 * Returns: any bytes
 */
const char *ht_last_name(const HtLast *l, int32_t pid);

/**
 * ht_last_free: forget it
 * @l: last or NULL
 */
void ht_last_free(HtLast *l);

/**
 * ht_last_streams: the same of CTF traces of devices
 * @o: appended to
 * @dir: where they are, or below
 * @lines: events of each stream to show
 * @json: one object a trace instead of a page
 * @errp: why not
 */
bool ht_last_streams(HtOutput *o, const char *dir, unsigned lines, bool json,
                     GError **errp);

#endif /* HYPERTRACE_TOOL_LAST_H */
