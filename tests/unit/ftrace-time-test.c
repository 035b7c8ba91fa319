/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring's times on the host's clock: a guest that reads both clocks says
 * when each event was written.
 */
#include "hypertrace/ftrace-time.h"
#include "ftrace-guest.h"

#define EVENTS      40000
#define MS          UINT64_C(1000000)

typedef struct Check {
    FtGuest g;
    HtFtTime time;
    uint64_t host;              /* ns */
    double rate;                /* of the guest's clock */
    uint64_t zero;              /* the guest's clock when the host's is 0 */
    uint64_t at[2][EVENTS];     /* when the host wrote which event */
    uint64_t events, known, worst;
    bool slack;                 /* the bound need not hold */
} Check;

static uint64_t guest_clock(const Check *c)
{
    return c->zero + (uint64_t)(c->host * c->rate);
}

static uint64_t now(void *opaque)
{
    Check *c = opaque;

    return c->host += 300;
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Check *c = opaque;
    uint64_t seq, bound, ns, error;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_time_learn(&c->time, p);
    bound = ht_ft_time_bound(&c->time);
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        g_assert_true(fg_check(r.data, r.size, &seq));
        ns = ht_ft_time_host(&c->time, p, r.ns);
        g_assert_cmpuint(ns, <=, p->host_after);
        c->events++;
        if (bound != UINT64_MAX && p->host_before && !c->slack) {
            error = ns > c->at[p->cpu][seq] ? ns - c->at[p->cpu][seq] :
                    c->at[p->cpu][seq] - ns;
            /* the age of an event: at most what lies between looks */
            g_assert_cmpuint(error, <=, bound + 20 * MS / 2000);
            c->worst = MAX(c->worst, error);
            c->known++;
        }
    }
}

static const HtFtFollowOps ops = { .piece = piece, .now = now };

static void init(Check *c, double rate, uint64_t zero)
{
    *c = (Check) {
        .g = {
            .subbuf = 4096, .nr = 64, .cpus = 2, .layout = HT_FT_LAYOUT_6_15,
        },
        .host = 1000 * MS,
        .rate = rate,
        .zero = zero,
    };
    fg_init(&c->g);
    ht_ft_time_reset(&c->time);
}

static void run(Check *c, HtFtFollow *f, unsigned looks)
{
    unsigned i, n, cpu;

    for (i = 0; i < looks; i++) {
        for (n = g_test_rand_int_range(0, 50); n; n--) {
            cpu = g_test_rand_int_range(0, 2);
            c->host += g_test_rand_int_range(1, 40000);
            c->at[cpu][c->g.cpu[cpu].seq] = c->host;
            fg_event(&c->g, cpu, guest_clock(c), 0);
            c->host += g_test_rand_int_range(0, 500);
        }
        /* sometimes a host that has no time for us */
        c->host += g_test_rand_int_range(0, i % 10 ? 1 * MS : 20 * MS);
        g_assert_cmpint(ht_ft_follow_look(f), >=, 0);
    }
}

static void test_bound(gconstpointer ppm)
{
    g_autofree Check *c = g_new0(Check, 1);
    g_autoptr(HtFtFollow) f = NULL;
    HtFtMem mem;

    init(c, 1 + GPOINTER_TO_INT(ppm) / 1e6, 5 * MS);
    mem = fg_mem(&c->g);
    f = ht_ft_follow_new(&mem, ht_ft_ring_at(&mem, 0, NULL), &ops, c);
    run(c, f, 1000);
    g_assert_cmpuint(c->time.steps, ==, 0);
    g_assert_cmpuint(c->known, >, c->events / 2);
    g_assert_cmpuint(ht_ft_time_bound(&c->time), <, 1 * MS);
    g_test_message("%" PRIu64 " ns wrong at most", c->worst);
    fg_clear(&c->g);
}

/* A step of the guest's clock is noticed, and soon forgotten. */
static void test_step(void)
{
    g_autofree Check *c = g_new0(Check, 1);
    g_autoptr(HtFtFollow) f = NULL;
    HtFtMem mem;

    init(c, 1, 5 * MS);
    mem = fg_mem(&c->g);
    f = ht_ft_follow_new(&mem, ht_ft_ring_at(&mem, 0, NULL), &ops, c);
    run(c, f, 100);
    g_assert_cmpuint(c->time.steps, ==, 0);
    c->slack = true;
    c->zero += 300 * MS;
    run(c, f, 50);
    g_assert_cmpuint(c->time.steps, >, 0);
    c->slack = false;
    run(c, f, 200);
    fg_clear(&c->g);
}

/* Times that cannot be are bounded by the look. */
static void test_forged(void)
{
    static const uint64_t times[] = {
        0, 1, INT64_MAX, UINT64_MAX, UINT64_C(1) << 62, UINT64_MAX / 4, 12345,
    };
    uint8_t data[2][20] = { { 4 | 0 << 5, 0, 0, 0, 17 } };
    HtFtTime t = { };
    unsigned i, k;

    memcpy(data[1], data[0], sizeof(data[0]));
    ht_ft_time_reset(&t);
    for (i = 0; i < 100000; i++) {
        HtFtPiece p = {
            .data = data[0],
            .size = sizeof(data),
            .events = 2,
            .host_before = i % 3 ? 1000 * MS + i : 0,
            .host_after = 1000 * MS + i * (UINT64_C(1) << i % 20),
        };

        p.base_ns = times[g_test_rand_int_range(0, G_N_ELEMENTS(times))];
        p.begin_ns = p.base_ns;
        p.end_ns = times[g_test_rand_int_range(0, G_N_ELEMENTS(times))];
        ht_ft_time_learn(&t, &p);
        g_assert_cmpint(t.lowest, <=, t.highest);
        for (k = 0; k < G_N_ELEMENTS(times); k++) {
            g_assert_cmpuint(ht_ft_time_host(&t, &p, times[k]), <=,
                             p.host_after);
        }
        ht_ft_time_bound(&t);
    }
    g_assert_cmpuint(t.steps, >, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ftrace-time/bound/same", GINT_TO_POINTER(0),
                         test_bound);
    g_test_add_data_func("/ftrace-time/bound/faster", GINT_TO_POINTER(400),
                         test_bound);
    g_test_add_data_func("/ftrace-time/bound/slower", GINT_TO_POINTER(-400),
                         test_bound);
    g_test_add_func("/ftrace-time/step", test_step);
    g_test_add_func("/ftrace-time/forged", test_forged);
    return g_test_run();
}
