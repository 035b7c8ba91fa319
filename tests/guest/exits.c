/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function exits: measure the cost of leaving the guest, without
 * emitting events
 *
 * These costs are lower limits for the cost of a doorbell: with
 * channel=hypercall a doorbell cannot be cheaper than an exit to QEMU. With the
 * other channels KVM, if it runs the guest, handles the doorbell, which cannot
 * be cheaper than an exit to the kernel.
 */
#include "hypertrace/hypertrace.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "io.h"
#include "mm.h"
#include "payload.h"
#include "virtqueue.h"

/* port: a write causes an exit to QEMU, which ignores it */
#define DELAY_PORT      0x80

static uint8_t *mmio_target;
static struct ht_stream *rung;
static uint32_t mmio_value;

static void nothing(void)
{
}

static void pio_write(void)
{
    outb(DELAY_PORT, 0);
}

static void mmio_write(void)
{
    ht_bm_write32(mmio_target, mmio_value);
}

static void mmio_write16(void)
{
    ht_bm_write16(mmio_target, mmio_value);
}

static void ring(void)
{
    rung->dev->ops->doorbell(rung->dev, rung->index);
}

static void mmio_read(void)
{
    ht_bm_read32(mmio_target);
}

/*
 * Run five rounds of @count calls, and return the ticks of the fastest round:
 * other programs on the host slow some rounds.
 */
static uint64_t cost(void (*op)(void), uint64_t count)
{
    uint64_t best = UINT64_MAX;

    for (unsigned round = 0; round < 5; round++) {
        uint64_t start = ht_clock();
        uint64_t ticks;

        for (uint64_t i = 0; i < count; i++) {
            op();
        }
        ticks = ht_clock() - start;
        best = ticks < best ? ticks : best;
    }
    return best;
}

static void report(const char *name, void (*op)(void), uint64_t count,
                   uint64_t hz)
{
    json_milli(name, clock_ps(cost(op, count), hz) / count);
}

static void device_exits(unsigned index, uint64_t count)
{
    struct ht_bm_device *d = device_open(index);
    struct ht_stream *s = mm_alloc(sizeof(*s), 64);
    uint64_t hz = clock_hz(d->dev.caps.clock_hz);
    int ret = s ? ht_stream_open(&d->dev, s, NULL) : -ENOMEM;

    if (ret) {
        payload_die(PAYLOAD_FAILED, "cannot open a stream", errno_name(ret));
    }
    json_begin(NULL);
    json_str("function", "exits");
    json_u64("device", index);
    json_str("channel", device_channel(d));
    if (d->regs) {
        /* the register at offset 0, where the device ignores writes */
        mmio_target = d->regs;
    } else {
        /*
         * common configuration of virtio: a write to offset 0 selects which
         * features to read, without any other effect
         */
        mmio_target = d->common;
    }
    mmio_value = 0;
    report("mmio_write_ns", mmio_write, count, hz);
    report("mmio_read_ns", mmio_read, count, hz);

    /*
     * Ring the doorbell of an empty stream, so that the host consumes no
     * events.
     */
    if (d->regs) {
        rung = s;
        report("doorbell_ns", ring, count, hz);
        json_u64("tcg", d->tcg);
    } else {
        mmio_target = d->data[s->index]->notify;
        mmio_value = HT_VQ_DATA(s->index);
        report("doorbell_ns", mmio_write16, count, hz);
    }
    json_end();
    ret = ht_stream_close(s);
    if (ret) {
        payload_die(PAYLOAD_FAILED, "cannot close the stream",
                    errno_name(ret));
    }
    ht_bm_close(d);
}

enum payload_exit payload_exits(void)
{
    uint64_t count = cmdline_u64("count", 1000, 1, 1000000);
    uint64_t hz = clock_hz(0);
    unsigned devices = device_count();

    cmdline_done();
    json_begin(NULL);
    json_str("function", "exits");
    json_u64("clock_hz", hz);
    report("nothing_ns", nothing, count, hz);
    report("pio_write_ns", pio_write, count, hz);
    json_u64("devices", devices);
    json_end();
    for (unsigned i = 0; i < devices; i++) {
        device_exits(i, count);
    }
    return PAYLOAD_OK;
}
