/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: receive QMP events of a QEMU without waiting
 *
 * These functions do not wait for QEMU; the commands of qmp.h wait for replies.
 */
#ifndef HYPERTRACE_TOOL_QMP_EVENTS_H
#define HYPERTRACE_TOOL_QMP_EVENTS_H

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* Maximum size of a message in bytes; a longer one may be skipped */
#define HT_QMP_EVENTS_LINE  65536u

typedef struct HtQmpEvents HtQmpEvents;

/**
 * ht_qmp_events_offer: make a monitor for a QEMU that this process will start
 * @ours: set to this process's end of the connection, for ht_qmp_events_new()
 * @config: set to the descriptor of a file for QEMU's option -readconfig, which
 *          adds the monitor and leaves QEMU's default monitor and serial port
 *          as they are
 * @error: set on failure
 *
 * QEMU must inherit this process's descriptors.
 *
 * Returns: false on failure
 */
bool ht_qmp_events_offer(int *ours, int *config, GError **error);

/**
 * ht_qmp_events_new: start to receive
 * @fd: a socket that QEMU's monitor uses or will use; taken over, and closed
 *      after an error or by ht_qmp_events_free()
 *
 * Returns: never NULL
 */
HtQmpEvents *ht_qmp_events_new(int fd);
void ht_qmp_events_free(HtQmpEvents *q);

/**
 * ht_qmp_events_next: get the next event
 *
 * After an event STOP, this function requests the state of the machine. When
 * QEMU has replied, a later call returns the reply as an event "query-status".
 *
 * One call receives at most HT_QMP_EVENTS_LINE bytes.
 *
 * Returns: an object with the member "event" and, if the event has data,
 * "data", for json_node_unref(). The data of "query-status" is QEMU's
 * StatusInfo. NULL if no complete event has been received
 */
JsonNode *ht_qmp_events_next(HtQmpEvents *q);

#endif /* HYPERTRACE_TOOL_QMP_EVENTS_H */
