/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: lines of the guest's kernel
 */
#ifndef HYPERTRACE_TOOL_LOG_H
#define HYPERTRACE_TOOL_LOG_H

#include "cli/output.h"

/**
 * ht_log_text: append a record of the log, a line for each of its lines
 * @o: output
 * @ns: when it was printed, by the guest's clock
 * @s: bytes of any value
 * @len: how many
 */
void ht_log_text(HtOutput *o, uint64_t ns, const char *s, gsize len);

#endif /* HYPERTRACE_TOOL_LOG_H */
