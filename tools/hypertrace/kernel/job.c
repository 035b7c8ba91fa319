/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "kernel/job.h"

struct HtJob {
    /* NULL: no thread could be made, so ht_job_start() has run the function */
    GThread *thread;
    void (*run)(HtJob *job, void *opaque);
    void *opaque;
    /* the function has returned; accessed by g_atomic_int_*() only */
    int done;
    GMutex lock;                /* protects the members that follow */
    GCond changed;
    bool stopped;
    bool paused;
    /* the function waits in ht_job_is_stopped() until @paused is false */
    bool waits;
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

    g_mutex_init(&job->lock);
    g_cond_init(&job->changed);
    job->run = function;
    job->opaque = opaque;
    job->thread = g_thread_try_new(name, run, job, NULL);
    if (!job->thread) {
        /*
         * This can fail if the user already has the maximum number of threads.
         * Run the function here instead.
         */
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
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&job->lock);

    job->stopped = true;
}

bool ht_job_pause(HtJob *job)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&job->lock);

    job->paused = true;
    return job->waits;
}

void ht_job_resume(HtJob *job)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&job->lock);

    job->paused = false;
    g_cond_signal(&job->changed);
}

bool ht_job_is_stopped(HtJob *job)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&job->lock);

    while (job->paused) {
        job->waits = true;
        g_cond_wait(&job->changed, &job->lock);
    }
    job->waits = false;
    return job->stopped;
}

void ht_job_end(HtJob *job)
{
    if (job) {
        ht_job_resume(job);
        g_clear_pointer(&job->thread, g_thread_join);
        g_mutex_clear(&job->lock);
        g_cond_clear(&job->changed);
        g_free(job);
    }
}
