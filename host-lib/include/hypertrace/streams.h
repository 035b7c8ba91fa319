/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the streams of one guest, from opening to closing
 *
 * A stream is in one of four phases:
 *
 *   phase    meaning                              ring->host.state
 *   FREE     no instance is open                  HT_STREAM_CLOSED
 *   OPENING  a request waits for the worker       HT_STREAM_CLOSED
 *   OPEN     the guest emits, the host consumes   HT_STREAM_OPENED, or
 *                                                 HT_STREAM_STOPPED
 *   LOADED   a saved state, not resumed yet       as it was saved
 *
 *   phase    event                             next     caused by
 *   FREE     STREAM_OPEN                       OPENING  control, in its budget
 *   OPENING  a turn                            OPEN     worker
 *   OPEN     malformed input: nothing more     OPEN     worker
 *            of this instance is read
 *   OPEN     want_close, and a ring consumed   FREE     worker
 *   FREE     a state is loaded                 LOADED   control
 *   LOADED   want_resume                       OPEN     worker
 *   LOADED   another state is loaded           FREE     control, before the
 *                                                       first want_resume
 *   FREE     ht_stream_inherit()               OPEN     the owner
 *   OPEN     ht_streams_leave()                FREE     the owner; the ring
 *                                                       stays open
 *
 * want_close is set by STREAM_CLOSE, TAKEOVER, a reset, or the owner.
 *
 * Two contexts change streams.  The control context executes the guest's
 * messages and the owner's requests.  The worker context does the work.  If
 * HtStreamsConfig.inline_work is set, the owner serializes both, and a request
 * is complete when its function returns.  Otherwise the owner calls
 * ht_streams_turn() after each kick; the reply to a request is BUSY, and the
 * guest sends the message again until the work is done.
 *
 * tests/model/control.pml proves that a close and a flush deliver what was
 * committed before.
 *
 * Lock order: HtStream.lock comes before the locks of sinks and clocks.
 */
#ifndef HYPERTRACE_STREAMS_H
#define HYPERTRACE_STREAMS_H

#include "hypertrace/atomic.h"
#include "hypertrace/consumer.h"
#include "hypertrace/queue.h"
#include "hypertrace/thread.h"

/*
 * Budget of openings: each is a new instance in the trace, and a file of a CTF
 * trace.  One opening for each interval, and a burst after a pause.  Openings
 * above it are answered with BUSY.
 */
#define HT_OPENING_NS               INT64_C(10000000)
#define HT_OPENINGS_BURST(streams)  MAX(4 * (int64_t)(streams), 256)

/* Maximum number of passes over all streams in one turn */
#define HT_STREAMS_ROUNDS           16

typedef struct HtStreams HtStreams;

typedef enum HtStreamPhase {
    HT_PHASE_FREE,
    HT_PHASE_OPENING,
    HT_PHASE_OPEN,
    HT_PHASE_LOADED,
} HtStreamPhase;

/**
 * HtStream: a stream
 * @all: the table that it is in
 * @index: its index there
 * @next: the instance that the guest knows; control, read by the worker once
 *        the phase is OPENING
 * @close_lost: the guest's final count of discarded events; control
 * @memory: address of a table in the guest's memory, which tells where the
 *          stream's memory is (virtio); 0: not known.  Control
 * @phase: see above; store-release, load-acquire
 * @want_close: control; cleared when the stream is opened again
 * @want_resume: control; set after a state was loaded
 * @lock: protects all members below
 * @consumer: reads the events
 * @fill: for the owner (buffer that the events are copied to)
 * @time_version: for the owner (version of the consumer's map)
 * @reported: the stop was reported
 * @ring: control page in the guest's memory; NULL: the stream has none
 * @packets: the packets of the ring
 * @sums: sequence lock of @closed and of the end of @phase OPEN; worker
 * @closed: sums of all closed instances
 */
typedef struct HtStream {
    HtStreams *all;
    uint32_t index;

    HtStreamInfo next;
    uint64_t close_lost;
    uint64_t memory;

    HtStreamPhase phase;
    bool want_close;
    bool want_resume;

    HtMutex lock;
    HtConsumer consumer;
    HtBuffer *fill;
    unsigned time_version;
    bool reported;
    struct ht_ring_control *ring;
    uint8_t *packets;

    unsigned sums;
    struct ht_stats closed;
} HtStream;

/**
 * HtStreamsConfig: settings and callbacks of the owner
 * @count: 1 to HT_STREAMS_MAX
 * @consumer: settings of the consumers.  The argument of deliver() and
 *            reserve() is the HtStream; @opaque is ignored
 * @opening_ns: interval of openings, as HT_OPENING_NS; 0: no limit
 * @instances: number of the last instance of the trace; control
 * @inline_work: see above
 * @arms: producers kick only after ht_streams_arm()
 * @passes: passes after which everything is consumed that was committed or
 *          handed over before: packets of a ring, or buffers of a queue
 * @consume: consume up to a packet of a stream; unless @force, only if a sink
 *           has room.  Returns the number of bytes or buffers.  Worker; takes
 *           the stream's lock
 * @room: return whether a sink has room; NULL: always.  HtStream.lock
 * @clock: update consumer.time, before the stream is consumed and when it is
 *         opened.  HtStream.lock
 * @kick: schedule ht_streams_turn(); NULL with @inline_work.  Any thread
 * @dirty: the host wrote to guest memory; may be NULL.  Any thread
 * @closing: a close was requested: note the buffers that were handed over so
 *           far, which must be consumed first; may be NULL.  Control
 * @drained: test whether those were consumed; NULL: always.  Worker
 * @drop: drop a buffer that was handed over for a closed stream; returns true
 *        if there was one; may be NULL.  Worker
 * @opening: an instance begins, before its HT_RUN_OPEN; may be NULL.
 *           HtStream.lock
 * @opened: the instance has begun; may be NULL.  Worker
 * @stopped: an instance was stopped: consumer.why says why; may be NULL.
 *           HtStream.lock
 * @closed: the instance has ended; may be NULL.  HtStream.lock
 * @resampled: all streams are dated after HtStreams.resample was set; may be
 *             NULL.  Worker
 * @unreported: @count events were discarded without a stream, and no run has
 *              reported them so far; may be NULL.  Only with @inline_work
 * @read: read the guest's RAM; returns false if there is no RAM; only for
 *        ht_stream_fetch(), as the next
 * @memory_bad: the memory of a stream is not as the guest said
 * @opaque: for the owner, and the argument of callbacks without a stream
 */
typedef struct HtStreamsConfig {
    uint32_t count;
    HtConsumerConfig consumer;
    int64_t opening_ns;
    uint64_t *instances;
    bool inline_work;
    bool arms;
    unsigned passes;
    size_t (*consume)(HtStream *s, bool force);
    bool (*room)(void *opaque);
    void (*clock)(HtStream *s);
    void (*kick)(void *opaque);
    void (*dirty)(void *opaque, const void *host, size_t size);
    void (*closing)(HtStream *s);
    bool (*drained)(HtStream *s);
    bool (*drop)(HtStream *s);
    void (*opening)(HtStream *s);
    void (*opened)(HtStream *s);
    void (*stopped)(HtStream *s);
    void (*closed)(HtStream *s);
    void (*resampled)(void *opaque);
    void (*unreported)(void *opaque, uint64_t count);
    bool (*read)(void *opaque, uint64_t addr, void *to, size_t size);
    void (*memory_bad)(HtStream *s);
    void *opaque;
} HtStreamsConfig;

/**
 * HtStreams: the streams of one guest
 * @cfg: set by ht_streams_init()
 * @stream: @cfg.count streams
 * @resample: the clock is about to change: no stream is opened until all
 *            streams that want to close are closed.  Atomic
 * @discarded: events without a stream that are not reported yet; atomic
 * @openings_ns: start of the budget of openings; control
 * @flush_given: last ticket given; control
 * @flush_wanted: the same, for the worker; store-release
 * @flush_done: last ticket that is complete; worker, store-release
 * @flush_next: ticket of the flush under way; worker
 * @flush_polled: @polled when it began; worker
 * @polled: number of streams that had their turn; worker
 * @more: a turn left something because of a limit; worker
 * @first: stream that the next turn begins with; worker
 * @telling: sequence lock of @discarded; worker
 */
struct HtStreams {
    HtStreamsConfig cfg;
    HtStream *stream;
    bool resample;
    uint64_t discarded;
    int64_t openings_ns;
    uint64_t flush_given;
    uint64_t flush_wanted;
    uint64_t flush_done;
    uint64_t flush_next;
    uint64_t flush_polled;
    uint64_t polled;
    bool more;
    uint32_t first;
    unsigned telling;
};

/**
 * ht_streams_init: make streams, all of them free
 * @a: zeroed memory
 * @cfg: copied
 */
void ht_streams_init(HtStreams *a, const HtStreamsConfig *cfg);
void ht_streams_destroy(HtStreams *a);

/**
 * ht_stream_set_ring: give a free stream its ring
 * @s: the stream
 * @ring: control page, followed by the packets at HT_PACKETS_OFFSET
 */
void ht_stream_set_ring(HtStream *s, struct ht_ring_control *ring);

/**
 * ht_stream_close_ring: tell producers of an earlier host to stop
 * @s: a free stream with a ring
 */
void ht_stream_close_ring(HtStream *s);

static inline HtStreamPhase ht_stream_phase(const HtStream *s)
{
    return ht_atomic_load_acquire(&s->phase);
}

/*
 * The guest's messages, and their replies.  Context: control
 */

/**
 * ht_streams_open: execute HT_MSG_STREAM_OPEN
 * @a: the streams
 * @m: the message; the reply has the stream's index and instance
 * @info: name and vCPU of the stream
 */
enum ht_status ht_streams_open(HtStreams *a, struct ht_msg_open *m,
                               const HtStreamInfo *info);
/* ht_streams_close: execute HT_MSG_STREAM_CLOSE */
enum ht_status ht_streams_close(HtStreams *a, const struct ht_msg_stream *m);
/* ht_streams_flush: execute HT_MSG_STREAM_FLUSH */
enum ht_status ht_streams_flush(HtStreams *a, struct ht_msg_stream *m);
/* ht_streams_discarded: execute HT_MSG_DISCARDED */
void ht_streams_discarded(HtStreams *a, uint64_t count);

/**
 * HtInherited: an instance of a stream of a host that has ended
 * @info: as that host knew it; not trusted, except that @info.index is valid
 * @opened_ns: time of its opening
 * @recorded: the end of its recording; see ht_consumer_inherit()
 */
typedef struct HtInherited {
    HtStreamInfo info;
    uint64_t opened_ns;
    HtRecorded recorded;
} HtInherited;

/**
 * ht_stream_inherit: continue an instance of a host that has ended
 * @s: a free stream with a ring
 * @in: the instance
 *
 * Its producer notices nothing.
 *
 * Returns: false if the ring is not open or has another instance
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
bool ht_stream_inherit(HtStream *s, const HtInherited *in);

/**
 * ht_streams_leave: end all open streams in the trace, and leave their rings
 * open
 * @a: the streams
 *
 * For an owner that ends before its guest: a successor can continue the
 * streams, and their producers need not be stopped.  If a ring was closed, an
 * event that is committed at this moment would be neither read nor counted.
 *
 * Returns: the number of these streams
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
unsigned ht_streams_leave(HtStreams *a);

/* ht_streams_want_close_all: request that all streams are closed.  Control */
void ht_streams_want_close_all(HtStreams *a);

/**
 * ht_streams_close_one: close a stream that its producer has left
 * @s: any stream
 *
 * Returns: number of events that the producer discarded; 0 if it was free
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
uint64_t ht_streams_close_one(HtStream *s);

/**
 * ht_streams_turn: work in passes, until nothing is left or a limit is reached
 * @a: the streams
 * @again: set to whether the owner must call this again soon
 *
 * Completes flushes.
 *
 * Returns: true if there was anything to do
 *
 * Context: worker
 */
bool ht_streams_turn(HtStreams *a, bool *again);

/* ht_streams_any_open: test whether a stream is not free.  Any thread */
bool ht_streams_any_open(const HtStreams *a);

/* Report the discarded events of open streams to the trace.  Worker */
void ht_streams_tell(HtStreams *a);

/**
 * ht_stream_consume: consume what was committed to a ring
 * @s: any stream with a ring
 * @most: start no further packet after this many bytes; with
 *        HtConsumerConfig.piece, take at most this many, in two pieces
 * @force: consume even if no sink has room
 *
 * Returns: bytes consumed; 0 if nothing was pending
 *
 * Context: any thread
 */
size_t ht_stream_consume(HtStream *s, size_t most, bool force);

/* Call this before ht_consumer_feed() and the like.  HtStream.lock held */
void ht_stream_begin(HtStream *s);
/* Call this after them; reports a new stop.  HtStream.lock held */
void ht_stream_end(HtStream *s);

/**
 * ht_stream_fetch: consume what was committed and not handed over (virtio)
 * @s: a stream; all that was handed over is consumed
 *
 * Returns: number of bytes; 0 if HtStream.memory is not set
 *
 * Context: control and worker
 */
size_t ht_stream_fetch(HtStream *s);
/* Forget the addresses of streams' memory.  Context: control */
void ht_streams_forget_memory(HtStreams *a);

/**
 * ht_streams_arm: ask all producers for a kick; see ht_consumer_arm()
 * @a: the streams
 * @eager: kick at the next commit, not at the end of the packet
 *
 * Returns: true if something was committed meanwhile (do not sleep)
 *
 * Context: worker
 */
bool ht_streams_arm(HtStreams *a, bool eager);
/* ht_streams_disarm: tell all producers not to kick.  Worker */
void ht_streams_disarm(HtStreams *a);
/* ht_streams_pending: test whether a ring has something to consume.  Worker */
bool ht_streams_pending(const HtStreams *a);
/* ht_streams_behind: test all rings with ht_consumer_behind().  Worker */
bool ht_streams_behind(const HtStreams *a);

/**
 * ht_stream_stats: get the counters of the open instance, or of the last one
 *
 * The numbers may be of slightly different times.  Context: any thread
 */
void ht_stream_stats(const HtStream *s, struct ht_stats *stats);

/**
 * ht_streams_stats: get the sums of all instances
 *
 * Each instance is counted once, open or closed.  Context: any thread
 */
void ht_streams_stats(const HtStreams *a, struct ht_stats *stats);

/*
 * Saved states.  Context: control, while no work is done
 */

/* Size of the encoded state of a stream in bytes */
#define HT_STREAM_STATE_SIZE        248

/**
 * ht_streams_save: encode the state of all streams
 * @a: the streams; none of them is OPENING
 * @to: HtStreamsConfig.count times HT_STREAM_STATE_SIZE bytes
 */
void ht_streams_save(const HtStreams *a, uint8_t *to);

/* ht_stream_is_suspended: test for a loaded stream that was not resumed yet */
bool ht_stream_is_suspended(const HtStream *s);

/**
 * ht_streams_unload: prepare for a load: drop loaded streams
 * @a: the streams
 * @open: set to the index of a stream that is open
 *
 * Returns: false if a stream is open
 */
bool ht_streams_unload(HtStreams *a, uint32_t *open);

/**
 * ht_streams_load: check an encoded state, and load the consumers
 * @a: the streams, all free
 * @from: as of ht_streams_save(); not trusted
 * @instances: number of the last instance of the saved trace; not trusted
 * @shift_ns: added to times
 * @why: set to the reason if the state is not valid, for g_free()
 *
 * The streams stay free until ht_streams_loaded().
 *
 * Returns: false if the state is not valid
 */
bool ht_streams_load(HtStreams *a, const uint8_t *from, uint64_t instances,
                     int64_t shift_ns, char **why);

/**
 * ht_streams_loaded: put the streams into the phase LOADED, if they were open
 * @a: the streams
 * @from: the state that ht_streams_load() accepted
 */
void ht_streams_loaded(HtStreams *a, const uint8_t *from);

/**
 * ht_streams_renumber: give loaded streams instances that are new to the trace
 * @a: the streams; none was opened since the load
 * @instances: number of the last instance of the saved trace
 *
 * A stream keeps its instance unless the trace has seen it before: after a
 * rewind, its events would otherwise appear twice.
 */
void ht_streams_renumber(HtStreams *a, uint64_t instances);

/* ht_streams_resume: let the worker continue the loaded streams */
void ht_streams_resume(HtStreams *a);

/**
 * ht_streams_load_flush: complete the flushes of a saved state
 * @a: the streams
 * @wanted: last ticket that was given when the state was saved.  The tickets of
 *          this guest until then are complete with the next turn.
 *
 * Context: control
 */
void ht_streams_load_flush(HtStreams *a, uint64_t wanted);

#endif /* HYPERTRACE_STREAMS_H */
