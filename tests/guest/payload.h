/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: its functions; each prints JSON objects, one per line
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "console.h"

typedef enum payload_exit payload_function(void);

/* measure the speed of ring 0 and ring 3 */
payload_function payload_probe;
payload_function payload_exits;         /* measure the cost of an exit */
payload_function payload_bench;         /* measure the cost of an event */
/* check that the device meets its specification */
payload_function payload_selftest;
payload_function payload_study;         /* measure what the host requests */
payload_function payload_soak;          /* use all devices at once */
payload_function payload_hostile;       /* break the rules of the protocol */

#endif /* PAYLOAD_H */
