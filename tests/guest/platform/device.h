/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: open devices, in the environment that the bare-metal
 * port of the guest library needs
 */
#ifndef PAYLOAD_DEVICE_H
#define PAYLOAD_DEVICE_H

#include "ht-baremetal.h"

/**
 * device_open() - open the @index'th device; ends the payload on failure
 */
struct ht_bm_device *device_open(unsigned index);

/**
 * device_count() - number of devices in this machine
 */
unsigned device_count(void);

/* Get the platform, for drivers of other devices */
const struct ht_bm_platform *device_platform(void);

/* Get the name of the channel: "hypercall", "shm" or "virtio" */
const char *device_channel(const struct ht_bm_device *d);

/* Get the name of an errno, such as "EINVAL", for messages */
const char *errno_name(int err);

#endif /* PAYLOAD_DEVICE_H */
