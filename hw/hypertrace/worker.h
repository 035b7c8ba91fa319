/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the worker, which opens, consumes and closes streams
 *
 * The worker runs in an IOThread; with channel=virtio it runs in the main loop,
 * in bounded turns.
 *
 * Each turn in the IOThread holds HtWorker.lock, and never takes the BQL.  The
 * code for a stop, a reset or an unplug runs with the BQL, takes the same lock
 * and does the worker's work itself.  It does not wait for the IOThread: the
 * IOThread may also run another device's handler, which may be waiting for the
 * BQL.
 */
#ifndef HW_HYPERTRACE_WORKER_H
#define HW_HYPERTRACE_WORKER_H

#include "qemu/event_notifier.h"
#include "qemu/timer.h"
#include "system/iothread.h"

typedef struct HypertraceDevice HypertraceDevice;

typedef struct HtWorker {
    IOThread *iothread;         /* NULL: the worker is the main loop */
    AioContext *ctx;
    QemuMutex lock;             /* held during a turn in an IOThread */
    EventNotifier doorbell;     /* starts a turn; any thread may set it */
    QEMUTimer *timer;
    bool running;               /* BQL; written with @lock */
    bool paused;                /* VM is stopped, and all is consumed; atomic */
    bool unread;                /* property "unread"; atomic */
    bool settling;              /* this turn consumes even if @unread */
    bool starved;               /* no sink has room */

    /* protected by @lock */
    bool polling;               /* the IOThread polls: do not arm streams */
    bool progress;              /* a turn found work since the last tick */
    unsigned quiet;             /* ticks in a row without @progress */
    /* arm streams for their next commit instead of their next packet */
    bool eager;
    /* another turn is scheduled, or ht_worker_go() will schedule one */
    bool again;
    int64_t looked_ns;          /* time of the last turn */
} HtWorker;

bool ht_worker_prepare(HypertraceDevice *dev, Error **errp);
void ht_worker_unprepare(HypertraceDevice *dev);
void ht_worker_start(HypertraceDevice *dev);
/* Drain and close all streams; no turn runs afterwards.  Context: BQL */
void ht_worker_stop(HypertraceDevice *dev);
/*
 * Run the worker's pending work now: open and close streams, and consume all
 * committed events.  Context: BQL
 */
void ht_worker_settle(HypertraceDevice *dev);
/*
 * Do as ht_worker_settle(), then do not access rings and queues until
 * ht_worker_go(): after a migration, another QEMU uses them.  Context: BQL
 */
void ht_worker_pause(HypertraceDevice *dev);
void ht_worker_go(HypertraceDevice *dev);
/*
 * With mode=overwrite: if @unread, do not consume until the VM stops or is
 * reset, or the guest closes or flushes a stream, so that each ring keeps the
 * guest's last events.  Else consume again, beginning with the rings' present
 * content.  Context: BQL
 */
void ht_worker_set_unread(HypertraceDevice *dev, bool unread);
/* Schedule a turn of the worker of a HypertraceDevice.  Context: any thread */
void ht_worker_kick(void *dev);
/* Run a turn now, unless the VM is stopped.  Context: worker */
void ht_worker_turn(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_WORKER_H */
