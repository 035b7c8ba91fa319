/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's log, in an array that stands for the kernel's memory
 *
 * As in printk(), a record's descriptor is marked as reserved before the record
 * is stored, and as finalized after it.  LogGuest.step is called after each
 * store of 8 bytes, so that a test can read between stores.
 */
#ifndef LOG_GUEST_H
#define LOG_GUEST_H

#include "hypertrace/kernel-log.h"

#define PG_BASE         UINT64_C(0xffff888000000000)
#define PG_PRB          (PG_BASE + 64)      /* address of the variable prb */
#define PG_MEMORY       16384u
#define PG_SIZE_BITS    10u
/* Size in bytes of the ring that holds the records' texts and their ids */
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

/* Write the text of record @seq, @len bytes without a final NUL, to @text. */
void pg_text(uint64_t seq, char *text, unsigned len);

/*
 * Write a record with a text of @len bytes. If @cut, leave the record
 * unfinished: its descriptor stays reserved.
 */
void pg_print(LogGuest *g, unsigned len, bool cut);

#endif
