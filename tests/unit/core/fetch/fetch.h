/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that changes once it has been read
 *
 * The code under test is compiled with -fsanitize=thread and memcpy renamed,
 * but not linked with that sanitizer: the functions that it would call for
 * each load are here.  A byte that is read a second time is flipped first, as
 * a guest would who waits for just that.
 */
#ifndef FETCH_H
#define FETCH_H

#include "hypertrace/base.h"

/**
 * fetch_watch: watch one more region
 * @p, @size: guest memory
 * @keep: a byte once read stays so until fetch_forget()
 */
void fetch_watch(void *p, size_t size, bool keep);
void fetch_forget(void);

/**
 * fetch_begin: the code under test runs from here
 * @flip: flip what is read twice
 */
void fetch_begin(bool flip);

/**
 * fetch_end: until here; what was flipped is as it was
 *
 * Returns: bytes that were read
 */
size_t fetch_end(void);

/* As memcpy(), watched; for stubs of what copies guest memory */
void *fetch_memcpy(void *to, const void *from, size_t n);

#endif
