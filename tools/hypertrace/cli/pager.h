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
 * The pager is the command $PAGER, or "less" if PAGER is not set. No pager is
 * started if standard output is no terminal, if TERM is not set or "dumb", if
 * $PAGER is empty, "cat" or not a valid command line, if its program is not
 * found, or if a pager was started before. If a pager was started, exit() calls
 * ht_pager_end().
 *
 * Return: true if this call started a pager
 */
bool ht_pager_start(void);

/**
 * ht_pager_end() - if a pager was started, close standard output and wait for
 *                  the end of the pager
 */
void ht_pager_end(void);

#endif /* HYPERTRACE_TOOL_PAGER_H */
