/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: check a private copy of a guest's events, and convert their times
 * to host time
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/walk.h"

/*
 * The segment that converted the last event, and the counters for which it is
 * valid
 */
typedef struct Converter {
    const HtTimeMap *map;
    const HtTimeSegment *seg;
    uint64_t begin;             /* @seg is valid for counters [begin, end) */
    uint64_t end;
    /*
     * host time up to which dates are accepted without a call of HtTimeMap.now;
     * if @looked, the result of that call
     */
    uint64_t latest;
    /* this walk has called HtTimeMap.now */
    bool looked;
} Converter;

static void converter_seek(Converter *cv, uint64_t counter)
{
    const HtTimeMap *m = cv->map;
    unsigned i = m->count;

    while (i > 1 && counter < m->seg[i - 1].counter) {
        i--;
    }
    cv->seg = &m->seg[i - 1];
    cv->begin = i > 1 ? cv->seg->counter : 0;
    cv->end = i < m->count ? m->seg[i].counter : UINT64_MAX;
}

/*
 * Limit an event's time to the host's present time.  A later time is wrong: for
 * example, the counter jumped forward, and no reading has shown this yet.  The
 * first call in a walk reads the host's clock, after all events of the walk
 * were committed.  Without HtTimeMap.now there is no limit.
 */
static uint64_t not_later(Converter *cv, uint64_t ns)
{
    if (!cv->map->now) {
        return ns;
    }
    if (!cv->looked) {
        cv->looked = true;
        cv->latest = cv->map->now();
    }
    return MIN(ns, cv->latest);
}

static inline uint64_t convert(Converter *cv, uint64_t counter)
{
    uint64_t ns;

    if (G_UNLIKELY(cv->map->count == 0)) {
        return 0;
    }
    if (G_UNLIKELY(!cv->seg || counter < cv->begin || counter >= cv->end)) {
        converter_seek(cv, counter);
    }
    ns = ht_time_segment_to_ns(cv->seg, counter);
    return G_LIKELY(ns <= cv->latest) ? ns : not_later(cv, ns);
}

HtWalkStop ht_walk(HtWalk *w, const HtClassTable *classes,
                   const HtTimeMap *time, uint8_t *buf, size_t len,
                   HtWalkRun *run)
{
    Converter cv = { .map = time, .latest = time->latest };
    HtWalkStop stop = HT_WALK_END;
    uint64_t clock = w->clock, last_ns = w->ns;
    uint32_t events = 0;
    size_t pos = 0;

    memset(run, 0, sizeof(*run));
    while (pos < len) {
        uint8_t *p = buf + pos;
        size_t avail = len - pos, header;
        const HtClass *c;
        uint64_t event_clock, ns;
        ssize_t payload;
        uint32_t id, word;

        if (w->most && events == w->most) {
            stop = HT_WALK_MOST;
            break;
        }
        if (avail < HT_EVENT_HEADER) {
            stop = HT_WALK_BAD_LENGTH;
            break;
        }
        id = p[0];
        header = HT_EVENT_HEADER;
        if (G_UNLIKELY(id >= HT_ID_WIDE)) {
            header = id == HT_ID_WIDE ? HT_EVENT_HEADER_WIDE :
                                        HT_EVENT_HEADER_EXT;
            if (avail < header) {
                stop = HT_WALK_BAD_LENGTH;
                break;
            }
            id = header == HT_EVENT_HEADER_WIDE ? ht_get_le16(p + 1) :
                                                  ht_get_le32(p + 1);
            if (id > HT_CLASSES_MAX) {
                stop = HT_WALK_BAD_HEADER;
                break;
            }
        }
        /*
         * The last four bytes of a compact or a wide header: 8 bits of the id,
         * then 24 bits of the clock
         */
        word = ht_get_le32(p + header - 4);
        event_clock = clock + (((word >> 8) - (uint32_t)clock) & HT_CLOCK_MASK);
        if (G_UNLIKELY(event_clock - clock > HT_CLOCK_MASK / 2)) {
            /* the counter went back */
            event_clock -= HT_CLOCK_MASK + 1;
        }
        if (G_UNLIKELY(header == HT_EVENT_HEADER_EXT)) {
            event_clock = ht_get_le64(p + 5);
        }
        /* Pairs with the store-releases in class-table.c. */
        c = ht_atomic_load_acquire(&classes->by_id[id]);
        if (G_UNLIKELY(!c)) {
            stop = HT_WALK_BAD_ID;
            break;
        }
        payload = ht_class_payload(c, p + header, avail - header);
        if (G_UNLIKELY(payload < 0)) {
            stop = HT_WALK_BAD_LENGTH;
            break;
        }

        ns = convert(&cv, event_clock);
        ns = MAX(ns, last_ns);
        if (G_LIKELY(header != HT_EVENT_HEADER_EXT)) {
            /*
             * A reader computes the event's time from the low 24 bits and from
             * the previous event's time, so the two times must differ by less
             * than 2^24 ns.
             */
            if (G_UNLIKELY(ns - last_ns > HT_CLOCK_MASK && !w->cut)) {
                w->cut = true;
                stop = HT_WALK_CUT;
                break;
            }
            ht_put_le32(p + header - 4, (word & 0xff) | (uint32_t)ns << 8);
        } else {
            ht_put_le64(p + 5, ns);
        }
        if (G_UNLIKELY(event_clock < clock)) {
            w->backward++;
        }
        w->cut = false;
        clock = event_clock;
        last_ns = ns;
        if (events++ == 0) {
            run->begin_ns = ns;
            run->counter = event_clock;
        }
        pos += header + payload;
    }

    run->size = pos;
    run->events = events;
    run->end_ns = last_ns;
    w->clock = clock;
    w->ns = last_ns;
    return stop;
}

const char *ht_walk_stop_str(HtWalkStop stop)
{
    switch (stop) {
    case HT_WALK_END:
        return "end";
    case HT_WALK_CUT:
        return "cut";
    case HT_WALK_MOST:
        return "enough";
    case HT_WALK_BAD_ID:
        return "an event of an unknown class";
    case HT_WALK_BAD_LENGTH:
        return "an event reaches past the committed bytes";
    case HT_WALK_BAD_HEADER:
        return "an impossible event header";
    }
    return "?";
}
