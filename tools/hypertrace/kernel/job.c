/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "kernel/job.h"

struct HtJob {
    GThread *thread;            /* NULL: the function has returned */
    void (*run)(HtJob *job, void *opaque);
    void *opaque;
    /* The threads share only these; g_atomic_int_*() orders other accesses. */
    int done;
    int stopped;
};

static void *run(void *opaque)
{
    HtJob *job = opaque;

    job->run(job, job->opaque);
    g_atomic_int_set(&job->done, true);
    return NULL;
}

HtJob *ht_job_start(const char *name, void (*function)(HtJob *, void *),
                    void *opaque)
{
    HtJob *job = g_new0(HtJob, 1);

    job->run = function;
    job->opaque = opaque;
    job->thread = g_thread_try_new(name, run, job, NULL);
    if (!job->thread) {
        /* The user may have no more threads. */
        run(job);
    }
    return job;
}

bool ht_job_is_done(HtJob *job)
{
    return g_atomic_int_get(&job->done);
}

void ht_job_stop(HtJob *job)
{
    g_atomic_int_set(&job->stopped, true);
}

bool ht_job_is_stopped(HtJob *job)
{
    return g_atomic_int_get(&job->stopped);
}

void ht_job_end(HtJob *job)
{
    if (job) {
        g_clear_pointer(&job->thread, g_thread_join);
        g_free(job);
    }
}
