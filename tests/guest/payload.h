/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's functions; each prints JSON objects, one per line
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "console.h"

typedef enum payload_exit payload_function(void);

/* measure the speed of ring 0 and ring 3 */
payload_function payload_probe;
payload_function payload_exits;         /* measure the cost of an exit */
payload_function payload_bench;         /* measure the cost of an emit */
/* check that the device meets its specification */
payload_function payload_selftest;
/* take the measurements that the host requests on the serial port */
payload_function payload_study;
/* emit on all devices, for as long as the host wants */
payload_function payload_soak;
/* break the rules that drivers must follow */
payload_function payload_hostile;

#endif /* PAYLOAD_H */
