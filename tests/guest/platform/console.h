/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: print on the debug port (-device
 * isa-debugcon,iobase=0xe9), as text or as one JSON object a line, and end QEMU
 * (-device isa-debug-exit)
 */
#ifndef PAYLOAD_CONSOLE_H
#define PAYLOAD_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Codes for the exit device; QEMU's exit status is 2 * code + 1: 33, 35 or 37
 */
enum payload_exit {
    PAYLOAD_OK     = 16,
    PAYLOAD_FAILED = 17,
    /* wrong command line, or the machine lacks a device or memory */
    PAYLOAD_USAGE  = 18,
};

void put_char(char c);
void put_str(const char *s);
void put_bytes(const char *s, size_t len);
void put_u64(uint64_t v);
void put_s64(int64_t v);
void put_hex(uint64_t v);
/*
 * Print the buffered text, as each newline and a full buffer do. Each byte
 * costs an exit.
 */
void put_flush(void);

/*
 * Print JSON objects: each call appends its text to the buffer of put_char().
 * Names and strings must not have characters that JSON requires to be escaped,
 * except quotes and backslashes.
 */
/* Begin an object, the member @name of the open one; NULL: the outermost */
void json_begin(const char *name);
/* End the innermost object; with the outermost one, also end the line */
void json_end(void);
void json_u64(const char *name, uint64_t v);
void json_s64(const char *name, int64_t v);
void json_bool(const char *name, bool v);
void json_str(const char *name, const char *v);
/* write v / 1000 with three decimals, for example 1.500 */
void json_milli(const char *name, uint64_t v);

void payload_exit(enum payload_exit code) __attribute__((noreturn));
/* End open JSON objects, print one line {"error": ...}, and end the payload */
void payload_die(enum payload_exit code, const char *what, const char *detail)
    __attribute__((noreturn));

#endif /* PAYLOAD_CONSOLE_H */
