/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the gaps of a recording
 *
 * The recording is read once in advance to find all gaps: a processor's event
 * reports a gap only at the gap's end. By then, the caller has already handled
 * events of other processors that lie within the gap.
 */
#include "model/gaps.h"

#define GAPS_MAX        65536   /* of a processor; more are merged */

typedef struct Gap {
    uint32_t epoch, segment;
    uint64_t from, to;
} Gap;

struct HtGaps {
    GPtrArray *cpus;            /* of GArray of Gap, in order */
};

static void find(GArray *all, HtRecording *r, uint32_t cpu)
{
    HtFtPiece p;

    while (ht_rec_next_piece(r, cpu, &p)) {
        Gap gap = {
            .epoch = p.epoch,
            .segment = p.segment,
            .from = p.lost_from_ns < p.begin_ns ? p.lost_from_ns : 0,
            .to = p.begin_ns,
        };
        Gap *last = all->len ? &g_array_index(all, Gap, all->len - 1) : NULL;

        if (!(p.flags & HT_FT_PIECE_LOST)) {
            continue;
        }
        if (last && all->len >= GAPS_MAX && last->epoch == gap.epoch &&
            last->segment == gap.segment) {
            last->to = gap.to;
        } else if (all->len < 2 * GAPS_MAX) {
            g_array_append_val(all, gap);
        }
    }
}

HtGaps *ht_gaps_new(HtModel *m)
{
    HtRecording *r = ht_model_recording(m);
    HtGaps *g = g_new0(HtGaps, 1);
    uint32_t cpu;

    g->cpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (cpu = 0; cpu < ht_rec_info(r)->cpus; cpu++) {
        GArray *all = g_array_new(false, false, sizeof(Gap));

        find(all, r, cpu);
        g_ptr_array_add(g->cpus, all);
    }
    ht_model_rewind(m);
    return g;
}

void ht_gaps_free(HtGaps *g)
{
    if (g) {
        g_ptr_array_unref(g->cpus);
        g_free(g);
    }
}

static bool is_before(const Gap *gap, uint32_t epoch, uint32_t segment,
                      uint64_t from)
{
    return gap->epoch != epoch ? gap->epoch < epoch :
           gap->segment != segment ? gap->segment < segment : gap->to <= from;
}

static bool between(const GArray *all, uint32_t epoch, uint32_t segment,
                    uint64_t from, uint64_t to)
{
    guint low = 0, high = all->len;
    const Gap *gap;

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

    for (i = 0; i < g->cpus->len; i++) {
        if ((cpu == HT_GAPS_ANY || cpu == i) &&
            between(g->cpus->pdata[i], ev->rec.epoch, ev->rec.segment, from,
                    to)) {
            return true;
        }
    }
    return false;
}
