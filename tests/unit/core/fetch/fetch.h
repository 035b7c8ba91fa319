/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that changes after each read
 *
 * The code under test is compiled with -fsanitize=thread and memcpy renamed,
 * but not linked with that sanitizer: this file provides the functions that
 * the instrumentation calls for each load.  They flip a byte before its second
 * read, as a guest might that waits for that moment.
 */
#ifndef FETCH_H
#define FETCH_H

#include "hypertrace/base.h"

/**
 * fetch_watch: watch another region
 * @p, @size: guest memory
 * @keep: remember which bytes were read across fetch_begin()
 */
void fetch_watch(void *p, size_t size, bool keep);
void fetch_forget(void);

/**
 * fetch_begin: start to watch the loads of the code under test
 * @flip: flip bytes before their second read
 */
void fetch_begin(bool flip);

/**
 * fetch_end: stop to watch, and undo all flips
 *
 * Returns: number of bytes read
 */
size_t fetch_end(void);

/* A watched memcpy(), for stubs of functions that copy guest memory */
void *fetch_memcpy(void *to, const void *from, size_t n);

#endif
