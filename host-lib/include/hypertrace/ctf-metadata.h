/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the text that describes a CTF 1.8 trace
 */
#ifndef HYPERTRACE_CTF_METADATA_H
#define HYPERTRACE_CTF_METADATA_H

#include "hypertrace/class.h"

/**
 * HtCtfInfo: what is known of a trace before its first class
 * @vm_name: shown as the host name of the traced system
 * @device: name of the device
 * @channel: how the events travel
 * @clock: what the times are; NULL: a device's, converted to the host's
 * @host_boot: of which boot of the host the clock is, or NULL
 * @uuid: of this trace directory and no other
 * @clock_uuid: of the guest's clock, the same for all devices of a VM
 * @clock_offset_ns: CLOCK_REALTIME - CLOCK_MONOTONIC
 * @precision_ns: error bound of the times, as far as known
 * @lttng: the events are Linux', and have the names that LTTng's kernel tracer
 *         gives them: for viewers that know these, and go by who is the tracer
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
 * @out: appended to
 * @info: the trace
 */
void ht_ctf_metadata_begin(GString *out, const HtCtfInfo *info);

/**
 * ht_ctf_metadata_class: describe one event class
 * @out: appended to
 * @c: the class
 * @lttng: as HtCtfInfo's
 */
void ht_ctf_metadata_class(GString *out, const HtClass *c, bool lttng);

#endif /* HYPERTRACE_CTF_METADATA_H */
