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

#include "hypertrace/ftrace-ring.h"
#include "kernel.h"

/**
 * struct HtSessionInfo - what the recording says about itself
 * @dir: where it is made
 * @command: what is recorded, for people
 * @source: how the memory is read, for people
 * @words: on the kernel's command line
 * @poll_us: between two looks
 * @kernel: its formats and symbols, or NULL
 */
typedef struct HtSessionInfo {
    const char *dir;
    const char *command;
    const char *source;
    const char *words;
    uint32_t poll_us;
    const HtKernel *kernel;
} HtSessionInfo;

/**
 * struct HtSessionStats - what was recorded so far
 * @found: a ring
 * @events: in the recording
 * @bytes: of it
 * @gaps: times that events were overwritten before they were read
 * @lost: about how many those were
 * @boots: of the guest
 */
typedef struct HtSessionStats {
    bool found;
    uint64_t events;
    uint64_t bytes;
    uint64_t gaps;
    uint64_t lost;
    uint32_t boots;
} HtSessionStats;

typedef struct HtSession HtSession;

/**
 * ht_session_new() - begin a recording
 * @info: need not stay, but its kernel
 * @error: set on failure
 */
HtSession *ht_session_new(const HtSessionInfo *info, GError **error);

/**
 * ht_session_add() - look for rings there, too
 * @mem: a guest's memory; must stay
 */
void ht_session_add(HtSession *s, const HtFtMem *mem);

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

/** ht_session_stats() - what was recorded so far */
HtSessionStats ht_session_stats(const HtSession *s);

/**
 * ht_session_finish() - the guest does not run any more
 * @end: how it ended, for people
 *
 * Takes what is left in the ring.
 */
bool ht_session_finish(HtSession *s, const char *end, GError **error);
void ht_session_free(HtSession *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSession, ht_session_free)

#endif
