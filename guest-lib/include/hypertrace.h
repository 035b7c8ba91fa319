/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: trace events of a program, from a virtual machine to its host
 *
 *     #include <hypertrace.h>
 *
 *     HT_EVENT(hello, (u32, n), (text, who));
 *
 *     int main(void)
 *     {
 *         for (int n = 0; n < 10; n++) {
 *             ht_trace(hello, n, "world");
 *         }
 *     }
 *
 * The fields are described in hypertrace/event.h, ht_trace() in
 * hypertrace/trace.h; streams of one's own are in hypertrace/hypertrace.h.
 */
#ifndef HYPERTRACE_ALL_H
#define HYPERTRACE_ALL_H

#include "hypertrace/trace.h"

#endif /* HYPERTRACE_ALL_H */
