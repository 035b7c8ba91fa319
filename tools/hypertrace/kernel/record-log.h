/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the log of the kernel in a guest's memory
 *
 * The records of one boot are read in portions and converted to lines of the
 * recording's log. Only one thread at a time may use an HtRecordLog.
 */
#ifndef HYPERTRACE_KERNEL_RECORD_LOG_H
#define HYPERTRACE_KERNEL_RECORD_LOG_H

#include "hypertrace/guest-kernel.h"
#include "hypertrace/kernel-log.h"
#include "hypertrace/recording-log.h"

typedef struct HtRecordLog HtRecordLog;

/**
 * ht_record_log_new() - start to read a kernel's log
 * @k: the kernel; must outlive the result
 * @seen: function that is called for each record that was read
 * @opaque: its argument
 * @error: set if the log of this kernel cannot be read
 *
 * Return: the reader, for ht_record_log_free(); NULL on failure
 */
HtRecordLog *ht_record_log_new(HtGuestKernel *k,
                               void (*seen)(void *opaque,
                                            const HtLogRecord *r),
                               void *opaque, GError **error);

/**
 * ht_record_log_look() - read new records
 * @boot: number of the boot, from 0, for the recording
 * @last: do not wait for records that are not complete, but skip them
 * @budget: the function returns after the record at which this time is over
 * @out: lines for ht_rec_writer_log() are appended, at most about 1 MiB
 *
 * Return: true if there may be more to read at once
 */
bool ht_record_log_look(HtRecordLog *l, uint32_t boot, bool last,
                        const HtBudget *budget, GString *out);

/** ht_record_log_hint() - see ht_kernel_log_hint() */
bool ht_record_log_hint(const HtRecordLog *l, HtKernelLogHint *hint);

/**
 * ht_record_log_records() - get the number of the log's records read so far
 */
uint64_t ht_record_log_records(const HtRecordLog *l);

/**
 * ht_record_log_panic() - get the guest time in ns of the last panic read so
 *                         far; 0 if there was no panic
 */
uint64_t ht_record_log_panic(const HtRecordLog *l);

/**
 * ht_record_log_free() - free a reader of the log
 * @l: the reader, or NULL
 */
void ht_record_log_free(HtRecordLog *l);

#endif
