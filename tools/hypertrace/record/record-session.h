/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: copy events from a guest's memory into a recording
 *
 * A session searches for boot-mapped rings, or for the kernel and its main
 * trace buffer, and follows them. It repeats the search from time to time,
 * because another boot of the guest may create a ring elsewhere. One thread
 * makes all calls for a session.
 */
#ifndef HYPERTRACE_RECORD_SESSION_H
#define HYPERTRACE_RECORD_SESSION_H

#include "hypertrace/ftrace-runs.h"
#include "hypertrace/kernel-image.h"
#include "hypertrace/kernel-log.h"
#include "hypertrace/recording.h"
#include "kernel/kernel.h"
#include "model/match.h"

/* Maximum number of matches: --until, and --match of a flight recorder */
#define HT_SESSION_MATCHES  2

/**
 * struct HtSessionInfo - parameters of a session
 * @dir: folder of the recording; @dir and @max_bytes are not used with @memory
 * @memory: bytes of memory for the newest events, which ht_session_save()
 *          writes to files; 0: all events are written to files at once
 * @command: description of the recorded command, for the info file
 * @source: description of the way in which the memory is read
 * @words: words that the recorder planned for the kernel's command line, for
 *         the info file; or NULL
 * @poll_us: period of polls in microseconds
 * @kernel: the kernel's formats and symbols, or NULL; must outlive the session
 * @max_bytes: limit for HtSessionStats.bytes, at which the recording ends; 0:
 *             no limit
 * @image: the guest's kernel, whose log is recorded; NULL if it is not known.
 *         The session takes a reference
 * @main_buffer: follow the main trace buffer of @image, not a boot-mapped ring
 * @ring_at: physical address of the ring in the guest; 0 if not known
 * @runs: further receiver of the recorded events, or NULL; must outlive the
 *        session
 * @matches: matches that get the recorded events, or NULL; must outlive the
 *           session
 * @running: the guest ran before the session: events and lines of the log that
 *           may be older than the session are recorded, but do not match
 * @now: a clock in nanoseconds; NULL for ht_now_ns()
 */
typedef struct HtSessionInfo {
    const char *dir;
    uint64_t memory;
    const char *command;
    const char *source;
    const char *words;
    uint32_t poll_us;
    const HtKernel *kernel;
    uint64_t max_bytes;
    HtKernelImage *image;
    bool main_buffer;
    uint64_t ring_at;
    HtFtRuns *runs;
    HtMatch *matches[HT_SESSION_MATCHES];
    bool running;
    int64_t (*now)(void);
} HtSessionInfo;

/**
 * struct HtSessionStats - counters of a session
 * @found: a ring was found and is or was recorded; also the main trace buffer
 * @events: number of events that were read
 * @held: with HtSessionInfo.memory: number of events in that memory now; else 0
 * @bytes: bytes of recorded pieces in files or in memory; in files, also of the
 *         kernel's log
 * @gaps: number of times that events were overwritten before they were read
 * @lost: estimate of the number of these events
 * @late: processors whose first events were overwritten before the first poll
 * @errors: number of polls that could not read a page, as the sum of all
 *          processors
 * @cut: processors or sub-buffers were left out, because a ring has too many;
 *       see HtFtRing.cut
 * @boots: number of boots of the guest that have a ring or a log
 * @logged: number of records of kernels' logs that were read
 * @kernel_boot: number, from 1, of the boot whose kernel's log is read now; 0:
 *               no kernel with a log is known now
 * @panic_boot: number, from 1, of the last boot whose log has a panic; 0: none
 */
typedef struct HtSessionStats {
    bool found;
    uint64_t events;
    uint64_t held;
    uint64_t bytes;
    uint64_t gaps;
    uint64_t lost;
    uint64_t late;
    uint64_t errors;
    bool cut;
    uint32_t boots;
    uint64_t logged;
    uint32_t kernel_boot;
    uint32_t panic_boot;
} HtSessionStats;

typedef struct HtSession HtSession;

/**
 * ht_record_default_dir() - make a folder named after date and time
 * @flight: for a flight recorder: flight-DATE-TIME, not recording-DATE-TIME
 *
 * Return: its name, newly allocated; also if the folder cannot be made
 */
char *ht_record_default_dir(bool flight);

/**
 * ht_session_new() - begin a recording
 * @info: parameters; copied, except members that must outlive the session
 * @error: set on failure
 *
 * Return: the session, for ht_session_free(); NULL on failure
 */
HtSession *ht_session_new(const HtSessionInfo *info, GError **error);

/* Targets of a search in a memory */
#define HT_SESSION_RINGS    1u
#define HT_SESSION_KERNEL   2u
#define HT_SESSION_ALL      (HT_SESSION_RINGS | HT_SESSION_KERNEL)

/**
 * ht_session_add() - search a memory
 * @s: the session
 * @mem: memory of the guest; must stay valid until ht_session_remove() or
 *       ht_session_free()
 * @what: HT_SESSION_*: search for boot-mapped rings, and for the kernel of the
 *        session's image. Two memories for rings must not overlap.
 */
void ht_session_add(HtSession *s, const HtFtMem *mem, unsigned what);

/**
 * ht_session_remove() - stop using a memory
 * @s: the session
 * @mem: memory that was added; must not have a ring that is being recorded
 */
void ht_session_remove(HtSession *s, const HtFtMem *mem);

/**
 * ht_session_has_kernel() - whether the log of a kernel in a memory is read
 * @s: the session
 * @mem: memory that was added
 *
 * Polls check that the kernel is still there: if not, its log is read no more.
 */
bool ht_session_has_kernel(const HtSession *s, const HtFtMem *mem);

/**
 * ht_session_process() - set the virtual machine's process for the info file
 * @s: the session
 * @pid: the process; 0: do nothing
 */
void ht_session_process(HtSession *s, pid_t pid);

/**
 * ht_session_look() - poll the guest's memory and record new events
 * @s: the session
 * @error: set if the recording cannot be continued
 *
 * Return: false on an error
 */
bool ht_session_look(HtSession *s, GError **error);

/**
 * ht_session_more() - whether the last poll left events or other work
 * @s: the session
 *
 * Return: true if the next poll should not wait
 */
bool ht_session_more(const HtSession *s);

/**
 * ht_session_log_hint() - get the word that shows whether the log grew
 * @s: the session
 * @hint: set; valid until the next poll
 *
 * ht_kernel_log_grew() with this hint costs much less than a poll.
 *
 * Return: false if no log is read, or if none has such a word
 */
bool ht_session_log_hint(const HtSession *s, HtKernelLogHint *hint);

/**
 * ht_session_why() - get the reason why no kernel was found, or why a kernel's
 *                    formats cannot be read
 * @s: the session
 *
 * Return: a message; NULL without such a reason, or without an image
 */
const char *ht_session_why(const HtSession *s);

/**
 * ht_session_stop() - note in the info file why the recording ends early
 * @s: the session; the caller must not poll or finish it after this
 * @why: reason
 */
void ht_session_stop(HtSession *s, const char *why);

/** ht_session_stats() - get the present counters */
HtSessionStats ht_session_stats(const HtSession *s);

/**
 * ht_session_finish() - record the remaining events, and end the recording
 * @s: the session
 * @end: description of the end, for the info file
 * @error: set on failure
 *
 * Return: false on an error
 */
bool ht_session_finish(HtSession *s, const char *end, GError **error);

/**
 * ht_session_write_formats() - write all formats of events that were read
 * @s: the session
 *
 * Waits until the job that writes and parses formats has ended, so that no such
 * job runs at the return.
 */
void ht_session_write_formats(HtSession *s);

/**
 * ht_session_save() - write a recording in memory to files
 * @s: session with HtSessionInfo.memory
 * @to: writer of a recording without events
 * @cause: cause of the recording, one word
 * @end: description of the cause, for the info file
 * @error: set on failure
 *
 * The session can continue after this.
 *
 * Return: false on an error
 */
bool ht_session_save(HtSession *s, HtRecWriter *to, const char *cause,
                     const char *end, GError **error);

/**
 * ht_session_discard() - remove the files of a recording that is not needed
 * @s: the session; the caller must not poll or finish it after this
 *
 * Only the session's own files are removed, and the folders that the session
 * has created if they are then empty. Memory is not changed.
 */
void ht_session_discard(HtSession *s);
void ht_session_free(HtSession *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSession, ht_session_free)

#endif
