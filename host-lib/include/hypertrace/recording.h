/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write and read recordings of ftrace rings
 *
 * A recording is a directory.  It can be read once it has the file "info", also
 * while it is being written or after its recorder was killed: readers ignore an
 * incomplete piece at the end of a file.
 *
 *   info         description of the recording (GKeyFile)
 *   formats      tracefs `format` files of the kernel
 *   kallsyms     symbols of the kernel
 *   cpuN         pieces of processor N, each a header of 64 bytes followed by
 *                records; whole pieces never change
 *   host/        with `record --host`: a recording of the host's kernel, with
 *                more text files (tools/hypertrace/host/host-record.h)
 *   programs/    with `record --programs`: a CTF trace of the guest's programs
 *   log          the kernel's log, if its memory could be read: see
 *                recording-log.h
 */
#ifndef HYPERTRACE_RECORDING_H
#define HYPERTRACE_RECORDING_H

#include "hypertrace/ftrace-follow.h"

#define HT_REC_VERSION 1

/* Maximum size of "info" in bytes */
#define HT_REC_INFO_MAX (4u << 20)

/*
 * The files of processors 0 to HT_REC_OPEN_MAX - 1 stay open; the file of a
 * higher processor is opened for each access
 */
#define HT_REC_OPEN_MAX 256u

/**
 * HtRecPieceHeader: header that precedes the records of a piece, little-endian
 * @magic: HT_REC_MAGIC
 * @lost: HtFtPiece.lost_estimate, at most UINT32_MAX
 *
 * The other members are those of HtFtPiece.
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

/* Limits of the size of a queue in bytes */
#define HT_REC_QUEUE_MIN (UINT64_C(1) << 20)
#define HT_REC_QUEUE_MAX (UINT64_C(64) << 30)

typedef struct HtRecQueue HtRecQueue;

/**
 * ht_rec_queue_new: create a queue, which keeps the newest pieces in memory
 * @size: size in bytes, HT_REC_QUEUE_MIN to HT_REC_QUEUE_MAX
 * @error: set if there is too little address space
 *
 * Memory is used as pieces arrive: at most @size, and some bytes for each
 * processor.
 *
 * Returns: the queue, for ht_rec_queue_free(); or NULL
 */
HtRecQueue *ht_rec_queue_new(uint64_t size, GError **error);

/**
 * ht_rec_queue_free: free a queue
 * @q: the queue or NULL
 */
void ht_rec_queue_free(HtRecQueue *q);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecQueue, ht_rec_queue_free)

/**
 * ht_rec_queue_push: add a copy of a piece
 * @q: the queue
 * @p: the piece
 *
 * Removes the oldest pieces until there is room.  A piece that would not even
 * fit into the empty queue is dropped.
 */
void ht_rec_queue_push(HtRecQueue *q, const HtFtPiece *p);

/**
 * ht_rec_queue_each: visit all pieces, the oldest first
 * @q: the queue
 * @visit: called for each piece, which is valid during the call only; returns
 *         false to stop.  The first piece of a processor whose earlier pieces
 *         were removed has the flag HT_FT_PIECE_LATE, and no gap before it.
 * @opaque: passed to @visit
 *
 * Returns: false if @visit returned false
 */
bool ht_rec_queue_each(const HtRecQueue *q,
                       bool (*visit)(void *opaque, const HtFtPiece *p),
                       void *opaque);

/**
 * ht_rec_queue_events: get the number of events in the queue's pieces
 * @q: the queue
 */
uint64_t ht_rec_queue_events(const HtRecQueue *q);

/**
 * ht_rec_queue_bytes: get the number of bytes that the queue's pieces take
 * @q: the queue
 *
 * Returns: at most the queue's size
 */
uint64_t ht_rec_queue_bytes(const HtRecQueue *q);

/**
 * ht_rec_make_dir: create a directory for a recording, with its parents
 * @dir: the directory; may exist
 * @made: set to the number of directories that did not exist before: @dir and
 *        its nearest parents
 *
 * Only the owner has access to new directories.
 *
 * Returns: false on failure, with errno; @made is set then as well
 */
bool ht_rec_make_dir(const char *dir, unsigned *made);

/**
 * ht_rec_remove_dir: remove the directories that ht_rec_make_dir() created
 * @dir: the directory
 * @made: as set by ht_rec_make_dir()
 *
 * A directory that is not empty stays.
 */
void ht_rec_remove_dir(const char *dir, unsigned made);

typedef struct HtRecWriter HtRecWriter;

/**
 * ht_rec_writer_new: create a recording without events
 * @dir: the directory; created if it does not exist.  A directory is refused if
 *       it has a recording, or a file "formats", "kallsyms" or "log", or if it
 *       belongs to another user.
 * @error: set on failure
 *
 * Only the owner can read the files.
 *
 * Returns: the writer, for ht_rec_writer_free(); or NULL
 */
HtRecWriter *ht_rec_writer_new(const char *dir, GError **error);

/**
 * ht_rec_writer_new_fd: create a recording in an open directory
 * @fd: the directory, or -1 with errno set if it could not be opened; the
 *      writer closes it, also on failure
 * @dir: its name, for messages
 * @error: set on failure, as by ht_rec_writer_new()
 *
 * A process that can no longer open @dir by its name uses this.
 */
HtRecWriter *ht_rec_writer_new_fd(int fd, const char *dir, GError **error);

/**
 * ht_rec_writer_new_memory: make a recording in memory
 * @size: maximum number of bytes of all pieces, as for ht_rec_queue_new()
 * @error: set on failure
 *
 * The oldest pieces are removed to make room for new ones, and the last 2 to 4
 * MiB of the kernel's log are kept.  Nothing is written to a disk until
 * ht_rec_writer_save().
 */
HtRecWriter *ht_rec_writer_new_memory(uint64_t size, GError **error);

/**
 * ht_rec_writer_save: copy a recording from memory to another writer
 * @w: writer from ht_rec_writer_new_memory(); keeps its content
 * @to: writer of a recording without pieces
 * @error: set on failure; @to then has a part of the recording
 *
 * Returns: true if all was written
 */
bool ht_rec_writer_save(const HtRecWriter *w, HtRecWriter *to, GError **error);

/**
 * ht_rec_writer_held: get the number of events of a recording in memory
 * @w: the writer
 *
 * Returns: the number; 0 if the recording is in files
 */
uint64_t ht_rec_writer_held(const HtRecWriter *w);

/**
 * ht_rec_writer_file: write or replace one of the text files
 * @w: the writer
 * @name: name of the file, for example "info", "formats" or "kallsyms"
 * @text: the new content
 * @size: size of @text in bytes; -1 if it is NUL-terminated
 * @error: set on failure; the file then keeps its old content
 *
 * Returns: true if the file was written
 */
bool ht_rec_writer_file(HtRecWriter *w, const char *name, const char *text,
                        gssize size, GError **error);

/**
 * ht_rec_writer_prepare: do the long part of ht_rec_writer_file(): write the
 * file under another name, unless the recording is in memory
 * @w: the writer
 * @name: name of the file
 * @text: the new content
 * @error: set on failure
 *
 * Returns: false if the file could not be written
 *
 * Context: any thread, also while other threads use @w; not for two contents
 * of one file at a time
 */
bool ht_rec_writer_prepare(const HtRecWriter *w, const char *name,
                           GBytes *text, GError **error);

/**
 * ht_rec_writer_commit: let a prepared file replace the previous one
 * @w: the writer
 * @name: as for ht_rec_writer_prepare()
 * @text: as for ht_rec_writer_prepare(), which returned true
 * @error: set on failure; the file then keeps its old content
 *
 * Returns: true if the file was replaced
 */
bool ht_rec_writer_commit(HtRecWriter *w, const char *name, GBytes *text,
                          GError **error);

/**
 * ht_rec_writer_log: append lines to the kernel's log
 * @w: the writer
 * @text: whole lines, as ht_log_record_write() makes them
 * @size: size of @text in bytes
 * @error: set on failure
 *
 * Returns: false if the lines could not be written; later lines are then
 * dropped, for which this returns true
 */
bool ht_rec_writer_log(HtRecWriter *w, const char *text, size_t size,
                       GError **error);

/*
 * Number of bytes before the memory of ht_rec_writer_room() that the caller may
 * write to: the size of the header that precedes the records of a ring's page
 */
#define HT_REC_ROOM_BEFORE HT_FT_PAGE_HEADER

/**
 * ht_rec_writer_piece: append a piece
 * @w: the writer
 * @p: the piece
 * @error: set on failure
 *
 * The piece is buffered until ht_rec_writer_flush(), or until 1 MiB of the
 * processor is buffered.  A recording in memory keeps the piece in its queue.
 *
 * Returns: false if a write failed; the recording stays valid, and later pieces
 * of this processor are dropped, for which this returns true
 */
bool ht_rec_writer_piece(HtRecWriter *w, const HtFtPiece *p, GError **error);

/**
 * ht_rec_writer_room: get memory for the data of a processor's next piece
 * @w: the writer
 * @cpu: number of the processor
 * @size: size of the memory in bytes
 *
 * If the data of the next piece begins at this memory, ht_rec_writer_piece()
 * does not copy it.  The caller may also write to the HT_REC_ROOM_BEFORE bytes
 * before the memory.
 *
 * Returns: the memory, which is valid until the next call with @w; NULL if the
 * recording is in memory
 */
uint8_t *ht_rec_writer_room(HtRecWriter *w, uint32_t cpu, size_t size);

/**
 * ht_rec_writer_flush: write the buffered pieces; call it after each poll
 * @w: the writer
 * @error: set on failure
 *
 * Returns: false if a write failed
 */
bool ht_rec_writer_flush(HtRecWriter *w, GError **error);

/**
 * ht_rec_writer_bytes: get the size of a recording
 * @w: the writer
 *
 * Returns: the number of bytes that were passed to the writer so far: the
 * pieces, with headers, and the log.  For a recording in memory, the number of
 * bytes that its pieces take now, without the log
 */
uint64_t ht_rec_writer_bytes(const HtRecWriter *w);

/**
 * ht_rec_writer_discard: remove a recording that has no events or is incomplete
 * @w: the writer; call only ht_rec_writer_free() after this
 *
 * Removes the files that this writer made, except one that was prepared but not
 * committed, and the directories that ht_rec_writer_new() made, if they are
 * empty.  Does nothing for a recording in memory.
 */
void ht_rec_writer_discard(HtRecWriter *w);

/**
 * ht_rec_writer_free: flush and close the recording
 * @w: the writer or NULL
 */
void ht_rec_writer_free(HtRecWriter *w);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecWriter, ht_rec_writer_free)

/**
 * ht_rec_info_begin: set the keys of "info" that are known at the start
 * @keys: the content of "info"
 * @command: recorded command, for display; or NULL
 * @source: method by which the memory is read, for display; or NULL
 * @poll_us: poll interval in us; 0 if the guest no longer runs
 *
 * Also stores the present values of the host's clocks.
 */
void ht_rec_info_begin(GKeyFile *keys, const char *command, const char *source,
                       uint32_t poll_us);

/**
 * ht_rec_info_ring: set the keys that describe the ring
 * @keys: the content of "info"
 * @ring: the ring
 */
void ht_rec_info_ring(GKeyFile *keys, const HtFtRing *ring);

/**
 * ht_rec_info_text: set the text address of a boot's kernel
 * @keys: the content of "info"
 * @epoch: number of the boot, from 0
 * @text: address from ht_ft_follow_text(); nothing is set if it is 0
 */
void ht_rec_info_text(GKeyFile *keys, uint32_t epoch, uint64_t text);

/**
 * ht_rec_info_end: set the keys that describe the end of the recording
 * @keys: the content of "info"
 * @end: reason for the end, for display
 * @ns: time of the end, in ns of the host's CLOCK_MONOTONIC
 */
void ht_rec_info_end(GKeyFile *keys, const char *end, uint64_t ns);

/**
 * HtRecInfo: description of a recording
 * @keys: content of "info"
 * @formats: text of the formats, or NULL
 * @formats_size: size of @formats in bytes
 * @kallsyms: text of the symbols, or NULL
 * @kallsyms_size: size of @kallsyms in bytes
 * @cpus: highest N below HT_FT_CPUS_MAX of the files cpuN, plus 1
 * @cpus_left_out: number of files cpuN with N from HT_FT_CPUS_MAX on, which are
 *                 not read
 * @subbuf_size: size of a page in bytes, with its header; 4096 if @keys has no
 *               valid size
 */
typedef struct HtRecInfo {
    GKeyFile *keys;
    char *formats;
    size_t formats_size;
    char *kallsyms;
    size_t kallsyms_size;
    uint32_t cpus;
    uint32_t cpus_left_out;
    uint32_t subbuf_size;
} HtRecInfo;

/**
 * HtRecEvent: an event
 * @ns: time by the guest's trace clock
 * @cpu: number of the processor
 * @epoch: boot of the guest, from 0
 * @segment: segment of the clock within @epoch, from 0
 * @type: common_type, which is the number of the event's format
 * @flags: common_flags
 * @pid: common_pid
 * @size: size of @data in bytes, at least HT_FT_EVENT_HEADER
 * @data: the event as its format describes it, with the common fields; valid
 *        until the next call
 * @lost_before: events between the processor's previous event and this one are
 *               missing
 * @lost_estimate: estimated number of the missing events; 0 if not known
 * @lost_from_ns: the guest's clock at the end of the last piece before the gap;
 *                0 without a gap
 */
typedef struct HtRecEvent {
    uint64_t ns;
    uint32_t cpu;
    uint32_t epoch;
    uint32_t segment;
    uint16_t type;
    uint8_t flags;
    int32_t pid;
    uint32_t size;
    const uint8_t *data;
    bool lost_before;
    uint64_t lost_estimate;
    uint64_t lost_from_ns;
} HtRecEvent;

/**
 * ht_rec_event: get the event of a record
 * @p: the piece that has the record
 * @r: the record
 * @ev: set to the event, with @lost_before false
 */
static inline void ht_rec_event(const HtFtPiece *p, const HtFtRecord *r,
                                HtRecEvent *ev)
{
    /*
     * Set the members one by one: this runs for each event, and a copy of a
     * struct would take longer.
     */
    ev->ns = r->ns;
    ev->cpu = p->cpu;
    ev->epoch = p->epoch;
    ev->segment = p->segment;
    ev->type = ht_ft_event_type(r->data);
    ev->flags = ht_ft_event_flags(r->data);
    ev->pid = ht_ft_event_pid(r->data);
    ev->size = r->size;
    ev->data = r->data;
    ev->lost_before = false;
    ev->lost_estimate = 0;
    ev->lost_from_ns = 0;
}

/**
 * HtRecPage: a page of a processor's ring, or a part of a page
 * @stamp: the guest's clock at the start of @data
 * @data: the records of the page or part; valid until the next call
 * @size: size of @data in bytes
 * @epoch: see HtRecEvent
 * @segment: see HtRecEvent
 * @events: number of events
 * @lost_before: see HtRecEvent
 * @lost_estimate: see HtRecEvent
 * @host_before: HtFtPiece.host_before of the page's first piece
 * @host_after: HtFtPiece.host_after of the page's first piece
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
 * @dir: the directory
 * @error: set on failure
 *
 * A recording that is still being written can be read up to its present end.
 * It is an error if a file is not regular (a FIFO, a device), is too large or
 * cannot be read.  A missing file is treated as empty, except "info".
 *
 * Returns: the recording, for ht_rec_close(); or NULL
 */
HtRecording *ht_rec_open(const char *dir, GError **error);

/**
 * ht_rec_close: close a recording
 * @r: the recording or NULL
 */
void ht_rec_close(HtRecording *r);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecording, ht_rec_close)

/**
 * ht_rec_info: get the description of the recording
 * @r: the recording
 */
const HtRecInfo *ht_rec_info(HtRecording *r);

/**
 * ht_rec_text: read a further text file of the recording
 * @r: the recording
 * @name: name of the file
 * @max: maximum size in bytes; a larger file is an error
 * @size: set to the size of the text in bytes
 * @error: set if the file cannot be read or is not regular
 *
 * Returns: the text, terminated by a NUL, for g_free(); NULL on an error or if
 * there is no such file
 */
char *ht_rec_text(HtRecording *r, const char *name, size_t max, size_t *size,
                  GError **error);

/**
 * ht_rec_next: read the next event of all processors
 * @r: the recording
 * @ev: set if there is an event
 *
 * The events of different processors are merged in the order of epoch, segment
 * and time; events of one processor stay in the order of its ring, even if
 * their times decrease.  Memory use does not depend on the size of the
 * recording.
 *
 * Returns: false at the end, or at the limit of ht_rec_until() or ht_rec_more()
 */
bool ht_rec_next(HtRecording *r, HtRecEvent *ev);

/**
 * HtRecEnd: the end of a recording
 * @epoch: the newest epoch
 * @segment: the newest segment of @epoch
 * @ns: the guest's clock at the end of the last piece of @epoch and @segment,
 *      in ns; the latest of all processors
 */
typedef struct HtRecEnd {
    uint32_t epoch;
    uint32_t segment;
    uint64_t ns;
} HtRecEnd;

/**
 * ht_rec_end: find the end of a recording without reading all of it
 * @r: the recording; its position does not change
 * @end: set on success
 *
 * The first call, and the first one after ht_rec_more(), reads the last 128 KiB
 * of each processor's file.  Other calls return the same result again.
 *
 * Returns: false if there are no pieces, or if the end of a file is damaged or
 * cannot be read: then only a read of the whole recording tells its end
 */
bool ht_rec_end(HtRecording *r, HtRecEnd *end);

/**
 * ht_rec_until: end ht_rec_next() early
 * @r: the recording
 * @epoch: last epoch to read, or UINT32_MAX
 * @ns: guest time up to which events are needed, or UINT64_MAX
 *
 * ht_rec_next() returns no events of later epochs.  It returns events up to
 * HT_FT_EPOCH_NS after @ns, and later events until it has reached the last
 * epoch and segment of the recording: earlier events may follow if the guest
 * boots again or its clock goes back.  If ht_rec_end() fails, @ns has no
 * effect.
 */
void ht_rec_until(HtRecording *r, uint32_t epoch, uint64_t ns);

/**
 * ht_rec_more: go on reading a recording that is still being written
 * @r: the recording
 * @ns: ht_rec_next() returns only events before this time; UINT64_MAX: all
 *
 * If ht_rec_next() has returned false, the call makes it return the events that
 * were appended since, also those of processors that had no events before.  The
 * events are in the order of time if no event before @ns is appended after this
 * call.
 */
void ht_rec_more(HtRecording *r, uint64_t ns);

/**
 * ht_rec_next_page: read the next page of one processor
 * @r: the recording
 * @cpu: number of the processor
 * @p: set if there is a page
 *
 * The pieces of a page are joined.  If the clock stepped back within a page, or
 * if a piece of it is missing, the page is returned in several parts, which
 * begin there.  Call ht_rec_rewind() before changing from or to another reading
 * function.
 *
 * Returns: false at the end
 */
bool ht_rec_next_page(HtRecording *r, uint32_t cpu, HtRecPage *p);

/**
 * ht_rec_progress: get the part of the recording that was read
 * @r: the recording
 *
 * Returns: thousandths of the size that the files had when they were opened
 */
unsigned ht_rec_progress(const HtRecording *r);

/**
 * ht_rec_rewind: restart reading at the beginning
 * @r: the recording
 *
 * Reading then includes what was appended to the open files meanwhile.
 */
void ht_rec_rewind(HtRecording *r);

/**
 * ht_rec_next_piece: read the next piece of one processor
 * @r: the recording
 * @cpu: number of the processor
 * @p: set if there is a piece; its data is valid until the next call.
 *     @p->lost_from_ns is the end of the previous piece.
 *
 * Call ht_rec_rewind() before changing from or to another reading function.
 *
 * Returns: false at the end
 */
bool ht_rec_next_piece(HtRecording *r, uint32_t cpu, HtFtPiece *p);

/**
 * ht_rec_damaged: get the number of bytes that were skipped because they are no
 * valid piece, or are a copy of an earlier piece
 * @r: the recording, read to its end
 */
uint64_t ht_rec_damaged(const HtRecording *r);

/**
 * ht_rec_unread: get the number of bytes after the last complete piece, summed
 * over the files
 * @r: the recording, read to its end
 *
 * A recorder that is killed can leave such bytes; a recorder that ends normally
 * leaves none.
 */
uint64_t ht_rec_unread(const HtRecording *r);

/**
 * ht_rec_error: get the first error that ended the reading of a file early
 * @r: the recording
 *
 * Returns: the errno, or 0
 */
int ht_rec_error(const HtRecording *r);

#endif /* HYPERTRACE_RECORDING_H */
