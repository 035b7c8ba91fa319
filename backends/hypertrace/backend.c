/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: base class of the host backends
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qom/object_interfaces.h"
#include "hypertrace/backend.h"

bool hypertrace_backend_settable(HypertraceBackend *b, Error **errp)
{
    if (b->complete) {
        error_setg(errp, "cannot change a property of a %s in use",
                   object_get_typename(OBJECT(b)));
        return false;
    }
    return true;
}

bool hypertrace_backend_may_block(HypertraceBackend *b)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);

    return k->may_block && k->may_block(b);
}

void *hypertrace_backend_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                                Error **errp)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);
    void *session;

    if (!b->complete) {
        error_setg(errp, "the %s is not complete",
                   object_get_typename(OBJECT(b)));
        return NULL;
    }
    session = k->attach(b, info, errp);
    if (session) {
        b->users++;
    }
    return session;
}

void hypertrace_backend_detach(HypertraceBackend *b, void *session)
{
    assert(b->users);
    HYPERTRACE_BACKEND_GET_CLASS(b)->detach(b, session);
    b->users--;
}

void hypertrace_backend_expect_classes(HypertraceBackend *b, void *session,
                                       HtClass *const *classes, unsigned count)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);

    if (k->expect_classes) {
        k->expect_classes(b, session, classes, count);
    }
}

bool hypertrace_backend_add_class(HypertraceBackend *b, void *session,
                                  const HtClass *c, Error **errp)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);

    return !k->add_class || k->add_class(b, session, c, errp);
}

bool hypertrace_backend_wants(HypertraceBackend *b, void *session,
                              const HtClass *c)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);

    return !k->wants || k->wants(b, session, c);
}

bool hypertrace_backend_chooses(HypertraceBackend *b)
{
    return HYPERTRACE_BACKEND_GET_CLASS(b)->wants;
}

void hypertrace_backend_deliver(HypertraceBackend *b, void *session,
                                const HtRun *run)
{
    HYPERTRACE_BACKEND_GET_CLASS(b)->deliver(b, session, run);
}

static void backend_complete(UserCreatable *uc, Error **errp)
{
    HypertraceBackend *b = HYPERTRACE_BACKEND(uc);
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_GET_CLASS(b);

    if (k->setup && !k->setup(b, errp)) {
        return;
    }
    b->complete = true;
}

static bool backend_can_be_deleted(UserCreatable *uc)
{
    return !HYPERTRACE_BACKEND(uc)->users;
}

static void backend_class_init(ObjectClass *oc, HtClassData *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = backend_complete;
    ucc->can_be_deleted = backend_can_be_deleted;
}

static const TypeInfo backend_info = {
    .name = TYPE_HYPERTRACE_BACKEND,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(HypertraceBackend),
    .class_size = sizeof(HypertraceBackendClass),
    .class_init = backend_class_init,
    .abstract = true,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void backend_register_types(void)
{
    type_register_static(&backend_info);
}

type_init(backend_register_types)
