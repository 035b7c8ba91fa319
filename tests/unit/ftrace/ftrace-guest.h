/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's ftrace ring, written as the kernel does
 *
 * The steps of a write come in the kernel's order with its barriers, so that
 * it can run in another thread than the reader.
 */
#ifndef FTRACE_GUEST_H
#define FTRACE_GUEST_H

#include "hypertrace/ftrace-ring.h"

#define FG_MAGIC 0x0badfeedu

/* In the format of each event */
#define FG_COMMON_FIELDS                                                     \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"   \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"   \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"        \
    "\tsigned:0;\n"                                                          \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"               \
    "\n"

/* What another kernel does with a processor's part */
typedef enum FgBoot {
    FG_KEPT,                    /* goes on behind what is there */
    FG_REFUSED,                 /* finds a page that is wrong: clears them */
    FG_ANEW,                    /* finds the header wrong: makes it anew */
} FgBoot;

typedef struct FgCpu {
    uint64_t line;              /* offset of first, head, commit */
    uint64_t order;
    uint64_t pages;
    uint32_t at;                /* of the tail in the order; 0: the reader's */
    uint32_t after;             /* at == 0: where the writer goes next */
    uint32_t head;              /* likewise of the head */
    uint32_t write;             /* of the tail page */
    uint32_t full;              /* of the page before, 0: no step to commit */
    uint32_t full_slot;
    uint64_t ns;
    bool begun;                 /* the first event was written */
    uint32_t read;              /* of the reader's page */
    uint32_t *entries;          /* of each slot */
    uint64_t seq;               /* events written */
    uint64_t overrun;
    uint64_t consumed;
    FgBoot boot;
} FgCpu;

typedef struct FtGuest {
    uint8_t *mem;               /* its own, unless it was set before */
    bool own_mem;
    uint64_t size;
    uint64_t offset;            /* of the ring */
    HtFtLayout layout;
    uint32_t line_size;         /* 6.15: 32 or 40 */
    uint32_t subbuf;
    uint32_t nr;
    uint32_t cpus;
    uint64_t va;                /* guest address of the ring */
    FgCpu cpu[8];
    /* between two steps of a write; or NULL */
    void (*step)(void *opaque);
    void *opaque;
} FtGuest;

/* Set layout, subbuf, nr, cpus before; the rest has defaults. */
void fg_init(FtGuest *g);
void fg_clear(FtGuest *g);

/* All of it as a source that is mapped */
HtFtMem fg_mem(const FtGuest *g);
/* and as one that is read */
HtFtMem fg_mem_read(FtGuest *g);

/* An event of 16 bytes and more: header, sequence number, filling */
void fg_event(FtGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling);
/* One that is taken back */
void fg_discard(FtGuest *g, uint32_t cpu, uint64_t ns);
/* Are the bytes of an event what fg_event() wrote?  Returns its number. */
bool fg_check(const uint8_t *data, uint32_t size, uint64_t *seq);

/* A reader takes what is on its page or the next one; false: nothing left */
bool fg_read(FtGuest *g, uint32_t cpu);
/* echo > trace */
void fg_reset(FtGuest *g, uint32_t cpu);
/*
 * Another kernel: the one that boots does the first with each processor's part,
 * the second when the processor comes up
 */
void fg_take_over(FtGuest *g, uint32_t cpu, FgBoot boot, uint64_t va);
void fg_up(FtGuest *g, uint32_t cpu);
/* Both */
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
