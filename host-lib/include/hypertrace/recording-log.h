/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the part of a recording that holds the kernel's log
 *
 * The file "log" has a line for each record, in the form of /dev/kmsg:
 *
 *   PRIORITY,SEQUENCE,NANOSECONDS,BOOT,CALLER;TEXT
 *
 * with the priority 8 * facility + level and the caller as "T123" (a thread)
 * or "C1" (a processor).  In the text, a backslash and all bytes that are not
 * printable are written as "\xHH".  The file is only appended to; a line
 * without an end is not complete.
 */
#ifndef HYPERTRACE_RECORDING_LOG_H
#define HYPERTRACE_RECORDING_LOG_H

#include "hypertrace/base.h"

/* Largest text of a record, in bytes, as of its length's type */
#define HT_LOG_TEXT_MAX 65535u

/* Bit of a caller that is a processor, not a thread */
#define HT_LOG_CALLER_CPU 0x80000000u

/**
 * HtLogRecord: what the kernel printed at once
 * @seq: number of the record in its boot
 * @ns: the guest's clock
 * @boot: boot of the guest, from 0
 * @level: 0 (emergency) to 7 (debug)
 * @facility: 0 is the kernel
 * @caller: thread, or HT_LOG_CALLER_CPU and a processor; 0 if not known
 * @text: without a newline at its end; not terminated; any bytes
 * @len: bytes of @text
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
 * ht_log_record_write: append a record's line
 * @r: the record
 * @out: appended to
 */
void ht_log_record_write(const HtLogRecord *r, GString *out);

typedef struct HtLogReader HtLogReader;

/**
 * ht_log_reader_open: read the log of a recording
 * @dir: the recording
 * @error: set if the log cannot be read
 *
 * Returns: for ht_log_reader_close(); NULL without @error if the recording
 * has no log
 */
HtLogReader *ht_log_reader_open(const char *dir, GError **error);

/**
 * ht_log_reader_close: close it
 * @r: the reader or NULL
 */
void ht_log_reader_close(HtLogReader *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtLogReader, ht_log_reader_close)

/**
 * ht_log_reader_next: the next record
 * @r: the reader
 * @record: set; its text is valid until the next call
 *
 * Lines that are malformed are passed.
 *
 * Returns: false at the end
 */
bool ht_log_reader_next(HtLogReader *r, HtLogRecord *record);

#endif /* HYPERTRACE_RECORDING_LOG_H */
