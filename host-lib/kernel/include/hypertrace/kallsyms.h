/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decode a kernel's symbols from the tables in its image (kallsyms)
 *
 * The tables have no header: they are found by their content.  The layouts of
 * 5.4 to 7.2 are known; see kernel/kallsyms.c.  The data is not trusted.
 */
#ifndef HYPERTRACE_KALLSYMS_H
#define HYPERTRACE_KALLSYMS_H

#include "hypertrace/symbols.h"

/* Maximum number of symbols; Debian's 7.2 kernel has 187,000 */
#define HT_KALLSYMS_MAX (1u << 20)

/**
 * HtKernelSegment: a part of the kernel's memory that a file holds
 * @addr: virtual address
 * @offset: offset in the file, in bytes
 * @size: size in bytes
 */
typedef struct HtKernelSegment {
    uint64_t addr;
    uint64_t offset;
    uint64_t size;
} HtKernelSegment;

/**
 * ht_kallsyms_decode: find and decode the tables
 * @data: the kernel
 * @size: size of @data in bytes
 * @segments: mapping of @data to memory, by rising @addr; the first segment
 *            begins at the symbol _text.  Tables with another address of _text
 *            are not accepted.
 * @n: number of @segments; if the address is not known (arm64's Image), pass
 *     one segment at address 0.  The tables then determine the address; if they
 *     lack it, a usual address is assumed.
 * @text: set to the address of _text; or NULL
 * @error: set if there are no tables, or none that are consistent
 *
 * Returns: the symbols, for ht_symbols_free(); or NULL
 */
HtSymbols *ht_kallsyms_decode(const void *data, size_t size,
                              const HtKernelSegment *segments, unsigned n,
                              uint64_t *text, GError **error);

#endif
