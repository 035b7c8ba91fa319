/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel's address (KASLR) from the events of a boot
 *
 * A kernel before Linux 6.15 that continues to use the ring of the previous
 * boot leaves the address of that boot's kernel in the ring. But the initcall
 * events of each boot have addresses of functions of the running kernel. The
 * shift of that kernel is such an address minus the function's address in the
 * symbols.
 */
#ifndef HYPERTRACE_TOOL_SHIFTS_H
#define HYPERTRACE_TOOL_SHIFTS_H

#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"

typedef struct HtShifts HtShifts;

/**
 * ht_shifts_new: prepare to find addresses
 * @dir: the recording's directory
 * @formats: its formats, or NULL; must outlive the result
 * @symbols: its symbols, or NULL; must outlive the result
 *
 * Nothing is read before the first ht_shifts_of().
 */
HtShifts *ht_shifts_new(const char *dir, const HtFtFormats *formats,
                        const HtSymbols *symbols);

/**
 * ht_shifts_free: free the result of ht_shifts_new()
 * @s: shifts or NULL
 */
void ht_shifts_free(HtShifts *s);

/**
 * ht_shifts_of: get a boot's addresses of functions minus those in the symbols
 * @boot: boot, counted from 1
 * @shift: set to the difference, if it is known: the number to subtract from an
 *         address before it is looked up
 *
 * This reads the recording up to the first 32 initcalls of the boot; if they do
 * not give the difference, to the boot's end. The next call reads on from
 * there, so no part is read twice.
 *
 * Returns: false if the difference is not known
 */
bool ht_shifts_of(HtShifts *s, unsigned boot, uint64_t *shift);

#endif
