/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: open hypertrace devices with the bare-metal port of
 * the guest library, for which this file provides a struct ht_bm_platform
 */
#ifndef PAYLOAD_DEVICE_H
#define PAYLOAD_DEVICE_H

#include "ht-baremetal.h"

/**
 * device_open() - open a hypertrace device and take it over, even if the
 *                 payload has it open; on failure, end the payload
 * @index: number of the device, from 0
 */
struct ht_bm_device *device_open(unsigned index);

/**
 * device_count() - get the number of hypertrace devices in this machine
 */
unsigned device_count(void);

/* Get the functions for PCI and memory, for drivers of other devices */
const struct ht_bm_platform *device_platform(void);

/* Get the channel's name: "hypercall", "shm", "virtio", or "unknown" */
const char *device_channel(const struct ht_bm_device *d);

/* Get the name of an errno or of its negation, such as "EINVAL" */
const char *errno_name(int err);

#endif /* PAYLOAD_DEVICE_H */
