/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write and read the kernel's log in a recording
 *
 * The file "log" has a line for each record, similar to those of /dev/kmsg:
 *
 *   PRIORITY,SEQUENCE,NANOSECONDS,BOOT,CALLER;TEXT
 *
 * The priority is 8 * facility + level.  The caller is "T123" (a thread), "C1"
 * (a processor) or "T0" (not known).  In the text, backslashes and all bytes
 * except printable ASCII are written as "\xHH".  The file is only appended to;
 * a last line without a newline is incomplete.
 */
#ifndef HYPERTRACE_RECORDING_LOG_H
#define HYPERTRACE_RECORDING_LOG_H

#include "hypertrace/base.h"

/* Maximum size of a record's text in bytes: its length is a u16 */
#define HT_LOG_TEXT_MAX 65535u

/* Flag in HtLogRecord.caller: the caller is a processor, not a thread */
#define HT_LOG_CALLER_CPU 0x80000000u

/**
 * HtLogRecord: a record of the kernel's log
 * @seq: number of the record in its boot
 * @ns: time of the record by the guest's clock, in ns
 * @boot: boot of the guest, from 0
 * @level: 0 (emergency) to 7 (debug)
 * @facility: syslog facility; 0 is the kernel
 * @caller: thread id, or HT_LOG_CALLER_CPU and a processor number; 0 if not
 *          known
 * @text: text without a final newline, not NUL-terminated; any bytes
 * @len: size of @text in bytes
 */
typedef struct HtLogRecord {
    uint64_t seq;
    uint64_t ns;
    uint32_t boot;
    uint8_t level;
    uint8_t facility;
    uint32_t caller;
    const char *text;
    size_t len;
} HtLogRecord;

/**
 * ht_log_record_write: append a record as a line
 * @r: the record
 * @out: the line is appended to this
 */
void ht_log_record_write(const HtLogRecord *r, GString *out);

/**
 * ht_log_record_is_panic: test whether the kernel wrote this record, with the
 * text with which panic() begins
 * @r: the record
 *
 * Programs can write any text into the log, but not with the kernel's facility.
 */
bool ht_log_record_is_panic(const HtLogRecord *r);

typedef struct HtLogReader HtLogReader;

/**
 * ht_log_reader_open: open the log of a recording
 * @dir: directory of the recording
 * @error: set if the log cannot be read
 *
 * Returns: the reader, for ht_log_reader_close(); NULL without @error if the
 * recording has no log
 */
HtLogReader *ht_log_reader_open(const char *dir, GError **error);

/**
 * ht_log_reader_close: close the log
 * @r: the reader or NULL
 */
void ht_log_reader_close(HtLogReader *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtLogReader, ht_log_reader_close)

/**
 * ht_log_reader_next: read the next record
 * @r: the reader
 * @record: set to the record; its text is valid until the next call
 *
 * Malformed lines are skipped.
 *
 * Returns: false at the end; a later call returns records that were written
 * since then
 */
bool ht_log_reader_next(HtLogReader *r, HtLogRecord *record);

/** ht_log_reader_damaged: get the number of malformed lines skipped so far */
uint64_t ht_log_reader_damaged(const HtLogReader *r);

#endif /* HYPERTRACE_RECORDING_LOG_H */
