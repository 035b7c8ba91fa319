/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: show on the terminal how much of a recording was read
 *
 * The progress is one line on standard error, if that is a terminal. The line
 * is shown only if the command takes longer than a second.
 */
#ifndef HYPERTRACE_TOOL_PROGRESS_H
#define HYPERTRACE_TOOL_PROGRESS_H

/** ht_progress_begin() - allow the line from one second after this call on */
void ht_progress_begin(void);

/**
 * ht_progress_show() - show or update the line, at most every 200 ms
 * @part: part of the recording that was read, in thousandths
 *
 * Before ht_progress_begin(), in the first second after it, after
 * ht_progress_end(), and if standard error is no terminal, the function does
 * nothing.
 */
void ht_progress_show(unsigned part);

/**
 * ht_progress_clear() - remove the line, because something else is printed;
 *                       a later ht_progress_show() shows it again
 */
void ht_progress_clear(void);

/**
 * ht_progress_end() - remove the line, and do not show it again until
 *                     ht_progress_begin()
 */
void ht_progress_end(void);

#endif /* HYPERTRACE_TOOL_PROGRESS_H */
