/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: whether this QEMU is about to end
 */
#ifndef HW_HYPERTRACE_ENDING_H
#define HW_HYPERTRACE_ENDING_H

/**
 * ht_qemu_ends: whether QEMU ends
 *
 * Once it does, it waits for commands that wait: these are to come back.
 *
 * Context: BQL
 */
bool ht_qemu_ends(void);

#endif /* HW_HYPERTRACE_ENDING_H */
