/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-bench: the lttng backend's part, beside a bare loop of its event
 *
 * The bare loop records one and the same event at run time, with the same
 * fields: what LTTng-UST takes.  The backend in addition copies, walks and
 * finds each event.
 */
#include "hypertrace/base.h"
#include "host-bench.h"

#ifdef HOST_BENCH_LTTNG
#include "hypertrace/lttng-ust-event.h"

static HtUstEvent *events[HT_CLASSES_MAX + 1];

bool host_lttng_class(const HtClass *c)
{
    g_autofree char *why = NULL;

    events[c->id] = ht_ust_event_get("host_bench", c, &why);
    if (!events[c->id]) {
        fprintf(stderr, "host-bench: %s\n", why);
    }
    return events[c->id];
}

void host_lttng_run(const HtRun *run, const HtClassTable *classes)
{
    HtRunIter it;
    HtEvent ev;

    ht_run_iter_init(&it, run, classes);
    ht_ust_begin();
    while (ht_run_next(&it, &ev)) {
        ht_ust_event_emit(events[ev.cls->id], run->stream->index,
                          run->stream->vcpu, ev.ns, ev.payload, ev.size);
    }
    ht_ust_done();
}

void host_lttng_bare(uint32_t id, const uint8_t *payload, size_t size,
                     unsigned n)
{
    ht_ust_begin();
    while (n--) {
        ht_ust_event_emit(events[id], 0, -1, n, payload, size);
    }
    ht_ust_done();
}
#else
bool host_lttng_class(const HtClass *c)
{
    return false;
}

void host_lttng_run(const HtRun *run, const HtClassTable *classes)
{
}

void host_lttng_bare(uint32_t id, const uint8_t *payload, size_t size,
                     unsigned n)
{
}
#endif
