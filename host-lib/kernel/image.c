/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: identify and unpack a kernel's file
 *
 * Linux images for x86 and arm64 with an EFI stub are PE programs; a unified
 * kernel image is a PE program that has the kernel in its section ".linux".
 */
#include "hypertrace/base.h"
#include <elf.h>
#include "hypertrace/kernel-image.h"
#include "image-elf.h"
#include "unpack.h"

#define PE_MACHINE_AMD64    0x8664
#define PE_MACHINE_ARM64    0xaa64
#define PE_SECTIONS_MAX     96
/*
 * Offsets in a file of fields of x86's boot header, in bytes.  The fields of
 * the payload exist from version 2.08 of the boot protocol on.
 */
#define X86_SETUP_SECTS     0x1f1
#define X86_SIGNATURE       0x202
#define X86_PROTOCOL        0x206
#define X86_PAYLOAD_OFFSET  0x248
#define X86_PAYLOAD_LENGTH  0x24c
#define X86_HEADER_END      0x250
#define ARM64_SIGNATURE     0x38
/*
 * Maximum depth of files within files.  A kernel in an EFI zboot program in a
 * unified kernel image has depth 2.
 */
#define DEPTH_MAX           4u

bool ht_image_load(const char *path, char **data, size_t *size, GError **error)
{
    /*
     * O_NONBLOCK: do not wait for the writer of a FIFO.  O_NOCTTY: do not make
     * a terminal this process's controlling terminal.
     */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    g_autofree char *copy = NULL;
    int code = errno;
    struct stat st;
    size_t len = 0;
    ssize_t n = 1;

    if (fd >= 0 && fstat(fd, &st)) {
        code = errno;
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                    "cannot open %s: %s", path, g_strerror(code));
        return false;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > HT_IMAGE_FILE_MAX) {
        close(fd);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s is no kernel: "
                    "a kernel is a regular file of at most %u MiB", path,
                    HT_IMAGE_FILE_MAX >> 20);
        return false;
    }
    copy = g_malloc(st.st_size + 1);
    while (len < (size_t)st.st_size && n) {
        n = read(fd, copy + len, st.st_size - len);
        if (n < 0 && errno != EINTR) {
            code = errno;
            break;
        }
        len += n > 0 ? n : 0;
    }
    close(fd);
    if (n < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                    "cannot read %s: %s", path, g_strerror(code));
        return false;
    }
    *data = g_steal_pointer(&copy);
    *size = len;
    return true;
}

const char *ht_machine_name(HtMachine machine)
{
    switch (machine) {
    case HT_MACHINE_X86_64:
        return "x86_64";
    case HT_MACHINE_AARCH64:
        return "aarch64";
    default:
        return "unknown";
    }
}

/* Identify a PE program: its machine, and the section with a kernel, if any */
static void identify_pe(HtImage *image, const uint8_t *p, size_t size)
{
    static const char linux_section[8] = ".linux";
    uint32_t pe, section, offset, bytes;
    unsigned machine, n, i;

    pe = ht_get_le32(p + 0x3c);
    if (pe > size || size - pe < 24 || memcmp(p + pe, "PE\0", 4)) {
        return;
    }
    machine = ht_get_le16(p + pe + 4);
    image->machine = machine == PE_MACHINE_AMD64 ? HT_MACHINE_X86_64 :
                     machine == PE_MACHINE_ARM64 ? HT_MACHINE_AARCH64 :
                     HT_MACHINE_UNKNOWN;
    n = MIN(ht_get_le16(p + pe + 6), PE_SECTIONS_MAX);
    section = pe + 24 + ht_get_le16(p + pe + 20);
    for (i = 0; i < n; i++, section += 40) {
        if (section > size || size - section < 40) {
            return;
        }
        if (memcmp(p + section, linux_section, sizeof(linux_section))) {
            continue;
        }
        bytes = ht_get_le32(p + section + 8);
        offset = ht_get_le32(p + section + 20);
        if (offset && offset < size && bytes && bytes <= size - offset) {
            image->unified = true;
            image->kernel_offset = offset;
            image->kernel_size = bytes;
        }
        return;
    }
}

static bool is_arm64(const uint8_t *p, size_t size)
{
    return size > 0x40 && !memcmp(p + ARM64_SIGNATURE, "ARM\x64", 4);
}

static bool is_bzimage(const uint8_t *p, size_t size)
{
    return size > X86_HEADER_END && !memcmp(p + X86_SIGNATURE, "HdrS", 4);
}

bool ht_image_identify(const void *data, size_t size, HtImage *image,
                       GError **error)
{
    const uint8_t *p = data;

    *image = (HtImage) { .kernel_size = size };
    if (size > X86_HEADER_END) {
        if (ht_elf_is(p, size)) {
            unsigned machine = ht_elf_machine(p, size);

            image->machine = machine == EM_X86_64 ? HT_MACHINE_X86_64 :
                             machine == EM_AARCH64 ? HT_MACHINE_AARCH64 :
                             HT_MACHINE_UNKNOWN;
        } else if (!memcmp(p, "MZ", 2)) {
            identify_pe(image, p, size);
        } else if (is_bzimage(p, size)) {
            image->machine = HT_MACHINE_X86_64;
        } else if (is_arm64(p, size)) {
            image->machine = HT_MACHINE_AARCH64;
        }
    }
    if (image->machine == HT_MACHINE_UNKNOWN) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "it is no Linux kernel for x86_64 or aarch64");
        return false;
    }
    return true;
}

static GBytes *unpack(GBytes *file, unsigned depth, GError **error);

/* Unpack the kernel in a part of @file; decompress the part if necessary */
static GBytes *unpack_part(GBytes *file, uint64_t offset, uint64_t bytes,
                           unsigned depth, GError **error)
{
    const uint8_t *p = g_bytes_get_data(file, NULL);
    g_autoptr(GBytes) part = NULL;

    if (offset > g_bytes_get_size(file) ||
        bytes > g_bytes_get_size(file) - offset) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel exceeds its file: it is cut off");
        return NULL;
    }
    if (ht_unpack_format(p + offset, bytes)) {
        part = ht_unpack(p + offset, bytes, HT_IMAGE_MAX, error);
    } else {
        part = g_bytes_new_from_bytes(file, offset, bytes);
    }
    return part ? unpack(part, depth + 1, error) : NULL;
}

static GBytes *unpack(GBytes *file, unsigned depth, GError **error)
{
    size_t size;
    const uint8_t *p = g_bytes_get_data(file, &size);
    HtImage image;

    if (depth > DEPTH_MAX) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel is packed in too many layers");
        return NULL;
    }
    if (ht_elf_machine(p, size)) {
        return g_bytes_ref(file);
    }
    if (ht_unpack_format(p, size)) {
        return unpack_part(file, 0, size, depth, error);
    }
    if (!ht_image_identify(p, size, &image, error)) {
        return NULL;
    }
    if (image.unified) {
        return unpack_part(file, image.kernel_offset, image.kernel_size,
                           depth, error);
    }
    /* The header of an EFI zboot program has the offset of its payload. */
    if (!memcmp(p + 4, "zimg", 4)) {
        return unpack_part(file, ht_get_le32(p + 8), ht_get_le32(p + 12),
                           depth, error);
    }
    if (is_arm64(p, size)) {
        return g_bytes_ref(file);
    }
    if (is_bzimage(p, size) && ht_get_le16(p + X86_PROTOCOL) >= 0x208) {
        unsigned sectors = p[X86_SETUP_SECTS] ?: 4;

        return unpack_part(file, (sectors + 1) * 512 +
                           (uint64_t)ht_get_le32(p + X86_PAYLOAD_OFFSET),
                           ht_get_le32(p + X86_PAYLOAD_LENGTH), depth, error);
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "no kernel was found in the file: it is no bzImage of boot "
                "protocol 2.08, Image, vmlinux or unified kernel image");
    return NULL;
}

GBytes *ht_image_unpack(const void *data, size_t size, GError **error)
{
    g_autoptr(GBytes) file = NULL;

    if (size > HT_IMAGE_FILE_MAX) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the file has %zu bytes; a kernel has at most %u MiB",
                    size, HT_IMAGE_FILE_MAX >> 20);
        return NULL;
    }
    file = g_bytes_new(data, size);
    return unpack(file, 0, error);
}
