/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets the pure parts of the host side be compiled without QEMU: what they
 * use of its osdep.h, and nothing else.
 */
#ifndef HT_SHIM_OSDEP_H
#define HT_SHIM_OSDEP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <glib.h>

#define QEMU_PACKED __attribute__((packed))
#define QEMU_ALIGNED(n) __attribute__((aligned(n)))
#define QEMU_BUILD_BUG_ON(x) _Static_assert(!(x), #x)
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define container_of(p, type, member) \
    ((type *)((char *)(p) - offsetof(type, member)))
#define ROUND_UP(n, d) (((n) + (d) - 1) / (d) * (d))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))

#endif
