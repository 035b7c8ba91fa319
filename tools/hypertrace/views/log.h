/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: read the lines of the kernel's log, and print them as text
 */
#ifndef HYPERTRACE_TOOL_LOG_H
#define HYPERTRACE_TOOL_LOG_H

#include "cli/output.h"

#include "hypertrace/recording-log.h"
#include "model/model.h"

/**
 * HtLogLine: a record of the kernel's log
 * @record: the record; with @is_event, its members seq, level and facility are
 *          not known and 0
 * @is_event: the record comes from an event printk:console
 * @cpu: with @is_event: processor of the event
 */
typedef struct HtLogLine {
    HtLogRecord record;
    bool is_event;
    uint32_t cpu;
} HtLogLine;

typedef struct HtLogLines HtLogLines;

/**
 * ht_log_line_event: get the line of an event printk:console
 * @ev: the event
 * @line: filled in; its text is a part of the event, and as long valid
 *
 * Kernels such as 5.10 emit the event when they print the line on the console,
 * which may be later than the record. The event's text then usually begins with
 * the time of the record, as "[    1.234567] ": @line gets this time, and the
 * text without it. Otherwise, @line gets the time of the event.
 *
 * Returns: true if the event's text had the time of the record
 */
bool ht_log_line_event(const HtModelEvent *ev, HtLogLine *line);

/**
 * ht_log_lines_open: read the kernel's log of a recording
 * @dir: the recording
 * @m: model of the recording; if there is a log, read to its end and rewound
 * @errp: set if the log cannot be read
 *
 * If lines of the log are damaged, their number is printed on standard error.
 *
 * The recorder reads the log from the guest's memory, while that is possible.
 * The ring with the events printk:console may be readable for longer. So the
 * lines of a boot are the records of its log and, after them, the later events
 * printk:console of the boot.
 *
 * Returns: the lines, for ht_log_lines_close(); NULL without @errp if the
 * recording has no log
 */
HtLogLines *ht_log_lines_open(const char *dir, HtModel *m, GError **errp);

/**
 * ht_log_lines_next: get the next line, in the order of boots and records
 * @l: lines
 * @line: filled in; its text is valid until the next call
 *
 * Returns: false at the end
 */
bool ht_log_lines_next(HtLogLines *l, HtLogLine *line);

/**
 * ht_log_lines_close: close a log
 * @l: lines or NULL
 */
void ht_log_lines_close(HtLogLines *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtLogLines, ht_log_lines_close)

/**
 * ht_log_text: append a record of the log, with its time before each line
 * @ns: time of the record by the guest's clock, in nanoseconds
 * @s: text; may have any bytes. All except tabs are escaped for a terminal
 * @len: length of @s
 */
void ht_log_text(HtOutput *o, uint64_t ns, const char *s, gsize len);

#endif /* HYPERTRACE_TOOL_LOG_H */
