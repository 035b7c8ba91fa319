/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: write the enable bytes of a device, and poll the backends */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/timer.h"
#include "device.h"
#include "trace.h"

/* Devices whose backends the timer polls; BQL */
static QTAILQ_HEAD(, HypertraceDevice) polled = QTAILQ_HEAD_INITIALIZER(polled);
static QEMUTimer *timer;

static bool wants(void *opaque, const HtClass *c)
{
    HypertraceDevice *dev = opaque;

    return ht_dispatch_wants(dev->dispatch, c);
}

/*
 * HtEnableConfig.write.  Write only if there is stream RAM and the VM runs.  Do
 * not read the enable bytes back: the guest can write to them.
 */
static void page_write(void *opaque, const HtClass *c, bool on)
{
    HypertraceDevice *dev = opaque;
    uint64_t offset = dev->caps.enable_offset + c->id;

    trace_hypertrace_enable(dev->trace->name, c->id, c->name, on);
    if (dev->ring_mr && dev->poll.running) {
        qatomic_set(dev->ring_ram + offset, on ? HT_ENABLE_ON : 0);
        memory_region_set_dirty(dev->ring_mr, offset, 1);
    }
}

static void page_write_all(HypertraceDevice *dev)
{
    const HtEnable *e = &dev->enable;
    uint8_t *page = dev->ring_ram + dev->caps.enable_offset;
    uint32_t id;

    for (id = 0; id < HT_ENABLE_SIZE; id++) {
        qatomic_set(page + id, id <= e->count && e->on[id] ? HT_ENABLE_ON : 0);
    }
    memory_region_set_dirty(dev->ring_mr, dev->caps.enable_offset,
                            HT_ENABLE_SIZE);
}

/*
 * HtEnableConfig.changed: notify the driver, which can then ask for the
 * settings and for the classes that are on
 */
static void changed(void *opaque, uint32_t seq)
{
    HypertraceDevice *dev = opaque;

    dev->caps.enable_seq = seq;
    virtio_notify_config(VIRTIO_DEVICE(dev));
}

void ht_device_enable_init(HypertraceDevice *dev)
{
    const HtEnableConfig cfg = {
        .classes = dev->trace->classes,
        .wants = wants,
        .write = page_write,
        .changed = changed,
        .opaque = dev,
    };

    ht_enable_init(&dev->enable, &cfg);
}

static void poll(void *opaque)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME), next = INT64_MAX;
    HypertraceDevice *dev;

    QTAILQ_FOREACH(dev, &polled, poll.next) {
        next = MIN(next, ht_enable_poll(&dev->enable, now));
    }
    if (!QTAILQ_EMPTY(&polled)) {
        timer_mod(timer, next);
    }
}

void ht_device_enable_watch(HypertraceDevice *dev)
{
    HtEnablePoll *p = &dev->poll;
    bool want = p->running && ht_class_table_count(dev->trace->classes) &&
                ht_dispatch_chooses(dev->dispatch);

    if (want && !p->polled) {
        QTAILQ_INSERT_TAIL(&polled, dev, poll.next);
    } else if (!want && p->polled) {
        QTAILQ_REMOVE(&polled, dev, poll.next);
    }
    p->polled = want;
    if (!want) {
        return;
    }
    if (!timer) {
        timer = timer_new_ms(QEMU_CLOCK_REALTIME, poll, NULL);
    }
    timer_mod_anticipate(timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                                HT_ENABLE_OFF_MS);
}

void ht_device_enable_start(HypertraceDevice *dev)
{
    dev->poll.running = true;
    ht_enable_decide(&dev->enable);
    ht_device_enable_reset(dev);
    ht_device_enable_watch(dev);
}

void ht_device_enable_stop(HypertraceDevice *dev)
{
    dev->poll.running = false;
    ht_device_enable_watch(dev);
}

void ht_device_enable_reset(HypertraceDevice *dev)
{
    if (!dev->poll.running) {
        /*
         * The VM is stopped, and loadvm may load the stream RAM next: do not
         * write to it.
         */
        return;
    }
    if (dev->ring_mr) {
        page_write_all(dev);
    }
    if (dev->enable.count || dev->enable.settings) {
        ht_enable_tell(&dev->enable);
    }
}
