/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: classes that are on, and settings for emitters in the guest
 *
 * A class is on if the property "events" matches its name, and a backend wants
 * it or has not decided yet.  Backends that may not want a class are polled
 * every 20 ms while the VM runs.
 *
 * Context: BQL, for all functions
 */
#ifndef HW_HYPERTRACE_ENABLE_H
#define HW_HYPERTRACE_ENABLE_H

#include "qemu/queue.h"
#include "hypertrace/class.h"
#include "hypertrace/pattern.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtEnable: state of a device
 * @events: value of the property; NULL: all classes
 * @settings: value of the property; NULL: none
 * @patterns: @events, parsed
 * @count: number of classes decided so far
 * @match: for each of them: the patterns match
 * @on: for each of them: value that the guest sees
 * @running: the VM runs, so the guest's memory may be written
 * @polled: the timer polls the backends for this device
 */
typedef struct HtEnable {
    char *events;
    char *settings;
    HtPatterns *patterns;
    uint32_t count;
    bool match[HT_CLASSES_MAX + 1];
    bool on[HT_CLASSES_MAX + 1];
    bool running;
    bool polled;
    QTAILQ_ENTRY(HypertraceDevice) next;
} HtEnable;

/**
 * ht_enable_set_events: set the property "events"
 * @dev: the device, maybe not yet realized
 * @events: a list of patterns, or NULL for all classes
 * @errp: set if the list is invalid; nothing changes then
 */
bool ht_enable_set_events(HypertraceDevice *dev, const char *events,
                          Error **errp);

/**
 * ht_enable_set_settings: set the settings for emitters in the guest
 * @dev: the device, maybe not yet realized
 * @settings: words NAME=VALUE, separated by single blanks, up to
 *            HT_SETTINGS_MAX bytes
 * @errp: set if they are invalid; nothing changes then
 *
 * If the VM runs, the guest is notified, and reads them.
 */
bool ht_enable_set_settings(HypertraceDevice *dev, const char *settings,
                            Error **errp);
void ht_enable_finalize(HypertraceDevice *dev);

/* Call these when the VM starts (or a device is hot-plugged), and stops */
void ht_enable_start(HypertraceDevice *dev);
void ht_enable_stop(HypertraceDevice *dev);

/* ht_enable_reset: write all bytes again, whatever the guest wrote there */
void ht_enable_reset(HypertraceDevice *dev);

/**
 * ht_enable_class: decide about a class that the guest registers
 * @dev: the device
 * @c: the class, maybe a known one
 *
 * Returns: the byte that the guest sees
 */
uint8_t ht_enable_class(HypertraceDevice *dev, const HtClass *c);

/**
 * ht_enable_read: execute an HT_MSG_ENABLED
 * @dev: the device
 * @m: the message, which the reply overwrites
 * @size: its bytes; set to the reply's
 */
enum ht_status ht_enable_read(HypertraceDevice *dev, struct ht_msg_enabled *m,
                              size_t *size);

/**
 * ht_enable_read_settings: execute an HT_MSG_SETTINGS
 * @dev: the device
 * @m: the message, which the reply overwrites
 * @size: its bytes; set to the reply's
 */
enum ht_status ht_enable_read_settings(HypertraceDevice *dev,
                                       struct ht_msg_settings *m,
                                       size_t *size);

#endif /* HW_HYPERTRACE_ENABLE_H */
