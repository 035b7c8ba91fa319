/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of glibc's own allocator, which the replacement in alloc-test.c calls
 */
#ifndef GUEST_ALLOC_TEST_H
#define GUEST_ALLOC_TEST_H

#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

#endif
