/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert the records of ftrace rings to runs of typed events
 */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-runs.h"

/* A run of more than this number of bytes is posted before the next event. */
#define RUN_BYTES   (48 * 1024)
/*
 * Maximum payload of a formatted event, in bytes; a larger event is delivered
 * as plain bytes.
 */
#define EVENT_MAX   (60 * 1024)
/*
 * Minimum mean interval in us between new streams.  HT_FT_STREAMS of them may
 * be opened at once, which suffices for all processors of a boot.  The rate is
 * limited because a guest can make its ring look like that of another boot at
 * each poll, and each stream can be a file.
 */
#define OPEN_US     (60 * G_TIME_SPAN_SECOND / HT_FT_STREAMS)
/* Maximum count of a stream's lost events: HT_LOST_MAX - 1, as for a device */
#define LOST_MAX    ((UINT64_C(1) << 56) - 1)

/*
 * The stream of one processor.  @epoch is the ring's epoch that the stream
 * shows.  If @cut is set, the next event starts a new packet: see HT_RUN_CUT.
 * @run holds the events that were not posted yet; @begin_ns and @counter are
 * the host's and the guest's time of the first of them.
 */
struct HtFtStream {
    HtStreamInfo info;
    bool open;
    bool cut;
    uint32_t epoch;
    HtBuffer *fill;
    GByteArray *run;
    uint32_t events;
    uint64_t begin_ns;
    uint64_t counter;
    uint64_t end_ns;
    uint64_t discarded;
};

/* Add an event's class; returns its id, or 0 if the table is full */
static uint16_t add_class(HtFtRuns *r, const char *name, const HtFtEvent *e)
{
    g_autofree struct ht_msg_class *msg = g_malloc0(HT_MESSAGE_MAX);
    HtClass *own = ht_ft_class_new(name, e), *c;
    size_t size = ht_class_encode(own, msg);
    bool added;

    ht_class_free(own);
    if (ht_class_table_add(r->classes, msg, size, &added, &c) !=
        HT_STATUS_OK) {
        return 0;
    }
    if (added) {
        r->ops->learn(r->opaque);
    }
    return c->id;
}

bool ht_ft_runs_init(HtFtRuns *r)
{
    r->raw_class = add_class(r, "ftrace.raw", NULL);
    return r->raw_class;
}

static uint16_t class_of(HtFtRuns *r, uint16_t type)
{
    uint16_t *id = &r->class_of[type];

    if (!*id) {
        const HtFtEvent *e = r->formats ?
            ht_ft_formats_get(r->formats, type) : NULL;

        *id = e ? add_class(r, e->name, e) : 0;
        *id = *id ?: r->raw_class;
    }
    return *id;
}

static void post(HtFtFeed *f, HtFtStream *s, unsigned flags, uint64_t ns)
{
    HtFtRuns *r = f->runs;
    HtRun run = {
        .stream = &s->info,
        .flags = flags,
        .events = s->events,
        .data = s->events ? s->run->data : NULL,
        .size = s->run->len,
        .begin_ns = s->events ? s->begin_ns : ns,
        .end_ns = s->events ? s->end_ns : ns,
        .counter = s->counter,
        .discarded = s->discarded,
        .classes = ht_class_table_count(r->classes),
    };

    r->ops->post(r->opaque, &run, &s->fill);
    g_byte_array_set_size(s->run, 0);
    s->events = 0;
}

static void flush(HtFtFeed *f, HtFtStream *s)
{
    if (s->events) {
        post(f, s, s->cut ? HT_RUN_CUT : 0, 0);
        s->cut = false;
    }
}

/*
 * Get the clock relation of a piece: that of the newest segment, or of the
 * previous one
 */
static HtFtTime *time_of(HtFtFeed *f, const HtFtPiece *p)
{
    return &f->time[p->epoch != f->epoch || p->segment != f->segment];
}

static bool may_open(HtFtRuns *r)
{
    int64_t now = g_get_monotonic_time(), used = MAX(r->open_us, now);

    if (used - now > (HT_FT_STREAMS - 1) * OPEN_US) {
        return false;
    }
    r->open_us = used + OPEN_US;
    return true;
}

static void open_stream(HtFtFeed *f, HtFtStream *s, uint32_t index,
                        const HtFtPiece *p)
{
    f->runs->used[index] = true;
    s->info = (HtStreamInfo) {
        .index = index,
        .vcpu = p->cpu,
        .instance = ++*f->runs->instances,
    };
    snprintf(s->info.name, sizeof(s->info.name), "ring%u.cpu%" PRIu32,
             f->number, p->cpu);
    s->open = true;
    s->epoch = p->epoch;
    s->discarded = 0;
    s->end_ns = 0;
    s->run = g_byte_array_sized_new(RUN_BYTES);
    post(f, s, HT_RUN_OPEN, ht_ft_time_host(time_of(f, p), p, p->begin_ns));
    s->cut = true;
}

static void close_stream(HtFtFeed *f, HtFtStream *s)
{
    if (!s->open) {
        return;
    }
    flush(f, s);
    post(f, s, HT_RUN_CLOSE, s->end_ns);
    f->runs->ops->release(f->runs->opaque, &s->fill);
    g_byte_array_unref(s->run);
    f->runs->used[s->info.index] = false;
    s->open = false;
}

/*
 * Get the stream of a piece.  If the rate limit forbids a new stream for a new
 * boot, the events go to the previous boot's stream, after a cut.  Returns NULL
 * if the processor has no open stream, and a new one is forbidden by the rate
 * limit or by HT_FT_STREAMS.
 */
static HtFtStream *stream_of(HtFtFeed *f, const HtFtPiece *p)
{
    HtFtStream **s = &f->streams[p->cpu];
    uint32_t index;

    if (!*s) {
        *s = g_new0(HtFtStream, 1);
        f->cpus = MAX(f->cpus, p->cpu + 1);
    }
    if ((*s)->open && (*s)->epoch == p->epoch) {
        return *s;
    }
    if (!may_open(f->runs)) {
        if (!(*s)->open) {
            return NULL;
        }
        flush(f, *s);
        (*s)->epoch = p->epoch;
        (*s)->cut = true;
        return *s;
    }
    close_stream(f, *s);
    for (index = 0; index < HT_FT_STREAMS && f->runs->used[index];) {
        index++;
    }
    if (index == HT_FT_STREAMS) {
        return NULL;
    }
    open_stream(f, *s, index, p);
    return *s;
}

static void emit(HtFtRuns *runs, HtFtStream *s, const HtFtRecord *r,
                 uint64_t ns)
{
    uint16_t type = ht_ft_event_type(r->data), id = class_of(runs, type);
    const HtFtEvent *e = id == runs->raw_class ? NULL :
                         ht_ft_formats_get(runs->formats, type);
    guint begin = s->run->len;
    uint64_t last = s->cut && !s->events ? ns : s->end_ns;

    ht_run_put_header(s->run, id, ns, last);
    if (e && !ht_ft_class_payload(s->run, e, r, EVENT_MAX)) {
        g_byte_array_set_size(s->run, begin);
        id = runs->raw_class;
        e = NULL;
        ht_run_put_header(s->run, id, ns, last);
    }
    if (!e) {
        ht_ft_class_payload(s->run, NULL, r, SIZE_MAX);
    }
    if (!s->events++) {
        s->begin_ns = ns;
        s->counter = r->ns;
    }
    s->end_ns = ns;
}

/*
 * Saturate at LOST_MAX: the guest can make the estimated numbers as large as it
 * wants.
 */
static uint64_t add(uint64_t lost, uint64_t more)
{
    return lost + MIN(more, LOST_MAX - MIN(lost, LOST_MAX));
}

void ht_ft_feed_piece(HtFtFeed *f, const HtFtPiece *p)
{
    HtFtRuns *runs = f->runs;
    HtFtTime *time = time_of(f, p);
    HtFtStream *s = stream_of(f, p);
    HtFtRecord r;
    HtFtIter it;

    if (!s) {
        runs->dropped = add(runs->dropped, p->events);
        if (p->flags & HT_FT_PIECE_LOST) {
            runs->dropped = add(runs->dropped, MAX(p->lost_estimate, 1));
        }
        return;
    }
    if (p->flags & HT_FT_PIECE_LOST) {
        flush(f, s);
        s->discarded = add(s->discarded, MAX(p->lost_estimate, 1));
        s->cut = true;
    }
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        uint64_t ns = ht_ft_time_host(time, p, r.ns);

        if (s->run->len > RUN_BYTES) {
            flush(f, s);
        }
        emit(runs, s, &r, MAX(ns, s->end_ns));
    }
}

void ht_ft_feed_ahead(HtFtFeed *f, const HtFtPiece *p)
{
    HtFtBounds bounds;
    HtFtTime *time;

    if (p->epoch > f->epoch ||
        (p->epoch == f->epoch && p->segment > f->segment)) {
        f->epoch = p->epoch;
        f->segment = p->segment;
        f->time[1] = f->time[0];
        ht_ft_time_reset(&f->time[0]);
    }
    time = time_of(f, p);
    if (ht_ft_time_bounds(p, &bounds)) {
        ht_ft_time_add(time, &bounds);
    }
}

void ht_ft_feed_init(HtFtFeed *f, HtFtRuns *r, unsigned number)
{
    *f = (HtFtFeed) { .runs = r, .number = number };
    ht_ft_time_reset(&f->time[0]);
}

void ht_ft_feed_begin(HtFtFeed *f)
{
    if (f->epoch || f->segment) {
        ht_ft_time_reset(&f->time[0]);
    }
    f->epoch = f->segment = 0;
}

void ht_ft_feed_flush(HtFtFeed *f)
{
    unsigned i;

    for (i = 0; i < f->cpus; i++) {
        if (f->streams[i] && f->streams[i]->open) {
            flush(f, f->streams[i]);
        }
    }
}

void ht_ft_feed_close(HtFtFeed *f)
{
    unsigned i;

    for (i = 0; i < f->cpus; i++) {
        if (f->streams[i]) {
            close_stream(f, f->streams[i]);
            g_clear_pointer(&f->streams[i], g_free);
        }
    }
}
