/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: emit trace events from a program in a VM to the host
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
 * hypertrace/event.h describes the fields, hypertrace/trace.h ht_trace(), and
 * hypertrace/hypertrace.h how to use streams directly.
 */
#ifndef HYPERTRACE_ALL_H
#define HYPERTRACE_ALL_H

#include "hypertrace/trace.h"

#endif /* HYPERTRACE_ALL_H */
