/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: which threads are in LTTng-UST
 */
#ifndef HYPERTRACE_LTTNG_UST_THREAD_H
#define HYPERTRACE_LTTNG_UST_THREAD_H

#include "hypertrace/base.h"

/**
 * ht_ust_enter: about to call LTTng-UST
 *
 * Returns: false once ht_ust_end() was called: do not
 */
bool ht_ust_enter(void);
void ht_ust_leave(void);

/**
 * ht_ust_end: let nobody enter LTTng-UST any more
 * @ms: how long to wait for those inside
 *
 * exit() crashes or hangs in LTTng-UST's destructor if a thread is inside.
 *
 * Returns: false if one still is: end the process with _exit()
 *
 * Context: once, before exit() runs destructors
 */
bool ht_ust_end(unsigned ms);

#endif /* HYPERTRACE_LTTNG_UST_THREAD_H */
