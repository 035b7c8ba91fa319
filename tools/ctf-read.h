/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read traces in the Common Trace Format with libbabeltrace2
 */
#ifndef HT_CTF_READ_H
#define HT_CTF_READ_H

#include <babeltrace2/babeltrace.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtCtfMessage: handle a message; messages come in the order of time
 * @opaque: argument of ht_ctf_read()
 * @msg: the message; the caller drops the reference afterwards
 *
 * Returns: false to stop reading
 */
typedef bool HtCtfMessage(void *opaque, const bt_message *msg);

/**
 * HtCtfReader: functions that handle messages; messages for which the function
 * is NULL are skipped
 * @event: called for an event
 * @packet: called for the beginning of a packet
 * @lost_events: called for discarded events
 * @lost_packets: called for discarded packets
 */
typedef struct HtCtfReader {
    HtCtfMessage *event;
    HtCtfMessage *packet;
    HtCtfMessage *lost_events;
    HtCtfMessage *lost_packets;
} HtCtfReader;

/**
 * ht_ctf_find: find the traces in a directory and below it
 * @path: a directory. If it has a file "metadata", it is a trace, and is not
 *        searched further; if not, the directories in it are searched likewise,
 *        without links
 * @found: paths are appended
 * @err: set on failure
 *
 * Returns: false on failure; true also if there is no trace
 */
bool ht_ctf_find(const char *path, GPtrArray *found, GError **err);

/**
 * ht_ctf_read: read traces
 * @dirs: directories with a file "metadata", at least one
 * @reader: functions to call
 * @opaque: argument of these functions
 * @err: set on failure
 *
 * Returns: false on failure; true also if a function stopped the reading
 */
bool ht_ctf_read(GPtrArray *dirs, const HtCtfReader *reader, void *opaque,
                 GError **err);

/**
 * ht_ctf_ns: convert a clock snapshot to nanoseconds
 * @snapshot: the snapshot
 *
 * Returns: nanoseconds without the clock's offset. In LTTng's traces, and in
 * those of hypertrace with the host's clock, this is CLOCK_MONOTONIC. With the
 * offset, the result would be a time of day.
 */
uint64_t ht_ctf_ns(const bt_clock_snapshot *snapshot);

/**
 * ht_ctf_env: get a string from the environment of a trace
 * @trace: the trace
 * @name: name of the entry
 *
 * Returns: the string; NULL if the environment has no string of that name
 */
const char *ht_ctf_env(const bt_trace *trace, const char *name);

/**
 * ht_ctf_number: get an integer from a structure
 * @structure: the structure or NULL
 * @name: name of the member
 * @v: set to its value; a value above INT64_MAX becomes INT64_MAX
 *
 * Returns: false if there is no integer of that name
 */
bool ht_ctf_number(const bt_field *structure, const char *name, int64_t *v);

/**
 * ht_ctf_member: get the name of a member
 * @structure: class of the structure
 * @i: index of the member
 */
const char *ht_ctf_member(const bt_field_class *structure, uint64_t i);

/**
 * ht_ctf_unsigned_find: find a member that is an unsigned integer
 * @structure: class of the structure
 * @name: name of the member
 * @i: set to its index; changed also if the function returns false
 *
 * Returns: false if there is no unsigned integer of that name
 */
bool ht_ctf_unsigned_find(const bt_field_class *structure, const char *name,
                          uint64_t *i);

/**
 * ht_ctf_unsigned_value: get the value of an unsigned integer
 * @structure: the structure
 * @i: index of the member, from ht_ctf_unsigned_find()
 */
uint64_t ht_ctf_unsigned_value(const bt_field *structure, uint64_t i);

/**
 * ht_ctf_is_length: whether a member holds the length of the next one, because
 * it is an unsigned integer with the name _NAME_length before the member NAME
 * @structure: class of the structure
 * @i: index of the member
 *
 * A caller that reads a string needs the value of its length member, because
 * for an empty string libbabeltrace2 2.0 returns the bytes of the previous
 * string.
 */
bool ht_ctf_is_length(const bt_field_class *structure, uint64_t i);

#endif /* HT_CTF_READ_H */
