/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: where the kernel is in boots whose ring does not tell
 *
 * A ring that was kept over a warm reset has the address of the kernel before.
 * But each boot calls the same functions, whose addresses are in its events.
 */
#ifndef HYPERTRACE_TOOL_SHIFTS_H
#define HYPERTRACE_TOOL_SHIFTS_H

#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"

typedef struct HtShifts HtShifts;

/**
 * ht_shifts_new: begin
 * @dir: the recording's directory
 * @formats: its formats, or NULL; must stay
 * @symbols: its symbols, or NULL; must stay
 *
 * Nothing is read before the first ht_shifts_of().
 */
HtShifts *ht_shifts_new(const char *dir, const HtFtFormats *formats,
                        const HtSymbols *symbols);

/**
 * ht_shifts_free: end
 * @s: or NULL
 */
void ht_shifts_free(HtShifts *s);

/**
 * ht_shifts_of: what a boot's addresses have more than the symbols
 * @s: shifts
 * @boot: from 1
 * @shift: set if it is known
 *
 * Reads the recording up to this boot's first initcalls, each part once.
 *
 * Returns: false if these do not tell
 */
bool ht_shifts_of(HtShifts *s, unsigned boot, uint64_t *shift);

#endif
