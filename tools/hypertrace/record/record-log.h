/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the log of the kernel in a guest's memory
 *
 * Reads the records of one boot in small portions, as text for the recording.
 * Used by one thread.
 */
#ifndef HYPERTRACE_RECORD_LOG_H
#define HYPERTRACE_RECORD_LOG_H

#include "hypertrace/guest-kernel.h"

typedef struct HtRecordLog HtRecordLog;

/**
 * ht_record_log_new() - start to read a kernel's log
 * @k: the kernel; must stay
 * @error: set if the log of this kernel cannot be read
 */
HtRecordLog *ht_record_log_new(HtGuestKernel *k, GError **error);

/**
 * ht_record_log_look() - read what is new
 * @l: the log
 * @boot: number of the boot, from 0, for the recording
 * @last: no more comes: do not wait for records that are not complete
 * @us: time after which it returns, in microseconds
 * @out: lines for ht_rec_writer_log() are appended, at most about 1 MiB
 *
 * Return: true if there may be more to read at once
 */
bool ht_record_log_look(HtRecordLog *l, uint32_t boot, bool last, int64_t us,
                        GString *out);

/** ht_record_log_records() - number of records read so far */
uint64_t ht_record_log_records(const HtRecordLog *l);

/**
 * ht_record_log_free() - release it
 * @l: the log or NULL
 */
void ht_record_log_free(HtRecordLog *l);

#endif
