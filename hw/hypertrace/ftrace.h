/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the ftrace ring of a guest that knows nothing of hypertrace
 *
 * An object, not a device: it finds the ring that a stock Linux kernel keeps
 * in the guest's RAM (trace_instance=NAME@PLACE), follows it, and gives what
 * is written there to the same sinks as the device.
 *
 * Who runs what:
 *   thread  searches, looks, posts.  Never takes the BQL
 *   BQL     properties, a reset or stop of the VM: these look, too, for a
 *           bounded time
 *   sinks   a thread each: calls a backend.  See sink.h
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

/* As many at a time; of more, those that do not change make room. */
#define HT_FTRACE_RINGS     8
/* Looks that find all of a guest that does not run: ht_ft_follow_look() */
#define HT_FTRACE_LAST_LOOKS    2

/**
 * HtFtWatched: a ring that was found
 * @ft: the object
 * @address: in the guest's physical memory
 * @mem: the guest's memory, up to the end of the RAM that @address is in
 * @gone: the memory, or the ring, is not there any more
 * @left: there was more than the last look took
 * @feed: what comes of it; taken if it changes
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
    char *backend;              /* ids, with ':' between them */
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
    HtFlights *flights;         /* or NULL; locked as all below */
    HtFtFormats *formats;       /* or NULL */
    char *formats_text;
    QemuThread thread;
    VMChangeStateEntry *vmstate;

    unsigned waiting;           /* atomic: those that want the lock */
    QemuMutex lock;             /* all below */
    QemuCond wake;
    unsigned round;             /* of searches; read by one without the lock */
    bool quit;
    bool paused;                /* the VM is stopped, and all is taken */
    GPtrArray *rings;           /* HtFtWatched */
    unsigned nr_found;          /* rings ever */
    HtFtRuns runs;
    uint64_t resets;            /* of the VM, that a ring was taken from */
};

/* ftrace-ram.c ------------------------------------------------------------- */

/**
 * ht_guest_ram: the guest's physical memory, by address
 *
 * Only RAM is read; what is unplugged cannot be.  Nothing is allocated.
 *
 * Context: any thread that RCU knows
 */
extern const HtFtMem ht_guest_ram;

/**
 * ht_guest_ram_at: the memory around an address
 * @address: in the guest's physical memory
 * @mem: set to ht_guest_ram, but that ends where RAM without a hole does
 *
 * Returns: false if there is no RAM
 *
 * Context: any thread that RCU knows
 */
bool ht_guest_ram_at(uint64_t address, HtFtMem *mem);

/**
 * ht_guest_ram_search: look for rings in all of the guest's RAM
 * @round: read atomically at each look
 * @now: while @round is this the search goes on
 * @silent: a set of addresses as int64_t, whose rings are left out
 *
 * At multiples of 2 MiB, in pages that were written, until HT_FTRACE_RINGS were
 * found.
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
 * If there is no room for more, let those go that never changed, and add their
 * addresses to @silent.  Context: lock held
 */
void ht_ftrace_make_room(HypertraceFtrace *ft, GHashTable *silent);
/* Context: lock held */
void ht_ftrace_drop_all(HypertraceFtrace *ft);
/*
 * Drop rings whose memory was unplugged, or where there is none any more, or
 * another one.  Context: lock held
 */
void ht_ftrace_drop_gone(HypertraceFtrace *ft);
/* Context: lock held */
bool ht_ftrace_any_taken(HypertraceFtrace *ft);
/* Look once.  Returns whether there is more at once.  Context: lock held */
bool ht_ftrace_look(HtFtWatched *w);
/* CPU time of this thread in ns */
uint64_t ht_ftrace_cpu_ns(void);

/**
 * ht_ftrace_take_rest: all that the VM, which does not run, has written
 * @ft: the object
 * @only: take the only ring also if it was not seen to change: of a kernel
 *        that ended before
 *
 * Copies a bounded number of bytes; what it leaves, a later look takes, or it
 * is lost with the ring.  Does nothing in postcopy.
 *
 * Context: BQL, lock held
 */
void ht_ftrace_take_rest(HypertraceFtrace *ft, bool only);

/**
 * ht_ftrace_erase: leave no ring in the guest's memory
 * @ft: the object
 *
 * A kernel that finds the ring of the one before, in memory that a warm reset
 * left as it was, keeps of it what seems valid, processor by processor, and
 * writes behind that.  So that it begins a clean one, no ring is left.
 *
 * Context: BQL, lock held; vCPUs do not run
 */
void ht_ftrace_erase(HypertraceFtrace *ft);

/* ftrace.c ----------------------------------------------------------------- */

/* Take the lock, which the thread then gives away.  Context: not the thread */
void ht_ftrace_lock(HypertraceFtrace *ft);

/* Whether memory may be another QEMU's by now, or still.  Context: BQL */
bool ht_ftrace_is_elsewhere(void);

/* ftrace-stream.c ---------------------------------------------------------- */

/**
 * ht_ftrace_runs_init: begin to make events for the sinks, if there are any
 * @ft: its trace was claimed
 * @errp: set if the trace has too many classes
 */
bool ht_ftrace_runs_init(HypertraceFtrace *ft, Error **errp);

/* Of a follower whose opaque is a HtFtWatched.  Context: lock held */
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
