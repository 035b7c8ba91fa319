/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of functions that the commands of hypertrace call: escapes, JSON,
 * protocol buffers, output files, bounds of errors, removal of secrets, times
 * on the command line, and messages in the system's log
 */
#include <glib/gstdio.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "cli/output.h"
#include "cli/text.h"
#include "export/protobuf.h"
#include "model/bounds.h"
#include "qemu/redact.h"

static void check_escape(HtEscape how, const char *s, gsize len,
                         const char *expected)
{
    g_autoptr(GString) out = g_string_new("<");

    ht_escape(out, how, s, len);
    g_assert_cmpstr(out->str + 1, ==, expected);
    g_assert_cmpuint(strlen(out->str), ==, out->len);
}

static void test_escape(void)
{
    static const char s[] = "a\033[2J\0\x7f<&\"'\\\xff\xc3\xa4"
                            "\xc2\x9b\xe2\x80\xae";
    gsize len = sizeof(s) - 1;

    check_escape(HT_ESCAPE_TERMINAL, s, len, "a\\x1b[2J\\x00\\x7f<&\"'\\"
                 "\\xff\xc3\xa4\\u{9b}\\u{202e}");
    check_escape(HT_ESCAPE_XML, s, len, "a\\x1b[2J\\x00\\x7f&lt;&amp;&quot;"
                 "&#39;\\\\xff\xc3\xa4\\u{9b}\\u{202e}");
    check_escape(HT_ESCAPE_JSON, s, len, "a\\u001b[2J\\u0000\\u007f\\u003c"
                 "\\u0026\\\"'\\\\\xef\xbf\xbd\xc3\xa4\\u009b\\u202e");
    check_escape(HT_ESCAPE_UTF8, s, len, "a\033[2J\xef\xbf\xbd\x7f<&\"'\\"
                 "\xef\xbf\xbd\xc3\xa4\xc2\x9b\xe2\x80\xae");
    /* invalid UTF-8: truncated, overlong, a surrogate */
    check_escape(HT_ESCAPE_TERMINAL, "\xe2\x80", 2, "\\xe2\\x80");
    check_escape(HT_ESCAPE_TERMINAL, "\xc0\xaf", 2, "\\xc0\\xaf");
    check_escape(HT_ESCAPE_JSON, "\xed\xa0\x80", 3,
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_escape(HT_ESCAPE_JSON, "\xf3\xa0\x80\x81", 4, "\\udb40\\udc01");
    check_escape(HT_ESCAPE_XML, "</script>", 9, "&lt;/script&gt;");
    check_escape(HT_ESCAPE_JSON, "</script>", 9, "\\u003c/script\\u003e");
}

/*
 * Promise: any bytes are escaped to valid UTF-8. The result has no control
 * characters of ASCII, except with HT_ESCAPE_UTF8.
 */
static void test_escape_random(void)
{
    unsigned i, k, how;

    for (i = 0; i < 20000; i++) {
        char s[24];

        for (k = 0; k < sizeof(s); k++) {
            s[k] = g_test_rand_int();
        }
        for (how = HT_ESCAPE_TERMINAL; how <= HT_ESCAPE_UTF8; how++) {
            g_autoptr(GString) out = g_string_new(NULL);

            ht_escape(out, how, s, sizeof(s));
            g_assert_true(g_utf8_validate(out->str, out->len, NULL));
            for (k = 0; k < out->len && how != HT_ESCAPE_UTF8; k++) {
                g_assert_cmpint((unsigned char)out->str[k], >=, ' ');
                g_assert_cmpint(out->str[k], !=, 0x7f);
            }
        }
    }
}

/*
 * Promise: the escape of a character of ASCII does not depend on its place in
 * the text, although ht_escape() tests eight bytes at a time for a terminal.
 */
static void test_escape_places(void)
{
    unsigned i, k, how;

    for (i = 0; i < 4096; i++) {
        char s[24];

        for (how = HT_ESCAPE_TERMINAL; how <= HT_ESCAPE_UTF8; how++) {
            g_autoptr(GString) whole = g_string_new(NULL);
            g_autoptr(GString) parts = g_string_new(NULL);

            memset(s, 'x', sizeof(s));
            s[i / 128 % sizeof(s)] = i % 128;
            ht_escape(whole, how, s, sizeof(s));
            for (k = 0; k < sizeof(s); k++) {
                ht_escape(parts, how, s + k, 1);
            }
            g_assert_cmpstr(whole->str, ==, parts->str);
        }
    }
}

/* Promise: ht_number_decimal() makes the same text as printf(). */
static void test_decimal(void)
{
    static const unsigned widths[] = { 0, 1, 3, 9, 10, 25 };
    uint64_t power = 1;
    unsigned i, k;

    for (i = 0; i < 2000; i++) {
        uint64_t v = i < 60 ? power + i % 3 - 1 :
                     ((uint64_t)g_test_rand_int() << 32 |
                      (uint32_t)g_test_rand_int()) >> i % 64;

        for (k = 0; k < G_N_ELEMENTS(widths); k++) {
            g_autoptr(GString) out = g_string_new("<");
            g_autofree char *zeros = g_strdup_printf("<%0*" PRIu64,
                                                     (int)widths[k], v);
            g_autofree char *spaces = g_strdup_printf("<%*" PRIu64,
                                                      (int)widths[k], v);

            ht_number_decimal(out, v, widths[k], '0');
            g_assert_cmpstr(out->str, ==, zeros);
            g_string_truncate(out, 1);
            ht_number_decimal(out, v, widths[k], ' ');
            g_assert_cmpstr(out->str, ==, spaces);
        }
        power *= i % 3 == 2 && i < 57 ? 10 : 1;
    }
}

/*
 * Promise: ht_text_append() and ht_text_fill() append exactly the given bytes,
 * and leave a NUL after the end of the text.
 */
static void test_append(void)
{
    g_autoptr(GString) out = g_string_sized_new(1);
    g_autoptr(GString) expected = g_string_new(NULL);
    unsigned n;

    for (n = 0; n < 300; n++) {
        g_autofree char *piece = g_strnfill(n, 'a' + n % 26);

        ht_text_append(out, piece, n);
        ht_text_fill(out, '.', n % 5);
        g_string_append(expected, piece);
        g_string_append(expected, "...." + 4 - n % 5);
        g_assert_cmpuint(out->len, <, out->allocated_len);
        g_assert_cmpstr(out->str, ==, expected->str);
        g_assert_cmpuint(out->len, ==, expected->len);
    }
    ht_text_append(out, NULL, 0);
    g_assert_cmpuint(out->len, ==, expected->len);
}

static void test_json(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    HtJson j = { .out = out };

    ht_json_open(&j, NULL, '{');
    ht_json_open(&j, "a", '[');
    ht_json_uint(&j, NULL, UINT64_MAX);
    ht_json_int(&j, NULL, INT64_MIN);
    ht_json_close(&j, ']');
    ht_json_open(&j, "b", '{');
    ht_json_close(&j, '}');
    ht_json_str(&j, "n\"", NULL);
    ht_json_bool(&j, "t", true);
    ht_json_text(&j, "s", "\0", 1);
    ht_json_real(&j, "f", 0.1f, true);
    ht_json_real(&j, "d", 0.5, false);
    ht_json_real(&j, "i", INFINITY, false);
    ht_json_close(&j, '}');
    g_assert_cmpstr(out->str, ==, "{\"a\":[18446744073709551615,"
                    "-9223372036854775808],\"b\":{},\"n\\\"\":null,"
                    "\"t\":true,\"s\":\"\\u0000\",\"f\":0.100000001,"
                    "\"d\":0.5,\"i\":null}");
}

static void check_bytes(const GString *b, const char *expected, gsize len)
{
    g_assert_cmpmem(b->str, b->len, expected, len);
}

static void test_protobuf(void)
{
    g_autoptr(GString) b = g_string_new(NULL);
    g_autofree char *text = g_strnfill(200, 'x');
    gsize outer, inner;

    ht_pb_uint(b, 1, 150);
    ht_pb_uint(b, 16, 0);
    ht_pb_uint(b, 2, -1);
    check_bytes(b, "\x08\x96\x01\x80\x01\x00\x10\xff\xff\xff\xff\xff\xff\xff"
                "\xff\xff\x01", 17);

    g_string_truncate(b, 0);
    outer = ht_pb_begin(b, 3);
    inner = ht_pb_begin(b, 1);
    ht_pb_str(b, 2, "ab");
    ht_pb_end(b, inner);
    ht_pb_end(b, outer);
    check_bytes(b, "\x1a\x06\x0a\x04\x12\x02" "ab", 8);

    /* both messages are so long that their sizes need two bytes */
    g_string_truncate(b, 0);
    outer = ht_pb_begin(b, 3);
    inner = ht_pb_begin(b, 1);
    ht_pb_str(b, 2, text);
    ht_pb_end(b, inner);
    ht_pb_uint(b, 4, 5);
    ht_pb_end(b, outer);
    g_assert_cmpuint(b->len, ==, 3 + 3 + 3 + 200 + 2);
    g_assert_cmpmem(b->str, 9, "\x1a\xd0\x01\x0a\xcb\x01\x12\xc8\x01", 9);
    g_assert_cmpint(b->str[b->len - 2], ==, 0x20);

    g_string_truncate(b, 0);
    ht_pb_guest(b, 1, "a\0\xff", 3);
    check_bytes(b, "\x0a\x07" "a\xef\xbf\xbd\xef\xbf\xbd", 9);
}

static char *new_dir(void)
{
    char *dir = g_dir_make_tmp("ht-output-XXXXXX", NULL);

    g_assert_nonnull(dir);
    return dir;
}

static unsigned entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(dir)) {
        n++;
    }
    return n;
}

static void check_content(const char *path, const char *expected)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

static void test_output_file(void)
{
    g_autofree char *dir = new_dir();
    g_autofree char *path = g_build_filename(dir, "f", NULL);
    GError *error = NULL;
    HtOutput o;

    g_assert_true(g_file_set_contents(path, "old", -1, NULL));
    g_assert_true(ht_output_file(&o, path, &error));
    g_string_append(o.text, "new");
    g_assert_true(ht_output_flush(&o));
    g_assert_true(ht_output_patch(&o, 0, "N", 1));
    check_content(path, "old");
    g_assert_true(ht_output_finish(&o, &error));
    check_content(path, "New");
    g_assert_cmpuint(entries(dir), ==, 1);

    g_assert_true(ht_output_file(&o, path, &error));
    g_string_append(o.text, "third");
    ht_output_flush(&o);
    ht_output_abort(&o);
    check_content(path, "New");
    g_assert_cmpuint(entries(dir), ==, 1);

    g_assert_false(ht_output_file(&o, dir, &error));
    g_assert_nonnull(strstr(error->message, "neither a regular file"));
    g_clear_error(&error);
    g_assert_false(ht_output_file(&o, "/nonexistent/f", &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_unlink(path);
    g_rmdir(dir);
}

/* If SIGTERM ends the process, its unfinished output file is removed. */
static void test_output_signal(void)
{
    g_autofree char *dir = new_dir();
    g_autofree char *path = g_build_filename(dir, "f", NULL);
    int status;
    pid_t pid = fork();

    if (!pid) {
        HtOutput o;

        if (ht_output_file(&o, path, NULL)) {
            g_string_append(o.text, "half");
            ht_output_flush(&o);
            raise(SIGTERM);
        }
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGTERM);
    g_assert_cmpuint(entries(dir), ==, 0);
    g_rmdir(dir);
}

static void test_padded(void)
{
    HtOutput o = { .text = g_string_new(NULL) };

    ht_output_padded(&o, "abc", 5);
    g_string_append_c(o.text, '|');
    ht_output_padded(&o, "abc", -5);
    g_string_append_c(o.text, '|');
    ht_output_padded(&o, "abcdef", 4);
    g_string_append_c(o.text, '|');
    ht_output_padded(&o, "\xc3\xa4\xc3\xb6\xc3\xbc", 2);
    g_assert_cmpstr(o.text->str, ==, "abc  |  abc|abc~|\xc3\xa4~");
    g_string_free(o.text, true);
}

/*
 * One large error among 100 or more does not change the bound for 99 % of the
 * times. The bound for 100 % is the largest error.
 */
static void test_bounds(void)
{
    static const struct {
        unsigned good, bad;
        uint64_t good_ns, bad_ns, most, all;
    } cases[] = {
        { 1, 0, 0, 0, 0, 0 },
        { 1, 0, 2000, 0, 2000, 2000 },
        { 999, 1, 2000, UINT64_C(263000000000), 2000, UINT64_C(263000000000) },
        { 99, 1, 2000, 4096, 2000, 4096 },
        { 98, 2, 2000, 4096, 4096, 4096 },
        { 1000, 1, 1, UINT64_MAX, 1, UINT64_MAX },
    };
    unsigned i, n;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        HtBounds b = { 0 };

        for (n = 0; n < cases[i].bad; n++) {
            ht_bounds_add(&b, cases[i].bad_ns);
        }
        for (n = 0; n < cases[i].good; n++) {
            ht_bounds_add(&b, cases[i].good_ns);
        }
        g_assert_cmpuint(ht_bounds_of(&b, 99), ==, cases[i].most);
        g_assert_cmpuint(ht_bounds_of(&b, 100), ==, cases[i].all);
    }
}

/*
 * Promise: ht_redact() replaces secrets of these kinds in QEMU's command line,
 * and leaves the text around them unchanged. Each secret here contains
 * "hidden".
 */
static void test_redact(void)
{
    static const struct {
        const char *word, *expected;
    } rows[] = {
        { "secret,id=s,data=hidden,format=raw",
          "secret,id=s,data=***,format=raw" },
        { "data=hidden,qom-type=secret", "data=***,qom-type=secret" },
        { "port=1,password=a,,hidden,ipv4=on", "port=1,password=***,ipv4=on" },
        { "{\"qom-type\":\"secret\",\"data\": \"a\\\"hidden\","
          "\"id\":\"s\"}",
          "{\"qom-type\":\"secret\",\"data\": \"***\",\"id\":\"s\"}" },
        { "{'qom-type':'secret','data':'hidden'}",
          "{'qom-type':'secret','data':\"***\"}" },
        { "file.driver=https,file.cookie=hidden,file.url=u",
          "file.driver=https,file.cookie=***,file.url=u" },
        { "a.b.file.password=hidden", "a.b.file.password=***" },
        { "type=11,value=io.systemd.credential:pw=hidden",
          "type=11,value=io.systemd.credential:pw=***" },
        { "type=11,value=io.systemd.credential.binary:pw=hidden,value=b",
          "type=11,value=io.systemd.credential.binary:pw=***,value=b" },
        { "name=opt/io.systemd.credentials/pw,string=hidden",
          "name=opt/io.systemd.credentials/pw,string=***" },
        { "file=https://user:hidden@host/disk",
          "file=https://user:***@host/disk" },
        { "driver=rbd,password-secret=s,metadata=on",
          "driver=rbd,password-secret=s,metadata=on" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *argv[] = { (char *)"qemu", (char *)rows[i].word, NULL };
        g_autofree char *text = ht_redact(argv);
        g_autofree char *expected = g_strconcat("qemu ", rows[i].expected,
                                                NULL);

        g_assert_cmpstr(text, ==, expected);
    }
}

/*
 * ht_number_time() reads times up to about 285 years exactly, and ignores
 * fractions of a nanosecond. Other texts are refused.
 */
static void test_times(void)
{
    static const struct {
        const char *text;
        uint64_t ns;
        bool from_end;
    } rows[] = {
        { "0", 0, false }, { "-0", 0, true }, { "1.5", 1500000000, false },
        { ".5s", 500000000, false }, { "2.", 2000000000, false },
        { "-20ms", 20000000, true }, { "7ns", 7, false },
        { "0.0000000014", 1, false }, { "5min", 300000000000, false },
        { "5m", 300000000000, false }, { "1.5h", 5400000000000, false },
        { "12345678.123456789", 12345678123456789, false },
        { "4294967296.999999999", 4294967296999999999, false },
        { "9000000000", 9000000000000000000, false },
    };
    static const char * const refused[] = {
        "", " 1", "1 ", "-", "+1", "--1", ".", "1e3", "0x1", "nan", "inf",
        "1.2.3", "1ms2", "1MS", "1d", "2h30m", "9000000001", "2500001h",
        "18446744073709551617ns", "99999999999999999999",
    };
    bool from_end;
    uint64_t ns;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_true(ht_number_time("--from", rows[i].text, &ns, &from_end,
                                     NULL));
        g_assert_cmpuint(ns, ==, rows[i].ns);
        g_assert_cmpint(from_end, ==, rows[i].from_end);
    }
    for (i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(ht_number_time("--from", refused[i], &ns, &from_end,
                                      &error));
        g_assert_nonnull(strstr(error->message, "285 years"));
    }
}

/*
 * Promise: each line of a message is a message of its own in the system's log.
 * This test is the last one, because it redirects the messages of this program.
 */
static void test_log_lines(void)
{
    g_autofree char *path = NULL, *text = NULL;
    int fd = g_file_open_tmp("ht-syslog-XXXXXX", &path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    g_setenv("HT_SYSLOG", path, true);      /* for syslog-file.c */
    ht_errors_to_syslog();
    ht_notice("reasons:\n- %s\n- %d", "100%", 2);
    ht_error("one line");
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "hypertrace: reasons:\nhypertrace: - 100%\n"
                    "hypertrace: - 2\nhypertrace: one line\n");
    g_unlink(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tool/bounds", test_bounds);
    g_test_add_func("/tool/escape", test_escape);
    g_test_add_func("/tool/escape-random", test_escape_random);
    g_test_add_func("/tool/escape-places", test_escape_places);
    g_test_add_func("/tool/decimal", test_decimal);
    g_test_add_func("/tool/append", test_append);
    g_test_add_func("/tool/json", test_json);
    g_test_add_func("/tool/protobuf", test_protobuf);
    g_test_add_func("/tool/output-file", test_output_file);
    g_test_add_func("/tool/output-signal", test_output_signal);
    g_test_add_func("/tool/padded", test_padded);
    g_test_add_func("/tool/redact", test_redact);
    g_test_add_func("/tool/times", test_times);
    g_test_add_func("/tool/log-lines", test_log_lines);
    return g_test_run();
}
