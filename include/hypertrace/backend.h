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

/**
 * HtDeviceInfo: a device as its backends see it
 *
 * Names and classes stay for ever, the rest until attach() has returned.
 *
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
 *             Then only the session's own thread calls it.  NULL: never
 * @attach: a device begins to use the backend; BQL held.  Returns a session
 *          or NULL with @errp set
 * @detach: the last call for a session.  BQL held
 * @expect_classes: these are added next, one after the other; where that is
 *                  quicker, prepare for all of them now.  May be NULL
 * @add_class: learn a class before any run uses it; on the session's own
 *             thread, may block.  False: the session's events of that class
 *             are counted as discarded, and it is asked again when there are
 *             more, once a second at most.  NULL: nothing to learn
 * @wants: whether events of a class are of any use now.  BQL held; also while
 *         the session's thread is in another call, and for a class whose
 *         add_class() failed.  May not block.  NULL: all are, always
 * @deliver: take a run; on the session's own thread, or, if it cannot block,
 *           on one that has the run
 *
 * A session is called by one thread at a time, without the BQL unless it says
 * so; what sessions share has a lock of its own.
 */
struct HypertraceBackendClass {
    ObjectClass parent_class;

    bool (*setup)(HypertraceBackend *b, Error **errp);
    bool (*may_block)(HypertraceBackend *b);
    void *(*attach)(HypertraceBackend *b, const HtDeviceInfo *info,
                    Error **errp);
    void (*detach)(HypertraceBackend *b, void *session);
    void (*expect_classes)(HypertraceBackend *b, void *session,
                           HtClass *const *classes, unsigned count);
    bool (*add_class)(HypertraceBackend *b, void *session, const HtClass *c,
                      Error **errp);
    bool (*wants)(HypertraceBackend *b, void *session, const HtClass *c);
    void (*deliver)(HypertraceBackend *b, void *session, const HtRun *run);
};

/**
 * hypertrace_backend_settable: whether a property may be set still
 * @b: a backend
 *
 * For the property setters of backends.
 */
bool hypertrace_backend_settable(HypertraceBackend *b, Error **errp);

bool hypertrace_backend_may_block(HypertraceBackend *b);
void *hypertrace_backend_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                                Error **errp);
void hypertrace_backend_detach(HypertraceBackend *b, void *session);

/* So many classes at most are expected at a time. */
#define HYPERTRACE_EXPECT_MAX 64

void hypertrace_backend_expect_classes(HypertraceBackend *b, void *session,
                                       HtClass *const *classes,
                                       unsigned count);
bool hypertrace_backend_add_class(HypertraceBackend *b, void *session,
                                  const HtClass *c, Error **errp);
bool hypertrace_backend_wants(HypertraceBackend *b, void *session,
                              const HtClass *c);
/* Whether that may be false */
bool hypertrace_backend_chooses(HypertraceBackend *b);
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
