/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: show long output on a terminal in a pager
 */
#ifndef HYPERTRACE_TOOL_PAGER_H
#define HYPERTRACE_TOOL_PAGER_H

#include <stdbool.h>

/**
 * ht_pager_start() - pass standard output to a pager
 *
 * The pager is $PAGER, or less. It is not started if standard output is no
 * terminal or a dumb one, if $PAGER is empty or "cat", or if the program is not
 * found. exit() also calls ht_pager_end().
 *
 * Return: true if the pager was started
 */
bool ht_pager_start(void);

/** ht_pager_end() - close standard output, and wait for the end of the pager */
void ht_pager_end(void);

#endif /* HYPERTRACE_TOOL_PAGER_H */
