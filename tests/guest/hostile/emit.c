/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest (what=takeovers and what=emits): emit on streams that
 * end without being closed
 */
#include "console.h"
#include "hostile.h"

/*
 * Upper limit of the events of a stream between two flushes: fewer than any
 * ring holds, so that none is lost
 */
#define EVENTS_MAX  200

/*
 * In each round, open the device as another driver would, while the stream that
 * the previous round opened, if there was one, is still open.
 */
void hostile_takeovers(unsigned index)
{
    unsigned rounds = hostile_rounds(30);

    for (unsigned i = 0; i < rounds; i++) {
        struct ht_bm_device *d = hostile_open(index);
        bool ring = d->dev.caps.channel != HT_CHANNEL_VIRTIO;
        struct honest *h = honest_new();
        uint64_t flushed;

        honest_open(h, d);
        honest_emit(h, hostile_below(EVENTS_MAX));
        if (i % 3 == 0) {
            honest_flush(h);
        }
        flushed = h->sent;
        if (!ring && i % 3) {
            /* virtio: a takeover may lose events that were not flushed */
            flushed = 0;
        }
        if (i % 2) {
            /* This event is never committed: the host must not read it. */
            ht_get(&h->s, hostile_class(), 8);
        }
        honest_report(h, index, flushed);
    }
    ht_bm_close(hostile_open(index));
}

/*
 * Emit bursts of events until the machine is reset. Report how many events the
 * stream has sent ("sent"), and how many of these the host must deliver even if
 * the reset comes now ("flushed"). With a ring, the host must deliver all
 * events; with virtio, all in a report right after a flush, else 0.
 */
void hostile_emits(unsigned index)
{
    struct ht_bm_device *d = hostile_open(index);
    bool ring = d->dev.caps.channel != HT_CHANNEL_VIRTIO;
    struct honest *h = honest_new();

    honest_open(h, d);
    for (uint64_t burst = 0; ; burst++) {
        honest_emit(h, 1 + hostile_below(EVENTS_MAX / 2));
        if (!ring || burst % 8 == 0) {
            honest_flush(h);
            honest_report(h, index, h->sent);
            honest_emit(h, hostile_below(EVENTS_MAX / 2));
        }
        honest_report(h, index, ring ? h->sent : 0);
        honest_flush(h);
    }
}
