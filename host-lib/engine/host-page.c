/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: tell a guest what its host does with its vCPUs
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/host-page.h"

#define WORDS   (sizeof(struct ht_host_stats) / sizeof(uint64_t))

G_STATIC_ASSERT(HT_HOST_OFFSET > HT_CLASSES_MAX);
G_STATIC_ASSERT(HT_HOST_OFFSET + sizeof(struct ht_host_page) <=
                HT_ENABLE_SIZE);
G_STATIC_ASSERT(sizeof(struct ht_host_exit) == 40);
G_STATIC_ASSERT(sizeof(struct ht_host_stats) == 784);
G_STATIC_ASSERT(offsetof(struct ht_host_page, vcpus) == 64);

static struct ht_host_page *page_of(uint8_t *enable)
{
    return (struct ht_host_page *)(enable + HT_HOST_OFFSET);
}

void ht_host_page_clear(uint8_t *enable)
{
    ht_atomic_set(&page_of(enable)->magic, 0);
}

void ht_host_page_begin(HtHostPage *p, uint8_t *enable, uint64_t seed)
{
    unsigned i;

    p->page = page_of(enable);
    for (i = 0; i < HT_HOST_VCPUS; i++) {
        p->seq[i] = seed / 2 * 2;
        ht_atomic_set(&p->page->vcpus[i].seq, 0);
    }
    ht_atomic_set(&p->page->version, ht_le32(HT_HOST_VERSION));
    /* Pairs with the load-acquire of magic in ht_host_stats(). */
    ht_atomic_store_release(&p->page->magic, ht_le32(HT_HOST_MAGIC));
}

/* A vCPU's values as a structure, and as the words that are stored */
typedef union Slot {
    struct ht_host_stats stats;
    uint64_t words[WORDS];
} Slot;

/* Convert values to little-endian, the byte order of the page */
static void encode(Slot *s)
{
    unsigned i;

    s->stats.vcpu = (int32_t)ht_le32((uint32_t)s->stats.vcpu);
    s->stats.nr_exits = ht_le32(s->stats.nr_exits);
    for (i = 0; i < offsetof(struct ht_host_stats, exits) / 8; i++) {
        if (i != offsetof(struct ht_host_stats, vcpu) / 8) {
            s->words[i] = ht_le64(s->words[i]);
        }
    }
    for (i = 0; i < HT_HOST_EXITS; i++) {
        struct ht_host_exit *e = &s->stats.exits[i];

        e->reason = ht_le32(e->reason);
        e->count = ht_le64(e->count);
        e->ns = ht_le64(e->ns);
    }
}

void ht_host_page_write(HtHostPage *p, unsigned vcpu,
                        const struct ht_host_stats *stats)
{
    uint64_t *to = (uint64_t *)&p->page->vcpus[vcpu];
    Slot s = { .stats = *stats };
    unsigned i;

    encode(&s);
    ht_atomic_set(&to[0], ht_le64(p->seq[vcpu] + 1));
    for (i = 1; i < WORDS; i++) {
        /*
         * Pairs with the guest's load-acquire of this word: a guest that has
         * loaded the new word then loads the odd seq, or a later seq.
         */
        ht_atomic_store_release(&to[i], s.words[i]);
    }
    /* Skip 0, which would mean that the slot has no data. */
    p->seq[vcpu] = p->seq[vcpu] + 2 ? p->seq[vcpu] + 2 : 2;
    /* Pairs with the guest's load-acquire of seq before the other words. */
    ht_atomic_store_release(&to[0], ht_le64(p->seq[vcpu]));
}
