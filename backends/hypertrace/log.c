/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: events as text for people, one line each
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "hypertrace/backend.h"
#include "log-format.h"

OBJECT_DECLARE_SIMPLE_TYPE(HypertraceLog, HYPERTRACE_BACKEND_LOG)

struct HypertraceLog {
    HypertraceBackend parent_obj;

    char *path;
    FILE *file;
    bool failed;                /* reported already */
};

typedef struct LogSession {
    const char *device;
    const HtClassTable *classes;
} LogSession;

static bool log_setup(HypertraceBackend *b, Error **errp)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(b);
    int fd;

    if (log->path) {
        fd = qemu_create(log->path, O_WRONLY | O_APPEND, 0666, errp);
    } else {
        /* of its own, as stderr itself would be written byte by byte */
        fd = qemu_dup(STDERR_FILENO);
        if (fd < 0) {
            error_setg_errno(errp, errno, "cannot use standard error");
        }
    }
    if (fd < 0) {
        return false;
    }
    log->file = fdopen(fd, "a");
    if (!log->file) {
        error_setg_errno(errp, errno, "cannot write to '%s'",
                         log->path ?: "standard error");
        close(fd);
        return false;
    }
    return true;
}

static bool log_may_block(HypertraceBackend *b)
{
    return true;
}

static void *log_attach(HypertraceBackend *b, const HtDeviceInfo *info,
                        Error **errp)
{
    LogSession *s = g_new(LogSession, 1);

    s->device = info->name;
    s->classes = info->classes;
    return s;
}

static void log_detach(HypertraceBackend *b, void *session)
{
    g_free(session);
}

static void log_deliver(HypertraceBackend *b, void *session, const HtRun *run)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(b);
    LogSession *s = session;
    HtRunIter it;
    HtEvent ev;

    /* lines of different streams do not mix */
    qemu_flockfile(log->file);
    if (run->flags & (HT_RUN_OPEN | HT_RUN_CLOSE)) {
        fprintf(log->file, "%s stream %" PRIu32 " \"%s\" %s, %" PRIu64
                " events discarded\n", s->device, run->stream->index,
                run->stream->name,
                run->flags & HT_RUN_OPEN ? "opened" : "closed",
                run->discarded);
    } else {
        ht_run_iter_init(&it, run, s->classes);
        while (ht_run_next(&it, &ev)) {
            ht_log_event(log->file, s->device, run->stream, &ev);
        }
    }
    if (fflush(log->file) != 0) {
        if (!qatomic_xchg(&log->failed, true)) {
            warn_report("%s: cannot write to '%s': %s; lines are missing",
                        TYPE_HYPERTRACE_BACKEND_LOG,
                        log->path ?: "standard error", strerror(errno));
        }
        clearerr(log->file);
    }
    qemu_funlockfile(log->file);
}

static char *log_get_file(Object *obj, Error **errp)
{
    return g_strdup(HYPERTRACE_BACKEND_LOG(obj)->path);
}

static void log_set_file(Object *obj, const char *value, Error **errp)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(obj);

    if (hypertrace_backend_settable(HYPERTRACE_BACKEND(obj), errp)) {
        g_free(log->path);
        log->path = g_strdup(value);
    }
}

static void log_finalize(Object *obj)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(obj);

    if (log->file) {
        fclose(log->file);
    }
    g_free(log->path);
}

static void log_class_init(ObjectClass *oc, HtClassData *data)
{
    HypertraceBackendClass *k = HYPERTRACE_BACKEND_CLASS(oc);

    k->setup = log_setup;
    k->may_block = log_may_block;
    k->attach = log_attach;
    k->detach = log_detach;
    k->deliver = log_deliver;

    object_class_property_add_str(oc, "file", log_get_file, log_set_file);
    object_class_property_set_description(oc, "file",
        "file that lines are appended to (default: standard error)");
}

static const TypeInfo log_info = {
    .name = TYPE_HYPERTRACE_BACKEND_LOG,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .instance_size = sizeof(HypertraceLog),
    .instance_finalize = log_finalize,
    .class_init = log_class_init,
};

static void log_register_types(void)
{
    type_register_static(&log_info);
}

type_init(log_register_types)
