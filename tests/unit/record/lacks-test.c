/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record refuses kernels that lack what the recording needs
 */
#include "hypertrace/base.h"

#include "kernel-make.h"
#include "record/record.h"

/*
 * Promise: for a kernel that cannot be recorded with --buffer boot, or with no
 * --buffer, ht_record_lacks() returns a text with the kernel's release and what
 * is missing or what to do. The kernels of this test cannot put a ring into
 * reserved memory.
 */
static void test_lacks(void)
{
    static const struct {
        bool types;             /* the kernel has BTF */
        HtTraceBuffer buffer;
        const char *reason;     /* NULL: the kernel can be recorded */
    } rows[] = {
        { true, HT_TRACE_BUFFER_ANY, NULL },
        { true, HT_TRACE_BUFFER_MAIN, NULL },
        { true, HT_TRACE_BUFFER_BOOT, "leave out --buffer boot" },
        { false, HT_TRACE_BUFFER_ANY, "CONFIG_DEBUG_INFO_BTF" },
        { false, HT_TRACE_BUFFER_BOOT, "leave out --buffer boot" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *why = NULL;
        KmKernel k;

        km_kernel(&k, 16, rows[i].types);
        why = ht_record_lacks(k.image, rows[i].buffer);
        g_assert_cmpint(!why, ==, !rows[i].reason);
        g_assert_true(!why || strstr(why, rows[i].reason));
        g_assert_true(!why || g_str_has_prefix(why, "Linux 6.12.0-test "));
        km_kernel_free(&k);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record/lacks", test_lacks);
    return g_test_run();
}
