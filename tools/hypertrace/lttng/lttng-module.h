/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: load the modules that use LTTng
 *
 * LTTng-UST starts threads in each program that is linked to it, and waits for
 * session daemons before main(). So the command is not linked to it. Only with
 * the option --lttng or --net, the command loads the module that uses
 * LTTng-UST. Only with --net, it also loads the module that controls sessions.
 */
#ifndef HYPERTRACE_LTTNG_MODULE_H
#define HYPERTRACE_LTTNG_MODULE_H

#include "hypertrace/lttng-ust-session.h"

/* Suffix of the provider of the events of a guest's programs */
#define HT_LTTNG_PROGRAMS       "-programs"

/**
 * struct HtUstOps - functions of the module hypertrace-lttng-ust.so
 * @create: ht_ust_session_new()
 * @destroy: ht_ust_session_free()
 * @expect: ht_ust_session_expect()
 * @learn: ht_ust_session_learn()
 * @wants: ht_ust_session_wants()
 * @deliver: ht_ust_session_deliver()
 */
typedef struct HtUstOps {
    HtUstSession *(*create)(const HtUstSessionConfig *cfg);
    void (*destroy)(HtUstSession *s);
    void (*expect)(HtUstSession *s, HtClass *const *classes, unsigned count);
    char *(*learn)(HtUstSession *s, const HtClass *c);
    bool (*wants)(const HtUstSession *s, const HtClass *c, bool unknown);
    uint64_t (*deliver)(HtUstSession *s, const HtRun *run);
} HtUstOps;

extern const HtUstOps ht_ust_ops;

/**
 * struct HtLttngOps - functions of the module hypertrace-lttng-ctl.so
 * @begin: create and start a session with the name @name. It records all events
 *         of this process's providers for the guest @name, and sends the events
 *         to the relay daemon at @url; with @live, they can be read while the
 *         session runs
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
 * @error: set if the module cannot be loaded or lacks @symbol
 *
 * Return: the address of @symbol, valid for the life of the process; NULL on
 * failure
 */
const void *ht_lttng_module(const char *name, const char *symbol,
                            GError **error);

/**
 * ht_lttng_module_find() - whether a module's file exists
 * @name: "ust" or "ctl"
 * @error: set if the file does not exist
 */
bool ht_lttng_module_find(const char *name, GError **error);

#endif
