/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the pauses between searches for a ring
 *
 * A search of a large memory takes long. Its duration decides the pause after
 * it, so that searches use a small part of a processor. All times are in ns.
 */
#ifndef HYPERTRACE_RECORD_SEARCH_PACE_H
#define HYPERTRACE_RECORD_SEARCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Minimum pause between two polls, in us, while neither a kernel nor a ring is
 * found.  Each wake-up also adds events to the host's part of the recording.
 */
#define HT_SEARCH_PACE_US   5000

/**
 * struct HtSearchPace - state of the pauses
 * @started: time at which the session started
 * @next: time of the next search; 0: at once
 * @active: time of the last new event; the caller sets it
 * @quiet: at the last ht_search_pace_due(), the newest event was 1.5 to 60 s
 *         old, as after a reset
 */
typedef struct HtSearchPace {
    uint64_t started;
    uint64_t next;
    uint64_t active;
    bool quiet;
} HtSearchPace;

/**
 * ht_search_pace_due() - test whether the next search must begin
 * @p: the state
 * @now: present time
 */
bool ht_search_pace_due(HtSearchPace *p, uint64_t now);

/**
 * ht_search_pace_done() - choose the time of the next search
 * @p: the state
 * @begun: time at which the search began
 * @now: time at which it ended
 * @found: a ring is recorded
 */
void ht_search_pace_done(HtSearchPace *p, uint64_t begun, uint64_t now,
                         bool found);

#endif
