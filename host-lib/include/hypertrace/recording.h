/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a recording of an ftrace ring, and reading it again
 *
 * A recording is a directory that is valid at every instant: what the last
 * look of a recorder wrote can be read, however the recorder ended.
 *
 *   info         what was recorded and how (GKeyFile)
 *   formats      tracefs `format` files of the kernel
 *   kallsyms     its symbols
 *   cpuN         what processor N wrote: pieces, each a header of 64 bytes
 *                and records; only appended to
 */
#ifndef HYPERTRACE_RECORDING_H
#define HYPERTRACE_RECORDING_H

#include "hypertrace/ftrace-follow.h"

#define HT_REC_VERSION 1

/* The most that is read of "info" */
#define HT_REC_INFO_MAX (4u << 20)

/* Of more processors' files some are opened each time that they are used. */
#define HT_REC_OPEN_MAX 256u

/**
 * HtRecPieceHeader: before the records of a piece, little-endian
 * @magic: HT_REC_MAGIC
 * The others are HtFtPiece's; @lost is lost_estimate, at most UINT32_MAX.
 */
typedef struct HtRecPieceHeader {
    uint32_t magic;
    uint32_t size;
    uint32_t slot;
    uint32_t from;
    uint64_t stamp;
    uint64_t base_ns;
    uint32_t epoch;
    uint32_t segment;
    uint32_t flags;
    uint32_t lost;
    uint64_t host_before;
    uint64_t host_after;
} HtRecPieceHeader;

#define HT_REC_MAGIC 0x70667468u        /* "htfp" */

typedef struct HtRecWriter HtRecWriter;

/**
 * ht_rec_writer_new: make a recording without events
 * @dir: the directory; made if it is not there.  One that has a recording is
 *       refused, and one of another user.
 * @error: set on failure
 *
 * What is made can be read by its owner alone.
 */
HtRecWriter *ht_rec_writer_new(const char *dir, GError **error);

/**
 * ht_rec_writer_file: write or replace one of the texts
 * @w: the writer
 * @name: info, formats or kallsyms
 * @text: what shall be in it
 * @size: bytes of @text, -1 if it ends with a NUL
 * @error: set on failure; the file is as before then
 *
 * Returns: whether it was written
 */
bool ht_rec_writer_file(HtRecWriter *w, const char *name, const char *text,
                        gssize size, GError **error);

/**
 * ht_rec_writer_piece: append a piece
 * @w: the writer
 * @p: the piece
 * @error: set on failure
 *
 * Kept in memory until ht_rec_writer_flush(), but not more than about 1 MiB
 * of a processor.
 *
 * Returns: false if it could not be written; the recording is valid
 * nevertheless, and nothing more is written for this processor
 */
bool ht_rec_writer_piece(HtRecWriter *w, const HtFtPiece *p, GError **error);

/**
 * ht_rec_writer_flush: write what is kept; call it after each look
 * @w: the writer
 * @error: set on failure
 */
bool ht_rec_writer_flush(HtRecWriter *w, GError **error);

/**
 * ht_rec_writer_bytes: bytes of pieces given so far, headers included
 * @w: the writer
 */
uint64_t ht_rec_writer_bytes(const HtRecWriter *w);

/**
 * ht_rec_writer_discard: remove a recording that has no events
 * @w: the writer; only to be freed afterwards
 *
 * Removes the files that this writer made, and its directory if this writer
 * made that as well.
 */
void ht_rec_writer_discard(HtRecWriter *w);

/**
 * ht_rec_writer_free: flush and close
 * @w: the writer or NULL
 */
void ht_rec_writer_free(HtRecWriter *w);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecWriter, ht_rec_writer_free)

/**
 * ht_rec_host_boot: which boot of this host it is
 *
 * Returns: a text that no other boot has, to be freed; NULL if there is none
 */
char *ht_rec_host_boot(void);

/**
 * ht_rec_info_begin: what a recording's "info" says from the beginning
 * @keys: the "info"
 * @command: what is recorded, for people; or NULL
 * @source: how the memory is read, for people; or NULL
 * @poll_us: between two looks; 0 if the guest is dead
 *
 * Sets where the host's clocks are, too.
 */
void ht_rec_info_begin(GKeyFile *keys, const char *command, const char *source,
                       uint32_t poll_us);

/**
 * ht_rec_info_ring: which ring it is
 * @keys: the "info"
 * @ring: the ring
 */
void ht_rec_info_ring(GKeyFile *keys, const HtFtRing *ring);

/**
 * ht_rec_info_text: where a boot's kernel was
 * @keys: the "info"
 * @epoch: the boot, from 0
 * @text: ht_ft_follow_text(); 0 sets nothing
 */
void ht_rec_info_text(GKeyFile *keys, uint32_t epoch, uint64_t text);

/**
 * ht_rec_info_end: nothing is recorded any more
 * @keys: the "info"
 * @end: why, for people
 * @ns: when, on the host's monotonic clock
 */
void ht_rec_info_end(GKeyFile *keys, const char *end, uint64_t ns);

/**
 * HtRecInfo: what a recording says about itself
 * @keys: all of it: groups "recording", "guest" and "kernel"
 * @formats: text of the formats; NULL if there is none
 * @formats_size: bytes of it
 * @kallsyms: text of the symbols; NULL if there is none
 * @kallsyms_size: bytes of it
 * @cpus: processors: one more than the highest that has a file
 * @subbuf_size: bytes of a page, its header included
 */
typedef struct HtRecInfo {
    GKeyFile *keys;
    char *formats;
    size_t formats_size;
    char *kallsyms;
    size_t kallsyms_size;
    uint32_t cpus;
    uint32_t subbuf_size;
} HtRecInfo;

/**
 * HtRecEvent: an event
 * @ns: the guest's clock
 * @cpu: the processor
 * @epoch: boot of the guest, from 0
 * @segment: of the clock within @epoch, from 0
 * @type: number of its format
 * @flags: common_flags
 * @preempt: common_preempt_count
 * @pid: common_pid
 * @data: the event as its format describes it, common fields included; valid
 *        until the next call
 * @size: bytes of @data, at least HT_FT_EVENT_HEADER
 * @lost_before: events of this processor between the one before and this one
 *               are missing
 * @lost_estimate: about how many; 0 if nothing is known
 * @lost_from_ns: when the last one before the gap was
 */
typedef struct HtRecEvent {
    uint64_t ns;
    uint32_t cpu;
    uint32_t epoch;
    uint32_t segment;
    uint16_t type;
    uint8_t flags;
    uint8_t preempt;
    int32_t pid;
    uint32_t size;
    const uint8_t *data;
    bool lost_before;
    uint64_t lost_estimate;
    uint64_t lost_from_ns;
} HtRecEvent;

/**
 * HtRecPage: a page of a processor's ring
 * @stamp: its time stamp
 * @data: its records; valid until the next call
 * @size: bytes of them
 * @epoch: as HtRecEvent's
 * @segment: as HtRecEvent's
 * @events: how many events are in it
 * @lost_before: as HtRecEvent's
 * @lost_estimate: as HtRecEvent's
 * @host_before: as HtFtPiece's, of the first piece in it
 * @host_after: of the first piece in it
 */
typedef struct HtRecPage {
    uint64_t stamp;
    const uint8_t *data;
    uint32_t size;
    uint32_t epoch;
    uint32_t segment;
    uint32_t events;
    bool lost_before;
    uint64_t lost_estimate;
    uint64_t host_before;
    uint64_t host_after;
} HtRecPage;

typedef struct HtRecording HtRecording;

/**
 * ht_rec_open: open a recording for reading
 * @dir: its directory
 * @error: set on failure
 *
 * One that is being written can be read: what is there so far.  A file that
 * cannot be read, is none (a FIFO, a device) or is too large, is an error; one
 * that is not there was not written.
 */
HtRecording *ht_rec_open(const char *dir, GError **error);

/**
 * ht_rec_close: close it
 * @r: the recording or NULL
 */
void ht_rec_close(HtRecording *r);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecording, ht_rec_close)

/**
 * ht_rec_info: what it says about itself
 * @r: the recording
 */
const HtRecInfo *ht_rec_info(HtRecording *r);

/**
 * ht_rec_next: the next event of all processors
 * @r: the recording
 * @ev: set if there is one
 *
 * Ordered by epoch, segment and time; events of one processor stay in its
 * order.  Memory does not grow with the recording.
 *
 * Returns: false at the end
 */
bool ht_rec_next(HtRecording *r, HtRecEvent *ev);

/**
 * ht_rec_next_page: the next page of one processor
 * @r: the recording
 * @cpu: the processor
 * @p: set if there is one
 *
 * Pieces of a page are put together.  A page in which the clock stepped back
 * comes in two, the second one beginning where it did.  Not to be mixed with
 * ht_rec_next() without ht_rec_rewind().
 *
 * Returns: false at the end
 */
bool ht_rec_next_page(HtRecording *r, uint32_t cpu, HtRecPage *p);

/**
 * ht_rec_rewind: read it from its beginning again
 * @r: the recording
 *
 * Sees what was appended meanwhile.
 */
void ht_rec_rewind(HtRecording *r);

/**
 * ht_rec_next_piece: the next piece of one processor as it was recorded
 * @r: the recording
 * @cpu: the processor
 * @p: set if there is one; data are valid until the next call.  @p.lost_from_ns
 *     is the end of the piece before.
 *
 * For the relation of the clocks.  Not to be mixed with the others without
 * ht_rec_rewind().
 *
 * Returns: false at the end
 */
bool ht_rec_next_piece(HtRecording *r, uint32_t cpu, HtFtPiece *p);

/**
 * ht_rec_damaged: bytes that were skipped because they are no pieces
 * @r: the recording; read to its end
 */
uint64_t ht_rec_damaged(const HtRecording *r);

/**
 * ht_rec_unread: bytes at the ends of files that are no whole piece
 * @r: the recording; read to its end
 *
 * A recorder that is killed leaves such bytes.  A recorder that ends leaves
 * none.
 */
uint64_t ht_rec_unread(const HtRecording *r);

/**
 * ht_rec_error: why a file could not be read to its end
 * @r: the recording
 *
 * Returns: the first errno, 0 if there was none
 */
int ht_rec_error(const HtRecording *r);

#endif /* HYPERTRACE_RECORDING_H */
