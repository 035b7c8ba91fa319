/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: with channel=virtio, read events that the guest has committed but
 * not handed over
 *
 * If a guest panics, is reset or hangs, its driver no longer hands over its
 * committed events.  With HT_F_MEMORY, the driver has sent the address of a
 * table of the stream's memory in STREAM_OPEN.  The host reads that memory when
 * the VM stops, when the system or the driver resets the device, and when the
 * device is removed.  If the guest then continues and hands over the same
 * bytes, ht_consumer_feed() skips them.
 *
 * The guest controls this memory.  Its driver keeps programs from writing the
 * table of addresses, but not from writing the memory.  The host trusts
 * neither, because the driver may be hostile, too.
 *
 * Context: BQL
 */
#include "hypertrace/base.h"
#include "hypertrace/streams.h"

static bool read_ram(HtStream *s, uint64_t addr, void *to, size_t size)
{
    const HtStreamsConfig *cfg = &s->all->cfg;

    return cfg->read(cfg->opaque, addr, to, size);
}

static bool read_word(HtStream *s, uint64_t addr, uint64_t *v)
{
    uint64_t le = 0;
    bool good = read_ram(s, addr, &le, sizeof(le));

    *v = ht_le64(le);
    return good;
}

static bool read_entry(HtStream *s, uint32_t n, uint64_t *addr)
{
    return read_word(s, s->memory + n * sizeof(*addr), addr);
}

/*
 * Read the part of the control page that the producer writes.  Returns false if
 * a read fails or head is impossible.  The other values are not checked.
 */
static bool read_line(HtStream *s, uint64_t control, struct ht_guest_line *g)
{
    if (!read_word(s, control + offsetof(struct ht_guest_line, head),
                   &g->head)) {
        return false;
    }
    /*
     * Load head before the other words and the events.  Pairs with the
     * producer's store-release of head after an event.
     */
    ht_fence_acquire();
    return g->head >= s->consumer.cursor && g->head <= UINT64_MAX / 2 &&
        read_word(s, control + offsetof(struct ht_guest_line, end), &g->end) &&
        read_word(s, control + offsetof(struct ht_guest_line, lost), &g->lost);
}

/*
 * Get the position where the events of the closed packet at @start end: from
 * ht_guest_line.end if that is in the packet, else from the packet's header
 */
static bool read_end(HtStream *s, const struct ht_guest_line *g, uint64_t slot,
                     uint64_t start, uint64_t *end)
{
    const uint64_t size = s->consumer.cfg.packet_size;
    uint32_t content;

    if (g->end > start && g->end <= start + size) {
        *end = g->end;
        return true;
    }
    if (!read_ram(s, slot + offsetof(struct ht_packet, content), &content,
                  sizeof(content))) {
        return false;
    }
    *end = start + MIN(ht_le32(content), size);
    return true;
}

/*
 * Copy and consume the bytes of the packet at @slot from stream position @from
 * to before @to.  Context: HtStream.lock held
 */
static bool fetch(HtStream *s, const struct ht_guest_line *g, uint64_t slot,
                  uint64_t from, uint64_t to)
{
    const uint32_t offset = from & (s->consumer.cfg.packet_size - 1);
    struct ht_submit submit = {
        .from = ht_le64(from),
        .to = ht_le64(to),
        .lost = ht_le64(g->lost),
        .stream = ht_le32(s->index),
    };
    uint8_t *data = s->consumer.cfg.reserve(s, to - from);

    if (!read_ram(s, slot + offset, data, to - from)) {
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
    const uint64_t size = s->consumer.cfg.packet_size;
    const uint64_t ring = size * s->consumer.cfg.packets;
    const uint32_t mask = s->consumer.cfg.packets - 1;
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
    start = pos & ~(size - 1);
    if (g.head - start > ring && pos > start) {
        /*
         * The producer has reused the memory of this packet, so the host has
         * consumed all events of the packet before.
         */
        pos = start + size;
    }
    if (g.head > pos && g.head - (pos & ~(size - 1)) > ring) {
        return false;
    }
    /* Read at most a ring, each packet once. */
    while (pos < g.head && !s->consumer.stopped) {
        start = pos & ~(size - 1);
        end = g.head;
        if (!read_entry(s, HT_MEMORY_SLOT(start / size & mask), &slot) ||
            !slot || (g.head - start >= size &&
             !read_end(s, &g, slot, start, &end)) ||
            (end > pos && !fetch(s, &g, slot, pos, end))) {
            return false;
        }
        pos = start + size;
    }
    /*
     * Report the guest's count of discarded events.  The packet headers have an
     * older count if the guest has discarded events after the start of its last
     * packet.
     */
    ht_consumer_tell(&s->consumer, g.lost);
    return true;
}

void ht_streams_forget_memory(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        a->stream[i].memory = 0;
    }
}

size_t ht_stream_fetch(HtStream *s)
{
    size_t done = 0;
    uint64_t before;
    bool good = true;

    if (!s->memory) {
        return 0;
    }
    ht_mutex_lock(&s->lock);
    if (s->consumer.open && !s->consumer.stopped) {
        before = s->consumer.cursor;
        ht_stream_begin(s);
        good = fetch_all(s);
        ht_stream_end(s);
        done = s->consumer.cursor - before;
    }
    ht_mutex_unlock(&s->lock);
    if (!good) {
        s->memory = 0;
        s->all->cfg.memory_bad(s);
    }
    return done;
}
