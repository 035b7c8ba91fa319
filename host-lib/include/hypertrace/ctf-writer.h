/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write a CTF 1.8 trace, and find out what an earlier one contains
 */
#ifndef HYPERTRACE_CTF_WRITER_H
#define HYPERTRACE_CTF_WRITER_H

#include "hypertrace/consumer.h"

/**
 * HtCtfInfo: properties of a trace
 * @vm_name: name of the VM; viewers show it as the host name of the system
 * @device: name of the device
 * @channel: transport of the events
 * @clock: description of the clock, for viewers; NULL: the guest's counter,
 *         converted to the host's clock
 * @host_boot: id of the host's boot whose clock is used, or NULL
 * @uuid: unique id of the trace
 * @clock_uuid: id of the trace's clock; QEMU uses the same id for all devices
 *              of a VM
 * @clock_offset_ns: the host's CLOCK_REALTIME - CLOCK_MONOTONIC
 * @precision_ns: error bound of the times in ns; 0 if it is not known
 * @lttng: the events are those of Linux: use the tracer name, event names and
 *         field names of LTTng's kernel tracer, which some viewers expect
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
 * ht_ctf_uuid: make a random UUID (version 4), for an HtCtfInfo
 * @uuid: set to the UUID
 */
void ht_ctf_uuid(uint8_t uuid[16]);

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

typedef struct HtCtfWriter HtCtfWriter;

/**
 * ht_ctf_writer_new: create a trace without events
 * @dir: an existing directory
 * @name: name of the trace's directory in @dir; if it exists, a number is
 *        appended
 * @info: copied into the trace's metadata
 * @streams: number of streams; HtStreamInfo.index is less
 * @out: set to the writer
 *
 * Returns: 0 or -errno
 */
int ht_ctf_writer_new(const char *dir, const char *name, const HtCtfInfo *info,
                      uint32_t streams, HtCtfWriter **out);

/**
 * ht_ctf_writer_new_at: make a trace without events in a directory that is open
 * @parent: the directory; not used after this call
 * @dir: its name, for ht_ctf_writer_path()
 * @name: as for ht_ctf_writer_new()
 * @info: copied
 * @streams: number of streams
 * @out: set to the writer
 *
 * A process that can no longer open @dir by its name uses this.
 *
 * Returns: 0 or -errno
 */
int ht_ctf_writer_new_at(int parent, const char *dir, const char *name,
                         const HtCtfInfo *info, uint32_t streams,
                         HtCtfWriter **out);

/**
 * ht_ctf_writer_free: close all streams and free the writer
 * @w: the writer or NULL
 */
void ht_ctf_writer_free(HtCtfWriter *w);

/**
 * ht_ctf_writer_path: get the path of the trace's directory
 * @w: the writer
 */
const char *ht_ctf_writer_path(const HtCtfWriter *w);

/**
 * ht_ctf_writer_class: add a class before an event uses it
 * @w: the writer
 * @c: the class; it is ignored if it was added before
 *
 * Returns: 0, or -errno with the trace unchanged
 *
 * Context: any thread
 */
int ht_ctf_writer_class(HtCtfWriter *w, const HtClass *c);

/**
 * ht_ctf_writer_run: write a run
 * @w: the writer
 * @run: the run
 *
 * Returns: 0 or -errno.  On failure the run's events are dropped and counted;
 * the trace stays valid, and later runs are written if that is possible again.
 *
 * Context: one thread at a time for each stream; different streams may be
 * written at the same time
 */
int ht_ctf_writer_run(HtCtfWriter *w, const HtRun *run);

/**
 * ht_ctf_writer_dropped: get the number of events that could not be written
 * @w: the writer
 *
 * Context: any thread
 */
uint64_t ht_ctf_writer_dropped(const HtCtfWriter *w);

/**
 * ht_ctf_recorded: find out how much of an instance an earlier writer has
 * recorded
 * @dir: path of that writer's trace
 * @stream: index of a stream
 * @instance: instance of the stream
 * @r: filled in; @r->events is 0 if the trace has nothing of the instance
 *
 * Returns: false if the trace cannot be opened
 */
bool ht_ctf_recorded(const char *dir, uint32_t stream, uint64_t instance,
                     HtRecorded *r);

/**
 * ht_host_boot: get the id of the host's present boot
 *
 * Returns: a text that is unique to the boot, for g_free(); NULL if the host
 * does not provide an id
 */
char *ht_host_boot(void);

#endif /* HYPERTRACE_CTF_WRITER_H */
