/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --tell-guest: tell the guest what the host does with its
 * vCPUs
 *
 * A thread adds up the events of the host's part while a recorder, perhaps that
 * of another machine, appends to it, and writes the sums to the guest's memory.
 */
#ifndef HYPERTRACE_TOOL_HOST_TELL_H
#define HYPERTRACE_TOOL_HOST_TELL_H

#include "hypertrace/host-page.h"
#include "host/runstates.h"

typedef struct HtHostTell HtHostTell;

/**
 * ht_host_tell_new: start to tell a guest
 * @part: folder of the host's part; it may not exist yet
 * @page: area in the guest's memory; must stay valid until ht_host_tell_free().
 *        Until then, the caller must not write to it
 */
HtHostTell *ht_host_tell_new(const char *part, HtHostPage *page);

/**
 * ht_host_tell_process: set the process of the virtual machine
 * @t: the object, or NULL
 * @pid: the process; 0: not known yet
 */
void ht_host_tell_process(HtHostTell *t, uint32_t pid);

/** ht_host_tell_free: stop; @t may be NULL */
void ht_host_tell_free(HtHostTell *t);

#endif /* HYPERTRACE_TOOL_HOST_TELL_H */
