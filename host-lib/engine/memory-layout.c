/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: compute and check the layout of stream memory
 */
#include "hypertrace/base.h"
#include "hypertrace/memory-directory.h"
#include "hypertrace/memory-layout.h"

uint64_t ht_layout_directory(const struct ht_caps *c)
{
    return c->mailbox_offset + 2 * HT_MAILBOX_SIZE;
}

bool ht_layout(struct ht_caps *c)
{
    if (!ht_power_of_two(c->packet_size, HT_PACKET_SIZE_MIN,
                         HT_PACKET_SIZE_MAX) ||
        !ht_power_of_two(c->packets, HT_PACKETS_MIN, HT_PACKETS_MAX)) {
        return false;
    }
    c->magic = HT_MAGIC;
    c->version = HT_VERSION;
    c->enable_offset = HT_MAP_ALIGN;
    c->mailbox_offset = c->enable_offset + HT_ENABLE_SIZE;
    c->mailbox_size = HT_MAILBOX_SIZE;
    c->ring_offset = ht_layout_directory(c) + HT_DIRECTORY_SIZE;
    c->ring_stride = HT_ROUND_UP(HT_PACKETS_OFFSET +
                                 (uint64_t)c->packet_size * c->packets,
                                 HT_MAP_ALIGN);
    return true;
}

uint64_t ht_layout_size(const struct ht_caps *c)
{
    return c->ring_offset + c->streams * c->ring_stride;
}

const char *ht_layout_check(const struct ht_caps *c, uint64_t size)
{
    struct ht_caps want = *c;

    if (c->magic != HT_MAGIC) {
        return "the memory was not made by hypertrace";
    }
    if (c->version != HT_VERSION) {
        return "the memory is of another version of hypertrace";
    }
    if (!ht_layout(&want) || memcmp(c, &want, sizeof(want)) ||
        c->streams < 1 || c->streams > HT_STREAMS_MAX ||
        ht_layout_size(c) > size) {
        return "page 0 of the memory contradicts itself";
    }
    return NULL;
}
