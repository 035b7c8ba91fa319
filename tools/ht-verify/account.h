/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: check and count the events of all traces below a directory
 */
#ifndef HT_VERIFY_ACCOUNT_H
#define HT_VERIFY_ACCOUNT_H

#include "latency.h"
#include "trace.h"
#include "workload.h"

/**
 * Row: counters for the events of one class in one stream
 * @name: name of the class
 * @checked: the class has a name of ht-bench, so its events were checked
 * @recorded: number of events
 * @altered: events with a wrong field, or without the fields of ht-bench
 * @latency: distribution of the times from an event in the guest until LTTng
 *           recorded it; empty with TRACE_CTF
 */
typedef struct Row {
    char *name;
    bool checked;
    uint64_t recorded;
    uint64_t altered;
    Latency latency;
} Row;

/**
 * Recorded: what is kept of an event to compare two traces
 */
typedef struct Recorded {
    uint64_t guest_ns;
    /* result of compare_hash() */
    uint64_t hash;
} Recorded;

/**
 * Stream: counters for the events of a stream.  If the trace distinguishes
 * instances, each instance has a Stream of its own
 * @kind: kind of the trace
 * @device: name of the device
 * @index: index of the stream in the device
 * @instance: number of the instance, or 0
 * @rows: of Row, one for each class
 * @recorded: number of events
 * @altered: sum of Row.altered
 * @sequenced: number of different sequence numbers of ht-bench that events had;
 *             numbers from 2^30 on are left out
 * @first_seq: lowest sequence number
 * @last_seq: highest sequence number
 * @duplicates: events with a sequence number that an earlier event had
 * @disordered: sequence numbers, not seen before, that are lower than the
 *              previous number that was not seen before
 * @backward: events whose time is before that of the previous event
 * @discarded: discarded events, as the device reports them in the trace
 * @latency: latency of all classes
 * @list: of Recorded, with --compare; else NULL
 */
typedef struct Stream {
    TraceKind kind;
    char *device;
    uint32_t index;
    uint64_t instance;
    GPtrArray *rows;
    uint64_t recorded;
    uint64_t altered;
    uint64_t sequenced;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t duplicates;
    uint64_t disordered;
    uint64_t backward;
    uint64_t discarded;
    Latency latency;
    GArray *list;
    /*< private >*/
    uint64_t previous_seq;
    uint64_t previous_ns;
    /* with TRACE_LTTNG: TraceLoss.total of the previous report of losses */
    uint64_t previous_total;
    bool has_total;             /* @previous_total is valid */
    /* bitmap: bit n is set if an event had the sequence number n */
    GByteArray *seen;
} Stream;

/**
 * Account: counters for all traces of a directory
 * @path: the directory
 * @traces: number of traces
 * @streams: of Stream
 * @channels: numbers of events in @discarded, by TraceLoss.channel
 * @discarded: events that LTTng discarded, or the tracer of a trace that is
 *             TRACE_OTHER
 * @discarded_packets: packets that these tracers discarded; the number of
 *                     events in them is not known
 * @unknown: these tracers discarded further events or packets without counting
 *           them
 * @problems: of char *: messages about failed checks; the number of messages
 *            about single events is bounded
 */
typedef struct Account {
    char *path;
    int traces;
    GPtrArray *streams;
    GHashTable *channels;
    uint64_t discarded;
    uint64_t discarded_packets;
    bool unknown;
    GPtrArray *problems;
    /*< private >*/
    bool keep;
    Stream *last;               /* stream of the previous event or loss */
    /* number of calls of report_event() */
    unsigned reported;
} Account;

/**
 * account_read: read and check every trace in a directory and below it
 * @path: the directory
 * @keep: fill Stream.list, for compare()
 * @err: set if a trace cannot be read, or if @path has no trace
 *
 * Returns: the account, for account_free(); NULL on failure
 */
Account *account_read(const char *path, bool keep, GError **err);
void account_free(Account *a);

/**
 * account_problem: append a message about a failed check to Account.problems
 */
void account_problem(Account *a, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/**
 * account_missing: count the sequence numbers up to @s->last_seq that no
 * event had
 */
uint64_t account_missing(const Stream *s);

/**
 * account_lossless: append a message for each stream with missing or discarded
 * events, and one if Account.discarded or discarded_packets is not 0 or
 * Account.unknown is set
 */
void account_lossless(Account *a);

#endif /* HT_VERIFY_ACCOUNT_H */
