/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: a guest in this process, over memory alone
 */
#ifndef MEMORY_GUEST_H
#define MEMORY_GUEST_H

#include "hypertrace/base.h"
#include <pthread.h>
#include "hypertrace/port.h"

typedef struct MgGuest {
    struct ht_device dev;
    uint8_t *base;
    size_t size;
    struct ht_memory *page;
    struct ht_link link;
    pthread_mutex_t mailbox;
    pthread_mutex_t control;
} MgGuest;

/* mg_new: map the memory in @fd as a guest does; no host need serve it yet */
void mg_new(MgGuest *g, int fd);

/*
 * mg_connect: attach to the memory's host, and send TAKEOVER, which closes all
 * streams. The test fails if no host polls the memory within 10 s
 */
void mg_connect(MgGuest *g);

/*
 * mg_try_connect: as mg_connect(), but returns false if no host appears within
 * @ms, or if the host does not answer
 */
bool mg_try_connect(MgGuest *g, unsigned ms);
void mg_free(MgGuest *g);

#endif
