/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the position to continue at in an ordinary ftrace ring
 *
 * The kernel links the pages of a processor's ring by nodes (buffer_page) in a
 * circle.  The head is the node with the oldest page.  The lowest bits of a
 * node's next pointer are flags: 1 if the next node is the head, 2 while the
 * writer moves the head away from the next node.  The page for readers in the
 * guest is not in the circle: a reader swaps it with the head.
 *
 * From the head to the writer's page the list is in the order of writing.
 */
#include "ring.h"

#define HEAD    1u
#define MOVING  2u
#define FLAGS   3u

/*
 * Number of nodes, from the writer's on, that are searched for the head before
 * the whole list is searched
 */
#define AHEAD   4u
#define TRIES   4u
/* Maximum bytes that are read of a ring_buffer_per_cpu, and of a buffer_page */
#define HEADER_MAX 1024u
#define NODE_MAX   256u

static int spend(HtListCpu *l)
{
    if (!l->reads) {
        return -EAGAIN;
    }
    l->reads--;
    return 0;
}

static void range(uint32_t *from, uint32_t *to, uint32_t member)
{
    *from = MIN(*from, member);
    *to = MAX(*to, member + 8);
}

/* Get the range of a ring_buffer_per_cpu that has HtListHeader's members */
static void header_range(const HtKernelRingLayout *p, uint32_t *from,
                         uint32_t *to)
{
    *from = UINT32_MAX;
    *to = 0;
    range(from, to, p->reader);
    range(from, to, p->commit);
    range(from, to, p->head);
    range(from, to, p->pages);
    range(from, to, p->entries);
    range(from, to, p->overrun);
    range(from, to, p->read);
    range(from, to, p->committing);
}

bool ht_list_layout_ok(const HtKernelRingLayout *p)
{
    uint32_t from, to;

    header_range(p, &from, &to);
    return to - from <= HEADER_MAX && p->node_page >= 16 &&
           p->node_page + 8 <= NODE_MAX;
}

int ht_list_header(HtListCpu *l, HtListHeader *h)
{
    const HtKernelRingLayout *p = l->layout;
    uint8_t copy[HEADER_MAX];
    uint32_t from, to;
    int ret = spend(l);

    header_range(p, &from, &to);
    ret = ret ? ret : ht_kernel_space_read(l->space, l->va + from, copy,
                                           to - from);
    if (ret) {
        return ret;
    }
    *h = (HtListHeader) {
        .reader = ht_get_le64(copy + p->reader - from),
        .commit = ht_get_le64(copy + p->commit - from),
        .head = ht_get_le64(copy + p->head - from),
        .pages = ht_get_le64(copy + p->pages - from),
        .entries = ht_get_le64(copy + p->entries - from),
        .overrun = ht_get_le64(copy + p->overrun - from),
        .read = ht_get_le64(copy + p->read - from),
        .committing = ht_get_le64(copy + p->committing - from),
    };
    return 0;
}

int ht_list_node(HtListCpu *l, uint64_t addr, HtListNode *n)
{
    uint32_t page = l->layout->node_page;
    uint8_t copy[NODE_MAX];
    int ret = spend(l);

    if (!addr || addr % 8) {
        return -EINVAL;
    }
    ret = ret ? ret : ht_kernel_space_read(l->space, addr, copy, page + 8);
    if (ret) {
        return ret;
    }
    *n = (HtListNode) {
        .addr = addr,
        .next = ht_get_le64(copy),
        .prev = ht_get_le64(copy + 8),
        .page = ht_get_le64(copy + page),
    };
    return n->page % 8 ? -EINVAL : 0;
}

int ht_list_page(HtListCpu *l, uint64_t page, uint64_t *stamp, uint32_t *size)
{
    uint8_t copy[HT_FT_PAGE_HEADER];
    int ret = spend(l);

    ret = ret ? ret : ht_kernel_space_read(l->space, page, copy,
                                           sizeof(copy));
    if (ret) {
        return ret;
    }
    *stamp = ht_get_le64(copy);
    *size = MIN(ht_get_le32(copy + 8) & HT_FT_COMMIT_MASK,
                l->subbuf_size - HT_FT_PAGE_HEADER) & ~3u;
    return 0;
}

static HtListWalk failed(int ret)
{
    return ret == -EAGAIN ? HT_LIST_MORE : HT_LIST_ERROR;
}

/*
 * Walk from the node @from, over at most @max nodes, to a next pointer that
 * marks the head, and read the head's node to @head
 */
static HtListWalk scan_head(HtListCpu *l, uint64_t from, uint32_t max,
                            HtListNode *head)
{
    uint64_t at = from;
    HtListNode n;
    int ret;

    while (max--) {
        ret = ht_list_node(l, at, &n);
        if (ret) {
            /*
             * If no reads are left, continue at this node in the next poll.
             * Otherwise the node cannot be read, for example because the
             * pointer to it was torn: the next poll starts again.
             */
            l->scan = ret == -EAGAIN ? at : 0;
            return failed(ret);
        }
        at = HT_LIST_ADDR(n.next);
        if (!(n.next & FLAGS)) {
            continue;
        }
        ret = ht_list_node(l, at, head);
        if (!ret && (n.next & FLAGS) == MOVING) {
            /* The writer is moving the head to the node after this one. */
            ret = ht_list_node(l, HT_LIST_ADDR(head->next), head);
        }
        l->scan = 0;
        return ret ? failed(ret) : HT_LIST_DONE;
    }
    return HT_LIST_LOST;
}

/*
 * Find the head.  Until the ring wraps, the head is the node to which the
 * kernel's member head_page points, which is only a hint.  After that the head
 * is usually at most AHEAD nodes after the writer's page.  If it is at neither
 * place, search the whole list, in as many polls as that takes.
 */
static HtListWalk find_head(HtListCpu *l, const HtListHeader *h,
                            HtListNode *head)
{
    HtListWalk walk = HT_LIST_LOST;
    HtListNode n;

    if (!l->scan) {
        if (!ht_list_node(l, h->head, &n)) {
            walk = scan_head(l, HT_LIST_ADDR(n.prev), 1, head);
        }
        if (walk != HT_LIST_DONE) {
            walk = scan_head(l, h->commit, AHEAD, head);
        }
    }
    if (walk != HT_LIST_DONE) {
        walk = scan_head(l, l->scan ? l->scan : HT_LIST_ADDR(h->pages),
                         HT_FT_PAGES_MAX, head);
    }
    return walk;
}

static bool is_newer(const HtListCpu *l, uint64_t stamp)
{
    return !l->placed || stamp > l->last;
}

static void choose(HtListCpu *l, const HtListNode *n, uint64_t stamp,
                   bool apart)
{
    l->at = (HtListCursor) { n->addr, n->page, stamp, apart };
}

/*
 * Find the oldest page, from the head on, that is newer than the page taken
 * last.  The writer may overwrite the head during this search: a page that is
 * newer than its successor is not the oldest.
 */
static HtListWalk find_newer(HtListCpu *l, const HtListHeader *h,
                             HtListNode *n)
{
    HtListNode next;
    uint64_t stamp, stamp2;
    uint32_t size, size2;
    int ret = ht_list_page(l, n->page, &stamp, &size);

    while (!ret) {
        bool good = size && is_newer(l, stamp);

        if (n->addr == h->commit) {
            if (good) {
                choose(l, n, stamp, false);
            }
            return HT_LIST_DONE;
        }
        ret = ht_list_node(l, HT_LIST_ADDR(n->next), &next);
        ret = ret ? ret : ht_list_page(l, next.page, &stamp2, &size2);
        if (!ret && good && (!size2 || stamp2 >= stamp)) {
            choose(l, n, stamp, false);
            return HT_LIST_DONE;
        }
        *n = next;
        stamp = stamp2;
        size = size2;
    }
    return failed(ret);
}

/*
 * Test whether a node is the head, and the writer is not moving the head.  All
 * events before the head's page then count as overwritten, if no reader in the
 * guest took pages.
 */
static bool is_head(HtListCpu *l, const HtListNode *n)
{
    HtListNode before;

    return !ht_list_node(l, HT_LIST_ADDR(n->prev), &before) &&
           before.next == (n->addr | HEAD);
}

/*
 * Test whether the ring was emptied since the last page was taken, but the
 * writer's page has an older time stamp: the guest has changed the trace clock
 */
static bool went_back(HtListCpu *l, const HtListHeader *h)
{
    HtListNode n;
    uint64_t stamp;
    uint32_t size;

    return l->restart && !ht_list_node(l, h->commit, &n) &&
           !ht_list_page(l, n.page, &stamp, &size) && size && stamp < l->last;
}

static HtListWalk place_once(HtListCpu *l)
{
    HtListHeader h, after;
    HtListWalk walk;
    HtListNode n;
    bool head = false;
    uint64_t stamp;
    uint32_t size;
    int ret = ht_list_header(l, &h);

    if (ret || !h.reader || !h.commit) {
        return ret ? failed(ret) : HT_LIST_DONE;
    }
    if (ht_list_emptied(&l->h, &h)) {
        return HT_LIST_MORE;
    }
    ret = ht_list_node(l, h.reader, &n);
    ret = ret ? ret : ht_list_page(l, n.page, &stamp, &size);
    if (ret) {
        return failed(ret);
    }
    if (size && is_newer(l, stamp)) {
        choose(l, &n, stamp, true);
    } else if (h.reader != h.commit) {
        walk = find_head(l, &h, &n);
        walk = walk == HT_LIST_DONE ? find_newer(l, &h, &n) : walk;
        if (walk != HT_LIST_DONE) {
            return walk;
        }
        head = !size && l->at.node && is_head(l, &n);
    }
    /* The result is valid only if no reader in the guest swapped a page. */
    ret = ht_list_header(l, &after);
    if (ret) {
        return failed(ret);
    }
    if (ht_list_emptied(&h, &after)) {
        return HT_LIST_MORE;
    }
    l->proved = head && after.overrun == h.overrun && !after.read;
    l->before = after.overrun;
    if (!l->at.node && went_back(l, &h)) {
        l->placed = false;
        return HT_LIST_LOST;
    }
    return after.reader == h.reader ? HT_LIST_DONE : HT_LIST_LOST;
}

HtListWalk ht_list_place(HtListCpu *l)
{
    HtListWalk walk = HT_LIST_LOST;
    unsigned i;

    for (i = 0; i < TRIES && walk == HT_LIST_LOST; i++) {
        l->at.node = 0;
        walk = place_once(l);
    }
    if (walk != HT_LIST_DONE) {
        l->at.node = 0;
        return walk == HT_LIST_LOST ? HT_LIST_MORE : walk;
    }
    if (l->at.node) {
        l->last = l->at.stamp;
        l->placed = true;
        l->restart = false;
    }
    return HT_LIST_DONE;
}
