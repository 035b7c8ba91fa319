/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: run work of unknown length in a thread of its own
 *
 * A guest chooses the size of its kernel's symbols, types and event formats. If
 * the recorder's polling thread parsed them, it could not poll meanwhile, and
 * events could be lost.
 */
#ifndef HYPERTRACE_KERNEL_JOB_H
#define HYPERTRACE_KERNEL_JOB_H

#include "hypertrace/base.h"

typedef struct HtJob HtJob;

/**
 * ht_job_start() - run a function in a thread of its own
 * @name: name of the thread, up to 15 characters
 * @run: the function; it should return soon after ht_job_is_stopped() is true
 * @opaque: argument of @run; must stay valid until ht_job_is_done() is true
 *
 * If no thread can be made, ht_job_start() runs the function itself, and
 * returns after the function has returned.
 *
 * Return: the job, for ht_job_end()
 */
HtJob *ht_job_start(const char *name, void (*run)(HtJob *job, void *opaque),
                    void *opaque);

/** ht_job_is_done() - test whether the function has returned */
bool ht_job_is_done(HtJob *job);

/**
 * ht_job_stop() - request that the function returns soon, because its result is
 *                 not needed; does not wait
 */
void ht_job_stop(HtJob *job);

/**
 * ht_job_is_stopped() - test whether ht_job_stop() was called
 * @job: the job. Only the job's function may call this, while it holds no lock.
 *
 * While the job is paused, the call waits.
 */
bool ht_job_is_stopped(HtJob *job);

/**
 * ht_job_pause() - make the function wait in its next ht_job_is_stopped()
 * @job: the job
 *
 * If the result is true, the caller can fork(). A child of fork() has no other
 * threads, but copies of the locks that these held. While the function waits,
 * its thread holds no lock, not even a lock of a library.
 *
 * Return: true if the function already waits; it waits until ht_job_resume() or
 * ht_job_end(). False if it has not reached ht_job_is_stopped() since the pause
 * began, or has returned.
 */
bool ht_job_pause(HtJob *job);
void ht_job_resume(HtJob *job);

/**
 * ht_job_end() - resume the job, wait until the function has returned, and free
 *                the job
 * @job: the job or NULL
 */
void ht_job_end(HtJob *job);

#endif
