/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: backend that writes events as lines of text
 *
 * Lines are formatted in memory and written by write(), so the backend knows
 * how many lines could not be written.  If stdio wrote the lines, QEMU could
 * not exit while a pipe blocks.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/module.h"
#include "qemu/thread.h"
#include "qemu/units.h"
#include "hypertrace/backend.h"
#include "hypertrace/log-format.h"

OBJECT_DECLARE_SIMPLE_TYPE(HypertraceLog, HYPERTRACE_BACKEND_LOG)

struct HypertraceLog {
    HypertraceBackend parent_obj;

    char *path;
    int fd;
    uint64_t dropped;           /* events whose line was not written; atomic */
    /* a failed write was reported; atomic */
    bool failed;

    QemuMutex lock;             /* protects all members below */
    FILE *lines;                /* stdio stream that writes to @text */
    char *text;
    size_t size;
    /* the last write() ended in the middle of a line */
    bool cut;
};

/* Approximate maximum size of one write to the log, in bytes */
#define TEXT_MAX (64 * KiB)

typedef struct LogSession {
    const char *device;
    const HtClassTable *classes;
} LogSession;

static bool log_setup(HypertraceBackend *b, Error **errp)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(b);

    if (log->path) {
        log->fd = qemu_create(log->path, O_WRONLY | O_APPEND, 0666, errp);
    } else {
        log->fd = qemu_dup(STDERR_FILENO);
        if (log->fd < 0) {
            error_setg_errno(errp, errno, "cannot use standard error");
        }
    }
    if (log->fd < 0) {
        return false;
    }
    log->lines = open_memstream(&log->text, &log->size);
    if (!log->lines) {
        error_setg_errno(errp, errno, "no memory for lines");
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

/*
 * Returns the number of bytes written; errno is set if this is less than @size
 */
static size_t write_text(int fd, const char *p, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = write(fd, p + done, size - done);

        if (n < 0 && errno != EINTR) {
            break;
        }
        done += MAX(n, 0);
    }
    return done;
}

/*
 * Write the formatted lines to the file; returns the number of lines that were
 * not written completely
 */
static uint64_t log_write(HypertraceLog *log)
{
    uint64_t missing = 0;
    size_t done = 0;
    const char *p;

    fflush(log->lines);
    /* If the last write() has cut a line, end that line first. */
    if (!log->cut || write_text(log->fd, "\n", 1) == 1) {
        done = write_text(log->fd, log->text, log->size);
        log->cut = done && log->text[done - 1] != '\n';
    }
    if (done < log->size) {
        if (!qatomic_xchg(&log->failed, true)) {
            warn_report("%s: cannot write to '%s': %s; lines are missing",
                        TYPE_HYPERTRACE_BACKEND_LOG,
                        log->path ?: "standard error", strerror(errno));
        }
        for (p = log->text + done; p < log->text + log->size; p++) {
            missing += *p == '\n';
        }
    }
    rewind(log->lines);
    return missing;
}

static void log_deliver(HypertraceBackend *b, void *session, const HtRun *run)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(b);
    LogSession *s = session;
    uint64_t missing = 0;
    HtRunIter it;
    HtEvent ev;

    QEMU_LOCK_GUARD(&log->lock);
    if (run->events == 0) {
        fprintf(log->lines, "%s stream %" PRIu32 " \"%s\" %s, %" PRIu64
                " events discarded\n", s->device, run->stream->index,
                run->stream->name,
                run->flags & HT_RUN_OPEN ? "opened" :
                run->flags & HT_RUN_CLOSE ? "closed" : "goes on",
                run->discarded);
        log_write(log);
        return;
    }
    ht_run_iter_init(&it, run, s->classes);
    while (ht_run_next(&it, &ev)) {
        ht_log_event(log->lines, s->device, run->stream, &ev);
        if (ftell(log->lines) >= TEXT_MAX) {
            missing += log_write(log);
        }
    }
    missing += log_write(log);
    qatomic_set(&log->dropped, log->dropped + missing);
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

static void log_get_dropped(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    uint64_t dropped = qatomic_read(&HYPERTRACE_BACKEND_LOG(obj)->dropped);

    visit_type_uint64(v, name, &dropped, errp);
}

static void log_init(Object *obj)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(obj);

    log->fd = -1;
    qemu_mutex_init(&log->lock);
}

static void log_finalize(Object *obj)
{
    HypertraceLog *log = HYPERTRACE_BACKEND_LOG(obj);

    if (log->lines) {
        fclose(log->lines);
        free(log->text);
    }
    if (log->fd >= 0) {
        close(log->fd);
    }
    qemu_mutex_destroy(&log->lock);
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
    object_class_property_add(oc, "dropped", "uint64", log_get_dropped,
                              NULL, NULL, NULL);
    object_class_property_set_description(oc, "dropped",
        "events whose lines could not be written");
}

static const TypeInfo log_info = {
    .name = TYPE_HYPERTRACE_BACKEND_LOG,
    .parent = TYPE_HYPERTRACE_BACKEND,
    .instance_size = sizeof(HypertraceLog),
    .instance_init = log_init,
    .instance_finalize = log_finalize,
    .class_init = log_class_init,
};

static void log_register_types(void)
{
    type_register_static(&log_info);
}

type_init(log_register_types)
