/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the worker, which opens, consumes and closes streams
 *
 * A turn of the worker is started by the doorbell (rung by shm's producer, or
 * by code in QEMU), by the polling of its IOThread, by a driver's kick of a
 * virtio queue, and by a timer of flush-ms (shm, and hypercall with a batch of
 * more than 1) that bounds how long an event can wait in an open packet.  With
 * channel=shm, the worker arms the wake words for the next commit after one
 * tick of the timer without progress; after two, it stops the timer, so an idle
 * device uses no processor time. tests/model/wake.pml proves that no commit is
 * forgotten.
 *
 * Unless stated otherwise, static functions run in the worker, or with the BQL
 * through worker_call().
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/main-loop.h"
#include "block/aio.h"
#include "system/runstate.h"
#include "device.h"
#include "trace.h"

/*
 * Minimum time between a turn and the next poll of the rings, in ns.  A poll
 * reads head, and so takes the cache line from the producer's processor: do not
 * poll too often.
 */
#define LOOK_INTERVAL_NS (20 * SCALE_US)

static void worker_leave(HtWorker *w)
{
    if (w->iothread) {
        qemu_mutex_unlock(&w->lock);
    }
}

/*
 * Begin a turn.  Returns false if the worker does not run, for example because
 * ht_worker_stop() ended it after the event loop chose to call the handler.
 */
static bool worker_enter(HtWorker *w)
{
    if (w->iothread) {
        qemu_mutex_lock(&w->lock);
    }
    if (w->running) {
        return true;
    }
    worker_leave(w);
    return false;
}

/*
 * Call @fn with the worker's lock, if the worker runs.  A turn of the IOThread,
 * which holds this lock, never waits for the BQL or for a backend.  Context:
 * worker, or BQL
 */
static void worker_call(HypertraceDevice *dev,
                        void (*fn)(HypertraceDevice *dev))
{
    if (worker_enter(&dev->worker)) {
        fn(dev);
        worker_leave(&dev->worker);
    }
}

/*
 * Test whether the VM is stopped or the property "unread" is set: the worker
 * then does not poll, arm or use its timer.  Context: any thread
 */
static bool worker_is_unread(HtWorker *w)
{
    return qatomic_read(&w->paused) || qatomic_read(&w->unread);
}

/* Arm the wake words of all streams if the worker is about to sleep */
static void worker_arm(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    if (!dev->channel->arms || worker_is_unread(w) || w->starved) {
        return;
    }
    if (w->again) {
        /*
         * The worker is scheduled to run again: disarm.  An armed wake word
         * would cost the producer a useless exit, and each event after head has
         * passed the wake word would call notify().
         */
        ht_streams_disarm(&dev->streams);
    } else if (ht_streams_arm(&dev->streams, w->eager)) {
        event_notifier_set(&w->doorbell);
    }
}

/*
 * Test whether the worker needs its timer: events may be committed, in an open
 * packet, without a kick that starts a turn
 */
static bool worker_needs_timer(HypertraceDevice *dev)
{
    if (!ht_streams_any_open(&dev->streams) || worker_is_unread(&dev->worker)) {
        return false;
    }
    /*
     * The wake word for the next commit is armed after one quiet tick.  A
     * commit just before may have missed the wake word, because ht_commit() has
     * no full fence.  So run the timer for one more whole tick.
     */
    return dev->channel->arms ? dev->worker.quiet < 2 :
           dev->channel->rings && dev->conf.batch > 1;
}

static void worker_start_timer(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    if (worker_needs_timer(dev) && !timer_pending(w->timer)) {
        timer_mod(w->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                            dev->conf.flush_ms);
    }
}

static void worker_work(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    w->progress |= ht_streams_turn(&dev->streams, &w->again);
    if (w->again) {
        ht_worker_kick(dev);
    }
    qatomic_set(&w->starved, !ht_dispatch_room(dev->dispatch));
    if (!dev->channel->uses_ring) {
        ht_dispatch_wake(dev->dispatch);
    }
    qatomic_set_i64(&w->looked_ns, get_clock());
    if (w->progress) {
        w->quiet = 0;
        w->eager = false;
        worker_start_timer(dev);
    }
}

void ht_worker_turn(HypertraceDevice *dev)
{
    if (!qatomic_read(&dev->worker.paused)) {
        worker_work(dev);
    }
}

static void worker_allow(HypertraceDevice *dev, bool all)
{
    if (dev->channel->allow) {
        dev->channel->allow(dev, all);
    }
}

static void worker_on_doorbell(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice, worker.doorbell);

    if (!event_notifier_test_and_clear(n) || !worker_enter(&dev->worker)) {
        return;
    }
    trace_hypertrace_doorbell(dev->trace->name);
    worker_allow(dev, false);
    ht_worker_turn(dev);
    if (!dev->worker.polling) {
        worker_arm(dev);
    }
    worker_leave(&dev->worker);
}

static void worker_on_timer(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtWorker *w = &dev->worker;
    bool before;

    if (!worker_enter(w)) {
        return;
    }
    trace_hypertrace_timer(dev->trace->name, w->quiet);
    before = w->progress;
    w->progress = false;
    worker_allow(dev, false);
    ht_worker_turn(dev);
    if (before || w->progress || !ht_streams_any_open(&dev->streams)) {
        w->quiet = 0;
    } else {
        w->quiet++;
    }
    w->eager = w->quiet >= 1;
    if (!w->polling) {
        worker_arm(dev);
    }
    /*
     * Arm before the timer starts: a tick then finds a commit that missed the
     * arming.
     */
    worker_start_timer(dev);
    worker_leave(w);
}

static bool worker_poll(void *opaque)
{
    EventNotifier *n = opaque;
    HypertraceDevice *dev = container_of(n, HypertraceDevice, worker.doorbell);
    HtWorker *w = &dev->worker;
    bool pending;

    /*
     * If the poll comes too early, return before taking the lock.  A turn in
     * another thread may change @starved or @looked_ns meanwhile: a stale value
     * costs at most one poll.
     */
    if (worker_is_unread(w) || qatomic_read(&w->starved) ||
        get_clock() - qatomic_read_i64(&w->looked_ns) < LOOK_INTERVAL_NS ||
        !worker_enter(w)) {
        return false;
    }
    pending = ht_streams_pending(&dev->streams);
    worker_leave(w);
    return pending;
}

static void worker_poll_ready(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice, worker.doorbell);

    worker_call(dev, ht_worker_turn);
}

static void worker_poll_begin(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice, worker.doorbell);

    if (worker_enter(&dev->worker)) {
        dev->worker.polling = true;
        if (!qatomic_read(&dev->worker.paused)) {
            ht_streams_disarm(&dev->streams);
        }
        worker_leave(&dev->worker);
    }
}

static void worker_poll_end(EventNotifier *n)
{
    HypertraceDevice *dev = container_of(n, HypertraceDevice, worker.doorbell);

    if (worker_enter(&dev->worker)) {
        dev->worker.polling = false;
        worker_arm(dev);
        /*
         * The IOThread stops polling, and the timer may be off.  A commit may
         * have missed the wake word that was armed just now: let the timer run
         * for two ticks.
         */
        dev->worker.quiet = 0;
        worker_start_timer(dev);
        worker_leave(&dev->worker);
    }
}

bool ht_worker_prepare(HypertraceDevice *dev, Error **errp)
{
    HtWorker *w = &dev->worker;
    int ret;

    ret = event_notifier_init(&w->doorbell, 0);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "hypertrace: no event notifier");
        return false;
    }
    if (!dev->channel->uses_ring) {
        /* Only the main loop can pop a hostile guest's queues safely. */
        w->ctx = qemu_get_aio_context();
        return true;
    }
    if (dev->conf.iothread) {
        w->iothread = dev->conf.iothread;
    } else {
        g_autofree char *id = g_strdup_printf("hypertrace-%s",
                                              dev->trace->name);

        w->iothread = iothread_create(id, errp);
    }
    if (w->iothread) {
        w->ctx = iothread_get_aio_context(w->iothread);
    }
    return w->iothread != NULL;
}

/* Context: BH in main loop, BQL */
static void last_call_done(void *opaque)
{
    ht_device_unref(opaque);
}

/* Context: BH in IOThread */
static void last_call(void *opaque)
{
    aio_bh_schedule_oneshot(qemu_get_aio_context(), last_call_done, opaque);
}

void ht_worker_unprepare(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    g_clear_pointer(&w->timer, timer_free);
    if (w->iothread && dev->conf.iothread) {
        /*
         * The event loop of a shared IOThread may still call a handler that was
         * removed in the same iteration.  Keep the device, which keeps the
         * IOThread, until that iteration has ended.
         */
        ht_device_ref(dev);
        aio_bh_schedule_oneshot(w->ctx, last_call, dev);
    } else if (w->iothread) {
        /*
         * worker_leave() in the last turn unlocks only if @iothread is set, so
         * clear it after the thread has ended.
         */
        iothread_destroy(w->iothread);
        w->iothread = NULL;
    }
    /* finalize() frees the doorbell, because a vCPU may still be ringing it. */
}

void ht_worker_start(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    w->timer = aio_timer_new(w->ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                             worker_on_timer, dev);
    w->running = true;
    /* If the VM already runs, no state change will call ht_worker_go(). */
    w->paused = !runstate_is_live(runstate_get());
    if (dev->channel->arms) {
        aio_set_event_notifier(w->ctx, &w->doorbell, worker_on_doorbell,
                               worker_poll, worker_poll_ready);
        aio_set_event_notifier_poll(w->ctx, &w->doorbell, worker_poll_begin,
                                    worker_poll_end);
    } else {
        aio_set_event_notifier(w->ctx, &w->doorbell, worker_on_doorbell, NULL,
                               NULL);
    }
    event_notifier_set(&w->doorbell);
}

/*
 * Consume what the guest has committed or handed over, while a sink has room;
 * without room, only what a close or a flush needs.  The number of passes is
 * limited, because a guest that runs may commit more.
 */
static void worker_settle(HypertraceDevice *dev)
{
    unsigned i;

    dev->worker.settling = true;
    worker_allow(dev, true);
    for (i = 0; i <= dev->streams.cfg.passes / HT_STREAMS_ROUNDS + 1; i++) {
        dev->worker.progress = false;
        worker_work(dev);
        if (!dev->worker.progress) {
            break;
        }
    }
    worker_allow(dev, false);
    dev->worker.settling = false;
    ht_streams_tell(&dev->streams);
    ht_dispatch_wake(dev->dispatch);
}

static void worker_end(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    /*
     * ht_worker_stop() has set want_close of all streams, so worker_settle()
     * drains and closes them.
     */
    worker_settle(dev);
    w->running = false;
    dev->messages.gone = true;
    timer_del(w->timer);
}

void ht_worker_stop(HypertraceDevice *dev)
{
    HtWorker *w = &dev->worker;

    ht_streams_want_close_all(&dev->streams);
    worker_call(dev, worker_end);
    aio_set_event_notifier(w->ctx, &w->doorbell, NULL, NULL, NULL);
}

void ht_worker_settle(HypertraceDevice *dev)
{
    worker_call(dev, worker_settle);
}

static void worker_pause(HypertraceDevice *dev)
{
    uint32_t i;

    worker_settle(dev);
    qatomic_set(&dev->worker.paused, true);
    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams.stream[i];

        if (s->ring && ht_stream_phase(s) == HT_PHASE_OPEN) {
            ht_ring_pause(s);
        }
    }
}

void ht_worker_pause(HypertraceDevice *dev)
{
    worker_call(dev, worker_pause);
}

void ht_worker_go(HypertraceDevice *dev)
{
    qatomic_set(&dev->worker.paused, false);
    ht_worker_kick(dev);
    if (dev->channel->go) {
        dev->channel->go(dev);
    }
}

void ht_worker_set_unread(HypertraceDevice *dev, bool unread)
{
    qatomic_set(&dev->worker.unread, unread);
    if (dev->worker.running && !unread) {
        ht_worker_kick(dev);
    }
}

void ht_worker_kick(void *opaque)
{
    HypertraceDevice *dev = opaque;

    event_notifier_set(&dev->worker.doorbell);
}
