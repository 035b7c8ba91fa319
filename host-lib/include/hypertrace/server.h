/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: serve the control messages and the streams of one guest
 *
 * The server does not depend on the transport.  The owner passes private copies
 * of the requests, and calls the server to consume events.  The rings and the
 * enable bytes are memory that the guest can write at any time.
 *
 * A request for a stream (hypertrace/streams.h) is complete before its reply is
 * written.  A reply is therefore BUSY only if the budget of openings is used
 * up, or if the exchange has taken longer than HT_CONTROL_TURN_NS.
 *
 * Lock order: the lock of the messages, that of one stream, that of the clock.
 * All functions may be called by any thread unless stated otherwise.
 */
#ifndef HYPERTRACE_SERVER_H
#define HYPERTRACE_SERVER_H

#include "hypertrace/streams.h"

typedef struct HtServer HtServer;

/**
 * HtServerOps: callbacks of a server's owner
 * @deliver: take a run; runs of one stream come in order.  Context: the
 *           stream's lock is held
 * @wants: return whether to switch a class on; NULL: all classes are on.
 *         Context: the messages' lock is held
 * @added: called after the guest has registered a new class, not for inherited
 *         classes; may be NULL.  Context: the messages' lock is held
 * @changed: called when enable bytes have changed, except that of a new class,
 *           about which the reply to the registration tells; @seq is the new
 *           ht_caps.enable_seq; may be NULL.  Context: as @wants
 * @counter: read the guest's counter; NULL: the host cannot, so the guest's
 *           TIME_SYNC exchanges relate the clocks.  Context: the clock's lock
 *           is held
 * @opened: called when an instance of a stream begins, before @deliver gets its
 *          HT_RUN_OPEN run; not for inherited instances; may be NULL.  Context:
 *          the stream's lock is held
 * @take: consume the buffers that the guest has handed over for a stream, and
 *        return the number of bytes or buffers; NULL: the server consumes the
 *        ring.  Context: the stream's lock is held
 * @unreported: note that @count events were discarded by producers without a
 *              stream and not reported by a run so far; may be NULL.  Context:
 *              the messages' lock is held, and sometimes a stream's lock;
 *              called before the reply to the guest
 * @log: report misbehaviour of the guest; may be NULL.  The server limits the
 *       rate to HT_SERVER_LOG_BURST messages, then one each second
 */
typedef struct HtServerOps {
    HtDeliver *deliver;
    bool (*wants)(void *opaque, const HtClass *c);
    void (*added)(void *opaque, const HtClass *c);
    void (*changed)(void *opaque, uint32_t seq);
    uint64_t (*counter)(void *opaque);
    void (*opened)(void *opaque, const HtStreamInfo *info);
    size_t (*take)(void *opaque, uint32_t stream, HtConsumer *c);
    void (*unreported)(void *opaque, uint64_t count);
    void (*log)(void *opaque, const char *text);
} HtServerOps;

#define HT_SERVER_LOG_BURST         10

/**
 * HtServerConfig: settings of a server
 * @streams: 1 to HT_STREAMS_MAX
 * @packet_size: bytes, as in struct ht_caps; checked by the caller
 * @packets: packets in a ring, as in struct ht_caps; checked by the caller
 * @mode: enum ht_mode
 * @rings: array of @streams pointers, which is copied.  Each points to the
 *         control page of a stream, whose packets begin at HT_PACKETS_OFFSET
 * @enable: HT_ENABLE_SIZE bytes; written, never read
 * @hz: approximate frequency of the guest's counter in Hz, 1 kHz to 100 GHz
 * @ppm: maximum error of @hz in ppm
 * @future: accept dates later than the present, for tests that make up the
 *          guest's counter
 * @opening_ns: minimum mean interval between openings of streams in ns, such as
 *              HT_OPENING_NS; 0: no limit
 * @class_bytes: limit of all classes in bytes, see ht_class_table_set_limit();
 *               0: HT_CLASSES_SAVED_MAX
 * @inherits: the rings are those of a host that has ended: do not write to them
 *            until ht_server_inherit()
 * @ops: the callbacks; must stay valid
 * @opaque: first argument of the callbacks
 */
typedef struct HtServerConfig {
    uint32_t streams;
    uint32_t packet_size;
    uint32_t packets;
    uint32_t mode;
    struct ht_ring_control *const *rings;
    uint8_t *enable;
    uint64_t hz;
    uint32_t ppm;
    bool future;
    int64_t opening_ns;
    size_t class_bytes;
    bool inherits;
    const HtServerOps *ops;
    void *opaque;
} HtServerConfig;

/**
 * ht_server_new: make a server without classes; all streams are free
 * @cfg: copied
 *
 * Closes the rings, unless @cfg->inherits is set: a guest may still use
 * instances of an earlier server of the same memory.  The enable bytes keep
 * their values, so that the producers of such instances go on to count the
 * events that they discard.
 */
HtServer *ht_server_new(const HtServerConfig *cfg);

/**
 * ht_server_inherit_classes: take over the classes of a server that has ended
 * @s: a new server, with HtServerConfig.inherits
 * @data: as ht_class_table_save() writes it; not trusted
 * @size: bytes at @data
 * @why: set to the problem, to be freed
 *
 * The classes keep their ids.  The server decides which of them are on, and
 * writes their enable bytes.
 *
 * Returns: false if @data is not valid; the server then has no classes
 */
bool ht_server_inherit_classes(HtServer *s, const void *data, size_t size,
                               char **why);

/*
 * ht_server_inherit_discarded: take over the count of HtServerOps.unreported
 * from a server that has ended; the count is not trusted
 */
void ht_server_inherit_discarded(HtServer *s, uint64_t count);

/**
 * ht_server_inherit_clock: take over the clock of a server that has ended
 * @s: a new server
 * @seg: the newest segment of its map; not trusted
 *
 * Dates have an unknown error until the next reading of the guest's counter, by
 * HtServerOps.counter or by two TIME_SYNC exchanges.
 */
void ht_server_inherit_clock(HtServer *s, const HtTimeSegment *seg);

/**
 * ht_server_inherit: continue the open streams of a server that has ended, and
 * close all others
 * @s: a new server, with HtServerConfig.inherits; inherit its classes and clock
 *     before this call
 * @in: the instances
 * @n: number of instances, at most one for each stream
 *
 * A stream is continued if its ring is open and has the instance in @in.  The
 * stream's producer goes on to write the ring and need not do anything.  New
 * instances get numbers above those of the continued streams and those that the
 * rings' control pages have now.
 *
 * Returns: the number of streams that are continued
 */
unsigned ht_server_inherit(HtServer *s, const HtInherited *in, unsigned n);

/**
 * ht_server_free: free a server.  Call ht_server_close_all() or
 * ht_server_leave() before, because this function delivers nothing
 * @s: the server or NULL
 *
 * Context: no other call is under way
 */
void ht_server_free(HtServer *s);

/**
 * ht_server_exchange: execute one control message, or several registrations
 * @s: the server
 * @msgs: a private copy of the request; the replies overwrite it.  It has room
 *        for HT_MESSAGE_MAX bytes, also if @size is less
 * @size: bytes of the request; at most HT_MAILBOX_SIZE
 *
 * Returns: bytes of the replies, a header at least
 */
size_t ht_server_exchange(HtServer *s, void *msgs, size_t size);

/**
 * ht_server_consume: consume the events that a stream's producer has committed
 * @s: the server
 * @stream: less than the number of streams
 * @most: start no further packet after this many bytes; not used with
 *        HtServerOps.take
 *
 * Returns: the result of HtServerOps.take; without that callback, the number of
 * bytes consumed: 0 if nothing was pending, or the stream is not OPEN or was
 * stopped
 */
size_t ht_server_consume(HtServer *s, uint32_t stream, size_t most);

/**
 * ht_server_tell: report the discarded events of open streams to the trace
 * @s: the server
 *
 * ht_server_consume() reports no discarded events while a ring has no new
 * events.
 */
void ht_server_tell(HtServer *s);

/* ht_server_arm: ask all producers to kick; see ht_streams_arm() */
bool ht_server_arm(HtServer *s, bool eager);

/* ht_server_disarm: tell all producers not to kick */
void ht_server_disarm(HtServer *s);

/**
 * ht_server_close: close a stream that its producer has left
 * @s: the server
 * @stream: less than the number of streams
 *
 * Returns: number of events that the producer discarded; 0 if the stream was
 * FREE
 */
uint64_t ht_server_close(HtServer *s, uint32_t stream);

/* ht_server_close_all: close every open stream, for example at the end */
void ht_server_close_all(HtServer *s);

/*
 * ht_server_leave: end all streams in the trace but leave their rings open; see
 * ht_streams_leave()
 */
unsigned ht_server_leave(HtServer *s);

/**
 * ht_server_decide: ask HtServerOps.wants about all classes again
 * @s: the server
 *
 * Returns: true if an enable byte changed
 */
bool ht_server_decide(HtServer *s);

/**
 * ht_server_stats: get the counters of a stream or of the server
 * @s: the server
 * @stream: HT_STREAM_ANY for the sum of all instances of all streams; else a
 *          stream's open instance, or its last one
 * @stats: filled in, in the host's byte order
 *
 * Returns: false if there is no such stream
 */
bool ht_server_stats(HtServer *s, uint32_t stream, struct ht_stats *stats);

/*
 * ht_server_classes: get the table of classes; classes are never removed from
 * it
 */
const HtClassTable *ht_server_classes(const HtServer *s);

/**
 * ht_server_consumer: get the consumer of a stream
 * @s: the server
 * @stream: less than the number of streams
 *
 * Context: no other call for this stream is under way
 */
const HtConsumer *ht_server_consumer(const HtServer *s, uint32_t stream);

/**
 * ht_server_lock: lock one stream, for an owner that hands over buffers
 * @s: the server
 * @stream: less than the number of streams
 */
void ht_server_lock(HtServer *s, uint32_t stream);
void ht_server_unlock(HtServer *s, uint32_t stream);

/**
 * ht_server_time: get the relation of the guest's counter to host time; if the
 * host can read the counter, add a reading first
 * @s: the server
 * @map: filled in
 */
void ht_server_time(HtServer *s, HtTimeMap *map);

#endif /* HYPERTRACE_SERVER_H */
