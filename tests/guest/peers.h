/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the payload's function study: peers, which are other ways to report an
 * event to the host, for comparison with hypertrace
 */
#ifndef PAYLOAD_PEERS_H
#define PAYLOAD_PEERS_H

#include "ht-baremetal.h"

/**
 * struct peer - a way to report an event that is compared with hypertrace
 * @name: name of the peer in commands and results
 * @open: find and start the hardware that the peer uses, if any; returns 0, or
 *        a negative errno: -ENODEV if PCI bus 0 does not have the hardware
 * @emit: report @n events, each on its own; the peer "limit" only writes them
 *        to memory
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
