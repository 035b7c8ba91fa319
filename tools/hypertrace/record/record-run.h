/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the state of a run, which record-run.c changes and
 * record-end.c describes
 */
#ifndef HYPERTRACE_RECORD_RUN_H
#define HYPERTRACE_RECORD_RUN_H

#include "host/host-record.h"
#include "kernel/job.h"
#include "record/record.h"

/*
 * State of a recording. @sources has the memfd that this process holds, or one
 * entry for each RAM file that QEMU's options name; an entry is NULL until the
 * file exists.
 */
typedef struct HtRecordRun {
    HtRecord *r;
    HtSession *session;
    HtFlight *flight;
    HtHostRecord *host;
    HtProgramsStats programs;   /* result of ht_programs_end(); zero before */
    bool hangs;                 /* LTTng hangs: end by _exit() */
    GPtrArray *sources;
    /* the memory of @process without the files in @sources; or NULL */
    HtSource *rest;
    /* the guest's RAM in both NUMA nodes, to search for the kernel; or NULL */
    HtSource *whole;
    /* PID of the process that @rest and @whole read */
    pid_t scanned_pid;
    HtProcess *process;
    pid_t pid;
    bool child;
    bool tty;
    /* the recording has ended or failed, although QEMU may run on */
    bool stopped;
    /* the recording has run for the time of --for */
    bool timed_out;
    /* an event or line has matched --until */
    bool matched;
    /* the recording has stopped before an event or line matched --until */
    bool too_late;
    /*
     * no ring was found in the time of --wait, or a known kernel has been
     * missing for that time: see gives_up()
     */
    bool gave_up;
    /* time in ns of the last poll at which the kernel was known; 0: never */
    uint64_t kernel_seen;
    uint64_t events;
    /*
     * time in ns after @started from which on the next search for the kernel's
     * image may begin
     */
    uint64_t next_image;
    HtJob *image_job;           /* the search for the image, or NULL */
    HtKernelImage *image;       /* result of @image_job */
    /* the likely reasons why no ring was found were printed */
    bool explained;
    uint64_t started;
    uint64_t scanned;
} HtRecordRun;

/*
 * Test whether --for or --until has ended the recording. With --until, the
 * result is also true if the recording has stopped before an event or line
 * matched.
 */
bool ht_run_is_over(const HtRecordRun *run);

/* Print the likely reasons why no ring or kernel was found. */
void ht_run_print_reasons(const HtRecordRun *run);

/*
 * Describe the end. @status: as from waitpid(); @signal: a signal has ended
 * the recording. Return: newly allocated
 */
char *ht_run_describe_end(const HtRecordRun *run, int status, bool signal);

/* Print what was recorded. */
void ht_run_print_summary(const HtRecordRun *run, int status);

/*
 * With --for or --until: print why the recording ended, or that nothing matched
 * --until. @end: from ht_run_describe_end()
 */
void ht_run_print_end(const HtRecordRun *run, const char *end);

/* Choose the exit status, as in the table in hypertrace-record(1). */
int ht_run_exit_status(const HtRecordRun *run, int status);

#endif
