/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: dates of what was recorded of a ring, on the host's clock
 *
 * As ftrace-time.h, but afterwards: what later looks say is known, too.
 */
#ifndef HYPERTRACE_FTRACE_DATES_H
#define HYPERTRACE_FTRACE_DATES_H

#include "hypertrace/ftrace-time.h"

typedef struct HtFtDates HtFtDates;

/**
 * ht_ft_dates_new: begin with a segment of a guest's clock
 */
HtFtDates *ht_ft_dates_new(void);

/**
 * ht_ft_dates_free: end
 * @d: dates or NULL
 */
void ht_ft_dates_free(HtFtDates *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtDates, ht_ft_dates_free)

/**
 * ht_ft_dates_add: take a piece into account
 * @d: dates
 * @p: a piece of this segment, of any processor
 *
 * Memory does not grow with their number: of very many, some say less.
 */
void ht_ft_dates_add(HtFtDates *d, const HtFtPiece *p);

/**
 * ht_ft_dates_fit: all pieces were added
 * @d: dates
 */
void ht_ft_dates_fit(HtFtDates *d);

/**
 * ht_ft_dates_get: date a time of the guest
 * @d: dates that were fitted
 * @ns: the guest's
 * @host_ns: set to the host's CLOCK_MONOTONIC then
 * @bound_ns: set to how wrong that may be
 *
 * Returns: false if no two looks bracket anything
 */
bool ht_ft_dates_get(const HtFtDates *d, uint64_t ns, uint64_t *host_ns,
                     uint64_t *bound_ns);

/**
 * ht_ft_dates_worst: how wrong any date may be
 * @d: dates that were fitted
 * @from_ns: of the guest: of times from here on
 *
 * Returns: ns; UINT64_MAX if there are no dates
 */
uint64_t ht_ft_dates_worst(const HtFtDates *d, uint64_t from_ns);

#endif /* HYPERTRACE_FTRACE_DATES_H */
