/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: execute the control messages of one guest
 *
 * The caller passes a private copy of the messages.  This code checks each
 * message, executes it, and overwrites it with the reply.
 *
 * Context: the caller serializes all calls for one HtControl.
 */
#ifndef HYPERTRACE_CONTROL_H
#define HYPERTRACE_CONTROL_H

#include "hypertrace/enable.h"
#include "hypertrace/streams.h"

/*
 * Time in ns from the start of an exchange after which further registrations
 * of the exchange are answered with BUSY
 */
#define HT_CONTROL_TURN_NS  INT64_C(50000)

/**
 * ht_caps_swap: convert capabilities between the host's and the guest's byte
 * order
 * @to: set to the converted capabilities
 * @from: the capabilities
 */
void ht_caps_swap(struct ht_caps *to, const struct ht_caps *from);

/**
 * HtControlOps: callbacks for the part of the work that the owner does
 * @added: called after a class was registered for the first time
 * @open: execute HT_MSG_STREAM_OPEN: check what the owner needs to check, then
 *        call ht_streams_open(); @info has the name and the vCPU, both valid.
 *        NULL: only ht_streams_open() is called
 * @sync: execute HT_MSG_TIME_SYNC
 * @takeover: execute HT_MSG_TAKEOVER; NULL: only ht_streams_want_close_all() is
 *            called
 * @error: log a fault of the guest
 * @done: called after each message that was executed, also if it failed; for
 *        trace points; may be NULL
 *
 * Each message passed to @open or @sync has the size that its type requires.
 * The callback writes the reply into the message.
 */
typedef struct HtControlOps {
    void (*added)(void *opaque, HtClass *c);
    enum ht_status (*open)(void *opaque, struct ht_msg_open *m,
                           const HtStreamInfo *info);
    enum ht_status (*sync)(void *opaque, struct ht_msg_time *m);
    void (*takeover)(void *opaque);
    void (*error)(void *opaque, const char *fmt, va_list ap)
        G_GNUC_PRINTF(2, 0);
    void (*done)(void *opaque, unsigned type, size_t size,
                 enum ht_status status);
} HtControlOps;

/**
 * HtControl: executor of one guest's messages
 * @classes: the table of classes
 * @enable: which classes are on, and the settings for the guest
 * @streams: the streams; the executor is their control context, see streams.h
 * @gone: the device is being removed: a message with a valid size is not
 *        executed, and fails with HT_STATUS_IO
 * @errors: number of faults of the guest, except those of its streams' data;
 *          atomic, and the owner may add its own
 * @ops: the callbacks
 * @opaque: first argument of the callbacks
 */
typedef struct HtControl {
    HtClassTable *classes;
    HtEnable *enable;
    HtStreams *streams;
    bool gone;
    uint64_t errors;
    const HtControlOps *ops;
    void *opaque;
} HtControl;

/**
 * ht_control_exchange: execute one control message, or several registrations
 * @c: the executor
 * @msgs: a private copy of the request; the replies overwrite it.  It has room
 *        for HT_MESSAGE_MAX bytes, also if @size is less
 * @size: bytes of the request, according to the guest; any value is allowed.
 *        More than HT_MAILBOX_SIZE for registrations, or HT_MESSAGE_MAX for
 *        another message, fails with HT_STATUS_INVAL
 *
 * Of several registrations, at least the first is executed, and further ones
 * for HT_CONTROL_TURN_NS.  The rest is answered with BUSY and not executed; the
 * guest sends these messages again.
 *
 * Returns: bytes of the replies, a header at least
 */
size_t ht_control_exchange(HtControl *c, void *msgs, size_t size);

/**
 * ht_control_stats: get the counters of a stream, or of all
 * @c: the executor
 * @stream: HT_STREAM_ANY for the sum of all instances of all streams; else a
 *          stream's open instance, or its last one
 * @stats: filled in, in the host's byte order
 *
 * Returns: false if there is no such stream
 *
 * Context: any thread
 */
bool ht_control_stats(const HtControl *c, uint32_t stream,
                      struct ht_stats *stats);

#endif /* HYPERTRACE_CONTROL_H */
