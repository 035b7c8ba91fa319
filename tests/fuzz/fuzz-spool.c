/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The spool, against a list of what was put into it
 *
 * Runs come out in order, whole or merged with those that follow, never lost
 * or doubled, also where more is put in while they are delivered.
 */
#include "hypertrace/base.h"
#include "spool.h"
#include "fuzz.h"

/* Longer than what is merged */
#define RUN_MAX (80 * 1024)

typedef struct Put {
    HtRun run;
    uint64_t instance;
    const uint8_t *bytes;
} Put;

typedef struct Check {
    HtSpool spool;
    HtStreamInfo info;
    GQueue puts;
    FuzzInput meanwhile;
    uint8_t next;
    uint64_t ns;
    uint64_t discarded;
} Check;

/* Bytes that count up, from any number on */
static const uint8_t *numbers(void)
{
    static uint8_t data[UINT8_MAX + RUN_MAX];
    size_t i;

    for (i = data[1] ? sizeof(data) : 0; i < sizeof(data); i++) {
        data[i] = i;
    }
    return data;
}

static bool put(Check *c, unsigned flags, size_t size)
{
    Put *p = g_new0(Put, 1);

    p->bytes = numbers() + c->next;
    p->run = (HtRun) {
        .stream = &c->info,
        .flags = flags,
        .events = size ? size / 8 + 1 : 0,
        .data = p->bytes,
        .size = size,
        .begin_ns = c->ns,
        .end_ns = c->ns + size,
        .counter = c->ns * 3,
        .discarded = c->discarded,
    };
    if (flags & HT_RUN_OPEN) {
        c->info.instance++;
    }
    p->instance = c->info.instance;
    if (!ht_spool_put(&c->spool, &p->run)) {
        if (flags & HT_RUN_OPEN) {
            c->info.instance--;
        }
        g_free(p);
        return false;
    }
    c->next += size;
    c->ns += size + 1;
    g_queue_push_tail(&c->puts, p);
    return true;
}

/* What there is room for fits, in whatever pieces a packet is cut. */
static void put_packet(Check *c, FuzzInput *in)
{
    size_t left = fuzz_bits(in, 3) % RUN_MAX;
    unsigned pieces = 16;

    if (!ht_spool_room(&c->spool, left)) {
        return;
    }
    while (left && pieces--) {
        size_t piece = pieces ? fuzz_number(in) % left + 1 : left;

        g_assert_true(put(c, pieces & 1 ? HT_RUN_CUT : 0, piece));
        left -= piece;
    }
}

static void produce(Check *c, uint8_t action, FuzzInput *in)
{
    switch (action % 8) {
    case 0:
        put(c, HT_RUN_OPEN, 0);
        break;
    case 1:
        put(c, HT_RUN_CLOSE, 0);
        break;
    case 2:
        put(c, HT_RUN_CUT, fuzz_number(in) % RUN_MAX + 1);
        break;
    case 3:
        c->discarded += fuzz_u8(in);
        break;
    case 4:
        put_packet(c, in);
        break;
    default:
        put(c, 0, fuzz_number(in) % RUN_MAX + 1);
    }
}

static void deliver(void *opaque, const HtRun *run)
{
    Check *c = opaque;
    size_t size = 0;
    uint32_t events = 0;
    uint8_t action;
    Put *p = NULL;

    g_assert_cmpuint(run->stream->index, ==, 9);
    do {
        bool begin = !p;

        g_free(p);
        p = g_queue_pop_head(&c->puts);
        g_assert_nonnull(p);
        g_assert_cmpuint(p->instance, ==, run->stream->instance);
        g_assert_cmpuint(p->run.discarded, ==, run->discarded);
        if (begin) {
            g_assert_cmpuint(p->run.flags, ==, run->flags);
            g_assert_cmpuint(p->run.begin_ns, ==, run->begin_ns);
            g_assert_cmpuint(p->run.counter, ==, run->counter);
        } else {
            g_assert_cmpuint(p->run.flags, ==, 0);
            g_assert_false(run->flags & (HT_RUN_OPEN | HT_RUN_CLOSE));
        }
        g_assert_cmpuint(size + p->run.size, <=, run->size);
        g_assert_cmpint(memcmp(run->data + size, p->bytes, p->run.size), ==,
                        0);
        size += p->run.size;
        events += p->run.events;
    } while (size < run->size);
    g_assert_cmpuint(events, ==, run->events);
    g_assert_cmpuint(p->run.end_ns, ==, run->end_ns);
    g_free(p);

    /* the vCPU goes on meanwhile */
    action = fuzz_u8(&c->meanwhile);
    if (action & 0x80) {
        produce(c, action, &c->meanwhile);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    Check c = { .info.index = 9, .puts = G_QUEUE_INIT };

    ht_spool_init(&c.spool, UINT64_C(1) << (10 + fuzz_u8(&in) % 10));
    put(&c, HT_RUN_OPEN, 0);
    while (fuzz_more(&in)) {
        uint8_t action = fuzz_u8(&in);
        bool any = !g_queue_is_empty(&c.puts);

        if (action < 0x80) {
            produce(&c, action, &in);
            continue;
        }
        c.meanwhile = fuzz_slice(&in, action & 0x3f);
        g_assert_cmpint(ht_spool_drain(&c.spool, deliver, &c), ==, any);
        c.meanwhile = fuzz_slice(&in, 0);
    }
    ht_spool_drain(&c.spool, deliver, &c);
    g_assert_true(g_queue_is_empty(&c.puts));
    g_assert_false(ht_spool_drain(&c.spool, deliver, &c));
    ht_spool_destroy(&c.spool);
    return 0;
}
