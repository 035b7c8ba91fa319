/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: get from multiboot's 32-bit entry to C at CPL 3 in
 * long mode
 *
 * Some KVMs emulate ring 0, which is slow.  So this code leaves ring 0 soon:
 * the assembler computes the page tables and the TSS.  C code runs at CPL 3
 * with interrupts off.  On this first processor it may access all ports,
 * because the TSS's bitmap is all zeros.  The first 4 GiB are identity-mapped,
 * writable and cacheable; mm_map() can add mappings.
 */
#include "boot.h"

#define MB_MAGIC        0x1badb002
/* flags for the loader: page-align modules, pass memory sizes */
#define MB_FLAGS        0x00000003

#define CR0_PE          (1 << 0)
#define CR0_MP          (1 << 1)
#define CR0_EM          (1 << 2)
#define CR0_TS          (1 << 3)
#define CR0_NE          (1 << 5)
#define CR0_PG          (1 << 31)
#define CR4_PAE         (1 << 5)
#define CR4_OSFXSR      (1 << 9)
#define CR4_OSXMMEXCPT  (1 << 10)
#define MSR_EFER        0xc0000080
#define EFER_LME        (1 << 8)

#define SEL_CODE0       0x08
#define SEL_DATA0       0x10
#define SEL_DATA3       0x2b
#define SEL_CODE3       0x33
#define SEL_TSS         0x38

/* flags of a page table entry: present, writable, user; PDE: 2 MiB page */
#define PTE_USER        0x07
#define PDE_USER_2M     0x87

#define TSS_RSP0        4
#define TSS_IOMAP_BASE  102
#define TSS_SIZE        104
#define IOMAP_SIZE      8192

        .section .multiboot, "a"
        .balign 4
        .long   MB_MAGIC
        .long   MB_FLAGS
        .long   -(MB_MAGIC + MB_FLAGS)

        .section .text.boot, "ax"
        .code32
        .globl  _start
_start:
        cli
        cld
        movl    $ring0_stack_top, %esp
        movl    %eax, boot_magic
        movl    %ebx, boot_info

        movl    %cr4, %eax
        orl     $(CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT), %eax
        movl    %eax, %cr4
        movl    $boot_pml4, %eax
        movl    %eax, %cr3
        movl    $MSR_EFER, %ecx
        rdmsr
        orl     $EFER_LME, %eax
        wrmsr
        movl    %cr0, %eax
        andl    $~(CR0_EM | CR0_TS), %eax
        orl     $(CR0_PG | CR0_NE | CR0_MP | CR0_PE), %eax
        movl    %eax, %cr0

        /* Split the TSS's address as the descriptor format requires */
        movl    $tss, %eax
        movw    %ax, gdt_tss + 2
        shrl    $16, %eax
        movb    %al, gdt_tss + 4
        movb    %ah, gdt_tss + 7

        lgdt    gdt_pointer
        ljmp    $SEL_CODE0, $start64

        .code64
start64:
        movl    $SEL_DATA0, %eax
        movl    %eax, %ss
        call    fill_idt
        lidt    idt_pointer
        movl    $SEL_TSS, %eax
        ltr     %ax

        /*
         * Under TCG, the time of the first call includes the loop's
         * translation, so keep the result of the second call only.
         */
        call    boot_loop
        call    boot_loop
        movq    %rax, boot_ring0_ticks

        movl    $SEL_DATA3, %eax
        movl    %eax, %ds
        movl    %eax, %es
        pushq   $SEL_DATA3
        pushq   $ring3_stack_top
        pushq   $2                      /* RFLAGS: IF off, IOPL 0 */
        pushq   $SEL_CODE3
        pushq   $start3
        iretq

start3:
        xorl    %ebp, %ebp
        call    payload_main
1:      pause
        jmp     1b

/* uint64_t boot_loop(void): called at CPL 0 above and at CPL 3 from C */
        .globl  boot_loop
boot_loop:
        rdtsc
        shlq    $32, %rdx
        leaq    (%rdx, %rax), %rsi
        movl    $BOOT_LOOPS, %ecx
1:      decl    %ecx
        jnz     1b
        rdtsc
        shlq    $32, %rdx
        addq    %rdx, %rax
        subq    %rsi, %rax
        ret

/* 32 gates, each to a stub of STUB_SIZE bytes */
#define STUB_SIZE       16
fill_idt:
        movl    $stubs, %eax
        movl    $idt, %edi
        movl    $32, %ecx
1:      movw    %ax, (%rdi)
        movw    $SEL_CODE0, 2(%rdi)
        movw    $0x8e00, 4(%rdi)        /* present, interrupt gate */
        movl    %eax, %edx
        shrl    $16, %edx
        movw    %dx, 6(%rdi)
        addl    $STUB_SIZE, %eax
        addl    $16, %edi
        decl    %ecx
        jnz     1b
        ret

        .balign STUB_SIZE
stubs:
        .set    vector, 0
        .rept   32
        .balign STUB_SIZE
        /*
         * Push 0 instead of an error code, except for the vectors 8, 10-14,
         * 17, 21, 29 and 30, where the CPU pushes an error code.
         */
        .if     !((0x60227d00 >> vector) & 1)
        pushq   $0
        .endif
        pushq   $vector
        jmp     fault
        .set    vector, vector + 1
        .endr

/*
 * A fault ends the payload. Report the fault at CPL 3, where code runs fast
 * even if KVM emulates ring 0: return to payload_fault() instead of to the
 * faulting instruction.
 */
fault:
        popq    %rdi                    /* vector */
        popq    %rsi                    /* error code */
        movq    (%rsp), %rdx            /* rip */
        movq    %cr2, %rcx
        movq    $payload_fault, (%rsp)
        movq    $ring3_stack_top - 8, 24(%rsp)
        movq    $SEL_CODE3, 8(%rsp)
        movq    $SEL_DATA3, 32(%rsp)
        iretq

        .section .data
        .balign 16
gdt:
        .quad   0
        .quad   0x00af9b000000ffff      /* 0x08: code, 64 bit, DPL 0 */
        .quad   0x00cf93000000ffff      /* 0x10: data, DPL 0 */
        .quad   0
        .quad   0
        .quad   0x00cff3000000ffff      /* 0x28: data, DPL 3 */
        .quad   0x00affb000000ffff      /* 0x30: code, 64 bit, DPL 3 */
gdt_tss:
        /* limit: includes the byte after the I/O map */
        .word   TSS_SIZE + IOMAP_SIZE
        .word   0
        .byte   0
        .byte   0x89                    /* present, available TSS */
        .word   0
        .quad   0
gdt_end:
gdt_pointer:
        .word   gdt_end - gdt - 1
        .quad   gdt
idt_pointer:
        .word   32 * 16 - 1
        .quad   idt

        .balign 16
tss:
        .long   0
        .quad   ring0_stack_top         /* TSS_RSP0 */
        .fill   TSS_IOMAP_BASE - TSS_RSP0 - 8, 1, 0
        .word   TSS_SIZE
        .fill   IOMAP_SIZE, 1, 0        /* I/O map: every port is allowed */
        /* byte after the map, which the CPU reads for the last ports */
        .byte   0xff

        .globl  boot_pml4
        .balign 4096
boot_pml4:
        .quad   boot_pdpt + PTE_USER
        .fill   511, 8, 0
boot_pdpt:
        .quad   boot_pd + PTE_USER
        .quad   boot_pd + 0x1000 + PTE_USER
        .quad   boot_pd + 0x2000 + PTE_USER
        .quad   boot_pd + 0x3000 + PTE_USER
        .fill   508, 8, 0
boot_pd:
        .set    address, 0
        .rept   2048
        .quad   address + PDE_USER_2M
        .set    address, address + 0x200000
        .endr

        .section .bss
        .balign 16
idt:
        .skip   32 * 16
        .skip   4096
ring0_stack_top:
        .skip   65536
        .balign 16
ring3_stack_top:
        .globl  boot_magic
boot_magic:
        .skip   4
        .globl  boot_info
boot_info:
        .skip   4
        .globl  boot_ring0_ticks
boot_ring0_ticks:
        .skip   8

        .section .note.GNU-stack, "", @progbits
