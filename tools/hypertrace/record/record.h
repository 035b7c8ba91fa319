/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: options and state of the command
 */
#ifndef HYPERTRACE_RECORD_H
#define HYPERTRACE_RECORD_H

#include <sys/types.h>

#include "memory/source.h"
#include "model/match.h"
#include "record/flight.h"
#include "record/functions.h"
#include "lttng/live.h"
#include "record/plan.h"
#include "record/programs.h"
#include "record/record-session.h"

/**
 * enum HtTraceBuffer - the buffer of the guest's kernel that is read
 * @HT_TRACE_BUFFER_ANY: not chosen by the user: choose_buffer() in record.c
 *                       chooses
 * @HT_TRACE_BUFFER_BOOT: a ring in memory that is reserved at boot (Linux 6.12
 *                        and later)
 * @HT_TRACE_BUFFER_MAIN: the kernel's main trace buffer
 */
typedef enum HtTraceBuffer {
    HT_TRACE_BUFFER_ANY,
    HT_TRACE_BUFFER_BOOT,
    HT_TRACE_BUFFER_MAIN,
} HtTraceBuffer;

/**
 * struct HtRecord - options and state of a recording
 * @plan_options: options of the plan
 * @plan: the command, with what is changed in it; NULL with @pid
 * @memory_fd: memory for the guest, if the plan needs it; else -1
 * @programs: recorder of events of the guest's programs; or NULL
 * @ready_fd: pipe for the status of a QEMU that has gone to the background; or
 *            -1
 * @flight: options of the flight recorder, which runs only if its size is not 0
 * @qmp_fd: with @flight, a socket of QEMU's monitor; or -1
 * @pid: PID of a running virtual machine monitor; or 0
 * @process: the process to record, if it runs already; NULL if the command of
 *           @plan is to be run. With @plan, the process may not have mapped the
 *           guest's memory yet
 * @kernel: symbols of the guest's kernel and, if they are known, its formats;
 *          or NULL
 * @formats: formats of the kernel's events, if they are needed before the
 *           start; or NULL
 * @buffer: the buffer that is read
 * @image: image of the guest's kernel, if the kernel's own data can be read; or
 *         NULL
 * @functions: functions that the kernel's tracers record
 * @tracer: words for @functions on the kernel's command line, or NULL
 * @dir: folder of the recording
 * @host: record the host's scheduler and KVM, too
 * @tell: with @host and memory for programs: tell the guest what the host does
 *        with its vCPUs
 * @lttng: deliver events to LTTng, too
 * @live_options: options of that delivery
 * @live: state of that delivery, or NULL
 * @kernel_path: --kernel, or NULL
 * @busybox: --busybox, or NULL
 * @poll_us: period of polls in microseconds
 * @max_bytes: maximum size in bytes of the events and log in files; the events
 *             of the host and those of programs have this limit each
 * @for_ns: maximum duration of the recording in ns; 0: no limit
 * @until: an event or line of the log that matches ends the recording; or NULL
 * @events: the events of --event, with those of the matches; or NULL
 * @wait_ns: with @process and without @plan: if no ring is found in this time
 *           in ns, or if the kernel is missing for it, the recording ends, see
 *           gives_up() in record-run.c; 0: no limit
 * @lacking: an image was found and dropped, because it lacks types or symbols
 *           of data
 * @memory_only: open no file that the command line of @process names: it may be
 *               hostile
 * @found: image that ended a recording without @image, which begins again
 * @print: only print the command that would be run
 * @quiet: print only errors on standard error
 * @as_qemu: the exit status is QEMU's, also if nothing was recorded
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
    HtFtFormats *formats;
    HtTraceBuffer buffer;
    HtKernelImage *image;
    HtRecordFunctions functions;
    char *tracer;
    const char *dir;
    bool host;
    bool tell;
    bool lttng;
    HtLttngOptions live_options;
    HtLive *live;
    const char *kernel_path;
    const char *busybox;
    uint32_t poll_us;
    uint64_t max_bytes;
    uint64_t for_ns;
    HtMatch *until;
    char *events;
    uint64_t wait_ns;
    HtKernelImage *found;
    bool lacking;
    bool memory_only;
    bool print;
    bool quiet;
    bool as_qemu;
} HtRecord;

/**
 * ht_record_parse() - parse the options of the command
 * @r: the recording; its options are set
 * @argc: number of elements of @argv
 * @argv: the command's name and its arguments
 * @status: set to the exit status if nothing is to be recorded
 *
 * Sets optind to the index of the first word of QEMU's command.
 *
 * Return: false after an error or --help
 */
bool ht_record_parse(HtRecord *r, int argc, char **argv, int *status);

/**
 * ht_record_prepare() - plan a recording of a command
 * @r: its options; its plan, buffer and image are set
 * @argv: QEMU and its arguments
 * @error: set if the command cannot be recorded
 *
 * Return: false on an error
 */
bool ht_record_prepare(HtRecord *r, char **argv, GError **error);

/**
 * ht_record_prepared() - run and record the planned command
 * @r: after ht_record_prepare(); if QEMU runs already, with @process
 * @argv: the command, for the recording's description
 *
 * With QEMU's option -daemonize, the recorder goes to the background, too.
 *
 * Return: the exit status
 */
int ht_record_prepared(HtRecord *r, char **argv);

/**
 * ht_record_process() - record a running virtual machine
 * @r: its options; @r->process, or @r->pid only
 *
 * Return: the exit status
 */
int ht_record_process(HtRecord *r);

/**
 * ht_record_scan_image() - copy the kernel's image out of a running guest
 * @r: the recording, with @r->process
 * @job: the job that runs this, which may be stopped; or NULL
 * @error: set if it is not found, for example because the guest still boots
 *
 * Return: the image, for ht_kernel_image_unref(); NULL on failure
 */
HtKernelImage *ht_record_scan_image(const HtRecord *r, HtJob *job,
                                    GError **error);

/**
 * ht_record_lacks() - get the reason why a kernel cannot be recorded
 * @image: the image that the guest will boot
 * @buffer: the buffer that the user chose, or HT_TRACE_BUFFER_ANY
 *
 * Return: the kernel's release and what it lacks, newly allocated; NULL if it
 * can be recorded
 */
char *ht_record_lacks(const HtKernelImage *image, HtTraceBuffer buffer);

/** ht_record_clear() - free the members that the functions above have set */
void ht_record_clear(HtRecord *r);

/**
 * ht_record_run() - run QEMU as planned, or use @r->process, and record until
 * QEMU or that process ends, or until an option or a signal ends the recording
 * @r: the recording
 * @info: parameters of the session
 *
 * Return: the exit status, see hypertrace-record(1): that of QEMU if this
 * function ran QEMU, and QEMU failed before --for or --until ended the
 * recording; else HT_EXIT_*. If LTTng hangs, the function ends this process
 * with the exit status.
 */
int ht_record_run(HtRecord *r, const HtSessionInfo *info);

#endif
