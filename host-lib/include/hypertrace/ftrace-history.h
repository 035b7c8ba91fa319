/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an ftrace ring that a guest's module sent, as a recording
 *
 * hypertrace-ftrace.ko sends what a ring had before it came as pages, and the
 * formats of their events in parts.  All of it is a guest's and not trusted:
 * what is no record is left out and counted.
 */
#ifndef HYPERTRACE_FTRACE_HISTORY_H
#define HYPERTRACE_FTRACE_HISTORY_H

#include "hypertrace/recording.h"

/* More are the last one. */
#define HT_FT_HISTORY_MAX       4096u

/**
 * HtFtHistoryStats: what there was
 * @events: events
 * @pages: pages with events
 * @gaps: where events are missing, also behind the last one of a processor
 * @bad: pages that were none, or only up to a record that is none
 * @largest: bytes of the largest page, its header included
 */
typedef struct HtFtHistoryStats {
    uint64_t events;
    uint64_t pages;
    uint64_t gaps;
    uint64_t bad;
    uint32_t largest;
} HtFtHistoryStats;

typedef struct HtFtHistory HtFtHistory;

/**
 * ht_ft_history_new: begin
 * @w: where pages go; stays the caller's
 */
HtFtHistory *ht_ft_history_new(HtRecWriter *w);

/**
 * ht_ft_history_free: forget it
 * @h: or NULL
 */
void ht_ft_history_free(HtFtHistory *h);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtHistory, ht_ft_history_free)

/**
 * ht_ft_history_begin: what follows is another one: a boot of the recording
 * @h: history
 *
 * Returns: its number, from 0
 */
uint32_t ht_ft_history_begin(HtFtHistory *h);

/**
 * ht_ft_history_page: a page
 * @h: history
 * @cpu: whose
 * @seq: its number: 0, 1 and so on of each processor; where one is missing,
 *       so are its events
 * @page: its bytes; not used later
 * @size: of them
 * @error: set on failure
 *
 * One without events that says that some were lost is of use behind the others.
 *
 * Returns: false if it could not be written
 */
bool ht_ft_history_page(HtFtHistory *h, uint32_t cpu, uint32_t seq,
                        const uint8_t *page, size_t size, GError **error);

/**
 * ht_ft_history_text: a part of a format
 * @h: history
 * @name: whose, "system:event"
 * @offset: of the part
 * @size: bytes of all parts
 * @part: its bytes
 * @len: of them
 *
 * Parts come in order; a format of which one is missing is left out.
 */
void ht_ft_history_text(HtFtHistory *h, const char *name, uint32_t offset,
                        uint32_t size, const char *part, size_t len);

/**
 * ht_ft_history_formats: all that are whole, as a recording has them
 * @h: history
 *
 * Returns: to be freed with g_string_free(); no text if there are none
 */
GString *ht_ft_history_formats(const HtFtHistory *h);

/**
 * ht_ft_history_stats: what there was so far
 * @h: history
 */
HtFtHistoryStats ht_ft_history_stats(const HtFtHistory *h);

#endif /* HYPERTRACE_FTRACE_HISTORY_H */
