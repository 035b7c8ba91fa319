/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate a guest's counter to the host's CLOCK_MONOTONIC
 */
#include "hypertrace/base.h"
#include "hypertrace/guest-clock.h"

/*
 * Minimum age in ns of the last reading; if it is less, sample() without @now
 * does not read the counter again
 */
#define SAMPLE_NS           INT64_C(10000000)

/*
 * An error bound is valid for events up to this number of ns from now.  If the
 * host reads the counter, this is SAMPLE_AHEAD_NS, which is longer than
 * SAMPLE_NS, and half of the default HtTimeMap.step_ns.  Else it is
 * BRACKET_AHEAD_NS, the interval in which the guest must send TIME_SYNC
 * messages while a stream is open (HT_SYNC_MS).
 */
#define SAMPLE_AHEAD_NS     INT64_C(25000000)
#define BRACKET_AHEAD_NS    INT64_C(1000000000)

/*
 * Minimum time in ns between the two exchanges that measure the counter's rate.
 * In addition, the widths of their brackets must keep the error of the rate
 * below HT_TIME_PPM_MAX / 4 ppm.
 */
#define RATE_NS             UINT64_C(50000000)

/*
 * Start a map without readings.  Context: the clock's lock is held, or no other
 * thread has the clock yet
 */
static void begin(HtGuestClock *c, uint64_t hz, uint32_t ppm)
{
    ht_time_map_init(&c->map, hz);
    ht_time_map_set_ppm(&c->map, ppm);
    c->map.now = c->flags & HT_GUEST_CLOCK_FUTURE ? NULL : ht_now_ns;
    c->version++;
}

void ht_guest_clock_init(HtGuestClock *c, uint64_t hz, uint32_t ppm,
                         unsigned flags)
{
    memset(c, 0, sizeof(*c));
    ht_mutex_init(&c->lock);
    c->flags = flags;
    c->ppm = ppm;
    begin(c, hz, ppm);
}

void ht_guest_clock_destroy(HtGuestClock *c)
{
    ht_mutex_destroy(&c->lock);
}

static void add_sample(HtGuestClock *c, uint64_t counter, uint64_t ns,
                       uint64_t bound_ns)
{
    ht_time_map_sample(&c->map, counter, ns, bound_ns);
    c->sampled_ns = ht_now_ns();
    c->version++;
}

HtBracket ht_bracket(HtCounter *counter, void *opaque)
{
    HtBracket b = { .width = UINT64_MAX };
    unsigned i;

    for (i = 0; i < 4; i++) {
        uint64_t before = ht_now_ns();
        uint64_t value = counter(opaque);
        uint64_t after = ht_now_ns();

        if (after - before < b.width) {
            b.width = after - before;
            b.counter = value;
            b.ns = before + b.width / 2;
        }
    }
    return b;
}

static uint64_t wall_clock(void *opaque)
{
    (void)opaque;
    return g_get_real_time() * UINT64_C(1000);
}

int64_t ht_wall_offset(void)
{
    HtBracket b = ht_bracket(wall_clock, NULL);

    return b.counter - b.ns;
}

/*
 * Read the guest's counter and the host's clock, and add the reading to the
 * map.  Add none if the host cannot read the counter or, without @now, if the
 * last reading is less than SAMPLE_NS old.
 *
 * Context: the clock's lock is held
 */
static void sample(HtGuestClock *c, bool now)
{
    HtBracket b;

    c->looked_ns = ht_now_ns();
    if (!c->counter || (!now && c->map.count &&
                        c->looked_ns - c->sampled_ns < SAMPLE_NS)) {
        return;
    }
    b = ht_bracket(c->counter, c->opaque);
    add_sample(c, b.counter + c->offset, b.ns, b.width / 2 + 1);
}

void ht_guest_clock_sample(HtGuestClock *c, bool now)
{
    ht_mutex_lock(&c->lock);
    sample(c, now);
    ht_mutex_unlock(&c->lock);
}

/*
 * Make the next reading begin an epoch of the map.  Forget the last exchange:
 * the guest's next message may have readings from before the break.  Context:
 * the clock's lock is held
 */
static void break_map(HtGuestClock *c)
{
    ht_time_map_break(&c->map);
    c->exchange_ns = 0;
    c->version++;
}

void ht_guest_clock_break(HtGuestClock *c)
{
    ht_mutex_lock(&c->lock);
    break_map(c);
    ht_mutex_unlock(&c->lock);
}

void ht_guest_clock_set_counter(HtGuestClock *c, HtCounter *counter,
                                void *opaque, int64_t offset)
{
    ht_mutex_lock(&c->lock);
    if (c->counter != counter || c->offset != offset) {
        c->counter = counter;
        c->opaque = opaque;
        c->offset = offset;
        break_map(c);
        sample(c, true);
    }
    ht_mutex_unlock(&c->lock);
}

void ht_guest_clock_restart(HtGuestClock *c, uint64_t hz, uint32_t ppm)
{
    ht_mutex_lock(&c->lock);
    c->counter = NULL;
    begin(c, CLAMP(hz, HT_TIME_HZ_MIN, HT_TIME_HZ_MAX), ppm);
    ht_mutex_unlock(&c->lock);
}

/*
 * Measure the rate of a counter that the host cannot read, from two exchanges.
 * Do this once.  If the present rate is wrong by HtGuestClock.ppm or more,
 * start a new map.  Context: the clock's lock is held
 */
static void measure(HtGuestClock *c, uint64_t counter, uint64_t ns,
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
    if (hz < HT_TIME_HZ_MIN || hz > HT_TIME_HZ_MAX ||
        MAX(hz, nominal) - MIN(hz, nominal) <
        nominal / 1000000 * c->ppm) {
        return;
    }
    begin(c, hz, HT_TIME_PPM_MAX);
    add_sample(c, c->first_counter, c->first_ns, c->first_width / 2 + 1);
}

static uint64_t bound(const HtGuestClock *c)
{
    return ht_time_map_bound(&c->map, ht_now_ns() +
                             (c->counter ? SAMPLE_AHEAD_NS :
                                           BRACKET_AHEAD_NS));
}

/*
 * A message has two readings of the guest's counter: before and after the
 * previous exchange, in which the host read its clock.  A guest that sends
 * false readings makes the dates of its own events wrong.  ht_walk() still
 * limits these dates to the present time, and keeps them from decreasing in a
 * stream.
 */
void ht_guest_clock_sync(HtGuestClock *c, struct ht_msg_time *m)
{
    uint64_t before = ht_get_le64(&m->before), after = ht_get_le64(&m->after);
    int64_t now = ht_now_ns();

    ht_mutex_lock(&c->lock);
    sample(c, true);
    if (!c->counter && c->exchange_ns && after > before &&
        ht_get_le32(&m->prev) == c->exchange_cookie) {
        uint64_t ticks = after - before;
        uint64_t middle = before + ticks / 2;
        uint64_t width = ht_time_scale(ticks / 2 + 1, c->map.fastest) + 1;

        if (c->flags & HT_GUEST_CLOCK_MEASURE) {
            measure(c, middle, c->exchange_ns, 2 * width);
        }
        add_sample(c, middle, c->exchange_ns, width);
    }
    c->exchange_ns = now;
    c->exchange_cookie = ht_get_le32(&m->h.cookie);
    ht_put_le64(&m->host_ns, now);
    ht_put_le64(&m->bound_ns, bound(c));
    ht_mutex_unlock(&c->lock);
}

void ht_guest_clock_copy(HtGuestClock *c, HtTimeMap *map, unsigned *version,
                         bool look)
{
    ht_mutex_lock(&c->lock);
    if (look) {
        sample(c, false);
    }
    if (*version != c->version) {
        *map = c->map;
        *version = c->version;
    }
    if (!(c->flags & HT_GUEST_CLOCK_FUTURE)) {
        map->latest = c->looked_ns;
    }
    ht_mutex_unlock(&c->lock);
}

uint64_t ht_guest_clock_hz(HtGuestClock *c)
{
    uint64_t hz;

    ht_mutex_lock(&c->lock);
    hz = ht_time_map_hz(&c->map);
    ht_mutex_unlock(&c->lock);
    return hz;
}

uint64_t ht_guest_clock_bound(HtGuestClock *c)
{
    uint64_t ns;

    ht_mutex_lock(&c->lock);
    ns = bound(c);
    ht_mutex_unlock(&c->lock);
    return ns;
}

unsigned ht_guest_clock_save(HtGuestClock *c, HtTimeSegment *seg)
{
    unsigned count;

    ht_mutex_lock(&c->lock);
    count = c->map.count;
    memcpy(seg, c->map.seg, count * sizeof(*seg));
    ht_mutex_unlock(&c->lock);
    return count;
}

bool ht_guest_clock_load(HtGuestClock *c, const HtTimeSegment *seg,
                         unsigned count, int64_t shift_ns, bool keep)
{
    bool valid;

    ht_mutex_lock(&c->lock);
    valid = ht_time_map_load(&c->map, seg, count, shift_ns, ht_now_ns());
    if (valid) {
        c->counter = keep ? c->counter : NULL;
        c->exchange_ns = 0;
        c->sampled_ns = 0;
        c->version++;
    }
    ht_mutex_unlock(&c->lock);
    return valid;
}
