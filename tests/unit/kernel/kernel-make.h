/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make a kernel for tests: symbol tables in each layout, and an x86-64 kernel
 * in RAM that ht_guest_kernel_find() finds
 */
#ifndef KERNEL_MAKE_H
#define KERNEL_MAKE_H

#include "hypertrace/guest-kernel.h"

#define KM_TEXT     UINT64_C(0xffffffff81000000)
/* Size of a kernel that km_kernel() makes, from _text to _end, in bytes */
#define KM_SIZE     (UINT64_C(1) << 20)
/*
 * Offset from _text of sys_call_table, in bytes. A search computes the slide
 * from the first element, and refuses the kernel if this is 0.
 */
#define KM_SYSCALLS 0x2000u
/* Offset from _text of linux_banner, in bytes. A search compares this text. */
#define KM_BANNER   0x1000u
/* Offset in this text of the number of the build, a digit */
#define KM_BUILD    34u

typedef enum KmLayout {
    /* the offsets precede the names; per-CPU symbols are absolute */
    KM_5_10,
    /* as KM_5_10, and with the table seqs_of_names */
    KM_6_1_DEBIAN,
    KM_6_12,                    /* the offsets follow the names */
    /* as KM_6_12, but each offset is relative to the address of the offset */
    KM_7_2,
    KM_LAYOUTS,
} KmLayout;

typedef struct KmSymbol {
    uint64_t addr;
    char type;
    char name[600];
} KmSymbol;

/**
 * km_kallsyms: append symbol tables to a kernel
 * @out: the kernel's bytes before the tables
 * @symbols: array of KmSymbol in ascending order of addresses
 * @layout: layout of the tables
 * @text: address of the first byte of @out
 */
void km_kallsyms(GByteArray *out, const GArray *symbols, KmLayout layout,
                 uint64_t text);

void km_add(GArray *symbols, uint64_t addr, char type, const char *name);

/*
 * Add @n function symbols sys_call_0, sys_call_1 and so on, with the addresses
 * @addr, @addr + 16 and so on.
 */
void km_fill(GArray *symbols, uint64_t addr, unsigned n);

/* A kernel's image, and offsets in bytes from _text of some variables */
typedef struct KmKernel {
    /* bytes of the kernel from _text on, before relocation */
    GByteArray *bytes;
    HtKernelImage *image;
    uint32_t seconds;           /* timekeeper.xtime_sec */
    uint32_t jiffies;
    uint32_t canary;            /* init_task.stack_canary */
} KmKernel;

/**
 * km_kernel: make a kernel
 * @k: set by this call; km_kernel_free() frees it
 * @timekeeper: offset of xtime_sec in struct timekeeper, in bytes
 * @with_btf: whether the kernel has BTF types
 */
void km_kernel(KmKernel *k, uint32_t timekeeper, bool with_btf);
void km_kernel_free(KmKernel *k);

/**
 * km_place: put a running kernel into RAM
 * @k: the kernel
 * @ram: the memory, of @size bytes
 * @size: at least @phys + KM_SIZE
 * @phys: physical address of _text, a multiple of 2 MiB
 * @slide: distance from the link address, a multiple of 2 MiB
 * @seconds: wall clock of the kernel, s
 */
void km_place(const KmKernel *k, uint8_t *ram, uint64_t size, uint64_t phys,
              uint64_t slide, uint64_t seconds);

/**
 * km_print: add a record to a placed kernel's log
 * @kernel: the memory from _text on
 * @ns: the record's stamp, ns
 * @text: the record, at most 248 bytes; a log takes at most 16 records
 */
void km_print(uint8_t *kernel, uint64_t ns, const char *text);

/**
 * km_map: map a page in the page tables of a placed kernel
 * @ram: the memory
 * @phys: physical address of the kernel's _text
 * @free: physical address of free pages; this call takes up to 3 of them for
 *         tables, and advances the address
 * @addr: virtual address of the page
 * @to: physical address of the page
 */
void km_map(uint8_t *ram, uint64_t phys, uint64_t *free, uint64_t addr,
            uint64_t to);

#endif
