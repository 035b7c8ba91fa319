/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the counter of a server's guest to the host's clock
 *
 * If the host can read the counter, it reads both clocks.  Otherwise the
 * guest's TIME_SYNC exchanges bracket the host's clock.
 */
#include "hypertrace/base.h"
#include "hypertrace/thread.h"
#include "server-clock.h"

/* Interval of readings, if the host can read the guest's counter */
#define SAMPLE_NS           INT64_C(10000000)

/* How far ahead the error bound of a TIME_SYNC reply holds */
#define AHEAD_NS            INT64_C(1000000000)

/*
 * Exchanges that measure the counter's rate: at least this far apart, with
 * brackets that make the error of the rate smaller than HT_TIME_PPM_MAX / 4.
 */
#define RATE_NS             UINT64_C(50000000)

static uint64_t map_now(void)
{
    return ht_now_ns();
}

static void time_init(HtServerClock *c, uint64_t hz, uint32_t ppm)
{
    ht_time_map_init(&c->map, hz);
    ht_time_map_set_ppm(&c->map, ppm);
    c->map.now = c->future ? NULL : map_now;
    c->version++;
}

/* Add a reading of both clocks.  Context: the clock locked */
static void time_add(HtServerClock *c, uint64_t counter, uint64_t ns,
                     uint64_t bound_ns)
{
    ht_time_map_sample(&c->map, counter, ns, bound_ns);
    c->sampled_ns = ht_now_ns();
    c->version++;
}

/* Read both clocks, unless that was just done.  Context: the clock locked */
static void time_sample(HtServerClock *c, bool now)
{
    int64_t before, after;
    uint64_t counter;

    if (!c->counter ||
        (!now && c->map.count &&
         ht_now_ns() - c->sampled_ns < SAMPLE_NS)) {
        return;
    }
    before = ht_now_ns();
    counter = c->counter(c->opaque);
    after = ht_now_ns();
    time_add(c, counter, before + (after - before) / 2,
             (after - before) / 2 + 1);
}

/*
 * Measure the rate of a counter that the host cannot read: the configured one
 * is a guess.  If the guess is wrong by more than its limit, start a new map.
 *
 * Context: the clock locked
 */
static void time_measure(HtServerClock *c, uint64_t counter, uint64_t ns,
                         uint64_t width)
{
    uint64_t elapsed, hz, nominal;

    if (c->rate_known) {
        return;
    }
    if (!c->first_ns || counter <= c->first_counter ||
        (ns - c->first_ns < RATE_NS && width < c->first_width)) {
        c->first_counter = counter;
        c->first_ns = ns;
        c->first_width = width;
        return;
    }
    elapsed = ns - c->first_ns;
    if (elapsed < RATE_NS ||
        (width + c->first_width) / (elapsed / 1000000) > HT_TIME_PPM_MAX / 4) {
        return;
    }
    c->rate_known = true;
    hz = (double)(counter - c->first_counter) * 1e9 / elapsed;
    nominal = ht_time_map_hz(&c->map);
    if (hz < 1000 || hz > UINT64_C(100000000000) ||
        MAX(hz, nominal) - MIN(hz, nominal) <
        nominal / 1000000 * c->ppm) {
        return;
    }
    time_init(c, hz, HT_TIME_PPM_MAX);
    time_add(c, c->first_counter, c->first_ns, c->first_width / 2 + 1);
}

/*
 * Each message brackets the host's reading of the previous one.  A guest that
 * gives false readings makes the dates of its own events wrong; the map keeps
 * them below the present time and never lets them decrease.
 */
void ht_server_clock_sync(HtServerClock *c, struct ht_msg_time *m)
{
    uint64_t before = ht_get_le64(&m->before), after = ht_get_le64(&m->after);
    int64_t now = ht_now_ns();

    ht_mutex_lock(&c->lock);
    time_sample(c, true);
    if (!c->counter && c->exchange_ns && after > before &&
        ht_get_le32(&m->prev) == c->exchange_cookie) {
        uint64_t ticks = after - before;
        uint64_t middle = before + ticks / 2;
        uint64_t width = ht_time_scale(ticks / 2 + 1, c->map.fastest) + 1;

        time_measure(c, middle, c->exchange_ns, 2 * width);
        time_add(c, middle, c->exchange_ns, width);
    }
    c->exchange_ns = now;
    c->exchange_cookie = ht_get_le32(&m->h.cookie);
    ht_put_le64(&m->host_ns, now);
    ht_put_le64(&m->bound_ns, ht_time_map_bound(&c->map, now + AHEAD_NS));
    ht_mutex_unlock(&c->lock);
}

void ht_server_clock_copy(HtServerClock *c, HtConsumer *consumer,
                          unsigned *version)
{
    ht_mutex_lock(&c->lock);
    time_sample(c, false);
    if (*version != c->version) {
        consumer->time = c->map;
        *version = c->version;
    }
    if (!c->future) {
        consumer->time.latest = ht_now_ns();
    }
    ht_mutex_unlock(&c->lock);
}

void ht_server_clock_get(HtServerClock *c, HtTimeMap *map)
{
    ht_mutex_lock(&c->lock);
    time_sample(c, true);
    *map = c->map;
    ht_mutex_unlock(&c->lock);
}

void ht_server_clock_init(HtServerClock *c, const HtServerConfig *cfg)
{
    memset(c, 0, sizeof(*c));
    ht_mutex_init(&c->lock);
    c->counter = cfg->ops->counter;
    c->opaque = cfg->opaque;
    c->ppm = cfg->ppm;
    c->future = cfg->future;
    time_init(c, cfg->hz, cfg->ppm);
}

void ht_server_clock_destroy(HtServerClock *c)
{
    ht_mutex_destroy(&c->lock);
}
