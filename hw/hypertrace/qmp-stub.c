/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: QMP commands of a QEMU without the device
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"

void coroutine_fn qmp_hypertrace_wait(const char *device, bool has_timeout,
                                      uint32_t timeout, Error **errp)
{
    error_setg(errp, "this QEMU has no hypertrace device");
}
