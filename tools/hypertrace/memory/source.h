/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory from a file, an ELF core or a running QEMU
 */
#ifndef HYPERTRACE_SOURCE_H
#define HYPERTRACE_SOURCE_H

#include <sys/types.h>
#include "hypertrace/ftrace-ring.h"
#include "memory/process.h"

typedef struct HtSource HtSource;

/**
 * HtSourceRange: a part of a guest's memory
 * @from: for a process, the part's address in the process; for a core, its
 *        physical address in the guest
 * @size: number of bytes
 * @file: for a core, the part's offset in the file
 * @at: offset in HtFtMem at which the reader sees the part; private
 */
typedef struct HtSourceRange {
    uint64_t from;
    uint64_t size;
    uint64_t file;
    uint64_t at;
} HtSourceRange;

/**
 * HtSource: a guest's memory
 * @mem: interface for the reader; its next() skips holes of a file of RAM,
 *       space between ranges and, if @pagemap is not -1, pages that a process
 *       does not have: to read these pages may allocate them
 * @fd: descriptor of the file, or of /proc/PID/mem of a process
 * @pagemap: descriptor of /proc/PID/pagemap of a process, or -1
 * @ranges: HtSourceRange, sorted by offset in @mem; none for a file of RAM
 * @inner: HtSourceRange; each is the end part of one of @ranges, from a place
 *         where RAM may begin
 * @hole_from: begin, as an offset in @mem, of the cached hole: the last hole
 *             that a search found in a process's pages
 * @hole_to: end of the cached hole; @hole_from and @hole_to are 0 if no hole
 *           was found
 * @hole_time: g_get_monotonic_time() when the hole was found
 * @ended: a read has shown that the process no longer has memory, so a search
 *         must not go on
 */
struct HtSource {
    HtFtMem mem;
    int fd;
    int pagemap;
    GArray *ranges;
    GArray *inner;
    uint64_t hole_from;
    uint64_t hole_to;
    int64_t hole_time;
    bool ended;
};

/**
 * ht_source_file() - use a file as source: a guest's RAM, or a core of a guest
 * @fd: file, block device or memfd; owned by the source, closed on failure
 * @name: name of the file, for messages
 * @error: set on failure
 *
 * A file that begins as an ELF file counts as a core. The core must be ELF with
 * 64 bits, little-endian, as QEMU's dump-guest-memory writes by default.
 *
 * Return: the source or NULL
 */
HtSource *ht_source_file(int fd, const char *name, GError **error);

/**
 * ht_source_open() - open a file as source, see ht_source_file()
 * @path: path of the file
 * @error: set on failure
 *
 * Return: the source or NULL
 */
HtSource *ht_source_open(const char *path, GError **error);

/**
 * ht_source_process() - use the memory of a running QEMU as source
 * @process: the QEMU; the caller may free it afterwards
 * @others: HtSource of files, whose mappings are left out, so that nothing is
 *          read twice; or NULL
 * @error: set on failure
 *
 * The source has all mappings that may be RAM: they have 8 MiB or more, and are
 * writable and not executable. After the process has ended, reads fail with
 * -ESRCH.
 *
 * Return: the source or NULL
 */
HtSource *ht_source_process(const HtProcess *process, const GPtrArray *others,
                            GError **error);

/**
 * ht_source_process_nodes() - use a QEMU's RAM as one piece if it consists of
 *                             two NUMA nodes
 * @process: the QEMU; the caller may free it afterwards
 * @low: bytes of the first node, whose memory is anonymous; a multiple of 2 MiB
 * @top: source of the file that the second node maps as a whole
 * @error: set on failure: the memory cannot be read, or QEMU has not mapped its
 *         RAM yet
 *
 * Return: the source or NULL
 */
HtSource *ht_source_process_nodes(const HtProcess *process, uint64_t low,
                                  const HtSource *top, GError **error);

/**
 * ht_source_same() - whether two sources have the same ranges at the same
 * offsets
 * @a: source of a process
 * @b: later source of the same process
 */
bool ht_source_same(const HtSource *a, const HtSource *b);

/**
 * ht_source_process_size() - get the size of all mappings that may be RAM
 * @process: the process
 *
 * Return: bytes; 0 if no mapping qualifies, or its memory cannot be read
 */
uint64_t ht_source_process_size(const HtProcess *process);

/**
 * ht_source_free() - close a source
 * @s: the source or NULL
 */
void ht_source_free(HtSource *s);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSource, ht_source_free)

/* Internal functions of the sources */

/**
 * ht_source_piece() - get a range of a source; implements HtFtMem.piece
 * @opaque: the source
 * @index: number of the range: first HtSource.ranges, then HtSource.inner
 * @offset: set to the range's offset in the memory
 * @size: set to the range's number of bytes
 * @phys: set to HT_FT_PHYS_UNKNOWN
 *
 * Return: false if there are not that many ranges
 */
bool ht_source_piece(void *opaque, unsigned index, uint64_t *offset,
                     uint64_t *size, uint64_t *phys);

/**
 * ht_source_new() - create a source without ranges
 * @fd: descriptor to read; owned by the source
 */
HtSource *ht_source_new(int fd);

/**
 * ht_source_add() - add a range
 * @from: see HtSourceRange
 * @size: number of bytes
 * @file: see HtSourceRange
 * @place: the range's offset in @s->mem is chosen so that it equals this number
 *         modulo 2 MiB
 */
void ht_source_add(HtSource *s, uint64_t from, uint64_t size, uint64_t file,
                   uint64_t place);

/**
 * ht_source_begin() - note that a part of the range added last may be RAM
 * @from: address in the process at which RAM may begin; it ends where the range
 *        ends
 */
void ht_source_begin(HtSource *s, uint64_t from);

/**
 * ht_source_find() - find the range that has an offset, or the first one after
 * it
 * @offset: offset in @s->mem
 *
 * Return: the range; NULL if no range ends after @offset
 */
const HtSourceRange *ht_source_find(const HtSource *s, uint64_t offset);

/**
 * ht_source_core() - add the segments of an ELF core as ranges
 * @s: a source without ranges
 * @name: name of the file, for messages
 * @error: set on failure
 *
 * Return: true on success
 */
bool ht_source_core(HtSource *s, const char *name, GError **error);

#endif
