/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: host backends, the objects that take events somewhere
 */
#ifndef HYPERTRACE_BACKEND_H
#define HYPERTRACE_BACKEND_H

#include "qom/object.h"
#include "hypertrace/compat.h"
#include "hypertrace/run.h"

#define TYPE_HYPERTRACE_BACKEND "hypertrace-backend"
OBJECT_DECLARE_TYPE(HypertraceBackend, HypertraceBackendClass,
                    HYPERTRACE_BACKEND)

#define TYPE_HYPERTRACE_BACKEND_LTTNG TYPE_HYPERTRACE_BACKEND "-lttng"
#define TYPE_HYPERTRACE_BACKEND_CTF   TYPE_HYPERTRACE_BACKEND "-ctf"
#define TYPE_HYPERTRACE_BACKEND_NULL  TYPE_HYPERTRACE_BACKEND "-null"
#define TYPE_HYPERTRACE_BACKEND_LOG   TYPE_HYPERTRACE_BACKEND "-log"
#define TYPE_HYPERTRACE_BACKEND_TEE   TYPE_HYPERTRACE_BACKEND "-tee"

/**
 * HtDeviceInfo: a device as its backends see it; valid until detach
 * @name: unique in this QEMU, [A-Za-z0-9_.-]+
 * @vm_name: -name of the VM or "vm"
 * @channel: "hypercall", "shm", "virtio"
 * @classes: all classes a run may use
 * @streams: number of streams; HtStreamInfo.index is below it
 * @clock_bound_ns: returns the present error bound of the time conversion;
 *                  any thread
 */
typedef struct HtDeviceInfo {
    const char *name;
    const char *vm_name;
    const char *channel;
    const HtClassTable *classes;
    uint32_t streams;
    uint64_t (*clock_bound_ns)(void *opaque);
    void *opaque;
} HtDeviceInfo;

struct HypertraceBackend {
    Object parent_obj;

    /*< protected >*/
    bool complete;
    unsigned users;             /* devices attached; BQL */
};

/**
 * HypertraceBackendClass:
 * @setup: check the properties; called once, BQL held
 * @may_block: whether deliver() can sleep (file I/O, a blocking tracer).
 *             A device whose consumer is a vCPU then delivers from its
 *             IOThread.  NULL: never
 * @leaves: append the backends that really deliver to @out.  NULL: itself
 * @attach: a device begins to use the backend; BQL held.  Returns a session
 *          or NULL with @errp set
 * @detach: the last call for a session; all its streams are closed.  BQL held
 * @add_class: learn a class before any run uses it.  Called on a worker
 *             thread without the BQL; may block.  NULL: nothing to learn
 * @deliver: take a run.  One thread at a time for a stream, several for
 *           different streams; no BQL taken; no allocation but for
 *           HT_RUN_OPEN and HT_RUN_CLOSE
 */
struct HypertraceBackendClass {
    ObjectClass parent_class;

    bool (*setup)(HypertraceBackend *b, Error **errp);
    bool (*may_block)(HypertraceBackend *b);
    void (*leaves)(HypertraceBackend *b, GPtrArray *out);
    void *(*attach)(HypertraceBackend *b, const HtDeviceInfo *info,
                    Error **errp);
    void (*detach)(HypertraceBackend *b, void *session);
    bool (*add_class)(HypertraceBackend *b, void *session, const HtClass *c,
                      Error **errp);
    void (*deliver)(HypertraceBackend *b, void *session, const HtRun *run);
};

/**
 * hypertrace_backend_settable: whether a property may be set still
 * @b: a backend
 *
 * For the property setters of backends.
 */
bool hypertrace_backend_settable(HypertraceBackend *b, Error **errp);

/**
 * hypertrace_backend_leaves: the backends behind @b that deliver
 * @b: a backend
 *
 * Returns: an array of HypertraceBackend * without duplicates; to be freed
 *
 * Context: BQL held
 */
GPtrArray *hypertrace_backend_leaves(HypertraceBackend *b);

bool hypertrace_backend_may_block(HypertraceBackend *b);
void *hypertrace_backend_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                                Error **errp);
void hypertrace_backend_detach(HypertraceBackend *b, void *session);
bool hypertrace_backend_add_class(HypertraceBackend *b, void *session,
                                  const HtClass *c, Error **errp);
void hypertrace_backend_deliver(HypertraceBackend *b, void *session,
                                const HtRun *run);

/**
 * hypertrace_wall_offset: what dates an event of CLOCK_MONOTONIC
 *
 * Returns: CLOCK_REALTIME - CLOCK_MONOTONIC in ns, by the narrowest of eight
 * readings
 *
 * Context: any thread
 */
int64_t hypertrace_wall_offset(void);

#endif /* HYPERTRACE_BACKEND_H */
