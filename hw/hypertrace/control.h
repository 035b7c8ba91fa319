/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: control messages, from the mailbox or the control queue
 */
#ifndef HW_HYPERTRACE_CONTROL_H
#define HW_HYPERTRACE_CONTROL_H

#include "hypertrace/abi.h"

typedef struct HypertraceDevice HypertraceDevice;

/*
 * How long messages are executed with the BQL held before something else has
 * its turn: of several, none begins later.
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
 * @size: bytes of the messages, as the guest says
 *
 * What there is no time for is answered with BUSY, and not looked at.
 *
 * Returns: bytes of the replies
 *
 * Context: BQL
 */
size_t ht_control_exchange(HypertraceDevice *dev, void *msgs, size_t size);
/* Close all streams and begin a new epoch.  Context: BQL */
void ht_control_takeover(HypertraceDevice *dev);

#endif /* HW_HYPERTRACE_CONTROL_H */
