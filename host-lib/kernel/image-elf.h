/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find sections and segments of a 64-bit little-endian ELF file
 */
#ifndef HYPERTRACE_KERNEL_ELF_H
#define HYPERTRACE_KERNEL_ELF_H

#include "hypertrace/base.h"
#include "hypertrace/kallsyms.h"

/* Maximum number of segments that are used; later ones are left out */
#define HT_ELF_SEGMENTS_MAX 64u

/**
 * ht_elf_is: test whether the data begins as an ELF file
 * @data: content of the file
 * @size: size of @data in bytes
 */
bool ht_elf_is(const void *data, size_t size);

/**
 * ht_elf_machine: get the machine of an ELF file
 * @data: content of the file
 * @size: size of @data in bytes
 *
 * Returns: EM_X86_64, EM_AARCH64 or another; 0 if the file is no 64-bit
 * little-endian ELF file
 */
unsigned ht_elf_machine(const void *data, size_t size);

/**
 * ht_elf_section: find a section
 * @data: content of the file
 * @size: size of @data in bytes
 * @name: name of the section; if several have it, the first one counts
 * @offset: set to its offset in the file
 * @bytes: set to its size in bytes
 *
 * Returns: true; false if there is no such section, or if the file does not
 * hold its content (SHT_NOBITS, or the section exceeds the file)
 */
bool ht_elf_section(const void *data, size_t size, const char *name,
                    uint64_t *offset, uint64_t *bytes);

/**
 * ht_elf_segments: get the segments that are loaded into memory (PT_LOAD)
 * @data: content of the file
 * @size: size of @data in bytes
 * @segments: filled in, by rising address; left out are segments at address 0
 *            (x86's per-CPU data), segments that exceed the file, and segments
 *            without content in the file
 *
 * Returns: the number of segments, at most HT_ELF_SEGMENTS_MAX
 */
unsigned ht_elf_segments(const void *data, size_t size,
                         HtKernelSegment segments[HT_ELF_SEGMENTS_MAX]);

#endif
