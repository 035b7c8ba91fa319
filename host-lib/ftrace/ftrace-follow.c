/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ftrace ring while the guest writes it
 *
 * A poll first queues what is new on each processor.  Then it tests whether the
 * guest's clock stepped back on any processor.  Such a step affects the whole
 * ring: it is decided for the pieces of the other processors, too, whether they
 * were written before or after the step.  If a processor was idle at the step,
 * its clock steps back in a later poll, with its next event.
 */
#include "ftrace-cpu.h"

/* Approximate number of recent events that give the rate for lost_estimate */
#define RATE_EVENTS 4096u

/*
 * Look for new processors in each of the first GROW_LOOKS polls, later in every
 * GROW_LOOKS-th poll
 */
#define GROW_LOOKS 1024u

/* Maximum size in bytes of a buffer that is kept between polls */
#define KEEP_BYTES (1u << 20)

struct HtFtFollow {
    HtFtMem mem;
    HtFtRing *ring;
    const HtFtWay *way;
    void *way_opaque;
    const HtFtFollowOps *ops;
    void *opaque;
    HtFtCpu *cpu;
    uint32_t cpus;
    bool relaxed;
    uint64_t looks;
    HtFtLook look;
    /* the processor with which the next poll begins */
    uint32_t from;
    uint32_t epoch;
    /* number of the clock's present segment in @epoch */
    uint32_t segment;
    /* time of the newest event of @segment, by the guest's clock */
    uint64_t newest_ns;
    uint64_t before_ns;         /* @newest_ns at the end of the previous poll */
    uint64_t text;
    /*
     * HtFtRing.text of the boot after @epoch, if a header has changed before
     * that boot's first event was seen; else 0
     */
    uint64_t next_text;
    bool alive;
};

static void add_cpus(HtFtFollow *f)
{
    const HtFtRing *ring = f->ring;

    f->cpu = g_renew(HtFtCpu, f->cpu, ring->cpus);
    for (; f->cpus < ring->cpus; f->cpus++) {
        HtFtCpu *c = &f->cpu[f->cpus];

        *c = (HtFtCpu) {
            .mem = &f->mem,
            .ring = ring,
            .opaque = f->way_opaque,
            .one_boot = f->way->one_boot,
            .geo = ring->cpu[f->cpus],
            .number = f->cpus,
            .relaxed = f->relaxed,
            .first = ring->cpu[f->cpus].first,
            .last = HT_FT_NO_SLOT,
            .lag_slot = HT_FT_NO_SLOT,
            .epoch = f->epoch,
            .segment = f->segment,
            .page = g_new0(uint64_t, ring->subbufs),
            .used = g_new0(uint32_t, ring->subbufs),
            .order = g_new0(uint32_t, ring->subbufs),
            .place = g_new0(uint32_t, ring->subbufs),
            .new_order = g_new0(uint32_t, ring->subbufs),
            .new_place = g_new0(uint32_t, ring->subbufs),
        };
    }
}

static bool grow_mapped(void *opaque, const HtFtMem *mem, HtFtRing *ring)
{
    (void)opaque;
    return ht_ft_ring_grow(mem, ring);
}

static uint64_t polls(void *opaque G_GNUC_UNUSED,
                      const HtFtMem *mem G_GNUC_UNUSED, const HtFtRing *ring)
{
    /*
     * Usually, each sub-buffer is one piece.  It has at least 4 KiB and counts
     * as HT_FT_LOOK_PIECE (2 KiB) more, so a poll that stops at HT_FT_LOOK_MAX
     * has copied more than half of HT_FT_LOOK_MAX.
     */
    return ring->size / (HT_FT_LOOK_MAX / 2) + 1;
}

static const HtFtWay mapped_way = {
    .grow = grow_mapped,
    .collect = ht_ft_cpu_collect,
    .polls = polls,
};

HtFtFollow *ht_ft_follow_new(const HtFtMem *mem, HtFtRing *ring,
                             const HtFtFollowOps *ops, void *opaque)
{
    return ht_ft_follow_new_way(mem, ring, &mapped_way, NULL, ops, opaque);
}

static GArray *new_taken(void)
{
    return g_array_new(false, false, sizeof(HtFtTaken));
}

HtFtFollow *ht_ft_follow_new_way(const HtFtMem *mem, HtFtRing *ring,
                                 const HtFtWay *way, void *way_opaque,
                                 const HtFtFollowOps *ops, void *opaque)
{
    HtFtFollow *f = g_new0(HtFtFollow, 1);

    f->mem = *mem;
    f->ring = ring;
    f->way = way;
    f->way_opaque = way_opaque;
    f->ops = ops;
    f->opaque = opaque;
    f->text = ring->text;
#if !defined(__x86_64__) && !defined(__i386__) && !defined(__s390x__)
    f->relaxed = true;
#endif
    add_cpus(f);
    f->look.bytes = g_byte_array_new();
    f->look.taken = new_taken();
    f->look.page = g_malloc(ring->subbuf_size);
    return f;
}

void ht_ft_follow_free(HtFtFollow *f)
{
    uint32_t i;

    if (!f) {
        return;
    }
    for (i = 0; i < f->cpus; i++) {
        g_free(f->cpu[i].page);
        g_free(f->cpu[i].used);
        g_free(f->cpu[i].order);
        g_free(f->cpu[i].place);
        g_free(f->cpu[i].new_order);
        g_free(f->cpu[i].new_place);
    }
    g_free(f->cpu);
    g_byte_array_unref(f->look.bytes);
    g_array_unref(f->look.taken);
    g_free(f->look.page);
    if (f->way->free) {
        f->way->free(f->way_opaque);
    }
    ht_ft_ring_free(f->ring);
    g_free(f);
}

static HtFtTaken *taken_at(HtFtFollow *f, guint i)
{
    return &g_array_index(f->look.taken, HtFtTaken, i);
}

/*
 * Test whether a processor's first piece in this poll is of another boot than
 * the processor's previous pieces.  Suppose that the previous poll took
 * everything (@behind is false), and that events are missing since, as after
 * the processor's part was cleared.  New events that are older than the
 * previous poll's newest event by more than HT_FT_EPOCH_NS are then of another
 * boot.  If no event is missing, old events prove nothing: the vCPU may have
 * been stopped between an event's time stamp and its commit.
 */
static bool begins_boot(const HtFtFollow *f, const HtFtPiece *p, bool behind)
{
    return !f->way->one_boot && p->events && !behind &&
           p->flags & HT_FT_PIECE_LOST &&
           f->before_ns > p->begin_ns + HT_FT_EPOCH_NS;
}

/*
 * Set a piece's epoch and segment; @epoch and @segment are those of the ring
 * before this poll.
 */
static void number_step(HtFtCpu *c, HtFtTaken *t, uint32_t epoch,
                        uint32_t segment, bool behind)
{
    /* Another boot has the ring: a step back is a reboot. */
    if (c->moved && t->step) {
        t->step = HT_FT_STEP_EPOCH;
    }
    if (c->epoch < epoch && (t->step == HT_FT_STEP_EPOCH || !behind)) {
        t->step = HT_FT_STEP_EPOCH;
        c->epoch = epoch;
        c->segment = segment;
    } else if (t->step == HT_FT_STEP_EPOCH) {
        c->epoch++;
        c->segment = 0;
    } else if (c->epoch == epoch && c->segment < segment &&
               (t->step || !behind)) {
        t->step = HT_FT_STEP_SEGMENT;
        c->segment = segment;
    } else if (t->step) {
        c->segment++;
    }
    if (t->step == HT_FT_STEP_EPOCH) {
        c->moved = false;
    }
    t->p.epoch = c->epoch;
    t->p.segment = c->segment;
}

/*
 * Set the epoch and segment of all pieces, and raise the ring's epoch and
 * segment to the highest seen
 */
static void number_steps(HtFtFollow *f, const bool *behind)
{
    uint32_t epoch = f->epoch, segment = f->segment, seen = UINT32_MAX;
    guint i;

    for (i = 0; i < f->look.taken->len; i++) {
        HtFtTaken *t = taken_at(f, i);
        HtFtCpu *c = &f->cpu[t->p.cpu];

        if (t->p.cpu != seen && !t->step &&
            begins_boot(f, &t->p, behind[t->p.cpu])) {
            t->step = HT_FT_STEP_EPOCH;
        }
        seen = t->p.cpu;
        number_step(c, t, epoch, segment, behind[t->p.cpu]);
        if (c->epoch > f->epoch) {
            f->epoch = c->epoch;
            f->segment = 0;
        }
        if (c->epoch == f->epoch && c->segment > f->segment) {
            f->segment = c->segment;
        }
    }
}

/*
 * The clock may have stepped back on one processor and not on others.  Decide
 * whether the pieces of the other processors were written before or after the
 * step: if the times of a processor's last pieces fit those after the step,
 * assume that these pieces were written after it.
 */
static void follow_steps(HtFtFollow *f)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    uint32_t cpu = UINT32_MAX, epoch = 0, segment = 0;
    bool go_on = false;
    guint i;

    for (i = 0; i < f->look.taken->len; i++) {
        const HtFtPiece *p = &taken_at(f, i)->p;

        if (p->epoch == f->epoch && p->segment == f->segment && p->events) {
            begin_ns = MIN(begin_ns, p->begin_ns);
            end_ns = MAX(end_ns, p->end_ns);
        }
    }
    /*
     * Go from each processor's last piece backwards, and stop at its first
     * piece that does not fit.  So no piece before the step follows one after
     * the step.
     */
    for (i = f->look.taken->len; i-- > 0; ) {
        HtFtPiece *p = &taken_at(f, i)->p;
        HtFtCpu *c = &f->cpu[p->cpu];

        if (p->cpu != cpu) {
            cpu = p->cpu;
            epoch = c->epoch;
            segment = c->segment;
            go_on = epoch != f->epoch || segment != f->segment;
        }
        go_on = go_on && p->epoch == epoch && p->segment == segment &&
                p->begin_ns >= begin_ns &&
                p->end_ns <= end_ns + HT_FT_EPOCH_NS;
        if (go_on) {
            c->moved &= c->epoch == f->epoch;
            p->epoch = c->epoch = f->epoch;
            p->segment = c->segment = f->segment;
        }
    }
}

/* Update @before_ns and @newest_ns; @epoch and @segment: before this poll */
static void note_newest(HtFtFollow *f, uint32_t epoch, uint32_t segment)
{
    guint i;

    f->before_ns = f->newest_ns;
    if (epoch != f->epoch || segment != f->segment) {
        f->newest_ns = f->before_ns = 0;
    }
    for (i = 0; i < f->look.taken->len; i++) {
        const HtFtPiece *p = &taken_at(f, i)->p;

        if (p->epoch == f->epoch && p->segment == f->segment && p->events) {
            f->newest_ns = MAX(f->newest_ns, p->end_ns);
        }
    }
}

/*
 * Test whether the text address is valid for the new boot although no header
 * has changed it.  On x86, whose text is in the last 2 GiB, KASLR moves the
 * ring's address as well.  If the ring did not move, the guest was set back to
 * a snapshot or has no KASLR, and the address is valid.
 */
static bool text_holds(const HtFtFollow *f, bool moved)
{
    return !moved && f->text >= -(UINT64_C(2) << 30);
}

/*
 * Update the text address.  A header has the KASLR offset of the boot that has
 * written the header.
 */
static void read_text(HtFtFollow *f, bool new_epoch, bool moved)
{
    uint32_t n;

    if (f->ring->layout == HT_FT_LAYOUT_6_15) {
        f->text = ht_ft_ring_text(&f->mem, f->ring, 0);
        return;
    }
    for (n = 0; n < f->cpus; n++) {
        uint64_t text = ht_ft_ring_text(&f->mem, f->ring, n);

        if (text != f->ring->cpu[n].text) {
            f->ring->cpu[n].text = text;
            f->next_text = text;
        }
    }
    if (new_epoch) {
        if (f->next_text || !text_holds(f, moved)) {
            f->text = f->next_text;
        }
        f->next_text = 0;
    }
}

static uint64_t scale(uint64_t events, uint64_t ns, uint64_t gap_ns)
{
    double n = ns ? (double)events / ns * gap_ns : 0;

    return n < (double)INT64_MAX ? (uint64_t)n : INT64_MAX;
}

/*
 * Estimate the number of events in a gap: its length, at most HtFtTaken.gap_ns
 * if that is known, times the mean of the event rates before and after it
 */
static uint64_t estimate(HtFtFollow *f, guint i)
{
    const HtFtTaken *t = taken_at(f, i);
    const HtFtPiece *p = &t->p;
    const HtFtCpu *c = &f->cpu[p->cpu];
    uint64_t gap = p->begin_ns - p->lost_from_ns, events = 0;
    uint64_t before, after, from_ns = p->begin_ns, to_ns = from_ns;
    guint k;

    if (p->begin_ns <= p->lost_from_ns) {
        return 0;
    }
    if (t->gap_ns) {
        gap = MIN(gap, t->gap_ns);
    }
    for (k = i; k < f->look.taken->len && events < RATE_EVENTS; k++) {
        const HtFtPiece *q = &taken_at(f, k)->p;

        if (q->cpu != p->cpu || (k > i && q->flags & HT_FT_PIECE_LOST) ||
            q->epoch != p->epoch || q->segment != p->segment) {
            break;
        }
        events += q->events;
        to_ns = q->end_ns;
    }
    before = scale(c->rate_events, c->rate_ns, gap);
    after = scale(events, to_ns - from_ns, gap);
    if (c->rate_ns && to_ns > from_ns) {
        return before / 2 + after / 2;
    }
    return c->rate_ns ? before : after;
}

/* Pass on the queued piece at index @i; returns the number of bytes */
static uint32_t pass_piece(HtFtFollow *f, guint i)
{
    HtFtTaken *t = taken_at(f, i);
    HtFtPiece *p = &t->p;
    HtFtCpu *c = &f->cpu[p->cpu];

    if (p->flags & HT_FT_PIECE_LOST) {
        p->lost_estimate = t->counted ? t->lost : t->step ? 0 : estimate(f, i);
        c->stats.gaps++;
        c->stats.lost += p->lost_estimate;
        c->rate_events = 0;
        c->rate_ns = 0;
    }
    c->rate_events += p->events;
    c->rate_ns += p->end_ns - (p->base_ns > p->end_ns || t->step ?
                               p->begin_ns : p->base_ns);
    if (c->rate_events > RATE_EVENTS) {
        c->rate_events /= 2;
        c->rate_ns /= 2;
    }
    f->ops->piece(f->opaque, p);
    return p->size;
}

/* Drop the queued pieces; keep small buffers for the next poll */
static void empty(HtFtFollow *f)
{
    if (f->look.taken->len * sizeof(HtFtTaken) > KEEP_BYTES) {
        g_array_unref(f->look.taken);
        f->look.taken = new_taken();
    } else {
        g_array_set_size(f->look.taken, 0);
    }
    if (f->look.bytes->len > KEEP_BYTES) {
        g_byte_array_unref(f->look.bytes);
        f->look.bytes = g_byte_array_new();
    } else {
        g_byte_array_set_size(f->look.bytes, 0);
    }
}

/* Pass on the queued pieces; returns the number of bytes */
static int64_t pass_on(HtFtFollow *f)
{
    int64_t bytes = 0;
    guint i;

    for (i = 0; i < f->look.taken->len; i++) {
        HtFtTaken *t = taken_at(f, i);

        t->p.data = f->look.bytes->data + t->at;
        if (f->ops->ahead) {
            f->ops->ahead(f->opaque, &t->p);
        }
    }
    for (i = 0; i < f->look.taken->len; i++) {
        bytes += pass_piece(f, i);
    }
    empty(f);
    return bytes;
}

/*
 * Set HtFtPiece.lost_from_ns of a processor's pieces, which begin at index
 * @from
 */
static void note_gaps(HtFtLook *look, uint64_t newest_ns, guint from)
{
    guint i;

    for (i = from; i < look->taken->len; i++) {
        HtFtPiece *p = &g_array_index(look->taken, HtFtTaken, i).p;

        if (p->flags & HT_FT_PIECE_LOST) {
            p->lost_from_ns = newest_ns;
        }
        newest_ns = p->end_ns;
    }
}

static uint64_t clock_now(HtFtFollow *f)
{
    return f->ops->now ? f->ops->now(f->opaque) : 0;
}

static int collect(HtFtFollow *f, HtFtCpu *c)
{
    uint64_t newest_ns = c->newest_ns, before = c->before, end;
    guint first = f->look.taken->len, i;
    int ret;

    c->look_begin = clock_now(f);
    ret = f->way->collect(c, &f->look);
    note_gaps(&f->look, newest_ns, first);
    end = clock_now(f);
    for (i = first; i < f->look.taken->len; i++) {
        taken_at(f, i)->p.host_before = before;
        taken_at(f, i)->p.host_after = end;
    }
    return ret;
}

static void grow(HtFtFollow *f)
{
    if (f->way->grow(f->way_opaque, &f->mem, f->ring)) {
        add_cpus(f);
    }
}

/*
 * Count the polls since the ring moved, and set @fresh.  A host with weak
 * memory ordering waits for one poll more, because it passes on each record one
 * poll later than other hosts.
 */
static void note_moved(HtFtCpu *c)
{
    c->moved_looks = c->moved ? c->moved_looks + 1 : 0;
    c->fresh = !c->behind && c->moved_looks > c->relaxed;
}

/*
 * Queue what is new of all processors.  If the poll must stop, the next one
 * begins with the first processor that this one leaves out.  Returns 0 or
 * -errno
 */
static int collect_all(HtFtFollow *f, bool *behind, bool *moved)
{
    uint32_t from = f->from, i;
    bool left = false;
    int ret = 0;

    f->look.copied = 0;
    f->look.full = f->look.more = false;
    f->from = 0;
    for (i = 0; i < f->cpus; i++) {
        uint32_t n = (from + i) % f->cpus;
        HtFtCpu *c = &f->cpu[n];
        int error;

        behind[n] = c->behind;
        note_moved(c);
        if (f->look.full) {
            c->behind = true;
            f->from = left ? f->from : n;
            left = true;
            continue;
        }
        error = collect(f, c);
        ret = ret ? ret : error;
        *moved |= c->moved;
        f->alive |= c->changed;
    }
    return ret;
}

int64_t ht_ft_follow_look(HtFtFollow *f)
{
    g_autofree bool *behind = NULL;
    uint32_t epoch = f->epoch, segment = f->segment;
    bool moved = false;
    int64_t bytes;
    int ret;

    if (f->way->begin) {
        f->way->begin(f->way_opaque);
    }
    /*
     * At first, look for processors in each poll: the kernel may be adding
     * some.
     */
    if (f->looks++ < GROW_LOOKS || f->looks % GROW_LOOKS == 0) {
        grow(f);
    }
    behind = g_new(bool, f->cpus);
    ret = collect_all(f, behind, &moved);
    if (f->look.taken->len) {
        number_steps(f, behind);
        follow_steps(f);
    }
    note_newest(f, epoch, segment);
    if (moved || f->epoch != epoch) {
        read_text(f, f->epoch != epoch, moved);
    }
    bytes = pass_on(f);
    return bytes ? bytes : ret;
}

bool ht_ft_follow_covers(HtFtFollow *f, uint64_t offset)
{
    if (ht_ft_ring_is_there(&f->mem, f->ring)) {
        grow(f);
    }
    return ht_ft_ring_covers(f->ring, offset);
}

bool ht_ft_follow_more(const HtFtFollow *f)
{
    return f->look.full || f->look.more;
}

uint64_t ht_ft_follow_polls(const HtFtFollow *f)
{
    return f->way->polls(f->way_opaque, &f->mem, f->ring);
}

uint64_t ht_ft_follow_copied(const HtFtFollow *f)
{
    return f->look.copied;
}

const HtFtRing *ht_ft_follow_ring(const HtFtFollow *f)
{
    return f->ring;
}

HtFtStats ht_ft_follow_stats(const HtFtFollow *f, int cpu)
{
    HtFtStats sum = { 0 };
    uint32_t n;

    for (n = 0; n < f->cpus; n++) {
        const HtFtStats *s = &f->cpu[n].stats;

        if (cpu >= 0 && n != (uint32_t)cpu) {
            continue;
        }
        sum.events += s->events;
        sum.bytes += s->bytes;
        sum.lost += s->lost;
        sum.gaps += s->gaps + (f->cpu[n].lost && s->bytes);
        sum.late += s->late;
        sum.retries += s->retries;
        sum.bad += s->bad;
        sum.discarded += s->discarded;
        sum.errors += s->errors;
    }
    return sum;
}

bool ht_ft_follow_alive(const HtFtFollow *f)
{
    return f->alive;
}

uint32_t ht_ft_follow_epoch(const HtFtFollow *f)
{
    return f->epoch;
}

uint64_t ht_ft_follow_text(const HtFtFollow *f)
{
    return f->text;
}

void ht_ft_follow_set_relaxed(HtFtFollow *f, bool relaxed)
{
    uint32_t i;

    f->relaxed = relaxed;
    for (i = 0; i < f->cpus; i++) {
        f->cpu[i].relaxed = relaxed;
    }
}
