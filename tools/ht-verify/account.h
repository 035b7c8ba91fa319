/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: what was recorded, added up
 */
#ifndef HT_VERIFY_ACCOUNT_H
#define HT_VERIFY_ACCOUNT_H

#include "latency.h"
#include "trace.h"
#include "workload.h"

/**
 * Row: the events of one class in one stream
 * @name: of the class
 * @checked: of ht-bench, so that every field was compared
 * @recorded: events
 * @altered: events with a field that is not what it should be
 * @latency: from emit to LTTng's record
 */
typedef struct Row {
    char *name;
    bool checked;
    uint64_t recorded;
    uint64_t altered;
    Latency latency;
} Row;

/**
 * Recorded: one event as the comparison of traces sees it
 */
typedef struct Recorded {
    uint64_t guest_ns;
    uint64_t hash;              /* of class and fields */
} Recorded;

/**
 * Stream: the events of a stream; of an instance if the trace tells them apart
 * @device, @index, @instance, @kind: which
 * @rows: Row, by class
 * @recorded: events
 * @altered: sum over @rows
 * @sequenced: events that carry ht-bench's sequence number
 * @first_seq, @last_seq: lowest, highest
 * @duplicates: sequence numbers seen before
 * @disordered: lower than the one before, and not seen before
 * @backward: events dated before their predecessor
 * @discarded: as the device says in the trace
 * @latency: over all classes
 * @list: Recorded, if traces are to be compared
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
    uint64_t previous_total;    /* TRACE_LTTNG: TraceLoss.total */
    bool told;                  /* it is known */
    GByteArray *seen;           /* a bit a sequence number */
} Stream;

/**
 * Account: all of a trace directory
 * @streams: Stream
 * @channels: LTTng's channels: events discarded, by name
 * @discarded: by LTTng
 * @discarded_packets: by LTTng, the number of their events not known
 * @unknown: LTTng discarded events and does not say how many
 * @foreign: events that are not ours
 * @problems: char *, what is wrong, for people; the first few of each kind
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
    Stream *last;
    unsigned told;
} Account;

/**
 * account_read: read and check every trace below a directory
 * @path: the directory
 * @keep: fill Stream.list
 * @err: set on failure: the traces cannot be read
 *
 * Returns: to be freed with account_free(); NULL on failure
 */
Account *account_read(const char *path, bool keep, GError **err);
void account_free(Account *a);

/**
 * account_problem: note something that is wrong
 */
void account_problem(Account *a, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/**
 * account_missing: sequence numbers below a stream's highest that it lacks
 */
uint64_t account_missing(const Stream *s);

/**
 * account_lossless: note everything that is missing as a problem
 */
void account_lossless(Account *a);

#endif /* HT_VERIFY_ACCOUNT_H */
