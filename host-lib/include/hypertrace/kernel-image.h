/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a kernel's file, and what it says of itself
 *
 * A kernel is distributed as a bzImage (x86), an Image, a compressed Image or
 * an EFI zboot program (arm64), or within a unified kernel image.  Inside is
 * the kernel as it lies in memory: with its symbols (kallsyms), its types
 * (BTF) and its version.  The file is not trusted: sizes are bounded, all
 * references are checked.
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
 * ht_machine_name: name of an architecture as in uname(1)
 * @machine: the architecture
 */
const char *ht_machine_name(HtMachine machine);

/**
 * HtImage: description of a kernel's file
 * @machine: its architecture
 * @unified: it is a unified kernel image: an EFI program with the kernel in
 *           one of its sections
 * @kernel_offset: of that section in the file, in bytes; else 0
 * @kernel_size: of that section, or of the file, in bytes
 */
typedef struct HtImage {
    HtMachine machine;
    bool unified;
    uint64_t kernel_offset;
    uint64_t kernel_size;
} HtImage;

/**
 * ht_image_identify: describe a kernel's file
 * @data: the file's content
 * @size: its bytes
 * @image: filled in
 * @error: set if it is no Linux kernel for x86_64 or aarch64
 */
bool ht_image_identify(const void *data, size_t size, HtImage *image,
                       GError **error);

/**
 * ht_image_unpack: unpack the kernel of a file
 * @data: the file's content; as for ht_image_identify(), or the bare kernel
 * @size: its bytes, at most HT_IMAGE_FILE_MAX
 * @error: set on failure; names the library that this build lacks, if so
 *
 * Returns: an ELF file (x86_64, or a vmlinux of either) or an arm64 Image; at
 * most HT_IMAGE_MAX bytes; or NULL
 */
GBytes *ht_image_unpack(const void *data, size_t size, GError **error);

typedef struct HtKernelImage HtKernelImage;

/**
 * ht_kernel_image_open: read all that is needed of a kernel's file
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
 * ht_kernel_image_parse: the same for a file's content
 * @data: the file's content
 * @size: its bytes
 * @error: set on failure
 */
HtKernelImage *ht_kernel_image_parse(const void *data, size_t size,
                                     GError **error);

/**
 * ht_kernel_image_from_memory: the same for a kernel as it lies in RAM
 * @bytes: a copy of RAM, from _text on; a reference is taken
 * @machine: its architecture
 * @text: virtual address of the first byte
 * @error: set on failure
 *
 * For guests whose image is not at hand.  Symbols have the addresses of this
 * boot then: the slide is 0.
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
 * ht_kernel_image_set_btf: use other types than the image's own
 * @image: the image, used by one thread
 * @btf: the types; owned by the image from now on
 */
void ht_kernel_image_set_btf(HtKernelImage *image, HtBtf *btf);

/**
 * ht_kernel_image_machine: its architecture
 * @image: the image
 */
HtMachine ht_kernel_image_machine(const HtKernelImage *image);

/**
 * ht_kernel_image_version: the line of /proc/version (linux_banner)
 * @image: the image
 *
 * Returns: the line without its end, valid as long as @image
 */
const char *ht_kernel_image_version(const HtKernelImage *image);

/**
 * ht_kernel_image_release: as uname -r prints, from the version
 * @image: the image
 */
const char *ht_kernel_image_release(const HtKernelImage *image);

/**
 * ht_kernel_image_symbols: its symbols, at link addresses
 * @image: the image
 *
 * Per-CPU symbols of x86 before 6.15 are offsets, not addresses.
 *
 * Returns: valid as long as @image; never NULL
 */
const HtSymbols *ht_kernel_image_symbols(const HtKernelImage *image);

/**
 * ht_kernel_image_btf: its types
 * @image: the image
 *
 * Returns: valid as long as @image; NULL if the kernel was built without
 * CONFIG_DEBUG_INFO_BTF and ht_kernel_image_set_btf() was not called
 */
const HtBtf *ht_kernel_image_btf(const HtKernelImage *image);

/**
 * ht_kernel_image_has_data_symbols: does the symbol table have variables?
 * @image: the image
 *
 * Without CONFIG_KALLSYMS_ALL it has functions only, and little can be read.
 */
bool ht_kernel_image_has_data_symbols(const HtKernelImage *image);

/**
 * ht_kernel_image_bytes: initial content of the kernel's memory
 * @image: the image
 * @addr: link address
 * @len: bytes
 *
 * Returns: valid as long as @image; NULL if the file does not hold all of
 * them.  References to addresses may not be relocated yet.
 */
const void *ht_kernel_image_bytes(const HtKernelImage *image, uint64_t addr,
                                  size_t len);

/**
 * ht_kernel_image_file_bytes: all of the unpacked kernel
 * @image: the image
 * @size: set to its bytes
 */
const void *ht_kernel_image_file_bytes(const HtKernelImage *image,
                                       size_t *size);

#endif
