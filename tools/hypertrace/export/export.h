/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export: write recordings in formats of other programs
 */
#ifndef HYPERTRACE_TOOL_EXPORT_H
#define HYPERTRACE_TOOL_EXPORT_H

#include "views/view.h"

/*
 * Maximum number of segments of the guest's clock that are exported of one
 * recording. A segment counts if it has events and is in a selected boot. If
 * more segments count, the export fails.
 */
#define HT_EXPORT_FILES_MAX     1000

/**
 * HtExportPart: one segment of the guest's clock. It becomes a file, or for CTF
 *               and LTTng a directory; for Perfetto with the host's clock, a
 *               part of the file HtExport.out.
 * @boot: boot, counted from 1
 * @segment: segment of the clock in that boot, counted from 0
 * @events: number of the segment's events in the recording
 * @exported: number of these events that were exported
 * @begin_ns: guest time of the first event in ns
 * @worst_ns: maximum error of the host times in ns, if the export is by the
 *            host's clock
 * @wall_ns: upper bound in ns of the host's CLOCK_REALTIME minus the guest's
 *           clock; INT64_MAX if not known
 * @path: path of the file or directory
 * @made: the part was written without an error
 */
typedef struct HtExportPart {
    unsigned boot;
    uint32_t segment;
    uint64_t events;
    uint64_t exported;
    uint64_t begin_ns;
    uint64_t worst_ns;
    int64_t wall_ns;
    char *path;
    bool made;
} HtExportPart;

/**
 * HtExport: one run of the command
 * @v: the selection of events
 * @m: the recording that is being exported
 * @first: the first recording, whose host clock is the common clock; NULL if
 *         only traces are exported
 * @several: there are several inputs: recordings, traces, or host's parts
 * @name: name of the recording @m, unique in this export
 * @path: path of the output for @m
 * @parts: parts of @m (HtExportPart), in the order of boots and segments
 * @part: the part of the last event of ht_export_next(); or NULL
 * @unknown_tasks: number of threads of @m whose process is not known; for
 *                 Perfetto only
 * @out: for Perfetto with the host's clock: the file for all recordings and
 *       traces
 * @machines: number of machines in @out, without the host, which is machine 0
 * @sequences: number of sequences in @out
 * @any: a selected event, or a trace's loss of events, was written to @out
 * @host_part: @m is the host's part of other recordings
 * @same_host: @m is from the same boot of the same host as @first
 * @begin_ns: with the host's clock, time of the earliest exported event of all
 *            recordings, without traces; UINT64_MAX: none
 * @end_ns: with the host's clock, time of the latest of these events
 * @clock_uuid: random UUID that CTF traces of this export give to the host's
 *              clock
 * @clock_known: @host_boot, @wall_known and @wall_ns are set, from the first
 *               recording or, without recordings, the first trace
 * @host_boot: id of that host's boot; NULL or "" if not known
 * @wall_known: @wall_ns is known
 * @wall_ns: CLOCK_REALTIME - CLOCK_MONOTONIC of the host
 * @stopped: a signal has ended the export
 * @dated: with the host's clock, number of exported events of @m by the maximum
 *         error of their time: entry 0 counts errors of 0, entry i those from
 *         2^(i - 1) to less than 2^i ns
 * @worst_ns: the largest of these errors in ns
 *
 * Time must not go back in a file, so each segment of the guest's clock becomes
 * a file or directory of its own. Perfetto with the host's clock is the
 * exception: one file holds all segments.
 */
typedef struct HtExport {
    HtView *v;
    HtModel *m;
    HtModel *first;
    bool several;
    const char *name;
    const char *path;
    GArray *parts;
    HtExportPart *part;
    unsigned unknown_tasks;
    HtOutput out;
    unsigned machines;
    unsigned sequences;
    bool any;
    bool host_part;
    bool same_host;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint8_t clock_uuid[16];
    bool clock_known;
    char *host_boot;
    bool wall_known;
    int64_t wall_ns;
    bool stopped;
    uint64_t dated[65];
    uint64_t worst_ns;
} HtExport;

/**
 * ht_export_next: get the next selected event of @x->m, and count it
 * @ev: filled in
 *
 * If the recording grows during the export, events of further parts are left
 * out.
 *
 * Returns: false after the last event; false with @x->stopped set after a
 *          signal
 */
bool ht_export_next(HtExport *x, HtModelEvent *ev);

/**
 * ht_export_part: get the part to which an event belongs
 * @boot: the event's boot
 * @segment: the event's segment
 *
 * Returns: the part; NULL if @x->parts does not have it
 */
HtExportPart *ht_export_part(HtExport *x, unsigned boot, uint32_t segment);

/**
 * ht_export_wall: get the host's wall clock at time 0 of the exported clock
 * @part: a part; used only with the guest's clock
 * @ns: set to nanoseconds since 1970; with the guest's clock, an upper bound
 *      (HtExportPart.wall_ns)
 *
 * Returns: false if it is not known
 */
bool ht_export_wall(const HtExport *x, const HtExportPart *part, int64_t *ns);

/**
 * ht_export_dat: write trace.dat, version 6, for trace-cmd and KernelShark
 * @errp: set on failure
 *
 * Returns: true if all files were written
 */
bool ht_export_dat(HtExport *x, GError **errp);

/**
 * ht_export_perfetto: write a trace for Perfetto
 * @errp: set on failure
 *
 * With the host's clock, the recording is added to @x->out. Each boot of a
 * guest becomes a machine of that trace. The host of the first recording is
 * machine 0; a part of another host becomes a further machine.
 *
 * Returns: true on success
 */
bool ht_export_perfetto(HtExport *x, GError **errp);

/**
 * ht_export_vcpus: add the vCPUs of the host's part to @x->out
 * @x: export of a host's part
 * @machine: number of the machine that is the host
 *
 * Each vCPU becomes a track. The track's slices show when the vCPU executed the
 * guest's code, was in an exit or in QEMU, waited for a CPU or was blocked.
 */
void ht_export_vcpus(HtExport *x, unsigned machine);

/**
 * ht_export_perfetto_host: begin @x->out with the packets that define the
 *                          common clock and name the host's machine
 * @x: export; if @x->out has a sequence already, the function does nothing
 * @ns: host time of the packets
 */
void ht_export_perfetto_host(HtExport *x, uint64_t ns);

/**
 * ht_export_trace: add CTF traces to a Perfetto file whose clock is the host's
 * @dir: folder with traces, at any depth: of devices, of rings or of LTTng. A
 *       trace whose clock is not known to be the host's CLOCK_MONOTONIC is an
 *       error.
 * @errp: set on failure
 *
 * Each trace of a device or ring becomes a machine, with one track for each
 * stream. A trace of LTTng becomes tracks of the host: one for each provider
 * and CPU, and for events of a guest's device one for each provider and stream.
 *
 * Returns: true on success
 */
bool ht_export_trace(HtExport *x, const char *dir, GError **errp);

/**
 * ht_export_remove: remove the directory of a trace, with its files
 * @path: the directory
 */
void ht_export_remove(const char *path);

/**
 * ht_export_ctf: write a directory of CTF 1.8, for babeltrace2
 * @errp: set on failure
 *
 * Returns: true on success
 */
bool ht_export_ctf(HtExport *x, GError **errp);

/**
 * ht_export_lttng: write CTF 1.8 with the names of LTTng, for Trace Compass
 * @errp: set on failure
 *
 * Returns: true on success
 */
bool ht_export_lttng(HtExport *x, GError **errp);

#endif /* HYPERTRACE_TOOL_EXPORT_H */
