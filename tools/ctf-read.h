/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces in the Common Trace Format, read with libbabeltrace2
 */
#ifndef HT_CTF_READ_H
#define HT_CTF_READ_H

#include <babeltrace2/babeltrace.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtCtfMessage: called for each message, in the order of time
 * @opaque: as given to ht_ctf_read()
 * @msg: the message, put when this returns
 *
 * Returns: false if no more are wanted
 */
typedef bool HtCtfMessage(void *opaque, const bt_message *msg);

/**
 * HtCtfReader: what is wanted of traces
 * @event: an event
 * @packet: the beginning of a packet
 * @lost_events: discarded events
 * @lost_packets: discarded packets, or NULL
 */
typedef struct HtCtfReader {
    HtCtfMessage *event;
    HtCtfMessage *packet;
    HtCtfMessage *lost_events;
    HtCtfMessage *lost_packets;
} HtCtfReader;

/**
 * ht_ctf_find: look for traces
 * @path: searched for directories with a file "metadata"; links are not
 *        followed
 * @found: they are added here
 * @err: set on failure
 *
 * Returns: false on failure; no trace is none
 */
bool ht_ctf_find(const char *path, GPtrArray *found, GError **err);

/**
 * ht_ctf_read: read traces
 * @dirs: directories with a file "metadata", at least one
 * @reader: called for what they hold
 * @opaque: for @reader
 * @err: set on failure
 *
 * Returns: false on failure
 */
bool ht_ctf_read(GPtrArray *dirs, const HtCtfReader *reader, void *opaque,
                 GError **err);

/**
 * ht_ctf_ns: what a clock showed
 * @snapshot: of the clock
 *
 * Returns: nanoseconds, without the clock's offset: LTTng's clock and ours
 * count CLOCK_MONOTONIC, and only their offsets make a time of day of it
 */
uint64_t ht_ctf_ns(const bt_clock_snapshot *snapshot);

/**
 * ht_ctf_env: what a trace says of itself
 * @trace: the trace
 * @name: what
 *
 * Returns: a text, or NULL if it does not say it
 */
const char *ht_ctf_env(const bt_trace *trace, const char *name);

/**
 * ht_ctf_number: a member of a structure
 * @structure: or NULL
 * @name: of the member
 * @v: set to its value, if it is an integer
 *
 * Returns: whether it is
 */
bool ht_ctf_number(const bt_field *structure, const char *name, int64_t *v);

/**
 * ht_ctf_member: the name of a member
 * @structure: its class
 * @i: number of the member
 */
const char *ht_ctf_member(const bt_field_class *structure, uint64_t i);

/**
 * ht_ctf_unsigned: whether a member is an unsigned integer
 */
bool ht_ctf_unsigned(const bt_field_class *structure, uint64_t i);

/**
 * ht_ctf_unsigned_find: look for an unsigned integer
 * @structure: the class
 * @name: of the member
 * @i: set to its number
 *
 * Returns: whether there is one
 */
bool ht_ctf_unsigned_find(const bt_field_class *structure, const char *name,
                          uint64_t *i);

/**
 * ht_ctf_unsigned_value: of a member that is an unsigned integer
 * @structure: the structure
 * @i: number of the member
 */
uint64_t ht_ctf_unsigned_value(const bt_field *structure, uint64_t i);

/**
 * ht_ctf_is_length: whether a member is nothing but the next one's length
 *
 * libbabeltrace2 2.0 gives a text of no length as the one before it.
 */
bool ht_ctf_is_length(const bt_field_class *structure, uint64_t i);

#endif /* HT_CTF_READ_H */
