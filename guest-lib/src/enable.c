/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: test and read which classes the host wants
 *
 * The enable bytes are loaded and stored without ordering.  If a guest sees a
 * change late, it may emit an event that no backend wants, or skip an event
 * that a backend wants.  A skipped event does not count as discarded.
 */
#include "core.h"

bool ht_wanted(const struct ht_device *dev, const struct ht_class *cls)
{
    const volatile uint8_t *enable = dev->enable;

    return !enable || (cls->id <= HT_CLASSES_MAX &&
                       enable[cls->id] == HT_ENABLE_ON);
}

int ht_enable_read(struct ht_device *dev, uint8_t *to)
{
    const uint32_t size = dev->caps.max_message < HT_MESSAGE_MAX ?
                          dev->caps.max_message : HT_MESSAGE_MAX;
    uint32_t first = 0, most, count, i;
    struct ht_msg_enabled *m;
    int r;

    most = size - sizeof(*m);
    do {
        m = (struct ht_msg_enabled *)ht_control_begin(dev, HT_MSG_ENABLED,
                                                      size);
        m->first = first;
        m->count = most;
        r = ht_control(dev, &m->h);
        count = m->count;
        if (!r && count > most) {
            r = -EIO;
        }
        for (i = 0; to && !r && i < count && first + i <= HT_CLASSES_MAX;
             i++) {
            ((volatile uint8_t *)to)[first + i] = m->on[i];
        }
        ht_control_end(dev);
        first += count;
    } while (!r && count == most && first <= HT_CLASSES_MAX);
    return r;
}
