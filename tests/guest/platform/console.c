/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: print text and JSON on the debug port, and end QEMU
 */
#include "console.h"
#include "io.h"
#include "libc.h"

#define DEBUG_PORT      0xe9
#define EXIT_PORT       0xf4

static char line[512];
static size_t line_len;
static unsigned depth;
/* the innermost JSON object has no member yet */
static bool first;

void put_flush(void)
{
    for (size_t i = 0; i < line_len; i++) {
        outb(DEBUG_PORT, line[i]);
    }
    line_len = 0;
}

void put_char(char c)
{
    line[line_len++] = c;
    if (c == '\n' || line_len == sizeof(line)) {
        put_flush();
    }
}

void put_bytes(const char *s, size_t len)
{
    while (len--) {
        put_char(*s++);
    }
}

void put_str(const char *s)
{
    put_bytes(s, strlen(s));
}

static void put_number(uint64_t v, unsigned base)
{
    char digits[20];
    unsigned n = 0;

    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    while (n) {
        put_char(digits[--n]);
    }
}

void put_u64(uint64_t v)
{
    put_number(v, 10);
}

void put_s64(int64_t v)
{
    if (v < 0) {
        put_char('-');
        v = -(uint64_t)v;
    }
    put_number(v, 10);
}

void put_hex(uint64_t v)
{
    put_str("0x");
    put_number(v, 16);
}

static void json_quoted(const char *s)
{
    put_char('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            put_char('\\');
        }
        put_char(*s);
    }
    put_char('"');
}

static void json_name(const char *name)
{
    if (!first) {
        put_str(", ");
    }
    first = false;
    if (name) {
        json_quoted(name);
        put_str(": ");
    }
}

void json_begin(const char *name)
{
    if (depth++) {
        json_name(name);
    }
    put_char('{');
    first = true;
}

void json_end(void)
{
    put_char('}');
    first = false;
    if (--depth == 0) {
        put_char('\n');
    }
}

void json_u64(const char *name, uint64_t v)
{
    json_name(name);
    put_u64(v);
}

void json_s64(const char *name, int64_t v)
{
    json_name(name);
    put_s64(v);
}

void json_bool(const char *name, bool v)
{
    json_name(name);
    put_str(v ? "true" : "false");
}

void json_str(const char *name, const char *v)
{
    json_name(name);
    json_quoted(v);
}

void json_milli(const char *name, uint64_t v)
{
    json_name(name);
    put_u64(v / 1000);
    put_char('.');
    put_char('0' + v / 100 % 10);
    put_char('0' + v / 10 % 10);
    put_char('0' + v % 10);
}

void payload_exit(enum payload_exit code)
{
    put_flush();
    outb(EXIT_PORT, code);
    /*
     * QEMU ends some time after the write, so wait.  If the machine has no exit
     * device, the user must end QEMU.
     */
    for (;;) {
        asm volatile("pause");
    }
}

void payload_die(enum payload_exit code, const char *what, const char *detail)
{
    while (depth) {
        json_end();
    }
    json_begin(NULL);
    json_str("error", what);
    if (detail) {
        json_str("detail", detail);
    }
    json_end();
    payload_exit(code);
}
