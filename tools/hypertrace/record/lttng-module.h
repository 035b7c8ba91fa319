/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: modules that use LTTng
 *
 * LTTng-UST starts threads in each program that is linked to it, and waits for
 * session daemons before main(). So the command loads it only with --lttng. The
 * library that controls sessions is loaded only with --net.
 */
#ifndef HYPERTRACE_LTTNG_MODULE_H
#define HYPERTRACE_LTTNG_MODULE_H

#include "hypertrace/lttng-ust-event.h"

/**
 * struct HtUstOps - hypertrace-lttng-ust.so
 * @prepare: ht_ust_events_prepare()
 * @get: ht_ust_event_get()
 * @discarded: ht_ust_discarded_get()
 * @tell: ht_ust_tell_discarded()
 * @deliver: ht_ust_deliver()
 * @timed_out: ht_ust_timed_out()
 */
typedef struct HtUstOps {
    void (*prepare)(const char *provider, HtClass *const *classes,
                    unsigned count);
    HtUstEvent *(*get)(const char *provider, const HtClass *c, char **why);
    HtUstEvent *(*discarded)(const char *provider, char **why);
    void (*tell)(const HtUstEvent *e, const HtRun *run, uint64_t *told);
    uint64_t (*deliver)(const HtRun *run, const HtClassTable *classes,
                        HtUstEvent *const *events);
    bool (*timed_out)(void);
} HtUstOps;

extern const HtUstOps ht_ust_ops;

/**
 * struct HtLttngOps - hypertrace-lttng-ctl.so
 * @begin: create and start the session @name, which records all events of the
 *         provider @name of this process and sends them to @url
 * @end: stop the session, wait until all events are sent, and destroy it; @lost
 *       is set to the number of events for which LTTng had no room
 *
 * Both return false with @error set on failure.
 */
typedef struct HtLttngOps {
    bool (*begin)(const char *name, const char *url, bool live,
                  GError **error);
    bool (*end)(const char *name, uint64_t *lost, GError **error);
} HtLttngOps;

extern const HtLttngOps ht_lttng_ops;

/**
 * ht_lttng_module() - load a module
 * @name: "ust" or "ctl"
 * @symbol: symbol in the module
 * @error: set if it cannot be loaded
 *
 * Return: the address of @symbol, for the life of the process
 */
const void *ht_lttng_module(const char *name, const char *symbol,
                            GError **error);

/**
 * ht_lttng_module_find() - whether a module is installed
 * @name: "ust" or "ctl"
 * @error: set if it is not
 */
bool ht_lttng_module_find(const char *name, GError **error);

#endif
