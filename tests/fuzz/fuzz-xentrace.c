/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target xentrace: read any file as a trace of a Xen host. The reader
 * reads only the file's bytes, and its sums of times and its counts are
 * consistent.
 */
#include "hypertrace/base.h"
#include "host/xentrace.h"
#include "fuzz.h"

/* Sum of the times of a table of HtTaker */
static uint64_t taken(GHashTable *table)
{
    GHashTableIter iter;
    gpointer value;
    uint64_t sum = 0;

    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const HtTaker *t = value;
        uint64_t cpus = 0;
        unsigned i;

        for (i = 0; i < t->cpus->len; i++) {
            cpus += g_array_index(t->cpus, HtCpuTicks, i).ticks;
        }
        g_assert_cmpuint(cpus, ==, t->ticks);
        g_assert_cmpuint(t->longest, <=, t->ticks);
        g_assert_cmpuint(t->waits, >=, 1);
        sum += t->ticks;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *copy = fuzz_copy(data, size);
    g_autoptr(HtRunstates) x = ht_runstates_new();
    unsigned i;

    if (!ht_xentrace_read(x, copy, size, NULL)) {
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
        g_assert_cmpuint(taken(v->takers), ==, taken(v->rivals));
        /*
         * @takers includes the time of a wait that has not ended at the end of
         * the trace; @ticks does not include this time.
         */
        g_assert_cmpuint(taken(v->takers), <=,
                         v->ticks[HT_RUN_RUNNABLE] + v->unknown +
                         x->end - MIN(v->since, x->end));
        g_hash_table_iter_init(&iter, v->exits);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const HtExitSums *e = value;

            g_assert_cmpuint(e->max, <=, e->ticks);
            if (e->count) {
                g_assert_cmpuint(ht_runstates_percentile(e, 99), <=, e->max);
            }
        }
    }
    return 0;
}
