/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: set how long LTTng-UST waits for a session daemon, unless the
 * environment sets it
 *
 * LTTng-UST waits 3 s by default.  After a timeout, events that are registered
 * later cannot be enabled until QEMU is started again.  A daemon on a busy
 * machine can take longer.  The wait must be bounded, because a daemon that
 * hangs would keep QEMU from starting.  LTTng-UST reads
 * LTTNG_UST_REGISTER_TIMEOUT when it is loaded.  A QEMU with modules loads it
 * for the first LTTng backend, after the function below has run; a QEMU without
 * modules loads it before, so that the function has no effect.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"

#define REGISTER_TIMEOUT_MS "10000"

static void hypertrace_lttng_timeout(void)
{
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", REGISTER_TIMEOUT_MS, false);
}

type_init(hypertrace_lttng_timeout)
