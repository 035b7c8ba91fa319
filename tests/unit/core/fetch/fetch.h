/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that changes before it is read again
 *
 * The code under test is compiled with -fsanitize=thread and memcpy renamed.
 * fetch.c replaces the sanitizer: it has the functions that the instrumented
 * code calls for each load.  They can flip a byte of watched memory before its
 * second and each later read, as a hostile guest might.
 */
#ifndef FETCH_H
#define FETCH_H

#include "hypertrace/base.h"

/**
 * fetch_watch: watch a further region of memory
 * @p: guest memory
 * @size: size of the region in bytes
 * @keep: fetch_begin() keeps the record of which bytes were read
 */
void fetch_watch(void *p, size_t size, bool keep);
void fetch_forget(void);

/**
 * fetch_begin: start to watch the loads of the code under test
 * @flip: flip a byte before its second and each later read
 */
void fetch_begin(bool flip);

/**
 * fetch_end: stop watching, and restore the bytes that were flipped
 *
 * Returns: number of watched bytes that were read since fetch_begin(); a byte
 * counts at each read
 */
size_t fetch_end(void);

/*
 * A memcpy() with watched loads, for the code under test and for stubs of
 * functions that copy guest memory
 */
void *fetch_memcpy(void *to, const void *from, size_t n);

#endif
