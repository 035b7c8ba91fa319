/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: other ways to tell the host of an event, for comparison
 */
#ifndef PAYLOAD_PEERS_H
#define PAYLOAD_PEERS_H

#include "ht-baremetal.h"

/**
 * struct peer - one way
 * @name: as commands and results have it
 * @open: look for what it needs; negative if it is not in this machine
 * @emit: tell the host of @n events, one by one
 */
struct peer {
    const char *name;
    int (*open)(const struct ht_bm_platform *platform);
    void (*emit)(uint64_t n);
};

/* NULL behind the last */
extern const struct peer *const peers[];

extern const struct peer peer_serial;
extern const struct peer peer_serial_queued;

#endif /* PAYLOAD_PEERS_H */
