/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: its functions; each prints one JSON object a line
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "console.h"

typedef enum payload_exit payload_function(void);

payload_function payload_probe;         /* how fast are ring 0 and 3? */
payload_function payload_exits;         /* what does an exit cost? */
payload_function payload_bench;         /* what does an event cost? */
payload_function payload_selftest;      /* does the device do as it should? */
payload_function payload_study;         /* one measurement after the other */
payload_function payload_soak;          /* everything, for as long as asked */
payload_function payload_hostile;       /* what if a guest breaks the rules? */

#endif /* PAYLOAD_H */
