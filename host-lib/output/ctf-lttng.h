/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: translate names of Linux's events and fields to those that
 * LTTng's kernel tracer uses
 */
#ifndef HYPERTRACE_CTF_LTTNG_H
#define HYPERTRACE_CTF_LTTNG_H

#include "hypertrace/class.h"

/**
 * ht_ctf_lttng_event: get the name that lttng-modules gives an event
 * @name: name of the class: the kernel's name of the event, and ".vN" after it
 *        if the event has several classes
 *
 * Returns: the name, for g_free(); the kernel's if ctf-lttng.c has no other
 */
char *ht_ctf_lttng_event(const char *name);

/**
 * ht_ctf_lttng_field: get the name that lttng-modules gives a field
 * @c: the class
 * @name: name of the field in the kernel
 *
 * Returns: the name; @name if lttng-modules uses it too, or if another field of
 * @c already has the name that lttng-modules uses
 */
const char *ht_ctf_lttng_field(const HtClass *c, const char *name);

#endif /* HYPERTRACE_CTF_LTTNG_H */
