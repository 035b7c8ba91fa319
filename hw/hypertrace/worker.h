/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the worker, which opens, consumes and closes streams
 *
 * The worker runs in an IOThread; with channel=virtio it runs in the main loop,
 * in bounded turns.
 *
 * Each turn in the IOThread holds HtWorker.lock, and never takes the BQL.  A
 * stop, a reset or an unplug, which hold the BQL, take the same lock and do the
 * work themselves.  They do not wait for the IOThread, which may be shared with
 * another device whose handler may be waiting for the BQL.
 */
#ifndef HW_HYPERTRACE_WORKER_H
#define HW_HYPERTRACE_WORKER_H

#include "qemu/event_notifier.h"
#include "qemu/timer.h"
#include "system/iothread.h"

typedef struct HypertraceDevice HypertraceDevice;

typedef struct HtWorker {
    IOThread *iothread;         /* NULL: the main loop */
    bool own;                   /* the device made the IOThread */
    AioContext *ctx;
    QemuMutex lock;             /* held during a turn in an IOThread */
    EventNotifier doorbell;     /* shm's doorbell; any thread may set it */
    QEMUTimer *timer;
    bool running;               /* BQL; written with @lock */
    bool paused;                /* the VM is stopped and all is consumed */
    bool unread;                /* rings are left to the guest; atomic */
    bool settling;              /* @unread is ignored during this turn */
    bool starved;               /* no sink has room; see sinks_have_room() */

    /* worker, with @lock */
    bool polling;
    bool progress;              /* since the last tick of the timer */
    unsigned quiet;             /* ticks without progress */
    bool eager;                 /* armed for the next commit, not packet */
    bool again;                 /* the doorbell is set, or go() will set it */
    int64_t looked_ns;          /* time of the last poll */
} HtWorker;

bool ht_worker_prepare(HypertraceDevice *dev, Error **errp);
void ht_worker_unprepare(HypertraceDevice *dev);
void ht_worker_start(HypertraceDevice *dev);
/* Drain and close all streams, and end the worker.  Context: BQL */
void ht_worker_stop(HypertraceDevice *dev);
/* Do pending work, and consume what was committed.  Context: BQL */
void ht_worker_settle(HypertraceDevice *dev);
/*
 * Settle, then do not access rings and queues until ht_worker_go(): they may
 * belong to another QEMU from now on.  Context: BQL
 */
void ht_worker_pause(HypertraceDevice *dev);
void ht_worker_go(HypertraceDevice *dev);
/*
 * With mode=overwrite: if @unread, leave the rings to the guest until the VM
 * stops or is reset, or the guest closes or flushes a stream; else consume them
 * again, with their present content.  Context: BQL
 */
void ht_worker_set_unread(HypertraceDevice *dev, bool unread);
/* Schedule a turn of the worker.  Context: any thread */
void ht_worker_kick(HypertraceDevice *dev);
/* Run a turn now.  Context: main loop, if it is the worker */
void ht_worker_turn(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_WORKER_H */
