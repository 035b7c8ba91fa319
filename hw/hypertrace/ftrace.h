/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: record the ftrace ring of a guest without hypertrace's driver
 *
 * This is an object, not a device.  It finds the ring that a stock Linux kernel
 * keeps in the guest's RAM (trace_instance=NAME@PLACE), follows it, and posts
 * its events to the same sinks as the device.
 *
 * Threads:
 *   thread  searches, polls and posts; never takes the BQL
 *   BQL     properties, a reset or a stop of the VM; these also poll, for a
 *           bounded time
 *   sinks   one thread for each backend, which calls it.  See sink.h
 * Lock order: BQL, HypertraceFtrace.lock, then the sinks' locks.
 */
#ifndef HW_HYPERTRACE_FTRACE_H
#define HW_HYPERTRACE_FTRACE_H

#include "qemu/notify.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "system/reset.h"
#include "hypertrace/ftrace-runs.h"
#include "ftrace-flight.h"
#include "registry.h"
#include "sink.h"

#define TYPE_HYPERTRACE_FTRACE "hypertrace-ftrace"
OBJECT_DECLARE_SIMPLE_TYPE(HypertraceFtrace, HYPERTRACE_FTRACE)

/* Maximum number of rings followed; idle rings are dropped first. */
#define HT_FTRACE_RINGS     8
/* Number of polls that read all of a stopped guest: ht_ft_follow_look() */
#define HT_FTRACE_LAST_LOOKS    2

/**
 * HtFtWatched: a ring that was found
 * @ft: the object
 * @address: address in the guest's physical memory
 * @mem: the guest's memory, up to the end of the RAM that @address is in
 * @gone: the memory was unplugged, or the ring is no longer there
 * @left: the last poll left committed records
 * @feed: converts the ring's records; taken if the ring changes
 */
typedef struct HtFtWatched {
    HypertraceFtrace *ft;
    uint64_t address;
    HtFtMem mem;
    HtFtFollow *follow;
    bool gone;
    bool left;
    HtFtFeed feed;
} HtFtWatched;

struct HypertraceFtrace {
    Object parent_obj;
    ResettableState reset_state;

    /* properties */
    char *backend;              /* ids, separated by ':' */
    char *formats_file;
    uint32_t poll_ms;
    bool poll_set;
    uint64_t backlog;
    HtFlightOptions flight_options;

    bool complete;
    HtTrace *trace;
    HtDeviceInfo info;
    HtSinks *sinks;             /* NULL: nothing is delivered */
    HtDispatch *dispatch;       /* of @sinks */
    HtFlights *flights;         /* or NULL; @lock */
    HtFtFormats *formats;       /* or NULL */
    char *formats_text;
    QemuThread thread;
    VMChangeStateEntry *vmstate;

    unsigned waiting;           /* atomic: number of threads that want @lock */
    QemuMutex lock;             /* protects all members below */
    QemuCond wake;
    unsigned round;             /* of searches; a search reads it unlocked */
    bool quit;
    bool paused;                /* the VM is stopped, and all is consumed */
    GPtrArray *rings;           /* HtFtWatched */
    unsigned nr_found;          /* number of rings ever found */
    HtFtRuns runs;
    uint64_t resets;            /* resets of a VM with a taken ring */
};

/* ftrace-ram.c ------------------------------------------------------------- */

/**
 * ht_guest_ram: the guest's physical memory, by address
 *
 * Only RAM can be read; unplugged memory cannot.  Reading allocates nothing.
 *
 * Context: any thread that RCU knows
 */
extern const HtFtMem ht_guest_ram;

/**
 * ht_guest_ram_at: get the memory around an address
 * @address: address in the guest's physical memory
 * @mem: set to ht_guest_ram, limited to the contiguous RAM
 *
 * Returns: false if there is no RAM
 *
 * Context: any thread that RCU knows
 */
bool ht_guest_ram_at(uint64_t address, HtFtMem *mem);

/**
 * ht_guest_ram_search: search all of the guest's RAM for rings
 * @round: read atomically before each candidate
 * @now: the search ends when @round differs from this
 * @silent: set of addresses as int64_t; rings there are left out
 *
 * Tests multiples of 2 MiB, in pages that were written, until HT_FTRACE_RINGS
 * rings were found.
 *
 * Returns: an array of HtFtRing, which the caller frees one by one
 *
 * Context: any thread that RCU knows, but without the BQL
 */
GPtrArray *ht_guest_ram_search(const unsigned *round, unsigned now,
                               GHashTable *silent);

/* ftrace-rings.c ----------------------------------------------------------- */

/* Follow rings that were found; frees @found.  Context: lock held */
void ht_ftrace_add_rings(HypertraceFtrace *ft, GPtrArray *found);
/*
 * If there is no room for more rings, drop rings that never changed, and add
 * their addresses to @silent.  Context: lock held
 */
void ht_ftrace_make_room(HypertraceFtrace *ft, GHashTable *silent);
/* Context: lock held */
void ht_ftrace_drop_all(HypertraceFtrace *ft);
/*
 * Drop rings whose memory was unplugged, or that were replaced.  Context: lock
 * held
 */
void ht_ftrace_drop_gone(HypertraceFtrace *ft);
/* Context: lock held */
bool ht_ftrace_any_taken(HypertraceFtrace *ft);
/* Poll once.  Returns true if there is more.  Context: lock held */
bool ht_ftrace_look(HtFtWatched *w);
/* CPU time of this thread in ns */
uint64_t ht_ftrace_cpu_ns(void);

/**
 * ht_ftrace_take_rest: consume everything that a stopped VM has written
 * @ft: the object
 * @only: take a single ring even if it was never seen to change: it may be of a
 *        kernel that ended before
 *
 * Copies a bounded number of bytes.  The rest is left to a later poll, or is
 * lost with the ring.  Does nothing in postcopy.
 *
 * Context: BQL, lock held
 */
void ht_ftrace_take_rest(HypertraceFtrace *ft, bool only);

/**
 * ht_ftrace_erase: erase the rings in the guest's memory
 * @ft: the object
 *
 * After a warm reset that kept the memory, a kernel keeps those parts of the
 * previous kernel's ring that seem valid, processor by processor, and writes
 * after them.  Without a ring in memory it starts a clean one.
 *
 * Context: BQL, lock held; vCPUs do not run
 */
void ht_ftrace_erase(HypertraceFtrace *ft);

/* ftrace.c ----------------------------------------------------------------- */

/* Take the lock; the thread gives way.  Context: not the thread */
void ht_ftrace_lock(HypertraceFtrace *ft);

/* Test whether another QEMU may be using the memory.  Context: BQL */
bool ht_ftrace_is_elsewhere(void);

/* ftrace-stream.c ---------------------------------------------------------- */

/**
 * ht_ftrace_runs_init: prepare to deliver events, if there are sinks
 * @ft: the object, whose trace was claimed
 * @errp: set if the trace has too many classes
 */
bool ht_ftrace_runs_init(HypertraceFtrace *ft, Error **errp);

/* For a follower whose opaque is an HtFtWatched.  Context: lock held */
extern const HtFtFollowOps ht_ftrace_follow_ops;

/* ftrace-stats.c ----------------------------------------------------------- */

/**
 * ht_ftrace_stats: fill in the statistics of an object
 * @ft: the object, complete
 * @stats: zeroed; the lists in it are the caller's to free
 *
 * Context: BQL
 */
void ht_ftrace_stats(HypertraceFtrace *ft, HypertraceFtraceStats *stats);

#endif /* HW_HYPERTRACE_FTRACE_H */
