/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the backends of a QEMU in hypertrace-chaos-test.c
 */
#ifndef TESTS_QTEST_HYPERTRACE_CHAOS_H
#define TESTS_QTEST_HYPERTRACE_CHAOS_H

#include "libqos/hypertrace.h"

#define DEVICES 3
#define STREAMS 2

enum {
    WITNESS, FIFO, FULL, CTF, NOTHING, BACKENDS
};

/* The ids of these objects */
extern const char *const chaos_backends[BACKENDS];

/**
 * Files: of a QEMU and its backends
 * @witness: the log of a backend that works
 * @ctf: below which traces are
 * @disk: for a snapshot, or NULL
 * @hanging: nobody reads @fifo
 * @lossy: not all that was posted to it is read in the end
 * @posted, @discarded: events for it, by sinks that are gone
 */
typedef struct Files {
    char *witness;
    char *ctf;
    char *disk;
    QHtFifo *fifo;
    bool hanging;
    bool lossy;
    uint64_t posted;
    uint64_t discarded;
} Files;

void files_new(Files *f, bool hanging);
/* Add -object for each backend */
void files_args(const Files *f, GString *args);
/* Whoever reads @fifo begins, or ends */
void files_hang(Files *f, bool hanging);
/* The directories of the present devices' traces go. */
void files_vanish(Files *f);
/* QEMU has ended: count what @witness has in @seen, by number */
void files_end(Files *f, GByteArray *seen);

#endif
