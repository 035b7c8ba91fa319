/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files left by a killed QEMU: a device's stream RAM and its index
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "core-testlib.h"
#include "recording-make.h"

#define SIZE    HT_PACKET_SIZE_MIN
#define PACKETS 4u
#define STRIDE  HT_ROUND_UP(HT_PACKETS_OFFSET + PACKETS * SIZE, HT_MAP_ALIGN)
#define STREAMS 3u

static void write_file(const char *dir, const char *name, const void *data,
                       size_t size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_true(g_file_set_contents(path, data, size, NULL));
}

/* Fill a stream with the numbers from 0 to @n - 1, one per microsecond. */
static void fill(uint8_t *ram, GByteArray *index, uint32_t stream,
                 const char *name, uint64_t n)
{
    HtDeadStream s = { .vcpu = (int32_t)stream - 1 };
    CtRing ring;
    uint64_t i;

    ct_ring_init(&ring, SIZE, PACKETS, true);
    ring.stream = stream;
    ring.instance = 5 + stream;
    for (i = 0; i < n; i++) {
        /* ct_ring_emit() adds 10 */
        ring.clock = 1000000 - 10 + i * 1000;
        g_assert_true(ct_ring_emit(&ring, i));
    }
    memcpy(ram + stream * STRIDE, ring.control, sizeof(*ring.control));
    memcpy(ram + stream * STRIDE + HT_PACKETS_OFFSET, ring.data,
           PACKETS * SIZE);
    ct_ring_destroy(&ring);
    s.instance = 5 + stream;
    s.counter = 1000000;
    s.ns = 2000000000;
    s.mult = UINT64_C(1) << HT_TIME_MULT_SHIFT;
    g_strlcpy(s.name, name, sizeof(s.name));
    ht_dead_stream_swap(&s);
    memcpy(index->data + HT_DEAD_STREAMS + stream * sizeof(s), &s, sizeof(s));
}

/*
 * Write three streams: one that has overwritten events, a short one, and one
 * that was never open.
 */
void make_dead(const char *dir)
{
    HtDeadHead h = {
        .magic = HT_DEAD_MAGIC,
        .version = HT_DEAD_VERSION,
        .streams = STREAMS,
        .packet_size = SIZE,
        .packets = PACKETS,
        .stride = STRIDE,
        .trace = "ht0",
        .vm = "vm\033[2J",
        .channel = "shm",
        .memory = "/nowhere/ram",
    };
    HtClassTable *classes = ct_classes();
    GByteArray *saved = ht_class_table_save(classes);
    GByteArray *index = g_byte_array_new();
    g_autofree uint8_t *ram = g_malloc0(STREAMS * STRIDE);

    g_byte_array_set_size(index, HT_DEAD_CLASSES);
    memset(index->data, 0, HT_DEAD_CLASSES);
    ht_dead_head_swap(&h);
    memcpy(index->data, &h, sizeof(h));
    fill(ram, index, 0, "main", 10000);
    fill(ram, index, 2, "late", 20);
    g_byte_array_append(index, saved->data, saved->len);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    write_file(dir, "index", index->data, index->len);
    write_file(dir, "ram", ram, STREAMS * STRIDE);
    write_file(dir, "short", ram, STREAMS * STRIDE - 1);
    g_byte_array_unref(index);
    g_byte_array_unref(saved);
    ht_class_table_free(classes);
}
