/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the worker, which opens, consumes and closes streams
 *
 * The worker runs in an IOThread; with channel=virtio it runs in the main loop,
 * in bounded turns.
 *
 * Each turn in the IOThread holds HtWorker.lock, and never takes the BQL.  If a
 * stop, an unplug or a reset needs the worker's work at once, the thread that
 * handles it, with the BQL held, takes the same lock and does the work itself.
 * It does not wait for the IOThread, because the IOThread may run another
 * device's handler that waits for the BQL.
 */
#ifndef HW_HYPERTRACE_WORKER_H
#define HW_HYPERTRACE_WORKER_H

#include "qemu/event_notifier.h"
#include "qemu/timer.h"
#include "system/iothread.h"

typedef struct HypertraceDevice HypertraceDevice;

typedef struct HtWorker {
    IOThread *iothread;         /* thread of the worker; NULL: the main loop */
    AioContext *ctx;
    QemuMutex lock;             /* held during a turn in an IOThread */
    /* any thread may set this notifier, to schedule a turn */
    EventNotifier doorbell;
    QEMUTimer *timer;
    /* started and not stopped; read with the BQL or @lock */
    bool running;
    /* the VM is stopped, so turns do nothing; atomic */
    bool paused;
    bool unread;                /* property "unread"; atomic */
    /* the present turn consumes even if @unread is set */
    bool settling;

    /* written with @lock held (virtio: the BQL), read by any thread; atomic */
    bool starved;               /* after the last turn, no sink had room */
    /* time at which the last turn ended, as get_clock() */
    int64_t looked_ns;

    /* the following members are protected by @lock; virtio: by the BQL */
    /* the IOThread polls the rings: do not arm streams */
    bool polling;
    /* a turn found work since the last tick of @timer */
    bool progress;
    unsigned quiet;             /* number of ticks in a row without @progress */
    /* arm streams for their next commit instead of their next packet */
    bool eager;
    /* another turn is scheduled, or ht_worker_go() will schedule one */
    bool again;
} HtWorker;

bool ht_worker_prepare(HypertraceDevice *dev, Error **errp);
void ht_worker_unprepare(HypertraceDevice *dev);
void ht_worker_start(HypertraceDevice *dev);
/* Drain and close all streams; no turn runs afterwards.  Context: BQL */
void ht_worker_stop(HypertraceDevice *dev);
/*
 * Run the worker's pending work now: open and close streams, and consume
 * committed events, if a sink has room.  Context: BQL
 */
void ht_worker_settle(HypertraceDevice *dev);
/*
 * Do as ht_worker_settle(), then let turns do nothing until ht_worker_go():
 * after a migration, another QEMU uses the rings and queues.  Context: BQL
 */
void ht_worker_pause(HypertraceDevice *dev);
void ht_worker_go(HypertraceDevice *dev);
/*
 * With mode=overwrite: if @unread, consume a stream only when it is closed, the
 * guest flushes any stream, or the VM stops or is reset.  Until then, the ring
 * keeps the guest's last events.  If not @unread, consume again, beginning with
 * the rings' present content.  Context: BQL
 */
void ht_worker_set_unread(HypertraceDevice *dev, bool unread);
/* Schedule a turn of the worker of a HypertraceDevice.  Context: any thread */
void ht_worker_kick(void *dev);
/* Run a turn now, unless the VM is stopped.  Context: worker */
void ht_worker_turn(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_WORKER_H */
