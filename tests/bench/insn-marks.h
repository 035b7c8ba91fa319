/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mark is an x86-64 instruction that has no effect and contains a number.
 * When a vCPU executes a mark, QEMU's plugin insn-plugin.c writes the number of
 * instructions that the vCPU has executed so far.
 */
#ifndef HT_INSN_MARKS_H
#define HT_INSN_MARKS_H

/*
 * nopl DISP(%rax): the bytes 0f 1f 80 and a displacement of 32 bits, whose
 * upper half is INSN_MARK_HIGH and whose lower half is the number
 */
#define INSN_MARK_OPCODE        { 0x0f, 0x1f, 0x80 }
#define INSN_MARK_HIGH          0x4854
#define INSN_MARK_SIZE          7

#define INSN_MARK_BEGIN         1
#define INSN_MARK_END           2

#ifdef __x86_64__
#define insn_mark(n) \
    __asm__ volatile("nopl %c0(%%rax)" \
                     : : "i"(INSN_MARK_HIGH << 16 | (n)) : "memory")
#else
#define insn_mark(n) ((void)0)
#endif

#endif /* HT_INSN_MARKS_H */
