/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print an event as its kernel would
 *
 * The print format of an event class is compiled once. The resulting program
 * formats each event.
 */
#ifndef HYPERTRACE_PRINT_FMT_H
#define HYPERTRACE_PRINT_FMT_H

#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"

/**
 * struct HtPrintSymbols - names of addresses
 * @symbols: NULL if addresses are printed as numbers
 * @shift: the kernel's address at run time minus that in @symbols (KASLR)
 */
typedef struct HtPrintSymbols {
    const HtSymbols *symbols;
    uint64_t shift;
} HtPrintSymbols;

typedef struct HtPrint HtPrint;

/**
 * ht_print_new() - compile the print format of an event class
 * @e: the event class; not used after the call
 * @why: set to the reason of a failure, to be freed, else to NULL; may be NULL
 *
 * The format comes from a guest and is not trusted. Memory and time are
 * bounded, see HT_PRINT_NODES_MAX.
 *
 * If a whole argument is a call of an unknown function, the name and arguments
 * of the call are printed.
 *
 * Return: the program, for ht_print_free(); NULL if the format has errors, or
 * computes with the result of an unknown function
 */
HtPrint *ht_print_new(const HtFtEvent *e, char **why);
void ht_print_free(HtPrint *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtPrint, ht_print_free)

/**
 * ht_print() - format one event
 * @p: the program
 * @data: the record, from its common fields on; not trusted
 * @size: bytes of the record
 * @symbols: names of addresses; may be NULL
 * @out: appended to. Strings of the record are copied unchanged up to their
 *       NUL: the caller must escape the result before showing it.
 */
void ht_print(const HtPrint *p, const uint8_t *data, size_t size,
              const HtPrintSymbols *symbols, GString *out);

#endif
