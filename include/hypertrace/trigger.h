/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: notifications about chosen events and about recordings
 */
#ifndef HYPERTRACE_TRIGGER_H
#define HYPERTRACE_TRIGGER_H

#include "qemu/notify.h"

/**
 * HtTriggerEvent: an event that matches the patterns of a
 *                 hypertrace-backend-trigger
 * @device: name of the device that delivered it; never freed
 * @class: name of its class; never freed
 */
typedef struct HtTriggerEvent {
    const char *device;
    const char *class;
} HtTriggerEvent;

/**
 * ht_trigger_listen: Register a notifier
 * @n: called in the main loop with the BQL held.  Its data is the
 *     HtTriggerEvent, or NULL after ht_trigger_other().  The guest runs between
 *     the event and the call
 *
 * notifier_remove() unregisters it.
 *
 * Context: BQL
 */
void ht_trigger_listen(Notifier *n);

/**
 * ht_trigger_other: Notify the listeners that a recording is made for a reason
 *                   other than an event
 *
 * Returns at once; a bottom half of the main loop calls the notifiers.
 *
 * Context: any
 */
void ht_trigger_other(void);

#endif /* HYPERTRACE_TRIGGER_H */
