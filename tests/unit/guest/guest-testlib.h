/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: a stream of events that both sides can tell from its
 * numbers, and a backend that checks each byte of it
 */
#ifndef GUEST_TESTLIB_H
#define GUEST_TESTLIB_H

#include "hypertrace/base.h"
#include "../../../guest-lib/ports/loopback.h"

#define GT_STREAMS 8

/**
 * GtKind: what the n-th event of a stream is
 * @GT_MIXED: any class; the events received must be all of those sent
 * @GT_NUMBERED: classes with a sequence number; some may be missing
 */
typedef enum GtKind {
    GT_MIXED,
    GT_NUMBERED,
} GtKind;

/* What was received from a stream since it was opened */
typedef struct GtReceived {
    uint64_t events;
    uint64_t next;              /* number of the next event, at least */
    uint64_t gaps;              /* numbers skipped */
    uint64_t discarded;         /* as the last run says */
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
 * gt_new: a device whose events a sink checks, with all classes registered
 * @sink: set up
 * @kind: what will be sent
 * @cfg: without deliver and opaque
 */
struct ht_device *gt_new(GtSink *sink, GtKind kind,
                         struct ht_loopback_config cfg);
void gt_free(GtSink *sink);

/**
 * gt_emit: emit the n-th event of a stream
 *
 * Returns: whether it was committed
 */
bool gt_emit(GtKind kind, struct ht_stream *s, uint64_t n);

/* This file's view of an event that others define too */
extern struct ht_class *gt_class_tick;

/**
 * gt_ns: host CLOCK_MONOTONIC
 */
uint64_t gt_ns(void);

#endif /* GUEST_TESTLIB_H */
