/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: backend that discards all events, to measure a channel's own cost
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "hypertrace/backend.h"

static void *null_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                         Error **errp)
{
    return b;
}

static void null_detach(HypertraceBackend *b, void *session)
{
}

static void null_deliver(HypertraceBackend *b, void *session, const HtRun *run)
{
}

static void null_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->attach = null_attach;
    k->detach = null_detach;
    k->deliver = null_deliver;
}

static const TypeInfo null_info = {
    .name = TYPE_HYPERTRACE_BACKEND_NULL,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .class_init = null_class_init,
};

static void null_register_types(void)
{
    type_register_static(&null_info);
}

type_init(null_register_types)
