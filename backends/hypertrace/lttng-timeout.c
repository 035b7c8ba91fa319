/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: how long LTTng-UST waits for a session daemon
 *
 * For 3 s unless told, and events that are registered from then on can never
 * be enabled; a busy machine's daemon took longer.  Without bound, a daemon
 * that hangs would keep QEMU from starting.  LTTng-UST looks when it is loaded:
 * with modules, that is when the first backend is made, after this.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"

#define REGISTER_TIMEOUT_MS "10000"

static void hypertrace_lttng_timeout(void)
{
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", REGISTER_TIMEOUT_MS, false);
}

type_init(hypertrace_lttng_timeout)
