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
 * @message: called for what they hold
 * @opaque: for @message
 * @err: set on failure
 *
 * Returns: false on failure
 */
bool ht_ctf_read(GPtrArray *dirs, HtCtfMessage *message, void *opaque,
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

#endif /* HT_CTF_READ_H */
