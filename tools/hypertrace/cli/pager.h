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
 * found, or if a pager was started before. If a pager was started, exit() waits
 * for its end.
 *
 * Return: true if this call started a pager
 */
bool ht_pager_start(void);

#endif /* HYPERTRACE_TOOL_PAGER_H */
