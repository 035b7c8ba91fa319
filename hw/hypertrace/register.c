/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: telling the backends of event classes
 *
 * A backend may need a round trip to another process for a class (LTTng: tens
 * of microseconds, without bound if its session daemon hangs).  So that part
 * runs on a worker thread, a class at a time; the guest sees BUSY meanwhile.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "block/thread-pool.h"
#include "device.h"
#include "trace.h"

typedef struct ClassJob {
    HypertraceDevice *dev;
    Object *proxy;              /* whose memory the device lies in */
    HtClass *cls;
    Error *err;
} ClassJob;

static void start_next(HypertraceDevice *dev);

/* Context: worker thread, no BQL */
static int class_job(void *opaque)
{
    ClassJob *job = opaque;
    HypertraceDevice *dev = job->dev;
    unsigned i;

    for (i = 0; i < dev->nr_sinks && !job->err; i++) {
        HtSink *sink = &dev->sinks[i];

        hypertrace_backend_add_class(sink->backend, sink->session, job->cls,
                                     &job->err);
    }
    return 0;
}

/* Context: main loop, BQL */
static void class_job_done(void *opaque, int ret)
{
    ClassJob *job = opaque;
    HypertraceDevice *dev = job->dev;
    HtTrace *trace = dev->trace;
    bool failed = job->err;

    trace_hypertrace_class(trace->name, job->cls->id, job->cls->name, !failed);
    if (failed && ht_limit(&dev->log_refused, HT_LOG_LINES)) {
        error_reportf_err(job->err, "hypertrace %s: event class %s: ",
                          trace->name, job->cls->name);
    } else {
        error_free(job->err);
    }
    dev->job_running = false;
    if (dev->unrealized) {
        /*
         * The device waited for this with giving its backends back.  The class
         * is no longer its own: another device may have begun with it.
         */
        hypertrace_device_unused(dev);
    } else {
        ht_class_table_set_state(trace->classes, job->cls,
                                 failed ? HT_CLASS_FAILED : HT_CLASS_READY);
        start_next(dev);
        ht_migration_resume(dev);
    }
    object_unref(OBJECT(dev));
    /* unplugged, the device has no parent any more */
    object_unref(job->proxy);
    g_free(job);
}

static void start_next(HypertraceDevice *dev)
{
    ClassJob *job;

    if (dev->job_running || g_queue_is_empty(&dev->jobs)) {
        return;
    }
    job = g_new0(ClassJob, 1);
    job->dev = dev;
    job->cls = g_queue_pop_head(&dev->jobs);
    job->proxy = OBJECT(dev)->parent;
    object_ref(job->proxy);
    object_ref(OBJECT(dev));
    dev->job_running = true;
    dev->job_class = job->cls;
    thread_pool_submit_aio(class_job, job, class_job_done, job);
}

static void enqueue(HypertraceDevice *dev, HtClass *c)
{
    if (!(dev->job_running && dev->job_class == c) &&
        !g_queue_find(&dev->jobs, c)) {
        g_queue_push_tail(&dev->jobs, c);
        start_next(dev);
    }
}

enum ht_status ht_register_class(HypertraceDevice *dev,
                                 struct ht_msg_class *m, size_t size)
{
    HtClassTable *t = dev->trace->classes;
    enum ht_status status;
    HtClass *c;
    bool added;

    status = ht_class_table_add(t, m, size, &added, &c);
    if (status != HT_STATUS_OK) {
        return status;
    }
    stl_le_p(&m->id, c->id);
    switch (ht_class_get_state(c)) {
    case HT_CLASS_READY:
        return HT_STATUS_OK;
    case HT_CLASS_FAILED:
        /* told once; whoever registers again lets the backends try again */
        if (ht_limit(&dev->retries, HT_CLASS_RETRIES)) {
            ht_class_table_set_state(t, c, HT_CLASS_BUSY);
        } else {
            ht_guest_error(dev, "event class %s: the backend refused it, and is"
                           " asked %d times a second at most", c->name,
                           HT_CLASS_RETRIES);
        }
        return HT_STATUS_IO;
    case HT_CLASS_BUSY:
        break;
    }
    enqueue(dev, c);
    return HT_STATUS_BUSY;
}

void ht_register_again(HypertraceDevice *dev)
{
    HtClassTable *t = dev->trace->classes;
    uint32_t id;

    for (id = 1; id <= ht_class_table_count(t); id++) {
        HtClass *c = ht_class_table_get(t, id);

        ht_class_table_set_state(t, c, HT_CLASS_BUSY);
        enqueue(dev, c);
    }
}

void ht_register_new(HypertraceDevice *dev)
{
    HtClassTable *t = dev->trace->classes;
    uint32_t id;

    for (id = 1; id <= ht_class_table_count(t); id++) {
        HtClass *c = ht_class_table_get(t, id);

        if (ht_class_get_state(c) == HT_CLASS_BUSY) {
            enqueue(dev, c);
        }
    }
}

bool ht_register_pending(HypertraceDevice *dev)
{
    return dev->job_running || !g_queue_is_empty(&dev->jobs);
}
