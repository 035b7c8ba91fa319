/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the lines that the log backend writes
 */
#include "hypertrace/base.h"
#include "hypertrace/log-format.h"
#include "backend-testlib.h"

static const HtStreamInfo stream = { .index = 7, .vcpu = -1, .instance = 1 };

static char *format(const HtClass *c, const void *payload, size_t size)
{
    HtEvent ev = { c, UINT64_C(12000000345), payload, size };
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    g_assert_cmpint(ht_class_payload(c, payload, size), ==, size);
    ht_log_event(f, "ht0", &stream, &ev);
    fclose(f);
    return text;
}

#define PREFIX "12.000000345 ht0 stream 7 vcpu -1 "

static void test_kinds(void)
{
    static const uint8_t payload[] = {
        0xff,                                   /* u8 */
        0x34, 0x12,                             /* x16 */
        0xff, 0xff, 0xff, 0x7f,                 /* s32 */
        0, 0, 0, 0, 0, 0, 0, 0x80,              /* s64 */
        0, 0, 0xc0, 0x3f,                       /* f32: 1.5 */
        0, 0, 0, 0, 0, 0, 0xe0, 0xbf,           /* f64: -0.5 */
        3, 0, 1, 0xff, 0x80,                    /* seq-s8 */
        0, 0,                                   /* seq-u64, empty */
        1, 2, 3, 4,                             /* arr-x16-2 */
        0, 0,                                   /* text, empty */
        0xfe,                                   /* s8 */
        'a', '"', 0, 'b',                       /* chars-4 */
        'f', 'u', 'l', 'l',                     /* chars-4 */
        0,                                      /* chars-1, empty */
    };
    HtClassTable *t = ht_class_table_new();
    HtClass *c = tl_class(t, "all", "u8:a x16:b s32:c s64:d f32:e f64:f "
                          "seq-s8:g seq-u64:h arr-x16-2:i text:j s8:k"
                          " chars-4:l chars-4:m chars-1:n");
    g_autofree char *text = format(c, payload, sizeof(payload));

    g_assert_cmpstr(text, ==, PREFIX "all a=255 b=0x1234 c=2147483647"
                    " d=-9223372036854775808 e=1.5 f=-0.5 g=[1 -1 -128] h=[]"
                    " i=[0x201 0x403] j=\"\" k=-2 l=\"a\\\"\" m=\"full\" n=\"\"\n");
    ht_class_table_free(t);
}

/*
 * Text of a guest cannot control a terminal, and cannot look like another line.
 */
static void test_text(void)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        { "plain", "plain" },
        { "Gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac",
          "Gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac" },
        { "a\"b\\c", "a\\\"b\\\\c" },
        { "\x1b[2J\r\n\t\x7f", "\\x1b[2J\\x0d\\x0a\\x09\\x7f" },
        { "\xc2\x9b" "31m", "\\xc2\\x9b31m" },          /* C1 control */
        { "\xff\xfe", "\\xff\\xfe" },
        { "cut \xe2\x82", "cut \\xe2\\x82" },
        { "\xc0\x80", "\\xc0\\x80" },                   /* overlong */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
    };
    HtClassTable *t = ht_class_table_new();
    HtClass *c = tl_class(t, "c", "text:t u8:end");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint8_t payload[64] = { strlen(cases[i].text) };
        g_autofree char *want = g_strdup_printf(PREFIX "c t=\"%s\" end=9\n",
                                                cases[i].shown);
        g_autofree char *text = NULL;

        memcpy(payload + 2, cases[i].text, payload[0]);
        payload[2 + payload[0]] = 9;
        text = format(c, payload, 3 + payload[0]);
        g_assert_cmpstr(text, ==, want);
    }
    ht_class_table_free(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/log/kinds", test_kinds);
    g_test_add_func("/log/text", test_text);
    return g_test_run();
}
