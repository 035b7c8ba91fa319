/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's log from its memory
 *
 * Kernels from 5.10 on keep the output of printk() in a lockless ring: an array
 * of descriptors, an array with the properties of each record, and a ring of
 * texts.  Each record has a time in ns, a level and a facility.
 */
#ifndef HYPERTRACE_KERNEL_LOG_H
#define HYPERTRACE_KERNEL_LOG_H

#include "hypertrace/kernel-space.h"
#include "hypertrace/recording-log.h"

/*
 * Maximum binary logarithm of the number of descriptors.  The logarithm of the
 * number of text bytes may be twice as large.
 */
#define HT_KERNEL_LOG_BITS_MAX  24u

/**
 * HtKernelLogLayout: offsets of members in the kernel's structures, in bytes
 * @count_bits: printk_ringbuffer.desc_ring.count_bits, a u32
 * @descs: printk_ringbuffer.desc_ring.descs
 * @infos: printk_ringbuffer.desc_ring.infos
 * @head: printk_ringbuffer.desc_ring.head_id
 * @tail: printk_ringbuffer.desc_ring.tail_id
 * @size_bits: printk_ringbuffer.text_data_ring.size_bits, a u32
 * @data: printk_ringbuffer.text_data_ring.data
 * @desc_size: size of a prb_desc
 * @state: prb_desc.state_var
 * @begin: prb_desc.text_blk_lpos.begin
 * @next: prb_desc.text_blk_lpos.next
 * @info_size: size of a printk_info
 * @seq: printk_info.seq
 * @ns: printk_info.ts_nsec
 * @len: printk_info.text_len
 * @facility: printk_info.facility
 * @caller: printk_info.caller_id
 * @level: printk_info.level, a bit field
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
 * ht_kernel_log_layout: get the offsets of the members
 * @btf: the kernel's types
 * @layout: filled in
 * @error: set if a member is missing (kernels before 5.10) or has another size
 *         than expected, or if a structure is larger than known ones
 *
 * Returns: true; or false with @error set
 */
bool ht_kernel_log_layout(const HtBtf *btf, HtKernelLogLayout *layout,
                          GError **error);

typedef struct HtKernelLog HtKernelLog;

/**
 * ht_kernel_log_new: start to read a log
 * @space: the kernel's addresses; copied
 * @layout: offsets of members; copied
 * @prb: address of the pointer to the ring (the symbol "prb")
 *
 * Returns: the reader, for ht_kernel_log_free()
 */
HtKernelLog *ht_kernel_log_new(const HtKernelSpace *space,
                               const HtKernelLogLayout *layout, uint64_t prb);

/**
 * ht_kernel_log_of: start to read the log of a guest's kernel
 * @k: the kernel; must stay valid
 * @error: set if a type or the symbol is missing
 *
 * Returns: as ht_kernel_log_new(); NULL with @error set
 */
HtKernelLog *ht_kernel_log_of(HtGuestKernel *k, GError **error);

/**
 * ht_kernel_log_free: free the reader
 * @log: the reader or NULL
 */
void ht_kernel_log_free(HtKernelLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelLog, ht_kernel_log_free)

/**
 * ht_kernel_log_next: read the next record
 * @log: the reader
 * @last: the guest no longer runs: skip records that were never completed
 * @record: set if the result is 1; its text is valid until the next call
 *
 * Records that were overwritten before they were read show as gaps of
 * HtLogRecord.seq.
 *
 * Returns: 1; 0 if no record can be read now, although the log may have more;
 * -errno.  After 0 and -errno, the next call tries again.
 */
int ht_kernel_log_next(HtKernelLog *log, bool last, HtLogRecord *record);

/**
 * HtKernelLogHint: a word that shows whether records were added
 * @mem: the guest's memory
 * @offset: offset of the word in @mem
 * @head: its value when it was last read
 */
typedef struct HtKernelLogHint {
    const HtFtMem *mem;
    uint64_t offset;
    uint64_t head;
} HtKernelLogHint;

/**
 * ht_kernel_log_hint: get the word that shows whether records were added
 * @log: the reader
 * @hint: set; valid until the next call of ht_kernel_log_next()
 *
 * Returns: false if the place of the word is not known
 */
bool ht_kernel_log_hint(const HtKernelLog *log, HtKernelLogHint *hint);

/**
 * ht_kernel_log_grew: test whether records were added since the last call of
 *                     ht_kernel_log_next()
 * @hint: the word, from ht_kernel_log_hint()
 *
 * This reads one word, so it is fast also if a recorder calls it at each of its
 * wake-ups.  The result may be wrong, for example after the kernel has moved
 * its log or changed its page tables.
 *
 * Returns: true if the word has changed: there are new records, which may not
 * be complete yet; false also if the memory cannot be read
 */
bool ht_kernel_log_grew(const HtKernelLogHint *hint);

#endif /* HYPERTRACE_KERNEL_LOG_H */
