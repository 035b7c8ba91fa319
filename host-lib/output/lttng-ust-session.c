/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: deliver the runs of one guest to LTTng-UST
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/lttng-ust-event.h"
#include "hypertrace/lttng-ust-session.h"

struct HtUstSession {
    HtUstSessionConfig cfg;
    char *provider;
    HtUstEvent *discarded;
    /* the registration of the event @discarded was tried */
    bool asked;
    /* by stream: HtRun.discarded of its last run */
    uint64_t *told;
    /* registered events by class id; NULL: the class has none */
    HtUstEvent *events[HT_CLASSES_MAX + 1];
};

HtUstSession *ht_ust_session_new(const HtUstSessionConfig *cfg)
{
    HtUstSession *s = g_new0(HtUstSession, 1);

    s->cfg = *cfg;
    s->provider = g_strdup(cfg->provider);
    s->told = g_new0(uint64_t, cfg->streams);
    return s;
}

void ht_ust_session_free(HtUstSession *s)
{
    if (!s) {
        return;
    }
    g_free(s->provider);
    g_free(s->told);
    g_free(s);
}

/* Register the event "discarded" first, so that no class takes its name */
static void get_discarded(HtUstSession *s)
{
    g_autofree char *why = NULL, *text = NULL;

    s->asked = true;
    s->discarded = ht_ust_discarded_get(s->provider, &why);
    if (!s->discarded) {
        text = g_strdup_printf("LTTng traces of '%s' do not say how many events"
                               " were discarded: %s", s->provider, why);
        s->cfg.warn(s->cfg.opaque, text);
    }
}

/*
 * Warn of a timeout once: all HtUstSessions of the process share LTTng-UST's
 * connection to the daemon
 */
static void check_timeout(HtUstSession *s, const HtClass *c)
{
    static bool warned;
    g_autofree char *text = NULL;

    if (!ht_ust_timed_out() || ht_atomic_exchange(&warned, true)) {
        return;
    }
    text = g_strdup_printf("the LTTng session daemon did not answer in time:"
                           " '%s:%s' and all events that are registered from"
                           " now on cannot be enabled", s->provider, c->name);
    s->cfg.warn(s->cfg.opaque, text);
}

void ht_ust_session_expect(HtUstSession *s, HtClass *const *classes,
                           unsigned count)
{
    if (!s->asked) {
        get_discarded(s);
    }
    if (count) {
        ht_ust_events_prepare(s->provider, classes, count);
    }
}

char *ht_ust_session_learn(HtUstSession *s, const HtClass *c)
{
    g_autofree char *why = NULL;
    HtUstEvent *e = ht_ust_event_get(s->provider, c, &why);

    /* The timeout may have happened in ht_ust_session_expect() before. */
    check_timeout(s, c);
    if (!e) {
        return g_strdup_printf("cannot register LTTng-UST event '%s:%s': %s",
                               s->provider, c->name,
                               why ? why : "LTTng-UST refuses it");
    }
    /*
     * Pairs with the load-acquires in ht_ust_session_wants(),
     * ht_ust_deliver() and any_enabled().
     */
    ht_atomic_store_release(&s->events[c->id], e);
    return NULL;
}

bool ht_ust_session_wants(const HtUstSession *s, const HtClass *c,
                          bool unknown)
{
    /* Pairs with the store-release in ht_ust_session_learn(). */
    const HtUstEvent *e = ht_atomic_load_acquire(&s->events[c->id]);

    return e ? ht_ust_event_enabled(e) : unknown;
}

uint64_t ht_ust_session_deliver(HtUstSession *s, const HtRun *run)
{
    ht_ust_tell_discarded(s->discarded, run, &s->told[run->stream->index]);
    return run->events ? ht_ust_deliver(run, s->cfg.classes, s->events) : 0;
}
