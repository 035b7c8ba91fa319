/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace of a Xen host with any content: the reader does not leave the file,
 * and its sums are consistent with the file's contents
 */
#include "hypertrace/base.h"
#include "host/xentrace.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *copy = fuzz_copy(data, size);
    HtRunstates *x = ht_xentrace_read(copy, size, NULL);
    unsigned i;

    if (!x) {
        return 0;
    }
    g_assert_cmpuint(x->damaged, <=, size);
    g_assert_cmpuint(x->records, <=, size / 4);
    g_assert_cmpuint(x->begin, <=, x->end);
    for (i = 0; i < x->vcpus->len; i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        GHashTableIter iter;
        gpointer value;
        uint64_t sum = v->unknown;
        unsigned k;

        for (k = 0; k < HT_RUN_STATES; k++) {
            g_assert_cmpuint(v->intervals[k], <=, x->records + 1);
            sum += v->ticks[k];
        }
        g_assert_cmpuint(sum, <=, x->end);
        g_assert_cmpuint(v->preempted + v->woken, <=,
                         v->ticks[HT_RUN_RUNNABLE]);
        g_hash_table_iter_init(&iter, v->exits);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const HtExitSums *e = value;

            g_assert_cmpuint(e->max, <=, e->ticks);
            if (e->count) {
                g_assert_cmpuint(ht_runstates_percentile(e, 99), <=, e->max);
            }
        }
    }
    ht_runstates_free(x);
    return 0;
}
