/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's ordinary ftrace ring, written as the kernel writes it
 *
 * Nodes and pages are scattered over an array that stands for the kernel's
 * memory.  The stores have the kernel's order, with calls of @step between
 * them, from which a test can poll.
 */
#ifndef LIST_GUEST_H
#define LIST_GUEST_H

#include "hypertrace/kernel-ring.h"

#define LG_BASE     UINT64_C(0xffff888000000000)
#define LG_CPUS     64u
#define LG_PAGE     4096u

typedef struct LgCpu {
    /* guest address of the processor's ring_buffer_per_cpu */
    uint64_t at;
    /* guest address of the node in which the writer is */
    uint64_t tail;
    /* number of bytes written to the page of @tail */
    uint32_t write;
    uint64_t reader;            /* guest address of the readers' node */
    uint64_t head;
    uint64_t ns;
    uint64_t seq;
    uint64_t entries;
    uint64_t overrun;
    uint64_t read;
    /* number of events of the readers' page that a reader has read */
    uint64_t consumed;
} LgCpu;

typedef struct ListGuest {
    uint8_t *mem;
    uint64_t size;
    uint64_t used;
    GRand *rand;
    uint64_t array;             /* guest address of the trace_array */
    uint32_t cpus;
    uint32_t nodes;             /* number of nodes in each processor's list */
    LgCpu cpu[LG_CPUS];
    /* by guest address of the node: number of events in its page */
    GHashTable *count;
    HtFtMem ft;
    HtKernelSpace space;
    HtKernelRingLayout layout;
    void (*step)(void *opaque);
    void *opaque;
} ListGuest;

/* Make a guest with a ring of @nodes pages for each processor. */
void lg_init(ListGuest *g, uint32_t cpus, uint32_t nodes, uint32_t seed);
void lg_clear(ListGuest *g);
/* Allocate guest memory; returns its guest address */
uint64_t lg_alloc(ListGuest *g, uint64_t size, uint64_t align);
uint64_t lg_get(const ListGuest *g, uint64_t addr);
void lg_put(ListGuest *g, uint64_t addr, uint64_t v);

/*
 * Write an event: 8 bytes of common fields, its sequence number in 8 bytes, and
 * @filling words of 4 bytes
 */
void lg_event(ListGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling);
/*
 * Assert that these are bytes that lg_event() wrote; return the event's
 * sequence number.
 */
uint64_t lg_check(const uint8_t *data, uint32_t size);
/*
 * A reader in the guest takes the next page: as cat does, or as splice() if
 * @swap. Return false if no page is left.
 */
bool lg_read(ListGuest *g, uint32_t cpu, bool swap);
/* Empty a processor's buffer as "echo >trace" does */
void lg_reset(ListGuest *g, uint32_t cpu);
/*
 * Change buffer_size_kb: lg_shrink() removes the head's page, if the writer is
 * not close to it; lg_grow() inserts a page before the head's.
 */
void lg_shrink(ListGuest *g, uint32_t cpu);
void lg_grow(ListGuest *g, uint32_t cpu);

#endif
