/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what a kernel's file is
 *
 * Linux images for x86 and arm64 with an EFI stub are PE programs; a unified
 * kernel image is one that has the kernel in its section ".linux".
 */
#include <elf.h>
#include <string.h>

#include "hypertrace/base.h"
#include "kernel/kernel.h"

#define PE_MACHINE_AMD64    0x8664
#define PE_MACHINE_ARM64    0xaa64
#define PE_SECTIONS_MAX     96

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

/* A PE program: its machine, and whether it has a kernel in it */
static void read_pe(HtImage *image, const uint8_t *p, size_t size)
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

static void read_elf(HtImage *image, const uint8_t *p)
{
    unsigned machine = ht_get_le16(p + G_STRUCT_OFFSET(Elf64_Ehdr, e_machine));

    if (p[EI_CLASS] == ELFCLASS64 && p[EI_DATA] == ELFDATA2LSB) {
        image->machine = machine == EM_X86_64 ? HT_MACHINE_X86_64 :
                         machine == EM_AARCH64 ? HT_MACHINE_AARCH64 :
                         HT_MACHINE_UNKNOWN;
    }
}

bool ht_image_read(const char *path, HtImage *image, GBytes **content,
                   GError **error)
{
    g_autofree char *hash = NULL, *data = NULL;
    const uint8_t *p;
    size_t size;

    memset(image, 0, sizeof(*image));
    /* A copy: the file may be replaced meanwhile. */
    if (!g_file_get_contents(path, &data, &size, error)) {
        g_prefix_error(error, "the kernel: ");
        return false;
    }
    p = (const uint8_t *)data;
    image->kernel_size = size;
    if (size > 0x240) {
        if (!memcmp(p, ELFMAG, SELFMAG)) {
            read_elf(image, p);
        } else if (!memcmp(p, "MZ", 2)) {
            read_pe(image, p, size);
        } else if (!memcmp(p + 0x202, "HdrS", 4)) {
            image->machine = HT_MACHINE_X86_64;
        } else if (!memcmp(p + 0x38, "ARM\x64", 4)) {
            image->machine = HT_MACHINE_AARCH64;
        }
    }
    if (image->machine == HT_MACHINE_UNKNOWN) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s is no Linux kernel for x86_64 or aarch64", path);
        return false;
    }
    hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, p, size);
    g_strlcpy(image->hash, hash, sizeof(image->hash));
    if (content) {
        *content = g_bytes_new_take(g_steal_pointer(&data), size);
    }
    return true;
}
