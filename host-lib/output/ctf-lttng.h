/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what LTTng's kernel tracer calls the events of Linux
 */
#ifndef HYPERTRACE_CTF_LTTNG_H
#define HYPERTRACE_CTF_LTTNG_H

#include "hypertrace/class.h"

/**
 * ht_ctf_lttng_event: what lttng-modules calls a class
 * @name: of the class, as the kernel calls the event
 *
 * Returns: to be freed
 */
char *ht_ctf_lttng_event(const char *name);

/**
 * ht_ctf_lttng_field: what lttng-modules calls a field
 * @c: the class
 * @name: of the field
 *
 * Returns: @name, or another one that @c does not have
 */
const char *ht_ctf_lttng_field(const HtClass *c, const char *name);

#endif /* HYPERTRACE_CTF_LTTNG_H */
