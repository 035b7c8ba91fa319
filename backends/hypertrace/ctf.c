/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: backend that writes CTF traces (Common Trace Format)
 *
 * Each attach of a device begins a trace, in a subdirectory of the backend's
 * directory.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "qemu/uuid.h"
#include "qemu/module.h"
#include "system/system.h"
#include "hypertrace/backend.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/guest-clock.h"

OBJECT_DECLARE_SIMPLE_TYPE(HypertraceCtf, HYPERTRACE_BACKEND_CTF)

struct HypertraceCtf {
    HypertraceBackend parent_obj;

    char *dir;
    /* file descriptor of the directory @dir; -1 before setup */
    int dirfd;
    bool lttng;
    /* a failed write was reported; atomic */
    bool failed;
    /* number of events that detached sessions have dropped; BQL */
    uint64_t dropped;
    GPtrArray *writers;         /* HtCtfWriter of each attached session; BQL */
};

/*
 * Return CLOCK_REALTIME minus CLOCK_MONOTONIC.  All devices of this QEMU use
 * the offset that was measured first: an adjustment of the wall clock must not
 * change the order of events across devices.
 */
static int64_t clock_offset_ns(void)
{
    static bool known;
    static int64_t offset;

    if (!known) {
        offset = ht_wall_offset();
        known = true;
    }
    return offset;
}

/* Get the id of the guest's clock, which all devices of a VM share */
static void clock_uuid(uint8_t uuid[16])
{
    static QemuUUID own;

    if (qemu_uuid_set) {
        memcpy(uuid, qemu_uuid.data, 16);
        return;
    }
    if (qemu_uuid_is_null(&own)) {
        qemu_uuid_generate(&own);
    }
    memcpy(uuid, own.data, 16);
}

static bool ctf_setup(HypertraceBackend *b, Error **errp)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(b);
    g_autoptr(GDir) d = NULL;
    g_autoptr(GError) err = NULL;

    if (!ctf->dir || !ctf->dir[0]) {
        error_setg(errp, "property 'dir' is missing: the directory for the"
                   " traces");
        return false;
    }
    if (g_mkdir_with_parents(ctf->dir, 0777) < 0) {
        error_setg_errno(errp, errno, "cannot create directory '%s'",
                         ctf->dir);
        return false;
    }
    d = g_dir_open(ctf->dir, 0, &err);
    if (!d) {
        error_setg(errp, "%s", err->message);
        return false;
    }
    if (g_dir_read_name(d)) {
        error_setg(errp, "directory '%s' is not empty", ctf->dir);
        error_append_hint(errp, "Traces are never overwritten or mixed:"
                          " move the old one, or choose another directory.\n");
        return false;
    }
    if (access(ctf->dir, W_OK | X_OK) < 0) {
        error_setg_errno(errp, errno, "cannot write to directory '%s'",
                         ctf->dir);
        return false;
    }
    /*
     * Keep the directory open: -run-with chroot may hide the directory's path.
     */
    ctf->dirfd = qemu_open(ctf->dir, O_RDONLY | O_DIRECTORY, errp);
    return ctf->dirfd >= 0;
}

static bool ctf_may_block(HypertraceBackend *b)
{
    return true;
}

static void *ctf_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                        Error **errp)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(b);
    g_autofree char *boot = ht_host_boot();
    HtCtfInfo trace = {
        .host_boot = boot,
        .vm_name = info->vm_name,
        .device = info->name,
        .channel = info->channel,
        .clock_offset_ns = clock_offset_ns(),
        .lttng = ctf->lttng,
    };
    HtCtfWriter *w;
    QemuUUID uuid;
    int ret;

    if (info->clock_bound_ns) {
        trace.precision_ns = info->clock_bound_ns(info->opaque);
        if (trace.precision_ns == UINT64_MAX) {
            trace.precision_ns = 0;
        }
    }
    /*
     * Each trace gets its own UUID, also if a device is attached again: readers
     * take traces with the same UUID for parts of one trace.
     */
    qemu_uuid_generate(&uuid);
    memcpy(trace.uuid, uuid.data, sizeof(trace.uuid));
    clock_uuid(trace.clock_uuid);

    ret = ht_ctf_writer_new_at(ctf->dirfd, ctf->dir, info->name, &trace,
                               info->streams, &w);
    if (ret) {
        error_setg_errno(errp, -ret, "cannot create a trace for '%s' in '%s'",
                         info->name, ctf->dir);
        return NULL;
    }
    g_ptr_array_add(ctf->writers, w);
    return w;
}

static void ctf_detach(HypertraceBackend *b, void *session)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(b);
    HtCtfWriter *w = session;
    uint64_t dropped = ht_ctf_writer_dropped(w);

    if (dropped) {
        warn_report("%s: %" PRIu64 " events could not be written to '%s'",
                    TYPE_HYPERTRACE_BACKEND_CTF, dropped,
                    ht_ctf_writer_path(w));
    }
    ctf->dropped += dropped;
    g_ptr_array_remove(ctf->writers, w);
    ht_ctf_writer_free(w);
}

static bool ctf_add_class(HypertraceBackend *b, void *session,
                          const HtClass *c, Error **errp)
{
    int ret = ht_ctf_writer_class(session, c);

    if (ret) {
        error_setg_errno(errp, -ret, "cannot write '%s/metadata'",
                         ht_ctf_writer_path(session));
        return false;
    }
    return true;
}

static void ctf_deliver(HypertraceBackend *b, void *session, const HtRun *run)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(b);
    int ret = ht_ctf_writer_run(session, run);

    if (ret && !qatomic_xchg(&ctf->failed, true)) {
        warn_report("%s: cannot write to '%s': %s; events are discarded"
                    " while this lasts", TYPE_HYPERTRACE_BACKEND_CTF,
                    ht_ctf_writer_path(session), strerror(-ret));
    }
}

static char *ctf_get_dir(Object *obj, Error **errp)
{
    return g_strdup(HYPERTRACE_BACKEND_CTF(obj)->dir);
}

static void ctf_set_dir(Object *obj, const char *value, Error **errp)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(obj);

    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        g_free(ctf->dir);
        ctf->dir = g_strdup(value);
    }
}

static bool ctf_get_lttng(Object *obj, Error **errp)
{
    return HYPERTRACE_BACKEND_CTF(obj)->lttng;
}

static void ctf_set_lttng(Object *obj, bool value, Error **errp)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(obj);

    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        ctf->lttng = value;
    }
}

static void ctf_get_dropped(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(obj);
    uint64_t dropped = ctf->dropped;
    unsigned i;

    for (i = 0; i < ctf->writers->len; i++) {
        dropped += ht_ctf_writer_dropped(ctf->writers->pdata[i]);
    }
    visit_type_uint64(v, name, &dropped, errp);
}

static void ctf_init(Object *obj)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(obj);

    ctf->dirfd = -1;
    ctf->writers = g_ptr_array_new();
}

static void ctf_finalize(Object *obj)
{
    HypertraceCtf *ctf = HYPERTRACE_BACKEND_CTF(obj);

    g_ptr_array_unref(ctf->writers);
    if (ctf->dirfd >= 0) {
        close(ctf->dirfd);
    }
    g_free(ctf->dir);
}

static void ctf_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->setup = ctf_setup;
    k->may_block = ctf_may_block;
    k->attach = ctf_attach;
    k->detach = ctf_detach;
    k->add_class = ctf_add_class;
    k->deliver = ctf_deliver;

    object_class_property_add_str(oc, "dir", ctf_get_dir, ctf_set_dir);
    object_class_property_set_description(oc, "dir",
        "directory for the traces, one for each device; new or empty");
    object_class_property_add_bool(oc, "lttng-kernel", ctf_get_lttng,
                                   ctf_set_lttng);
    object_class_property_set_description(oc, "lttng-kernel",
        "whether Linux' events are called as LTTng's kernel tracer does, which"
        " is what Trace Compass looks for");
    object_class_property_add(oc, "dropped", "uint64", ctf_get_dropped,
                              NULL, NULL, NULL);
    object_class_property_set_description(oc, "dropped",
        "events that could not be written");
}

static const TypeInfo ctf_info = {
    .name = TYPE_HYPERTRACE_BACKEND_CTF,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .instance_size = sizeof(HypertraceCtf),
    .instance_init = ctf_init,
    .instance_finalize = ctf_finalize,
    .class_init = ctf_class_init,
};

static void ctf_register_types(void)
{
    type_register_static(&ctf_info);
}

type_init(ctf_register_types)
