/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: date the events of a recorded ftrace ring on the host's clock
 *
 * ftrace-time.h converts times while a poll is in progress.  This code runs
 * after the recording, and also uses the bounds that later polls gave.
 */
#ifndef HYPERTRACE_FTRACE_DATES_H
#define HYPERTRACE_FTRACE_DATES_H

#include "hypertrace/ftrace-time.h"

typedef struct HtFtDates HtFtDates;

/**
 * ht_ft_dates_new: start the dates of one segment of a guest's clock
 *
 * Returns: empty dates, for ht_ft_dates_free()
 */
HtFtDates *ht_ft_dates_new(void);

/**
 * ht_ft_dates_free: free the dates
 * @d: dates or NULL
 */
void ht_ft_dates_free(HtFtDates *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtDates, ht_ft_dates_free)

/**
 * ht_ft_dates_add: add the bounds of a piece
 * @d: the dates
 * @p: a piece of this segment, of any processor
 *
 * If there are too many bounds, neighbours are merged: of two lower limits and
 * of two upper limits, the tighter one is kept.
 */
void ht_ft_dates_add(HtFtDates *d, const HtFtPiece *p);

/**
 * ht_ft_dates_fit: compute the dates after all pieces were added
 * @d: the dates
 */
void ht_ft_dates_fit(HtFtDates *d);

/**
 * ht_ft_dates_get: date a guest time
 * @d: fitted dates
 * @ns: the guest time
 * @host_ns: set to the host's CLOCK_MONOTONIC at that time, in ns
 * @bound_ns: set to the maximum error of @host_ns in ns
 *
 * Returns: false if the pieces give no date because no guest time is bounded on
 * both sides
 */
bool ht_ft_dates_get(const HtFtDates *d, uint64_t ns, uint64_t *host_ns,
                     uint64_t *bound_ns);

/**
 * ht_ft_dates_worst: get the maximum error of the dates from a guest time on
 * @d: fitted dates
 * @from_ns: the guest time
 *
 * Times after the last one that has a bound on both sides are not considered.
 *
 * Returns: the error in ns; UINT64_MAX if there are no dates
 */
uint64_t ht_ft_dates_worst(const HtFtDates *d, uint64_t from_ns);

#endif /* HYPERTRACE_FTRACE_DATES_H */
