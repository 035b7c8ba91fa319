/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: open, consume and close the streams of one guest
 *
 * A stream is in one of four phases:
 *
 *   phase    meaning                              ring->host.state
 *   FREE     no instance is open                  HT_STREAM_CLOSED, except
 *                                                 after ht_streams_leave()
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
 * ht_streams_turn() after each kick; the reply to a request is BUSY until the
 * work is done, and the guest sends the message again.
 *
 * tests/model/control.pml is a model of both contexts.  The model checker
 * proves for this model that a close and a flush deliver all events that were
 * committed before them.
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
 * Budget of openings: each opening makes a new instance in the trace, and a
 * file of a CTF trace.  The budget grows by one opening in each interval of
 * HtStreamsConfig.opening_ns; unused openings may be used later, up to the
 * limit of a burst.  A request beyond the budget is answered with BUSY.
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
 * @all: the HtStreams that the stream belongs to
 * @index: index of the stream in HtStreams.stream
 * @next: the instance that the guest knows; control, read by the worker once
 *        the phase is OPENING
 * @close_lost: the guest's final count of discarded events; control
 * @memory: virtio: address of the table that the guest gave in
 *          ht_msg_open.memory for the present instance; 0: none.  Control
 * @phase: see the start of this file; store-release, load-acquire
 * @want_close: close the stream; control; cleared when the stream is opened
 *              again
 * @want_resume: resume the loaded stream; control
 * @lock: protects the members from @consumer to @packets
 * @consumer: reads the events
 * @fill: for the owner: buffer that the events are copied to
 * @time_version: for the owner: version of the consumer's time map
 * @reported: the instance is stopped, and HtStreamsConfig.stopped was called
 *            for it here or by the QEMU that saved it
 * @ring: control page, which the guest can write; NULL: the stream has no ring
 * @packets: the packets of the ring
 * @sums: sequence lock of @closed and of the change of @phase from OPEN;
 *        written by the worker
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
 * @consumer: settings of the consumers.  The first argument of their callbacks
 *            is the HtStream; HtConsumerConfig.opaque is ignored
 * @opening_ns: minimum mean interval between openings in ns, such as
 *              HT_OPENING_NS; 0: no limit
 * @instances: number of the instance that was opened last in the trace; control
 * @inline_work: the owner serializes the contexts, and requests are complete
 *               when their functions return
 * @arms: producers kick only after ht_streams_arm()
 * @passes: number of passes in which everything is consumed that was committed
 *          or handed over before them: the packets of a ring, or the buffers of
 *          a queue
 * @consume: consume about one packet, or one buffer, of a stream; without
 *           @force, only if a sink has room.  Returns the number of bytes or
 *           buffers; 0 if nothing was consumed.  Worker; takes the stream's
 *           lock
 * @room: return whether a sink has room; NULL: always.  HtStream.lock held
 * @clock: update consumer.time, before the stream is consumed and when it is
 *         opened.  HtStream.lock held
 * @kick: schedule ht_streams_turn(); NULL with @inline_work.  Any thread
 * @dirty: mark guest memory as dirty after the host wrote to it; may be NULL.
 *         Any thread
 * @closing: called when a close is requested: note how many buffers the guest
 *           may have handed over at most; they must be consumed before the
 *           close; may be NULL.  Control
 * @drained: test whether the buffers that @closing noted were consumed; NULL:
 *           always true.  Worker
 * @drop: drop one buffer that was handed over for a closed stream; returns
 *        false if no buffer was left; may be NULL.  Worker
 * @opening: called when an instance begins, before its HT_RUN_OPEN run; not if
 *           it is resumed or inherited; may be NULL.  HtStream.lock held
 * @opened: called after an instance has begun or was resumed; not if it is
 *          inherited; may be NULL.  Worker
 * @stopped: called when an instance was stopped as corrupt: consumer.why has
 *           the reason; may be NULL.  HtStream.lock held
 * @closed: called after an instance has ended; may be NULL.  HtStream.lock held
 * @resampled: called when all events from before HtStreams.resample was set are
 *             dated, so that the clock may change; may be NULL.  Worker
 * @unreported: note that @count events were discarded by producers without a
 *              stream and not reported by a run so far; may be NULL.  Only with
 *              @inline_work
 * @read: for ht_stream_fetch(): read the guest's RAM; returns false if the
 *        range is not RAM
 * @memory_bad: for ht_stream_fetch(): the table or the memory of a stream is
 *              not valid
 * @opaque: for the owner; the argument of callbacks that have no stream
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
 * @discarded: number of events that producers without a stream have discarded
 *             and that no consumer counts yet; atomic
 * @openings_ns: time up to which the budget of openings is used; control
 * @flush_given: ticket of the newest flush; control
 * @flush_wanted: copy of @flush_given for the worker; store-release
 * @flush_done: flushes up to this ticket are complete; worker, store-release
 * @flush_next: ticket of the flush under way; worker
 * @flush_polled: @polled when the flush under way began; worker
 * @polled: number of times that a turn has served a stream; worker
 * @more: the last turn stopped at a limit and left events; worker
 * @first: stream that the next turn begins with; worker
 * @telling: sequence lock of the moves of @discarded to a consumer; worker
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
 * ht_streams_init: initialize the streams; all are FREE
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
 * ht_stream_close_ring: mark a ring as closed, so that a producer that still
 * writes for an earlier host stops
 * @s: a free stream with a ring
 */
void ht_stream_close_ring(HtStream *s);

static inline HtStreamPhase ht_stream_phase(const HtStream *s)
{
    return ht_atomic_load_acquire(&s->phase);
}

/*
 * The following functions execute the guest's messages and write the replies.
 * Context: control
 */

/**
 * ht_streams_open: execute HT_MSG_STREAM_OPEN
 * @a: the streams
 * @m: the message; if the opening has begun, the reply has the stream's index
 *     and instance
 * @info: name and vCPU of the stream
 */
enum ht_status ht_streams_open(HtStreams *a, struct ht_msg_open *m,
                               const HtStreamInfo *info);
/* ht_streams_close: execute HT_MSG_STREAM_CLOSE */
enum ht_status ht_streams_close(HtStreams *a, const struct ht_msg_stream *m);
/*
 * ht_streams_want_flush: make the next turns consume even if no sink has room,
 * until all that was committed before this call is consumed
 * @a: the streams; they have a worker, which the caller must kick
 *
 * Context: control
 */
void ht_streams_want_flush(HtStreams *a);
/* ht_streams_flush: execute HT_MSG_STREAM_FLUSH */
enum ht_status ht_streams_flush(HtStreams *a, struct ht_msg_stream *m);
/* ht_streams_discarded: execute HT_MSG_DISCARDED */
void ht_streams_discarded(HtStreams *a, uint64_t count);

/**
 * HtInherited: an instance of a stream that was open when its host ended
 * @info: as that host knew it; not trusted, except that @info.index is valid
 * @opened_ns: time of its opening in ns
 * @recorded: how far that host has recorded it; see ht_consumer_inherit()
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
 * The instance's producer goes on to write the ring and need not do anything.
 *
 * Returns: false if the ring is not open, or has another instance, or if @in or
 * the ring's tail is not valid
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
bool ht_stream_inherit(HtStream *s, const HtInherited *in);

/**
 * ht_streams_leave: end all open streams in the trace, and leave their rings
 * open, except those of streams that were stopped as corrupt
 * @a: the streams
 *
 * Consumes the events that are committed now.  An owner that ends before its
 * guest calls this.  The owner's successor can continue the streams, so their
 * producers need not stop.  (If a ring was closed now, an event that is
 * committed at this moment would be neither read nor counted.)
 *
 * Returns: the number of streams whose rings stay open
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
unsigned ht_streams_leave(HtStreams *a);

/*
 * ht_streams_want_close_all: request that all streams are closed; with
 * HtStreamsConfig.inline_work, close them.  Context: control
 */
void ht_streams_want_close_all(HtStreams *a);

/**
 * ht_streams_close_one: close a stream that its producer has left
 * @s: any stream
 *
 * Returns: number of events that the producer discarded; 0 if the stream was
 * FREE
 *
 * Context: with HtStreamsConfig.inline_work only; control
 */
uint64_t ht_streams_close_one(HtStream *s);

/**
 * ht_streams_turn: open, consume and close streams
 * @a: the streams
 * @again: set to whether the owner must call this again soon
 *
 * Ends when nothing is left to do or a limit is reached; with
 * HtStreamsConfig.arms and without a flush, also when ht_consumer_behind() is
 * false for each stream.  Also completes flushes.
 *
 * Returns: true if there was anything to do
 *
 * Context: worker
 */
bool ht_streams_turn(HtStreams *a, bool *again);

/*
 * ht_streams_any_open: test whether any stream is not FREE.  Context: any
 * thread
 */
bool ht_streams_any_open(const HtStreams *a);

/*
 * ht_streams_tell: report the discarded events of open streams to the trace.
 * Context: any thread
 */
void ht_streams_tell(HtStreams *a);

/**
 * ht_stream_consume: consume the events committed to a stream's ring
 * @s: any stream with a ring
 * @most: start no further packet once this many bytes were consumed.  With
 *        HtConsumerConfig.piece: consume one piece; if it has less than @most
 *        bytes and less than piece_events events, also consume a second piece,
 *        up to the rest of both limits
 * @force: consume even if no sink has room
 *
 * Returns: bytes consumed; 0 if nothing was pending, if no sink has room, or if
 * the stream is closed or stopped
 *
 * Context: any thread
 */
size_t ht_stream_consume(HtStream *s, size_t most, bool force);

/*
 * ht_stream_begin: update the consumer's clock; call this before
 * ht_consumer_feed() or ht_consumer_fetched().  Context: HtStream.lock held
 */
void ht_stream_begin(HtStream *s);
/*
 * ht_stream_end: if the stream was just stopped as corrupt, set the state of
 * its ring and call HtStreamsConfig.stopped; call this after ht_consumer_feed()
 * or ht_consumer_fetched().  Context: HtStream.lock held
 */
void ht_stream_end(HtStream *s);

/**
 * ht_stream_fetch: consume events that were committed, but not handed over
 * (virtio)
 * @s: a stream of which all buffers that were handed over are consumed
 *
 * Returns: number of bytes; 0 if HtStream.memory is not set
 *
 * Context: both control and worker, which the caller serializes
 */
size_t ht_stream_fetch(HtStream *s);
/* ht_streams_forget_memory: clear HtStream.memory of all.  Context: control */
void ht_streams_forget_memory(HtStreams *a);

/**
 * ht_streams_arm: ask all producers to kick; see ht_consumer_arm()
 * @a: the streams
 * @eager: kick at the next commit, not at the end of the packet
 *
 * Returns: true if a producer has already reached its wake position: consume
 * instead of sleeping
 *
 * Context: any thread
 */
bool ht_streams_arm(HtStreams *a, bool eager);
/* ht_streams_disarm: tell all producers not to kick.  Context: any thread */
void ht_streams_disarm(HtStreams *a);
/*
 * ht_streams_pending: test whether any ring has something to consume.  Context:
 * worker
 */
bool ht_streams_pending(const HtStreams *a);

/**
 * ht_stream_stats: get the counters of the open instance, or of the last one
 * @s: the stream
 * @stats: filled in, in the host's byte order
 *
 * The counters are read one after another, while they may change.  Context: any
 * thread
 */
void ht_stream_stats(const HtStream *s, struct ht_stats *stats);

/**
 * ht_streams_stats: get the sums of all instances
 * @a: the streams
 * @stats: filled in, in the host's byte order; its count of lost events also
 *         has those without a stream that no instance counts yet
 *
 * Each instance is counted once, open or closed.  Context: any thread
 */
void ht_streams_stats(const HtStreams *a, struct ht_stats *stats);

/*
 * The following functions save and load states.  Context: control, while the
 * worker does nothing
 */

/* Size of the encoded state of a stream in bytes */
#define HT_STREAM_STATE_SIZE        248

/**
 * ht_streams_save: encode the state of all streams
 * @a: the streams; none of them is OPENING
 * @to: HtStreamsConfig.count times HT_STREAM_STATE_SIZE bytes
 */
void ht_streams_save(const HtStreams *a, uint8_t *to);

/*
 * ht_stream_is_suspended: test whether a stream is loaded, and
 * ht_streams_resume() was not called since
 */
bool ht_stream_is_suspended(const HtStream *s);

/**
 * ht_streams_unload: before a load, drop the streams of an earlier load
 * @a: the streams
 * @open: set to the index of a stream that is not FREE after that
 *
 * Returns: false if there is such a stream
 */
bool ht_streams_unload(HtStreams *a, uint32_t *open);

/**
 * ht_streams_load: check an encoded state, and load the consumers
 * @a: the streams, all free
 * @from: state in the form of ht_streams_save(); not trusted
 * @instances: number of the last instance of the saved trace; not trusted
 * @shift_ns: value to add to the times
 * @why: set to the reason if the state is not valid, for g_free()
 *
 * The streams stay free until ht_streams_loaded().
 *
 * Returns: false if the state is not valid; some consumers may have been loaded
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
 * A stream keeps its instance if the trace does not have it yet.  If the trace
 * has it (the VM was rewound), a new instance prevents that its events appear
 * twice.
 */
void ht_streams_renumber(HtStreams *a, uint64_t instances);

/* ht_streams_resume: let the worker continue the loaded streams */
void ht_streams_resume(HtStreams *a);

/**
 * ht_streams_load_flush: complete the flushes of a saved state
 * @a: the streams
 * @wanted: last ticket that was given when the state was saved.  The next turns
 *          complete all tickets up to @wanted.
 *
 * Context: control
 */
void ht_streams_load_flush(HtStreams *a, uint64_t wanted);

#endif /* HYPERTRACE_STREAMS_H */
