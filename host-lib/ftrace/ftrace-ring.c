/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a boot-mapped ftrace ring in a guest's memory
 *
 * Header of 6.11 to 6.14, one at the start of each processor's part:
 *   magic, size of this header (4 bytes each); text_addr, data_addr, first,
 *   head, commit (8 each); sub-buffer size, sub-buffers (4 each); order[];
 *   at the next multiple of the sub-buffer size, the sub-buffers.
 * Header of 6.15 and later: magic (4), sizes of a processor's part before its
 *   order[] and of this header (2 each), size of the ring, offset of the first
 *   processor's part (8 each); scratch area:
 *   clock, text address (8 each); then for each processor first, head, commit
 *   (8 each), sub-buffer size, sub-buffers (4 each), in later kernels two
 *   counters, order[]; sub-buffers.
 *
 * Most of the checks are like those that the kernel itself makes on a ring that
 * an earlier boot left.
 */
#include "hypertrace/ftrace-ring.h"
#include "hypertrace/atomic.h"
#include "hypertrace/ftrace-page.h"

#define HEADER_6_11     56u
#define HEADER_6_15     24u
/*
 * Size in bytes of a processor's part before order[], without and with two
 * counters
 */
#define LINE_6_15       32u
#define LINE_7_2        40u
/* Bytes read of the scratch area: the clock's number and the text address */
#define SCRATCH         16u
/*
 * After a test of more than GROW_CHECKED sub-buffers that found no further
 * processor, the next GROW_REST calls of ht_ft_ring_grow() do nothing.
 */
#define GROW_CHECKED    (1u << 14)
#define GROW_REST       63u

int ht_ft_mem_read(const HtFtMem *mem, uint64_t offset, void *buf, size_t len)
{
    const uint8_t *from;
    uint8_t *to = buf;

    if (offset % 4 || len % 4) {
        return -EINVAL;
    }
    if (len > mem->size || offset > mem->size - len) {
        return -ERANGE;
    }
    if (!mem->map) {
        return mem->read(mem->opaque, offset, buf, len);
    }
    from = (const uint8_t *)mem->map + offset;
    while (len) {
        if (len >= 8 && (uintptr_t)from % 8 == 0) {
            uint64_t v = ht_atomic_read((const uint64_t *)from);

            memcpy(to, &v, 8);
            from += 8;
            to += 8;
            len -= 8;
        } else {
            uint32_t v = ht_atomic_read((const uint32_t *)from);

            memcpy(to, &v, 4);
            from += 4;
            to += 4;
            len -= 4;
        }
    }
    return 0;
}

const char *ht_ft_layout_name(HtFtLayout layout)
{
    return layout == HT_FT_LAYOUT_6_11 ? "6.12" :
           layout == HT_FT_LAYOUT_6_15 ? "7" : "list";
}

/* Members of a processor's part that both layouts have */
typedef struct Line {
    uint64_t first;
    uint64_t head;
    uint64_t commit;
    uint32_t subbuf_size;
    uint32_t subbufs;
} Line;

static void line_parse(Line *l, const uint8_t *p)
{
    l->first = ht_get_le64(p);
    l->head = ht_get_le64(p + 8);
    l->commit = ht_get_le64(p + 16);
    l->subbuf_size = ht_get_le32(p + 24);
    l->subbufs = ht_get_le32(p + 28);
}

/*
 * Test whether @address is the guest address of one of the sub-buffers.  Accept
 * 0 as well: the kernel leaves the address 0 for a processor that was not
 * online yet.
 */
static bool page_address_ok(const Line *l, uint64_t address)
{
    uint64_t offset = address - l->first;

    return address == 0 ||
           (address >= l->first && offset % l->subbuf_size == 0 &&
            offset / l->subbuf_size < l->subbufs);
}

static const char *line_wrong(const Line *l)
{
    if (l->subbuf_size != 4096 && l->subbuf_size != 16384 &&
        l->subbuf_size != 65536) {
        return "sub-buffers are not of 4, 16 or 64 KiB";
    }
    /* The minimum is 3: the readers' page, and two in the ring */
    if (l->subbufs < 3 || l->subbufs > HT_FT_SUBBUFS_MAX) {
        return "number of sub-buffers out of range";
    }
    if (l->first % l->subbuf_size || !page_address_ok(l, l->head) ||
        !page_address_ok(l, l->commit)) {
        return "head or commit page is not one of the sub-buffers";
    }
    return NULL;
}

/*
 * Test whether each sub-buffer occurs exactly once in the order at @offset, and
 * add the number of sub-buffers that were tested to @checked.  Returns NULL or
 * what is wrong.
 */
static const char *order_wrong(const HtFtMem *mem, uint64_t offset,
                               uint32_t subbufs, uint64_t *checked)
{
    g_autofree uint8_t *seen = g_malloc0(subbufs);
    uint32_t order[1024], left, n, i;

    for (left = subbufs; left; left -= n) {
        n = MIN(left, G_N_ELEMENTS(order));
        if (ht_ft_mem_read(mem, offset, order, n * sizeof(order[0]))) {
            return "the order of sub-buffers cannot be read";
        }
        *checked += n;
        for (i = 0; i < n; i++) {
            uint32_t slot = ht_le32(order[i]);

            if (slot >= subbufs || seen[slot]++) {
                return "the order of sub-buffers is no permutation";
            }
        }
        offset += n * sizeof(order[0]);
    }
    return NULL;
}

/*
 * Test whether a header belongs to this ring.  Another ring may begin where
 * this one ends, and headers before 6.15 do not have the ring's size.  The
 * kernel maps each ring separately with a gap, so equal distances of guest
 * addresses and of offsets show that both headers are of the same ring.  While
 * the kernel updates a ring's headers one after another, a header that was not
 * updated yet seems to be of another ring.  A later poll accepts this header.
 * If the guest stopped at that moment, the header's processor is left out.
 */
static bool is_same_ring(const HtFtMem *mem, const HtFtRing *ring,
                         const Line *l, uint64_t pages)
{
    uint64_t first;

    if (!ring->cpus || ring->total) {
        return true;
    }
    return !ht_ft_mem_read(mem, ring->cpu[0].meta, &first, sizeof(first)) &&
           l->first - ht_le64(first) == pages - ring->cpu[0].pages;
}

/*
 * Add the processor whose part @line was read at @line_at, unless something is
 * wrong with the part; set @end to the end of its sub-buffers.  Returns NULL or
 * what is wrong.
 */
static const char *add_cpu(const HtFtMem *mem, HtFtRing *ring,
                           const uint8_t *line, uint64_t line_at,
                           uint32_t line_size, uint64_t *end)
{
    HtFtRingCpu cpu = { .meta = line_at, .order = line_at + line_size };
    const char *wrong;
    Line l;

    line_parse(&l, line);
    wrong = line_wrong(&l);
    if (wrong) {
        return wrong;
    }
    if (ring->cpus && (l.subbuf_size != ring->subbuf_size ||
                       l.subbufs != ring->subbufs)) {
        return "processors differ in their sub-buffers";
    }
    if (ring->cpus == HT_FT_CPUS_MAX ||
        (ring->cpus + 1) * (uint64_t)l.subbufs > HT_FT_SUBBUFS_MAX) {
        ring->cut = ring->cpus;
        return "larger than any ring that is followed";
    }
    /*
     * Align the sub-buffers relative to the ring, whose guest address is
     * page-aligned.
     */
    cpu.pages = cpu.order + 4 * (uint64_t)l.subbufs - ring->offset;
    cpu.pages = ring->offset + HT_ROUND_UP(cpu.pages, l.subbuf_size);
    cpu.first = l.first;
    if (!is_same_ring(mem, ring, &l, cpu.pages)) {
        return "is of another ring";
    }
    *end = cpu.pages + (uint64_t)l.subbufs * l.subbuf_size;
    if (*end > mem->size ||
        (ring->total && *end > ring->offset + ring->total)) {
        return "reaches beyond the end of the ring or the memory";
    }
    wrong = order_wrong(mem, cpu.order, l.subbufs, &ring->checked);
    if (wrong) {
        return wrong;
    }
    ring->subbuf_size = l.subbuf_size;
    ring->subbufs = l.subbufs;
    ring->cpu = g_renew(HtFtRingCpu, ring->cpu, ring->cpus + 1);
    ring->cpu[ring->cpus++] = cpu;
    ring->size = *end - ring->offset;
    return NULL;
}

/* The next header is at the end of the previous processor's sub-buffers. */
static const char *next_6_11(const HtFtMem *mem, HtFtRing *ring)
{
    uint64_t at = ring->offset + ring->size, end;
    uint8_t h[HEADER_6_11];
    const char *wrong;

    if (ht_ft_mem_read(mem, at, h, sizeof(h))) {
        return "the header cannot be read";
    }
    if (ht_get_le32(h) != HT_FT_MAGIC || ht_get_le32(h + 4) != HEADER_6_11) {
        return "there is no header";
    }
    wrong = add_cpu(mem, ring, h + 24, at + 24, HEADER_6_11 - 24, &end);
    if (!wrong) {
        ring->cpu[ring->cpus - 1].text = ht_get_le64(h + 8);
        ring->text = ring->cpu[0].text;
    }
    return wrong;
}

static const char *next_6_15(const HtFtMem *mem, HtFtRing *ring)
{
    uint64_t at = ring->offset + (ring->cpus ? ring->size : ring->first_part);
    uint64_t end = ring->offset + ring->total;
    uint8_t line[LINE_7_2];

    if (end < at || end - at < ring->line_size) {
        return "there is no room for a processor";
    }
    if (ht_ft_mem_read(mem, at, line, ring->line_size)) {
        return "a processor's part cannot be read";
    }
    return add_cpu(mem, ring, line, at, ring->line_size, &at);
}

static const char *begin_6_15(const HtFtMem *mem, HtFtRing *ring,
                              uint32_t line_size)
{
    uint8_t h[HEADER_6_15 + SCRATCH];

    if (ht_ft_mem_read(mem, ring->offset, h, sizeof(h))) {
        return "the header cannot be read";
    }
    ring->line_size = line_size;
    ring->total = ht_get_le64(h + 8);
    ring->first_part = ht_get_le64(h + 16);
    if (ring->total > mem->size || ring->offset > mem->size - ring->total) {
        return "reaches beyond the end of the memory";
    }
    if (ring->first_part < HEADER_6_15 || ring->first_part % 8 ||
        ring->first_part > ring->total) {
        return "the first processor's part is not within the ring";
    }
    if (ring->first_part >= HEADER_6_15 + SCRATCH) {
        ring->text = ht_get_le64(h + HEADER_6_15 + 8);
        ring->clock = ht_get_le32(h + HEADER_6_15);
    }
    return NULL;
}

bool ht_ft_ring_grow(const HtFtMem *mem, HtFtRing *ring)
{
    uint64_t checked = ring->checked;
    uint32_t cpus = ring->cpus;

    if (ring->rest) {
        ring->rest--;
        return false;
    }
    while (!(ring->layout == HT_FT_LAYOUT_6_11 ? next_6_11(mem, ring) :
                                                 next_6_15(mem, ring))) {
        continue;
    }
    if (ring->cpus == cpus && ring->checked - checked > GROW_CHECKED) {
        ring->rest = GROW_REST;
    }
    return ring->cpus != cpus;
}

/* Test whether the 4 bytes after the magic number are those of this ring */
static bool header_is(const HtFtRing *ring, uint32_t sizes)
{
    return ring->layout == HT_FT_LAYOUT_6_11 ? sizes == HEADER_6_11 :
           sizes == (ring->line_size | HEADER_6_15 << 16);
}

/* Test whether a header like the first one of @ring is at an offset */
static bool has_header(const HtFtMem *mem, uint64_t offset,
                       const HtFtRing *ring)
{
    uint64_t meta = offset + ring->cpu[0].meta - ring->offset;
    uint32_t h[2], sub[2];

    return !ht_ft_mem_read(mem, offset, h, sizeof(h)) &&
           !ht_ft_mem_read(mem, meta + 24, sub, sizeof(sub)) &&
           ht_le32(h[0]) == HT_FT_MAGIC && header_is(ring, ht_le32(h[1])) &&
           ht_le32(sub[0]) == ring->subbuf_size &&
           ht_le32(sub[1]) == ring->subbufs;
}

bool ht_ft_ring_is_there(const HtFtMem *mem, const HtFtRing *ring)
{
    return has_header(mem, ring->offset, ring);
}

HtFtRing *ht_ft_ring_at(const HtFtMem *mem, uint64_t offset,
                        const char **why)
{
    g_autoptr(HtFtRing) ring = NULL;
    const char *wrong = NULL;
    uint32_t h[2], line;

    if (why) {
        *why = NULL;
    }
    if (ht_ft_mem_read(mem, offset, h, sizeof(h)) ||
        ht_le32(h[0]) != HT_FT_MAGIC) {
        return NULL;
    }
    ring = g_new0(HtFtRing, 1);
    ring->offset = offset;
    line = ht_le32(h[1]) & 0xffff;
    if (ht_le32(h[1]) == HEADER_6_11) {
        ring->layout = HT_FT_LAYOUT_6_11;
        wrong = next_6_11(mem, ring);
    } else if (ht_le32(h[1]) >> 16 == HEADER_6_15 &&
               (line == LINE_6_15 || line == LINE_7_2)) {
        ring->layout = HT_FT_LAYOUT_6_15;
        wrong = begin_6_15(mem, ring, line);
        wrong = wrong ? wrong : next_6_15(mem, ring);
    } else {
        wrong = "the header's size is of no known kernel";
    }
    if (!wrong) {
        ht_ft_ring_grow(mem, ring);
    }
    if (why) {
        *why = wrong;
    }
    return wrong ? NULL : g_steal_pointer(&ring);
}

void ht_ft_ring_free(HtFtRing *ring)
{
    if (ring) {
        g_free(ring->cpu);
        g_free(ring);
    }
}

uint64_t ht_ft_ring_text(const HtFtMem *mem, const HtFtRing *ring,
                         uint32_t cpu)
{
    uint64_t at, text;

    if (ring->layout == HT_FT_LAYOUT_6_11) {
        at = ring->cpu[cpu].meta - 16;
    } else if (ring->cpu[0].meta - ring->offset >= HEADER_6_15 + SCRATCH) {
        at = ring->offset + HEADER_6_15 + 8;
    } else {
        return 0;
    }
    return ht_ft_mem_read(mem, at, &text, sizeof(text)) ? 0 : ht_le64(text);
}

static void ring_free(gpointer ring)
{
    ht_ft_ring_free(ring);
}

void ht_ft_search_init(HtFtSearch *s, const HtFtMem *mem, uint64_t step)
{
    *s = (HtFtSearch) {
        .mem = mem,
        .step = step,
        .at = step == HT_FT_SEARCH_FULL ? 0 : HT_ROUND_UP(mem->size, step),
        .rings = g_ptr_array_new_with_free_func(ring_free),
    };
}

void ht_ft_search_clear(HtFtSearch *s)
{
    g_clear_pointer(&s->rings, g_ptr_array_unref);
}

static bool within(const HtFtRing *inner, const HtFtRing *outer)
{
    return inner->offset >= outer->offset &&
           inner->offset + inner->size <= outer->offset + outer->size;
}

/*
 * Return the ring that contains @ring, or @ring itself.  Before 6.15, the
 * header of each processor's part looks like that of a ring.  All parts of a
 * ring have the same size and no space between them: search downwards for
 * headers at this distance.  As another ring may end just below, use the lowest
 * header found that leads to a ring that contains @ring.  Takes ownership of
 * @ring.
 */
static HtFtRing *whole_ring(const HtFtMem *mem, HtFtRing *ring)
{
    /*
     * Limit the number of headers tested: a ring of more parts is not followed,
     * and the guest chooses how many headers there are.
     */
    unsigned n = MIN(HT_FT_CPUS_MAX, HT_FT_SUBBUFS_MAX / ring->subbufs);
    uint64_t part = ring->size / ring->cpus, at = ring->offset;

    if (ring->layout != HT_FT_LAYOUT_6_11) {
        return ring;
    }
    while (--n && at >= part && has_header(mem, at - part, ring)) {
        at -= part;
    }
    while (at < ring->offset) {
        HtFtRing *whole = ht_ft_ring_at(mem, at, NULL);

        if (whole && within(ring, whole)) {
            ht_ft_ring_free(ring);
            return whole;
        }
        at += whole ? whole->size : part;
        ht_ft_ring_free(whole);
    }
    return ring;
}

/*
 * Add a ring, unless it lies within a ring found before: in kernels before
 * 6.15, the header of each further processor looks like that of a ring.  Remove
 * rings that lie within the new one.
 */
static bool add_ring(HtFtSearch *s, HtFtRing *ring)
{
    guint i = 0;

    while (i < s->rings->len) {
        HtFtRing *other = s->rings->pdata[i];

        if (within(ring, other)) {
            ht_ft_ring_free(ring);
            return false;
        }
        if (within(other, ring)) {
            g_ptr_array_remove_index(s->rings, i);
        } else {
            i++;
        }
    }
    g_ptr_array_add(s->rings, ring);
    return true;
}

/*
 * Set @at to the next candidate, or to UINT64_MAX to skip one; returns false at
 * the end of the search
 */
static bool search_next(HtFtSearch *s, uint64_t *at)
{
    if (s->step != HT_FT_SEARCH_FULL) {
        uint64_t next;

        if (s->at == 0) {
            return false;
        }
        s->at -= s->step;
        *at = s->at;
        /* Skip this candidate if the guest wrote nothing there. */
        if (s->mem->next && (!s->mem->next(s->mem->opaque, s->at, &next) ||
                             next >= s->at + 8)) {
            *at = UINT64_MAX;
        }
        return true;
    }
    if (s->mem->next && !s->mem->next(s->mem->opaque, s->at, &s->at)) {
        return false;
    }
    s->at = HT_ROUND_UP(s->at, s->step);
    if (s->at >= s->mem->size) {
        return false;
    }
    *at = s->at;
    s->at += s->step;
    return true;
}

bool ht_ft_search_go(HtFtSearch *s, uint64_t looks, const HtBudget *budget)
{
    bool found = false;

    while (!s->done && looks--) {
        const char *why = NULL;
        HtFtRing *ring;
        uint64_t at;

        if (!search_next(s, &at)) {
            s->done = true;
            break;
        }
        ring = ht_ft_ring_at(s->mem, at, &why);
        if (ring) {
            found |= add_ring(s, whole_ring(s->mem, ring));
        } else if (why) {
            s->why = why;
        }
        if (ht_budget_is_over(budget)) {
            break;
        }
    }
    return found;
}
