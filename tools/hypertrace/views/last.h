/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: show the end of a guest's boot, or of a device's trace
 */
#ifndef HYPERTRACE_TOOL_LAST_H
#define HYPERTRACE_TOOL_LAST_H

#include "cli/output.h"
#include "hypertrace/recording-log.h"
#include "model/graph.h"
#include "model/running.h"
#include "views/host-split.h"

#define HT_LAST_LOG             15
#define HT_LAST_LOG_MAX         1000

/**
 * HtLastSilence: a time without an event, or a gap
 * @from: guest time in nanoseconds of the previous event, or of the gap's begin
 * @to: guest time of the next event in nanoseconds
 * @cpu: processor of the next event
 * @comm: for HtLast.busy: name of the task that ran on @cpu in that time
 * @pid: for HtLast.busy: that task; else -1
 * @lost: for a gap: estimated number of lost events; else 0
 * @segment: segment of the guest's clock
 */
typedef struct HtLastSilence {
    uint64_t from;
    uint64_t to;
    uint32_t cpu;
    char comm[HT_COMM_MAX + 1];
    int32_t pid;
    uint64_t lost;
    uint32_t segment;
} HtLastSilence;

/**
 * HtLastCpu: the state of a processor at the end
 * @number: its number
 * @last: guest time of its last event in nanoseconds
 * @event: class of its last event
 * @silent: with --host, the parts of the time from its last event to the end of
 *          the recording, or for an earlier boot, to the boot's last event
 * @ran: with --host, the parts of the time from HtRunCpu.since to @last, in
 *       which the processor ran its last task
 */
typedef struct HtLastCpu {
    uint32_t number;
    uint64_t last;
    const HtEventClass *event;
    HtSplit silent;
    HtSplit ran;
} HtLastCpu;

/**
 * HtLastLine: a record of the log
 * @ns: its guest time in nanoseconds
 * @text: its text; may have any bytes
 */
typedef struct HtLastLine {
    uint64_t ns;
    GString *text;
} HtLastLine;

/* Kinds of records in the log that tell why the kernel failed */
enum {
    /* the newest record that reports an error, such as "BUG: ..." */
    HT_LAST_FAULT,
    /* the record that names the failed instruction */
    HT_LAST_PLACE,
    /* the record "Kernel panic - not syncing..." */
    HT_LAST_PANIC,
    HT_LAST_REASONS,
};

/**
 * HtLastBlocked: a task in uninterruptible sleep
 * @pid: the task
 * @comm: its name
 * @since: guest time in nanoseconds at which it was switched out
 */
typedef struct HtLastBlocked {
    int32_t pid;
    char comm[HT_COMM_MAX + 1];
    uint64_t since;
} HtLastBlocked;

/**
 * HtLast: the end of a boot
 * @m: the recording
 * @boot: number of the boot, counted from 1
 * @boots: number of boots in the recording
 * @segment: the last segment of the boot's clock
 * @begin: guest time of the first event in the last segment of the boot's clock
 * @end: guest time of the last event; without events, of the log's last record
 * @events: number of events in the boot
 * @gaps: number of gaps in the boot
 * @lost: estimated number of events lost in these gaps
 * @gap: the longest gap
 * @silence: the longest time in which no processor had an event, gaps left out
 * @busy: the longest time without an event of a processor that was not idle
 * @host: the host's part of the recording, by which times are split; or NULL
 * @busy_split: with @host, the parts of @busy
 * @guest_ended: the boot ended; false: perhaps only the recording ended
 * @after: nanoseconds by the host's clock from the poll that found the last
 *         event to the end of the recording; 0 if not known, or for an earlier
 *         boot
 * @log: of HtLastLine
 * @reasons: records of HT_LAST_*, by kind, also if they are too old for @log;
 *           or NULL
 * @cpus: of HtLastCpu: processors with an event in @segment
 * @blocked: of HtLastBlocked, the longest first
 * @running: the task and interrupts of each processor
 * @graph: functions that had not returned
 */
typedef struct HtLast {
    HtModel *m;
    unsigned boot;
    unsigned boots;
    uint32_t segment;
    uint64_t begin;
    uint64_t end;
    uint64_t events;
    uint64_t gaps;
    uint64_t lost;
    HtLastSilence gap;
    HtLastSilence silence;
    HtLastSilence busy;
    HtHostSplit *host;
    HtSplit busy_split;
    bool guest_ended;
    uint64_t after;
    GQueue log;
    HtLastLine *reasons[HT_LAST_REASONS];
    GArray *cpus;
    GArray *blocked;
    HtRunning *running;
    HtGraph *graph;
} HtLast;

/* ht_last_line_new: make an HtLastLine of a record of the log */
HtLastLine *ht_last_line_new(const HtLogRecord *r);

void ht_last_line_free(gpointer line);

/**
 * ht_last_collect: read a recording up to the end of a boot
 * @m: model; do not read further events until ht_last_free(), since the names
 *     of tasks are those of the last event read
 * @dir: the recording of @m
 * @boot: number of the boot, counted from 1; 0: the last one that has events
 *        or, if the recording has none, the last one in the log
 * @max_lines: number of records of the log to keep, at most HT_LAST_LOG_MAX
 * @errp: set on failure
 *
 * Returns: the end of the boot, to be freed before @m; NULL on failure
 */
HtLast *ht_last_collect(HtModel *m, const char *dir, unsigned boot,
                        unsigned max_lines, GError **errp);

/**
 * ht_last_host: split the times at the end by what the host did
 * @host: the host's part, which must outlive @l
 */
void ht_last_host(HtLast *l, HtHostSplit *host);

/**
 * ht_last_host_text: append a table of the times that ht_last_host() has split
 */
void ht_last_host_text(const HtLast *l, HtOutput *o);

/**
 * ht_last_name: get the name of a task at the end
 * @pid: the task
 *
 * Returns: the name, which may have any bytes; "<...>" if it is not known,
 * "<idle>" for PID 0
 */
const char *ht_last_name(const HtLast *l, int32_t pid);

/**
 * ht_last_reason: keep a record of the log if it tells why the kernel failed
 * @r: a record, later than those before; only @ns, @facility and text are used
 */
void ht_last_reason(HtLast *l, const HtLogRecord *r);

/**
 * ht_last_forget_reasons: drop the records that ht_last_reason() has kept
 * @l: the end of a boot
 */
void ht_last_forget_reasons(HtLast *l);

/**
 * ht_last_free: free an HtLast
 * @l: the end of a boot, or NULL
 */
void ht_last_free(HtLast *l);

/**
 * ht_last_streams: show the end of each stream of a device's CTF traces
 * @o: appended to
 * @dir: folder with the traces, at any depth
 * @lines: number of events to show of each stream
 * @json: print a JSON object for each trace, instead of text
 * @errp: set on failure
 *
 * Returns: false on failure
 */
bool ht_last_streams(HtOutput *o, const char *dir, unsigned lines, bool json,
                     GError **errp);

#endif /* HYPERTRACE_TOOL_LAST_H */
