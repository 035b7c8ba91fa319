/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what became of a guest's rings, as a property
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-hypertrace.h"
#include "qapi/visitor.h"
#include "ftrace.h"
#include "properties.h"

static bool visit_ring(Visitor *v, HtFtWatched *w, Error **errp)
{
    const HtFtRing *ring = ht_ft_follow_ring(w->follow);
    HtFtStats stats = ht_ft_follow_stats(w->follow, -1);
    uint64_t address = w->address, size = ring->size, number = w->feed.number;
    uint64_t cpus = ring->cpus, bound = ht_ft_time_bound(&w->feed.time[0]);
    char *layout = (char *)ht_ft_layout_name(ring->layout);
    bool ok;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_uint64(v, "ring", &number, errp) &&
         visit_type_uint64(v, "address", &address, errp) &&
         visit_type_uint64(v, "size", &size, errp) &&
         visit_type_uint64(v, "cpus", &cpus, errp) &&
         visit_type_str(v, "layout", &layout, errp) &&
         visit_type_bool(v, "changes", &w->feed.taken, errp) &&
         visit_type_uint64(v, "events", &stats.events, errp) &&
         visit_type_uint64(v, "gaps", &stats.gaps, errp) &&
         visit_type_uint64(v, "lost", &stats.lost, errp) &&
         visit_type_uint64(v, "bad", &stats.bad, errp) &&
         visit_type_uint64(v, "clock-bound-ns", &bound, errp) &&
         visit_type_uint64(v, "clock-worst-ns", &w->feed.worst_ns, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static bool visit_counts(Visitor *v, HtFtRunsCounts *c, uint64_t *resets,
                         Error **errp)
{
    return visit_type_uint64(v, "events", &c->events, errp) &&
           visit_type_uint64(v, "no-format", &c->raw, errp) &&
           visit_type_uint64(v, "gaps", &c->gaps, errp) &&
           visit_type_uint64(v, "lost", &c->lost, errp) &&
           visit_type_uint64(v, "boots", &c->boots, errp) &&
           visit_type_uint64(v, "resets", resets, errp) &&
           visit_type_uint64(v, "clock-steps", &c->steps, errp);
}

static bool visit_rings(Visitor *v, GPtrArray *rings, Error **errp)
{
    bool ok = true;
    guint i;

    if (!visit_start_list(v, "rings", NULL, 0, errp)) {
        return false;
    }
    for (i = 0; ok && i < rings->len; i++) {
        ok = visit_ring(v, rings->pdata[i], errp);
    }
    visit_end_list(v, NULL);
    return ok;
}

static bool visit_backends(Visitor *v, HtSinks *k, Error **errp)
{
    HypertraceBackendStatsList *list = k ? ht_sinks_qapi_stats(k) : NULL;
    bool ok = visit_type_HypertraceBackendStatsList(v, "backends", &list,
                                                    errp);

    qapi_free_HypertraceBackendStatsList(list);
    return ok;
}

void ht_ftrace_stats_get(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);
    uint64_t made, skipped, resets;
    HtFtRunsCounts counts;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    ht_ftrace_lock(ft);
    counts = ft->runs.counts;
    resets = ft->resets;
    ht_flights_count(ft->flights, &made, &skipped);
    if (visit_counts(v, &counts, &resets, errp) &&
        visit_type_uint64(v, "recordings", &made, errp) &&
        visit_type_uint64(v, "skipped-recordings", &skipped, errp) &&
        visit_rings(v, ft->rings, errp) &&
        visit_backends(v, ft->sinks, errp)) {
        visit_check_struct(v, errp);
    }
    qemu_mutex_unlock(&ft->lock);
    visit_end_struct(v, NULL);
}
