/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-bench: deliver events to LTTng-UST, as the lttng backend does and in a
 * bare loop
 *
 * The bare loop passes the same run repeatedly to LTTng-UST, so its time is
 * that of LTTng-UST alone.  The lttng backend also copies and walks each
 * event.
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

/* Events in the run of the bare loop; so few that the run stays in the cache */
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
