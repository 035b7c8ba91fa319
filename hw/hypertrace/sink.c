/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the backends of this QEMU, and deliver runs to them
 *
 * host-lib has the queues, threads and budgets (hypertrace/dispatch.h).
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qom/object_interfaces.h"
#include "system/system.h"
#include "drain.h"
#include "sink.h"
#include "trace.h"

#define DEFAULT_BACKEND "default-backend"

/* Maximum wait for backends when a device is unplugged or QEMU exits, in ms */
#define END_MS 5000

/*
 * Make the backend of a device without the property backend=: LTTng, or, if
 * this QEMU has no LTTng backend, the null backend.  Look for the type first,
 * because object_new() would end QEMU if the type is missing.
 */
static HypertraceBackend *default_backend(Object *owner, const char *name,
                                          Error **errp)
{
    const char *type = TYPE_HYPERTRACE_BACKEND_LTTNG;
    Object *obj;

    if (!module_object_class_by_name(type)) {
        type = TYPE_HYPERTRACE_BACKEND_NULL;
        warn_report("hypertrace: this QEMU has no LTTng backend: events of '%s'"
                    " are counted, not recorded; use backend=ID",
                    name);
    }
    obj = object_new(type);
    if (!user_creatable_complete(USER_CREATABLE(obj), errp)) {
        object_unref(obj);
        return NULL;
    }
    object_property_add_child(owner, DEFAULT_BACKEND, obj);
    object_unref(obj);
    return HYPERTRACE_BACKEND(obj);
}

void ht_backends_drop(Object *owner)
{
    Object *obj = object_resolve_path_component(owner, DEFAULT_BACKEND);

    if (obj) {
        object_unparent(obj);
    }
}

GPtrArray *ht_backends_find(Object *owner, const char *name,
                            const char *ids, Error **errp)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_auto(GStrv) id = NULL;
    unsigned i;

    if (!ids) {
        HypertraceBackend *b = default_backend(owner, name, errp);

        if (!b) {
            return NULL;
        }
        g_ptr_array_add(found, b);
        return g_steal_pointer(&found);
    }
    id = g_strsplit(ids, ":", -1);
    for (i = 0; id[i]; i++) {
        Object *obj = object_resolve_path_component(object_get_objects_root(),
                                                    id[i]);

        if (!object_dynamic_cast(obj, TYPE_HYPERTRACE_BACKEND)) {
            error_setg(errp, "backend=%s: there is no hypertrace backend '%s'",
                       ids, id[i]);
            return NULL;
        }
        if (g_ptr_array_find(found, obj, NULL)) {
            error_setg(errp, "backend=%s: '%s' is there twice", ids, id[i]);
            return NULL;
        }
        g_ptr_array_add(found, obj);
    }
    if (found->len < 1 || found->len > HT_QUEUES_MAX) {
        error_setg(errp, "backend=%s names %u backends; 1 to %u are possible",
                   ids, found->len, HT_QUEUES_MAX);
        return NULL;
    }
    return g_steal_pointer(&found);
}

typedef struct HtBackendSession {
    HypertraceBackend *backend;
    void *opaque;               /* the backend's own data of the session */
    const char *trace;          /* name of the trace; never freed */
    char *id;
    HtSinkOps ops;              /* @wants: NULL if all classes are wanted */
} HtBackendSession;

struct HtSinks {
    HtDispatch *d;
    const char *name;           /* name of the trace; never freed */
    Notifier exit;
};

static void session_expect(void *session, HtClass *const *classes,
                           unsigned count)
{
    HtBackendSession *s = session;

    hypertrace_backend_expect_classes(s->backend, s->opaque, classes, count);
}

static char *session_learn(void *session, const HtClass *c)
{
    HtBackendSession *s = session;
    Error *err = NULL;
    bool ok = hypertrace_backend_add_class(s->backend, s->opaque, c, &err);
    char *why = ok ? NULL : g_strdup(error_get_pretty(err));

    trace_hypertrace_class(s->trace, c->id, c->name, ok);
    error_free(err);
    return why;
}

static bool session_wants(void *session, const HtClass *c)
{
    HtBackendSession *s = session;

    return hypertrace_backend_wants(s->backend, s->opaque, c);
}

static void session_deliver(void *session, const HtRun *run)
{
    HtBackendSession *s = session;

    trace_hypertrace_deliver(s->trace, s->id, run->stream->index, run->events,
                             run->discarded);
    hypertrace_backend_deliver(s->backend, s->opaque, run);
}

/* HtSinkOps.gone.  Context: BQL */
static void session_gone(void *session)
{
    HtBackendSession *s = session;

    hypertrace_backend_detach(s->backend, s->opaque);
    object_unref(OBJECT(s->backend));
    g_free(s->id);
    g_free(s);
}

/* HtDispatchConfig.report.  Context: a sink's thread */
static void report(const char *name, const char *id, const char *text)
{
    error_report("hypertrace %s: backend '%s': %s", name, id, text);
}

/*
 * HtDispatchConfig.later: call a function in the main loop.  Context: a sink's
 * thread
 */
static void later(void (*fn)(void *arg), void *arg)
{
    aio_bh_schedule_oneshot(qemu_get_aio_context(), fn, arg);
}

static int64_t end_ns(void)
{
    return get_clock() + END_MS * (int64_t)SCALE_MS;
}

/*
 * When QEMU exits, it does not unrealize devices: wait here until the backends
 * have taken all events.  One time limit applies to all devices together,
 * however many backends hang.
 */
static void sinks_exit(Notifier *n, void *data)
{
    HtSinks *k = container_of(n, HtSinks, exit);
    static int64_t end;

    if (!end) {
        end = end_ns();
    }
    if (!ht_dispatch_wait_idle(k->d, end)) {
        warn_report("hypertrace %s: QEMU ends while a backend hangs:"
                    " the backend does not record its last events", k->name);
    }
}

static bool attach(HtSinkConfig *cfg, HypertraceBackend *b,
                   const HtDeviceInfo *info, Error **errp)
{
    void *opaque = hypertrace_backend_attach(b, info, errp);
    HtBackendSession *s;

    if (!opaque) {
        return false;
    }
    s = g_new(HtBackendSession, 1);
    *s = (HtBackendSession) {
        .backend = b,
        .opaque = opaque,
        .trace = info->name,
        .id = g_strdup(object_get_canonical_path_component(OBJECT(b))),
        .ops = {
            .expect = session_expect,
            .learn = session_learn,
            .wants = hypertrace_backend_chooses(b) ? session_wants : NULL,
            .deliver = session_deliver,
            .gone = session_gone,
        },
    };
    object_ref(OBJECT(b));
    *cfg = (HtSinkConfig) {
        .ops = &s->ops,
        .session = s,
        .id = s->id,
        .may_block = hypertrace_backend_may_block(b),
    };
    return true;
}

HtSinks *ht_sinks_new(const HtDeviceInfo *info, GPtrArray *backends,
                      size_t budget, size_t packet,
                      void (*room)(void *opaque), void *opaque, Error **errp)
{
    HtDispatchConfig cfg = {
        .name = info->name,
        .classes = info->classes,
        .streams = info->streams,
        .budget = budget,
        .buffer = packet,
        .room = room,
        .progress = ht_drain_progress,
        .report = report,
        .later = later,
        .opaque = opaque,
    };
    HtSinkConfig sinks[HT_QUEUES_MAX];
    HtSinks *k;
    unsigned i;

    assert(backends->len <= HT_QUEUES_MAX);
    for (i = 0; i < backends->len; i++) {
        if (!attach(&sinks[i], backends->pdata[i], info, errp)) {
            while (i--) {
                session_gone(sinks[i].session);
            }
            return NULL;
        }
    }
    k = g_new0(HtSinks, 1);
    k->name = info->name;
    k->d = ht_dispatch_new(&cfg, sinks, backends->len);
    ht_dispatch_start(k->d);
    k->exit.notify = sinks_exit;
    qemu_add_exit_notifier(&k->exit);
    return k;
}

void ht_sinks_free(HtSinks *k)
{
    const char *hangs;

    ht_drain_end(k->d);
    qemu_remove_exit_notifier(&k->exit);
    hangs = ht_dispatch_end(k->d, end_ns());
    if (hangs) {
        warn_report("hypertrace %s: unplugged while backend '%s' hangs:"
                    " the backend records the rest when it continues",
                    k->name, hangs);
    }
    ht_dispatch_free(k->d);
    g_free(k);
}

HtDispatch *ht_sinks_dispatch(HtSinks *k)
{
    return k->d;
}
