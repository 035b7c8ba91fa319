/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test that the host reads each byte of guest memory once, or that a second
 * read has no effect: the result of consuming a ring or a buffer, honest or
 * corrupt, does not depend on whether bytes change before they are read again
 *
 * With -DMUTANT the code under test uses a value that it has read twice, and
 * the test passes if it detects that.
 */
#include "fetch.h"
#include <sys/uio.h>
#include "hypertrace/streams.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
#define PACKETS 4
#define A_PACKET ((SIZE - sizeof(struct ht_packet)) / 12)
#define SEEDS 600

typedef struct VirtQueueElement {
    unsigned out_num;
    unsigned in_num;
    struct iovec *out_sg;
} VirtQueueElement;

static size_t iov_size(const struct iovec *iov, unsigned n)
{
    size_t size = 0;

    while (n--) {
        size += iov[n].iov_len;
    }
    return size;
}

static size_t iov_to_buf(const struct iovec *iov, unsigned n, size_t offset,
                         void *to, size_t size)
{
    size_t done = 0;

    for (; n && done < size; n--, iov++) {
        size_t skip = MIN(offset, iov->iov_len);
        size_t part = MIN(iov->iov_len - skip, size - done);

        fetch_memcpy((uint8_t *)to + done,
                     (const uint8_t *)iov->iov_base + skip, part);
        offset -= skip;
        done += part;
    }
    return done;
}

#include FETCH_BUFFER_FILL

typedef struct Outcome {
    GByteArray *bytes;
    /*
     * number of bytes that the host has read of struct ht_host_line, which it
     * writes itself
     */
    size_t host_line;
} Outcome;

static void put(Outcome *o, const void *p, size_t size)
{
    g_byte_array_append(o->bytes, p, size);
}

static void record(void *opaque, const HtRun *run)
{
    uint64_t words[] = {
        run->flags, run->events, run->size, run->begin_ns, run->end_ns,
        run->counter, run->discarded,
    };

    put(opaque, words, sizeof(words));
    if (run->size) {
        put(opaque, run->data, run->size);
    }
}

static void record_consumer(Outcome *o, const HtConsumer *c)
{
    uint64_t words[] = {
        c->cursor, c->events, c->expected, c->skipped, c->lost, c->dropped,
        c->bytes, c->packets, c->errors, c->stopped,
    };

    put(o, words, sizeof(words));
    put(o, c->why, strlen(c->why));
}

static void outcome_init(Outcome *o)
{
    o->bytes = g_byte_array_new();
    o->host_line = 0;
}

static void start(HtConsumer *c, Outcome *o, const CtRing *r,
                  const HtClassTable *classes)
{
    HtConsumerConfig cfg = {
        .classes = classes,
        .packet_size = SIZE,
        .packets = PACKETS,
        .overwrite = r->overwrite,
        .deliver = record,
        .opaque = o,
    };
    HtStreamInfo info = {
        .index = r->stream, .vcpu = -1, .instance = r->instance,
    };

    ht_consumer_init(c, &cfg);
    /*
     * Clear the consumer's buffer, so that the result does not depend on bytes
     * that were in memory before.
     */
    memset(c->buf, 0, SIZE);
    ht_consumer_open(c, &info, 500);
    c->time = ct_time(1000);
}

static void corrupt(GRand *rand, CtRing *r)
{
    uint32_t at = g_rand_int_range(rand, 0, PACKETS * SIZE);
    uint8_t *p = r->data + at;

    switch (g_rand_int_range(rand, 0, 8)) {
    case 0:
        p = (uint8_t *)r->control +
            g_rand_int_range(rand, 0, sizeof(struct ht_guest_line));
        break;
    case 1:
    case 2:
        /* change a bit of a packet's header */
        p = r->data + at / SIZE * SIZE + at % sizeof(struct ht_packet);
        break;
    case 3:
        break;
    default:
        return;
    }
    *p ^= 1 << g_rand_int_range(rand, 0, 8);
}

/*
 * Fill and consume a ring in 8 steps. @seed selects what the guest writes. With
 * @flip, a watched byte changes before the host reads it again in a step.
 */
static void run_ring(Outcome *o, const HtClassTable *classes, uint32_t seed,
                     bool flip)
{
    GRand *rand = g_rand_new_with_seed(seed);
    struct ht_ring_control *control;
    HtConsumer c;
    unsigned i;
    CtRing r;

    outcome_init(o);
    ct_ring_init(&r, SIZE, PACKETS, g_rand_boolean(rand));
    control = r.control;
    start(&c, o, &r, classes);
    for (i = 0; i < 8; i++) {
        unsigned n = g_rand_int_range(rand, 0, PACKETS * A_PACKET);
        size_t max = g_rand_boolean(rand) ? 1 : SIZE_MAX;

        while (n--) {
            ct_ring_emit(&r, r.events);
        }
        corrupt(rand, &r);
        fetch_watch(&control->guest.lost, sizeof(control->guest.lost), false);
        /*
         * Do not watch opening and head in mode overwrite: the host must read
         * opening again after each copy, and head again if opening shows that
         * the whole ring was overwritten.
         */
        if (!r.overwrite) {
            fetch_watch(&control->guest.head, sizeof(uint64_t), false);
            fetch_watch(&control->guest.opening, sizeof(uint64_t), false);
        }
        fetch_watch(r.data, PACKETS * SIZE, false);
        fetch_begin(flip);
        ht_consumer_ring(&c, control, r.data, max);
        fetch_end();
        fetch_forget();
        /*
         * count the bytes that the host reads of struct ht_host_line, which it
         * writes itself: it must read none
         */
        fetch_watch(&control->host, sizeof(control->host), false);
        fetch_begin(false);
        ht_consumer_ring(&c, control, r.data, max);
        ht_consumer_arm(&c, control, n & 1);
        ht_consumer_pending(&c, control);
        ht_consumer_has_closed_packet(&c, control);
        ht_consumer_disarm(&c, control);
        o->host_line += fetch_end();
        fetch_forget();
        record_consumer(o, &c);
    }
    ht_consumer_destroy(&c);
    ct_ring_destroy(&r);
    g_rand_free(rand);
}

static uint8_t *reserve(void *opaque, size_t size)
{
    static uint8_t fill[2 * SIZE];

    (void)opaque;
    g_assert_cmpuint(size, <=, sizeof(fill));
    return fill;
}

static void run_buffers(Outcome *o, const HtClassTable *classes, uint32_t seed,
                        bool flip)
{
    GRand *rand = g_rand_new_with_seed(seed);
    HtStream *s = g_new0(HtStream, 1);
    uint64_t from = 0;
    unsigned i;
    CtRing r;

    outcome_init(o);
    ct_ring_init(&r, SIZE, PACKETS, false);
    start(&s->consumer, o, &r, classes);
    s->consumer.cfg.reserve = reserve;
    for (i = 0; i < 3; i++) {
        size_t at = from % (PACKETS * SIZE), split;
        unsigned n = g_rand_int_range(rand, 1, A_PACKET / 3);
        struct ht_submit *sub = g_new0(struct ht_submit, 1);
        struct iovec iov[3] = { { sub, sizeof(*sub) } };
        VirtQueueElement e = { .out_num = 3, .out_sg = iov };

        while (n--) {
            ct_ring_emit(&r, r.events);
        }
        corrupt(rand, &r);
        sub->from = ht_le64(from);
        sub->to = ht_le64(r.packet * SIZE + r.offset);
        sub->stream = ht_le32(r.stream);
        split = g_rand_int_range(rand, 0, ht_le64(sub->to) - from + 1);
        iov[1] = (struct iovec) { r.data + at, split };
        iov[2] = (struct iovec) { r.data + at + split,
                                  ht_le64(sub->to) - from - split };
        if (g_rand_int_range(rand, 0, 8) == 0) {
            ((uint8_t *)sub)[g_rand_int_range(rand, 0, sizeof(*sub))] ^= 1;
        }
        from = r.packet * SIZE + r.offset;

        fetch_watch(sub, sizeof(*sub), true);
        fetch_watch(r.data, PACKETS * SIZE, true);
        fetch_begin(flip);
        data_feed(s, &e);
        fetch_end();
        fetch_forget();
        record_consumer(o, &s->consumer);
        g_free(sub);
    }
    ht_consumer_destroy(&s->consumer);
    g_free(s);
    ct_ring_destroy(&r);
    g_rand_free(rand);
}

typedef void Run(Outcome *o, const HtClassTable *classes, uint32_t seed,
                 bool flip);

static unsigned differences(Run *run, uint32_t first)
{
    HtClassTable *classes = ct_classes();
    unsigned found = 0;
    uint32_t seed;

    for (seed = first; seed < first + SEEDS; seed++) {
        Outcome still, flipped;

        run(&still, classes, seed, false);
        run(&flipped, classes, seed, true);
        g_assert_cmpuint(still.host_line, ==, 0);
        if (still.bytes->len != flipped.bytes->len ||
            memcmp(still.bytes->data, flipped.bytes->data,
                   still.bytes->len)) {
            if (found++ == 0) {
                g_test_message("seed %u: read twice", seed);
            }
        }
        g_byte_array_unref(still.bytes);
        g_byte_array_unref(flipped.bytes);
    }
    ht_class_table_free(classes);
    return found;
}

#ifdef MUTANT
static void test_mutant(void)
{
    g_assert_cmpuint(differences(run_ring, 1) + differences(run_buffers, 1),
                     >, 0);
}
#else
static void test_ring(void)
{
    g_assert_cmpuint(differences(run_ring, g_test_rand_int() / 2), ==, 0);
}

static void test_buffers(void)
{
    g_assert_cmpuint(differences(run_buffers, g_test_rand_int() / 2), ==, 0);
}

/*
 * Promise: a second read of a watched byte gives another value, and
 * fetch_end() restores the memory.
 */
static void test_hook(void)
{
    uint8_t guest[4] = { 1, 2, 3, 4 }, host[4];

    fetch_watch(guest, sizeof(guest), false);
    fetch_begin(true);
    fetch_memcpy(host, guest, 4);
    g_assert_cmpmem(host, 4, "\1\2\3\4", 4);
    fetch_memcpy(host, guest + 1, 2);
    g_assert_cmpmem(host, 2, "\xfd\xfc", 2);
    g_assert_cmpuint(fetch_end(), ==, 6);
    g_assert_cmpmem(guest, 4, "\1\2\3\4", 4);
    fetch_forget();
}
#endif

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#ifdef MUTANT
    g_test_add_func("/fetch/" MUTANT "-is-found", test_mutant);
#else
    g_test_add_func("/fetch/hook", test_hook);
    g_test_add_func("/fetch/ring", test_ring);
    g_test_add_func("/fetch/buffers", test_buffers);
#endif
    return g_test_run();
}
