/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: get event formats and symbols of a kernel image
 *
 * ht_kernel_get() reads them from the user's cache. If the cache lacks them, it
 * boots the kernel in a temporary guest, which has no disk and no network and
 * prints them on a serial port. The result is stored in the cache under the
 * hash of the image. The guest's output is not trusted: its size is bounded,
 * and it is parsed before it is stored.
 */
#ifndef HYPERTRACE_KERNEL_H
#define HYPERTRACE_KERNEL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "hypertrace/ftrace-ring.h"
#include "hypertrace/kernel-image.h"
#include "kernel/job.h"

/**
 * ht_image_read() - read and describe a kernel's file
 * @path: the file
 * @image: filled in
 * @content: set to a copy of the file, to which the offset in @image refers; or
 *           NULL
 * @error: set on failure
 */
bool ht_image_read(const char *path, HtImage *image, GBytes **content,
                   GError **error);

/**
 * struct HtKernel - information about a kernel
 * @hash: SHA-256 of its image in hexadecimal; NULL from ht_kernel_of_image()
 * @release: for example "6.12.95+deb12-cloud-amd64"
 * @machine: for example "x86_64"
 * @version: the line of /proc/version
 * @formats: for ht_ft_formats_parse(); NULL from ht_kernel_of_image()
 * @formats_size: number of bytes of @formats
 * @kallsyms: symbols, for ht_symbols_parse(). From ht_kernel_get(), the
 *            addresses are without KASLR; from ht_kernel_of_image(), they are
 *            those of the image
 * @kallsyms_size: number of bytes of @kallsyms
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
 * ht_kernel_get() - get information from the cache, or from a temporary guest
 * @path: the image
 * @qemu: QEMU to boot the kernel with if PATH has no qemu-system-MACHINE; or
 *        NULL. It must support -sandbox.
 * @busybox: a static busybox for the kernel's architecture; NULL: search for it
 *           in /bin, /usr/bin and /usr/local/bin
 * @error: set on failure
 *
 * If the cache does not have the kernel, this prints a message and boots a
 * guest, which usually takes about 10 s of one processor.
 *
 * Return: for ht_kernel_free(); NULL on failure
 */
HtKernel *ht_kernel_get(const char *path, const char *qemu,
                        const char *busybox, GError **error);

/**
 * ht_kernel_of_image() - get information from the image itself
 * @image: the kernel's image
 *
 * Return: for ht_kernel_free(); without formats, which only a running kernel
 * has
 */
HtKernel *ht_kernel_of_image(HtKernelImage *image);

/**
 * ht_kernel_image_in() - copy the kernel's image out of a guest's memory
 * @mem: the guest's memory
 * @quiet: do not show the progress if standard error is a terminal
 * @job: the job that runs this, which may be stopped; or NULL
 * @error: set if the process with the memory has ended, or if no kernel that
 *         was built for kdump (VMCOREINFO) was found. If @job is stopped, only
 *         a part of the memory is searched
 *
 * Use this if the file of the guest's kernel is not known. This reads all
 * memory that HtFtMem.next does not skip, which can take a second for 4 GiB.
 *
 * Return: for ht_kernel_image_unref(); its symbols have the addresses of this
 * boot.  NULL on failure
 */
HtKernelImage *ht_kernel_image_in(const HtFtMem *mem, bool quiet, HtJob *job,
                                  GError **error);
void ht_kernel_free(HtKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernel, ht_kernel_free)

/**
 * ht_kernel_guest() - boot a kernel once; used by ht_kernel_get()
 * @content: the image
 * @image: description of the image
 * @qemu: as for ht_kernel_get()
 * @busybox: as for ht_kernel_get()
 * @seconds: maximum duration of all attempts together
 * @size: set to the number of bytes returned
 * @error: set on failure
 *
 * If this process is killed, no file and no process is left: all files are in
 * memory, and the guest is killed too.
 *
 * Return: decompressed output of the guest's script (kernel-guest.c), with a
 * NUL after @size bytes; NULL on failure
 */
char *ht_kernel_guest(GBytes *content, const HtImage *image,
                      const char *qemu, const char *busybox, unsigned seconds,
                      size_t *size, GError **error);

/**
 * ht_cpio_file() - append a file or folder to a kernel's initramfs
 * @archive: the initramfs, a cpio archive in the format "newc"
 * @name: path of the file, without a slash at the start
 * @mode: S_IFREG or S_IFDIR, and the permissions
 * @data: content of the file
 * @size: bytes of @data
 */
void ht_cpio_file(GByteArray *archive, const char *name, unsigned mode,
                  const void *data, size_t size);

/** ht_cpio_end() - append the trailer of an archive */
void ht_cpio_end(GByteArray *archive);

#endif
