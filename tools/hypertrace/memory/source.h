/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: where a guest's memory is read from
 */
#ifndef HYPERTRACE_SOURCE_H
#define HYPERTRACE_SOURCE_H

#include <sys/types.h>
#include "hypertrace/ftrace-ring.h"
#include "memory/process.h"

typedef struct HtSource HtSource;

/**
 * HtSourceRange: a part of a guest's memory
 * @from: where the source has it: an address or an offset
 * @size: bytes of it
 * @file: offset in the file, for a core
 * @at: where it is in HtFtMem; private
 */
typedef struct HtSourceRange {
    uint64_t from;
    uint64_t size;
    uint64_t file;
    uint64_t at;
} HtSourceRange;

/**
 * HtSource: a guest's memory
 * @mem: for searching and following; holes and what was never written are
 *       not touched
 * @fd: what is read
 * @pagemap: of a process, or -1
 * @ranges: HtSourceRange, rising
 * @hole_from: a hole of @mem that was found...
 * @hole_to: ...and its end; both 0 without one
 * @hole_time: when that was, by g_get_monotonic_time()
 */
struct HtSource {
    HtFtMem mem;
    int fd;
    int pagemap;
    GArray *ranges;
    uint64_t hole_from;
    uint64_t hole_to;
    int64_t hole_time;
};

/**
 * ht_source_file() - a file that is a guest's RAM, or a core of one
 * @fd: of a file, block device or memfd; is taken over, also on failure
 * @name: of it, for messages
 * @error: set on failure
 *
 * A core is what QEMU's dump-guest-memory writes by default (ELF, 64 bits).
 *
 * Return: the source or NULL
 */
HtSource *ht_source_file(int fd, const char *name, GError **error);

/**
 * ht_source_open() - as ht_source_file(), by its name
 * @path: of the file
 * @error: set on failure
 */
HtSource *ht_source_open(const char *path, GError **error);

/**
 * ht_source_process() - the RAM of a QEMU that runs
 * @process: it; need not stay
 * @others: HtSource of files: mappings of these are left out, so that nothing
 *          is read twice; or NULL
 * @error: set on failure
 *
 * All large mappings that can be written and not executed.  Ends with the
 * process: reads then fail with -ESRCH.
 *
 * Return: the source or NULL
 */
HtSource *ht_source_process(const HtProcess *process, const GPtrArray *others,
                            GError **error);

/**
 * ht_source_same() - do two sources have the same ranges?
 * @a: of a process
 * @b: of the same process, later
 */
bool ht_source_same(const HtSource *a, const HtSource *b);

/**
 * ht_source_process_size() - bytes of a process that can be a guest's RAM
 * @process: it
 *
 * Return: 0 if there are none, or they cannot be read
 */
uint64_t ht_source_process_size(const HtProcess *process);

/**
 * ht_source_free() - close it
 * @s: the source or NULL
 */
void ht_source_free(HtSource *s);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSource, ht_source_free)

/* Between the kinds of sources */

/**
 * ht_source_piece() - the ranges of a source, for HtFtMem.piece
 * @opaque: the source
 * @index: number of the range
 * @offset: set to where it is in the memory
 * @size: set to its bytes
 * @phys: set to HT_FT_PHYS_UNKNOWN
 */
bool ht_source_piece(void *opaque, unsigned index, uint64_t *offset,
                     uint64_t *size, uint64_t *phys);

/**
 * ht_source_new() - a source without ranges
 * @fd: what is read; is taken over
 */
HtSource *ht_source_new(int fd);

/**
 * ht_source_add() - add a range
 * @s: the source
 * @from: where it begins
 * @size: bytes of it
 * @file: see HtSourceRange
 * @place: where this is a multiple of 2 MiB, so is where it is in @s->mem
 */
void ht_source_add(HtSource *s, uint64_t from, uint64_t size, uint64_t file,
                   uint64_t place);

/**
 * ht_source_find() - the range of a place, or the one behind it
 * @s: the source
 * @offset: in @s->mem
 *
 * Return: NULL if there is none
 */
const HtSourceRange *ht_source_find(const HtSource *s, uint64_t offset);

/**
 * ht_source_core() - make ranges of the segments of an ELF core
 * @s: a source without ranges
 * @name: of the file, for messages
 * @error: set on failure
 */
bool ht_source_core(HtSource *s, const char *name, GError **error);

#endif
