/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: deliver events to LTTng-UST, from a queue and in a thread
 */
#include "hypertrace/base.h"
#include "cli/command.h"
#include "hypertrace/atomic.h"
#include "hypertrace/dispatch.h"
#include "hypertrace/thread.h"
#include "lttng/lttng-sink.h"

/* Maximum size in bytes of the buffers with events in the queue of a sink */
#define BACKLOG         ((size_t)128 << 20)
/*
 * At the end of a sink: time in ns after which LTTng counts as hanging if it
 * has accepted no events meanwhile
 */
#define HANG_NS         (INT64_C(5) * 1000000000)
/*
 * Maximum time in ns that LTTng may need, after it has accepted all events, to
 * send them and to end the session
 */
#define SEND_NS         (INT64_C(60) * 1000000000)

struct HtLttngSink {
    HtLttngSinkConfig cfg;
    HtDispatch *d;
    bool started;
    /* ht_lttng_sink_end() was called, so no more runs are accepted */
    bool closed;
    /* the sink's thread has delivered all runs; atomic */
    bool drained;
    bool failed;                /* LTTng-UST could not be loaded; atomic */

    /* functions that use LTTng-UST; set before @session, and then constant */
    const HtUstOps *ust;
    HtUstSession *session;      /* set once, by the sink's thread; atomic */

    HtMutex lock;               /* protects @loaded and the members after it */
    HtCond loaded;              /* signalled when @ready becomes true */
    /* @session is set, or it will not be set: LTTng is not used */
    bool ready;
    uint64_t handled;
    HtLttngStats stats;
    char *why;
};

static void note(HtLttngSink *s, const char *why)
{
    ht_mutex_lock(&s->lock);
    g_free(s->why);
    s->why = g_strdup(why);
    ht_mutex_unlock(&s->lock);
}

static void warn(void *opaque, const char *text)
{
    note(opaque, text);
}

static void expect(void *opaque, HtClass *const *classes, unsigned count)
{
    HtLttngSink *s = opaque;

    if (s->session) {
        s->ust->expect(s->session, classes, count);
    }
}

static char *learn(void *opaque, const HtClass *c)
{
    HtLttngSink *s = opaque;
    char *why;

    if (!s->session) {
        return g_strdup("LTTng-UST is not loaded");
    }
    why = s->ust->learn(s->session, c);
    if (why) {
        note(s, why);
    }
    return why;
}

static void load(HtLttngSink *s)
{
    g_autoptr(GError) error = NULL;
    const HtUstSessionConfig cfg = {
        .provider = s->cfg.provider,
        .classes = s->cfg.classes,
        .streams = s->cfg.streams,
        .warn = warn,
        .opaque = s,
    };
    HtUstSession *session;

    s->ust = ht_lttng_module("ust", "ht_ust_ops", &error);
    if (!s->ust) {
        note(s, error->message);
        ht_atomic_set(&s->failed, true);
        return;
    }
    session = s->ust->create(&cfg);
    /*
     * This registers the event that reports losses, so that viewers see the
     * trace even before the guest's first event.
     */
    s->ust->expect(session, NULL, 0);
    /* Pairs with the load-acquire in ht_lttng_sink_wants(). */
    ht_atomic_store_release(&s->session, session);
}

static void begin(void *opaque)
{
    HtLttngSink *s = opaque;

    /*
     * If the sink is ended without having been started, it has no events: do
     * not load LTTng.
     */
    if (s->started) {
        load(s);
    }
    ht_mutex_lock(&s->lock);
    s->ready = true;
    ht_cond_broadcast(&s->loaded);
    ht_mutex_unlock(&s->lock);
}

static void deliver(void *opaque, const HtRun *run)
{
    HtLttngSink *s = opaque;
    uint64_t taken;

    if (!s->session) {
        return;
    }
    taken = s->ust->deliver(s->session, run);
    ht_mutex_lock(&s->lock);
    s->stats.taken += taken;
    s->stats.unwanted += run->events - taken;
    s->handled += run->events;
    ht_mutex_unlock(&s->lock);
}

/*
 * HtSinkOps.end: end the recorder's session, if there is one. Count the events
 * for which that session had no room as lost, not as taken.
 */
static void end_session(void *opaque)
{
    g_autoptr(GError) error = NULL;
    HtLttngSink *s = opaque;
    uint64_t lost = 0;

    ht_atomic_set(&s->drained, true);
    if (!s->cfg.ctl) {
        return;
    }
    if (!s->cfg.ctl->end(s->cfg.session, &lost, &error)) {
        note(s, error->message);
    }
    ht_mutex_lock(&s->lock);
    s->stats.taken -= MIN(lost, s->stats.taken);
    s->stats.lost += lost;
    ht_mutex_unlock(&s->lock);
}

/* HtSinkOps.gone: does nothing, because ht_lttng_sink_free() frees the sink */
static void gone(void *opaque)
{
}

HtLttngSink *ht_lttng_sink_new(const HtLttngSinkConfig *cfg)
{
    static const HtSinkOps ops = {
        .begin = begin,
        .expect = expect,
        .learn = learn,
        .deliver = deliver,
        .end = end_session,
        .gone = gone,
    };
    HtLttngSink *s = g_new0(HtLttngSink, 1);
    const HtSinkConfig sink = {
        .ops = &ops,
        .session = s,
        .id = "lttng",
        .may_block = true,
    };
    const HtDispatchConfig dispatch = {
        .name = cfg->provider,
        .classes = cfg->classes,
        .streams = cfg->streams,
        .budget = BACKLOG,
        .buffer = cfg->run_max,
    };

    s->cfg = *cfg;
    ht_mutex_init(&s->lock);
    ht_cond_init(&s->loaded);
    s->d = ht_dispatch_new(&dispatch, &sink, 1);
    return s;
}

void ht_lttng_sink_start(HtLttngSink *s)
{
    /*
     * Permit LTTng-UST to make a thread wait while LTTng's buffers are full. In
     * this process, only the threads of sinks pass events to LTTng-UST, so no
     * other thread waits. A value that the user has set is kept.
     */
    g_setenv("LTTNG_UST_ALLOW_BLOCKING", "1", false);
    /*
     * If the registration of an event takes longer than this many ms, the event
     * can never be enabled.
     */
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", "10000", false);
    s->started = true;
    ht_dispatch_start(s->d);
}

void ht_lttng_sink_wait(HtLttngSink *s, unsigned ms)
{
    int64_t end = ht_now_ns() + ms * INT64_C(1000000);

    ht_mutex_lock(&s->lock);
    while (!s->ready && ht_cond_wait_until(&s->loaded, &s->lock, end)) {
        /*
         * The wait may end before @ready is set: wait again, for the rest of
         * the time.
         */
    }
    ht_mutex_unlock(&s->lock);
}

void ht_lttng_sink_post(HtLttngSink *s, const HtRun *run, HtBuffer **fill)
{
    HtRun copy = *run;

    if (s->closed) {
        return;
    }
    if (run->events) {
        uint8_t *p = ht_dispatch_reserve(s->d, fill, run->size);

        memcpy(p, run->data, run->size);
        copy.data = p;
    }
    ht_dispatch_post(s->d, &copy, *fill, true);
}

void ht_lttng_sink_release(HtLttngSink *s, HtBuffer **fill)
{
    ht_dispatch_release(s->d, fill);
}

void ht_lttng_sink_wake(HtLttngSink *s)
{
    ht_dispatch_wake(s->d);
}

bool ht_lttng_sink_wants(const HtLttngSink *s, const HtClass *c, bool unknown)
{
    /* Pairs with the store-release in load(). */
    const HtUstSession *session = ht_atomic_load_acquire(&s->session);

    return session ? s->ust->wants(session, c, unknown) :
           unknown || ht_atomic_read(&s->failed);
}

/*
 * Wait for the sink's thread to end, as long as it makes progress. Return false
 * if it hangs.
 */
static bool wait_gone(HtLttngSink *s)
{
    HtSinkStats before, after;
    bool drained;

    ht_dispatch_stats(s->d, 0, &after);
    do {
        before = after;
        drained = ht_atomic_read(&s->drained);
        if (!ht_dispatch_end(s->d, ht_now_ns() +
                             (drained ? SEND_NS : HANG_NS))) {
            return true;
        }
        ht_dispatch_stats(s->d, 0, &after);
    } while (before.items != after.items ||
             drained != ht_atomic_read(&s->drained));
    return false;
}

bool ht_lttng_sink_end(HtLttngSink *s, HtLttngStats *stats)
{
    HtSinkStats sink;
    bool ended;

    if (!s->started) {
        ht_dispatch_start(s->d);
    }
    s->closed = true;
    ended = wait_gone(s);
    ht_dispatch_stats(s->d, 0, &sink);
    ht_mutex_lock(&s->lock);
    *stats = s->stats;
    stats->lost += sink.discarded + sink.events - s->handled;
    stats->why = ended ? s->why : ht_atomic_read(&s->drained) ?
                 "the session daemon does not end the session" :
                 "LTTng does not accept events";
    ht_mutex_unlock(&s->lock);
    return ended;
}

void ht_lttng_sink_free(HtLttngSink *s)
{
    if (!s) {
        return;
    }
    ht_dispatch_free(s->d);
    if (s->session) {
        s->ust->destroy(s->session);
    }
    ht_mutex_destroy(&s->lock);
    ht_cond_destroy(&s->loaded);
    g_free(s->why);
    g_free(s);
}

void ht_lttng_summary(const char *provider, const HtLttngStats *n)
{
    g_autoptr(GString) rest = g_string_new(NULL);

    if (n->unwanted) {
        g_string_append_printf(rest, "no session wanted %" PRIu64 "; ",
                               n->unwanted);
    }
    if (n->lost) {
        g_string_append_printf(rest, "%" PRIu64 " lost", n->lost);
    } else {
        g_string_append(rest, "none lost");
    }
    ht_notice("%" PRIu64 " of them are LTTng's, as '%s:*'; %s", n->taken,
              provider, rest->str);
}
