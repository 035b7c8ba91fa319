/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the flight recorder's command in a QEMU without it
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"

HypertraceSnapshots *qmp_hypertrace_snapshot(const char *object, Error **errp)
{
    error_setg(errp, "this QEMU has no hypertrace-ftrace objects");
    return NULL;
}
