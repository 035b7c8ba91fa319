/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=virtio, events that were committed but not handed over
 *
 * A guest that panics, is reset or hangs hands over nothing.  Its driver has
 * announced the address of the stream's memory.  It is read when the VM stops
 * or is reset and when the device is removed.  If the guest then continues and
 * hands over the same bytes, ht_consumer_feed() skips them.
 *
 * The guest controls this memory.  Its driver protects only the table of
 * addresses from programs; the content of the table and of the memory may be
 * anything.
 *
 * Context: BQL
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/lockable.h"
#include "system/dma.h"
#include "device.h"

/*
 * Read RAM only, so that no device is accessed.  (The functions for single
 * words access devices whatever the attributes are.)
 */
static bool read_ram(uint64_t addr, void *to, size_t size)
{
    const MemTxAttrs ram_only = { .memory = true };

    return address_space_read(&address_space_memory, addr, ram_only, to,
                              size) == MEMTX_OK;
}

static bool read_word(uint64_t addr, uint64_t *v)
{
    uint64_t le = 0;
    bool good = read_ram(addr, &le, sizeof(le));

    *v = le64_to_cpu(le);
    return good;
}

static bool read_entry(HtStream *s, uint32_t n, uint64_t *addr)
{
    return read_word(s->memory + n * sizeof(*addr), addr);
}

/*
 * Read the producer's line.  Returns false if it cannot be read, or if its
 * values are impossible.
 */
static bool read_line(HtStream *s, uint64_t control, struct ht_guest_line *g)
{
    if (!read_word(control + offsetof(struct ht_guest_line, head), &g->head)) {
        return false;
    }
    /* Pairs with the store-release of head in ht_commit(). */
    smp_rmb();
    return g->head >= s->consumer.cursor && g->head <= UINT64_MAX / 2 &&
        read_word(control + offsetof(struct ht_guest_line, end), &g->end) &&
        read_word(control + offsetof(struct ht_guest_line, lost), &g->lost);
}

/* Read where the events of the closed packet at @start end */
static bool read_end(HtStream *s, const struct ht_guest_line *g, uint64_t slot,
                     uint64_t start, uint64_t *end)
{
    const uint64_t size = s->dev->conf.packet_size;
    uint32_t content;

    if (g->end > start && g->end <= start + size) {
        *end = g->end;
        return true;
    }
    if (!read_ram(slot + offsetof(struct ht_packet, content), &content,
                  sizeof(content))) {
        return false;
    }
    *end = start + MIN(le32_to_cpu(content), size);
    return true;
}

/* Consume [@from, @to) of the packet at @slot.  Context: HtStream.lock held */
static bool fetch(HtStream *s, const struct ht_guest_line *g, uint64_t slot,
                  uint64_t from, uint64_t to)
{
    const uint32_t offset = from & (s->dev->conf.packet_size - 1);
    struct ht_submit submit = {
        .from = cpu_to_le64(from),
        .to = cpu_to_le64(to),
        .lost = cpu_to_le64(g->lost),
        .stream = cpu_to_le32(s->index),
    };
    uint8_t *data = ht_dispatch_reserve(s->dev->dispatch, &s->fill, to - from);

    if (!read_ram(slot + offset, data, to - from)) {
        return false;
    }
    ht_consumer_fetched(&s->consumer, &submit, data, to - from);
    return true;
}

/*
 * Consume everything that was committed.  Returns false at the first error,
 * after consuming the bytes before it.
 *
 * Context: HtStream.lock held
 */
static bool fetch_all(HtStream *s)
{
    const uint64_t size = s->dev->conf.packet_size;
    const uint64_t ring = size * s->dev->conf.packets;
    const uint32_t mask = s->dev->conf.packets - 1;
    uint64_t pos = s->consumer.cursor, control, slot, start, end;
    struct ht_guest_line g;

    if (!read_entry(s, HT_MEMORY_CONTROL, &control)) {
        return false;
    }
    if (!control) {
        return true;
    }
    if (!read_line(s, control, &g)) {
        return false;
    }
    start = QEMU_ALIGN_DOWN(pos, size);
    if (g.head - start > ring && pos > start) {
        /* A newer packet has its slot, so all of it had been consumed. */
        pos = start + size;
    }
    if (g.head > pos && g.head - QEMU_ALIGN_DOWN(pos, size) > ring) {
        return false;
    }
    /* At most a ring, and each packet once. */
    while (pos < g.head && !s->consumer.stopped) {
        start = QEMU_ALIGN_DOWN(pos, size);
        end = g.head;
        if (!read_entry(s, HT_MEMORY_SLOT(start / size & mask), &slot) ||
            !slot || (g.head - start >= size &&
             !read_end(s, &g, slot, start, &end)) ||
            (end > pos && !fetch(s, &g, slot, pos, end))) {
            return false;
        }
        pos = start + size;
    }
    /* A guest that discards all events has no packet with the count. */
    ht_consumer_tell(&s->consumer, g.lost);
    return true;
}

void ht_streams_forget_memory(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        dev->streams[i].memory = 0;
    }
}

size_t ht_stream_fetch(HtStream *s)
{
    uint64_t before;
    bool good;

    QEMU_LOCK_GUARD(&s->lock);
    before = s->consumer.cursor;
    if (!virtio_vdev_has_feature(VIRTIO_DEVICE(s->dev), HT_F_MEMORY) ||
        !s->memory || !s->consumer.open || s->consumer.stopped) {
        return 0;
    }
    ht_stream_begin(s);
    good = fetch_all(s);
    ht_stream_end(s);
    if (!good) {
        ht_guest_error(s->dev, "stream %" PRIu32 ": its memory is not as its"
                       " driver says", s->index);
        s->memory = 0;
    }
    return s->consumer.cursor - before;
}
