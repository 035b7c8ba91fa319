/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dispatcher without QEMU: order, budgets, accounting, sinks that hang or
 * refuse classes.  Also built with ThreadSanitizer.
 *
 * The dispatcher takes the time for its retries and reports from clock_ns,
 * which the tests advance.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/dispatch.h"
#include "hypertrace/thread.h"
#include "core-testlib.h"

#define STREAMS 4
#define BUDGET (4 * HT_DISPATCH_BUFFER)
#define LIMIT_NS (INT64_C(60) * 1000000000)

static int64_t clock_ns = 1;

static int64_t virtual_now(void)
{
    return __atomic_load_n(&clock_ns, __ATOMIC_SEQ_CST);
}

/* A backend that can be made to hang, and to refuse classes */
typedef struct Sink {
    /* HtMutex, because the thread sanitizer does not know GMutex */
    HtMutex lock;
    HtCond changed;
    /* deliver() and end() wait while this is true */
    bool hang;
    /* deliver() or end() is waiting because of @hang */
    bool inside;
    /* classes from this id on are refused; 0: none */
    unsigned refuse_from;
    unsigned refuse_id;         /* one more class id that is refused; 0: none */
    unsigned learnt;
    unsigned asked;
    unsigned begun, ended, gone;
    GThread *thread;
    /* number of runs that another thread than @thread delivered */
    unsigned elsewhere;
    uint64_t events[STREAMS];
    /* by stream: lowest number that the next event can have */
    uint64_t next[STREAMS];
    /* by stream: HtRun.discarded of the last run */
    uint64_t discarded[STREAMS];
    bool in_order;
    unsigned opened[STREAMS], closed[STREAMS];
    const HtClassTable *classes;
} Sink;

/*
 * Wait while @s->hang is true. Context: @s->lock held, which is released
 * meanwhile
 */
static void pass(Sink *s)
{
    while (s->hang) {
        s->inside = true;
        ht_cond_broadcast(&s->changed);
        ht_cond_wait(&s->changed, &s->lock);
    }
    s->inside = false;
}

static void sink_begin(void *opaque)
{
    Sink *s = opaque;

    ht_mutex_lock(&s->lock);
    s->begun++;
    s->thread = g_thread_self();
    ht_mutex_unlock(&s->lock);
}

static char *sink_learn(void *opaque, const HtClass *c)
{
    Sink *s = opaque;
    bool refused;

    ht_mutex_lock(&s->lock);
    s->asked++;
    refused = (s->refuse_from && c->id >= s->refuse_from) ||
              c->id == s->refuse_id;
    s->learnt += !refused;
    ht_cond_broadcast(&s->changed);
    ht_mutex_unlock(&s->lock);
    return refused ? g_strdup("no room") : NULL;
}

static void sink_deliver(void *opaque, const HtRun *run)
{
    Sink *s = opaque;
    uint32_t i = run->stream->index;
    HtRunIter it;
    HtEvent ev;

    ht_mutex_lock(&s->lock);
    pass(s);
    s->elsewhere += g_thread_self() != s->thread;
    s->opened[i] += !!(run->flags & HT_RUN_OPEN);
    s->closed[i] += !!(run->flags & HT_RUN_CLOSE);
    if (run->flags & HT_RUN_OPEN) {
        s->discarded[i] = 0;
    }
    s->in_order &= run->discarded >= s->discarded[i];
    s->discarded[i] = run->discarded;
    ht_run_iter_init(&it, run, s->classes);
    while (run->events && ht_run_next(&it, &ev)) {
        uint64_t n = ht_get_le64(ev.payload);

        s->in_order &= n >= s->next[i] && n == s->events[i] + run->discarded;
        s->next[i] = n + 1;
        s->events[i]++;
    }
    ht_cond_broadcast(&s->changed);
    ht_mutex_unlock(&s->lock);
}

static void sink_end(void *opaque)
{
    Sink *s = opaque;

    ht_mutex_lock(&s->lock);
    pass(s);
    s->ended++;
    ht_mutex_unlock(&s->lock);
}

static void sink_gone(void *opaque)
{
    Sink *s = opaque;

    ht_mutex_lock(&s->lock);
    s->gone++;
    ht_cond_broadcast(&s->changed);
    ht_mutex_unlock(&s->lock);
}

static const HtSinkOps sink_ops = {
    .begin = sink_begin,
    .learn = sink_learn,
    .deliver = sink_deliver,
    .end = sink_end,
    .gone = sink_gone,
};

typedef struct Fixture {
    HtClassTable *classes;
    HtDispatch *d;
    Sink sink[2];
    unsigned count;
    struct {
        HtStreamInfo info;
        HtBuffer *fill;
        uint64_t number;
    } stream[STREAMS];
    unsigned reports;
    unsigned rooms;
    unsigned progress;
    /* protects @later and @nr_later, the calls that on_later() has noted */
    HtMutex lock;
    HtCond more;
    struct {
        void (*fn)(void *arg);
        void *arg;
    } later[2];
    unsigned nr_later;
} Fixture;

/* the fixture, for callbacks without an argument */
static Fixture *fixture;

static void on_room(void *opaque)
{
    Fixture *f = opaque;

    ht_atomic_add(&f->rooms, 1);
}

static void on_progress(void *opaque)
{
    Fixture *f = opaque;

    ht_atomic_add(&f->progress, 1);
}

static void on_report(const char *name, const char *id, const char *text)
{
    g_assert_cmpstr(name, ==, "trace");
    g_assert_true(g_str_has_prefix(id, "sink"));
    g_assert_nonnull(strstr(text, "no room"));
    ht_atomic_add(&fixture->reports, 1);
}

static void on_later(void (*fn)(void *arg), void *arg)
{
    ht_mutex_lock(&fixture->lock);
    fixture->later[fixture->nr_later].fn = fn;
    fixture->later[fixture->nr_later++].arg = arg;
    ht_cond_signal(&fixture->more);
    ht_mutex_unlock(&fixture->lock);
}

static void add_class(Fixture *f, const char *name)
{
    HtClass *c;
    CtMessage m;
    bool added;

    ct_class(&m, name);
    ct_field(&m, "n", HT_FIELD_U64, 0, 0);
    g_assert_cmpint(ct_add(f->classes, &m, &added, &c), ==, HT_STATUS_OK);
    g_assert_true(added);
}

static void setup(Fixture *f, unsigned count, bool may_block)
{
    HtSinkConfig sinks[2];
    HtDispatchConfig cfg = {
        .name = "trace",
        .streams = STREAMS,
        .budget = BUDGET,
        .now = virtual_now,
        .room = on_room,
        .progress = on_progress,
        .report = on_report,
        .later = on_later,
        .opaque = f,
    };
    unsigned i;

    memset(f, 0, sizeof(*f));
    fixture = f;
    ht_mutex_init(&f->lock);
    ht_cond_init(&f->more);
    f->count = count;
    f->classes = ht_class_table_new();
    add_class(f, "number");
    cfg.classes = f->classes;
    for (i = 0; i < count; i++) {
        ht_mutex_init(&f->sink[i].lock);
        ht_cond_init(&f->sink[i].changed);
        f->sink[i].in_order = true;
        f->sink[i].classes = f->classes;
        sinks[i] = (HtSinkConfig) {
            .ops = &sink_ops,
            .session = &f->sink[i],
            .id = i ? "sink1" : "sink0",
            .may_block = may_block,
        };
    }
    f->d = ht_dispatch_new(&cfg, sinks, count);
    for (i = 0; i < STREAMS; i++) {
        f->stream[i].info = (HtStreamInfo) { .index = i, .vcpu = -1,
                                             .instance = i + 1 };
    }
}

static void mark(Fixture *f, unsigned stream, unsigned flag)
{
    HtRun run = {
        .stream = &f->stream[stream].info,
        .flags = flag,
        .classes = ht_class_table_count(f->classes),
    };

    ht_dispatch_post(f->d, &run, f->stream[stream].fill, false);
    ht_dispatch_wake(f->d);
}

/*
 * Post a run of @events consecutively numbered events of class @id. If @direct,
 * this thread may deliver the run.
 */
static void post(Fixture *f, unsigned stream, unsigned events, uint8_t id,
                 bool direct)
{
    HtRun run = {
        .stream = &f->stream[stream].info,
        .events = events,
        .size = events * 12,
        .classes = ht_class_table_count(f->classes),
    };
    uint8_t *p = ht_dispatch_reserve(f->d, &f->stream[stream].fill, run.size);

    run.data = p;
    while (events--) {
        ht_put_le32(p, id);
        ht_put_le64(p + 4, f->stream[stream].number++);
        p += 12;
    }
    ht_dispatch_post(f->d, &run, f->stream[stream].fill, direct);
    if (!direct) {
        ht_dispatch_wake(f->d);
    }
}

static void set_hang(Sink *s, bool hang)
{
    ht_mutex_lock(&s->lock);
    s->hang = hang;
    ht_cond_broadcast(&s->changed);
    ht_mutex_unlock(&s->lock);
}

static void wait_inside(Sink *s)
{
    ht_mutex_lock(&s->lock);
    while (!s->inside) {
        ht_cond_wait(&s->changed, &s->lock);
    }
    ht_mutex_unlock(&s->lock);
}

static void settle(Fixture *f)
{
    g_assert_true(ht_dispatch_wait_idle(f->d, ht_now_ns() + LIMIT_NS));
}

static void teardown(Fixture *f)
{
    unsigned i;

    for (i = 0; i < STREAMS; i++) {
        ht_dispatch_release(f->d, &f->stream[i].fill);
    }
    g_assert_null(ht_dispatch_end(f->d, ht_now_ns() + LIMIT_NS));
    ht_dispatch_free(f->d);
    for (i = 0; i < f->count; i++) {
        g_assert_cmpuint(f->sink[i].begun, ==, 1);
        g_assert_cmpuint(f->sink[i].ended, ==, 1);
        g_assert_cmpuint(f->sink[i].gone, ==, 1);
        g_assert_true(f->sink[i].in_order);
        ht_mutex_destroy(&f->sink[i].lock);
        ht_cond_destroy(&f->sink[i].changed);
    }
    ht_cond_destroy(&f->more);
    ht_mutex_destroy(&f->lock);
    ht_class_table_free(f->classes);
}

/*
 * Promise: each sink gets all events of each stream in order, and one opening
 * and one closing of the stream; runs posted before the start are also
 * delivered.
 */
static void test_order(void)
{
    HtSinkStats stats;
    unsigned i, k;
    Fixture f;

    setup(&f, 2, true);
    for (i = 0; i < STREAMS; i++) {
        mark(&f, i, HT_RUN_OPEN);
        post(&f, i, 3, 1, false);
    }
    g_assert_cmpuint(f.sink[0].events[0], ==, 0);
    ht_dispatch_start(f.d);
    for (k = 0; k < 1000; k++) {
        post(&f, k % STREAMS, 1 + k % 7, 1, false);
        if (k % 50 == 49) {
            settle(&f);
        }
    }
    for (i = 0; i < STREAMS; i++) {
        mark(&f, i, HT_RUN_CLOSE);
    }
    settle(&f);
    for (k = 0; k < 2; k++) {
        for (i = 0; i < STREAMS; i++) {
            g_assert_cmpuint(f.sink[k].events[i], ==, f.stream[i].number);
            g_assert_cmpuint(f.sink[k].opened[i], ==, 1);
            g_assert_cmpuint(f.sink[k].closed[i], ==, 1);
        }
        ht_dispatch_stats(f.d, k, &stats);
        g_assert_cmpuint(stats.discarded, ==, 0);
        g_assert_cmpuint(stats.queued, ==, 0);
        g_assert_true(stats.idle);
        g_assert_cmpuint(f.sink[k].elsewhere, ==, 0);
    }
    teardown(&f);
}

/*
 * Promise: if a sink hangs, its queue takes no more memory than its budget, and
 * only events that do not fit into this queue are discarded. When the sink
 * continues, a later run reports their number to it. The other sink gets all
 * events.  ht_dispatch_room() is true if one of the sinks has room.
 */
static void test_hang(void)
{
    HtSinkStats hung, other;
    uint32_t posted[HT_QUEUES_MAX];
    uint64_t total;
    unsigned k;
    Fixture f;

    setup(&f, 2, true);
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    settle(&f);
    set_hang(&f.sink[0], true);
    post(&f, 0, 1, 1, false);
    wait_inside(&f.sink[0]);
    for (k = 0; k < 200; k++) {
        post(&f, 0, 1000, 1, false);
        g_assert_true(ht_dispatch_room(f.d));
        ht_dispatch_posted(f.d, posted);
        while (g_strcmp0(ht_dispatch_behind(f.d, posted), "sink1") == 0 ||
               (ht_dispatch_stats(f.d, 1, &other), !other.idle)) {
            g_thread_yield();
        }
    }
    total = f.stream[0].number;
    ht_dispatch_stats(f.d, 0, &hung);
    g_assert_cmpuint(hung.queued, <=, BUDGET);
    g_assert_cmpuint(hung.discarded, >, 0);
    g_assert_cmpuint(hung.events + hung.discarded, ==, total);
    g_assert_cmpuint(other.events, ==, total);
    g_assert_cmpuint(other.discarded, ==, 0);
    g_assert_cmpstr(ht_dispatch_behind(f.d, posted), ==, "sink0");

    ht_dispatch_watch(f.d, true);
    set_hang(&f.sink[0], false);
    settle(&f);
    g_assert_cmpuint(ht_atomic_read(&f.progress), >, 0);
    g_assert_null(ht_dispatch_behind(f.d, posted));
    mark(&f, 0, HT_RUN_CLOSE);
    settle(&f);
    g_assert_cmpuint(f.sink[0].events[0], ==, hung.events);
    g_assert_cmpuint(f.sink[0].discarded[0], ==, hung.discarded);
    g_assert_cmpuint(f.sink[1].events[0], ==, total);
    teardown(&f);
}

/*
 * Promise: after ht_dispatch_room() returned false, the dispatcher calls
 * HtDispatchConfig.room once, when a sink has room again.
 */
static void test_room(void)
{
    HtSinkStats stats;
    Fixture f;

    setup(&f, 1, true);
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    settle(&f);
    set_hang(&f.sink[0], true);
    while (ht_dispatch_room(f.d)) {
        post(&f, 0, 1000, 1, false);
    }
    /*
     * ht_dispatch_room() is false from half of the budget on; the other half
     * is for runs that cannot wait
     */
    ht_dispatch_stats(f.d, 0, &stats);
    g_assert_cmpuint(stats.discarded, ==, 0);
    g_assert_cmpuint(stats.queued, <=, BUDGET / 2);
    g_assert_cmpuint(ht_atomic_read(&f.rooms), ==, 0);
    set_hang(&f.sink[0], false);
    settle(&f);
    g_assert_cmpuint(ht_atomic_read(&f.rooms), ==, 1);
    g_assert_true(ht_dispatch_room(f.d));
    teardown(&f);
}

/*
 * Promise: a dispatcher can be freed while a sink hangs. When the sink
 * continues, it gets its queued runs. Then its thread passes a function that
 * frees the sink to HtDispatchConfig.later, here on_later().
 */
static void test_left(void)
{
    unsigned i, n;
    uint64_t total;
    Fixture f;

    setup(&f, 2, true);
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    settle(&f);
    set_hang(&f.sink[0], true);
    for (i = 0; i < 20; i++) {
        post(&f, 0, 10, 1, false);
    }
    total = f.stream[0].number;
    wait_inside(&f.sink[0]);
    ht_dispatch_release(f.d, &f.stream[0].fill);
    /* sink 0 hangs; the deadline is now, so sink 1 may also be unfinished */
    g_assert_cmpstr(ht_dispatch_end(f.d, ht_now_ns()), ==, "sink0");
    ht_dispatch_free(f.d);
    g_assert_cmpuint(f.sink[0].gone, ==, 0);

    set_hang(&f.sink[0], false);
    n = 2 - f.sink[1].gone;
    ht_mutex_lock(&f.lock);
    while (f.nr_later < n) {
        g_assert_true(ht_cond_wait_until(&f.more, &f.lock,
                                         ht_now_ns() + LIMIT_NS));
    }
    ht_mutex_unlock(&f.lock);
    while (n--) {
        f.later[n].fn(f.later[n].arg);
    }
    for (i = 0; i < 2; i++) {
        g_assert_cmpuint(f.sink[i].events[0], ==, total);
        g_assert_cmpuint(f.sink[i].gone, ==, 1);
        g_assert_true(f.sink[i].in_order);
        ht_mutex_destroy(&f.sink[i].lock);
        ht_cond_destroy(&f.sink[i].changed);
    }
    ht_cond_destroy(&f.more);
    ht_mutex_destroy(&f.lock);
    ht_class_table_free(f.classes);
}

static void add_many(Fixture *f, unsigned count)
{
    while (count--) {
        g_autofree char *name = g_strdup_printf("c%u",
                                                ht_class_table_count(
                                                    f->classes) + 1);

        add_class(f, name);
    }
}

/*
 * Promise: however many classes a sink refuses, the dispatcher reports this at
 * most once in HT_DISPATCH_REPORT_NS. Events of refused classes are counted as
 * discarded.
 */
static void test_refused(void)
{
    HtSinkStats stats;
    Fixture f;

    setup(&f, 1, true);
    f.sink[0].refuse_from = 2;
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    add_many(&f, 2000);
    ht_dispatch_wake(f.d);
    settle(&f);
    g_assert_cmpuint(ht_atomic_read(&f.reports), ==, 1);
    post(&f, 0, 5, 1, false);
    post(&f, 0, 7, 100, false);
    post(&f, 0, 2, 1, false);
    settle(&f);
    ht_dispatch_stats(f.d, 0, &stats);
    g_assert_cmpuint(stats.discarded, ==, 7);
    g_assert_cmpuint(stats.events, ==, 7);
    g_assert_cmpuint(f.sink[0].events[0], ==, 7);
    g_assert_cmpuint(f.sink[0].discarded[0], ==, 7);
    g_assert_cmpuint(ht_atomic_read(&f.reports), ==, 1);

    __atomic_fetch_add(&clock_ns, HT_DISPATCH_REPORT_NS, __ATOMIC_SEQ_CST);
    add_many(&f, 1000);
    ht_dispatch_wake(f.d);
    settle(&f);
    g_assert_cmpuint(ht_atomic_read(&f.reports), ==, 2);
    teardown(&f);
}

/*
 * Promise: the dispatcher offers refused classes to a sink again at most once
 * in HT_DISPATCH_RETRY_NS. Such a retry ends after HT_DISPATCH_RETRY_FAILURES
 * refusals. Once the sink accepts all classes but one, a single retry registers
 * all the others.
 */
static void test_retry(void)
{
    unsigned asked;
    Fixture f;

    setup(&f, 1, true);
    f.sink[0].refuse_from = 2;
    f.sink[0].refuse_id = 3;
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    add_many(&f, 3000);
    ht_dispatch_wake(f.d);
    settle(&f);
    /* an event of a refused class: the refused classes are offered again */
    post(&f, 0, 1, 100, false);
    settle(&f);
    asked = f.sink[0].asked;
    /* no retry: HT_DISPATCH_RETRY_NS has not passed since the first retry */
    post(&f, 0, 1, 100, false);
    settle(&f);
    g_assert_cmpuint(f.sink[0].asked, ==, asked);
    __atomic_fetch_add(&clock_ns, HT_DISPATCH_RETRY_NS, __ATOMIC_SEQ_CST);
    post(&f, 0, 1, 100, false);
    settle(&f);
    g_assert_cmpuint(f.sink[0].asked, ==, asked + HT_DISPATCH_RETRY_FAILURES);
    g_assert_cmpuint(f.sink[0].events[0], ==, 0);

    ht_mutex_lock(&f.sink[0].lock);
    f.sink[0].refuse_from = 0;
    ht_mutex_unlock(&f.sink[0].lock);
    __atomic_fetch_add(&clock_ns, HT_DISPATCH_RETRY_NS, __ATOMIC_SEQ_CST);
    post(&f, 0, 1, 100, false);
    settle(&f);
    g_assert_cmpuint(f.sink[0].learnt, ==, 3000);
    g_assert_cmpuint(f.sink[0].events[0], ==, 1);
    g_assert_cmpuint(f.sink[0].discarded[0], ==, 3);
    teardown(&f);
}

/*
 * Promise: if a sink cannot block and its queue is empty, a thread that posts a
 * run with @direct also delivers the run to the sink. While the sink refuses a
 * class, only the sink's own thread delivers.
 */
static void test_direct(void)
{
    unsigned elsewhere;
    Fixture f;

    setup(&f, 1, false);
    ht_dispatch_start(f.d);
    mark(&f, 0, HT_RUN_OPEN);
    settle(&f);
    post(&f, 0, 3, 1, true);
    g_assert_cmpuint(f.sink[0].events[0], ==, 3);
    g_assert_cmpuint(f.sink[0].elsewhere, ==, 1);

    f.sink[0].refuse_from = 2;
    add_many(&f, 1);
    ht_dispatch_wake(f.d);
    settle(&f);
    elsewhere = f.sink[0].elsewhere;
    post(&f, 0, 2, 1, true);
    settle(&f);
    g_assert_cmpuint(f.sink[0].events[0], ==, 5);
    g_assert_cmpuint(f.sink[0].elsewhere, ==, elsewhere);
    teardown(&f);
}

typedef struct Poster {
    Fixture *f;
    unsigned stream;
    unsigned rounds;
} Poster;

static void *poster_thread(void *opaque)
{
    Poster *p = opaque;
    unsigned i;

    for (i = 0; i < p->rounds; i++) {
        post(p->f, p->stream, 1 + i % 5, 1, i % 3);
        if (i % 64 == 0) {
            ht_dispatch_room(p->f->d);
        }
    }
    return NULL;
}

/*
 * Promise: each event is delivered or counted as discarded, and ThreadSanitizer
 * finds no race. Several threads post, each to a stream of its own, while the
 * test's thread lets sinks hang and continue, and reads statistics.
 */
static void test_threads(void)
{
    Poster posters[STREAMS];
    GThread *threads[STREAMS];
    HtSinkStats stats;
    unsigned i, k;
    uint64_t total;
    Fixture f;

    setup(&f, 2, false);
    ht_dispatch_start(f.d);
    for (i = 0; i < STREAMS; i++) {
        mark(&f, i, HT_RUN_OPEN);
        posters[i] = (Poster) { &f, i, 2000 };
        threads[i] = g_thread_new("poster", poster_thread, &posters[i]);
    }
    for (k = 0; k < 200; k++) {
        set_hang(&f.sink[k % 2], k % 4 < 2);
        ht_dispatch_stats(f.d, k % 2, &stats);
        g_thread_yield();
    }
    set_hang(&f.sink[0], false);
    set_hang(&f.sink[1], false);
    for (i = 0; i < STREAMS; i++) {
        g_thread_join(threads[i]);
        mark(&f, i, HT_RUN_CLOSE);
    }
    settle(&f);
    for (k = 0; k < 2; k++) {
        total = 0;
        for (i = 0; i < STREAMS; i++) {
            g_assert_cmpuint(f.sink[k].events[i] + f.sink[k].discarded[i], ==,
                             f.stream[i].number);
            total += f.stream[i].number;
        }
        ht_dispatch_stats(f.d, k, &stats);
        g_assert_cmpuint(stats.events + stats.discarded, ==, total);
    }
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dispatch/order", test_order);
    g_test_add_func("/dispatch/hang", test_hang);
    g_test_add_func("/dispatch/room", test_room);
    g_test_add_func("/dispatch/left", test_left);
    g_test_add_func("/dispatch/refused", test_refused);
    g_test_add_func("/dispatch/retry", test_retry);
    g_test_add_func("/dispatch/direct", test_direct);
    g_test_add_func("/dispatch/threads", test_threads);
    return g_test_run();
}
