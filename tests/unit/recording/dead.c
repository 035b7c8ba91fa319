/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write the file in which a killed QEMU leaves the stream memory of a device
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "core-memory.h"
#include "recording-make.h"

#define SIZE    HT_PACKET_SIZE_MIN
#define PACKETS 4u
#define STREAMS 3u

static void write_file(const char *dir, const char *name, const void *data,
                       size_t size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_true(g_file_set_contents(path, data, size, NULL));
}

/*
 * Write @n events to the ring of a stream, with the numbers from 0 to @n - 1
 * and 1 us between two events. If the ring is full, new events overwrite the
 * oldest.
 */
static void fill(CtMemory *m, uint32_t stream, const char *name, uint64_t n)
{
    CtRing ring;
    uint64_t i;

    ct_ring_init(&ring, SIZE, PACKETS, true);
    ring.stream = stream;
    ring.instance = 5 + stream;
    for (i = 0; i < n; i++) {
        /* ct_ring_emit() first adds 10 to the clock */
        ring.clock = 1000000 - 10 + i * 1000;
        g_assert_true(ct_ring_emit(&ring, i));
    }
    ct_memory_put(m, &ring, name, (int32_t)stream - 1);
    ct_ring_destroy(&ring);
}

/*
 * Write memory of three streams: stream 0 has overwritten events, stream 1 was
 * never open, and stream 2 has 20 events. The file "short" lacks the memory's
 * last byte.
 */
void make_dead(const char *dir)
{
    const HtTimeSegment clock = {
        .counter = 1000000,
        .ns = 2000000000,
        .mult = UINT64_C(1) << HT_TIME_MULT_SHIFT,
    };
    HtClassTable *classes = ct_classes();
    CtMemory m;

    ct_memory_init(&m, STREAMS, SIZE, PACKETS, classes);
    ht_directory_set_clock(&m.directory, &clock);
    fill(&m, 0, "main", 10000);
    fill(&m, 2, "late", 20);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    write_file(dir, "ht0", m.ram, m.size);
    write_file(dir, "short", m.ram, m.size - 1);
    ct_memory_destroy(&m);
    ht_class_table_free(classes);
}
