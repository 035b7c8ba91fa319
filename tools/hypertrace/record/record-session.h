/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: from a guest's memory into a recording
 *
 * Looks for the ring until there is one, follows it, and looks now and then
 * whether another boot of the guest has made one elsewhere.  Used by one
 * thread.
 */
#ifndef HYPERTRACE_RECORD_SESSION_H
#define HYPERTRACE_RECORD_SESSION_H

#include "hypertrace/ftrace-runs.h"
#include "hypertrace/kernel-image.h"
#include "hypertrace/recording.h"
#include "kernel/kernel.h"

/**
 * struct HtSessionInfo - what the recording says about itself
 * @dir: where it is made; not used with @memory
 * @memory: bytes of memory for the newest events, which ht_session_save()
 *          writes to files; 0: all events are written to files at once
 * @command: what is recorded, for people
 * @source: how the memory is read, for people
 * @words: on the kernel's command line
 * @poll_us: between two looks
 * @kernel: its formats and symbols, or NULL
 * @max_bytes: of the recording; more ends it.  0: as much as there is
 * @image: the guest's kernel, whose log is recorded; NULL if it is not known.
 *         A reference is taken.
 * @main_buffer: follow the main trace buffer of @image, not a boot-mapped ring
 * @ring_at: where the guest's memory is said to have a ring: an address of the
 *           guest; 0 if nothing is known
 * @runs: or NULL; where what is recorded goes, too; must stay
 * @now: or NULL; a clock in ns instead of the host's monotonic one
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
    uint64_t (*now)(void);
} HtSessionInfo;

/**
 * struct HtSessionStats - what was recorded so far
 * @found: a ring
 * @events: followed so far
 * @held: events that are in memory now
 * @bytes: of it
 * @gaps: times that events were overwritten before they were read
 * @lost: about how many those were
 * @late: processors whose first events were overwritten before that
 * @errors: looks that came upon a page that cannot be read
 * @boots: of the guest
 * @logged: records of the kernel's log
 * @kernel: a kernel is there whose log can be read
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
    uint32_t boots;
    uint64_t logged;
    bool kernel;
} HtSessionStats;

typedef struct HtSession HtSession;

/**
 * ht_record_default_dir() - make a folder named after date and time
 * @flight: for a flight recorder: flight-DATE-TIME, not recording-DATE-TIME
 *
 * Return: its name, newly allocated
 */
char *ht_record_default_dir(bool flight);

/**
 * ht_session_new() - begin a recording
 * @info: need not stay, but its kernel
 * @error: set on failure
 */
HtSession *ht_session_new(const HtSessionInfo *info, GError **error);

/* What is looked for in a memory */
#define HT_SESSION_RINGS    1u
#define HT_SESSION_KERNEL   2u
#define HT_SESSION_ALL      (HT_SESSION_RINGS | HT_SESSION_KERNEL)

/**
 * ht_session_add() - search a memory, too
 * @mem: a guest's memory; must stay
 * @what: HT_SESSION_*: boot-mapped rings, and the kernel that the session's
 *        image is of.  Two memories for rings must not overlap.
 */
void ht_session_add(HtSession *s, const HtFtMem *mem, unsigned what);

/**
 * ht_session_remove() - do not look there any more
 * @mem: as added; no ring that is being recorded may be in it
 */
void ht_session_remove(HtSession *s, const HtFtMem *mem);

/**
 * ht_session_look() - record what is new
 * @error: set when the recording cannot be written any more
 *
 * Return: false on an error
 */
bool ht_session_look(HtSession *s, GError **error);

/**
 * ht_session_more() - did the last look leave something?
 *
 * Return: true if the next one should not wait
 */
bool ht_session_more(const HtSession *s);

/**
 * ht_session_why() - why no kernel is found
 *
 * Return: for people; NULL if that is not known, or if none is looked for
 */
const char *ht_session_why(const HtSession *s);

/**
 * ht_session_stop() - the recording ends before the guest does
 * @why: for people
 *
 * Nothing is recorded any more.
 */
void ht_session_stop(HtSession *s, const char *why);

/** ht_session_stats() - what was recorded so far */
HtSessionStats ht_session_stats(const HtSession *s);

/**
 * ht_session_finish() - the guest does not run any more
 * @end: how it ended, for people
 *
 * Takes what is left in the ring.
 */
bool ht_session_finish(HtSession *s, const char *end, GError **error);

/**
 * ht_session_save() - write a recording in memory to files
 * @s: session with HtSessionInfo.memory
 * @to: writer of a recording without events
 * @cause: why it is written, a word
 * @end: the same for people
 * @error: set on failure
 *
 * The session can go on.
 *
 * Return: false on an error
 */
bool ht_session_save(HtSession *s, HtRecWriter *to, const char *cause,
                     const char *end, GError **error);

/**
 * ht_session_discard() - remove the recording, in which nothing is
 *
 * Only its own files go, and the folder if it was made for them.
 */
void ht_session_discard(HtSession *s);
void ht_session_free(HtSession *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSession, ht_session_free)

#endif
