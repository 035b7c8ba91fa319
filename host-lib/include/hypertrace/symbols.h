/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse and look up a guest kernel's symbols
 *
 * The symbols come from the text of /proc/kallsyms, or from the tables in a
 * kernel's image (kallsyms.h).
 *
 * Addresses are those of the boot that printed the text, or the link addresses
 * of an image.  To look up an address of another boot, first subtract the shift
 * by which KASLR has moved that boot's kernel relative to the table.  The shift
 * follows from the address of one known symbol (ht_symbols_address()), or from
 * the addresses of several functions with unknown names (ht_symbols_shift()).
 * The text is not trusted.  A complete table does not change; several threads
 * may read it at the same time.
 */
#ifndef HYPERTRACE_SYMBOLS_H
#define HYPERTRACE_SYMBOLS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum size of a text, and of the names of a table, in bytes */
#define HT_SYMBOLS_MAX          (64u << 20)

typedef struct HtSymbols HtSymbols;

/**
 * ht_symbols_parse() - parse a text of symbols
 * @text: lines "ADDRESS TYPE NAME"; the rest of a line is ignored; copied
 * @size: its size in bytes, at most HT_SYMBOLS_MAX
 * @error: set if the text is too large or has no symbol
 *
 * Malformed lines, names of more than 511 bytes, and symbols in the lower half
 * of the address space (x86's per-CPU offsets) are left out.
 *
 * Return: the table, for ht_symbols_free(); or NULL
 */
HtSymbols *ht_symbols_parse(const char *text, size_t size, GError **error);
void ht_symbols_free(HtSymbols *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSymbols, ht_symbols_free)

/**
 * ht_symbols_new() - start an empty table
 *
 * Return: the table, for ht_symbols_add() and ht_symbols_end() only
 */
HtSymbols *ht_symbols_new(void);

/**
 * ht_symbols_add() - add a symbol
 * @s: a table for which ht_symbols_end() was not called yet
 * @addr: its address; ht_symbols_find() and ht_symbols_shift() ignore symbols
 *        in the lower half of the address space (x86's per-CPU offsets)
 * @type: letter of its type in /proc/kallsyms
 * @name: its name; need not be terminated
 * @len: length of @name in bytes, 1 to 511
 *
 * Return: false if the name is empty or too long, or if the names of the table
 * would take more than HT_SYMBOLS_MAX bytes
 */
bool ht_symbols_add(HtSymbols *s, uint64_t addr, char type, const char *name,
                    size_t len);

/**
 * ht_symbols_end() - complete a table
 * @s: the table; ownership passes to this function
 *
 * Return: the table, for ht_symbols_free(); NULL if it is empty
 */
HtSymbols *ht_symbols_end(HtSymbols *s);

/**
 * ht_symbols_find() - find the symbol at or before an address
 * @s: the table
 * @addr: the address, after subtracting the shift
 * @offset: set to the distance of @addr from the symbol in bytes
 *
 * If several symbols have the same address, the one that was added first is
 * returned, as in the kernel.
 *
 * Return: the name, valid as long as the table; NULL if @addr is before the
 * address of the first symbol of the upper half, or after that of the last one
 */
const char *ht_symbols_find(const HtSymbols *s, uint64_t addr,
                            uint64_t *offset);

/**
 * ht_symbols_address() - get the address of a symbol
 * @s: the table
 * @name: the name; if several symbols have it, the symbol that was added first
 *        counts
 * @addr: set to the address
 *
 * Return: false if there is no such symbol
 */
bool ht_symbols_address(const HtSymbols *s, const char *name, uint64_t *addr);

/**
 * ht_symbols_get() - get a symbol by its position in the order of addresses
 * @s: the table
 * @index: 0 to ht_symbols_count() - 1; symbols at one address keep the order
 *         in which they were added
 * @addr: set to the address
 * @type: set to the letter of its type
 *
 * Return: the name, valid as long as the table; NULL if @index is too large
 */
const char *ht_symbols_get(const HtSymbols *s, unsigned index, uint64_t *addr,
                           char *type);

/* Number of functions that ht_symbols_shift() needs for a reliable result */
#define HT_SYMBOLS_SHIFT_MIN    8u

/**
 * ht_symbols_shift() - find the KASLR offset relative to the table
 * @s: the table
 * @addrs: addresses of functions in the running kernel
 * @n: number of @addrs, at least HT_SYMBOLS_SHIFT_MIN
 * @shift: set to the running kernel's addresses minus those of the table
 *
 * The shift must map all of @addrs to symbols, and must be the only such
 * multiple of 64 KiB.
 *
 * Return: false if there is no such shift or more than one, or if @n is too
 * small
 */
bool ht_symbols_shift(const HtSymbols *s, const uint64_t *addrs, unsigned n,
                      uint64_t *shift);

/**
 * ht_symbols_count() - get the number of symbols
 * @s: the table
 */
unsigned ht_symbols_count(const HtSymbols *s);

#endif
