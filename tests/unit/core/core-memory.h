/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that tests of the host core share: make stream memory as a host that
 * was killed leaves it
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include "hypertrace/memory-directory.h"
#include "core-testlib.h"

/**
 * CtMemory: stream memory, with the description that a host writes into it
 * @ram: the memory, of @size bytes
 */
typedef struct CtMemory {
    struct ht_caps caps;
    HtDirectory directory;
    uint8_t *ram;
    size_t size;
} CtMemory;

void ct_memory_init(CtMemory *m, uint32_t streams, uint32_t packet_size,
                    uint32_t packets, const HtClassTable *classes);
void ct_memory_destroy(CtMemory *m);
/*
 * Copy @ring into the memory, and add its stream, with @name and @vcpu, to the
 * directory
 */
void ct_memory_put(CtMemory *m, const CtRing *ring, const char *name,
                   int32_t vcpu);
struct ht_ring_control *ct_memory_ring(CtMemory *m, uint32_t stream);

#endif
