/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: interface of the host backends, which write the events to a
 * tracer or a file, or only count them
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
 * The strings and the classes are never freed.  The structure itself is valid
 * only until attach() returns.
 *
 * @name: name of the device, unique in this QEMU, [A-Za-z0-9_.-]+
 * @vm_name: name of the VM (option -name); "vm" if it has none
 * @channel: "hypercall", "shm" or "virtio"
 * @classes: class table with all classes that a run may use
 * @streams: number of streams; each HtStreamInfo.index is below this number
 * @clock_bound_ns: function that returns the present error bound of the
 *                  conversion from guest to host time, in ns; UINT64_MAX if it
 *                  is not known.  Call it only while the device exists
 * @opaque: argument for @clock_bound_ns
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
    unsigned users;             /* sessions attached (BQL) */
};

/**
 * HypertraceBackendClass:
 * @setup: Check the properties, and open the files that they name.  Called
 *         once, when the object is created, with the BQL held.  May be NULL
 * @may_block: Return whether deliver() can sleep (file I/O, a blocking tracer).
 *             If so, only the session's own thread calls deliver().  NULL:
 *             deliver() never sleeps
 * @attach: Create the session of a device that begins to use the backend.  BQL
 *          held.  Returns NULL with @errp set on failure
 * @detach: Free a session.  BQL held, and no other call follows
 * @expect_classes: Prepare for classes that add_class() registers next, if
 *                  that is faster than one at a time.  May be NULL
 * @add_class: Register a class before any run uses it.  Called on the
 *             session's own thread; may block.  If it returns false with @errp
 *             set, the session's events of that class are counted as
 *             discarded, and the call is repeated, at most once a second, while
 *             such events arrive.  NULL: the backend needs no registration
 * @wants: Return whether events of a class are of use now.  BQL held; must not
 *         block.  May run while the session's thread is in another call, and
 *         for a class that add_class() refused.  NULL: all classes are wanted
 * @deliver: Take a run.  Called on the session's own thread; if the backend
 *           cannot block, the thread that posts the run may call it, with or
 *           without the BQL
 *
 * Only one thread at a time calls the functions of one session, except wants().
 * Functions are called without the BQL unless stated above.  Sessions of a
 * backend may run at the same time, so state that they share needs a lock.
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
 * hypertrace_backend_settable: Test whether a property can still be set
 * @b: a backend
 * @errp: set if the backend is complete
 *
 * Property setters of backends call this.
 *
 * Returns: false if the backend is complete, that is after its object was
 * created
 */
bool hypertrace_backend_settable(HypertraceBackend *b, Error **errp);

bool hypertrace_backend_may_block(HypertraceBackend *b);
void *hypertrace_backend_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                                Error **errp);
void hypertrace_backend_detach(HypertraceBackend *b, void *session);

/* Maximum number of classes in one call of expect_classes() */
#define HYPERTRACE_EXPECT_MAX 64

void hypertrace_backend_expect_classes(HypertraceBackend *b, void *session,
                                       HtClass *const *classes,
                                       unsigned count);
bool hypertrace_backend_add_class(HypertraceBackend *b, void *session,
                                  const HtClass *c, Error **errp);
bool hypertrace_backend_wants(HypertraceBackend *b, void *session,
                              const HtClass *c);
/* Return false if @b always wants all classes, because it has no wants() */
bool hypertrace_backend_chooses(HypertraceBackend *b);
void hypertrace_backend_deliver(HypertraceBackend *b, void *session,
                                const HtRun *run);

#endif /* HYPERTRACE_BACKEND_H */
