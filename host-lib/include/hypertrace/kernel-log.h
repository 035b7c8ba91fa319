/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a kernel's log, read from its memory
 *
 * Kernels from 5.10 on keep what printk() printed in a lockless ring: an array
 * of descriptors, an array of what is known of each record, and a ring of
 * texts.  A record has its exact time, its level and its facility, from the
 * first line on, whether or not there is a console.
 */
#ifndef HYPERTRACE_KERNEL_LOG_H
#define HYPERTRACE_KERNEL_LOG_H

#include "hypertrace/kernel-space.h"
#include "hypertrace/recording-log.h"

/* Limits: descriptors of a ring, bytes of its texts */
#define HT_KERNEL_LOG_BITS_MAX  24u

/**
 * HtKernelLogLayout: where members lie, in bytes
 * @count_bits: of printk_ringbuffer: desc_ring.count_bits, of 4 bytes
 * @descs: desc_ring.descs
 * @infos: desc_ring.infos
 * @head: desc_ring.head_id
 * @tail: desc_ring.tail_id
 * @size_bits: text_data_ring.size_bits, of 4 bytes
 * @data: text_data_ring.data
 * @desc_size: bytes of a prb_desc
 * @state: of prb_desc: state_var
 * @begin: text_blk_lpos.begin
 * @next: text_blk_lpos.next
 * @info_size: bytes of a printk_info
 * @seq: of printk_info: seq
 * @ns: ts_nsec
 * @len: text_len
 * @facility: facility
 * @caller: caller_id
 * @level: level, a bit field
 */
typedef struct HtKernelLogLayout {
    uint32_t count_bits;
    uint32_t descs;
    uint32_t infos;
    uint32_t head;
    uint32_t tail;
    uint32_t size_bits;
    uint32_t data;
    uint32_t desc_size;
    uint32_t state;
    uint32_t begin;
    uint32_t next;
    uint32_t info_size;
    uint32_t seq;
    uint32_t ns;
    uint32_t len;
    uint32_t facility;
    uint32_t caller;
    HtBtfField level;
} HtKernelLogLayout;

/**
 * ht_kernel_log_layout: find the members
 * @btf: the kernel's types
 * @layout: filled in
 * @error: set if a member is missing: the kernel is older than 5.10
 */
bool ht_kernel_log_layout(const HtBtf *btf, HtKernelLogLayout *layout,
                          GError **error);

typedef struct HtKernelLog HtKernelLog;

/**
 * ht_kernel_log_new: start to read a log
 * @space: the kernel's addresses; copied
 * @layout: copied
 * @prb: address of the pointer to the ring (the symbol "prb")
 *
 * Returns: for ht_kernel_log_free()
 */
HtKernelLog *ht_kernel_log_new(const HtKernelSpace *space,
                               const HtKernelLogLayout *layout, uint64_t prb);

/**
 * ht_kernel_log_of: the same for a guest's kernel
 * @k: the kernel; must stay
 * @error: set if a type or the symbol is missing
 */
HtKernelLog *ht_kernel_log_of(HtGuestKernel *k, GError **error);

/**
 * ht_kernel_log_free: release it
 * @log: the reader or NULL
 */
void ht_kernel_log_free(HtKernelLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelLog, ht_kernel_log_free)

/**
 * ht_kernel_log_next: the next record
 * @log: the reader
 * @last: the guest does not run any more: pass records that were begun and
 *        never completed
 * @record: set for 1; its text is valid until the next call
 *
 * Records that were overwritten before they were read are missing from the
 * sequence of HtLogRecord.seq.
 *
 * Returns: 1, 0 if there is none yet, or -errno; the next call tries again
 */
int ht_kernel_log_next(HtKernelLog *log, bool last, HtLogRecord *record);

#endif /* HYPERTRACE_KERNEL_LOG_H */
