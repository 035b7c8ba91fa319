/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest that causes EXITS exits, with SPIN rounds of a loop before each one. It writes the
 * time that they took, in hexadecimal digits and TSC cycles, to port 0xe9, and halts. It
 * is the firmware of a guest of KVM or, with XEN defined, the kernel of a PVH guest.
 */
#ifdef XEN
        .section .note.Xen, "a", @note
        .align  4
        .long   4, 4, 18                /* XEN_ELFNOTE_PHYS32_ENTRY */
        .asciz  "Xen"
        .long   start
        .bss
        .skip   4096
stack:
        .text
        .code32
        .globl  start
start:
        movl    $stack, %esp
#else
        .code16
        .globl  start
start:
#endif
        cli
        /* Until the program that started the guest sleeps */
        movl    $EXITS / 4, %ebp
        call    exits
        rdtsc
        movl    %eax, %edi
        movl    $EXITS, %ebp
        call    exits
        rdtsc
        subl    %edi, %eax
        movl    $8, %ecx
digit:
        roll    $4, %eax
        movl    %eax, %ebx
        andb    $15, %al
        addb    $'0', %al
        cmpb    $'9', %al
        jbe     put
        addb    $'a' - '9' - 1, %al
put:
        outb    %al, $0xe9
        movl    %ebx, %eax
        decl    %ecx
        jnz     digit
        movb    $'\n', %al
        outb    %al, $0xe9
halt:
        hlt
        jmp     halt

exits:
        movl    $SPIN, %ecx
spin:
        decl    %ecx
        jnz     spin
        xorl    %eax, %eax
        cpuid
        decl    %ebp
        jnz     exits
        ret

#ifndef XEN
        .org    0xfff0
        jmp     start
        .org    0x10000
#endif
