/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: event formats and symbols of a kernel image
 *
 * They are had from the kernel itself: it is booted once, in a throw-away
 * guest without devices, and says what it is.  The answer is kept in the
 * user's cache under the hash of the image.  What the guest prints is not
 * trusted: its size is bounded, and it is parsed before it is kept.
 */
#ifndef HYPERTRACE_KERNEL_H
#define HYPERTRACE_KERNEL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "hypertrace/ftrace-ring.h"
#include "hypertrace/kernel-image.h"

/**
 * ht_image_read() - read and describe a kernel's file
 * @path: the file
 * @image: filled in
 * @content: set to a copy of the file that @image is of, unless NULL
 * @error: set on failure
 */
bool ht_image_read(const char *path, HtImage *image, GBytes **content,
                   GError **error);

/**
 * struct HtKernel - what a kernel said of itself
 * @hash: of its image
 * @release: as "6.12.95+deb12-cloud-amd64"
 * @machine: as "x86_64"
 * @version: the line of /proc/version
 * @formats: for ht_ft_formats_parse()
 * @formats_size: its bytes
 * @kallsyms: for ht_symbols_parse(); without KASLR
 * @kallsyms_size: its bytes
 */
typedef struct HtKernel {
    char *hash;
    char *release;
    char *machine;
    char *version;
    char *formats;
    size_t formats_size;
    char *kallsyms;
    size_t kallsyms_size;
} HtKernel;

/**
 * ht_kernel_get() - from the cache, or else from a throw-away guest
 * @path: the image
 * @qemu: the program to boot it with if there is no qemu-system-MACHINE in
 *        PATH; or NULL.  It has to support -sandbox.
 * @busybox: a static busybox for that machine; NULL for the system's
 * @error: set on failure
 *
 * A guest takes about 10 s of a processor; standard error says so.
 *
 * Return: for ht_kernel_free(); NULL on failure
 */
HtKernel *ht_kernel_get(const char *path, const char *qemu,
                        const char *busybox, GError **error);

/**
 * ht_kernel_of_image() - from the image itself
 * @image: the kernel's image
 *
 * Return: for ht_kernel_free(); without formats, which only a running kernel
 * has
 */
HtKernel *ht_kernel_of_image(HtKernelImage *image);

/**
 * ht_kernel_image_in() - copy the kernel's image out of a guest's memory
 * @mem: the memory of a guest whose kernel's file is not known
 * @quiet: report no progress on a terminal
 * @error: set if there is no kernel, or none built for kdump (VMCOREINFO)
 *
 * Reads all memory that was ever written, which takes up to a second for 4 GiB.
 *
 * Return: for ht_kernel_image_unref(); its symbols have the addresses of this
 * boot.  NULL on failure
 */
HtKernelImage *ht_kernel_image_in(const HtFtMem *mem, bool quiet,
                                  GError **error);
void ht_kernel_free(HtKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernel, ht_kernel_free)

/**
 * ht_kernel_guest() - boot a kernel once; used by ht_kernel_get()
 * @content: the image
 * @image: what it is
 * @qemu: as for ht_kernel_get()
 * @busybox: as for ht_kernel_get()
 * @seconds: that it may take
 * @size: set to the bytes returned
 * @error: set on failure
 *
 * Leaves nothing behind if this process is killed: all is in memory, and the
 * guest is killed, too.
 *
 * Return: what the guest's script wrote (kernel-guest.c), terminated by a NUL
 * that does not count; NULL on failure
 */
char *ht_kernel_guest(GBytes *content, const HtImage *image,
                      const char *qemu, const char *busybox, unsigned seconds,
                      size_t *size, GError **error);

/**
 * ht_cpio_file() - append a file to an archive for a kernel's initramfs
 * @archive: in the format "newc"
 * @name: its path, without a slash at its begin
 * @mode: S_IFREG or S_IFDIR, and the permissions
 * @data: its content
 * @size: in bytes
 */
void ht_cpio_file(GByteArray *archive, const char *name, unsigned mode,
                  const void *data, size_t size);

/** ht_cpio_end() - append what ends an archive */
void ht_cpio_end(GByteArray *archive);

#endif
