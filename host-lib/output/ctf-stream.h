/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write one stream instance of a CTF trace
 */
#ifndef HYPERTRACE_CTF_STREAM_H
#define HYPERTRACE_CTF_STREAM_H

#include "hypertrace/run.h"

/*
 * Maximum size in bytes of a packet with several runs.  A larger run gets a
 * packet of its own.  Exception: a run that does not begin later than the open
 * packet is added to that packet, whatever the size.
 */
#define HT_CTF_PACKET_SIZE      (64 * 1024)

/*
 * Usual sizes in bytes of a stream instance's first file and of its largest
 * files.  Each new file is twice as large as the previous one until it has
 * HT_CTF_FILE_MAX.  A file is larger if one packet needs more.
 */
#define HT_CTF_FILE_MIN         (1024 * 1024)
#define HT_CTF_FILE_MAX         (64 * 1024 * 1024)

/* Start of the name of a stream's file: index and instance of the stream */
#define HT_CTF_STREAM_FILE      "stream-%03" PRIu32 "-%06" PRIu64

/*
 * Number of runs after which the stream checks whether its file still exists,
 * even if the guest's time does not advance.
 */
#define HT_CTF_CHECK_RUNS       64

/*
 * Packet header and context, as ctf-metadata.c describes them; little-endian.
 *
 * While a packet grows, a reader of the live trace may see only the first
 * members changed.  For this reason timestamp_end is before content_bits: an
 * end that is too late is harmless.
 */
typedef struct HtCtfHeader {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t instance;
    uint64_t timestamp_end;
    uint64_t timestamp_begin;
    uint64_t counter;
    uint64_t discarded;
    uint64_t seq;
    /*
     * HtRun.total of the last run in which it is not 0, and the largest
     * HtRun.lost up to this packet, for the stream's next recorder
     */
    uint64_t total;
    uint64_t lost;
    int32_t cpu;
    uint32_t stream;
    uint64_t content_bits;
    uint64_t packet_bits;
} HtCtfHeader;

G_STATIC_ASSERT(sizeof(HtCtfHeader) == 112);

/**
 * HtCtfStream: a stream instance; the caller serializes calls
 *
 * At every instant, the file consists of whole packets.  The last one, the open
 * packet, covers the rest of the file; its content grows in place.
 */
typedef struct HtCtfStream {
    int dirfd;
    HtStreamInfo info;
    bool open;

    int fd;                     /* -1: the next packet needs a new file */
    /* event time at which the existence of the file was last checked, in ns */
    uint64_t checked_ns;
    /* number of runs since the existence of the file was last checked */
    unsigned unchecked;
    /* number of files of this stream instance so far */
    unsigned part;
    uint64_t size;
    uint64_t start;             /* offset in the file of the open packet */
    HtCtfHeader h;              /* copy of the open packet's header */

    /* event time in ns before which no further run may begin */
    uint64_t last_ns;
    uint64_t base;              /* HtRun.discarded when the stream was opened */
    uint64_t upstream;          /* HtRun.discarded of the last run */
    uint64_t dropped;
    /* at least one event was written to the stream */
    bool any;
    /* no run was written since the opening, or since a run was dropped */
    bool cut;
} HtCtfStream;

/**
 * ht_ctf_stream_open: start a stream instance
 * @s: closed or zeroed stream
 * @dirfd: directory of the trace; the caller keeps ownership
 * @uuid: UUID of the trace
 * @run: the HT_RUN_OPEN run
 *
 * Returns: 0, or -errno if the file could not be made; the stream is open in
 * both cases, and each ht_ctf_stream_append() tries again
 */
int ht_ctf_stream_open(HtCtfStream *s, int dirfd, const uint8_t uuid[16],
                       const HtRun *run);

/**
 * ht_ctf_stream_append: write a run
 * @s: open stream
 * @run: events
 *
 * When it returns 0, readers can read the events, which survive the end of the
 * process, unless the file was deleted or truncated since the last check.
 *
 * Returns: 0, or -errno: the run was dropped and its events are counted in
 * @s->dropped and, as soon as something can be written, in the trace.
 * -EINVAL: the run begins before the end of the last run that was written
 */
int ht_ctf_stream_append(HtCtfStream *s, const HtRun *run);

/**
 * ht_ctf_stream_close: write the final count of discarded events, close the
 * file
 * @s: open stream
 * @run: the HT_RUN_CLOSE run; NULL if the writer ends, or the stream is opened
 *       anew, without such a run
 *
 * Returns: 0, or -errno if the count could not be written
 */
int ht_ctf_stream_close(HtCtfStream *s, const HtRun *run);

#endif /* HYPERTRACE_CTF_STREAM_H */
