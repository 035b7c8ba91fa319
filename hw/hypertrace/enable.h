/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: which classes are on and what is set for those who emit, and how
 * the guest learns of it
 *
 * A class is on if the property "events" matches its name, and a backend wants
 * it or has not said yet.  Backends that may not want a class are asked every
 * 20 ms while the VM runs.
 *
 * Context: BQL, for everything here
 */
#ifndef HW_HYPERTRACE_ENABLE_H
#define HW_HYPERTRACE_ENABLE_H

#include "qemu/queue.h"
#include "hypertrace/class.h"
#include "hypertrace/pattern.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtEnable: a device's state of this
 * @events: the property; NULL: all
 * @settings: the property; NULL: none
 * @patterns: the same
 * @count: classes that are decided
 * @match: of them, whether the patterns match
 * @on: of them, what the guest was told
 * @running: the VM runs: what the guest sees may be written
 * @polled: the timer looks after this device
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
 * ht_enable_set_events: another list of patterns
 * @dev: the device, maybe not yet realized
 * @events: the list, or NULL for all
 * @errp: set if it is none; then nothing changes
 */
bool ht_enable_set_events(HypertraceDevice *dev, const char *events,
                          Error **errp);

/**
 * ht_enable_set_settings: other settings for those who emit in the guest
 * @dev: the device, maybe not yet realized
 * @settings: words NAME=VALUE with a blank between two, up to HT_SETTINGS_MAX
 *            bytes
 * @errp: set if it is not; then nothing changes
 *
 * The guest is told, if the VM runs, and asks for them.
 */
bool ht_enable_set_settings(HypertraceDevice *dev, const char *settings,
                            Error **errp);
void ht_enable_finalize(HypertraceDevice *dev);

/* The VM goes on, or a device came to one that runs; it stops */
void ht_enable_start(HypertraceDevice *dev);
void ht_enable_stop(HypertraceDevice *dev);

/* ht_enable_reset: write all again, whatever the guest made of it */
void ht_enable_reset(HypertraceDevice *dev);

/**
 * ht_enable_class: a guest registered a class
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
