/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a VM with an ftrace ring in its memory, for tests
 *
 * The test takes the place of the guest's kernel: it writes the ring into the
 * guest's RAM, a file that the test and QEMU both map.
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
 * QFt: a VM with the object "ft" of type hypertrace-ftrace
 * @h: QEMU; the path and the log are those of "ft"
 * @options: properties of "ft", set before qft_start(), or NULL
 * @ram: file of the guest's RAM
 * @formats: file of event formats, or NULL
 * @map: the guest's RAM
 * @guest: the ring
 * @ns: the guest's clock
 */
typedef struct QFt {
    QHt h;
    const char *options;
    char *ram;
    char *formats;
    void *map;
    FtGuest guest;
    uint64_t ns;
} QFt;

/* Start QEMU; without @with_formats, events are delivered as raw bytes */
void qft_start(QFt *vm, bool with_formats, const char *extra);
void qft_end(QFt *vm);
/* Wait for a recording by @trigger; returns its directory, to be freed */
char *qft_wait_recording(QFt *vm, const char *trigger);
/* Remove a directory and all in it; no error if it does not exist */
void qft_remove_dir(const char *path);
/* Create a ring, as a kernel does when it boots */
void qft_boot(QFt *vm, HtFtLayout layout);
/* Write @n events on each processor */
void qft_write(QFt *vm, unsigned n);
/* Number of rings followed; with @changing, only rings that were written */
uint64_t qft_nr_rings(QFt *vm, bool changing);
bool qft_has_ring(QFt *vm, uint64_t number);
/* Read a counter of the first ring */
uint64_t qft_ring_stat(QFt *vm, const char *name);
/* Wait until the ring is found, and followed after one more event per CPU */
void qft_wait_found(QFt *vm);
/* Wait until the sinks are idle; returns the log, to be freed */
char *qft_read_log(QFt *vm);
/* Number of events in the log whose seq is @number */
unsigned qft_count(QFt *vm, uint64_t number);
/* Returns true if the ring's first magic number is 0 */
bool qft_is_erased(QFt *vm);

#endif /* TESTS_QTEST_HYPERTRACE_FTRACE_H */
