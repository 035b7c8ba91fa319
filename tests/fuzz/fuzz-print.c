/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that print, as bytes, from a process that a guest's print format may
 * have taken over; and records of all sizes, printed by them
 */
#include "hypertrace/base.h"
#include "print-event.h"
#include "print/print-program.h"
#include "fuzz.h"

static void print_all(const HtPrint *print)
{
    uint8_t record[PRINT_RECORD_SIZE];
    size_t size;

    print_make_record(record);
    for (size = 0; size <= PRINT_RECORD_SIZE; size += 4) {
        g_autofree uint8_t *cut = fuzz_copy(record, size);
        g_autoptr(GString) out = g_string_new(NULL);

        ht_print(print, cut, size, NULL, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static HtFtFormats *formats;
    g_autoptr(GBytes) bytes = g_bytes_new(data, size), again = NULL;
    g_autoptr(HtPrint) print = NULL, copy = NULL;
    const HtFtEvent *event;

    if (!formats) {
        g_autofree char *text = g_strconcat(print_event, "\"\"\n", NULL);

        formats = ht_ft_formats_parse(text, strlen(text), NULL);
    }
    event = ht_ft_formats_get(formats, 500);
    print = ht_print_decode(bytes, event);
    if (print) {
        g_autoptr(GBytes) same = NULL;

        print_all(print);
        again = ht_print_encode(print);
        copy = ht_print_decode(again, event);
        g_assert_nonnull(copy);
        same = ht_print_encode(copy);
        g_assert_true(g_bytes_equal(again, same));
    }
    return 0;
}
