/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: get the second processor from its start in real mode
 * to CPL 3
 *
 * This processor has no IDT, so any fault resets the machine.  At CPL 3, an
 * access to an I/O port is such a fault, because the TSS allows none.
 */
#include "boot.h"

#define CR0_PE          (1 << 0)
#define CR4_SSE_PAE     0x620           /* PAE, OSFXSR, OSXMMEXCPT */
#define MSR_EFER        0xc0000080
#define EFER_LME        (1 << 8)

#define SEL_CODE0       0x08
#define SEL_DATA0       0x10
#define SEL_DATA3       0x2b
#define SEL_CODE3       0x33
#define SEL_CODE32      0x18            /* of smp_gdt, not in boot.S's */
#define SEL_TSS         0x38

/* smp_start() copies this to SMP_START, a page below 1 MiB */
        .section .text
        .code16
        .globl  smp_trampoline
smp_trampoline:
        cli
        movw    %cs, %ax
        movw    %ax, %ds
        lgdtl   smp_gdt_pointer - smp_trampoline
        movl    %cr0, %eax
        orl     $CR0_PE, %eax
        movl    %eax, %cr0
        ljmpl   $SEL_CODE32, $smp_start32
        .balign 4
smp_gdt_pointer:
        .word   smp_gdt_end - smp_gdt - 1
        .long   smp_gdt
        .globl  smp_trampoline_end
smp_trampoline_end:

        .code32
smp_start32:
        movl    $SEL_DATA0, %eax
        movl    %eax, %ds
        movl    %eax, %es
        movl    %eax, %ss
        movl    $smp_ring0_stack_top, %esp
        movl    %cr4, %eax
        orl     $CR4_SSE_PAE, %eax
        movl    %eax, %cr4
        movl    $boot_pml4, %eax
        movl    %eax, %cr3
        movl    $MSR_EFER, %ecx
        rdmsr
        orl     $EFER_LME, %eax
        wrmsr
        movl    %cr0, %eax
        andl    $0x9ffffff3, %eax       /* caches on; EM and TS off */
        orl     $0x80000022, %eax       /* PG, NE, MP */
        movl    %eax, %cr0
        movl    $smp_tss, %eax
        movw    %ax, smp_gdt_tss + 2
        shrl    $16, %eax
        movb    %al, smp_gdt_tss + 4
        movb    %ah, smp_gdt_tss + 7
        ljmp    $SEL_CODE0, $smp_start64

        .code64
smp_start64:
        movl    $SEL_TSS, %eax
        ltr     %ax
        movl    $SEL_DATA3, %eax
        movl    %eax, %ds
        movl    %eax, %es
        pushq   $SEL_DATA3
        pushq   $smp_ring3_stack_top
        pushq   $2                      /* RFLAGS: IF off, IOPL 0 */
        pushq   $SEL_CODE3
        pushq   $smp_start3
        iretq

smp_start3:
        xorl    %ebp, %ebp
        call    smp_second
1:      pause
        jmp     1b

        .section .data
        .balign 16
smp_gdt:
        .quad   0
        .quad   0x00af9b000000ffff      /* 0x08: code, 64 bit, DPL 0 */
        .quad   0x00cf93000000ffff      /* 0x10: data, DPL 0 */
        .quad   0x00cf9b000000ffff      /* 0x18: code, 32 bit, DPL 0 */
        .quad   0
        .quad   0x00cff3000000ffff      /* 0x28: data, DPL 3 */
        .quad   0x00affb000000ffff      /* 0x30: code, 64 bit, DPL 3 */
smp_gdt_tss:
        .word   103
        .word   0
        .byte   0
        .byte   0x89                    /* present, available TSS */
        .word   0
        .quad   0
smp_gdt_end:

        .balign 16
smp_tss:
        .long   0
        .quad   smp_ring0_stack_top
        .fill   102 - 12, 1, 0
        /*
         * offset of the I/O map: it is after the TSS's limit, so no port is
         * allowed
         */
        .word   104

        .section .bss
        .balign 16
        .skip   4096
smp_ring0_stack_top:
        .skip   16384
        .balign 16
smp_ring3_stack_top:

        .section .note.GNU-stack, "", @progbits
