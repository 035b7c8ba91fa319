/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: create and end a session of LTTng, in a shared object that
 * is loaded with dlopen()
 */
#include "hypertrace/base.h"
#include <lttng/lttng.h>

#include "lttng/lttng-module.h"

#define CHANNEL         "hypertrace"
/*
 * LTTng has a buffer for each of the host's CPUs. Each buffer consists of
 * SUBBUF_COUNT sub-buffers of SUBBUF_SIZE bytes.
 */
#define SUBBUF_SIZE     (UINT64_C(1) << 20)
#define SUBBUF_COUNT    8
/*
 * Period in us at which LTTng sends new events of a live session to the relay
 * daemon
 */
#define LIVE_US         500000
#define PENDING_US      20000

typedef struct lttng_handle Handle;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Handle, lttng_destroy_handle)

static bool ok(int ret, const char *what, const char *name, GError **error)
{
    if (ret >= 0) {
        return true;
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "LTTng cannot %s "
                "'%s': %s", what, name, lttng_strerror(ret));
    return false;
}

static struct lttng_domain domain(void)
{
    /*
     * Use separate buffers for this process. If processes share buffers, a
     * process that is killed can make the buffers unusable for the other
     * processes.
     */
    return (struct lttng_domain) {
        .type = LTTNG_DOMAIN_UST,
        .buf_type = LTTNG_BUFFER_PER_PID,
    };
}

static bool enable_channel(struct lttng_handle *handle, const char *name,
                           GError **error)
{
    struct lttng_domain d = domain();
    struct lttng_channel *c = lttng_channel_create(&d);
    bool done;

    g_strlcpy(c->name, CHANNEL, sizeof(c->name));
    c->attr.subbuf_size = SUBBUF_SIZE;
    c->attr.num_subbuf = SUBBUF_COUNT;
    /*
     * If LTTng's buffers are full, let the thread that delivers events wait
     * without limit (-1). The recorder does not wait for it: the thread takes
     * events from a queue (lttng-sink.c).
     */
    done = ok(lttng_channel_set_blocking_timeout(c, -1), "make a channel that "
              "waits for", name, error) &&
           ok(lttng_enable_channel(handle, c), "make a channel for", name,
              error);
    lttng_channel_destroy(c);
    return done;
}

/*
 * Restrict the session to events of this process: other processes may have a
 * provider of the same name.
 */
static bool track(const char *name, GError **error)
{
    struct lttng_process_attr_tracker_handle *t = NULL;
    bool done;

    done = lttng_session_get_tracker_handle(
               name, LTTNG_DOMAIN_UST, LTTNG_PROCESS_ATTR_VIRTUAL_PROCESS_ID,
               &t) == LTTNG_OK &&
           lttng_process_attr_tracker_handle_set_tracking_policy(
               t, LTTNG_TRACKING_POLICY_INCLUDE_SET) ==
               LTTNG_PROCESS_ATTR_TRACKER_HANDLE_STATUS_OK &&
           lttng_process_attr_virtual_process_id_tracker_handle_add_pid(
               t, getpid()) == LTTNG_PROCESS_ATTR_TRACKER_HANDLE_STATUS_OK;
    lttng_process_attr_tracker_handle_destroy(t);
    return done || ok(-LTTNG_ERR_UNK, "restrict to this process the session",
                      name, error);
}

/*
 * Enable all events of a provider. Its name is @name followed by @suffix, which
 * is "" for the guest's kernel or HT_LTTNG_PROGRAMS for the guest's programs.
 */
static bool enable_events(struct lttng_handle *handle, const char *name,
                          const char *suffix, GError **error)
{
    struct lttng_event *e = lttng_event_create();
    bool done;

    e->type = LTTNG_EVENT_TRACEPOINT;
    e->loglevel_type = LTTNG_EVENT_LOGLEVEL_ALL;
    snprintf(e->name, sizeof(e->name), "%s%s:*", name, suffix);
    done = ok(lttng_enable_event(handle, e, CHANNEL), "enable events of",
              name, error);
    lttng_event_destroy(e);
    return done;
}

static bool fill_session(const char *name, GError **error)
{
    struct lttng_domain d = domain();
    g_autoptr(Handle) handle = lttng_create_handle(name, &d);

    return track(name, error) && enable_channel(handle, name, error) &&
           enable_events(handle, name, "", error) &&
           enable_events(handle, name, HT_LTTNG_PROGRAMS, error) &&
           ok(lttng_start_tracing(name), "start the session", name, error);
}

static bool begin(const char *name, const char *url, bool live,
                  GError **error)
{
    int ret = live ? lttng_create_session_live(name, url, LIVE_US) :
              lttng_create_session(name, url);

    if (!ok(ret, "make the session", name, error)) {
        return false;
    }
    if (!fill_session(name, error)) {
        lttng_destroy_session_no_wait(name);
        return false;
    }
    return true;
}

static uint64_t count_lost(const char *name)
{
    struct lttng_domain d = domain();
    g_autoptr(Handle) handle = lttng_create_handle(name, &d);
    struct lttng_channel *channels = NULL;
    int i, count = lttng_list_channels(handle, &channels);
    uint64_t n, lost = 0;

    for (i = 0; i < count; i++) {
        if (!lttng_channel_get_discarded_event_count(&channels[i], &n)) {
            lost += n;
        }
    }
    free(channels);
    return lost;
}

static bool end(const char *name, uint64_t *lost, GError **error)
{
    if (!ok(lttng_stop_tracing_no_wait(name), "stop the session", name,
            error)) {
        return false;
    }
    while (lttng_data_pending(name) > 0) {
        g_usleep(PENDING_US);
    }
    *lost = count_lost(name);
    return ok(lttng_destroy_session(name), "end the session", name, error);
}

const HtLttngOps ht_lttng_ops = { .begin = begin, .end = end };
