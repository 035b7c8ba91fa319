/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from the records of a ring to the runs that sinks take
 *
 * A processor of a ring is a stream, for each boot of its kernel another one.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "ftrace.h"
#include "trace.h"

/* What runs are posted at; with one more event it fits a buffer of sinks. */
#define RUN_BYTES   (48 * KiB)
/* An event that needs more is delivered as its bytes, of at most 64 KiB. */
#define EVENT_MAX   (60 * KiB)
/*
 * A guest can make its ring look like another boot's at each look, and each
 * stream can be a file: as many are opened as have all processors of one boot,
 * and after these as many a minute.
 */
#define OPEN_NS     (60 * NANOSECONDS_PER_SECOND / HT_FTRACE_STREAMS)
/* As many as a stream of a device can have lost */
#define LOST_MAX    ((UINT64_C(1) << 56) - 1)

/* The id of an event's class; 0 if there can be none */
static uint16_t add_class(HypertraceFtrace *ft, const char *name,
                          const HtFtEvent *e)
{
    g_autofree struct ht_msg_class *msg = g_malloc0(HT_MESSAGE_MAX);
    HtClass *own = ht_ft_class_new(name, e), *c;
    size_t size = ht_class_encode(own, msg);
    bool added;

    ht_class_free(own);
    if (ht_class_table_add(ft->trace->classes, msg, size, &added, &c) !=
        HT_STATUS_OK) {
        return 0;
    }
    if (added && ft->sinks) {
        ht_sinks_learn(ft->sinks);
    }
    return c->id;
}

bool ht_ftrace_add_raw_class(HypertraceFtrace *ft, Error **errp)
{
    ft->raw_class = add_class(ft, "ftrace.raw", NULL);
    if (!ft->raw_class) {
        error_setg(errp, "'%s' has %u event classes already, which is as many"
                   " as are possible", ft->trace->name, HT_CLASSES_MAX);
        return false;
    }
    return true;
}

static uint16_t class_of(HypertraceFtrace *ft, uint16_t type)
{
    uint16_t *id = &ft->class_of[type];

    if (!*id) {
        const HtFtEvent *e = ft->formats ?
            ht_ft_formats_get(ft->formats, type) : NULL;

        *id = e ? add_class(ft, e->name, e) : 0;
        *id = *id ?: ft->raw_class;
    }
    return *id;
}

static void post(HtFtWatched *w, HtFtStream *s, unsigned flags, uint64_t ns)
{
    HtSinks *k = w->ft->sinks;
    HtRun run = {
        .stream = &s->info,
        .flags = flags,
        .events = s->events,
        .size = s->run->len,
        .begin_ns = s->events ? s->begin_ns : ns,
        .end_ns = s->events ? s->end_ns : ns,
        .counter = s->counter,
        .discarded = s->discarded,
        .classes = ht_class_table_count(w->ft->trace->classes),
    };

    if (s->events) {
        uint8_t *p = ht_sinks_reserve(k, &s->fill, s->run->len);

        memcpy(p, s->run->data, s->run->len);
        run.data = p;
    }
    ht_sinks_post(k, &run, s->fill, true);
    w->ft->counts.events += s->events;
    g_byte_array_set_size(s->run, 0);
    s->events = 0;
}

static void flush(HtFtWatched *w, HtFtStream *s)
{
    if (s->events) {
        post(w, s, s->cut ? HT_RUN_CUT : 0, 0);
        s->cut = false;
    }
}

/* The clock of a piece: of the newest segment, or of the one before */
static HtFtTime *time_of(HtFtWatched *w, const HtFtPiece *p)
{
    return &w->time[p->epoch != w->epoch || p->segment != w->segment];
}

static bool may_open(HypertraceFtrace *ft)
{
    int64_t now = get_clock(), used = MAX(ft->open_ns, now);

    if (used - now > (HT_FTRACE_STREAMS - 1) * OPEN_NS) {
        return false;
    }
    ft->open_ns = used + OPEN_NS;
    return true;
}

static void open_stream(HtFtWatched *w, HtFtStream *s, uint32_t index,
                        const HtFtPiece *p)
{
    set_bit(index, w->ft->used);
    s->info = (HtStreamInfo) {
        .index = index,
        .vcpu = p->cpu,
        .instance = ++w->ft->trace->instances,
    };
    snprintf(s->info.name, sizeof(s->info.name), "ring%u.cpu%" PRIu32,
             w->number, p->cpu);
    trace_hypertrace_stream_open(w->ft->trace->name, index, s->info.instance);
    s->open = true;
    s->epoch = p->epoch;
    s->discarded = 0;
    s->end_ns = 0;
    s->run = g_byte_array_sized_new(RUN_BYTES);
    post(w, s, HT_RUN_OPEN,
         ht_ft_time_host(time_of(w, p), p, p->begin_ns));
    s->cut = true;
}

static void close_stream(HtFtWatched *w, HtFtStream *s)
{
    if (!s->open) {
        return;
    }
    flush(w, s);
    trace_hypertrace_stream_close(w->ft->trace->name, s->info.index,
                                  s->info.instance);
    post(w, s, HT_RUN_CLOSE, s->end_ns);
    ht_sinks_release(w->ft->sinks, &s->fill);
    g_byte_array_unref(s->run);
    clear_bit(s->info.index, w->ft->used);
    s->open = false;
}

/* The stream of a piece, maybe that of the boot before; NULL if too many */
static HtFtStream *stream_of(HtFtWatched *w, const HtFtPiece *p)
{
    HtFtStream **s = &w->streams[p->cpu];
    unsigned long index;

    if (!*s) {
        *s = g_new0(HtFtStream, 1);
    }
    if ((*s)->open && (*s)->epoch == p->epoch) {
        return *s;
    }
    if (!may_open(w->ft)) {
        if (!(*s)->open) {
            return NULL;
        }
        flush(w, *s);
        (*s)->epoch = p->epoch;
        (*s)->cut = true;
        return *s;
    }
    close_stream(w, *s);
    index = find_first_zero_bit(w->ft->used, HT_FTRACE_STREAMS);
    if (index == HT_FTRACE_STREAMS) {
        return NULL;
    }
    open_stream(w, *s, index, p);
    return *s;
}

static void emit(HtFtWatched *w, HtFtStream *s, const HtFtRecord *r,
                 uint64_t ns)
{
    HypertraceFtrace *ft = w->ft;
    uint16_t type = ht_ft_event_type(r->data), id = class_of(ft, type);
    const HtFtEvent *e = id == ft->raw_class ? NULL :
                         ht_ft_formats_get(ft->formats, type);
    guint begin = s->run->len;
    uint64_t last = s->cut && !s->events ? ns : s->end_ns;

    ht_run_put_header(s->run, id, ns, last);
    if (e && !ht_ft_class_payload(s->run, e, r, EVENT_MAX)) {
        g_byte_array_set_size(s->run, begin);
        id = ft->raw_class;
        e = NULL;
        ht_run_put_header(s->run, id, ns, last);
    }
    if (!e) {
        ht_ft_class_payload(s->run, NULL, r, SIZE_MAX);
        ft->counts.raw++;
    }
    if (!s->events++) {
        s->begin_ns = ns;
        s->counter = r->ns;
    }
    s->end_ns = ns;
}

/* An estimate is the guest's word: the sum stays within reason. */
static uint64_t add(uint64_t lost, uint64_t more)
{
    return lost + MIN(more, LOST_MAX - MIN(lost, LOST_MAX));
}

static void deliver(HtFtWatched *w, const HtFtPiece *p, HtFtTime *time)
{
    HypertraceFtrace *ft = w->ft;
    HtFtStream *s = stream_of(w, p);
    uint64_t bound = ht_ft_time_bound(time);
    HtFtRecord r;
    HtFtIter it;

    if (bound != UINT64_MAX) {
        w->worst_ns = MAX(w->worst_ns, bound);
    }
    if (p->flags & HT_FT_PIECE_LOST) {
        ft->counts.gaps++;
        ft->counts.lost = add(ft->counts.lost, p->lost_estimate);
    }
    if (!s) {
        ft->counts.lost += p->events;
        return;
    }
    if (p->flags & HT_FT_PIECE_LOST) {
        flush(w, s);
        s->discarded = add(s->discarded, MAX(p->lost_estimate, 1));
        s->cut = true;
    }
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        uint64_t ns = ht_ft_time_host(time, p, r.ns);

        if (s->run->len > RUN_BYTES) {
            flush(w, s);
        }
        emit(w, s, &r, MAX(ns, s->end_ns));
    }
}

/* HtFtFollowOps.ahead */
static void ahead(void *opaque, const HtFtPiece *p)
{
    HtFtWatched *w = opaque;
    HtFtBounds bounds;
    HtFtTime *time;
    uint64_t steps;

    if (p->epoch > w->epoch ||
        (p->epoch == w->epoch && p->segment > w->segment)) {
        w->ft->counts.boots += w->taken ? p->epoch - w->epoch : 0;
        w->epoch = p->epoch;
        w->segment = p->segment;
        w->time[1] = w->time[0];
        ht_ft_time_reset(&w->time[0]);
    }
    time = time_of(w, p);
    if (ht_ft_time_bounds(p, &bounds)) {
        steps = time->steps;
        ht_ft_time_add(time, &bounds);
        w->ft->counts.steps += time->steps - steps;
    }
}

/* HtFtFollowOps.piece */
static void piece(void *opaque, const HtFtPiece *p)
{
    HtFtWatched *w = opaque;

    if (w->taken && w->ft->sinks) {
        deliver(w, p, time_of(w, p));
    }
}

/* HtFtFollowOps.now */
static uint64_t now(void *opaque)
{
    return get_clock();
}

const HtFtFollowOps ht_ftrace_follow_ops = {
    .ahead = ahead,
    .piece = piece,
    .now = now,
};

void ht_ftrace_flush(HtFtWatched *w)
{
    unsigned i;

    for (i = 0; i < ht_ft_follow_ring(w->follow)->cpus; i++) {
        if (w->streams[i] && w->streams[i]->open) {
            flush(w, w->streams[i]);
        }
    }
}

void ht_ftrace_lose(HtFtWatched *w)
{
    unsigned i;

    for (i = 0; i < HT_FT_CPUS_MAX; i++) {
        if (w->streams[i] && w->streams[i]->open) {
            flush(w, w->streams[i]);
            w->streams[i]->discarded = add(w->streams[i]->discarded, 1);
        }
    }
    w->ft->counts.gaps++;
}

void ht_ftrace_close(HtFtWatched *w)
{
    unsigned i;

    for (i = 0; i < HT_FT_CPUS_MAX; i++) {
        if (w->streams[i]) {
            close_stream(w, w->streams[i]);
            g_clear_pointer(&w->streams[i], g_free);
        }
    }
}
