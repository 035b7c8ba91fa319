/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the gaps of a recording
 *
 * The recording is read once in advance to find all gaps: a processor's event
 * reports a gap only at the gap's end. By then, the caller has already handled
 * events of other processors that lie within the gap.
 */
#include "model/gaps.h"

/*
 * Number of gaps of a processor after which further gaps are merged; see
 * CpuGaps
 */
#define GAPS_MAX        65536

typedef struct Gap {
    uint32_t epoch, segment;
    uint64_t from, to;
} Gap;

/*
 * The gaps of a processor, in the order of time. Once there are GAPS_MAX gaps,
 * a new gap is merged with the last one if both are in the same segment. Once
 * there are 2 * GAPS_MAX gaps, a gap that cannot be merged begins @rest, which
 * reaches to the end of the recording. Recorded events may lie in merged gaps
 * and in @rest.
 */
typedef struct CpuGaps {
    GArray *all;
    /* @rest is valid: the recording counts as one gap from @rest.from on */
    bool cut;
    Gap rest;
} CpuGaps;

struct HtGaps {
    CpuGaps *cpus;
    uint32_t nr;
};

void ht_gaps_add(HtGaps *g, uint32_t cpu, uint32_t epoch, uint32_t segment,
                 uint64_t from, uint64_t to)
{
    CpuGaps *c = &g->cpus[cpu];
    Gap gap = { epoch, segment, from, to };
    Gap *last = c->all->len ?
                &g_array_index(c->all, Gap, c->all->len - 1) : NULL;

    if (c->cut) {
        return;
    }
    if (last && c->all->len >= GAPS_MAX && last->epoch == epoch &&
        last->segment == segment) {
        last->to = MAX(last->to, to);
    } else if (c->all->len < 2 * GAPS_MAX) {
        g_array_append_val(c->all, gap);
    } else {
        c->cut = true;
        c->rest = gap;
    }
}

static void find(HtGaps *g, HtRecording *r, uint32_t cpu)
{
    HtFtPiece p;

    while (ht_rec_next_piece(r, cpu, &p)) {
        if (p.flags & HT_FT_PIECE_LOST) {
            ht_gaps_add(g, cpu, p.epoch, p.segment,
                        p.lost_from_ns < p.begin_ns ? p.lost_from_ns : 0,
                        p.begin_ns);
        }
    }
}

HtGaps *ht_gaps_make(uint32_t cpus)
{
    HtGaps *g = g_new0(HtGaps, 1);

    g->cpus = g_new0(CpuGaps, cpus);
    for (; g->nr < cpus; g->nr++) {
        g->cpus[g->nr].all = g_array_new(false, false, sizeof(Gap));
    }
    return g;
}

HtGaps *ht_gaps_new(HtModel *m)
{
    HtRecording *r = ht_model_recording(m);
    HtGaps *g = ht_gaps_make(ht_rec_info(r)->cpus);
    uint32_t cpu;

    for (cpu = 0; cpu < g->nr; cpu++) {
        find(g, r, cpu);
    }
    ht_model_rewind(m);
    return g;
}

void ht_gaps_free(HtGaps *g)
{
    uint32_t cpu;

    for (cpu = 0; g && cpu < g->nr; cpu++) {
        g_array_unref(g->cpus[cpu].all);
    }
    if (g) {
        g_free(g->cpus);
        g_free(g);
    }
}

static bool is_before(const Gap *gap, uint32_t epoch, uint32_t segment,
                      uint64_t from)
{
    return gap->epoch != epoch ? gap->epoch < epoch :
           gap->segment != segment ? gap->segment < segment : gap->to <= from;
}

static bool between(const CpuGaps *c, uint32_t epoch, uint32_t segment,
                    uint64_t from, uint64_t to)
{
    const GArray *all = c->all;
    guint low = 0, high = all->len;
    const Gap *gap;

    if (c->cut && (c->rest.epoch != epoch ? c->rest.epoch < epoch :
                   c->rest.segment != segment ? c->rest.segment < segment :
                   c->rest.from < to)) {
        return true;
    }

    while (low < high) {
        guint mid = (low + high) / 2;

        if (is_before(&g_array_index(all, Gap, mid), epoch, segment, from)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    gap = low < all->len ? &g_array_index(all, Gap, low) : NULL;
    return gap && gap->epoch == epoch && gap->segment == segment &&
           gap->from < to;
}

bool ht_gaps_between(const HtGaps *g, const HtModelEvent *ev, uint32_t cpu,
                     uint64_t from, uint64_t to)
{
    uint32_t i;

    for (i = 0; i < g->nr; i++) {
        if ((cpu == HT_GAPS_ANY || cpu == i) &&
            between(&g->cpus[i], ev->rec.epoch, ev->rec.segment, from, to)) {
            return true;
        }
    }
    return false;
}
