/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a guest kernel's symbols
 *
 * They come from the text of /proc/kallsyms, or from the tables in a kernel's
 * image (kallsyms.h).
 *
 * Addresses are those of the boot that printed the text.  A kernel at another
 * place (KASLR) is looked up by its addresses minus the shift, which follows
 * from one known symbol: see ht_symbols_address().  The text is not trusted.
 * All functions are pure; a table may be read by any number of threads.
 */
#ifndef HYPERTRACE_SYMBOLS_H
#define HYPERTRACE_SYMBOLS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* What is read of a text, in bytes */
#define HT_SYMBOLS_MAX          (64u << 20)

typedef struct HtSymbols HtSymbols;

/**
 * ht_symbols_parse() - make the table
 * @text: lines "ADDRESS TYPE NAME", more is ignored; copied
 * @size: its bytes, at most HT_SYMBOLS_MAX
 * @error: set if the text is too large or has no symbol
 *
 * Symbols in the lower half of the address space (x86's per-CPU offsets) and
 * lines that are malformed are left out.
 *
 * Return: the table, for ht_symbols_free(); or NULL
 */
HtSymbols *ht_symbols_parse(const char *text, size_t size, GError **error);
void ht_symbols_free(HtSymbols *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtSymbols, ht_symbols_free)

/**
 * ht_symbols_new() - begin an empty table
 *
 * Return: the table, for ht_symbols_add() and ht_symbols_end() only
 */
HtSymbols *ht_symbols_new(void);

/**
 * ht_symbols_add() - add a symbol to a table that ht_symbols_end() did not end
 * @s: the table
 * @addr: its address.  An offset (x86's per-CPU symbols) in the lower half of
 *        the address space is found by its name only.
 * @type: its letter in /proc/kallsyms
 * @name: its name; need not be terminated
 * @len: bytes of @name, 1 to 511; the table's names may have HT_SYMBOLS_MAX
 *
 * Return: false if the name is too long or the table is full
 */
bool ht_symbols_add(HtSymbols *s, uint64_t addr, char type, const char *name,
                    size_t len);

/**
 * ht_symbols_end() - complete a table
 * @s: the table; taken over
 *
 * Return: the table, for ht_symbols_free(); NULL if it is empty
 */
HtSymbols *ht_symbols_end(HtSymbols *s);

/**
 * ht_symbols_find() - the symbol at or before an address
 * @addr: shift already subtracted
 * @offset: set to how far behind the symbol @addr lies
 *
 * Of several symbols at one place it is the first of the text, as in the
 * kernel.
 *
 * Return: valid as long as the table; NULL if @addr is before the first symbol
 * or behind the last
 */
const char *ht_symbols_find(const HtSymbols *s, uint64_t addr,
                            uint64_t *offset);

/**
 * ht_symbols_address() - where a symbol is
 * @name: the first of this name counts
 * @addr: set if there is one
 */
bool ht_symbols_address(const HtSymbols *s, const char *name, uint64_t *addr);

/**
 * ht_symbols_get() - one symbol after the other, by rising address
 * @s: the table
 * @index: 0 to ht_symbols_count() - 1; symbols at one address keep the order
 *         in which they were added
 * @addr: set to its address
 * @type: set to its letter
 *
 * Return: its name, valid as long as the table; NULL beyond the last
 */
const char *ht_symbols_get(const HtSymbols *s, unsigned index, uint64_t *addr,
                           char *type);

/* Functions that ht_symbols_shift() needs to be sure */
#define HT_SYMBOLS_SHIFT_MIN    8u

/**
 * ht_symbols_shift() - by how much a kernel is elsewhere
 * @addrs: where functions of it begin
 * @n: how many
 * @shift: set to what its addresses have more than the table's
 *
 * All of @addrs must be symbols then, and by one shift only.  Kernels move by
 * multiples of 64 KiB and more.
 *
 * Return: false if that is not so, or @n is less than HT_SYMBOLS_SHIFT_MIN
 */
bool ht_symbols_shift(const HtSymbols *s, const uint64_t *addrs, unsigned n,
                      uint64_t *shift);

/** ht_symbols_count() - how many symbols there are */
unsigned ht_symbols_count(const HtSymbols *s);

#endif
