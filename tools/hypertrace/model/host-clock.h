/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert times of a recording to the host's clock
 */
#ifndef HYPERTRACE_TOOL_HOST_CLOCK_H
#define HYPERTRACE_TOOL_HOST_CLOCK_H

#include "model/model.h"

typedef struct HtHostClock HtHostClock;

/**
 * ht_host_clock_new: relate the guest's clock of a recording to the host's
 *                    clock
 * @m: model of the recording. If its times are already those of the host's
 *     clock, as in a host's part, nothing is read; else it is read and rewound.
 * @errp: set if the guest's clock has too many segments, or if the recorder did
 *        not poll this guest twice while it ran
 *
 * Returns: the clock, for ht_host_clock_free(); NULL on failure
 */
HtHostClock *ht_host_clock_new(HtModel *m, GError **errp);

/**
 * ht_host_clock_free: free a clock
 * @c: the clock or NULL
 */
void ht_host_clock_free(HtHostClock *c);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtHostClock, ht_host_clock_free)

/**
 * ht_host_clock_date: convert the time of an event
 * @ev: the event; @ev->rec.ns is set to the host's CLOCK_MONOTONIC, and
 *      @ev->bound_ns to the maximum error of that time in nanoseconds. If
 *      events were lost before, @ev->rec.lost_from_ns is converted, too.
 *
 * If the events of a segment are passed in their order, and no function is
 * called for another segment meanwhile, the host's times do not decrease.
 *
 * Returns: false if the host's time is not known, for example because the
 * recorder polled the guest less than twice in this segment of the guest's
 * clock
 */
bool ht_host_clock_date(HtHostClock *c, HtModelEvent *ev);

/**
 * ht_host_clock_at: convert a guest time
 * @boot: boot, counted from 1
 * @segment: segment of the guest's clock in that boot
 * @ns: guest time in nanoseconds
 * @host_ns: set to the host's CLOCK_MONOTONIC in nanoseconds
 * @bound_ns: set to the maximum error of @host_ns in nanoseconds
 *
 * Unlike ht_host_clock_date(), this may set an earlier host time for a later
 * guest time, within the errors.
 *
 * Returns: false if the host's time is not known
 */
bool ht_host_clock_at(HtHostClock *c, unsigned boot, uint32_t segment,
                      uint64_t ns, uint64_t *host_ns, uint64_t *bound_ns);

/**
 * ht_host_clock_worst: get the maximum error of the host times in a segment
 * @boot: boot, counted from 1
 * @segment: segment of the guest's clock in that boot
 * @from_ns: guest time in nanoseconds; errors before this time do not count
 *
 * Returns: nanoseconds; 0 if the recording has the host's clock; UINT64_MAX if
 * the host's time is not known there
 */
uint64_t ht_host_clock_worst(HtHostClock *c, unsigned boot, uint32_t segment,
                             uint64_t from_ns);

/**
 * ht_host_clock_wall: get CLOCK_REALTIME - CLOCK_MONOTONIC of the host
 * @m: model of a recording
 * @offset_ns: set to the difference when the recording began, in nanoseconds
 *
 * Returns: false if the recording does not have both times
 */
bool ht_host_clock_wall(HtModel *m, int64_t *offset_ns);

/**
 * ht_host_clock_shift: relate the host clocks of two recordings
 * @m: model of a recording
 * @first: model of the recording whose host clock is the common clock
 * @shift_ns: set to the nanoseconds to add to @m's host times to get times of
 *            the common clock. 0 if both were recorded in the same boot of the
 *            same host, or if a recording lacks the host's wall clock; else
 *            computed from the wall clocks of both hosts
 * @errp: set if the clock of @first's host began after @m was recorded, so that
 *        @m's times would be negative
 *
 * Returns: true if both were recorded in the same boot of the same host
 */
bool ht_host_clock_shift(HtModel *m, HtModel *first, int64_t *shift_ns,
                         GError **errp);

#endif /* HYPERTRACE_TOOL_HOST_CLOCK_H */
