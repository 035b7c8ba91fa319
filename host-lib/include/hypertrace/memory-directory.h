/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write and read the directory that a host keeps in stream memory,
 * for its successor
 *
 * The directory is a part of stream memory that guests should not touch.  A
 * host never reads back what it has written there.  The host's successor, or
 * `hypertrace recover`, copies each part of the directory once and checks the
 * copy, because the guest may have written there.
 *
 * Each change ends with the store of one value that publishes the change.  If
 * the host is killed before this store, its successor does not use the change.
 * The values are:
 *
 *   a class    number of bytes of all classes; stored before the guest gets the
 *              class's id
 *   a stream   the instance; stored before the guest's STREAM_OPEN is OK
 *   a clock    number of the clock; clocks are written to two places in turn
 *   discards   number of discarded events that no trace has reported
 */
#ifndef HYPERTRACE_MEMORY_DIRECTORY_H
#define HYPERTRACE_MEMORY_DIRECTORY_H

#include "hypertrace/streams.h"

/*
 * Maximum size of all classes of a guest in bytes; also the maximum of the
 * device's property class-bytes
 */
#define HT_DIRECTORY_CLASSES    (1u << 20)

/* Offset of the classes in the directory, after the streams and clocks */
#define HT_DIRECTORY_HEAD       HT_MAP_ALIGN
#define HT_DIRECTORY_SIZE       (HT_DIRECTORY_HEAD + HT_DIRECTORY_CLASSES)

/**
 * HtDirectory: the directory, as its host uses it
 * @base: address of the directory
 * @class_bytes: private copy of the published number of bytes of all classes
 * @clocks: private copy of the published number of the clock
 * @clock: the clock that this host wrote last; all 0 before that
 */
typedef struct HtDirectory {
    uint8_t *base;
    uint64_t class_bytes;
    uint64_t clocks;
    HtTimeSegment clock;
} HtDirectory;

/**
 * ht_directory_clear: remove all classes, streams and clocks, and store the
 * present ht_wall_offset()
 * @d: the directory
 * @discarded: the number of discarded events that no trace has reported yet;
 *     stored before the streams are removed, because it may include events of
 *     these streams: a host that is killed in this function loses none
 */
void ht_directory_clear(HtDirectory *d, uint64_t discarded);

/**
 * ht_directory_add_class: add a class
 * @d: the directory, which has all classes with lower ids
 * @c: the class
 *
 * The caller limits its class table to HT_DIRECTORY_CLASSES bytes.  A class for
 * which there is no room is left out.
 */
void ht_directory_add_class(HtDirectory *d, const HtClass *c);

/*
 * ht_directory_set_stream: store the open instance of a stream, and the host
 * time in ns at which it was opened
 */
void ht_directory_set_stream(HtDirectory *d, const HtStreamInfo *info,
                             uint64_t opened_ns);

/*
 * ht_directory_set_clock: store the newest segment of a time map, if it differs
 * from the segment that this host stored last
 */
void ht_directory_set_clock(HtDirectory *d, const HtTimeSegment *s);

/*
 * ht_directory_set_discarded: store @count, the argument of
 * HtServerOps.unreported: the number of discarded events that no trace has
 * reported yet
 */
void ht_directory_set_discarded(HtDirectory *d, uint64_t count);

/*
 * ht_directory_discarded: get the count that the previous host stored; not
 * checked
 */
uint64_t ht_directory_discarded(const HtDirectory *d);

/*
 * ht_directory_wall_offset: get CLOCK_REALTIME minus CLOCK_MONOTONIC of the
 * previous host, in ns; not checked
 */
int64_t ht_directory_wall_offset(const HtDirectory *d);

/**
 * ht_directory_classes: copy the classes of the previous host
 * @d: the directory, before anything is written to it
 *
 * Returns: bytes in the form of ht_class_table_save(); not checked
 */
GByteArray *ht_directory_classes(HtDirectory *d);

/**
 * ht_directory_clock: copy the clock of the previous host
 * @d: the directory, before anything is written to it
 * @seg: set to the segment; its values are not checked
 *
 * Returns: false if that host knew no clock
 */
bool ht_directory_clock(HtDirectory *d, HtTimeSegment *seg);

/**
 * ht_directory_stream: copy the description of a stream's last instance
 * @d: the directory
 * @stream: index of the stream
 * @in: @in->info and @in->opened_ns are filled in
 *
 * Returns: false if the description is not valid
 */
bool ht_directory_stream(const HtDirectory *d, uint32_t stream,
                         HtInherited *in);

#endif /* HYPERTRACE_MEMORY_DIRECTORY_H */
