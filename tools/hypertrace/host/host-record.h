/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --host: record what the host's kernel does
 *
 * The host's part is a recording of its own in the folder "host" of the guest's
 * recording. Its times are the host's CLOCK_MONOTONIC. Besides the files of
 * each recording it has:
 *
 *   threads      a line "TID PID NAME" for each thread of the host that was
 *                seen; NAME is the rest of the line
 *   clocks       on x86, a line "TSC BEFORE AFTER" for moments at which the
 *                TSC was read between two readings of CLOCK_MONOTONIC
 *   offsets      on x86, a line "PID VCPU OFFSET TIME" for each vCPU of KVM
 *                that was seen in debugfs, and for each change that was seen:
 *                the guest's TSC less the host's, and the CLOCK_MONOTONIC at
 *                which the recorder has read the offset
 *
 * If another recorder records the host already, "host" is a link to the part of
 * that recorder.
 */
#ifndef HYPERTRACE_RECORD_HOST_H
#define HYPERTRACE_RECORD_HOST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HT_HOST_FOLDER  "host"

/**
 * struct HtHostStats - counters of the host's part
 * @events: events read from the rings
 * @bytes: size of the part in bytes
 * @lost: events that the kernel overwrote before they were read, without those
 *        of gaps for which the kernel does not tell the number
 * @gaps: number of places where such events are missing
 */
typedef struct HtHostStats {
    uint64_t events;
    uint64_t bytes;
    uint64_t lost;
    uint64_t gaps;
} HtHostStats;

typedef struct HtHostRecord HtHostRecord;

/**
 * ht_host_record_new() - start to record the host
 * @dir: folder of the guest's recording
 * @command: the recorded command, for display
 * @max_bytes: size of the part in bytes at which its recording ends; 0: no
 *             limit
 * @error: set if the host cannot be recorded, for example without permission
 *
 * Return: the recorder, for ht_host_record_end(); NULL on failure with @error
 * set. Also NULL if another recorder records the host: @error is then set only
 * if the link to the part of that recorder cannot be made
 */
HtHostRecord *ht_host_record_new(const char *dir, const char *command,
                                 uint64_t max_bytes, GError **error);

/**
 * ht_host_record_poll() - copy new events, if the period since the last copy is
 * over
 * @h: the recorder or NULL
 * @pid: the virtual machine's process; 0: not known yet
 *
 * After an error, or when @max_bytes is reached, nothing more is copied.
 */
void ht_host_record_poll(HtHostRecord *h, pid_t pid);

/**
 * ht_host_record_end() - copy the remaining events and end
 * @h: the recorder, which is freed; or NULL
 * @end: reason for the end, for display
 * @stats: set to the counters
 * @error: set if writing failed at any time; the part ends there
 *
 * Return: false on an error
 */
bool ht_host_record_end(HtHostRecord *h, const char *end, HtHostStats *stats,
                        GError **error);

#endif
