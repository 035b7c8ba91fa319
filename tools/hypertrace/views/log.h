/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: lines of the guest's kernel
 */
#ifndef HYPERTRACE_TOOL_LOG_H
#define HYPERTRACE_TOOL_LOG_H

#include "cli/output.h"

#include "hypertrace/recording-log.h"
#include "model/model.h"

/**
 * HtLogLine: what the kernel printed at once
 * @record: as in the log; of an event, @seq, @level and @facility are unknown
 * @is_event: it is the event printk:console
 * @cpu: processor of the event
 */
typedef struct HtLogLine {
    HtLogRecord record;
    bool is_event;
    uint32_t cpu;
} HtLogLine;

typedef struct HtLogLines HtLogLines;

/**
 * ht_log_lines_open: read the kernel's log of a recording
 * @dir: the recording
 * @m: its model, which is read to its end and rewound
 * @errp: why the log cannot be read
 *
 * The log is read from the guest's memory, while it can be.  The events
 * printk:console outlive that memory if their ring does: those after the last
 * record of a boot are added to it.
 *
 * Returns: for ht_log_lines_close(); NULL without @errp if the recording has no
 * log
 */
HtLogLines *ht_log_lines_open(const char *dir, HtModel *m, GError **errp);

/**
 * ht_log_lines_next: the next line, in the order of boots and records
 * @l: lines
 * @line: set; its text is valid until the next call
 *
 * Returns: false at the end
 */
bool ht_log_lines_next(HtLogLines *l, HtLogLine *line);

/**
 * ht_log_lines_close: close it
 * @l: lines or NULL
 */
void ht_log_lines_close(HtLogLines *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtLogLines, ht_log_lines_close)

/**
 * ht_log_text: append a record of the log, a line for each of its lines
 * @o: output
 * @ns: when it was printed, by the guest's clock
 * @s: bytes of any value
 * @len: how many
 */
void ht_log_text(HtOutput *o, uint64_t ns, const char *s, gsize len);

#endif /* HYPERTRACE_TOOL_LOG_H */
