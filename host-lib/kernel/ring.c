/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ordinary ftrace ring in a kernel's memory
 */
#include "ring.h"

/* Minimum of the number of reads that a processor may use in a poll */
#define READS_MIN 256u
/*
 * Number of reads of the guest's memory that a page takes, at most, if the
 * cursor is not lost: to find the oldest page, to copy the page and to find the
 * next page
 */
#define READS_OF_PAGE 12u

/* State of a follower: all processors of a trace_array */
typedef struct List {
    HtKernelSpace space;
    HtKernelRingLayout layout;
    uint64_t array;             /* guest address of the trace_array */
    /*
     * guest addresses of the trace_array's trace_buffer, and of that buffer's
     * array of pointers to each processor's part; 0: not known yet
     */
    uint64_t buffer;
    uint64_t buffers;
    uint32_t subbuf_size;
    uint32_t cpus;
    /* the kernel may have more than HT_FT_CPUS_MAX CPU numbers */
    bool beyond;
    bool cut;                   /* value for HtFtRing.cut */
    /* number of reads that are left for the processors in this poll */
    uint32_t reads;
    /* by processor: guest address of its ring_buffer_per_cpu */
    uint64_t *address;
    HtListCpu *cpu;
} List;

static bool find(const HtBtf *btf, const char *type, const char *member,
                 uint32_t size, uint32_t *offset, GError **error)
{
    HtBtfField f;

    if (ht_btf_field(btf, type, member, &f)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's types have no %s.%s: its trace buffers "
                    "cannot be read", type, member);
        return false;
    }
    if (f.size != size || f.bits) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's %s.%s has %u bytes, not %u: its trace "
                    "buffers cannot be read", type, member, f.size, size);
        return false;
    }
    *offset = f.offset;
    return true;
}

bool ht_kernel_ring_layout(const HtBtf *btf, uint32_t page_size,
                           HtKernelRingLayout *p, GError **error)
{
    static const char cpu[] = "ring_buffer_per_cpu";
    uint32_t stamp, commit, data, list;
    HtBtfField f;

    memset(p, 0, sizeof(*p));
    if (!find(btf, cpu, "reader_page", 8, &p->reader, error) ||
        !find(btf, cpu, "commit_page", 8, &p->commit, error) ||
        !find(btf, cpu, "head_page", 8, &p->head, error) ||
        !find(btf, cpu, "pages", 8, &p->pages, error) ||
        !find(btf, cpu, "entries", 8, &p->entries, error) ||
        !find(btf, cpu, "overrun", 8, &p->overrun, error) ||
        !find(btf, cpu, "read", 8, &p->read, error) ||
        !find(btf, cpu, "committing", 8, &p->committing, error) ||
        !find(btf, "buffer_page", "list", 16, &list, error) ||
        !find(btf, "buffer_page", "page", 8, &p->node_page, error) ||
        !find(btf, "trace_array", "array_buffer.buffer", 8, &p->array_buffer,
              error) ||
        !find(btf, "trace_buffer", "buffers", 8, &p->buffers, error) ||
        !find(btf, "buffer_data_page", "time_stamp", 8, &stamp, error) ||
        !find(btf, "buffer_data_page", "commit", 8, &commit, error)) {
        return false;
    }
    if (ht_btf_field(btf, "buffer_data_page", "data", &f)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's types have no buffer_data_page.data");
        return false;
    }
    data = f.offset;
    if (list != 0 || stamp != 0 || commit != 8 || data != HT_FT_PAGE_HEADER ||
        !ht_list_layout_ok(p)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's trace buffers have a layout that is not "
                    "known");
        return false;
    }
    if (ht_btf_offset(btf, "trace_buffer", "subbuf_size", &p->subbuf_size,
                      NULL)) {
        /* kernels before 6.8 lack this member */
        p->subbuf_size = UINT32_MAX;
    }
    p->page_size = page_size;
    return true;
}

static uint64_t read_buffer(List *list)
{
    return ht_kernel_space_u64_again(&list->space,
                                     list->array + list->layout.array_buffer,
                                     &list->buffer) ? 0 : list->buffer;
}

/* Number of reads that a processor may use in a poll, if so many are left */
static uint32_t reads_of_poll(const List *list)
{
    return MAX(HT_KERNEL_RING_READS / list->cpus, READS_MIN);
}

/*
 * HtFtWay.begin.  Read where the processors' parts are, in each poll: when the
 * guest takes a snapshot, ftrace swaps the buffers.
 */
static void begin(void *opaque)
{
    List *list = opaque;
    uint64_t buffer = read_buffer(list), buffers;
    uint32_t i;

    list->reads = HT_KERNEL_RING_READS;
    if (!buffer ||
        ht_kernel_space_u64_again(&list->space, buffer + list->layout.buffers,
                                  &list->buffers) || !list->buffers) {
        return;
    }
    buffers = list->buffers;
    if (ht_kernel_space_read(&list->space, buffers, list->address,
                             8 * (size_t)list->cpus)) {
        return;
    }
    if (list->beyond) {
        uint64_t next;

        list->cut = !ht_kernel_space_u64(&list->space, buffers +
                                         8 * HT_FT_CPUS_MAX, &next) && next;
    }
    for (i = 0; i < list->cpus; i++) {
        HtListCpu *l = &list->cpu[i];
        uint64_t va = ht_le64(list->address[i]);

        l->reads = reads_of_poll(list);
        if (va == l->va || va % 8) {
            continue;
        }
        /* The copy of the pointer may be torn: read the pointer atomically. */
        if (ht_kernel_space_u64(&list->space, buffers + 8 * (uint64_t)i,
                                &va) || va == l->va) {
            continue;
        }
        *l = (HtListCpu) {
            .space = &list->space,
            .layout = &list->layout,
            .subbuf_size = list->subbuf_size,
            .reads = l->reads,
            .va = va,
            .placed = l->placed,
            .last = l->last,
            .lost_before = l->lost_before + l->lost,
        };
    }
}

/*
 * HtFtWay.grow: the guest may allocate a processor's part of the ring later.
 * Set @ring->cpus to the number of the last processor that has a part, plus 1.
 * Return true if @ring->cpus has grown.
 */
static bool grow(void *opaque, const HtFtMem *mem, HtFtRing *ring)
{
    List *list = opaque;
    uint32_t n = ring->cpus, i;

    (void)mem;
    for (i = n; i < list->cpus; i++) {
        if (list->cpu[i].va) {
            n = i + 1;
        }
    }
    ring->cut |= list->cut;
    i = ring->cpus;
    ring->cpus = n;
    return n > i;
}

static int collect(HtFtCpu *c, HtFtLook *look)
{
    List *list = c->opaque;
    HtListCpu *l = &list->cpu[c->number];
    uint32_t reads = MIN(l->reads, list->reads);
    int ret;

    l->reads = reads;
    ret = ht_list_collect(c, l, look);
    list->reads -= reads - l->reads;
    look->full |= list->reads < READS_MIN;
    return ret;
}

/*
 * HtFtWay.polls.  Return an estimate: the number of pages is not known, but the
 * size of the guest's memory limits it.
 */
static uint64_t polls(void *opaque, const HtFtMem *mem, const HtFtRing *ring)
{
    uint64_t pages = MIN(mem->size / ring->subbuf_size, HT_FT_PAGES_MAX);

    return pages * READS_OF_PAGE / reads_of_poll(opaque) + 2;
}

static void free_list(void *opaque)
{
    List *list = opaque;

    g_free(list->address);
    g_free(list->cpu);
    g_free(list);
}

static const HtFtWay list_way = {
    .one_boot = true,
    .grow = grow,
    .begin = begin,
    .collect = collect,
    .polls = polls,
    .free = free_list,
};

/*
 * Read the size of sub-buffers in bytes: a page, unless a user in the guest
 * changed it
 */
static uint32_t read_subbuf_size(List *list)
{
    const HtKernelRingLayout *p = &list->layout;
    uint64_t buffer = read_buffer(list);
    uint32_t size;

    if (p->subbuf_size == UINT32_MAX || !buffer ||
        ht_kernel_space_u32(&list->space, buffer + p->subbuf_size, &size)) {
        return p->page_size;
    }
    size += HT_FT_PAGE_HEADER;
    return size >= p->page_size && size <= 65536 && !(size & (size - 1)) ?
           size : p->page_size;
}

HtFtFollow *ht_kernel_ring_follow(const HtKernelSpace *space,
                                  const HtKernelRingLayout *layout,
                                  uint64_t array, uint32_t cpus,
                                  uint64_t text, const HtFtFollowOps *ops,
                                  void *opaque)
{
    List *list = g_new0(List, 1);
    HtFtRing *ring = g_new0(HtFtRing, 1);

    list->space = *space;
    list->layout = *layout;
    list->array = array;
    list->cpus = CLAMP(cpus, 1, HT_FT_CPUS_MAX);
    list->beyond = cpus > HT_FT_CPUS_MAX;
    list->subbuf_size = read_subbuf_size(list);
    list->address = g_new0(uint64_t, list->cpus);
    list->cpu = g_new0(HtListCpu, list->cpus);
    ring->layout = HT_FT_LAYOUT_LIST;
    ring->subbuf_size = list->subbuf_size;
    ring->cpu = g_new0(HtFtRingCpu, list->cpus);
    ring->text = text;
    return ht_ft_follow_new_way(space->mem, ring, &list_way, list, ops,
                                opaque);
}
