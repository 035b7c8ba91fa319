/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an event as its kernel would print it
 *
 * libtraceevent parses an event class's print format once; what it finds
 * becomes a small program, which then formats each event.
 */
#ifndef HYPERTRACE_PRINT_FMT_H
#define HYPERTRACE_PRINT_FMT_H

#include "hypertrace/ftrace-format.h"
#include "hypertrace/symbols.h"

/**
 * struct HtPrintSymbols - what addresses are shown as
 * @symbols: NULL: addresses are shown as numbers
 * @shift: the kernel's address at run time minus the one in @symbols (KASLR)
 */
typedef struct HtPrintSymbols {
    const HtSymbols *symbols;
    uint64_t shift;
} HtPrintSymbols;

typedef struct HtPrint HtPrint;

/**
 * ht_print_new() - compile the print format of an event class
 * @e: need not stay
 *
 * Return: for ht_print_free(); NULL if the print format is not understood: show
 * the fields one by one instead
 */
HtPrint *ht_print_new(const HtFtEvent *e);
void ht_print_free(HtPrint *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtPrint, ht_print_free)

/**
 * ht_print() - format one event
 * @data: the record, from its common fields on; any bytes
 * @size: its bytes; what lies behind is not read
 * @symbols: may be NULL
 * @out: appended to.  Strings of the record come as they are, up to their NUL:
 *       escape the result before it is shown.
 */
void ht_print(const HtPrint *p, const uint8_t *data, size_t size,
              const HtPrintSymbols *symbols, GString *out);

#endif
