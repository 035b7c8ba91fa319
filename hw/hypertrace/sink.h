/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a device's sinks, each one of its backends with queue and thread
 *
 * Posting never waits for a backend: what a sink has no budget for it discards
 * for itself.  Nothing but its own thread waits for a backend, unless that
 * cannot block: then whoever posts may deliver, if all before was delivered.
 */
#ifndef HW_HYPERTRACE_SINK_H
#define HW_HYPERTRACE_SINK_H

#include "hypertrace/backend.h"
#include "hypertrace/queue.h"

/**
 * HtSinks: the sinks of a device
 *
 * Lives on while a backend that hangs holds one of them.
 */
typedef struct HtSinks HtSinks;

/* Bytes of a stream's buffer, unless packets are larger */
#define HT_SINK_BUFFER (64 * KiB)

/**
 * HtSinkStats: what a sink did
 * @id: of its backend
 * @events: given to the backend, or queued for it
 * @discarded: the other events, since the queue was full or the backend did not
 *             know their class; that is found out when they leave the queue
 * @queued: bytes of the budget in use
 * @idle: nothing is queued, nor being delivered
 */
typedef struct HtSinkStats {
    const char *id;
    uint64_t events;
    uint64_t discarded;
    uint64_t queued;
    bool idle;
} HtSinkStats;

/**
 * ht_backends_find: the backends that are to be attached to
 * @owner: gets a child if @ids is NULL, see ht_backends_drop()
 * @name: of the trace
 * @ids: of backends, with ':' between them; NULL: LTTng, or nothing but
 *       counts if this QEMU cannot
 * @errp: set if there is no such backend, or too many
 *
 * Returns: HypertraceBackend *, 1 to HT_QUEUES_MAX of them; or NULL
 *
 * Context: BQL
 */
GPtrArray *ht_backends_find(Object *owner, const char *name, const char *ids,
                            Error **errp);
/* ht_backends_drop: undo it, after ht_sinks_free().  Context: BQL */
void ht_backends_drop(Object *owner);

/**
 * ht_sinks_new: attach to backends, and start a thread for each
 * @info: the device
 * @backends: at most HT_QUEUES_MAX HypertraceBackend *
 * @budget: bytes for each that were committed and not yet delivered; half of
 *          them for what is posted though ht_sinks_room() says no
 * @packet: largest size for ht_sinks_reserve()
 * @room: called when a sink got room after ht_sinks_room() found none; any
 *        thread, under a lock: it may wake a thread, and no more
 * @opaque: for @room
 * @errp: set if a backend refuses
 *
 * Context: BQL
 */
HtSinks *ht_sinks_new(const HtDeviceInfo *info, GPtrArray *backends,
                      size_t budget, size_t packet,
                      void (*room)(void *opaque), void *opaque, Error **errp);

/**
 * ht_sinks_free: deliver what was posted, and detach
 * @k: its streams are closed; NULL is fine
 *
 * Waits some seconds at most: a backend that hangs keeps its sink, and is
 * detached when it comes back.
 *
 * Context: BQL
 */
void ht_sinks_free(HtSinks *k);

/**
 * ht_sinks_posted: note what was posted so far
 * @k: the sinks
 * @posted: HT_QUEUES_MAX; filled in
 *
 * Context: any thread
 */
void ht_sinks_posted(HtSinks *k, uint32_t *posted);

/**
 * ht_sinks_behind: a backend that has not taken all of that
 * @k: the sinks
 * @posted: of ht_sinks_posted()
 *
 * Returns: its id, valid as long as @k, or NULL
 *
 * Context: any thread
 */
const char *ht_sinks_behind(HtSinks *k, const uint32_t *posted);

/**
 * ht_sinks_room: whether a sink has budget for a buffer
 *
 * If not, @room will be called.  Context: any thread
 */
bool ht_sinks_room(HtSinks *k);

/**
 * ht_sinks_reserve: memory for events to be posted
 * @k: the sinks
 * @fill: a stream's buffer, or NULL; updated
 * @size: bytes
 *
 * Context: whoever has the stream's lock
 */
uint8_t *ht_sinks_reserve(HtSinks *k, HtBuffer **fill, size_t size);
/* ht_sinks_release: no more is posted from a stream's buffer, maybe NULL */
void ht_sinks_release(HtSinks *k, HtBuffer **fill);

/**
 * ht_sinks_post: give a run to all sinks
 * @k: the sinks
 * @run: any run
 * @b: the buffer that its events are in
 * @direct: whether the caller may deliver; if not, it calls ht_sinks_wake()
 *          when it has posted what there is
 *
 * Context: whoever has the stream's lock
 */
void ht_sinks_post(HtSinks *k, const HtRun *run, HtBuffer *b, bool direct);

/**
 * ht_sinks_wake: have what was posted delivered, and new classes learnt
 * @k: the sinks
 *
 * Context: any thread
 */
void ht_sinks_wake(HtSinks *k);

/**
 * ht_sinks_want: whether a backend wants events of a class
 * @k: the sinks
 * @c: the class
 *
 * Returns: also true while one has not learnt the class, and so cannot say
 *
 * Context: BQL
 */
bool ht_sinks_want(HtSinks *k, const HtClass *c);
/* ht_sinks_choose: whether that may change with time.  Context: BQL */
bool ht_sinks_choose(HtSinks *k);

unsigned ht_sinks_count(const HtSinks *k);
/* ht_sinks_stats: of one sink.  Context: any thread */
void ht_sinks_stats(HtSinks *k, unsigned i, HtSinkStats *stats);

#endif /* HW_HYPERTRACE_SINK_H */
