/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that tests of the host core share: make class messages, write rings as
 * the specification demands, without the guest library's code, and check the
 * runs that the host delivers
 */
#ifndef CORE_TESTLIB_H
#define CORE_TESTLIB_H

#include "hypertrace/base.h"
#include "hypertrace/consumer.h"

/**
 * CtMessage: a HT_MSG_CLASS_REGISTER under construction; may exceed the limits
 * @data: the message
 * @size: bytes written so far
 */
typedef struct CtMessage {
    _Alignas(8) uint8_t data[16384];
    size_t size;
} CtMessage;

void ct_class(CtMessage *m, const char *name);
void ct_class_bytes(CtMessage *m, const void *name, size_t len);
void ct_field(CtMessage *m, const char *name, unsigned kind, unsigned elem,
              unsigned count);
void ct_field_bytes(CtMessage *m, const struct ht_msg_field *f,
                    const void *name, size_t len);
struct ht_msg_class *ct_message(CtMessage *m);

/**
 * ct_add: register the class of @m in @t, as ht_class_table_add() does
 *
 * That function gets a copy of the message in a buffer of exactly its size, so
 * that sanitizers detect reads beyond the message.
 */
enum ht_status ct_add(HtClassTable *t, const CtMessage *m, bool *added,
                      HtClass **cls);

/**
 * ct_register: register a class, which must be valid
 *
 * Returns: the class id
 */
uint32_t ct_register(HtClassTable *t, const CtMessage *m);

/* Ids of the classes in the table that ct_classes() makes */
enum {
    CT_NUMBER = 1,              /* u64 */
    CT_TEXT,                    /* fields: u8, text, u32 */
    CT_SEQUENCE,                /* field: sequence of u16 */
    CT_EMPTY,                   /* no field */
    /* field: u64; the class's id does not fit into a header's first byte */
    CT_FAR = 300,
};

HtClassTable *ct_classes(void);

void ct_put_compact(GByteArray *a, uint32_t id, uint64_t clock,
                    const void *payload, size_t size);
void ct_put_extended(GByteArray *a, uint32_t id, uint64_t clock,
                     const void *payload, size_t size);

/* Return a time map of 1 ns per tick: counter 0 has the date @offset, ns. */
HtTimeMap ct_time(uint64_t offset);

/**
 * CtRing: a ring and its producer's private state
 * @control, @data: guest memory, each allocated with its exact size
 */
typedef struct CtRing {
    uint32_t packet_size;
    uint32_t packets;
    bool overwrite;
    uint32_t stream;
    uint64_t instance;
    struct ht_ring_control *control;
    uint8_t *data;
    /* number of the open packet; if none is open, of the next packet */
    uint64_t packet;
    /* offset in the open packet; 0: no packet is open */
    uint32_t offset;
    uint64_t events;
    uint64_t lost;
    uint64_t clock;
} CtRing;

void ct_ring_init(CtRing *r, uint32_t packet_size, uint32_t packets,
                  bool overwrite);
void ct_ring_destroy(CtRing *r);

/*
 * Add 10 to @r->clock, and emit an event of class CT_NUMBER with this time and
 * the number @n. Returns false as ct_ring_put() does.
 */
bool ct_ring_emit(CtRing *r, uint64_t n);
/*
 * Put the bytes of one event into the ring.  If the event opens a packet,
 * @r->clock is the packet's clock_begin.  The event must fit into a packet.  If
 * the ring is full and @r->overwrite is false, count the event as lost and
 * return false.
 */
bool ct_ring_put(CtRing *r, const void *event, uint32_t size);
void ct_ring_close_packet(CtRing *r);
struct ht_packet *ct_ring_packet(CtRing *r, uint64_t packet);

/**
 * CtSink: state of ct_sink_deliver(), a HtDeliver that checks each run: its
 * dates and counts do not decrease, and its events match the run's numbers
 * @numbers: numbers of the CT_NUMBER events, in order
 * @other: count of events of other classes
 * @runs: count of runs with events
 * @bytes: event bytes in these runs
 * @discarded: HtRun.discarded of the last run
 * @opened, @closed: number of runs with HT_RUN_OPEN, with HT_RUN_CLOSE
 * @ns: HtRun.end_ns of the last run
 */
typedef struct CtSink {
    HtClassTable *classes;
    GArray *numbers;
    uint64_t other;
    uint64_t runs;
    uint64_t bytes;
    uint64_t discarded;
    unsigned opened;
    unsigned closed;
    uint64_t ns;
} CtSink;

void ct_sink_init(CtSink *s);
void ct_sink_destroy(CtSink *s);
void ct_sink_deliver(void *opaque, const HtRun *run);
uint64_t ct_sink_number(const CtSink *s, unsigned i);

/*
 * Prepare a consumer for the ring @r that delivers to @s. ct_consumer_open()
 * also opens the stream.
 */
void ct_consumer_init(HtConsumer *c, CtSink *s, const CtRing *r);
/*
 * Assert that the saved state of a consumer can be loaded: a guest must not be
 * able to prevent a migration of its VM.
 */
void ct_check_loadable(const HtConsumer *c);
void ct_consumer_open(HtConsumer *c, CtSink *s, const CtRing *r);

#endif
