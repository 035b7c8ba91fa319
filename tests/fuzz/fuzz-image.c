/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of a kernel, or of a unified image with one in a section
 */
#include "hypertrace/base.h"
#include <sys/mman.h>
#include "kernel/kernel.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) content = NULL;
    int fd = memfd_create("image", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    HtImage image;

    g_assert_cmpint(write(fd, data, size), ==, size);
    if (ht_image_read(path, &image, &content, &error)) {
        g_assert_cmpuint(image.kernel_offset, <=, size);
        g_assert_cmpuint(image.kernel_size, <=, size - image.kernel_offset);
        g_assert_cmpuint(strlen(image.hash), ==, 64);
        g_assert_nonnull(ht_machine_name(image.machine));
    } else {
        g_assert_nonnull(error);
    }
    close(fd);
    return 0;
}
