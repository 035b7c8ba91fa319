/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write a cpio archive, which a kernel unpacks as its initramfs
 */
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"

static void pad(GByteArray *archive)
{
    static const uint8_t zeros[3];

    g_byte_array_append(archive, zeros, -archive->len & 3);
}

void ht_cpio_file(GByteArray *archive, const char *name, unsigned mode,
                  const void *data, size_t size)
{
    char header[111];

    /*
     * magic, inode, mode, user, group, links, time, size, 4 x device, length
     * of the name, checksum
     */
    snprintf(header, sizeof(header),
             "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
             archive->len / 4, mode, 0, 0, 1, 0, (unsigned)size, 0, 0, 0, 0,
             (unsigned)strlen(name) + 1, 0);
    g_byte_array_append(archive, (const uint8_t *)header, 110);
    g_byte_array_append(archive, (const uint8_t *)name, strlen(name) + 1);
    pad(archive);
    g_byte_array_append(archive, data, size);
    pad(archive);
}

void ht_cpio_end(GByteArray *archive)
{
    ht_cpio_file(archive, "TRAILER!!!", 0, "", 0);
}
