/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a VM whose kernel has an ftrace ring, for tests
 *
 * The kernel is the test, which writes the ring into the guest's memory, a file
 * that both have mapped.
 */
#ifndef TESTS_QTEST_HYPERTRACE_FTRACE_H
#define TESTS_QTEST_HYPERTRACE_FTRACE_H

#include "qemu/units.h"
#include "libqos/hypertrace.h"
#include "../unit/ftrace/ftrace-guest.h"

#define QFT_RAM    (64 * MiB)
#define QFT_AT     (32 * MiB)
#define QFT_CPUS        2

/*
 * A VM, whose path and log are those of the object "ft".  Its @options may be
 * given before it is started.
 */
typedef struct QFt {
    QHt h;
    const char *options;
    char *ram;
    char *formats;
    void *map;
    FtGuest guest;
    uint64_t ns;                /* of the guest's clock */
} QFt;

/* Start QEMU; without @with_formats events are bytes */
void qft_start(QFt *vm, bool with_formats, const char *extra);
void qft_end(QFt *vm);
/* The directory of the next recording that nobody asked for, and why it is */
char *qft_wait_recording(QFt *vm, const char *trigger);
/* A directory of recordings, if it is there */
void qft_remove_dir(const char *path);
/* The kernel makes its ring. */
void qft_boot(QFt *vm, HtFtLayout layout);
/* @n events of each processor */
void qft_write(QFt *vm, unsigned n);
/* How many rings are followed; with @changing, of these */
uint64_t qft_nr_rings(QFt *vm, bool changing);
bool qft_has_ring(QFt *vm, uint64_t number);
/* Of the first ring */
uint64_t qft_ring_stat(QFt *vm, const char *name);
/* One more event of each processor shows that the ring is alive. */
void qft_wait_found(QFt *vm);
char *qft_read_log(QFt *vm);
/* How many events of that number are in the log */
unsigned qft_count(QFt *vm, uint64_t number);
bool qft_is_erased(QFt *vm);

#endif /* TESTS_QTEST_HYPERTRACE_FTRACE_H */
