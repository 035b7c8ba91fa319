/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that print, as bytes, from a process that a guest's print format may
 * have taken over; and records of all sizes, printed by them
 */
#include "hypertrace/base.h"
#include "print-program.h"
#include "fuzz.h"

#define RECORD_SIZE 76

static const char format[] =
    "system: test\n"
    "name: event\n"
    "ID: 500\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
    "\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int u;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc u8[] blob;\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long args[3];\toffset:40;\tsize:24;\tsigned:0;\n"
    "\n"
    "print fmt: \"\"\n";

static void print_all(const HtPrint *print)
{
    g_autofree uint8_t *record = g_malloc0(RECORD_SIZE);
    size_t size;

    ht_put_le32(record + 8, -5);
    ht_put_le32(record + 12, 0x80000005);
    ht_put_le32(record + 32, 64 | 5 << 16);
    ht_put_le32(record + 36, 69 | 3 << 16);
    ht_put_le64(record + 40, 10);
    memcpy(record + 64, "file", 5);
    for (size = 0; size <= RECORD_SIZE; size += 4) {
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
        formats = ht_ft_formats_parse(format, strlen(format), NULL);
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
