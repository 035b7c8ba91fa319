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

#include "qemu/bitmap.h"
#include "qemu/notify.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "system/reset.h"
#include "hypertrace/ftrace-class.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/ftrace-time.h"
#include "ftrace-flight.h"
#include "registry.h"
#include "sink.h"

#define TYPE_HYPERTRACE_FTRACE "hypertrace-ftrace"
OBJECT_DECLARE_SIMPLE_TYPE(HypertraceFtrace, HYPERTRACE_FTRACE)

/* Processors of all rings that are followed at a time */
#define HT_FTRACE_STREAMS   HT_FT_CPUS_MAX
/* As many at a time; of more, those that do not change make room. */
#define HT_FTRACE_RINGS     8
/* Looks that find all of a guest that does not run: ht_ft_follow_look() */
#define HT_FTRACE_LAST_LOOKS    2

/**
 * HtFtStream: a processor's events on their way to the sinks
 * @info: of the stream, while @open
 * @epoch: of the ring, which these events are of
 * @cut: the next event begins anew; see HT_RUN_CUT
 * @fill: what events are copied to
 * @run: events that were not posted yet
 * @begin_ns, @counter: of the first one, host's and guest's time
 * @end_ns: of the last event of the stream
 */
typedef struct HtFtStream {
    HtStreamInfo info;
    bool open;
    bool cut;
    uint32_t epoch;
    HtBuffer *fill;
    GByteArray *run;
    uint32_t events;
    uint64_t begin_ns;
    uint64_t counter;
    uint64_t end_ns;
    uint64_t discarded;
} HtFtStream;

/**
 * HtFtWatched: a ring that was found
 * @ft: the object
 * @number: of those found by the object, from 0
 * @address: in the guest's physical memory
 * @mem: the guest's memory, up to the end of the RAM that @address is in
 * @taken: it changes, so it is a kernel's and no copy; events are delivered
 * @gone: the memory, or the ring, is not there any more
 * @left: there was more than the last look took
 * @time: of the newest epoch and segment, and of the one before
 * @worst_ns: how wrong any date was at most, where that was known
 * @streams: HtFtStream by processor, NULL: none yet
 */
typedef struct HtFtWatched {
    HypertraceFtrace *ft;
    unsigned number;
    uint64_t address;
    HtFtMem mem;
    HtFtFollow *follow;
    bool taken;
    bool gone;
    bool left;
    uint32_t epoch;
    uint32_t segment;
    HtFtTime time[2];
    uint64_t worst_ns;
    HtFtStream *streams[HT_FT_CPUS_MAX];
} HtFtWatched;

/**
 * HtFtCounts: what an object did since it was made
 * @events: posted to the sinks
 * @raw: of these, without a format
 * @gaps: times that the guest overwrote what was not read yet
 * @lost: events in them, estimated
 * @boots: kernels that were told apart, of all rings
 * @resets: of the VM, that a ring was taken from
 * @steps: of guests' clocks; see HtFtTime
 */
typedef struct HtFtCounts {
    uint64_t events;
    uint64_t raw;
    uint64_t gaps;
    uint64_t lost;
    uint64_t boots;
    uint64_t resets;
    uint64_t steps;
} HtFtCounts;

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
    unsigned long *used;        /* bitmap of stream indexes */
    int64_t open_ns;            /* streams opened so far are paid for by then */
    uint16_t class_of[1 << 16]; /* id by event type; 0: not seen yet */
    uint16_t raw_class;
    HtFtCounts counts;
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
 * ht_ftrace_add_raw_class: have the class of events without a format
 * @ft: its trace was claimed
 * @errp: set if the trace has too many classes
 */
bool ht_ftrace_add_raw_class(HypertraceFtrace *ft, Error **errp);

/* Of a follower whose opaque is a HtFtWatched.  Context: lock held */
extern const HtFtFollowOps ht_ftrace_follow_ops;

/* Post what is left of a look.  Context: lock held */
void ht_ftrace_flush(HtFtWatched *w);
/* Something is missing behind what was posted.  Context: lock held */
void ht_ftrace_lose(HtFtWatched *w);
/* Close its streams.  Context: lock held */
void ht_ftrace_close(HtFtWatched *w);

/* ftrace-stats.c ----------------------------------------------------------- */

/* Getter of the "stats" property.  Context: BQL */
void ht_ftrace_stats_get(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp);

#endif /* HW_HYPERTRACE_FTRACE_H */
