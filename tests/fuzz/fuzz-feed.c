/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target feed: pass buffers to a consumer as a guest submits them by a
 * virtqueue: buffers of an honest guest, or arbitrary buffers. The honest
 * guest's bytes may also be passed as if the host had read them from a ring.
 *
 * Delivered runs are well-formed and counted.  A stopped stream stays stopped.
 * If all buffers are an honest guest's, each of its events is delivered, or was
 * counted as lost by the guest.
 */
#include "hypertrace/base.h"
#include "fuzz.h"

typedef struct Feed {
    CtRing ring;
    CtSink sink;
    HtConsumer consumer;
    /* stream position after the last byte that the honest guest submitted */
    uint64_t position;
    uint64_t tried;
    /* all bytes submitted so far are those that the honest guest wrote */
    bool honest;
} Feed;

/*
 * Pass the @size bytes of the submission @sub to the consumer: with @fetch, as
 * bytes that the host has read from the guest's ring, else as a buffer that the
 * guest has submitted. Then check the consumer's counters.
 */
static void submit(Feed *f, const struct ht_submit *sub, const uint8_t *bytes,
                   size_t size, bool fetch)
{
    /* copy the bytes, because the consumer may change them */
    g_autofree uint8_t *data = fuzz_copy(bytes, size);
    HtConsumer *c = &f->consumer;
    uint64_t events = c->events, cursor = c->cursor, lost = c->lost;
    bool stopped = c->stopped;

    if (fetch) {
        ht_consumer_fetched(c, sub, data, size);
    } else {
        ht_consumer_feed(c, sub, data, size);
    }
    g_assert_cmpuint(c->cursor, >=, cursor);
    g_assert_cmpuint(c->cursor, >=, c->fed);
    g_assert_cmpuint(c->lost, >=, lost);
    if (stopped) {
        g_assert_true(c->stopped);
        g_assert_cmpuint(c->events, ==, events);
    } else if (!c->stopped) {
        g_assert_cmpuint(fetch ? c->cursor : c->fed, ==, ht_le64(sub->to));
    }
    fuzz_check_consumer(c, &f->sink);
}

/*
 * Pass committed bytes of the ring to the consumer, each packet separately.
 * Without @fetch, pass the bytes from @f->position on as buffers that the guest
 * submits. With @fetch, pass the bytes from the consumer's cursor on as bytes
 * that the host has read from the ring.
 */
static void submit_honest(Feed *f, bool fetch)
{
    uint64_t position = f->position;
    const uint32_t size = f->ring.packet_size;
    uint64_t head = f->ring.packet * size + f->ring.offset;

    if (fetch) {
        position = f->consumer.cursor;
        if (position % size &&
            head - position / size * size > 2 * (uint64_t)size) {
            /*
             * The guest has overwritten the packet at the cursor, because the
             * ring has only two: continue with the next packet.
             */
            position = (position / size + 1) * size;
        }
    }
    while (position < head) {
        uint64_t packet = position / size;
        uint32_t from = position % size;
        uint32_t to = packet == f->ring.packet ? f->ring.offset :
            ht_le32(ct_ring_packet(&f->ring, packet)->content);
        struct ht_submit sub = {
            .from = ht_le64(position),
            .to = ht_le64(packet * size + to),
            .lost = ht_le64(f->ring.lost),
            .stream = ht_le32(f->ring.stream),
        };

        if (to > from) {
            submit(f, &sub, (uint8_t *)ct_ring_packet(&f->ring, packet) + from,
                   to - from, fetch);
        }
        position = packet < f->ring.packet ? (packet + 1) * size : head;
    }
    if (!fetch) {
        f->position = position;
        /*
         * The consumer has copied the packets: advance tail, so that the guest
         * may overwrite them.
         */
        f->ring.control->host.tail = ht_le64(position / size);
    }
}

/*
 * Submit a buffer that the input chooses: often events at the consumer's
 * cursor, with one changed byte, but the position, the length and the packet's
 * header can be wrong
 */
static void submit_any(Feed *f, FuzzInput *in)
{
    uint8_t how = fuzz_u8(in);
    uint64_t from = fuzz_number(in), length = fuzz_number(in);
    struct ht_submit sub = {
        .stream = ht_le32(f->ring.stream + (how & 0x10 ? fuzz_u8(in) : 0)),
        .lost = ht_le64(how & 0x20 ? fuzz_number(in) : 0),
    };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint64_t clock = f->ring.clock;
    unsigned i;

    if (how & 1) {
        from += f->consumer.cursor;
    }
    if ((how & 2) && from % f->ring.packet_size == 0) {
        struct ht_packet h = {
            .magic = ht_le32(HT_PACKET_MAGIC),
            .stream = ht_le32(f->ring.stream),
            .instance = ht_le64(f->ring.instance),
            .seq = ht_le64(from / f->ring.packet_size),
            .events = ht_le64(f->consumer.expected),
            .clock_begin = ht_le64(clock),
            .lost = ht_le64(how & 0x40 ? fuzz_number(in) : 0),
        };

        g_byte_array_append(bytes, (const uint8_t *)&h, sizeof(h));
    }
    for (i = how & 7; i; i--) {
        fuzz_event(in, bytes, &clock);
    }
    if (!(how & 0x80)) {
        length = bytes->len;
    }
    sub.from = ht_le64(from);
    sub.to = ht_le64(from + length);
    f->honest = false;
    if (bytes->len) {
        uint16_t at = fuzz_bits(in, 2) % bytes->len;

        bytes->data[at] ^= fuzz_u8(in);
    }
    submit(f, &sub, bytes->data, bytes->len, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    Feed f = { .honest = true, .sink = fuzz_sink() };
    uint8_t how = fuzz_u8(&in);

    ct_ring_init(&f.ring, HT_PACKET_SIZE_MIN, 2, false);
    ct_consumer_open(&f.consumer, &f.sink, &f.ring);
    if (how & 1) {
        ht_time_map_init(&f.consumer.time, 1000000000);
    }
    while (fuzz_more(&in)) {
        g_autoptr(GByteArray) event = g_byte_array_new();
        unsigned i;

        switch (fuzz_u8(&in) % 8) {
        case 0:
            submit_honest(&f, false);
            break;
        case 5:
            submit_honest(&f, true);
            break;
        case 1:
            submit_any(&f, &in);
            break;
        case 2:
            fuzz_sample(&in, &f.consumer.time);
            break;
        case 3:
            ct_ring_close_packet(&f.ring);
            break;
        case 4:
            for (i = fuzz_u8(&in) * 4; i; i--) {
                ct_ring_emit(&f.ring, f.tried++);
            }
            break;
        default:
            fuzz_event(&in, event, &f.ring.clock);
            f.tried++;
            ct_ring_put(&f.ring, event->data, event->len);
        }
    }
    if (f.honest) {
        submit_honest(&f, false);
        g_assert_cmpstr(f.consumer.why, ==, "");
        g_assert_cmpuint(f.consumer.dropped, ==, 0);
        g_assert_cmpuint(f.consumer.events + f.ring.lost, ==, f.tried);
    }
    ht_consumer_close(&f.consumer, f.ring.lost, 0);
    fuzz_check_consumer(&f.consumer, &f.sink);
    g_assert_cmpuint(f.sink.closed, ==, 1);
    g_assert_cmpuint(f.sink.discarded, ==,
                     f.consumer.lost + f.consumer.dropped);

    ht_consumer_destroy(&f.consumer);
    ct_ring_destroy(&f.ring);
    g_array_free(f.sink.numbers, true);
    return 0;
}
