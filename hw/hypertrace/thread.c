/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the consumer's thread
 *
 * Three things wake it: the doorbell (shm's producer, or anybody in QEMU), its
 * own polling, and a timer of flush-ms that bounds how long an event can wait
 * in an open packet.  When nothing has come for two ticks, it arms the wake
 * words for the very next commit and stops the timer: an idle device costs
 * nothing.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "block/aio-wait.h"
#include "device.h"

/*
 * A look at an open packet takes its cache line from the producer.  Looking
 * every 20 us costs the producer little, looking all the time tenfold.
 */
#define LOOK_INTERVAL_NS (20 * SCALE_US)

/* Looks until all that a stopped VM committed is surely delivered */
#define SETTLE_ROUNDS 64

/* Context: IOThread */
static void thread_arm(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (dev->channel->arms && ht_ring_arm_all(dev, t->eager)) {
        event_notifier_set(&t->doorbell);
    }
}

/* Context: IOThread */
static bool thread_any_open(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        if (qatomic_read(&dev->streams[i].phase) != HT_PHASE_FREE) {
            return true;
        }
    }
    return false;
}

/* Whether events may be waiting that nobody rings for.  Context: IOThread */
static bool thread_needs_timer(HypertraceDevice *dev)
{
    if (!thread_any_open(dev)) {
        return false;
    }
    /*
     * A commit just before the eager arming may have missed it (ht_commit()
     * has no full fence), hence one more tick after it.
     */
    return dev->channel->arms ? dev->thread.quiet < 2 :
           dev->channel->consumes_in_vcpu && dev->conf.batch > 1;
}

/* Context: IOThread */
static void thread_start_timer(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (thread_needs_timer(dev) && !timer_pending(t->timer)) {
        timer_mod(t->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                            dev->conf.flush_ms);
    }
}

/* Context: IOThread */
static void thread_work(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;
    uint64_t flush = qatomic_load_acquire(&t->flush_wanted);
    unsigned rounds = 0;

    if (t->flush_next == t->flush_done) {
        t->flush_next = flush;
        t->flush_passes = 0;
    }
    /* not for ever: the timer and other handlers want their turn */
    while (ht_streams_work(dev) && ++rounds < 16) {
        t->progress = true;
        t->flush_passes++;
        /*
         * A producer that goes on has committed again by now.  Chasing it
         * through its packet would cost it a cache miss every few events; the
         * packet's end, our polling or the timer bring us back.
         */
        if (dev->channel->arms && t->flush_next == t->flush_done &&
            !ht_ring_behind(dev)) {
            break;
        }
    }
    if (rounds < 16) {
        t->flush_next = flush;
    } else {
        event_notifier_set(&t->doorbell);
    }
    /*
     * Producers that never pause must not hold up a flush: a pass takes a
     * packet at least from each stream, and was committed before the flush
     * what fits a ring.
     */
    if (t->flush_next != t->flush_done &&
        (rounds < 16 || t->flush_passes > dev->conf.packets)) {
        /* Pairs with the load-acquire in flush_message(). */
        qatomic_store_release(&t->flush_done, t->flush_next);
    }
    t->looked_ns = get_clock();
    if (t->progress) {
        t->quiet = 0;
        t->eager = false;
        thread_start_timer(dev);
    }
}

/* Context: IOThread */
static void thread_on_doorbell(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice,
                                         thread.doorbell);

    if (!event_notifier_test_and_clear(n)) {
        return;
    }
    thread_work(dev);
    if (!dev->thread.polling) {
        thread_arm(dev);
    }
}

/* Context: IOThread */
static void thread_on_timer(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtThread *t = &dev->thread;
    bool before = t->progress;

    t->progress = false;
    thread_work(dev);
    if (before || t->progress || !thread_any_open(dev)) {
        t->quiet = 0;
    } else {
        t->quiet++;
    }
    t->eager = t->quiet >= 1;
    thread_start_timer(dev);
    if (!t->polling) {
        thread_arm(dev);
    }
}

/* Context: IOThread */
static bool thread_poll(void *opaque)
{
    EventNotifier *n = opaque;
    HypertraceDevice *dev = container_of(n, HypertraceDevice,
                                         thread.doorbell);

    return dev->channel->arms &&
           get_clock() - dev->thread.looked_ns >= LOOK_INTERVAL_NS &&
           ht_ring_pending(dev);
}

/* Context: IOThread */
static void thread_poll_ready(EventNotifier *n)
{
    thread_work(container_of(n, HypertraceDevice, thread.doorbell));
}

/* Context: IOThread */
static void thread_poll_begin(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice,
                                         thread.doorbell);

    dev->thread.polling = true;
    if (dev->channel->arms) {
        ht_ring_disarm_all(dev);
    }
}

/* Context: IOThread */
static void thread_poll_end(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice,
                                         thread.doorbell);

    dev->thread.polling = false;
    thread_arm(dev);
}

bool ht_thread_prepare(HypertraceDevice *dev, Error **errp)
{
    HtThread *t = &dev->thread;
    int ret;

    ret = event_notifier_init(&t->doorbell, 0);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "hypertrace: no event notifier");
        return false;
    }
    if (dev->conf.iothread) {
        t->iothread = dev->conf.iothread;
        object_ref(OBJECT(t->iothread));
    } else {
        /* numbered: that of a device just unplugged may still be there */
        static unsigned count;
        g_autofree char *id = g_strdup_printf("hypertrace-%s-%u",
                                              dev->trace->name, count++);

        t->iothread = iothread_create(id, errp);
        if (!t->iothread) {
            return false;
        }
        t->own = true;
    }
    t->ctx = iothread_get_aio_context(t->iothread);
    return true;
}

void ht_thread_unprepare(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (!t->iothread) {
        return;
    }
    if (t->own) {
        iothread_destroy(t->iothread);
    } else {
        object_unref(OBJECT(t->iothread));
    }
    t->iothread = NULL;
    /* the doorbell stays until finalize: a vCPU may still be ringing it */
}

/* Context: BH in IOThread */
static void thread_start_bh(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtThread *t = &dev->thread;

    aio_set_event_notifier(t->ctx, &t->doorbell, thread_on_doorbell,
                           thread_poll, thread_poll_ready);
    aio_set_event_notifier_poll(t->ctx, &t->doorbell, thread_poll_begin,
                                thread_poll_end);
    event_notifier_set(&t->doorbell);
}

void ht_thread_start(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    t->timer = aio_timer_new(t->ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                             thread_on_timer, dev);
    t->running = true;
    aio_wait_bh_oneshot(t->ctx, thread_start_bh, dev);
}

/* Context: BH in IOThread */
static void thread_stop_bh(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtThread *t = &dev->thread;

    /* the wish to close all is set: this drains and closes */
    ht_streams_work(dev);
    aio_set_event_notifier(t->ctx, &t->doorbell, NULL, NULL, NULL);
    timer_del(t->timer);
}

void ht_thread_stop(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (!t->running) {
        return;
    }
    ht_streams_want_close_all(dev);
    aio_wait_bh_oneshot(t->ctx, thread_stop_bh, dev);
    timer_free(t->timer);
    t->timer = NULL;
    t->running = false;
}

/* Context: BH in IOThread */
static void thread_settle_bh(void *opaque)
{
    HypertraceDevice *dev = opaque;
    unsigned i;

    /* a ring in each look, and nobody fills them any more */
    for (i = 0; i < SETTLE_ROUNDS && ht_streams_work(dev); i++) {
        /* go on */
    }
}

void ht_thread_settle(HypertraceDevice *dev)
{
    if (dev->thread.running) {
        aio_wait_bh_oneshot(dev->thread.ctx, thread_settle_bh, dev);
    }
}

void ht_thread_kick(HypertraceDevice *dev)
{
    event_notifier_set(&dev->thread.doorbell);
}
