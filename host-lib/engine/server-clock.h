/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the counter of a server's guest to the host's clock
 *
 * Private to the server.
 */
#ifndef HYPERTRACE_SERVER_CLOCK_H
#define HYPERTRACE_SERVER_CLOCK_H

#include "hypertrace/server.h"
#include "hypertrace/thread.h"

/**
 * HtServerClock: all but the first members are private
 * @counter: HtServerOps.counter
 * @opaque: its argument
 * @ppm: HtServerConfig.ppm
 * @future: HtServerConfig.future
 */
typedef struct HtServerClock {
    uint64_t (*counter)(void *opaque);
    void *opaque;
    uint32_t ppm;
    bool future;
    HtMutex lock;               /* all below */
    HtTimeMap map;
    unsigned version;
    int64_t sampled_ns;
    bool rate_known;
    uint64_t first_counter;     /* reading that the rate is measured from */
    uint64_t first_ns;
    uint64_t first_width;
    int64_t exchange_ns;        /* host time of the previous TIME_SYNC */
    uint32_t exchange_cookie;
} HtServerClock;

void ht_server_clock_init(HtServerClock *c, const HtServerConfig *cfg);
void ht_server_clock_destroy(HtServerClock *c);

/* ht_server_clock_sync: execute HT_MSG_TIME_SYNC */
void ht_server_clock_sync(HtServerClock *c, struct ht_msg_time *m);

/**
 * ht_server_clock_copy: give a consumer the newest map
 * @c: the clock
 * @consumer: locked by the caller
 * @version: version of the map that the consumer has; 0: it has no map yet
 */
void ht_server_clock_copy(HtServerClock *c, HtConsumer *consumer,
                          unsigned *version);

/* ht_server_clock_get: read both clocks, if that is possible; get the map */
void ht_server_clock_get(HtServerClock *c, HtTimeMap *map);

#endif /* HYPERTRACE_SERVER_CLOCK_H */
