/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the payload's function study: peers, which are other ways to report an
 * event to the host, for comparison with hypertrace
 */
#ifndef PAYLOAD_PEERS_H
#define PAYLOAD_PEERS_H

#include "ht-baremetal.h"

/**
 * struct peer - one of these ways to report an event
 * @name: its name in commands and results
 * @open: find and start the hardware; returns 0, or a negative errno, which is
 *        -ENODEV if this machine does not have the hardware
 * @emit: report @n events to the host, one by one
 */
struct peer {
    const char *name;
    int (*open)(const struct ht_bm_platform *platform);
    void (*emit)(uint64_t n);
};

/* all peers; the last entry is NULL */
extern const struct peer *const peers[];

extern const struct peer peer_serial;
extern const struct peer peer_serial_queued;

#endif /* PAYLOAD_PEERS_H */
