/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: read the host's statistics of this guest's vCPUs
 *
 * A guest need not trust its host: the words are copied in a bounded number of
 * attempts, and the copy is checked.
 */
#include "core.h"

#define ATTEMPTS        64
#define WORDS           (sizeof(struct ht_host_stats) / sizeof(uint64_t))

/* Copy a slot; returns false if the copy may mix old and new values */
static bool copy(struct ht_host_stats *to, const struct ht_host_stats *slot)
{
    const uint64_t *from = (const uint64_t *)slot;
    unsigned i;

    /* Pairs with the store-release of the even seq in ht_host_page_write(). */
    to->seq = ht_load_acquire(&from[0]);
    for (i = 1; i < WORDS; i++) {
        /*
         * Pairs with the store-release of this word in ht_host_page_write(): if
         * this load gets a newer word, the last load of seq gets a newer seq.
         */
        ht_put64((uint8_t *)to + 8 * i, ht_load_acquire(&from[i]));
    }
    return to->seq % 2 == 0 && ht_load_relaxed(&from[0]) == to->seq;
}

/* Subtract @part from *@ns; returns false if @part is larger than *@ns */
static bool take(uint64_t *ns, uint64_t part)
{
    if (part > *ns) {
        return false;
    }
    *ns -= part;
    return true;
}

static bool valid(const struct ht_host_stats *s, unsigned vcpu)
{
    const uint64_t ns = s->to_ns - s->from_ns;
    uint64_t states = ns, causes = ns;
    unsigned i, k;

    if (s->from_ns > s->to_ns || s->nr_exits > HT_HOST_EXITS ||
        (s->vcpu != (int32_t)vcpu && (vcpu || s->vcpu != -1)) ||
        !take(&states, s->guest_ns) || !take(&states, s->exits_ns) ||
        !take(&states, s->vmm_ns) || !take(&states, s->preempted_ns) ||
        !take(&states, s->woken_ns) || !take(&states, s->halted_ns) ||
        !take(&states, s->waiting_ns) || !take(&states, s->unknown_ns) ||
        !take(&causes, s->machines_ns) || !take(&causes, s->tasks_ns) ||
        !take(&causes, s->own_ns) || !take(&causes, s->idle_ns)) {
        return false;
    }
    for (i = 0; i < s->nr_exits; i++) {
        const struct ht_host_exit *e = &s->exits[i];

        for (k = 0; k < sizeof(e->name) && e->name[k]; k++) {
            if (e->name[k] < '!' || e->name[k] > '~') {
                return false;
            }
        }
        if (k == sizeof(e->name) || e->ns > ns) {
            return false;
        }
    }
    return s->other_exits_ns <= ns;
}

int ht_host_stats(const struct ht_device *dev, unsigned vcpu,
                  struct ht_host_stats *stats)
{
    const struct ht_host_page *page;
    unsigned i;

    /* Bare metal, virtio: the copy of the page has only the enable bytes. */
    if (!dev->enable || dev->enable_copy || vcpu >= HT_HOST_VCPUS) {
        return -ENODATA;
    }
    page = (const struct ht_host_page *)(dev->enable + HT_HOST_OFFSET);
    /* Pairs with the store-release of magic in ht_host_page_begin(). */
    if (ht_load_acquire32(&page->magic) != HT_HOST_MAGIC) {
        return -ENODATA;
    }
    if (ht_load_relaxed32(&page->version) != HT_HOST_VERSION) {
        return -EPROTO;
    }
    for (i = 0; i < ATTEMPTS; i++) {
        if (copy(stats, &page->vcpus[vcpu])) {
            return !stats->seq ? -ENODATA : valid(stats, vcpu) ? 0 : -EIO;
        }
    }
    return -EAGAIN;
}
