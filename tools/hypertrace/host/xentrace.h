/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: sums of a trace that xentrace wrote on a Xen host
 *
 * The file has no header.  A record "CPU change" names a physical CPU and the
 * length of the chunk of records that follows. Times are TSC cycles.
 */
#ifndef HYPERTRACE_TOOL_XENTRACE_H
#define HYPERTRACE_TOOL_XENTRACE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HT_XEN_RUNNING,
    HT_XEN_RUNNABLE,
    HT_XEN_BLOCKED,
    HT_XEN_OFFLINE,
    HT_XEN_STATES,
};

/* The domain that stands for idle CPUs */
#define HT_XEN_IDLE     32767

/*
 * Buckets for durations of exits: 32 for each power of two. The upper edge of a
 * bucket exceeds a duration in it by at most 1/32.
 */
#define HT_XEN_BUCKETS  1920

/**
 * HtXenExit: exits of one vCPU for one reason
 * @reason: number of the reason, as the processor defines it (VMX or SVM)
 * @count: exits with a known end
 * @cycles: their total time, without the time in which the vCPU did not run
 * @max: longest time of one exit, in cycles
 * @buckets: distribution of the times
 */
typedef struct HtXenExit {
    uint32_t reason;
    uint64_t count;
    uint64_t cycles;
    uint64_t max;
    uint32_t buckets[HT_XEN_BUCKETS];
} HtXenExit;

/**
 * HtXenVcpu: sums of one vCPU
 * @domain: number of its domain
 * @vcpu: its number in the domain
 * @cycles: time in each runstate. If the end of an interval is not in the
 *          trace, only a run counts, up to the last record of its CPU
 * @intervals: number of intervals in each runstate that @cycles has
 * @preempted: runnable time after the vCPU ran
 * @woken: runnable time after the vCPU was blocked
 * @unknown: time after lost records, or whose two ends contradict each other
 * @exits: HtXenExit by reason
 * @open_exits: exits whose end is not in the trace
 * @hypercalls: uint64_t counts by number of the hypercall
 */
typedef struct HtXenVcpu {
    uint16_t domain;
    uint16_t vcpu;
    uint64_t cycles[HT_XEN_STATES];
    uint64_t intervals[HT_XEN_STATES];
    uint64_t preempted;
    uint64_t woken;
    uint64_t unknown;
    GHashTable *exits;
    uint64_t open_exits;
    GHashTable *hypercalls;

    /*< private >*/
    bool seen;                  /* @state and @since are valid */
    unsigned state;
    unsigned before;            /* state before @state */
    uint64_t since;
    unsigned cpu;               /* physical CPU it ran on last */
    unsigned losses;            /* gaps of all CPUs at its last change */
    HtXenExit *exit;            /* open exit, or NULL */
    uint64_t exit_since;
    uint64_t exit_cycles;       /* collected before it was descheduled */
} HtXenVcpu;

/**
 * HtXentrace: sums of a file
 * @vcpus: of HtXenVcpu, in order of domain and vCPU
 * @cpus: number of physical CPUs
 * @records: records read
 * @lost: records that Xen lost, as Xen counted
 * @gaps: places where records were lost
 * @damaged: bytes that were skipped because they hold no valid record
 * @backward: records whose time is before the previous record of their CPU; the
 *            time was raised
 * @others: records left out because a table was full
 * @begin: first time, in cycles
 * @end: last time
 */
typedef struct HtXentrace {
    GPtrArray *vcpus;
    unsigned cpus;
    uint64_t records;
    uint64_t lost;
    uint64_t gaps;
    uint64_t damaged;
    uint64_t backward;
    uint64_t others;
    uint64_t begin;
    uint64_t end;

    /*< private >*/
    GHashTable *by_id;
    GArray *losses;             /* of uint64_t: first lost time of a gap */
    unsigned rows;
} HtXentrace;

/**
 * ht_xentrace_read: add up the records of a trace
 * @data: contents of the file; any bytes
 * @size: number of bytes
 * @errp: set if the file does not begin as one of xentrace
 *
 * The memory used is proportional to the size of the file, plus at most 80 MB.
 *
 * Returns: the sums, for ht_xentrace_free(); NULL on error
 */
HtXentrace *ht_xentrace_read(const uint8_t *data, size_t size, GError **errp);

/**
 * ht_xentrace_percentile: compute a percentile of the durations of exits
 * @e: exits; at least one
 * @percent: 1 to 100
 *
 * Returns: cycles, at most 1/32 more than the exact figure
 */
uint64_t ht_xentrace_percentile(const HtXenExit *e, unsigned percent);

void ht_xentrace_free(HtXentrace *x);

#endif /* HYPERTRACE_TOOL_XENTRACE_H */
