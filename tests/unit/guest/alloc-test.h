/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glibc's allocator under the names that remain when it is replaced
 */
#ifndef GUEST_ALLOC_TEST_H
#define GUEST_ALLOC_TEST_H

#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

#endif /* GUEST_ALLOC_TEST_H */
