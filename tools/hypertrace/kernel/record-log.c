/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the log of the kernel in a guest's memory
 */
#include "hypertrace/base.h"
#include "kernel/record-log.h"

/* Number of bytes of lines after which ht_record_log_look() returns */
#define POLL_BYTES (1u << 20)

struct HtRecordLog {
    HtKernelLog *log;
    void (*seen)(void *opaque, const HtLogRecord *r);
    void *opaque;
    uint64_t records;
    uint64_t panic_ns;
};

HtRecordLog *ht_record_log_new(HtGuestKernel *k,
                               void (*seen)(void *opaque,
                                            const HtLogRecord *r),
                               void *opaque, GError **error)
{
    HtKernelLog *log = ht_kernel_log_of(k, error);
    HtRecordLog *l;

    if (!log) {
        return NULL;
    }
    l = g_new0(HtRecordLog, 1);
    l->log = log;
    l->seen = seen;
    l->opaque = opaque;
    return l;
}

bool ht_record_log_look(HtRecordLog *l, uint32_t boot, bool last,
                        const HtBudget *budget, GString *out)
{
    gsize before = out->len;
    HtLogRecord record;

    while (ht_kernel_log_next(l->log, last, &record) > 0) {
        record.boot = boot;
        ht_log_record_write(&record, out);
        l->seen(l->opaque, &record);
        l->records++;
        if (ht_log_record_is_panic(&record)) {
            l->panic_ns = MAX(record.ns, 1);
        }
        if (out->len - before >= POLL_BYTES || ht_budget_is_over(budget)) {
            return true;
        }
    }
    return false;
}

bool ht_record_log_hint(const HtRecordLog *l, HtKernelLogHint *hint)
{
    return ht_kernel_log_hint(l->log, hint);
}

uint64_t ht_record_log_records(const HtRecordLog *l)
{
    return l->records;
}

uint64_t ht_record_log_panic(const HtRecordLog *l)
{
    return l->panic_ns;
}

void ht_record_log_free(HtRecordLog *l)
{
    if (l) {
        ht_kernel_log_free(l->log);
        g_free(l);
    }
}
