/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: symbols shared by boot.S and the C code
 */
#ifndef PAYLOAD_BOOT_H
#define PAYLOAD_BOOT_H

#define BOOT_LOOPS      1000

#ifndef __ASSEMBLER__
#include <stdint.h>

/* value of EAX at the entry: the loader's magic number */
extern uint32_t boot_magic;
/* value of EBX at the entry: address of the multiboot information */
extern uint32_t boot_info;
/* result of boot_loop() at CPL 0, in ticks */
extern uint64_t boot_ring0_ticks;
extern uint64_t boot_pml4[512];
/* end of the payload's .bss, from payload.ld */
extern char payload_end[];

/**
 * boot_loop() - run BOOT_LOOPS iterations of a loop of two instructions, and
 *               return the time that they took, in ticks of the counter
 */
uint64_t boot_loop(void);

/* boot.S calls payload_main(), and payload_fault() after a fault, at CPL 3 */
void payload_main(void);
void payload_fault(uint64_t vector, uint64_t error, uint64_t rip,
                   uint64_t cr2) __attribute__((noreturn));
#endif

#endif /* PAYLOAD_BOOT_H */
