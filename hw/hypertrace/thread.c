/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the consumer's thread
 *
 * Three things wake it: the doorbell (shm's producer, or anybody in QEMU), its
 * own polling, and a timer of flush-ms that bounds how long an event can wait
 * in an open packet.  When nothing has come for two ticks, it arms the wake
 * words for the very next commit and stops the timer: an idle device costs
 * nothing.  tests/model/wake.pml proves that no commit is forgotten.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "block/aio-wait.h"
#include "system/runstate.h"
#include "device.h"

/*
 * A look at an open packet takes its cache line from the producer.  Looking
 * every 20 us costs the producer little, looking all the time tenfold.
 */
#define LOOK_INTERVAL_NS (20 * SCALE_US)

/*
 * A backend can hang, and the thread that is in it then cannot be waited for.
 * So long without a run delivered, or so long in all, and QEMU goes on.
 */
#define PATIENCE_NS (5 * NANOSECONDS_PER_SECOND)
#define PATIENCE_MOST_NS (30 * NANOSECONDS_PER_SECOND)
#define PATIENCE_TICK_MS 50

enum { CALL_PENDING, CALL_DONE, CALL_LEFT };

/* Something the IOThread does while whoever asked for it waits, if it can */
typedef struct ThreadCall {
    HypertraceDevice *dev;
    Object *proxy;              /* whose memory the device lies in */
    void (*fn)(HypertraceDevice *dev);
    int state;
} ThreadCall;

/* Context: IOThread */
static void thread_arm(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (dev->channel->arms && !qatomic_read(&t->paused) &&
        ht_ring_arm_all(dev, t->eager)) {
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
    if (!thread_any_open(dev) || qatomic_read(&dev->thread.paused)) {
        return false;
    }
    /*
     * A commit just before the eager arming may have missed it (ht_commit()
     * has no full fence), hence one more whole tick after it.
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

    if (qatomic_read(&t->paused)) {
        return;
    }
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
    if (!t->polling) {
        thread_arm(dev);
    }
    /* behind the arming: a commit that missed it is seen at the next tick */
    thread_start_timer(dev);
}

/* Context: IOThread */
static bool thread_poll(void *opaque)
{
    EventNotifier *n = opaque;
    HypertraceDevice *dev = container_of(n, HypertraceDevice,
                                         thread.doorbell);

    return dev->channel->arms && !qatomic_read(&dev->thread.paused) &&
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
    if (dev->channel->arms && !qatomic_read(&dev->thread.paused)) {
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
    /* A commit may have missed this arming too, and the timer may be off. */
    dev->thread.quiet = 0;
    thread_start_timer(dev);
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
    timer_free(t->timer);
    t->timer = NULL;
    if (t->own) {
        iothread_destroy(t->iothread);
    } else {
        object_unref(OBJECT(t->iothread));
    }
    t->iothread = NULL;
    /* the doorbell stays until finalize: a vCPU may still be ringing it */
}

/* An IOThread that others keep busy is not waited for. */
void ht_thread_start(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    t->timer = aio_timer_new(t->ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                             thread_on_timer, dev);
    t->running = true;
    /* A VM that runs already will not tell. */
    t->paused = !runstate_is_live(runstate_get());
    aio_set_event_notifier(t->ctx, &t->doorbell, thread_on_doorbell,
                           thread_poll, thread_poll_ready);
    aio_set_event_notifier_poll(t->ctx, &t->doorbell, thread_poll_begin,
                                thread_poll_end);
    event_notifier_set(&t->doorbell);
}

/* Calls of all devices that nobody waits for any more; BQL */
static unsigned all_left;

#ifdef __GLIBC__
/*
 * LTTng-UST's destructor waits, without bound, for threads that are in a
 * tracepoint; it would have QEMU wait for one that hangs in it.
 */
static void exit_without_threads(int status, void *opaque)
{
    if (all_left) {
        _exit(status);
    }
}

/* First of all, to be run last, but before the destructors of libraries. */
static void __attribute__((constructor)) thread_init(void)
{
    on_exit(exit_without_threads, NULL);
}
#endif

/* Context: BH in main loop, BQL */
static void thread_came_back(void *opaque)
{
    ThreadCall *call = opaque;

    all_left--;
    call->dev->thread.left--;
    hypertrace_device_unused(call->dev);
    object_unref(OBJECT(call->dev));
    object_unref(call->proxy);
    g_free(call);
}

/* Context: BH in IOThread */
static void thread_call_bh(void *opaque)
{
    ThreadCall *call = opaque;

    call->fn(call->dev);
    /* Pairs with the cmpxchg in thread_call(): one of the two frees it. */
    if (qatomic_xchg(&call->state, CALL_DONE) == CALL_LEFT) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), thread_came_back,
                                call);
    } else {
        aio_wait_kick();
    }
}

/* Context: main loop; has the condition in thread_call() looked at again */
static void thread_tick(void *opaque)
{
    QEMUTimer **tick = opaque;

    timer_mod(*tick, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                     PATIENCE_TICK_MS);
}

/* Context: BQL */
static bool call_is_waited_for(ThreadCall *call, int64_t begin, int64_t *last,
                               unsigned *beats)
{
    HtThread *t = &call->dev->thread;
    unsigned seen = qatomic_read(&t->beats);
    int64_t now = get_clock();

    if (*beats != seen) {
        *beats = seen;
        *last = now;
    }
    /* whoever was left before us has not come back: nor will this one */
    return qatomic_read(&call->state) == CALL_PENDING && !t->left &&
           now - *last < PATIENCE_NS && now - begin < PATIENCE_MOST_NS;
}

/*
 * Have the IOThread do something, and wait for it.  Returns false if that takes
 * too long: the IOThread does it when it comes back, and until then the device
 * and all that it uses stay.  Context: BQL
 */
static bool thread_call(HypertraceDevice *dev,
                        void (*fn)(HypertraceDevice *dev))
{
    HtThread *t = &dev->thread;
    ThreadCall *call = g_new0(ThreadCall, 1);
    int64_t begin = get_clock(), last = begin;
    unsigned beats = qatomic_read(&t->beats);
    QEMUTimer *tick;

    call->dev = dev;
    call->proxy = OBJECT(dev)->parent;
    call->fn = fn;
    object_ref(call->proxy);
    object_ref(OBJECT(dev));
    aio_bh_schedule_oneshot(t->ctx, thread_call_bh, call);

    tick = aio_timer_new(qemu_get_aio_context(), QEMU_CLOCK_REALTIME, SCALE_MS,
                         thread_tick, &tick);
    thread_tick(&tick);
    AIO_WAIT_WHILE_UNLOCKED(NULL, call_is_waited_for(call, begin, &last,
                                                     &beats));
    timer_free(tick);

    if (qatomic_cmpxchg(&call->state, CALL_PENDING, CALL_LEFT) ==
        CALL_PENDING) {
        t->left++;
        all_left++;
        return false;
    }
    object_unref(OBJECT(dev));
    object_unref(call->proxy);
    g_free(call);
    return true;
}

/* Context: IOThread */
static void thread_stop(HypertraceDevice *dev)
{
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
    t->running = false;
    ht_streams_want_close_all(dev);
    if (!thread_call(dev, thread_stop)) {
        warn_report("hypertrace %s: unplugged while its backend or IOThread"
                    " hangs: what the guest emitted last is recorded when that"
                    " goes on", dev->trace->name);
    }
}

/* Context: IOThread */
static void thread_settle(HypertraceDevice *dev)
{
    unsigned i;

    /*
     * Nobody fills the rings any more, unless the VM went on without us; a
     * look takes a packet of each at least.
     */
    for (i = 0; i < dev->conf.packets + 2 && ht_streams_work(dev); i++) {
        /* go on */
    }
}

bool ht_thread_settle(HypertraceDevice *dev)
{
    HtThread *t = &dev->thread;

    if (!t->running) {
        return true;
    }
    if (!t->left && thread_call(dev, thread_settle)) {
        return true;
    }
    warn_report("hypertrace %s: the VM stops while the backend or IOThread"
                " hangs: what the guest emitted last is recorded when that"
                " goes on, unless QEMU ends", dev->trace->name);
    return false;
}

bool ht_thread_pause(HypertraceDevice *dev)
{
    /* Not in the IOThread, which may come back when the VM runs again. */
    bool settled = ht_thread_settle(dev);

    if (settled) {
        qatomic_set(&dev->thread.paused, true);
    }
    return settled;
}

void ht_thread_go(HypertraceDevice *dev)
{
    qatomic_set(&dev->thread.paused, false);
    ht_thread_kick(dev);
}

void ht_thread_load_flush(HypertraceDevice *dev, uint64_t wanted)
{
    HtThread *t = &dev->thread;

    /* Before a rewind more may have been given; those were all fulfilled. */
    if (wanted > t->flush_wanted_bql) {
        t->flush_wanted_bql = wanted;
        /* Pairs with the load-acquire in thread_work(). */
        qatomic_store_release(&t->flush_wanted, wanted);
    }
}

void ht_thread_kick(HypertraceDevice *dev)
{
    event_notifier_set(&dev->thread.doorbell);
}
