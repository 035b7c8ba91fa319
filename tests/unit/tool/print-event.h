/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An event with fields of several kinds, for tests that print events
 */
#ifndef TESTS_PRINT_EVENT_H
#define TESTS_PRINT_EVENT_H

#include "hypertrace/base.h"
#include "ftrace-guest.h"

/* Start of a text of formats: the event, up to where its print format begins */
static const char print_event[] =
    "system: test\n"
    "name: event\n"
    "ID: 500\n"
    "format:\n"
    FG_COMMON_FIELDS
    "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int u;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc u8[] blob;\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long args[3];\toffset:40;\tsize:24;\tsigned:0;\n"
    "\n"
    "print fmt: ";

#define PRINT_RECORD_SIZE 76

static inline void print_make_record(uint8_t *r)
{
    memset(r, 0, PRINT_RECORD_SIZE);
    ht_put_le16(r, 500);
    ht_put_le32(r + 4, 77);
    ht_put_le32(r + 8, -5);
    ht_put_le32(r + 12, 0x80000005);
    ht_put_le64(r + 16, 0xffffffff81002010);
    memcpy(r + 24, "comm", 4);
    ht_put_le32(r + 32, 64 | 5 << 16);
    ht_put_le32(r + 36, 69 | 3 << 16);
    ht_put_le64(r + 40, 10);
    ht_put_le64(r + 48, 20);
    ht_put_le64(r + 56, 30);
    memcpy(r + 64, "file", 5);
    memcpy(r + 69, "\x01\xab\xff", 3);
}

#endif
