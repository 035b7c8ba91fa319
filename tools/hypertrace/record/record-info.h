/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: write the info file of a recording
 */
#ifndef HYPERTRACE_RECORD_INFO_H
#define HYPERTRACE_RECORD_INFO_H

#include "hypertrace/recording.h"
#include "record/record-session.h"

/**
 * struct HtRecordInfo - the info file of a recording that grows
 * @keys: content of the file
 * @cpus: number of processors in @keys; 0: not set
 * @changed: the number of processors or the process in @keys has changed since
 *           the last write by ht_record_info_poll()
 * @next: earliest time of the next such write, in ns of the session's clock
 */
typedef struct HtRecordInfo {
    GKeyFile *keys;
    uint32_t cpus;
    bool changed;
    uint64_t next;
} HtRecordInfo;

/**
 * ht_record_info_init() - set the values that are known at the start
 * @i: uninitialized
 * @info: source of the values
 */
void ht_record_info_init(HtRecordInfo *i, const HtSessionInfo *info);
void ht_record_info_clear(HtRecordInfo *i);

/** ht_record_info_cpus() - set the number of processors, if it has grown */
void ht_record_info_cpus(HtRecordInfo *i, uint32_t cpus);

/** ht_record_info_process() - set the PID of the machine's process */
void ht_record_info_process(HtRecordInfo *i, pid_t pid);

/**
 * ht_record_info_write() - write the file
 * @i: the info
 * @w: writer of the recording
 * @error: set on failure
 */
bool ht_record_info_write(HtRecordInfo *i, HtRecWriter *w, GError **error);

/**
 * ht_record_info_kernel() - write a kernel's formats and symbols
 * @w: writer of the recording
 * @kernel: the kernel, or NULL
 * @error: set on failure
 */
bool ht_record_info_kernel(HtRecWriter *w, const HtKernel *kernel,
                           GError **error);

/**
 * ht_record_info_poll() - write the file if @i->changed is set, at most once a
 *                         second
 * @i: the info
 * @w: writer of the recording
 * @now: time in ns
 * @error: set on failure
 */
bool ht_record_info_poll(HtRecordInfo *i, HtRecWriter *w, uint64_t now,
                         GError **error);

/**
 * ht_record_info_ring() - set the values that describe the ring
 * @i: the info
 * @kernel: the guest's kernel, or NULL. The ring's header holds the address of
 *          one symbol: if the kernel has this symbol, its address in the
 *          kernel's image is added to the info
 * @ring: the ring
 */
void ht_record_info_ring(HtRecordInfo *i, const HtKernel *kernel,
                         const HtFtRing *ring);

/**
 * ht_record_info_add() - add formats and symbols of a kernel to a recording
 * @dir: the recording; its formats and symbols are not replaced
 * @kernel: the guest's kernel
 * @error: set on failure; also if the recording has formats, and they cannot be
 *         parsed, or one of them is of another event than the kernel's format
 *         with the same number
 */
bool ht_record_info_add(const char *dir, const HtKernel *kernel,
                        GError **error);

#endif
