/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: functions that the payload and the compiler call.
 * None of their loops may be compiled to a call of the same function.
 */
#include "libc.h"

void *memcpy(void *to, const void *from, size_t len)
{
    void *d = to;

    asm volatile("rep movsb" : "+D" (d), "+S" (from), "+c" (len) : : "memory");
    return to;
}

void *memmove(void *to, const void *from, size_t len)
{
    uint8_t *d = to;
    const uint8_t *s = from;

    if ((uintptr_t)d - (uintptr_t)s >= len) {
        return memcpy(to, from, len);
    }
    while (len--) {
        d[len] = s[len];
    }
    return to;
}

void *memset(void *to, int c, size_t len)
{
    void *d = to;

    asm volatile("rep stosb" : "+D" (d), "+c" (len) : "a" (c) : "memory");
    return to;
}

int memcmp(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a;
    const uint8_t *y = b;

    for (; len; len--, x++, y++) {
        if (*x != *y) {
            return *x - *y;
        }
    }
    return 0;
}

size_t strlen(const char *s)
{
    size_t len = 0;

    while (s[len]) {
        len++;
    }
    return len;
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}
