/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's file: symbols, types and version
 *
 * A kernel is distributed as a bzImage (x86), an Image, a compressed Image or
 * an EFI zboot program (arm64), or as a part of a unified kernel image.  The
 * file contains, usually compressed, the initial content of the kernel's
 * memory: code and data, symbols (kallsyms), types (BTF) and the version.  The
 * file is not trusted: sizes are bounded, and references are checked.
 */
#ifndef HYPERTRACE_KERNEL_IMAGE_H
#define HYPERTRACE_KERNEL_IMAGE_H

#include "hypertrace/btf.h"
#include "hypertrace/symbols.h"

/* Maximum size of a file, and of the kernel that it holds, in bytes */
#define HT_IMAGE_FILE_MAX   (512u << 20)
#define HT_IMAGE_MAX        (512u << 20)

/**
 * enum HtMachine - a guest's architecture
 */
typedef enum HtMachine {
    HT_MACHINE_UNKNOWN,
    HT_MACHINE_X86_64,
    HT_MACHINE_AARCH64,
} HtMachine;

/**
 * ht_machine_name: get the name of an architecture, as `uname -m` prints it, or
 * "unknown"
 * @machine: the architecture
 */
const char *ht_machine_name(HtMachine machine);

/**
 * HtImage: description of a kernel's file
 * @machine: its architecture
 * @unified: it is a unified kernel image: an EFI program with the kernel in
 *           one of its sections
 * @kernel_offset: offset of that section in the file, in bytes; else 0
 * @kernel_size: size of that section, or of the file, in bytes
 */
typedef struct HtImage {
    HtMachine machine;
    bool unified;
    uint64_t kernel_offset;
    uint64_t kernel_size;
} HtImage;

/**
 * ht_image_load: copy a kernel's file
 * @path: the file: regular, and of at most HT_IMAGE_FILE_MAX bytes
 * @data: set to its content, for g_free()
 * @size: set to the number of bytes
 * @error: set on failure
 *
 * Another user may choose or replace the file: a FIFO or a device is refused,
 * and the call does not wait for it.
 *
 * Returns: true; or false with @error set
 */
bool ht_image_load(const char *path, char **data, size_t *size, GError **error);

/**
 * ht_image_identify: identify a kernel's file
 * @data: content of the file
 * @size: size of @data in bytes
 * @image: filled in
 * @error: set if the file is not one of those below, for x86_64 or aarch64
 *
 * The file may be an ELF file, an EFI program, a bzImage or an arm64 Image.
 * Only its headers are examined: an ELF file or EFI program that is no kernel
 * is accepted, too.  A compressed file is refused.
 *
 * Returns: true; or false with @error set
 */
bool ht_image_identify(const void *data, size_t size, HtImage *image,
                       GError **error);

/**
 * ht_image_unpack: unpack the kernel of a file
 * @data: content of the file, as for ht_image_identify(); may be compressed
 * @size: size of @data in bytes, at most HT_IMAGE_FILE_MAX
 * @error: set on failure; if this build lacks the library that decompresses the
 *         file, the message names the library
 *
 * Returns: a 64-bit little-endian ELF file (vmlinux) of any machine, or an
 * arm64 Image, of at most HT_IMAGE_MAX bytes; or NULL
 */
GBytes *ht_image_unpack(const void *data, size_t size, GError **error);

typedef struct HtKernelImage HtKernelImage;

/**
 * ht_kernel_image_open: read a kernel's file
 * @path: the file
 * @error: set on failure
 *
 * A kernel without symbols is refused.  BTF may be missing: see
 * ht_kernel_image_btf().
 *
 * Returns: the image, with one reference; or NULL
 */
HtKernelImage *ht_kernel_image_open(const char *path, GError **error);

/**
 * ht_kernel_image_parse: parse the content of a kernel's file
 * @data: content of the file
 * @size: size of @data in bytes
 * @error: set on failure
 *
 * Returns: as ht_kernel_image_open()
 */
HtKernelImage *ht_kernel_image_parse(const void *data, size_t size,
                                     GError **error);

/**
 * ht_kernel_image_from_memory: parse a kernel that was copied out of RAM
 * @bytes: a copy of RAM, from _text on; a reference is taken
 * @machine: the guest's architecture
 * @text: virtual address of the first byte
 * @error: set on failure
 *
 * Use this if the file of the guest's kernel is not available.  The symbols
 * have the addresses of the boot from which the copy is, so the slide is 0.
 *
 * Returns: as ht_kernel_image_open()
 */
HtKernelImage *ht_kernel_image_from_memory(GBytes *bytes, HtMachine machine,
                                           uint64_t text, GError **error);

/**
 * ht_kernel_image_ref: take a reference
 * @image: the image
 */
HtKernelImage *ht_kernel_image_ref(HtKernelImage *image);

/**
 * ht_kernel_image_unref: drop a reference
 * @image: the image or NULL
 */
void ht_kernel_image_unref(HtKernelImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelImage, ht_kernel_image_unref)

/**
 * ht_kernel_image_machine: get the architecture
 * @image: the image
 */
HtMachine ht_kernel_image_machine(const HtKernelImage *image);

/**
 * ht_kernel_image_version: get the line of /proc/version (linux_banner)
 * @image: the image
 *
 * Returns: the line without newline, valid as long as @image; a character that
 * is not printable ASCII is replaced by "?"
 */
const char *ht_kernel_image_version(const HtKernelImage *image);

/**
 * ht_kernel_image_has_banner: compare bytes of a guest's memory with the start
 * of the version
 * @image: the image
 * @banner: the bytes; those that are not printable ASCII count as "?"
 * @len: number of bytes to compare
 *
 * Returns: whether the version begins with these bytes
 */
bool ht_kernel_image_has_banner(const HtKernelImage *image, const char *banner,
                                size_t len);

/**
 * ht_kernel_image_release: get the release, as `uname -r` prints it
 * @image: the image
 */
const char *ht_kernel_image_release(const HtKernelImage *image);

/**
 * ht_kernel_image_symbols: get the symbols
 * @image: the image
 *
 * They have link addresses, or, after ht_kernel_image_from_memory(), the
 * addresses of that boot.  Per-CPU symbols of x86 before 6.15 are offsets, not
 * addresses.
 *
 * Returns: the symbols, valid as long as @image; never NULL
 */
const HtSymbols *ht_kernel_image_symbols(const HtKernelImage *image);

/**
 * ht_kernel_image_btf: get the types
 * @image: the image
 *
 * Returns: the types, valid as long as @image; NULL if the kernel has no valid
 * BTF (CONFIG_DEBUG_INFO_BTF)
 */
const HtBtf *ht_kernel_image_btf(const HtKernelImage *image);

/**
 * ht_kernel_image_has_data_symbols: test whether the symbols include variables
 * @image: the image
 *
 * A kernel without CONFIG_KALLSYMS_ALL has symbols of functions only, so most
 * of its data cannot be found.
 */
bool ht_kernel_image_has_data_symbols(const HtKernelImage *image);

/**
 * ht_kernel_image_bytes: get a part of the kernel's memory from the image
 * @image: the image
 * @addr: an address of the kind that ht_kernel_image_symbols() describes
 * @len: number of bytes
 *
 * Returns: the content, valid until ht_kernel_image_shrink() or the end of
 * @image; NULL if the image does not hold all of it, or if
 * ht_kernel_image_shrink() has freed it.  In a file, this is the initial
 * content, in which addresses may not be relocated yet.
 */
const void *ht_kernel_image_bytes(const HtKernelImage *image, uint64_t addr,
                                  size_t len);

/**
 * ht_kernel_image_shrink: free the kernel's code and data
 * @image: the image, which no other thread uses
 *
 * Symbols, types, version and release stay, and so does the header, which the
 * search for an arm64 kernel reads.  An unpacked kernel has some 50 MiB.
 */
void ht_kernel_image_shrink(HtKernelImage *image);

#endif
