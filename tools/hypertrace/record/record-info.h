/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the info file of a recording
 */
#ifndef HYPERTRACE_RECORD_INFO_H
#define HYPERTRACE_RECORD_INFO_H

#include "record/record-session.h"

/**
 * ht_record_info_start() - set the values that are known at the start
 * @keys: the recording's "info"
 * @info: source of the values
 */
void ht_record_info_start(GKeyFile *keys, const HtSessionInfo *info);

/**
 * ht_record_info_ring() - set the values that describe the ring
 * @keys: the recording's "info"
 * @kernel: the guest's kernel, or NULL. The ring's header holds the address of
 *          one symbol: the address that the kernel's symbols give it is added
 * @ring: the ring
 */
void ht_record_info_ring(GKeyFile *keys, const HtKernel *kernel,
                         const HtFtRing *ring);

/**
 * ht_record_info_add() - add formats and symbols of a kernel to a recording
 * @dir: the recording; its formats and symbols are not replaced
 * @kernel: the guest's kernel
 * @error: set on failure, also if the recording is of another kernel
 */
bool ht_record_info_add(const char *dir, const HtKernel *kernel,
                        GError **error);

#endif
