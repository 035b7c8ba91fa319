/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from a device's streams to its backends
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "device.h"

#define SPOOL_MIN (1 * MiB)

bool ht_delivery_attach(HypertraceDevice *dev, Error **errp)
{
    g_autoptr(GPtrArray) leaves = hypertrace_backend_leaves(dev->conf.backend);
    uint32_t i, j;

    dev->sinks = g_new0(HtSink, leaves->len);
    for (i = 0; i < leaves->len; i++) {
        HtSink *sink = &dev->sinks[i];

        sink->session = hypertrace_backend_attach(leaves->pdata[i], &dev->info,
                                                  errp);
        if (!sink->session) {
            ht_delivery_detach(dev);
            return false;
        }
        sink->dev = dev;
        sink->backend = leaves->pdata[i];
        dev->nr_sinks++;
        object_ref(OBJECT(sink->backend));
        sink->deferred = dev->channel->consumes_in_vcpu &&
                         hypertrace_backend_may_block(sink->backend);
        dev->deferred |= sink->deferred;
        if (sink->deferred) {
            sink->spools = g_new0(HtSpool, dev->conf.streams);
            for (j = 0; j < dev->conf.streams; j++) {
                ht_spool_init(&sink->spools[j],
                              MAX(SPOOL_MIN, 8 * dev->conf.packet_size));
            }
        }
    }
    return true;
}

void ht_delivery_detach(HypertraceDevice *dev)
{
    uint32_t i, j;

    for (i = 0; i < dev->nr_sinks; i++) {
        HtSink *sink = &dev->sinks[i];

        hypertrace_backend_detach(sink->backend, sink->session);
        object_unref(OBJECT(sink->backend));
        for (j = 0; sink->spools && j < dev->conf.streams; j++) {
            ht_spool_destroy(&sink->spools[j]);
        }
        g_free(sink->spools);
    }
    g_free(dev->sinks);
    dev->sinks = NULL;
    dev->nr_sinks = 0;
}

static void deliver(HtSink *sink, const HtRun *run)
{
    HtThread *t = &sink->dev->thread;

    hypertrace_backend_deliver(sink->backend, sink->session, run);
    qatomic_set(&t->beats, qatomic_read(&t->beats) + 1);
}

/* Context: IOThread, or the doorbell's vCPU; HtStream.lock held */
void ht_delivery_run(void *opaque, const HtRun *run)
{
    HtStream *s = opaque;
    HypertraceDevice *dev = s->dev;
    unsigned i;

    for (i = 0; i < dev->nr_sinks; i++) {
        HtSink *sink = &dev->sinks[i];

        if (!sink->deferred) {
            deliver(sink, run);
        } else if (!ht_spool_put(&sink->spools[s->index], run)) {
            /* ht_delivery_room() makes this a guest that forges its clock */
            s->consumer.dropped += run->events;
            s->consumer.walk.cut = true;
        }
    }
}

bool ht_delivery_room(HypertraceDevice *dev, uint32_t stream)
{
    unsigned i;

    for (i = 0; i < dev->nr_sinks; i++) {
        HtSink *sink = &dev->sinks[i];

        if (sink->deferred && !ht_spool_room(&sink->spools[stream],
                                             dev->conf.packet_size)) {
            return false;
        }
    }
    return true;
}

static void deliver_deferred(void *opaque, const HtRun *run)
{
    deliver(opaque, run);
}

bool ht_delivery_drain(HypertraceDevice *dev)
{
    bool any = false;
    unsigned i;
    uint32_t j;

    for (i = 0; i < dev->nr_sinks; i++) {
        HtSink *sink = &dev->sinks[i];

        for (j = 0; sink->deferred && j < dev->conf.streams; j++) {
            any |= ht_spool_drain(&sink->spools[j], deliver_deferred, sink);
        }
    }
    return any;
}
