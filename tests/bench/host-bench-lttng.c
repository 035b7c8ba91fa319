/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-bench: deliver events to LTTng-UST, as the lttng backend does and in a
 * bare loop
 *
 * The bare loop passes the same run repeatedly to ht_ust_deliver().  Before the
 * lttng backend calls that function, the host also copies and walks each event
 * of the ring.
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
    ht_ust_deliver(run, classes, events);
}

/* Number of events in the bare loop's run, which has 9 KB and stays in cache */
#define BARE    250

void host_lttng_bare(const HtClassTable *classes, uint32_t id,
                     const uint8_t *payload, size_t size, unsigned n)
{
    static const HtStreamInfo stream = { .vcpu = -1 };
    g_autoptr(GByteArray) data = g_byte_array_new();
    HtRun run = { .stream = &stream, .events = BARE };
    unsigned i;

    for (i = 0; i < BARE; i++) {
        ht_run_put_header(data, id, 0, 0);
        g_byte_array_append(data, payload, size);
    }
    run.data = data->data;
    run.size = data->len;
    for (i = 0; i < n / BARE; i++) {
        ht_ust_deliver(&run, classes, events);
    }
}
#else
bool host_lttng_class(const HtClass *c)
{
    return false;
}

void host_lttng_run(const HtRun *run, const HtClassTable *classes)
{
}

void host_lttng_bare(const HtClassTable *classes, uint32_t id,
                     const uint8_t *payload, size_t size, unsigned n)
{
}
#endif
