/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export: a recording in other programs' formats
 */
#ifndef HYPERTRACE_TOOL_EXPORT_H
#define HYPERTRACE_TOOL_EXPORT_H

#include "views/view.h"

/* A recording with more boots and steps of the clock is refused. */
#define HT_EXPORT_FILES_MAX     1000

/**
 * HtExportPart: one segment of the guest's clock, a file
 * @boot: which boot, from 1
 * @segment: of the clock in it
 * @events: how many there are
 * @begin_ns: the guest's time of the first
 * @worst_ns: of dates on the host's clock: how wrong they may be
 * @wall_ns: CLOCK_REALTIME minus the guest's clock; INT64_MAX if not known
 * @path: of the file
 * @made: it was written
 */
typedef struct HtExportPart {
    unsigned boot;
    uint32_t segment;
    uint64_t events;
    uint64_t begin_ns;
    uint64_t worst_ns;
    int64_t wall_ns;
    char *path;
    bool made;
} HtExportPart;

/**
 * HtExport: one run of the command
 * @v: the choice of events
 * @m: the recording
 * @first: the first of several, whose host's clock is everybody's
 * @several: it is one of several
 * @name: of the recording, no other one's
 * @path: where to
 * @parts: of HtExportPart, in order
 * @unknown_tasks: threads whose process is not known
 * @out: Perfetto with the host's clock: the file of all
 * @machines: how many are in it
 * @sequences: likewise
 * @clock_uuid: of the host's clock
 * @clock_known: the three below are the first recording's or trace's
 * @host_boot: of which boot of the host it was; NULL or "" if nobody knows
 * @wall_known: whether @wall_ns is known
 * @wall_ns: CLOCK_REALTIME - CLOCK_MONOTONIC of the host then
 * @dated: events by how wrong they may be: below 2 to the power of the index
 * @worst_ns: how wrong one is at most
 *
 * Where times are the guest's, a file holds one segment of its clock in each
 * format: in none may time go back.  The one with most events has the name
 * that was asked for, others have their number in theirs.
 */
typedef struct HtExport {
    HtView *v;
    HtModel *m;
    HtModel *first;
    bool several;
    const char *name;
    const char *path;
    GArray *parts;
    unsigned unknown_tasks;
    HtOutput out;
    unsigned machines;
    unsigned sequences;
    uint8_t clock_uuid[16];
    bool clock_known;
    char *host_boot;
    bool wall_known;
    int64_t wall_ns;
    uint64_t dated[65];
    uint64_t worst_ns;
} HtExport;

/**
 * ht_export_next: the next event to be written
 * @x: export
 * @ev: filled in
 *
 * Returns: false after the last one
 */
bool ht_export_next(HtExport *x, HtModelEvent *ev);

/**
 * ht_export_part: the file an event goes to
 * @x: export
 * @boot: the event's
 * @segment: the event's
 *
 * Returns: the part; NULL if there is none, which no recording that stays as
 * it is comes to
 */
HtExportPart *ht_export_part(HtExport *x, unsigned boot, uint32_t segment);

/**
 * ht_export_wall: the wall clock of the host when the clock of times was 0
 * @x: export
 * @part: the file; each segment of a guest's clock has its own relation
 * @ns: set to nanoseconds since 1970
 *
 * Returns: whether it is known
 */
bool ht_export_wall(const HtExport *x, const HtExportPart *part, int64_t *ns);

/**
 * ht_export_dat: write trace.dat, version 6, for trace-cmd and KernelShark
 * @x: export
 * @errp: why not
 *
 * Returns: whether all files were written
 */
bool ht_export_dat(HtExport *x, GError **errp);

/**
 * ht_export_perfetto: write Perfetto's protobuf
 *
 * With the host's clock to @x->out, in which each boot of each guest is a
 * machine of its own.
 */
bool ht_export_perfetto(HtExport *x, GError **errp);

/**
 * ht_export_perfetto_host: write the host itself, with the clock that all have
 * @x: export; nothing is written if something was
 * @ns: when
 */
void ht_export_perfetto_host(HtExport *x, uint64_t ns);

/**
 * ht_export_trace: add CTF traces to a Perfetto file with the host's clock
 * @x: export
 * @dir: traces of devices and rings, with the host's clock, or LTTng's are
 *       here or below
 * @errp: why not
 *
 * A device or ring is a machine of its own, with a track a stream; what LTTng
 * recorded is the host's, with tracks by provider.
 */
bool ht_export_trace(HtExport *x, const char *dir, GError **errp);

/**
 * ht_export_uuid: make a random one
 * @uuid: set to it
 */
void ht_export_uuid(uint8_t uuid[16]);

/**
 * ht_export_remove: remove a trace's directory
 * @path: its files are removed, too
 */
void ht_export_remove(const char *path);

/**
 * ht_export_ctf: write a directory of CTF 1.8, for babeltrace2
 */
bool ht_export_ctf(HtExport *x, GError **errp);

/**
 * ht_export_lttng: the same with LTTng's names, for Trace Compass
 */
bool ht_export_lttng(HtExport *x, GError **errp);

#endif /* HYPERTRACE_TOOL_EXPORT_H */
