/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel's address (KASLR) from the events of a boot
 *
 * After a warm reset, the ring still names the address of the previous boot's
 * kernel. But in each boot, the initcall events have the addresses of the same
 * functions. The difference of these addresses to those in the symbols is the
 * shift of the boot's kernel.
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
 * ht_shifts_of: get the difference of a boot's addresses to the symbols
 * @boot: boot, counted from 1
 * @shift: set to the number to subtract from an address, if it is known
 *
 * This reads the recording up to the first initcalls of the boot. No part is
 * read twice.
 *
 * Returns: false if the difference is not known
 */
bool ht_shifts_of(HtShifts *s, unsigned boot, uint64_t *shift);

#endif
