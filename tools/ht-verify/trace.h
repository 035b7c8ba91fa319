/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: read traces with libbabeltrace2
 */
#ifndef HT_VERIFY_TRACE_H
#define HT_VERIFY_TRACE_H

#include <babeltrace2/babeltrace.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum TraceKind {
    TRACE_OTHER,                /* a trace without hypertrace's events */
    /*
     * recorded by LTTng: a device's events have the fields stream, vcpu,
     * guest_ns
     */
    TRACE_LTTNG,
    TRACE_CTF,
} TraceKind;

/**
 * TraceClass: an event class of a trace
 * @kind: kind of the trace; TRACE_OTHER also for those classes of a trace of
 *        LTTng that are not hypertrace's
 * @device: name of the hypertrace device
 * @name: name without the device
 * @fields: class of the payload; NULL if events have no payload
 * @stream_field: index of the field "stream" (TRACE_LTTNG)
 * @guest_ns_field: index of the field "guest_ns" (TRACE_LTTNG)
 * @discarded: events of the class report that events of a stream were discarded
 *             (TRACE_LTTNG)
 * @events_field: with @discarded: index of the field with the number of events
 *                discarded since the previous report
 * @total_field: with @discarded: index of the field with the number of events
 *               discarded since the stream was opened
 * @user: for use by the TraceReader; freed by g_free()
 *
 * Classes and their strings are valid until trace_read() returns.
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
 * @stream: index of the stream in the device
 * @instance: instance of the stream; 0 if not known (TRACE_LTTNG)
 * @guest_ns: time in ns at which the guest emitted it, converted to the host's
 *            CLOCK_MONOTONIC
 * @delivered_ns: time in ns at which LTTng recorded it, by the host's
 *                CLOCK_MONOTONIC; 0 in TRACE_CTF
 * @payload: a structure; NULL without fields
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
 * TraceLoss: a report of a tracer or of the device about discarded events
 * @kind: kind of the trace
 * @device: name of the device that discarded events; NULL: LTTng did, or the
 *          tracer of a trace that is TRACE_OTHER
 * @channel: if @device is NULL, LTTng's channel, or the name that the trace of
 *           another tracer gives to the stream, without numbers at its end
 * @stream: index of the device's stream
 * @instance: instance of the device's stream; 0 in TRACE_LTTNG
 * @events: number of discarded events
 * @total: events that the device has discarded since the stream was opened; 0
 *         if not known (TRACE_CTF)
 * @packets: number of discarded packets
 * @unknown: the number of events or packets is not known
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
 * trace_read: read all traces in a directory and below it together, in the
 * order of time
 * @dir: a trace, or searched for directories with a file "metadata"
 * @reader: its functions are called for each event of hypertrace and for each
 *          loss; a device's report about discarded events is a loss, not an
 *          event
 * @err: set on failure
 *
 * Returns: the number of traces; -1 on failure, or if there is no trace
 */
int trace_read(const char *dir, const TraceReader *reader, GError **err);

#endif /* HT_VERIFY_TRACE_H */
