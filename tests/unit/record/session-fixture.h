/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make recording sessions of artificial guests
 */
#ifndef SESSION_FIXTURE_H
#define SESSION_FIXTURE_H

#include "ftrace-guest.h"
#include "kernel-make.h"
#include "record/record-session.h"

#define MIB     (UINT64_C(1) << 20)
#define SECOND  UINT64_C(1000000000)
#define RINGS   40
#define NR      8

/* A guest with rings at different offsets in its memory, and its session */
typedef struct Test {
    FtGuest g[RINGS];
    HtFtMem mem;
    HtSession *session;
    HtSessionInfo info;
    char *dir;
    uint64_t ns;                /* value of the guest's clock in ns */
    /*
     * offset in memory of a processor's part of ring 0; the part appears just
     * after a read of more than 8 bytes there. 0: none, or it has appeared
     */
    uint64_t appears;
    /*
     * cost: ns of the host's clock for each read at a multiple of 2 MiB, where
     * a search tests for a ring, except at ring 0; spent: sum of them so far
     */
    uint64_t cost, spent;
} Test;

/* The host's clock in ns; each st_look() adds 10 ms */
extern uint64_t st_clock_ns;

/* Set up a guest with @size bytes of RAM.  st_begin() starts a session. */
void st_setup(Test *t, uint64_t size);

/*
 * Set up a guest with 64 MiB of RAM, the buffer @ram. Make @kernel, and place
 * it at @phys with one line in its log. st_begin() starts a session.
 */
void st_setup_kernel(Test *t, KmKernel *kernel, uint8_t *ram, uint64_t phys);

void st_begin(Test *t);
void st_teardown(Test *t);

/* Make ring @i, of one processor with @nr sub-buffers, at an offset in RAM. */
void st_make_ring(Test *t, unsigned i, uint64_t offset, uint32_t nr);

/* Write @n events to a ring. */
void st_events(Test *t, unsigned ring, unsigned n);

/* Poll once. */
void st_look(Test *t);

/*
 * Poll, at most 1000 times, until the session reads a kernel's log; if !@there,
 * until it reads none.
 */
void st_look_for_kernel(Test *t, bool there);

/*
 * Write an event to @ring before each poll, until a poll records events; add
 * the number of events written to *@written
 */
void st_find(Test *t, unsigned ring, unsigned *written);

/*
 * Count the recording's events of each boot in @boots, which has room for @max
 * boots; return the number of events of all boots
 */
unsigned st_recorded(const Test *t, unsigned *boots, unsigned max);

#endif
