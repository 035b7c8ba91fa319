/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: statistics of a hypertrace-ftrace object
 */
#include "qemu/osdep.h"
#include "ftrace.h"
#include "stats.h"

static HypertraceRingStats *ring_stats(HtFtWatched *w)
{
    HypertraceRingStats *stats = g_new0(HypertraceRingStats, 1);
    const HtFtRing *ring = ht_ft_follow_ring(w->follow);
    HtFtStats own = ht_ft_follow_stats(w->follow, -1);
    uint32List **streams = &stats->streams;
    uint32_t cpu;

    stats->ring = w->feed.number;
    stats->address = w->address;
    stats->size = ring->size;
    stats->cpus = ring->cpus;
    stats->layout = g_strdup(ht_ft_layout_name(ring->layout));
    stats->changes = w->feed.taken;
    for (cpu = 0; cpu < ring->cpus; cpu++) {
        int stream = ht_ft_feed_stream(&w->feed, cpu);

        if (stream >= 0) {
            QAPI_LIST_APPEND(streams, stream);
        }
    }
    stats->events = own.events;
    stats->gaps = own.gaps;
    stats->lost = own.lost;
    stats->bad = own.bad;
    stats->clock_bound_ns = ht_ft_time_bound(&w->feed.time[0]);
    stats->clock_worst_ns = w->feed.worst_ns;
    return stats;
}

void ht_ftrace_stats(HypertraceFtrace *ft, HypertraceFtraceStats *stats)
{
    HypertraceRingStatsList **rings = &stats->rings;
    guint i;

    ht_ftrace_lock(ft);
    stats->events = ft->runs.counts.events;
    stats->no_format = ft->runs.counts.raw;
    stats->gaps = ft->runs.counts.gaps;
    stats->lost = ft->runs.counts.lost;
    stats->boots = ft->runs.counts.boots;
    stats->resets = ft->resets;
    stats->clock_steps = ft->runs.counts.steps;
    ht_flights_count(ft->flights, &stats->recordings,
                     &stats->skipped_recordings);
    for (i = 0; i < ft->rings->len; i++) {
        QAPI_LIST_APPEND(rings, ring_stats(ft->rings->pdata[i]));
    }
    stats->backends = ht_backend_stats(ft->dispatch);
    qemu_mutex_unlock(&ft->lock);
}
