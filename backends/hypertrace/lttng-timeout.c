/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: set how long LTTng-UST waits for a session daemon, unless the
 * environment sets it
 *
 * LTTng-UST waits 3 s by default; after a timeout, events that are registered
 * later can never be enabled. A daemon on a busy machine can take longer. The
 * wait must be bounded, because a daemon that hangs would keep QEMU from
 * starting. LTTng-UST reads LTTNG_UST_REGISTER_TIMEOUT when it is loaded; in a
 * QEMU with modules, this happens when the first LTTng backend is created,
 * after the function below has run.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"

#define REGISTER_TIMEOUT_MS "10000"

static void hypertrace_lttng_timeout(void)
{
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", REGISTER_TIMEOUT_MS, false);
}

type_init(hypertrace_lttng_timeout)
