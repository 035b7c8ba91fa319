/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: symbols shared by boot.S and the C code
 */
#ifndef PAYLOAD_BOOT_H
#define PAYLOAD_BOOT_H

#define BOOT_LOOPS      1000

#ifndef __ASSEMBLER__
#include <stdint.h>

/* value of EAX that the loader has set */
extern uint32_t boot_magic;
/* address of the multiboot information */
extern uint32_t boot_info;
extern uint64_t boot_ring0_ticks;       /* result of boot_loop() at CPL 0 */
extern uint64_t boot_pml4[512];
extern char payload_end[];              /* end of bss, from payload.ld */

/**
 * boot_loop() - counter ticks for BOOT_LOOPS turns of a two-instruction loop
 */
uint64_t boot_loop(void);

/* Called by boot.S, at CPL 3 */
void payload_main(void);
void payload_fault(uint64_t vector, uint64_t error, uint64_t rip,
                   uint64_t cr2) __attribute__((noreturn));
#endif

#endif /* PAYLOAD_BOOT_H */
