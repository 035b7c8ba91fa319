/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target image: unpack any file, or, if that fails, parse it as a kernel.
 * Only the file's bytes are read, the unpacked size has a limit, and each
 * failure has a reason.
 */
#include "hypertrace/kernel-functions.h"
#include "unpack.h"
#include "fuzz.h"

/*
 * Maximum unpacked size in bytes; small, so that an input that unpacks to very
 * many bytes does not take long
 */
#define MOST (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL, why = NULL;
    g_autofree uint8_t *copy = fuzz_copy(data, size);
    g_autoptr(GBytes) part = ht_unpack(copy, size, MOST, &error);
    g_autoptr(HtKernelImage) kernel = NULL;
    HtImage image;

    g_assert_true(!part == !!error);
    if (part) {
        g_assert_cmpuint(g_bytes_get_size(part), <=, MOST);
        g_assert_nonnull(ht_unpack_format(copy, size));
        return 0;
    }
    g_clear_error(&error);
    if (ht_image_identify(copy, size, &image, &error)) {
        g_assert_cmpuint(image.kernel_offset, <=, size);
        g_assert_cmpuint(image.kernel_size, <=, size - image.kernel_offset);
        g_assert_nonnull(ht_machine_name(image.machine));
    } else {
        g_assert_nonnull(error);
    }
    kernel = ht_kernel_image_parse(copy, size, &why);
    g_assert_true(!kernel == !!why);
    if (kernel) {
        g_autoptr(HtKernelFunctions) f = ht_kernel_functions_new(kernel);
        unsigned named, traceable = ht_kernel_functions_match(f, "*", &named);

        g_assert_cmpuint(traceable, <=, named);
        g_assert_nonnull(ht_kernel_image_version(kernel));
        g_assert_nonnull(ht_kernel_image_release(kernel));
        g_assert_cmpuint(ht_symbols_count(ht_kernel_image_symbols(kernel)), >,
                         0);
    }
    return 0;
}
