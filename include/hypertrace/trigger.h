/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: events that others want to know of at once
 */
#ifndef HYPERTRACE_TRIGGER_H
#define HYPERTRACE_TRIGGER_H

#include "qemu/notify.h"

/**
 * HtTriggerEvent: an event that a hypertrace-backend-trigger was asked to see
 * @device: whose it is; the name stays for ever
 * @class: the name of its class, likewise
 */
typedef struct HtTriggerEvent {
    const char *device;
    const char *class;
} HtTriggerEvent;

/**
 * ht_trigger_listen: be told
 * @n: is called with a HtTriggerEvent, or NULL after ht_trigger_other(), in the
 *     main loop with the BQL; soon, but the guest goes on meanwhile
 *
 * notifier_remove() ends it.
 *
 * Context: BQL
 */
void ht_trigger_listen(Notifier *n);

/**
 * ht_trigger_other: tell them that a recording is made for another reason
 *
 * Context: any
 */
void ht_trigger_other(void);

#endif /* HYPERTRACE_TRIGGER_H */
