/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library, bare metal: places of the doorbells that a device gives
 *
 * Promise: the port refuses a device that places a doorbell outside of BAR0 or
 * at an offset that is not a multiple of 4. Otherwise it rings a doorbell at
 * its first byte or, if each doorbell has 64 KiB, at the start of its last
 * page.
 */
#include "hypertrace/base.h"
#include "hypertrace/memory-layout.h"
#include "internal.h"

#define REGS    (256 * 1024u)       /* size of BAR0 */
/* number of bytes after BAR0, in which the port must write nothing */
#define AFTER   (128 * 1024u)

static uint8_t *regs;

static void *map(void *opaque, uint64_t phys, uint64_t size, int ram)
{
    (void)phys;
    (void)size;
    return ram ? opaque : regs;
}

typedef struct Row {
    uint32_t streams;
    uint32_t offset;
    uint32_t stride;
    int result;
} Row;

/*
 * Return the offset in @regs of the doorbell that was rung: of the word, other
 * than the capabilities and HT_REG_TAKEOVER, that is no longer 0xffffffff.
 * Assert that the word is @stream, and that no second word has changed. Return
 * -1 if no word has changed.
 */
static int64_t rung(uint32_t stream)
{
    int64_t at = -1;
    uint32_t i;

    for (i = sizeof(struct ht_caps); i < REGS + AFTER; i += 4) {
        uint32_t v = ht_get_le32(regs + i);

        if (v != UINT32_MAX && i != HT_REG_TAKEOVER) {
            g_assert_cmpuint(v, ==, stream);
            g_assert_cmpint(at, ==, -1);
            at = i;
        }
    }
    return at;
}

static void check(const Row *row)
{
    struct ht_caps caps = {
        .channel = row->stride ? HT_CHANNEL_HYPERCALL : HT_CHANNEL_SHM,
        .counter = HT_COUNTER,
        .clock_hz = 1000000000,
        .streams = row->streams,
        .packet_size = HT_PACKET_SIZE_MIN,
        .packets = HT_PACKETS_MIN,
        .batch = 1,
        .max_gap = 1,
        .max_message = HT_MESSAGE_MAX,
        .doorbell_offset = row->offset,
        .doorbell_stride = row->stride,
    };
    struct ht_bm_platform platform = { .map = map };
    struct ht_bm_device d = {
        .platform = &platform,
        .bar = {
            [HT_PCI_BAR_REGS] = { 1, REGS },
            [HT_PCI_BAR_RING] = { 1, 1 << 30 },
        },
    };
    g_autofree uint8_t *ram = g_malloc0(HT_PAGE);
    uint32_t i;

    platform.opaque = ram;
    g_assert_true(ht_layout(&caps));
    g_test_message("%u streams, offset 0x%x, stride 0x%x", row->streams,
                   row->offset, row->stride);
    memset(regs, 0xff, REGS + AFTER);
    memcpy(regs, &caps, sizeof(caps));
    g_assert_cmpint(ht_bm_regs_open(&d), ==, row->result);
    g_assert_cmpint(rung(0), ==, -1);
    if (row->result) {
        return;
    }
    for (i = 0; i < row->streams; i++) {
        uint32_t from = row->offset + i * row->stride;
        int64_t at;

        for (d.tcg = 0; d.tcg <= 1; d.tcg++) {
            memset(regs + sizeof(caps), 0xff, REGS + AFTER - sizeof(caps));
            d.dev.ops->doorbell(&d.dev, i);
            at = rung(i);
            g_assert_cmpint(at, ==, from + (row->stride == HT_MAP_ALIGN ?
                                            HT_MAP_ALIGN - HT_PAGE : 0));
        }
    }
}

static void test_places(void)
{
    static const Row rows[] = {
        /* as QEMU's device gives them */
        { 2, 0x10000, 0x10000, 0 },
        { 3, 0x10000, 0x10000, 0 },
        { 1, 0x10000, 0, 0 },
        { 64, 0x10000, 0, 0 },
        /* one doorbell too many for BAR0 */
        { 4, 0x10000, 0x10000, -EPROTO },
        /* other distances */
        { 16, 0x1000, 0x1000, 0 },
        { 16, 0x1000, 4, 0 },
        { 2, 0x1000, 0x1004, 0 },
        { 2, 0x1000, 0x20000, 0 },
        /* at the end of the BAR */
        { 1, REGS - 4, 0, 0 },
        { 64, REGS - 4, 0, 0 },
        { 1, REGS - 4, 4, 0 },
        { 2, REGS - 4, 4, -EPROTO },
        { 2, REGS - 8, 4, 0 },
        { 1, REGS - 0x1000, 0x1004, 0 },
        { 1, REGS - 0x10000, 0x10000, 0 },
        { 1, REGS - 0xf000, 0x10000, -EPROTO },
        { 1, REGS - 0x1000, 0x10000, -EPROTO },
        { 1, REGS, 0, -EPROTO },
        { 64, REGS, 0, -EPROTO },
        { 1, REGS, 4, -EPROTO },
        { 1, REGS + 0x1000, 0x1000, -EPROTO },
        /* sums and products that do not fit into 32 bits */
        { 1, UINT32_MAX - 3, 0, -EPROTO },
        { 1, UINT32_MAX - 3, UINT32_MAX - 3, -EPROTO },
        { 2, 0x10000, UINT32_MAX - 3, -EPROTO },
        { 4, 0x10000, 0x40000000, -EPROTO },
        /* offsets and strides that are not multiples of 4 */
        { 1, 0x10001, 0, -EPROTO },
        { 1, 0x10002, 4, -EPROTO },
        { 1, 0x10000, 2, -EPROTO },
        { 1, 0x10000, 0x1001, -EPROTO },
    };
    unsigned i;

    regs = g_malloc(REGS + AFTER);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        check(&rows[i]);
    }
    g_free(regs);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/baremetal/doorbells", test_places);
    return g_test_run();
}
