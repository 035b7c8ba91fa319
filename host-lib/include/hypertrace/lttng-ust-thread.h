/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: keep threads out of LTTng-UST when the process ends
 */
#ifndef HYPERTRACE_LTTNG_UST_THREAD_H
#define HYPERTRACE_LTTNG_UST_THREAD_H

#include "hypertrace/base.h"

/**
 * ht_ust_enter: announce that this thread is going to call LTTng-UST
 *
 * Returns: false if ht_ust_end() was called: the thread must not call LTTng-UST
 */
bool ht_ust_enter(void);

/**
 * ht_ust_leave: announce that this thread no longer calls LTTng-UST
 *
 * Context: after ht_ust_enter() returned true
 */
void ht_ust_leave(void);

/**
 * ht_ust_end: stop further calls of LTTng-UST, and wait for running ones
 * @ms: maximum time to wait, in ms
 *
 * exit() may crash or hang in LTTng-UST's destructor while a thread is between
 * ht_ust_enter() and ht_ust_leave().
 *
 * Returns: false if a thread is still there: end the process with _exit()
 *
 * Context: once, before exit() runs destructors
 */
bool ht_ust_end(unsigned ms);

#endif /* HYPERTRACE_LTTNG_UST_THREAD_H */
