/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: its functions; each prints JSON objects, one per line
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "console.h"

typedef enum payload_exit payload_function(void);

payload_function payload_probe;         /* speed of ring 0 and ring 3 */
payload_function payload_exits;         /* cost of an exit */
payload_function payload_bench;         /* cost of an event */
payload_function payload_selftest;      /* the device meets its specification */
payload_function payload_study;         /* measurements on command */
payload_function payload_soak;          /* all devices at once */
payload_function payload_hostile;       /* a guest that breaks the rules */

#endif /* PAYLOAD_H */
