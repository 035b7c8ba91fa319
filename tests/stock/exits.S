/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Firmware of a guest that causes EXITS / 4 exits and then EXITS exits, with
 * SPIN rounds of a loop before each exit. The firmware writes the TSC cycles
 * that the EXITS exits and their loops took, as 8 hexadecimal digits and a
 * newline, to port 0xe9, and halts.
 */
        .code16
        .globl  start
start:
        cli
        /*
         * Do not measure the first EXITS / 4 exits: meanwhile the program that
         * started the guest goes to sleep.
         */
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

        .org    0xfff0
        jmp     start
        .org    0x10000
