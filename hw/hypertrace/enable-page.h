/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the enable bytes of a device, and poll the backends
 *
 * host-lib decides which classes are on (hypertrace/enable.h).  If all backends
 * of a device can refuse classes, because they have the callback wants(), a
 * timer asks these backends again while the VM runs.
 *
 * Context: BQL, for all functions
 */
#ifndef HW_HYPERTRACE_ENABLE_PAGE_H
#define HW_HYPERTRACE_ENABLE_PAGE_H

#include "qemu/queue.h"
#include "hypertrace/enable.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtEnablePoll: what this file's functions keep for a device
 * @running: the VM runs, so the guest's memory may be written
 * @polled: the timer polls the backends for this device
 */
typedef struct HtEnablePoll {
    bool running;
    bool polled;
    QTAILQ_ENTRY(HypertraceDevice) next;
} HtEnablePoll;

/* Initialize a device's enable state with the classes of its trace */
void ht_device_enable_init(HypertraceDevice *dev);

/*
 * Call ht_device_enable_start() when the VM starts, or when a running VM gets a
 * device, and ht_device_enable_stop() when the VM stops or the device is
 * unplugged
 */
void ht_device_enable_start(HypertraceDevice *dev);
void ht_device_enable_stop(HypertraceDevice *dev);

/*
 * If the VM runs: write all enable bytes in the stream RAM again, in case the
 * guest has written to them. Notify the driver if a class or a setting exists.
 */
void ht_device_enable_reset(HypertraceDevice *dev);

/*
 * Start or stop the polling of a device's backends, as needed, and poll soon.
 * Call this also when a class was added, or when other patterns select classes.
 */
void ht_device_enable_watch(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_ENABLE_PAGE_H */
