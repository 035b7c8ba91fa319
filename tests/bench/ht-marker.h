/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Methods to emit an event in a Linux guest.  One file ht-marker-*.c defines
 * each method, and is linked with ht-marker.c.
 */
#ifndef HT_MARKER_H
#define HT_MARKER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Name of the argument @target of marker_open() in the usage text; NULL if the
 * method has no argument
 */
extern const char *const marker_target;

/**
 * marker_open() - prepare for marker_emit()
 * @target: the argument, or NULL if the method has none
 *
 * Return: true if events can be emitted, and are recorded as far as the method
 * can tell; if false, the function has printed the reason to stderr.
 */
bool marker_open(const char *target);

/**
 * marker_emit() - emit one event; if the method has a payload, it has 32 bytes
 * @n: number of the event
 * @time: time at which the event was due, in ns; 0 at full speed
 *
 * Return: true if the event was accepted, else false with the reason in errno.
 */
bool marker_emit(uint64_t n, uint64_t time);

#endif /* HT_MARKER_H */
