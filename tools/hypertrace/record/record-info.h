/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what a recording says about itself
 */
#ifndef HYPERTRACE_RECORD_INFO_H
#define HYPERTRACE_RECORD_INFO_H

#include "record/record-session.h"

/**
 * ht_record_info_start() - what is known from the begin
 * @keys: the recording's "info"
 * @info: where it comes from
 */
void ht_record_info_start(GKeyFile *keys, const HtSessionInfo *info);

/**
 * ht_record_info_ring() - which ring it is
 * @keys: the recording's "info"
 * @kernel: whose symbols have the one that the ring's header has; or NULL
 * @ring: the ring
 */
void ht_record_info_ring(GKeyFile *keys, const HtKernel *kernel,
                         const HtFtRing *ring);

/**
 * ht_record_info_add: add to a recording what a kernel says of itself
 * @dir: the recording; formats and symbols that it has stay
 * @kernel: the guest's
 * @error: why not: it may be of another kernel
 */
bool ht_record_info_add(const char *dir, const HtKernel *kernel,
                        GError **error);

#endif
