/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: describe a CTF 1.8 trace by its metadata
 */
#ifndef HYPERTRACE_CTF_METADATA_H
#define HYPERTRACE_CTF_METADATA_H

#include "hypertrace/class.h"

/**
 * HtCtfInfo: properties of a trace
 * @vm_name: shown as the host name of the traced system
 * @vm_name: name of the VM; viewers show it as the host name of the system
 * @device: name of the device
 * @channel: transport of the events
 * @clock: description of the clock; NULL: times of a device, converted to the
 *         host's clock
 * @host_boot: id of the host's boot whose clock is used, or NULL
 * @uuid: unique id of this trace directory
 * @clock_uuid: id of the guest's clock, the same for all devices of a VM
 * @clock_offset_ns: CLOCK_REALTIME - CLOCK_MONOTONIC
 * @precision_ns: error bound of the times, as far as known
 * @lttng: the events are Linux's and get the names of LTTng's kernel tracer,
 *         for viewers that identify events by the tracer's name
 */
typedef struct HtCtfInfo {
    const char *vm_name;
    const char *device;
    const char *channel;
    const char *clock;
    const char *host_boot;
    uint8_t uuid[16];
    uint8_t clock_uuid[16];
    int64_t clock_offset_ns;
    uint64_t precision_ns;
    bool lttng;
} HtCtfInfo;

/**
 * ht_ctf_metadata_begin: describe the trace, its clock and its packets
 * @out: the description is appended to this
 * @info: the trace
 */
void ht_ctf_metadata_begin(GString *out, const HtCtfInfo *info);

/**
 * ht_ctf_metadata_class: describe one event class
 * @out: the description is appended to this
 * @c: the class
 * @lttng: see HtCtfInfo
 */
void ht_ctf_metadata_class(GString *out, const HtClass *c, bool lttng);

#endif /* HYPERTRACE_CTF_METADATA_H */
