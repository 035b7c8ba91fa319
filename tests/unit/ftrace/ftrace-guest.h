/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's ftrace ring, written as the kernel writes it
 *
 * fg_event() stores in the kernel's order and with release semantics, so that a
 * follower can read the ring in another thread.
 */
#ifndef FTRACE_GUEST_H
#define FTRACE_GUEST_H

#include "hypertrace/ftrace-ring.h"

#define FG_MAGIC 0x0badfeedu

/* Lines of tracefs's `format` files for the fields that every event has */
#define FG_COMMON_FIELDS                                                     \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"   \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"   \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"        \
    "\tsigned:0;\n"                                                          \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"               \
    "\n"

/* How the kernel that boots next treats a processor's part of the ring */
typedef enum FgBoot {
    /* the kernel keeps all pages; its first event overwrites the tail page's */
    FG_KEPT,
    /* the kernel finds an invalid page and clears all pages */
    FG_REFUSED,
    /* the kernel finds an invalid header and makes a new ring */
    FG_ANEW,
} FgBoot;

typedef struct FgCpu {
    /* offset in the memory of the addresses `first`, `head` and `commit` */
    uint64_t line;
    uint64_t order;
    uint64_t pages;
    /* place of the tail page in the ring's order; 0: it is the readers' page */
    uint32_t at;
    /* if @at is 0: place of the page to which the writer will move next */
    uint32_t after;
    uint32_t head;              /* place of the head page in the ring's order */
    uint32_t write;
    /*
     * bytes to commit in the page @full_slot that the tail has left; 0: that
     * page is committed
     */
    uint32_t full;
    uint32_t full_slot;
    uint64_t ns;
    bool begun;
    /* number of events of the readers' page that a guest's reader has read */
    uint32_t read;
    uint32_t *entries;
    uint64_t seq;
    uint64_t overrun;
    uint64_t consumed;
    FgBoot boot;
} FgCpu;

typedef struct FtGuest {
    /* the guest's memory; if NULL, fg_init() allocates it */
    uint8_t *mem;
    bool own_mem;
    uint64_t size;
    uint64_t offset;            /* offset in @mem of the ring */
    HtFtLayout layout;
    /*
     * Linux 6.15 and later: bytes of a processor's part before its order, 32 or
     * 40
     */
    uint32_t line_size;
    uint32_t subbuf;
    uint32_t nr;
    uint32_t cpus;
    uint64_t va;                /* guest address at which the ring is mapped */
    FgCpu cpu[8];
    /*
     * called between groups of stores, and before each read by the HtFtMem that
     * fg_mem_read() returns; or NULL
     */
    void (*step)(void *opaque);
    void *opaque;
} FtGuest;

/*
 * Set up the ring. The caller must set layout, subbuf, nr and cpus, may set
 * mem, size, offset, line_size, va, step and opaque, and must zero all others.
 */
void fg_init(FtGuest *g);
void fg_clear(FtGuest *g);

/* Get an HtFtMem that maps the guest's memory */
HtFtMem fg_mem(const FtGuest *g);
/* Get an HtFtMem that only copies from the guest's memory */
HtFtMem fg_mem_read(FtGuest *g);

/*
 * Write an event with the common fields, its sequence number and @filling
 * words, at most 1000. @ns: time by the guest's clock
 */
void fg_event(FtGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling);
/* Write a record of padding, as a discarded event leaves it in the ring */
void fg_discard(FtGuest *g, uint32_t cpu, uint64_t ns);
/*
 * Return whether @data has the type of fg_event()'s events, and the filling
 * that belongs to its sequence number. Set *@seq to this number.
 */
bool fg_check(const uint8_t *data, uint32_t size, uint64_t *seq);

/*
 * Let a reader in the guest read the rest of the readers' page or, if it has
 * read all of that, take the next page out of the ring and read it. Return
 * false if there are no events to read.
 */
bool fg_read(FtGuest *g, uint32_t cpu);
/* Empty a processor's part of the ring as "echo > trace" does */
void fg_reset(FtGuest *g, uint32_t cpu);
/*
 * Warm reset: call fg_take_over() for each processor's part, as the booting
 * kernel does early. Call fg_up() when the processor comes online. fg_boot()
 * does both for a processor. @va: guest address at which the new kernel maps
 * the ring
 */
void fg_take_over(FtGuest *g, uint32_t cpu, FgBoot boot, uint64_t va);
void fg_up(FtGuest *g, uint32_t cpu);
void fg_boot(FtGuest *g, uint32_t cpu, bool keep, uint64_t va);

static inline void fg_put(FtGuest *g, uint64_t at, uint64_t v)
{
    __atomic_store_n((uint64_t *)(g->mem + at), GUINT64_TO_LE(v),
                     __ATOMIC_RELEASE);
}

static inline void fg_put32(FtGuest *g, uint64_t at, uint32_t v)
{
    __atomic_store_n((uint32_t *)(g->mem + at), GUINT32_TO_LE(v),
                     __ATOMIC_RELEASE);
}

static inline uint32_t fg_order(const FtGuest *g, uint32_t cpu, uint32_t at)
{
    return ht_get_le32(g->mem + g->cpu[cpu].order + 4 * at);
}

static inline uint64_t fg_page(const FtGuest *g, uint32_t cpu, uint32_t slot)
{
    return g->cpu[cpu].pages + (uint64_t)slot * g->subbuf;
}

#endif
