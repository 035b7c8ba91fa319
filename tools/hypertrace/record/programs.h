/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: record the events of the guest's programs
 *
 * The recorder is the host of the memory-only transport.  A thread polls the
 * memory and writes the events as a CTF trace.
 */
#ifndef HYPERTRACE_RECORD_PROGRAMS_H
#define HYPERTRACE_RECORD_PROGRAMS_H

#include "lttng/lttng-sink.h"

/*
 * Minimum size of the memory: the smallest power of two that has room for one
 * ring of the default size and for the layout
 */
#define HT_PROGRAMS_SIZE_MIN    (UINT64_C(8) << 20)

#define HT_PROGRAMS_FOLDER      "programs"

/**
 * struct HtProgramsOptions - destination of the events
 * @dir: the recording's folder; must outlive the result. The trace's folder is
 *       created when the guest opens its first stream
 * @guest: name of the guest, or NULL; must outlive the result
 * @max_bytes: limit of the trace's size on the disk, in bytes, by estimate;
 *             further events are not written
 * @link: path of a symbolic link to the trace, which a successor finds if this
 *        process is killed; or NULL. Must outlive the result
 * @lttng: name of the guest in LTTng: its sessions get the events, too, and
 *         switch each event on and off in the guest. NULL: all events are on.
 *         Must outlive the result
 * @tell: recording whose host's part the guest is told about, see host-tell.h;
 *        or NULL. Must outlive the result
 */
typedef struct HtProgramsOptions {
    const char *dir;
    const char *guest;
    uint64_t max_bytes;
    const char *link;
    const char *lttng;
    const char *tell;
} HtProgramsOptions;

/**
 * struct HtProgramsStats - the result
 * @events: number of events in the trace
 * @lost: number of events that the guest discarded because a ring was full, in
 *        streams that are closed
 * @dropped: number of events that could not be written, or exceeded the limit
 * @streams: number of streams that were opened
 * @why: reason of the first failure, or NULL
 * @provider: name of the provider in LTTng; NULL without LTTng
 * @lttng: with @provider: counts of LTTng
 * @hangs: LTTng hangs: end the process by _exit()
 */
typedef struct HtProgramsStats {
    uint64_t events;
    uint64_t lost;
    uint64_t dropped;
    uint64_t streams;
    char *why;
    char *provider;
    HtLttngStats lttng;
    bool hangs;
} HtProgramsStats;

typedef struct HtPrograms HtPrograms;

/**
 * ht_programs_new() - become the host of a memory
 * @fd: the memory; may be closed after this
 * @create: lay out the memory; else the memory has a layout already
 * @options: copied
 * @error: set on failure
 *
 * With @create, call this before the virtual machine starts: the guest's driver
 * checks the layout when it finds the device.
 */
HtPrograms *ht_programs_new(int fd, bool create,
                            const HtProgramsOptions *options, GError **error);

/**
 * ht_programs_start() - start to serve the guest; call this once
 *
 * With HtProgramsOptions.lttng, a process that starts QEMU itself must start
 * QEMU first; see ht_lttng_sink_start().
 *
 * If another recorder served the memory and was killed, the events that it did
 * not record are recorded. Those that it recorded are not recorded again, if
 * HtProgramsOptions.link leads to its trace.
 */
void ht_programs_start(HtPrograms *p);

/**
 * ht_programs_process() - set the process of the virtual machine
 * @p: started; or NULL
 * @pid: the process; 0: not known yet
 *
 * With HtProgramsOptions.tell, the guest is told about the vCPUs of @pid.
 */
void ht_programs_process(HtPrograms *p, pid_t pid);

/**
 * ht_programs_failed() - test whether the memory was truncated
 * @p: started
 *
 * Return: true if so; the only useful call is then ht_programs_end()
 */
bool ht_programs_failed(const HtPrograms *p);

/**
 * ht_programs_summary() - print the numbers of events by ht_notice()
 * @dir: the recording
 * @n: the numbers
 */
void ht_programs_summary(const char *dir, const HtProgramsStats *n);

/**
 * ht_programs_end() - record all committed events, stop, and free
 * @p: started or not; or NULL
 * @stats: filled in, for ht_programs_stats_clear()
 *
 * If @stats->hangs is set, @p is not freed.
 */
void ht_programs_end(HtPrograms *p, HtProgramsStats *stats);

/** ht_programs_stats_clear() - free the members of @stats */
void ht_programs_stats_clear(HtProgramsStats *stats);

#endif
