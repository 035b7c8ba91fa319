/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace-chaos-test.c: make the backends of a QEMU, and check what they
 * have written
 */
#ifndef TESTS_QTEST_HYPERTRACE_CHAOS_H
#define TESTS_QTEST_HYPERTRACE_CHAOS_H

#include "libqos/hypertrace.h"

#define DEVICES 3
#define STREAMS 2

enum {
    WITNESS, FIFO, FULL, CTF, NOTHING, BACKENDS
};

/* Ids of the backend objects, indexed by WITNESS, FIFO and so on */
extern const char *const chaos_backends[BACKENDS];

/**
 * Files: the files that one QEMU's backends write
 * @witness: file of the log backend that always works
 * @ctf: directory that holds the CTF traces
 * @disk: image for snapshots, or NULL
 * @fifo: FIFO of the log backend that hangs at times
 * @hanging: no thread reads @fifo
 * @lossy: @fifo may lack events, because a sink ended while @fifo hung
 * @posted: number of events that closed sinks delivered to @fifo or discarded
 * @discarded: how many of @posted were discarded
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
/* Append an option -object for each backend to @args, the arguments of QEMU */
void files_args(const Files *f, GString *args);
/* If @hanging, stop the thread that reads @f->fifo; else start it */
void files_hang(Files *f, bool hanging);
/* Remove the directories of the devices' CTF traces while QEMU runs */
void files_vanish(Files *f);
/*
 * Call after QEMU's end: check how many events @f->fifo has, count each event
 * of @f->witness in @seen, remove the files, and free the members of @f
 */
void files_end(Files *f, GByteArray *seen);

#endif
