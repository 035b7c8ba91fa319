/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a line on the terminal that shows how far a long read is
 */
#ifndef HYPERTRACE_TOOL_PROGRESS_H
#define HYPERTRACE_TOOL_PROGRESS_H

/** ht_progress_begin() - start the clock: the line is shown after a second */
void ht_progress_begin(void);

/**
 * ht_progress_show() - show the line, if standard error is a terminal
 * @part: part of the recording that was read, in thousandths
 */
void ht_progress_show(unsigned part);

/** ht_progress_clear() - remove the line, before something else is printed */
void ht_progress_clear(void);

/** ht_progress_end() - remove the line, and show no other one */
void ht_progress_end(void);

#endif /* HYPERTRACE_TOOL_PROGRESS_H */
