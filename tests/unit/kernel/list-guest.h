/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's ordinary ftrace ring, in an array that stands for the guest's
 * memory
 *
 * The functions change the ring in steps similar to those of the kernel.  After
 * most stores, they call ListGuest.step, in which a test can poll.
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
    /* guest address of the node of the page to which the writer writes */
    uint64_t tail;
    /* number of bytes written to the page of @tail, without its header */
    uint32_t write;
    uint64_t reader;            /* guest address of the readers' node */
    uint64_t head;
    uint64_t ns;
    uint64_t seq;
    uint64_t entries;
    uint64_t overrun;
    uint64_t read;
    /*
     * number of events in the readers' page when the last lg_read() took it;
     * that call has counted them as read
     */
    uint64_t consumed;
} LgCpu;

typedef struct ListGuest {
    uint8_t *mem;
    uint64_t size;
    uint64_t used;
    GRand *rand;
    uint64_t array;             /* guest address of the trace_array */
    uint32_t cpus;
    /*
     * number of nodes in each processor's list at the start, without the
     * readers' node
     */
    uint32_t nodes;
    LgCpu cpu[LG_CPUS];
    /* number of events written to a node's page, by the node's address */
    GHashTable *count;
    HtFtMem ft;
    HtKernelSpace space;
    HtKernelRingLayout layout;
    void (*step)(void *opaque);
    void *opaque;
} ListGuest;

/*
 * Make a guest of at most LG_CPUS processors. The ring of each has @nodes pages
 * and a page for readers.
 */
void lg_init(ListGuest *g, uint32_t cpus, uint32_t nodes, uint32_t seed);
void lg_clear(ListGuest *g);
/* Allocate guest memory; returns its guest address */
uint64_t lg_alloc(ListGuest *g, uint64_t size, uint64_t align);
uint64_t lg_get(const ListGuest *g, uint64_t addr);
void lg_put(ListGuest *g, uint64_t addr, uint64_t v);

/*
 * Write an event: 8 bytes of common fields, its sequence number in 8 bytes, and
 * @filling words of 4 bytes (at most 24). @ns: the event's time in ns
 */
void lg_event(ListGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling);
/*
 * Assert that @data is an event that lg_event() wrote; return its sequence
 * number.
 */
uint64_t lg_check(const uint8_t *data, uint32_t size);
/*
 * Let a reader in the guest take the page of the head and read its events. If
 * @swap, the reader also keeps a full page and puts an empty page in its place,
 * as splice() does. Return false if there is no page with events.
 */
bool lg_read(ListGuest *g, uint32_t cpu, bool swap);
/* Empty a processor's buffer as "echo >trace" does */
void lg_reset(ListGuest *g, uint32_t cpu);
/*
 * Change the number of pages, as a write to buffer_size_kb does. lg_grow()
 * inserts a page before that of the head. lg_shrink() removes the page of the
 * head; it does nothing if the writer is in this page, in the next one or in
 * the readers' page, or if the list has fewer than three nodes.
 */
void lg_shrink(ListGuest *g, uint32_t cpu);
void lg_grow(ListGuest *g, uint32_t cpu);

#endif
