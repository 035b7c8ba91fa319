/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: emit events that are computed from the stream's index
 * and the event's number, and check each byte that the host delivers
 */
#ifndef GUEST_TESTLIB_H
#define GUEST_TESTLIB_H

#include "hypertrace/base.h"
#include "loopback.h"

#define GT_STREAMS 8

/**
 * GtKind: how the n-th event of a stream is chosen
 * @GT_MIXED: any class; the test fails if an event is missing
 * @GT_NUMBERED: classes with a sequence number; events may be missing
 */
typedef enum GtKind {
    GT_MIXED,
    GT_NUMBERED,
} GtKind;

/*
 * A stream as the host delivered it: @opened and @closed count all instances of
 * the stream, the other members describe the last instance
 */
typedef struct GtReceived {
    uint64_t events;
    /* lowest number that the stream's next event can have */
    uint64_t next;
    /* number of event numbers below @next that did not arrive */
    uint64_t gaps;
    uint64_t discarded;         /* HtRun.discarded of the stream's last run */
    uint64_t last_ns;
    uint64_t instance;
    int32_t vcpu;
    unsigned opened;
    unsigned closed;
    char name[HT_STREAM_NAME_MAX + 1];
} GtReceived;

typedef struct GtSink {
    GtKind kind;
    struct ht_loopback *lb;
    GtReceived stream[GT_STREAMS];
} GtSink;

/**
 * gt_new: create a loopback device, and register the classes of guest-events.h
 * @sink: receives and checks the events; initialized by this call
 * @kind: how the test chooses its events
 * @cfg: configuration; the members deliver and opaque are set by this call
 *
 * Returns: the device
 */
struct ht_device *gt_new(GtSink *sink, GtKind kind,
                         struct ht_loopback_config cfg);
void gt_free(GtSink *sink);

/**
 * gt_emit: emit the n-th event of a stream
 * @kind: how the event is chosen
 * @s: the stream; if it is not open, the emit fails
 * @n: number of the event, from 0
 *
 * Returns: true if the event was committed
 */
bool gt_emit(GtKind kind, struct ht_stream *s, uint64_t n);

/*
 * The class object "tick" of guest-testlib.c, which gt_new() registers; each
 * other file that includes guest-events.h has its own
 */
extern struct ht_class *gt_class_tick;

/** gt_ns: get the host's CLOCK_MONOTONIC in ns */
uint64_t gt_ns(void);

#endif
