/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export: a recording in other programs' formats
 */
#ifndef HYPERTRACE_TOOL_EXPORT_H
#define HYPERTRACE_TOOL_EXPORT_H

#include "view.h"

/* A recording with more boots and steps of the clock is refused. */
#define HT_EXPORT_FILES_MAX     1000

/**
 * HtExportPart: one segment of the guest's clock, a file
 * @boot: which boot, from 1
 * @segment: of the clock in it
 * @events: how many there are
 * @path: of the file
 * @made: it was written
 */
typedef struct HtExportPart {
    unsigned boot;
    uint32_t segment;
    uint64_t events;
    char *path;
    bool made;
} HtExportPart;

/**
 * HtExport: one run of the command
 * @v: the choice of events
 * @m: the recording
 * @path: where to
 * @parts: of HtExportPart, in order
 * @walls: of ht_export_wall()
 * @unknown_tasks: threads whose process is not known
 *
 * In each format a file holds one segment of the guest's clock: in no format
 * may time go back.  The one with most events has the name that was asked for,
 * others have their number in theirs.
 */
typedef struct HtExport {
    HtView *v;
    HtModel *m;
    const char *path;
    GArray *parts;
    GArray *walls;
    unsigned unknown_tasks;
} HtExport;

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
 * ht_export_wall: when, by the host's wall clock, the guest's clock was 0
 * @x: export
 * @boot: of which boot
 * @ns: set to nanoseconds since 1970
 *
 * Returns: whether it is known
 */
bool ht_export_wall(const HtExport *x, unsigned boot, int64_t *ns);

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
 */
bool ht_export_perfetto(HtExport *x, GError **errp);

/**
 * ht_export_ctf: write a directory of CTF 1.8, for babeltrace2, Trace Compass
 */
bool ht_export_ctf(HtExport *x, GError **errp);

#endif /* HYPERTRACE_TOOL_EXPORT_H */
