/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what the command was asked for
 */
#ifndef HYPERTRACE_RECORD_H
#define HYPERTRACE_RECORD_H

#include <sys/types.h>

#include "memory/source.h"
#include "record/flight.h"
#include "record/functions.h"
#include "record/live.h"
#include "record/plan.h"
#include "record/programs.h"
#include "record/record-session.h"

/**
 * enum HtTraceBuffer - which buffer of the guest's kernel is read
 * @HT_TRACE_BUFFER_ANY: what the kernel allows
 * @HT_TRACE_BUFFER_BOOT: a ring in memory that is reserved at boot (6.12)
 * @HT_TRACE_BUFFER_MAIN: its main trace buffer
 */
typedef enum HtTraceBuffer {
    HT_TRACE_BUFFER_ANY,
    HT_TRACE_BUFFER_BOOT,
    HT_TRACE_BUFFER_MAIN,
} HtTraceBuffer;

/**
 * struct HtRecord - a recording as asked for
 * @plan_options: see there
 * @plan: of what is to be run; NULL with @pid
 * @memory_fd: the guest's memory, if the plan has some; else -1
 * @programs: events of the guest's programs; NULL: none
 * @ready_fd: gets the status of a QEMU that has gone to the background; or -1
 * @flight: the flight recorder, if its size is not 0
 * @qmp_fd: with @flight: a socket of QEMU's monitor; or -1
 * @pid: a virtual machine monitor that runs already; or 0
 * @process: the process to record, if this process did not start it; with
 *           @plan, the process may not have mapped the guest's memory yet
 * @kernel: what is known of the guest's kernel, or NULL
 * @buffer: which buffer is read
 * @image: the guest's kernel, if its own data can be read; or NULL
 * @functions: functions that the kernel's tracers record
 * @tracer: words for these, or NULL
 * @dir: where the recording is made
 * @lttng: what is followed goes to LTTng, too...
 * @live_options: ...so...
 * @live: ...by this; or NULL
 * @kernel_path: the kernel's image as given, or NULL
 * @busybox: as given, or NULL
 * @poll_us: microseconds between two looks
 * @max_bytes: of the recording
 * @for_ns: length of the recording; 0 for the guest's whole life
 * @print: only show what would be run
 * @quiet: nothing on standard error but errors
 * @as_qemu: the exit status is QEMU's also if nothing was recorded
 */
typedef struct HtRecord {
    HtRecordOptions plan_options;
    HtRecordPlan *plan;
    int memory_fd;
    HtPrograms *programs;
    int ready_fd;
    HtFlightOptions flight;
    int qmp_fd;
    pid_t pid;
    HtProcess *process;
    HtKernel *kernel;
    HtTraceBuffer buffer;
    HtKernelImage *image;
    HtRecordFunctions functions;
    char *tracer;
    const char *dir;
    bool lttng;
    HtLiveOptions live_options;
    HtLive *live;
    const char *kernel_path;
    const char *busybox;
    uint32_t poll_us;
    uint64_t max_bytes;
    uint64_t for_ns;
    bool print;
    bool quiet;
    bool as_qemu;
} HtRecord;

/**
 * ht_record_prepare() - plan a recording of a command
 * @r: its options; its plan, buffer and image are set
 * @argv: QEMU and its arguments
 * @error: set if the command cannot be recorded
 */
bool ht_record_prepare(HtRecord *r, char **argv, GError **error);

/**
 * ht_record_prepared() - record what was planned
 * @r: after ht_record_prepare(); it has a process if QEMU runs already
 * @argv: the command, for the recording's description
 *
 * If QEMU goes to the background, the recorder does too.
 *
 * Return: the exit status
 */
int ht_record_prepared(HtRecord *r, char **argv);

/** ht_record_clear() - free what the functions above have set */
void ht_record_clear(HtRecord *r);

/**
 * ht_record_run() - run the plan, or watch the process, until that ends
 * @info: of the recording
 *
 * Return: the exit status: that of QEMU, if it was run and is not 0
 */
int ht_record_run(HtRecord *r, const HtSessionInfo *info);

#endif
