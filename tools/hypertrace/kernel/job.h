/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: work of unknown length, in a thread of its own
 *
 * A guest chooses the size of its kernel's symbols, types and event formats. A
 * recorder that parses them between two polls would lose events meanwhile.
 */
#ifndef HYPERTRACE_KERNEL_JOB_H
#define HYPERTRACE_KERNEL_JOB_H

#include "hypertrace/base.h"

typedef struct HtJob HtJob;

/**
 * ht_job_start() - run a function in a thread of its own
 * @name: up to 15 characters
 * @run: the function; it should return soon after ht_job_is_stopped() is true
 * @opaque: its argument, which belongs to the thread until ht_job_is_done()
 *
 * If no thread can be made, the function runs before this returns.
 *
 * Return: the job, for ht_job_end()
 */
HtJob *ht_job_start(const char *name, void (*run)(HtJob *job, void *opaque),
                    void *opaque);

/** ht_job_is_done() - test whether the function has returned */
bool ht_job_is_done(HtJob *job);

/** ht_job_stop() - tell the function that its result is not needed */
void ht_job_stop(HtJob *job);

/**
 * ht_job_is_stopped() - test whether ht_job_stop() was called
 * @job: the job, whose function calls this and holds no lock
 *
 * Waits as long as the job is paused.
 */
bool ht_job_is_stopped(HtJob *job);

/**
 * ht_job_pause() - let the function wait when it calls ht_job_is_stopped()
 * @job: the job
 *
 * A child of fork() has no threads, but copies of the locks that they hold. If
 * the function waits, its thread holds none, also none of a library.
 *
 * Return: true if the function waits now, until ht_job_resume() or ht_job_end()
 */
bool ht_job_pause(HtJob *job);
void ht_job_resume(HtJob *job);

/**
 * ht_job_end() - wait until the function has returned, and free the job
 * @job: the job or NULL
 */
void ht_job_end(HtJob *job);

#endif
