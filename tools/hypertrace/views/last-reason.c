/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace last: find the records of a kernel's log that tell why it failed
 *
 * A panic prints registers and a stack after its reason. So the last records of
 * the log, which the page shows, may have neither the error nor the panic.
 */
#include <string.h>

#include "views/last.h"

/*
 * First words of the record that begins the report of a kernel's error, on
 * several architectures
 */
static const char *const faults[] = {
    "BUG: ", "kernel BUG at ", "Unable to handle kernel ",
    "Oops: general protection fault", "general protection fault",
    "watchdog: BUG: ", "Kernel stack overflow", "Insufficient stack space",
};

/*
 * First words of the record that has the address of the failed instruction,
 * on several architectures
 */
static const char *const places[] = {
    "RIP: ", "pc : ", "epc : ", "NIP: ", "Krnl PSW : ",
};

static bool begins_with(const HtLogRecord *r, const char *const *texts,
                        unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        gsize len = strlen(texts[i]);

        if (r->len >= len && !memcmp(r->text, texts[i], len)) {
            return true;
        }
    }
    return false;
}

static void forget(HtLastLine **line)
{
    g_clear_pointer(line, ht_last_line_free);
}

static void keep(HtLastLine **line, const HtLogRecord *r)
{
    forget(line);
    *line = ht_last_line_new(r);
}

void ht_last_reason(HtLast *l, const HtLogRecord *r)
{
    HtLastLine **reasons = l->reasons;

    /*
     * Ignore records that are not of the kernel (facility 0), and all records
     * after the panic: these do not have the panic's reason.
     */
    if (r->facility || reasons[HT_LAST_PANIC]) {
        return;
    }
    if (ht_log_record_is_panic(r)) {
        keep(&reasons[HT_LAST_PANIC], r);
    } else if (begins_with(r, faults, G_N_ELEMENTS(faults))) {
        keep(&reasons[HT_LAST_FAULT], r);
        forget(&reasons[HT_LAST_PLACE]);
    } else if (reasons[HT_LAST_FAULT] && !reasons[HT_LAST_PLACE] &&
               begins_with(r, places, G_N_ELEMENTS(places))) {
        keep(&reasons[HT_LAST_PLACE], r);
    }
}

void ht_last_forget_reasons(HtLast *l)
{
    unsigned i;

    for (i = 0; i < HT_LAST_REASONS; i++) {
        forget(&l->reasons[i]);
    }
}
