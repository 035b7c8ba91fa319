/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "hypertrace/control.h"
#include "hypertrace/memory-layout.h"
#include "core-memory.h"

void ct_memory_init(CtMemory *m, uint32_t streams, uint32_t packet_size,
                    uint32_t packets, const HtClassTable *classes)
{
    struct ht_caps le;
    uint32_t id;

    memset(m, 0, sizeof(*m));
    m->caps.channel = HT_CHANNEL_SHM;
    m->caps.streams = streams;
    m->caps.packet_size = packet_size;
    m->caps.packets = packets;
    g_assert_true(ht_layout(&m->caps));
    m->size = ht_layout_size(&m->caps);
    m->ram = g_malloc0(m->size);
    ht_caps_swap(&le, &m->caps);
    memcpy(m->ram, &le, sizeof(le));
    m->directory.base = m->ram + ht_layout_directory(&m->caps);
    ht_directory_clear(&m->directory, 0);
    for (id = 1; id <= ht_class_table_count(classes); id++) {
        ht_directory_add_class(&m->directory, ht_class_table_get(classes, id));
    }
}

void ct_memory_destroy(CtMemory *m)
{
    g_free(m->ram);
}

struct ht_ring_control *ct_memory_ring(CtMemory *m, uint32_t stream)
{
    return ht_layout_ring(&m->caps, m->ram, stream);
}

void ct_memory_put(CtMemory *m, const CtRing *ring, const char *name,
                   int32_t vcpu)
{
    struct ht_ring_control *to = ct_memory_ring(m, ring->stream);
    HtStreamInfo info = {
        .index = ring->stream,
        .vcpu = vcpu,
        .instance = ring->instance,
    };

    g_strlcpy(info.name, name, sizeof(info.name));
    ht_directory_set_stream(&m->directory, &info, 5000);
    memcpy(to, ring->control, sizeof(*to));
    memcpy((uint8_t *)to + HT_PACKETS_OFFSET, ring->data,
           (size_t)ring->packets * ring->packet_size);
}
