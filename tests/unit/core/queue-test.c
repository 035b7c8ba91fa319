/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the queue of runs to a backend: merging, budget, streams that close
 */
#include "hypertrace/base.h"
#include "queue-check.h"

#define RUN_MAX (QC_BUFFER / sizeof(uint64_t))

/*
 * Promise: consecutive small runs of a stream are merged until their buffer is
 * full. The buffer is smaller than HT_QUEUE_MERGE_MAX.
 */
static void test_merge(void)
{
    QcCheck c;
    unsigned i;

    qc_init(&c, 64 * QC_BUFFER);
    qc_toggle(&c, 0);
    g_assert_cmpuint(qc_take(&c, 0, UINT_MAX), ==, 1);
    for (i = 0; i < 10 * RUN_MAX; i++) {
        qc_post(&c, 0, 1, false, 0);
    }
    g_assert_cmpuint(qc_take(&c, 0, UINT_MAX), ==, 10);
    g_assert_cmpuint(c.stream[0].seen[0].got, ==, i);
    qc_finish(&c);
}

/*
 * Runs of a stream are merged even if runs of other streams lie between them.
 */
static void test_merge_streams(void)
{
    QcCheck c;
    unsigned i;

    qc_init(&c, 64 * QC_BUFFER);
    for (i = 0; i < QC_STREAMS; i++) {
        qc_toggle(&c, i);
    }
    for (i = 0; i < QC_STREAMS * RUN_MAX; i++) {
        qc_post(&c, i % QC_STREAMS, 1, false, 0);
    }
    g_assert_cmpuint(qc_take(&c, 1, UINT_MAX), ==, 2 * QC_STREAMS);
    qc_finish(&c);
}

/*
 * If the reader of a queue is slow, the runs over the queue's budget are lost
 * for this reader; the other queue's reader loses nothing.
 */
static void test_budget(void)
{
    const unsigned runs = 1000, fit = 8;
    QcCheck c;
    unsigned i;

    qc_init(&c, fit * QC_BUFFER);
    qc_toggle(&c, 0);
    for (i = 0; i < runs; i++) {
        qc_post(&c, 0, RUN_MAX, false, 0);
        qc_take(&c, 1, UINT_MAX);
        g_assert_true(ht_queue_room(&c.queue[1]));
        g_assert_true(ht_queue_room(&c.queue[0]) == (i + 1 < fit / 2));
    }
    g_assert_cmpuint(c.queue[1].discarded, ==, 0);
    g_assert_cmpuint(c.stream[0].seen[1].got, ==, runs * RUN_MAX);
    g_assert_cmpuint(c.queue[0].discarded, ==, (runs - fit) * RUN_MAX);

    g_assert_cmpuint(qc_take(&c, 0, UINT_MAX), ==, 1 + fit + 1);
    g_assert_cmpuint(c.stream[0].seen[0].missing, ==, (runs - fit) * RUN_MAX);
    g_assert_cmpuint(qc_take(&c, 0, UINT_MAX), ==, 0);
    qc_finish(&c);
}

/*
 * A queue's budget counts a whole buffer even if only one small run is in it.
 */
static void test_pinned(void)
{
    const unsigned fit = 4;
    QcCheck c;
    unsigned i;

    qc_init(&c, fit * QC_BUFFER);
    for (i = 0; i < 100; i++) {
        qc_toggle(&c, i % QC_STREAMS);
        qc_post(&c, i % QC_STREAMS, 1, false, 0);
        qc_toggle(&c, i % QC_STREAMS);
        qc_take(&c, 1, UINT_MAX);
        g_assert_cmpuint(c.queue[0].held, ==, MIN(i + 1, fit) * QC_BUFFER);
    }
    g_assert_cmpuint(c.pool.buffers, ==, fit);
    qc_finish(&c);
}

/*
 * Promise: if streams open and close many times while a queue is full, its
 * reader still gets the last state of each stream, open or closed.
 */
static void test_states(void)
{
    QcCheck c;
    unsigned i;

    qc_init(&c, 2 * QC_BUFFER);
    for (i = 0; i < 100000; i++) {
        qc_toggle(&c, i % QC_STREAMS);
        if (c.stream[i % QC_STREAMS].open) {
            qc_post(&c, i % QC_STREAMS, 1, false, i % 7);
        }
    }
    qc_take(&c, 0, UINT_MAX);
    for (i = 0; i < QC_STREAMS; i++) {
        g_assert_true(c.stream[i].seen[0].open == c.stream[i].open);
        if (c.stream[i].open) {
            g_assert_cmpuint(c.stream[i].seen[0].instance, ==,
                             c.stream[i].info.instance);
        }
    }
    qc_finish(&c);
}

/*
 * The reader gets a count of events that were discarded before they reached the
 * queue, even if no run of events follows.
 */
static void test_tell(void)
{
    QcCheck c;

    qc_init(&c, 2 * QC_BUFFER);
    qc_toggle(&c, 2);
    qc_tell(&c, 2, 5);
    g_assert_cmpuint(qc_take(&c, 0, UINT_MAX), ==, 2);
    g_assert_cmpuint(c.stream[2].seen[0].missing, ==, 5);
    qc_finish(&c);
}

static void test_random(void)
{
    unsigned round, i;

    for (round = 0; round < 200; round++) {
        QcCheck c;

        qc_init(&c, g_test_rand_int_range(2, 20) * QC_BUFFER);
        for (i = 0; i < 2000; i++) {
            unsigned stream = g_test_rand_int_range(0, QC_STREAMS);
            unsigned what = g_test_rand_int_range(0, 100);

            if (what < 5 || !c.stream[stream].open) {
                qc_toggle(&c, stream);
            } else if (what < 10) {
                qc_tell(&c, stream, what % 3);
            } else if (what < 80) {
                qc_post(&c, stream,
                        g_test_rand_int_range(1, what < 70 ? 4 : RUN_MAX + 1),
                        what == 10, what == 11);
            } else {
                qc_take(&c, what % QC_QUEUES, what - 80);
            }
        }
        qc_finish(&c);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/queue/merge", test_merge);
    g_test_add_func("/queue/merge-streams", test_merge_streams);
    g_test_add_func("/queue/budget", test_budget);
    g_test_add_func("/queue/pinned", test_pinned);
    g_test_add_func("/queue/states", test_states);
    g_test_add_func("/queue/tell", test_tell);
    g_test_add_func("/queue/random", test_random);
    return g_test_run();
}
