/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Convert a ring's pieces to runs: each event is posted or counted
 */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-runs.h"

#define RINGS 2u

typedef struct Total {
    uint64_t events;
    uint64_t lost;
    /* number of streams that are open now, and its maximum so far */
    unsigned open, most;
    uint64_t discarded[HT_FT_STREAMS];
} Total;

static void learn(void *opaque)
{
    (void)opaque;
}

static void post(void *opaque, HtRun *run, HtBuffer **fill)
{
    Total *t = opaque;
    uint64_t *discarded = &t->discarded[run->stream->index];

    (void)fill;
    if (run->flags & HT_RUN_OPEN) {
        *discarded = 0;
        t->open++;
        t->most = MAX(t->most, t->open);
    }
    t->events += run->events;
    t->lost += run->discarded - *discarded;
    *discarded = run->discarded;
    if (run->flags & HT_RUN_CLOSE) {
        t->open--;
    }
}

static void release(void *opaque, HtBuffer **fill)
{
    (void)opaque;
    (void)fill;
}

/*
 * Two rings together have more processors than there can be streams, and pieces
 * of new boots come again and again: each event is posted or counted as
 * dropped, and each loss is counted.
 */
static void test_accounted(void)
{
    static const HtFtRunsOps ops = { learn, post, release };
    /*
     * a record with 8 bytes of data, 1 ns after the previous record, of event
     * type 7
     */
    uint32_t record[3] = { GUINT32_TO_LE(2 | 1 << 5), GUINT32_TO_LE(7), 0 };
    g_autofree Total *t = g_new0(Total, 1);
    g_autofree HtFtRuns *r = g_new0(HtFtRuns, 1);
    g_autofree HtFtFeed *feeds = g_new0(HtFtFeed, RINGS);
    uint64_t instances = 0, events = 0, lost = 0;
    uint32_t epoch = 0;
    unsigned i;

    r->ops = &ops;
    r->opaque = t;
    r->classes = ht_class_table_new();
    r->instances = &instances;
    g_assert_true(ht_ft_runs_init(r));
    for (i = 0; i < RINGS; i++) {
        ht_ft_feed_init(&feeds[i], r, i);
        ht_ft_feed_begin(&feeds[i]);
    }
    for (i = 0; i < 5 * HT_FT_CPUS_MAX; i++) {
        HtFtFeed *f = &feeds[g_test_rand_int_range(0, RINGS)];
        HtFtPiece p = {
            .cpu = (uint32_t)g_test_rand_int_range(0, HT_FT_CPUS_MAX),
            .size = sizeof(record),
            .data = (uint8_t *)record,
            .base_ns = i,
            .begin_ns = i + 1,
            .end_ns = i + 1,
            .events = 1,
            .epoch = epoch += !g_test_rand_int_range(0, 100),
        };

        if (!g_test_rand_int_range(0, 4)) {
            p.flags = HT_FT_PIECE_LOST;
            p.lost_estimate = (uint64_t)g_test_rand_int_range(0, 10);
            lost += MAX(p.lost_estimate, 1);
        }
        events++;
        ht_ft_feed_ahead(f, &p);
        ht_ft_feed_piece(f, &p);
    }
    for (i = 0; i < RINGS; i++) {
        ht_ft_feed_close(&feeds[i]);
    }
    g_assert_cmpuint(t->open, ==, 0);
    g_assert_cmpuint(t->most, <=, HT_FT_STREAMS);
    g_assert_cmpuint(r->dropped, >, 0);
    g_assert_cmpuint(t->events + t->lost + r->dropped, ==, events + lost);
    ht_class_table_free(r->classes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ftrace/runs/accounted", test_accounted);
    return g_test_run();
}
