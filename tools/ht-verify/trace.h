/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: traces, read with libbabeltrace2
 */
#ifndef HT_VERIFY_TRACE_H
#define HT_VERIFY_TRACE_H

#include <babeltrace2/babeltrace.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum TraceKind {
    TRACE_OTHER,                /* neither: its events are not ours */
    TRACE_LTTNG,                /* events carry stream, vcpu, guest_ns */
    TRACE_CTF,                  /* of the device's own CTF backend */
} TraceKind;

/**
 * TraceClass: an event class of a trace, looked at once
 * @kind: of trace
 * @device: the hypertrace device
 * @name: without the device
 * @fields: the class of its payload; NULL: it has none
 * @stream_field, @guest_ns_field: index in the payload (TRACE_LTTNG)
 * @discarded: its events say how many a stream lost: at @events_field since the
 *             one before, at @total_field since it was opened
 * @user: the reader's; freed with g_free()
 *
 * Classes, and the text they point to, live until trace_read() returns.
 */
typedef struct TraceClass {
    TraceKind kind;
    const char *device;
    const char *name;
    const bt_field_class *fields;
    uint64_t stream_field;
    uint64_t guest_ns_field;
    bool discarded;
    uint64_t events_field;
    uint64_t total_field;
    void *user;
} TraceClass;

/**
 * TraceEvent: one event
 * @cls: its class
 * @stream: index in the device
 * @instance: of the stream; 0: the trace does not say (TRACE_LTTNG)
 * @guest_ns: when the guest emitted it, host CLOCK_MONOTONIC
 * @delivered_ns: when LTTng recorded it, same clock; 0 in TRACE_CTF
 * @payload: a structure; NULL: no fields
 */
typedef struct TraceEvent {
    TraceClass *cls;
    uint32_t stream;
    uint64_t instance;
    uint64_t guest_ns;
    uint64_t delivered_ns;
    const bt_field *payload;
} TraceEvent;

/**
 * TraceLoss: what a tracer or the device says it discarded
 * @kind: of trace
 * @device: a stream's; NULL: LTTng's
 * @channel: LTTng's channel; else NULL
 * @stream, @instance: of the device: which
 * @events: discarded events
 * @total: of a device in TRACE_LTTNG: since the stream was opened
 * @packets: discarded packets
 * @unknown: somewhere, a number of events is not known
 */
typedef struct TraceLoss {
    TraceKind kind;
    const char *device;
    const char *channel;
    uint32_t stream;
    uint64_t instance;
    uint64_t events;
    uint64_t total;
    uint64_t packets;
    bool unknown;
} TraceLoss;

typedef struct TraceReader {
    void (*event)(void *opaque, const TraceEvent *ev);
    void (*loss)(void *opaque, const TraceLoss *loss);
    void *opaque;
} TraceReader;

/**
 * trace_read: read every trace below a directory, in the order of time
 * @dir: searched for directories with a file "metadata"
 * @reader: called for each event and each loss
 * @err: set on failure
 *
 * Returns: the number of traces; -1 on failure
 */
int trace_read(const char *dir, const TraceReader *reader, GError **err);

#endif /* HT_VERIFY_TRACE_H */
