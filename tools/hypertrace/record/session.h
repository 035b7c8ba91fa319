/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the parts of a session
 *
 * record-session.c has the session as its callers see it, session-rings.c finds
 * and follows rings, and session-kernel.c reads the log and the event formats
 * of kernels.
 */
#ifndef HYPERTRACE_RECORD_SESSION_PRIVATE_H
#define HYPERTRACE_RECORD_SESSION_PRIVATE_H

#include "hypertrace/budget.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/recording.h"
#include "kernel/kernel-watch.h"
#include "kernel/record-log.h"
#include "record/record-info.h"
#include "record/record-session.h"

/*
 * Maximum number of boots that a recording tells apart; the last one stands for
 * all that follow
 */
#define HT_SESSION_BOOTS    4096

typedef struct HtSessionFormats HtSessionFormats;

/* A ring that is followed */
typedef struct HtSessionRing {
    HtSession *session;
    const HtFtMem *mem;
    uint64_t offset;
    HtFtFollow *follow;
    /*
     * converter of events for HtSession.runs; if @feed.runs is NULL, the ring
     * is only recorded
     */
    HtFtFeed feed;
    /* number of the boot to which the ring's first epoch belongs, from 0 */
    uint32_t epoch_base;
    bool taken;                 /* the ring is being recorded */
    uint64_t since;             /* time in ns at which the ring was found */
    /* guest time of the last event that was read, in ns */
    uint64_t newest_ns;
    /* highest guest time of the events read before @taken, in ns */
    uint64_t seen_ns;
    /*
     * if it is not known whether a piece is older than the session, only its
     * events from this guest time on can match
     */
    uint64_t match_ns;
} HtSessionRing;

/*
 * The pauses between searches for rings. A search of a large memory takes long.
 * Its duration decides the pause after it, so that searches use a small part of
 * a processor. All times are in ns.
 */
typedef struct HtSessionPace {
    uint64_t started;           /* time at which the session started */
    uint64_t next;              /* time of the next search; 0: at once */
    uint64_t active;            /* time at which events were last read */
    /*
     * at the last poll, @active was 1.5 to 60 s in the past, as after a reset
     */
    bool quiet;
} HtSessionPace;

/* A memory and the searches in it */
typedef struct HtSessionPlace {
    const HtFtMem *mem;
    /* search for boot-mapped rings in this memory */
    bool rings;
    HtKernelWatch *watch;       /* search for the kernel; NULL: do not search */
    /* formats of @watch that no job writes yet; or NULL */
    HtKernelFormatsList *list;
    /*
     * the main buffer is not followed yet, but must be: at once or, with
     * HtSession.matches, when these have the formats of @list
     */
    bool new_buffer;
    HtRecordLog *log;           /* log of the kernel that was found, or NULL */
    /*
     * number, from 0, of the boot of @log; it can still change before @log has
     * a record
     */
    uint32_t log_boot;
    HtSession *session;
    /* the next records of @log may be older than the session */
    bool log_old;
    HtFtSearch search;
    HtFtSearch anywhere;
    unsigned turn;
} HtSessionPlace;

struct HtSession {
    HtRecWriter *writer;
    HtRecordInfo info;
    const HtKernel *kernel;
    /* further receiver of the recorded events, or NULL */
    HtFtRuns *runs;
    HtMatch *matches[HT_SESSION_MATCHES];
    bool running;               /* copy of HtSessionInfo.running */
    /* number of rings found so far; counted only with @runs */
    unsigned nr_found;
    GPtrArray *places;          /* elements: HtSessionPlace */
    GPtrArray *rings;           /* elements: HtSessionRing */
    int64_t (*now)(void);
    /* time that the present part of a poll may take */
    HtBudget budget;
    bool ending;                /* the session ends: @budget has no limit */
    /* index in @places at which the next poll begins */
    unsigned next_place;
    /* index, among the rings that are polled, at which the next poll begins */
    unsigned first_ring;
    HtSessionPace pace;
    uint64_t max_bytes;
    uint64_t ring_at;
    /* highest number, from 0, of a boot that has a ring, plus 1 */
    uint32_t epochs;
    bool cut;                   /* value of HtSessionStats.cut */
    /* PID of the machine's process, as in @info; 0: not known yet */
    pid_t process;
    HtKernelImage *image;
    bool main_buffer;
    bool has_formats;           /* the recording has the formats of events */
    HtSessionFormats *formats;  /* formats that are being written, or NULL */
    /* highest number, from 0, of a boot whose log is recorded, plus 1 */
    uint32_t log_boots;
    uint64_t logged;            /* number of records of earlier kernels' logs */
    /* number, from 1, of the last boot with a panic in its log; 0: none */
    uint32_t panic_boot;
    GString *log_text;
    bool more;
    /* sum of the counters of rings that were dropped */
    HtFtStats past;
    GError *error;
};

/*
 * Begin a part of a poll, which may take @ns; without a limit while the session
 * ends.
 */
void ht_session_allow(HtSession *s, uint64_t ns);

/*
 * Check whether @bytes more fit in HtSessionInfo.max_bytes. If not, set
 * s->error, which ends the recording.
 */
bool ht_session_has_room(HtSession *s, uint64_t bytes);

/* Free an element of HtSession.rings. */
void ht_session_free_ring(void *ring);

/* Follow the main trace buffer of the kernel that a place's watch found. */
void ht_session_follow_buffer(HtSession *s, const HtSessionPlace *p);

/* Drop the rings that are in a memory. */
void ht_session_remove_rings(HtSession *s, const HtFtMem *mem);

/* If a ring is being recorded, add its counters to a sum. */
void ht_session_add_stats(HtFtStats *sum, const HtSessionRing *ring);

bool ht_session_any_taken(const HtSession *s);

/*
 * Search for boot-mapped rings if the pause since the last search is over; not
 * if the main buffer is recorded.
 */
void ht_session_poll_search(HtSession *s);

/*
 * Continue the search for boot-mapped rings in all memories that are searched
 * for them. @anywhere: maximum number of pages of each memory to test in
 * addition to the usual places, if no ring is recorded. Return: true if the
 * time for this part of the poll is over
 */
bool ht_session_search(HtSession *s, uint64_t anywhere);

/*
 * Follow the ring at the same offset again, from its oldest event on, and
 * record it. Return: false if its header is not valid now
 */
bool ht_session_follow_again(HtSession *s, HtSessionRing *ring);

/* Poll the rings that are followed, and record new events. */
void ht_session_poll_rings(HtSession *s);

/*
 * Search for the kernels in all memories, and read their logs and formats. If
 * the time is over, the next poll continues with the other memories. @last: as
 * for ht_kernel_watch_look(); also wait until formats are written
 */
void ht_session_watch(HtSession *s, bool last);

/*
 * Write the formats that have changed, and pass them to the matches. @wait: do
 * it before the return; otherwise, a job does the long part.
 */
void ht_session_poll_formats(HtSession *s, bool wait);

/*
 * Wait for the job that writes or frees formats. Formats that no job has begun
 * to write are not written.
 */
void ht_session_end_formats(HtSession *s);

/* Record the rest of the logs, when the recording ends. */
void ht_session_finish_logs(HtSession *s);

/* Read the rest of an ended kernel's log, as far as its memory still has it. */
void ht_session_end_log(HtSession *s, HtSessionPlace *p);

#endif
