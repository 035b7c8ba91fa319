/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: are there such events in this kernel?
 */
#ifndef HYPERTRACE_CHECK_EVENTS_H
#define HYPERTRACE_CHECK_EVENTS_H

#include "kernel/kernel.h"

/**
 * ht_check_events() - compare a list of events with those of a kernel
 * @list: of --event
 * @kernel: has its formats
 * @error: set to the first name that the kernel does not have, and those that
 *         are near it
 */
bool ht_check_events(const char *list, const HtKernel *kernel, GError **error);

#endif
