/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: relate the clocks, and read the host's counters
 */
#include "core.h"

/*
 * Each message but the first contains the guest's counter before and after the
 * previous exchange, in which the host has read its own clock.  These three
 * values are a sample for the host's map of the guest's clock.  So @rounds
 * samples need @rounds + 1 messages.
 */
int ht_time_sync(struct ht_device *dev, unsigned rounds)
{
    uint64_t before = 0, after = 0, bound = 0;
    uint32_t prev = 0;
    unsigned i;
    int r = 0;

    if (rounds < 1 || rounds > 1000) {
        return -EINVAL;
    }
    for (i = 0; i <= rounds && r == 0; i++) {
        struct ht_msg_time m = {
            .h = { .type = HT_MSG_TIME_SYNC, .size = sizeof(m) },
            .before = before,
            .after = after,
            .prev = prev,
        };

        before = ht_clock();
        r = ht_control(dev, &m.h);
        after = ht_clock();
        prev = m.h.cookie;
        bound = m.bound_ns;
    }
    if (r) {
        return r;
    }
    return bound > INT_MAX ? INT_MAX : (int)bound;
}

int ht_get_stats(struct ht_device *dev, uint32_t stream,
                 struct ht_stats *stats)
{
    struct ht_msg_stats m;
    int r;

    ht_zero(&m, sizeof(m));
    m.h.type = HT_MSG_STATS;
    m.h.size = sizeof(m);
    m.stream = stream;
    r = ht_control(dev, &m.h);
    if (r == 0) {
        *stats = m.stats;
    }
    return r;
}

int ht_tell_discarded(struct ht_device *dev, uint64_t count)
{
    struct ht_msg_discarded m;

    ht_zero(&m, sizeof(m));
    m.h.type = HT_MSG_DISCARDED;
    m.h.size = sizeof(m);
    m.count = count;
    return ht_control(dev, &m.h);
}
