/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's log, written as printk() writes it
 *
 * An array stands for the kernel's memory.  The stores have the kernel's order,
 * with calls of @step between them, from which a test can read.
 */
#ifndef LOG_GUEST_H
#define LOG_GUEST_H

#include "hypertrace/kernel-log.h"

#define PG_BASE         UINT64_C(0xffff888000000000)
#define PG_PRB          (PG_BASE + 64)      /* address of the variable prb */
#define PG_MEMORY       16384u
#define PG_SIZE_BITS    10u
/* Size in bytes of the ring of texts */
#define PG_SIZE         (1u << PG_SIZE_BITS)

typedef struct LogGuest {
    uint8_t mem[PG_MEMORY];
    HtFtMem ft;
    HtKernelSpace space;
    HtKernelLogLayout layout;
    /* ids of the newest (@head) and of the oldest (@tail) descriptor */
    uint64_t head, tail;
    uint64_t head_lpos, tail_lpos;
    uint64_t seq;
    void (*step)(void *opaque);
    void *opaque;
} LogGuest;

void pg_init(LogGuest *g);

/* Make the text of record @seq, of @len bytes. */
void pg_text(uint64_t seq, char *text, unsigned len);

/*
 * Write a record of @len bytes as printk() does; if @cut, leave it unfinished.
 */
void pg_print(LogGuest *g, unsigned len, bool cut);

#endif
