/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a program that drives LTTng-UST as the backend does, controlled
 * by test_lttng_events.py.  One command per line:
 *
 *   class PROVIDER NAME FIELD...   register; fields as in backend-testlib.h
 *   prepare PROVIDER NAME...       register up to HT_UST_BATCH events at once,
 *                                  each with the field u32:x
 *   enabled PROVIDER NAME          print whether a session or a trigger has
 *                                  enabled the event
 *   forget PROVIDER                forget the provider's classes, as if its
 *                                  device were created again
 *   emit PROVIDER NAME COUNT PAD   emit, and print the expected trace
 *   burst PROVIDER NAME COUNT PAD THREADS    each thread emits COUNT events,
 *                                            as fast as possible
 *   forever PROVIDER NAME PAD THREADS        start threads that emit events
 *                                            until the program ends
 *   exit MS                        exit, also while "forever" emits: status 0,
 *                                  or 3 if a thread is in LTTng after MS ms
 *
 * Last line of each reply except that to "exit": "ok", or "error" and a reason
 */
#include "hypertrace/base.h"
#include "hypertrace/lttng-ust-event.h"
#include "hypertrace/lttng-ust-thread.h"
#include "backend-testlib.h"

typedef struct Known {
    HtClass *cls;
    HtUstEvent *event;
} Known;

static GHashTable *tables;      /* HtClassTable by name of the provider */
static GHashTable *known;       /* Known by "provider:class" */

static const HtStreamInfo stream = { .index = 3, .vcpu = -1, .instance = 1 };

static HtClassTable *table(char **arg)
{
    HtClassTable *t = g_hash_table_lookup(tables, arg[1]);

    if (!t) {
        t = ht_class_table_new();
        g_hash_table_insert(tables, g_strdup(arg[1]), t);
    }
    return t;
}

static void do_prepare(char **arg)
{
    HtClass *c[HT_UST_BATCH];
    unsigned i;

    for (i = 0; arg[2 + i]; i++) {
        c[i] = tl_class(table(arg), arg[2 + i], "u32:x");
    }
    ht_ust_events_prepare(arg[1], c, i);
}

static char *do_class(char **arg)
{
    g_autofree char *spec = g_strjoinv(" ", arg + 3);
    char *why = NULL;
    Known *k;

    k = g_new0(Known, 1);
    k->cls = tl_class(table(arg), arg[2], spec);
    k->event = ht_ust_event_get(arg[1], k->cls, &why);
    if (!k->event) {
        g_free(k);
        return why;
    }
    g_hash_table_insert(known, g_strdup_printf("%s:%s", arg[1], arg[2]), k);
    printf("registered %s\n", ht_ust_event_name(k->event));
    printf("reachable %s\n", ht_ust_timed_out() ? "no" : "yes");
    return NULL;
}

static const Known *find(char **arg)
{
    g_autofree char *key = g_strdup_printf("%s:%s", arg[1], arg[2]);
    const Known *k = g_hash_table_lookup(known, key);

    g_assert_nonnull(k);
    return k;
}

static void deliver(const Known *k, char **arg, const HtRun *run)
{
    static HtUstEvent *events[HT_CLASSES_MAX + 1];

    events[k->cls->id] = k->event;
    ht_ust_deliver(run, table(arg), events);
}

static void do_emit(char **arg)
{
    const Known *k = find(arg);
    unsigned i, count = atoi(arg[3]), pad = atoi(arg[4]);
    static GRand *rand;
    HtRunIter it;
    HtEvent ev;
    TlRun r;

    rand = rand ?: g_rand_new();
    tl_run_init(&r, &stream);
    tl_run_begin(&r, 0, 0);
    for (i = 0; i < count; i++) {
        tl_run_event(&r, k->cls, 1000 * (i + 1), rand, pad);
    }
    ht_run_iter_init(&it, tl_run_end(&r), table(arg));
    for (i = 0; ht_run_next(&it, &ev); i++) {
        char *text = r.text->pdata[i];

        printf("expect %s:%s { stream = %u, vcpu = %d, guest_ns = %" PRIu64
               "%s%s }\n", arg[1], ht_ust_event_name(k->event), stream.index,
               stream.vcpu, ev.ns, *text ? ", " : "", text);
    }
    deliver(k, arg, &r.run);
    tl_run_clear(&r);
}

typedef struct Burst {
    const HtClassTable *classes;
    HtUstEvent **events;
    uint8_t *payload;
    size_t size;
    uint32_t id;
    unsigned count;
    unsigned thread;
} Burst;

/*
 * Emit @count runs of one event each. Context: a thread of "burst" or "forever"
 */
static void *burst_thread(void *opaque)
{
    Burst *b = opaque;
    const HtStreamInfo info = { .index = b->thread, .vcpu = b->thread };
    uint8_t *data = g_malloc(HT_EVENT_HEADER_EXT + b->size);
    HtRun run = { .stream = &info, .events = 1, .data = data,
                  .size = HT_EVENT_HEADER_EXT + b->size };
    unsigned i;

    memcpy(data + HT_EVENT_HEADER_EXT, b->payload, b->size);
    for (i = 0; i < b->count; i++) {
        ht_event_header(data, b->id, i, true);
        ht_ust_deliver(&run, b->classes, b->events);
    }
    g_free(data);
    return NULL;
}

/*
 * Prepare a burst: make the event with random values that each thread repeats.
 * Its payload is never freed: threads may use it until the process ends.
 */
static Burst burst(char **arg, unsigned pad)
{
    const Known *k = find(arg);
    GRand *rand = g_rand_new();
    HtUstEvent **events;
    HtRunIter it;
    HtEvent ev = { };
    TlRun r;

    tl_run_init(&r, &stream);
    tl_run_begin(&r, 0, 0);
    tl_run_event(&r, k->cls, 1, rand, pad);
    ht_run_iter_init(&it, tl_run_end(&r), table(arg));
    g_assert_true(ht_run_next(&it, &ev));
    g_rand_free(rand);
    events = g_new0(HtUstEvent *, HT_CLASSES_MAX + 1);
    events[k->cls->id] = k->event;
    return (Burst) { .classes = table(arg), .events = events,
                     .id = k->cls->id, .size = ev.size,
                     .payload = (uint8_t *)ev.payload };
}

static GThread **burst_start(Burst b, unsigned count, unsigned threads)
{
    GThread **thread = g_new0(GThread *, threads);
    unsigned i;

    b.count = count;
    for (i = 0; i < threads; i++) {
        b.thread = i;
        thread[i] = g_thread_new("burst", burst_thread,
                                 g_memdup2(&b, sizeof(b)));
    }
    return thread;
}

static void do_burst(char **arg)
{
    unsigned i, count = atoi(arg[3]), threads = atoi(arg[5]);
    Burst b = burst(arg, atoi(arg[4]));
    gint64 start = g_get_monotonic_time();
    g_autofree GThread **thread = burst_start(b, count, threads);

    for (i = 0; i < threads; i++) {
        g_thread_join(thread[i]);
    }
    printf("took %.1f\n",
           (g_get_monotonic_time() - start) * 1000.0 / count / threads);
}

static void do_exit(char **arg)
{
    if (!ht_ust_end(atoi(arg[1]))) {
        _exit(3);
    }
    exit(0);
}

int main(void)
{
    char line[4096];

    tables = g_hash_table_new(g_str_hash, g_str_equal);
    known = g_hash_table_new(g_str_hash, g_str_equal);
    while (fgets(line, sizeof(line), stdin)) {
        g_auto(GStrv) arg = g_strsplit(g_strstrip(line), " ", 0);
        g_autofree char *why = NULL;

        if (!strcmp(arg[0], "class")) {
            why = do_class(arg);
        } else if (!strcmp(arg[0], "prepare")) {
            do_prepare(arg);
        } else if (!strcmp(arg[0], "enabled")) {
            printf("enabled %s\n",
                   ht_ust_event_enabled(find(arg)->event) ? "yes" : "no");
        } else if (!strcmp(arg[0], "forget")) {
            g_hash_table_remove(tables, arg[1]);
        } else if (!strcmp(arg[0], "emit")) {
            do_emit(arg);
        } else if (!strcmp(arg[0], "burst")) {
            do_burst(arg);
        } else if (!strcmp(arg[0], "forever")) {
            g_free(burst_start(burst(arg, atoi(arg[3])), UINT_MAX,
                               atoi(arg[4])));
        } else if (!strcmp(arg[0], "exit")) {
            do_exit(arg);
        } else {
            why = g_strdup("no such command");
        }
        printf("%s %s\n", why ? "error" : "ok", why ?: "");
        fflush(stdout);
    }
    return 0;
}
