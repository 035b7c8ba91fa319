/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: QMP commands of a QEMU that is built without the device */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"

HypertraceInfoList *qmp_query_hypertrace(const char *object, Error **errp)
{
    if (object) {
        error_setg(errp, "this QEMU has no hypertrace device");
    }
    return NULL;
}

HypertraceDrain *qmp_hypertrace_drain(const char *object, Error **errp)
{
    error_setg(errp, "this QEMU has no hypertrace device");
    return NULL;
}
