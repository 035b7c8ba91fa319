/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: the few functions of C's library that the payload and
 * the compiler need
 */
#ifndef PAYLOAD_LIBC_H
#define PAYLOAD_LIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t len);
void *memmove(void *to, const void *from, size_t len);
void *memset(void *to, int c, size_t len);
int memcmp(const void *a, const void *b, size_t len);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

#endif /* PAYLOAD_LIBC_H */
