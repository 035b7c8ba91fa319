/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: deliver recorded events of the guest's kernel to LTTng-UST
 */
#ifndef HYPERTRACE_LIVE_H
#define HYPERTRACE_LIVE_H

#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-runs.h"
#include "lttng/lttng-sink.h"

typedef struct HtLive HtLive;

/**
 * ht_live_new() - check that LTTng's module is installed and, if @options->url
 *                 is set, create the session
 * @options: how to deliver; @options->name must outlive the result
 * @formats: formats of the kernel's events, which must outlive the result;
 *           NULL: events have no fields
 * @error: set if LTTng cannot be used or the session cannot be created
 *
 * Return: the result, for ht_live_free(); NULL on failure
 */
HtLive *ht_live_new(const HtLttngOptions *options, const HtFtFormats *formats,
                    GError **error);

/** ht_live_start() - begin to deliver events; see ht_lttng_sink_start() */
void ht_live_start(HtLive *l);

/**
 * ht_live_runs() - get the object to which the caller passes the kernel's
 *                  events; it must not be used after ht_live_end()
 */
HtFtRuns *ht_live_runs(HtLive *l);

/**
 * ht_live_end() - deliver the remaining events, and end the session
 * @l: started or not
 * @stats: filled in; @stats->why is valid until ht_live_free()
 *
 * Return: false if LTTng hangs; see ht_lttng_sink_end()
 */
bool ht_live_end(HtLive *l, HtLttngStats *stats);

/**
 * ht_live_free() - free the result of ht_live_new()
 * @l: never started, or ht_live_end() has returned true; or NULL. This does not
 *     end the session
 */
void ht_live_free(HtLive *l);

#endif
