/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a recording's times on the host's clock
 */
#ifndef HYPERTRACE_TOOL_HOST_CLOCK_H
#define HYPERTRACE_TOOL_HOST_CLOCK_H

#include "model/model.h"

typedef struct HtHostClock HtHostClock;

/**
 * ht_host_clock_new: relate a recording's clocks to the host's
 * @m: its model, which is read once and rewound
 * @errp: why that is not possible
 *
 * Returns: the clock, or NULL
 */
HtHostClock *ht_host_clock_new(HtModel *m, GError **errp);

/**
 * ht_host_clock_free: end
 * @c: the clock or NULL
 */
void ht_host_clock_free(HtHostClock *c);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtHostClock, ht_host_clock_free)

/**
 * ht_host_clock_date: when an event was by the host's CLOCK_MONOTONIC
 * @c: the clock
 * @ev: the event; its time is set to the host's, and its bound.  Of a segment
 *      no date is less than the one before, which the bound allows
 *
 * Returns: false if this segment of the guest's clock was not looked at twice
 */
bool ht_host_clock_date(HtHostClock *c, HtModelEvent *ev);

/**
 * ht_host_clock_worst: how wrong any date of a segment may be
 * @c: the clock
 * @boot: from 1
 * @segment: of the guest's clock in it
 * @from_ns: of the guest: of events from here on
 *
 * Returns: ns; UINT64_MAX if it was not looked at twice
 */
uint64_t ht_host_clock_worst(HtHostClock *c, unsigned boot, uint32_t segment,
                             uint64_t from_ns);

/**
 * ht_host_clock_wall: CLOCK_REALTIME - CLOCK_MONOTONIC of the host
 * @m: a model
 * @offset_ns: set to it, as it was when the recording began
 *
 * Returns: whether the recording says so
 */
bool ht_host_clock_wall(HtModel *m, int64_t *offset_ns);

/**
 * ht_host_clock_shift: what makes times of one host's clock those of another's
 * @m: a model
 * @first: the model whose host it shall be
 * @shift_ns: set to what to add to @m's times; 0 if it was the same host, and
 *            had not booted between.  Else it is as good as wall clocks agree
 *
 * Returns: whether it was the same host; otherwise @errp is set if the first
 * one's clock had not begun when @m was recorded
 */
bool ht_host_clock_shift(HtModel *m, HtModel *first, int64_t *shift_ns,
                         GError **errp);

#endif /* HYPERTRACE_TOOL_HOST_CLOCK_H */
