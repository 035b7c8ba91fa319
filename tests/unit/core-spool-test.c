/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The spool between a vCPU that consumes and the IOThread that delivers
 *
 * An event here is its number, eight bytes.  Runs are of any length, but end
 * where a cut or more discarded events have to be told of.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "spool.h"

#define SIZE (512 * 1024)
#define CUT 5000                /* longer than what is merged */
#define DISCARD 12000
#define RUN_MAX (CUT * sizeof(uint64_t))

typedef struct Check {
    HtSpool spool;
    HtStreamInfo info;          /* producer's */
    uint64_t put;               /* numbers; producer */
    uint64_t got;               /* numbers; consumer */
    uint64_t runs;
    uint64_t opens;
    uint64_t seed;
    bool done;
} Check;

static uint64_t chance(Check *c)
{
    c->seed = c->seed * UINT64_C(6364136223846793005) + 1;
    return c->seed >> 33;
}

/* A run of some numbers, or now and then the mark of an opening */
static bool put(Check *c)
{
    uint64_t data[CUT], first = c->put, n = first;
    uint64_t length = chance(c) % (chance(c) % 16 ? 40 : CUT) + 1;
    HtRun run = {
        .stream = &c->info,
        .flags = n % CUT == 0 ? HT_RUN_CUT : 0,
        .data = (const uint8_t *)data,
        .discarded = n / DISCARD,
        .begin_ns = n,
        .counter = n,
    };

    do {
        data[n - first] = n;
        n++;
    } while (n - first < length && n % CUT && n % DISCARD);
    run.events = n - first;
    run.size = run.events * sizeof(*data);
    run.end_ns = n - 1;
    if (!ht_spool_put(&c->spool, &run)) {
        return false;
    }
    c->put = n;
    return true;
}

static bool put_open(Check *c)
{
    HtRun run = {
        .stream = &c->info,
        .flags = HT_RUN_OPEN,
        .discarded = c->put / DISCARD,
    };

    c->info.instance++;
    if (!ht_spool_put(&c->spool, &run)) {
        c->info.instance--;
        return false;
    }
    return true;
}

static void deliver(void *opaque, const HtRun *run)
{
    const uint64_t *data = (const uint64_t *)run->data;
    Check *c = opaque;
    uint32_t i;

    g_assert_cmpuint(run->stream->index, ==, 9);
    if (run->flags & HT_RUN_OPEN) {
        g_assert_cmpuint(run->events, ==, 0);
        g_assert_cmpuint(run->stream->instance, ==, ++c->opens);
        return;
    }
    /* as it was when the stream was opened, not as it is now */
    g_assert_cmpuint(run->stream->instance, ==, c->opens);
    g_assert_cmpuint(run->size, ==, run->events * sizeof(*data));
    g_assert_cmpuint(run->begin_ns, ==, c->got);
    g_assert_cmpuint(run->counter, ==, c->got);
    g_assert_cmpuint(run->end_ns, ==, c->got + run->events - 1);
    g_assert_cmpuint(run->discarded, ==, c->got / DISCARD);
    g_assert_cmpuint(run->flags, ==, c->got % CUT == 0 ? HT_RUN_CUT : 0);
    for (i = 0; i < run->events; i++) {
        g_assert_cmpuint(data[i], ==, c->got);
        g_assert_true(i == 0 || (c->got % CUT && c->got % DISCARD));
        c->got++;
    }
    c->runs++;
}

static void setup(Check *c)
{
    memset(c, 0, sizeof(*c));
    c->info.index = 9;
    c->seed = g_test_rand_int();
    ht_spool_init(&c->spool, SIZE);
    g_assert_false(ht_spool_drain(&c->spool, deliver, c));
    g_assert_true(put_open(c));
}

static void test_order(void)
{
    unsigned round, puts = 0;
    Check c;

    setup(&c);
    for (round = 0; round < 3000; round++) {
        unsigned batch = chance(&c) % 30;

        if (round % 100 == 0) {
            put_open(&c);
        }
        while (batch-- && put(&c)) {
            puts++;
        }
        ht_spool_drain(&c.spool, deliver, &c);
        g_assert_cmpuint(c.got, ==, c.put);
        g_assert_false(ht_spool_drain(&c.spool, deliver, &c));
    }
    g_assert_cmpuint(c.opens, >, 1);
    /* runs that follow each other are delivered as one */
    g_assert_cmpuint(c.runs, <, puts);
    ht_spool_destroy(&c.spool);
}

/* What does not fit is refused whole; what there is room for always fits. */
static void test_room(void)
{
    unsigned round, full = 0;
    Check c;

    setup(&c);
    for (round = 0; round < 20000; round++) {
        bool room = ht_spool_room(&c.spool, RUN_MAX);

        if (put(&c)) {
            continue;
        }
        g_assert_false(room);
        full++;
        ht_spool_drain(&c.spool, deliver, &c);
        g_assert_cmpuint(c.got, ==, c.put);
        g_assert_true(ht_spool_room(&c.spool, RUN_MAX));
    }
    g_assert_cmpuint(full, >, 10);
    ht_spool_drain(&c.spool, deliver, &c);
    g_assert_cmpuint(c.got, ==, c.put);
    ht_spool_destroy(&c.spool);
}

static void *producer(void *opaque)
{
    Check *c = opaque;
    unsigned n;

    for (n = 0; n < 200000; n++) {
        while (n % 1000 ? !put(c) : !put_open(c)) {
            g_thread_yield();
        }
    }
    ht_atomic_store_release(&c->done, true);
    return NULL;
}

static void test_race(void)
{
    GThread *thread;
    bool done;
    Check c;

    setup(&c);
    thread = g_thread_new("producer", producer, &c);
    do {
        done = ht_atomic_load_acquire(&c.done);
        if (!ht_spool_drain(&c.spool, deliver, &c)) {
            g_thread_yield();
        }
    } while (!done);
    g_thread_join(thread);
    ht_spool_drain(&c.spool, deliver, &c);
    g_assert_cmpuint(c.got, ==, c.put);
    g_assert_cmpuint(c.opens, ==, 1 + 200);
    ht_spool_destroy(&c.spool);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spool/order", test_order);
    g_test_add_func("/spool/room", test_room);
    g_test_add_func("/spool/race", test_race);
    return g_test_run();
}
