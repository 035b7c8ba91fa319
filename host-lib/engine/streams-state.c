/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: save and load the streams of a guest
 */
#include "hypertrace/base.h"
#include "hypertrace/streams.h"

typedef struct State {
    HtConsumerState consumer;
    struct ht_stats closed;
    uint64_t memory;
    /* a close was requested, for example by a reset, before the resume */
    bool closing;
} State;

/*
 * Numbers of 64-bit words of State.consumer and State.closed.  The words are
 * encoded in the order of the members.
 */
#define CONSUMER_WORDS  18
#define STATS_WORDS     7

G_STATIC_ASSERT(offsetof(HtConsumerState, backward) -
                offsetof(HtConsumerState, instance) ==
                (CONSUMER_WORDS - 1) * sizeof(uint64_t));
G_STATIC_ASSERT(sizeof(struct ht_stats) == STATS_WORDS * sizeof(uint64_t));
G_STATIC_ASSERT(HT_STREAM_STATE_SIZE ==
                2 + sizeof(int32_t) + HT_STREAM_NAME_MAX + 1 +
                sizeof(uint64_t) * (CONSUMER_WORDS + STATS_WORDS + 1) + 1);

static uint8_t *put_words(uint8_t *to, const uint64_t *words, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        uint64_t be = GUINT64_TO_BE(words[i]);

        memcpy(to, &be, sizeof(be));
        to += sizeof(be);
    }
    return to;
}

static const uint8_t *get_words(const uint8_t *from, uint64_t *words,
                                unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        uint64_t be;

        memcpy(&be, from, sizeof(be));
        words[i] = GUINT64_FROM_BE(be);
        from += sizeof(be);
    }
    return from;
}

static void encode(const State *st, uint8_t *to)
{
    const HtConsumerState *c = &st->consumer;
    uint32_t vcpu = GUINT32_TO_BE((uint32_t)c->vcpu);

    *to++ = c->open;
    *to++ = c->stopped;
    memcpy(to, &vcpu, sizeof(vcpu));
    to += sizeof(vcpu);
    memcpy(to, c->name, sizeof(c->name));
    to += sizeof(c->name);
    to = put_words(to, &c->instance, CONSUMER_WORDS);
    to = put_words(to, &st->closed.events, STATS_WORDS);
    to = put_words(to, &st->memory, 1);
    *to = st->closing;
}

static void decode(State *st, const uint8_t *from)
{
    HtConsumerState *c = &st->consumer;
    uint32_t vcpu;

    c->open = *from++;
    c->stopped = *from++;
    memcpy(&vcpu, from, sizeof(vcpu));
    c->vcpu = (int32_t)GUINT32_FROM_BE(vcpu);
    from += sizeof(vcpu);
    memcpy(c->name, from, sizeof(c->name));
    from += sizeof(c->name);
    from = get_words(from, &c->instance, CONSUMER_WORDS);
    from = get_words(from, &st->closed.events, STATS_WORDS);
    from = get_words(from, &st->memory, 1);
    st->closing = *from;
}

void ht_streams_save(const HtStreams *a, uint8_t *to)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        const HtStream *s = &a->stream[i];
        State st = {
            .closed = s->closed,
            .memory = s->memory,
            .closing = s->want_close && ht_stream_phase(s) == HT_PHASE_LOADED,
        };

        ht_consumer_save(&s->consumer, &st.consumer);
        /*
         * Use the phase: after ht_streams_unload() or a refused load, the
         * consumer can be open although the stream is free.
         */
        st.consumer.open = ht_stream_phase(s) == HT_PHASE_OPEN ||
                           ht_stream_phase(s) == HT_PHASE_LOADED;
        encode(&st, to + i * HT_STREAM_STATE_SIZE);
    }
}

bool ht_stream_is_suspended(const HtStream *s)
{
    return ht_stream_phase(s) == HT_PHASE_LOADED && !s->want_resume;
}

bool ht_streams_unload(HtStreams *a, uint32_t *open)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_is_suspended(s)) {
            ht_atomic_store_release(&s->phase, HT_PHASE_FREE);
        }
        if (ht_stream_phase(s) != HT_PHASE_FREE) {
            *open = i;
            return false;
        }
    }
    return true;
}

/* Test whether all open streams have different instances */
static bool distinct(const State *st, uint32_t count)
{
    uint32_t i, j;

    for (i = 0; i < count; i++) {
        const HtConsumerState *x = &st[i].consumer;

        for (j = 0; j < i; j++) {
            const HtConsumerState *y = &st[j].consumer;

            if (x->open && y->open &&
                (x->instance == y->instance ||
                 x->trace_instance == y->trace_instance)) {
                return false;
            }
        }
    }
    return true;
}

bool ht_streams_load(HtStreams *a, const uint8_t *from, uint64_t instances,
                     int64_t shift_ns, char **why)
{
    g_autofree State *st = g_new0(State, a->cfg.count);
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        decode(&st[i], from + i * HT_STREAM_STATE_SIZE);
    }
    if (instances > UINT64_MAX / 2) {
        *why = g_strdup_printf("%" PRIu64 " streams were opened", instances);
        return false;
    }
    if (!distinct(st, a->cfg.count)) {
        *why = g_strdup("two streams have one instance");
        return false;
    }
    for (i = 0; i < a->cfg.count; i++) {
        const HtConsumerState *c = &st[i].consumer;
        HtStream *s = &a->stream[i];
        const char *problem;

        if (MAX(c->instance, c->trace_instance) > instances) {
            *why = g_strdup_printf("stream %" PRIu32 ": its instance comes"
                                   " later", i);
            return false;
        }
        problem = ht_consumer_load(&s->consumer, i, c);
        if (problem) {
            *why = g_strdup_printf("stream %" PRIu32 ": %s", i, problem);
            return false;
        }
        s->consumer.walk.ns = ht_time_shift(c->ns, shift_ns, ht_now_ns());
    }
    return true;
}

void ht_streams_loaded(HtStreams *a, const uint8_t *from)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];
        State st;

        decode(&st, from + i * HT_STREAM_STATE_SIZE);
        s->next = s->consumer.info;
        s->next.instance = st.consumer.instance;
        s->want_close = st.closing;
        s->close_lost = 0;
        s->want_resume = false;
        s->reported = st.consumer.stopped;
        s->closed = st.closed;
        s->memory = st.memory;
        if (st.consumer.open) {
            ht_atomic_store_release(&s->phase, HT_PHASE_LOADED);
        }
    }
}

void ht_streams_renumber(HtStreams *a, uint64_t instances)
{
    uint64_t seen = *a->cfg.instances;
    uint32_t i;

    *a->cfg.instances = MAX(seen, instances);
    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_LOADED &&
            s->consumer.info.instance <= seen) {
            s->consumer.info.instance = ++*a->cfg.instances;
        }
    }
}

void ht_streams_resume(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        /* Pairs with the load-acquire in work(). */
        ht_atomic_store_release(&a->stream[i].want_resume, true);
    }
    if (a->cfg.kick) {
        a->cfg.kick(a->cfg.opaque);
    }
}

void ht_streams_load_flush(HtStreams *a, uint64_t wanted)
{
    /*
     * If this QEMU has already given the ticket @wanted or a later one, the
     * flush of its newest ticket completes the saved tickets, too.
     */
    if (wanted > a->flush_given) {
        a->flush_given = wanted;
        /* Pairs with the load-acquire in ht_streams_turn(). */
        ht_atomic_store_release(&a->flush_wanted, wanted);
    }
}
