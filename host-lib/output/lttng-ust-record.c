/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: record events of run-time classes with LTTng-UST
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"

#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#include "lttng-ust.h"
#include <lttng/ust-ringbuffer-context.h>
#include <lttng/ust-thread.h>
#include "hypertrace/lttng-ust-thread.h"

/*
 * QEMU's build clears local variables, which costs time for each event or run.
 * The variables that are marked UNINITIALIZED are set before they are read.
 */
#if __has_attribute(uninitialized)
# define UNINITIALIZED  __attribute__((uninitialized))
#else
# define UNINITIALIZED
#endif

/*
 * Maximum size in bytes of a payload that is written together with the prefix
 */
#define SMALL           48

/* Argument of a probe; reused for all events of a run */
struct UstRecord {
    uint8_t prefix[PREFIX_SIZE + SMALL];
    const uint8_t *payload;
    size_t size;
};

typedef void UstProbe(void *data, const HtUstEvent *e, const UstRecord *r);

typedef struct FilterStack {
    char bytes[FIELDS_MAX * 2 * sizeof(unsigned long)];
    size_t used;
} FilterStack;

static void push(FilterStack *s, const void *v, size_t size)
{
    memcpy(s->bytes + s->used, v, size);
    s->used += size;
}

static const uint8_t *push_scalar(FilterStack *s, unsigned kind,
                                  const uint8_t *p)
{
    unsigned size = ht_kind_size(kind);
    uint64_t v = ht_get_le(p, size, ht_kind_signed(kind));
    uint32_t bits = v;
    float f32;
    double f64;

    if (kind == HT_FIELD_F32) {
        memcpy(&f32, &bits, sizeof(f32));
        f64 = f32;
        push(s, &f64, sizeof(f64));
    } else {
        /* A double is passed as its 64 bits. */
        push(s, &v, sizeof(v));
    }
    return p + size;
}

static const uint8_t *push_elements(FilterStack *s, unsigned kind,
                                    unsigned long count, const uint8_t *p)
{
    const void *elements = p;

    push(s, &count, sizeof(count));
    push(s, &elements, sizeof(elements));
    return p + count * ht_kind_size(kind);
}

static void push_fields(FilterStack *s, const HtUstEvent *e,
                        const UstRecord *r)
{
    const uint8_t *p = r->payload;
    unsigned i;

    s->used = 0;
    push_scalar(s, HT_FIELD_U32, r->prefix);
    push_scalar(s, HT_FIELD_S32, r->prefix + 4);
    push_scalar(s, HT_FIELD_U64, r->prefix + 8);
    for (i = 0; i < e->nr_class_fields; i++) {
        const HtField *f = &e->class_fields[i];

        switch (f->kind) {
        case HT_FIELD_TEXT:
        case HT_FIELD_SEQUENCE:
            p = push_elements(s, f->elem, ht_get_le16(p), p + 2);
            break;
        case HT_FIELD_ARRAY:
            p = push_elements(s, f->elem, f->count, p);
            break;
        default:
            p = push_scalar(s, f->kind, p);
            break;
        }
    }
}

static inline void record(struct lttng_ust_event_recorder *recorder,
                          struct lttng_ust_probe_ctx *probe_ctx,
                          const UstRecord *r)
{
    struct lttng_ust_channel_buffer_ops *ops = recorder->chan->ops;
    UNINITIALIZED struct lttng_ust_ring_buffer_ctx ctx;

    lttng_ust_ring_buffer_ctx_init(&ctx, recorder, PREFIX_SIZE + r->size, 1,
                                   probe_ctx);
    if (ops->event_reserve(&ctx) < 0) {
        /* For example, LTTng's buffer is full.  LTTng counts the loss. */
        return;
    }
    if (r->size <= SMALL) {
        ops->event_write(&ctx, r->prefix, PREFIX_SIZE + r->size, 1);
    } else {
        ops->event_write(&ctx, r->prefix, PREFIX_SIZE, 1);
        ops->event_write(&ctx, r->payload, r->size, 1);
    }
    ops->event_commit(&ctx);
}

/*
 * Test whether a filter accepts an event.  This function and notify() are not
 * inlined: QEMU's build clears local variables, and for an event without a
 * filter or capture @stack must not be cleared.
 */
static bool G_NO_INLINE accepted(struct lttng_ust_event_common *common,
                                 struct lttng_ust_probe_ctx *probe_ctx,
                                 const HtUstEvent *e, const UstRecord *r)
{
    FilterStack stack;

    push_fields(&stack, e, r);
    return common->run_filter(common, stack.bytes, probe_ctx, NULL) ==
           LTTNG_UST_EVENT_FILTER_ACCEPT;
}

static void G_NO_INLINE notify(struct lttng_ust_event_notifier *notifier,
                               struct lttng_ust_probe_ctx *probe_ctx,
                               const HtUstEvent *e, const UstRecord *r)
{
    struct lttng_ust_notification_ctx ctx = {
        .struct_size = sizeof(ctx),
        .eval_capture = CMM_ACCESS_ONCE(notifier->eval_capture),
    };
    FilterStack stack;

    if (ctx.eval_capture) {
        push_fields(&stack, e, r);
    }
    notifier->notification_send(notifier, stack.bytes, probe_ctx, &ctx);
}

static inline void probe_inline(void *data, const HtUstEvent *e,
                                const UstRecord *r)
{
    struct lttng_ust_event_common *common = data;
    struct lttng_ust_probe_ctx probe_ctx = {
        .struct_size = sizeof(probe_ctx),
        .ip = __builtin_return_address(0),
    };

    if (common->type == LTTNG_UST_EVENT_TYPE_RECORDER) {
        struct lttng_ust_event_recorder *recorder = common->child;
        struct lttng_ust_channel_common *chan = recorder->chan->parent;

        if (!CMM_ACCESS_ONCE(chan->session->active) ||
            !CMM_ACCESS_ONCE(chan->enabled)) {
            return;
        }
    } else if (common->type != LTTNG_UST_EVENT_TYPE_NOTIFIER) {
        return;
    }
    if (!CMM_ACCESS_ONCE(common->enabled)) {
        return;
    }
    if (CMM_ACCESS_ONCE(common->eval_filter) &&
        !accepted(common, &probe_ctx, e, r)) {
        return;
    }
    if (common->type == LTTNG_UST_EVENT_TYPE_RECORDER) {
        record(common->child, &probe_ctx, r);
    } else {
        notify(common->child, &probe_ctx, e, r);
    }
}

void ht_ust_probe(void *data, const HtUstEvent *e, const UstRecord *r)
{
    probe_inline(data, e, r);
}

/*
 * Copy at most SMALL bytes.  If there are 16 or more, use copies of 16 bytes,
 * the last of which may copy some bytes again.
 */
static inline void copy_small(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size < 16) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, from, 16);
    if (size > 32) {
        memcpy(to + 16, from + 16, 16);
    }
    memcpy(to + size - 16, from + size - 16, 16);
}

static inline void set_stream(UstRecord *r, const HtStreamInfo *stream)
{
    ht_put_le32(r->prefix, stream->index);
    ht_put_le32(r->prefix + 4, stream->vcpu);
}

static inline void emit(const HtUstEvent *e, UstRecord *r, const HtEvent *ev)
{
    struct lttng_ust_tracepoint_probe *p;

    ht_put_le64(r->prefix + 8, ev->ns);
    if (ev->size <= SMALL) {
        copy_small(r->prefix + PREFIX_SIZE, ev->payload, ev->size);
    }
    r->payload = ev->payload;
    r->size = ev->size;

    p = lttng_ust_tp_rcu_dereference(e->tp.probes);
    for (; p && p->func; p++) {
        if (G_LIKELY((UstProbe *)p->func == ht_ust_probe)) {
            probe_inline(p->data, e, r);
        } else {
            ((UstProbe *)p->func)(p->data, e, r);
        }
    }
}

/*
 * Enter LTTng-UST and take its read lock; done() reverses both.  Returns false,
 * without the lock, if the process is ending
 */
static bool begin(void)
{
    static __thread bool known;

    if (G_UNLIKELY(!ht_ust_enter())) {
        return false;
    }
    if (G_UNLIKELY(!known)) {
        /* Initialize the thread now; otherwise the first event is slow. */
        lttng_ust_init_thread();
        known = true;
    }
    lttng_ust_tp_rcu_read_lock();
    return true;
}

static void done(void)
{
    lttng_ust_tp_rcu_read_unlock();
    ht_ust_leave();
}

/* Number of events of a run after which LTTng-UST is left and entered again */
#define EMIT_MAX 256

static bool any_enabled(HtUstEvent *const *events, uint32_t classes)
{
    uint32_t id;

    for (id = 1; id <= classes; id++) {
        /* Pairs with the store-release in ht_ust_session_learn(). */
        const HtUstEvent *e = ht_atomic_load_acquire(&events[id]);

        if (e && CMM_LOAD_SHARED(e->tp.state)) {
            return true;
        }
    }
    return false;
}

uint64_t ht_ust_deliver(const HtRun *run, const HtClassTable *classes,
                        HtUstEvent *const *events)
{
    uint32_t count = ht_class_table_count(classes);
    UNINITIALIZED UstRecord r;
    uint64_t taken = 0;
    unsigned n = 0;
    HtRunIter it;
    HtEvent ev;

    /*
     * If the run has many events, a test of all classes costs a fraction of the
     * time for decoding the run: skip the run if no event is enabled.
     */
    if ((run->events >= count / 8 && !any_enabled(events, count)) ||
        !begin()) {
        return 0;
    }
    set_stream(&r, run->stream);
    ht_run_iter_init(&it, run, classes);
    while (ht_run_next(&it, &ev)) {
        /* Pairs with the store-release in ht_ust_session_learn(). */
        const HtUstEvent *e = ht_atomic_load_acquire(&events[ev.cls->id]);

        if (n++ == EMIT_MAX) {
            n = 0;
            done();
            if (!begin()) {
                return taken;
            }
        }
        if (G_LIKELY(e) && CMM_LOAD_SHARED(e->tp.state)) {
            emit(e, &r, &ev);
            taken++;
        }
    }
    done();
    return taken;
}

void ht_ust_tell_discarded(const HtUstEvent *e, const HtRun *run,
                           uint64_t *told)
{
    uint8_t payload[HT_UST_DISCARDED_SIZE];
    HtEvent ev = { .ns = run->begin_ns, .payload = payload,
                   .size = sizeof(payload) };
    uint64_t events;
    UstRecord r;

    if (run->flags & HT_RUN_OPEN) {
        *told = 0;
    }
    events = run->discarded - *told;
    *told = run->discarded;
    if (!events || !e || !CMM_LOAD_SHARED(e->tp.state) || !begin()) {
        return;
    }
    ht_put_le64(payload, events);
    ht_put_le64(payload + 8, run->discarded);
    set_stream(&r, run->stream);
    emit(e, &r, &ev);
    done();
}
