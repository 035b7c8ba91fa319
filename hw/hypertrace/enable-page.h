/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the enable bytes of a device, and poll the backends
 *
 * host-lib decides (hypertrace/enable.h).  Backends that may not want a class
 * are polled every 20 ms while the VM runs.
 *
 * Context: BQL, for all functions
 */
#ifndef HW_HYPERTRACE_ENABLE_PAGE_H
#define HW_HYPERTRACE_ENABLE_PAGE_H

#include "qemu/queue.h"
#include "hypertrace/enable.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtEnablePoll: state of a device
 * @running: the VM runs, so the guest's memory may be written
 * @polled: the timer polls the backends for this device
 */
typedef struct HtEnablePoll {
    bool running;
    bool polled;
    QTAILQ_ENTRY(HypertraceDevice) next;
} HtEnablePoll;

/* Begin with the classes of the device's trace */
void ht_device_enable_init(HypertraceDevice *dev);

/* Call these when the VM starts (or a device is hot-plugged), and stops */
void ht_device_enable_start(HypertraceDevice *dev);
void ht_device_enable_stop(HypertraceDevice *dev);

/* Write all bytes again, whatever the guest wrote there */
void ht_device_enable_reset(HypertraceDevice *dev);

/* Start or stop polling for a device, if a class was added */
void ht_device_enable_watch(HypertraceDevice *dev);

/* Set the properties "events" and "settings", maybe before realize */
bool ht_device_set_events(HypertraceDevice *dev, const char *events,
                          Error **errp);
bool ht_device_set_settings(HypertraceDevice *dev, const char *settings,
                            Error **errp);

#endif /* HW_HYPERTRACE_ENABLE_PAGE_H */
