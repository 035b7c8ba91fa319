/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target print: parse any text as the print format of a guest's event. If
 * it is valid, print a record with it, cut to each multiple of 4 bytes
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
    g_autofree char *format = g_strndup((const char *)data, size);
    g_autofree char *text = g_strconcat(print_event, format, "\n", NULL);
    g_autoptr(HtFtFormats) formats = ht_ft_formats_parse(text, strlen(text),
                                                         NULL);
    const HtFtEvent *event = formats ? ht_ft_formats_get(formats, 500) : NULL;
    g_autoptr(HtPrint) print = NULL;
    g_autofree char *why = NULL;

    if (event) {
        print = ht_print_new(event, &why);
        g_assert_true(!print == (why != NULL));
    }
    if (print) {
        print_all(print);
    }
    return 0;
}
