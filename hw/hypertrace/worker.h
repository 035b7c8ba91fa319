/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the worker, which opens, consumes and closes streams
 *
 * The worker runs in an IOThread; with channel=virtio in the main loop, a
 * bounded turn at a time.
 *
 * Each turn in the IOThread holds HtWorker.lock, and never takes the BQL.  A
 * stop, a reset or an unplug, which hold the BQL, take the same lock and do the
 * work themselves.  They do not wait for the IOThread: it may be shared with
 * another device, whose handler may be waiting for the BQL.
 */
#ifndef HW_HYPERTRACE_WORKER_H
#define HW_HYPERTRACE_WORKER_H

#include "qemu/event_notifier.h"
#include "qemu/timer.h"
#include "system/iothread.h"

typedef struct HypertraceDevice HypertraceDevice;

typedef struct HtWorker {
    IOThread *iothread;         /* NULL: the main loop */
    bool own;                   /* made by the device */
    AioContext *ctx;
    QemuMutex lock;             /* with an IOThread: a turn; see above */
    EventNotifier doorbell;     /* shm; also wakes the worker from anywhere */
    QEMUTimer *timer;
    bool running;               /* BQL; written with @lock */
    bool paused;                /* the VM is stopped and all is consumed */
    bool unread;                /* rings are left to the guest; atomic */
    bool settling;              /* but not now */
    bool starved;               /* no sink has room; see sinks_have_room() */

    uint64_t flush_wanted_bql;  /* tickets given */
    uint64_t flush_wanted;      /* BQL, store-release */
    uint64_t flush_done;        /* worker, store-release */

    /* worker, with @lock */
    uint64_t flush_next;        /* the one under way */
    uint64_t flush_looks;       /* at one stream after the other, for it */
    bool polling;
    bool progress;              /* since the last tick of the timer */
    unsigned quiet;             /* ticks without progress */
    bool eager;                 /* armed for the next commit, not packet */
    bool more;                  /* this turn could not take all */
    bool again;                 /* the doorbell is set, or go() will set it */
    uint32_t first;             /* stream that the next turn begins with */
    int64_t looked_ns;
} HtWorker;

bool ht_worker_prepare(HypertraceDevice *dev, Error **errp);
void ht_worker_unprepare(HypertraceDevice *dev);
void ht_worker_start(HypertraceDevice *dev);
/* Drain and close all streams, and end the worker.  Context: BQL */
void ht_worker_stop(HypertraceDevice *dev);
/* Do all that was asked for, and consume what was committed.  Context: BQL */
void ht_worker_settle(HypertraceDevice *dev);
/*
 * Settle, then leave rings and queues alone, which may be another QEMU's from
 * now on, until ht_worker_go().  Context: BQL
 */
void ht_worker_pause(HypertraceDevice *dev);
void ht_worker_go(HypertraceDevice *dev);
/* Tickets up to this one were given.  Context: BQL */
void ht_worker_load_flush(HypertraceDevice *dev, uint64_t wanted);
/*
 * With mode=overwrite: leave the rings to the guest, until the VM stops or is
 * reset, or the guest closes or flushes a stream; or read them again, with what
 * is there.  Context: BQL
 */
void ht_worker_set_unread(HypertraceDevice *dev, bool unread);
/* Have the worker look.  Context: any thread */
void ht_worker_kick(HypertraceDevice *dev);
/* A turn at once.  Context: main loop, where that is the worker */
void ht_worker_turn(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_WORKER_H */
