/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target threads: parse any text as the list of a host's threads, and as
 * the name of a vCPU's thread. The parsers read only the text, and find at
 * most as many threads as a text of this size can have.
 */
#include "host/threads.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *copy = fuzz_copy(data, size);
    g_autoptr(GHashTable) threads = ht_host_threads((const char *)copy, size);
    GHashTableIter iter;
    gpointer tid, thread;
    int32_t vcpu;

    g_assert_cmpuint(g_hash_table_size(threads), <=, size / 4);
    g_hash_table_iter_init(&iter, threads);
    while (g_hash_table_iter_next(&iter, &tid, &thread)) {
        const HtHostThread *t = thread;

        g_assert_cmpuint(GPOINTER_TO_UINT(tid), <=, INT32_MAX);
        g_assert_cmpuint(t->pid, <=, INT32_MAX);
        g_assert_true(tid && t->pid);
        g_assert_cmpuint(strlen(t->name), <=, HT_HOST_COMM_MAX);
    }
    if (ht_host_vcpu_name((const char *)copy, size, &vcpu)) {
        g_assert_cmpuint(size, <=, HT_HOST_COMM_MAX);
        g_assert_true(vcpu >= -1 && vcpu <= UINT16_MAX);
    }
    return 0;
}
