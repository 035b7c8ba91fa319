/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: deliver events to LTTng-UST, from a queue and in a thread
 *
 * A thread that posts events does not wait for LTTng. If the queue is full,
 * LTTng does not get an event, but the recording still has it.
 */
#ifndef HYPERTRACE_LTTNG_SINK_H
#define HYPERTRACE_LTTNG_SINK_H

#include "hypertrace/queue.h"
#include "lttng/lttng-module.h"

/**
 * struct HtLttngOptions - how to deliver events to LTTng
 * @name: name of the guest; characters are [A-Za-z0-9_.-]. The provider of its
 *        kernel's events has this name. The provider of its programs' events
 *        has this name followed by HT_LTTNG_PROGRAMS. NULL: do not deliver
 * @url: URL of a relay daemon: the recorder creates a session with the name
 *       @name, which sends the events there. NULL: only sessions that the user
 *       has created record the events
 * @live: with @url: clients can read the recorder's session while it runs
 */
typedef struct HtLttngOptions {
    char *name;
    const char *url;
    bool live;
} HtLttngOptions;

/**
 * struct HtLttngSinkConfig - settings
 * @provider: name of the provider; must outlive the sink
 * @classes: class table that the runs refer to; must outlive the sink
 * @streams: number of streams; HtStreamInfo.index is less
 * @run_max: maximum size of a run's events, in bytes
 * @ctl: the module that ends @session when all runs are delivered, or NULL
 * @session: with @ctl: name of the session; must outlive the sink
 */
typedef struct HtLttngSinkConfig {
    const char *provider;
    const HtClassTable *classes;
    uint32_t streams;
    size_t run_max;
    const HtLttngOps *ctl;
    const char *session;
} HtLttngSinkConfig;

/**
 * struct HtLttngStats - counts of events
 * @taken: events that at least one session had enabled, without those that the
 *         recorder's session had no room for. Other sessions may have had no
 *         room for some of them
 * @unwanted: events that no session had enabled
 * @lost: events lost because LTTng-UST could not be loaded, refused their
 *        class, hung or was too slow, or because the recorder's session had no
 *        room
 * @why: message about the last failure, or NULL; valid as long as the sink
 *       exists
 */
typedef struct HtLttngStats {
    uint64_t taken;
    uint64_t unwanted;
    uint64_t lost;
    const char *why;
} HtLttngStats;

typedef struct HtLttngSink HtLttngSink;

/**
 * ht_lttng_sink_new() - make a sink, which copies @cfg
 */
HtLttngSink *ht_lttng_sink_new(const HtLttngSinkConfig *cfg);

/**
 * ht_lttng_sink_start() - load LTTng-UST, and begin to deliver runs
 * @s: not started
 *
 * Start QEMU before this call: otherwise QEMU would inherit the descriptors and
 * the environment variables of LTTng-UST.
 */
void ht_lttng_sink_start(HtLttngSink *s);

/**
 * ht_lttng_sink_wait() - wait until LTTng-UST is loaded, or cannot be loaded
 * @s: started
 * @ms: maximum time to wait, in ms
 */
void ht_lttng_sink_wait(HtLttngSink *s, unsigned ms);

/**
 * ht_lttng_sink_post() - queue a run
 * @s: started or not; after ht_lttng_sink_end() this does nothing
 * @run: the run; its events are copied
 * @fill: the buffer into which the events are copied, for one or more streams;
 *        NULL before the first call; updated
 *
 * Context: one thread at a time for each @fill
 */
void ht_lttng_sink_post(HtLttngSink *s, const HtRun *run, HtBuffer **fill);

/**
 * ht_lttng_sink_release() - drop the caller's reference to a buffer, after the
 *                           last ht_lttng_sink_post() with it
 * @fill: the buffer, from ht_lttng_sink_post(); set to NULL
 */
void ht_lttng_sink_release(HtLttngSink *s, HtBuffer **fill);

/**
 * ht_lttng_sink_wake() - wake the sink's thread, so that it registers new
 *                        classes without waiting for their first events
 */
void ht_lttng_sink_wake(HtLttngSink *s);

/**
 * ht_lttng_sink_wants() - test whether a session of LTTng has enabled the
 *                         events of a class
 * @s: the sink
 * @c: the class
 * @unknown: the result if the class is not registered with LTTng yet, or LTTng
 *           has refused it
 *
 * Return: true if a session has enabled it, or if LTTng-UST could not be loaded
 */
bool ht_lttng_sink_wants(const HtLttngSink *s, const HtClass *c, bool unknown);

/**
 * ht_lttng_sink_end() - deliver the remaining runs, and end the session
 * @s: started or not; the posting thread has ended or calls this
 * @stats: filled in
 *
 * Return: false if LTTng hangs. The sink's thread then still runs, so the
 * caller must free neither @s nor its classes, and must end the process by
 * _exit().
 */
bool ht_lttng_sink_end(HtLttngSink *s, HtLttngStats *stats);

/**
 * ht_lttng_sink_free() - free a sink
 * @s: never started, or ht_lttng_sink_end() has returned true; or NULL
 */
void ht_lttng_sink_free(HtLttngSink *s);

/**
 * ht_lttng_summary() - print the numbers of events by ht_notice()
 * @provider: name of the provider
 * @n: the numbers
 */
void ht_lttng_summary(const char *provider, const HtLttngStats *n);

#endif
