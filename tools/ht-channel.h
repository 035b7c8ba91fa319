/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the channels by which a guest's events reach the host
 */
#ifndef HT_CHANNEL_H
#define HT_CHANNEL_H

#include "hypertrace/abi.h"

/**
 * ht_channel_name() - get a channel's name
 * @channel: HT_CHANNEL_*; for another number the name is "unknown"
 */
static inline const char *ht_channel_name(uint32_t channel)
{
    static const char * const names[] = {
        [HT_CHANNEL_HYPERCALL] = "hypercall",
        [HT_CHANNEL_SHM] = "shm",
        [HT_CHANNEL_VIRTIO] = "virtio",
        [HT_CHANNEL_MEMORY] = "memory",
    };

    return channel < sizeof(names) / sizeof(names[0]) ? names[channel] :
           "unknown";
}

#endif
