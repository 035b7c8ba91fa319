/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sources in a Linux guest, one event at a time.  Each is one small adapter,
 * linked with ht-marker.c.
 */
#ifndef HT_MARKER_H
#define HT_MARKER_H

#include <stdbool.h>
#include <stdint.h>

/* What marker_open() is given: its name in the usage; NULL: nothing */
extern const char *const marker_target;

/**
 * marker_open() - get ready
 * @target: the argument, if there is one
 *
 * Return: whether events go anywhere; if not, it has said why on stderr.
 */
bool marker_open(const char *target);

/**
 * marker_emit() - one event of 32 bytes
 * @n: its number
 * @time: when it was due, in ns; 0 flat out
 *
 * Return: whether the other side took it; if not, errno says why.
 */
bool marker_emit(uint64_t n, uint64_t time);

#endif /* HT_MARKER_H */
