/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: control messages, from the mailbox or the control queue
 */
#ifndef HW_HYPERTRACE_CONTROL_H
#define HW_HYPERTRACE_CONTROL_H

#include "hypertrace/abi.h"

typedef struct HypertraceDevice HypertraceDevice;

/*
 * Maximum time for which messages are executed with the BQL held: in an
 * exchange of several messages, none starts later.
 */
#define HT_CONTROL_TURN_NS 50000

/*
 * Rate of stream openings: one every 10 ms, after a burst of four for each
 * stream and at least 256.  Openings above it are answered with BUSY.
 */
#define HT_OPENING_INTERVAL_NS (10 * SCALE_MS)
#define HT_OPENINGS_BURST(streams) MAX(4 * (int64_t)(streams), 256)

/**
 * ht_control_exchange: execute a control message, or several that register
 * @dev: the device
 * @msgs: HT_MAILBOX_SIZE bytes, private; replies overwrite the messages
 * @size: size of the messages in bytes, according to the guest
 *
 * Messages for which there is no time are answered with BUSY and not executed.
 *
 * Returns: size of the replies in bytes
 *
 * Context: BQL
 */
size_t ht_control_exchange(HypertraceDevice *dev, void *msgs, size_t size);
/* Close all streams and begin a new epoch.  Context: BQL */
void ht_control_takeover(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_CONTROL_H */
