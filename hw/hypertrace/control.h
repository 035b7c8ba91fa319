/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: control messages, from the mailbox or the control queue
 */
#ifndef HW_HYPERTRACE_CONTROL_H
#define HW_HYPERTRACE_CONTROL_H

#include "hypertrace/abi.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * ht_control_message: execute a control message
 * @dev: the device
 * @msg: HT_MESSAGE_MAX bytes, private; the reply overwrites the message
 * @size: bytes of the message
 *
 * Returns: bytes of the reply
 *
 * Context: BQL
 */
size_t ht_control_message(HypertraceDevice *dev, void *msg, size_t size);
/* Close all streams and begin a new epoch.  Context: BQL */
void ht_control_takeover(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_CONTROL_H */
