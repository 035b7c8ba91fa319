/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: sections and segments of a 64-bit little-endian ELF file
 */
#ifndef HYPERTRACE_KERNEL_ELF_H
#define HYPERTRACE_KERNEL_ELF_H

#include "hypertrace/base.h"
#include "hypertrace/kallsyms.h"

/* Maximum number of segments that are read */
#define HT_ELF_SEGMENTS_MAX 64u

/**
 * ht_elf_is: do the bytes begin an ELF file?
 * @data: the file
 * @size: its bytes
 */
bool ht_elf_is(const void *data, size_t size);

/**
 * ht_elf_machine: EM_X86_64, EM_AARCH64 or another; 0 if the file is not of 64
 * bits, little-endian
 * @data: the file
 * @size: its bytes
 */
unsigned ht_elf_machine(const void *data, size_t size);

/**
 * ht_elf_section: find a section
 * @data: the file
 * @size: its bytes
 * @name: the section's name
 * @offset: set to its offset in the file
 * @bytes: set to its size
 *
 * Returns: false without such a section, or if it exceeds the file
 */
bool ht_elf_section(const void *data, size_t size, const char *name,
                    uint64_t *offset, uint64_t *bytes);

/**
 * ht_elf_segments: the segments that are loaded
 * @data: the file
 * @size: its bytes
 * @segments: filled in, rising by address; those of address 0 (x86's per-CPU
 *            data) and those that exceed the file are left out
 *
 * Returns: how many; at most HT_ELF_SEGMENTS_MAX
 */
unsigned ht_elf_segments(const void *data, size_t size,
                         HtKernelSegment segments[HT_ELF_SEGMENTS_MAX]);

#endif
