/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test how event classes are made from Linux' event formats, and payloads of
 * these classes from the bytes of records
 */
#include "hypertrace/ftrace-class.h"
#include "hypertrace/run.h"
#include "ftrace-guest.h"

static const char formats[] =
    "system: odd\n"
    "name: all_kinds\nID: 300\nformat:\n" FG_COMMON_FIELDS
    "\tfield:int vcpu;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[4];\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc char[] text;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc u32[] words;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:u8 other_pid;\toffset:24;\tsize:1;\tsigned:0;\n"
    "\tfield:u16 half[2];\toffset:26;\tsize:4;\tsigned:0;\n"
    "\tfield:u8 _text_length;\toffset:30;\tsize:1;\tsigned:0;\n"
    "\tfield:u8 _half;\toffset:31;\tsize:1;\tsigned:0;\n"
    "\nprint fmt: \"\"\n";

/* Register the class of a format in @t, under the name @name. */
static const HtClass *add(HtClassTable *t, const char *name,
                          const HtFtEvent *e)
{
    uint8_t *msg = g_malloc0(HT_MESSAGE_MAX);
    HtClass *own = ht_ft_class_new(name, e), *c;
    bool added;

    g_assert_cmpint(ht_class_table_add(t, msg, ht_class_encode(own,
                                       (struct ht_msg_class *)msg),
                                       &added, &c), ==, HT_STATUS_OK);
    ht_class_free(own);
    g_free(msg);
    return c;
}

static void test_kinds(void)
{
    static const uint8_t data[] = {
        0x2c, 1, 4, 0, 7, 0, 0, 0,  0xfe, 0xff, 0xff, 0xff,  'a', 0xff, 0, 'x',
        32, 0, 3, 0,  36, 0, 8, 0,  9, 0,  1, 0, 2, 0,  5, 6,
        'h', 'i', 0, 0,  1, 0, 0, 0, 2, 0, 0, 0,
    };
    static const uint8_t payload[] = {
        7, 0, 0, 0, 4,  0xfe, 0xff, 0xff, 0xff,
        4, 0, 'a', 0xef, 0xbf, 0xbd,  2, 0, 'h', 'i',
        2, 0, 1, 0, 0, 0, 2, 0, 0, 0,  9,  2, 0, 1, 0, 2, 0,  5, 6,
    };
    static const char * const names[] = {
        "common_pid", "common_flags", "field_vcpu", "comm", "text", "words",
        "other_pid", "half", "field__text_length", "field__half",
    };
    g_autoptr(HtFtFormats) f = ht_ft_formats_parse(formats, strlen(formats),
                                                   NULL);
    const HtFtEvent *e = ht_ft_formats_get(f, 300);
    g_autoptr(GByteArray) out = g_byte_array_new();
    HtFtRecord r = { .data = data, .size = sizeof(data) };
    HtClassTable *t = ht_class_table_new();
    const HtClass *c;
    unsigned i;

    g_assert_nonnull(e);
    c = add(t, "all/kinds", e);
    g_assert_cmpstr(c->name, ==, "all_kinds");
    g_assert_cmpuint(c->nr_fields, ==, G_N_ELEMENTS(names));
    for (i = 0; i < c->nr_fields; i++) {
        g_assert_cmpstr(c->fields[i].name, ==, names[i]);
    }
    g_assert_true(ht_ft_class_payload(out, e, &r, SIZE_MAX));
    g_assert_cmpmem(out->data, out->len, payload, sizeof(payload));
    g_assert_cmpint(ht_class_payload(c, out->data, out->len), ==, out->len);
    /*
     * if the payload is larger than the limit, ht_ft_class_payload() leaves the
     * output unchanged
     */
    g_assert_false(ht_ft_class_payload(out, e, &r, sizeof(payload) - 1));
    g_assert_cmpuint(out->len, ==, sizeof(payload));
    ht_class_table_free(t);
}

/* Promise: a record of arbitrary bytes gives a payload that fits its class. */
static void test_any_bytes(void)
{
    g_autoptr(HtFtFormats) f = ht_ft_formats_parse(formats, strlen(formats),
                                                   NULL);
    const HtFtEvent *e = ht_ft_formats_get(f, 300);
    HtClassTable *t = ht_class_table_new();
    const HtClass *c = add(t, "x", e), *raw = add(t, "raw", NULL);
    unsigned i, k;

    for (i = 0; i < 20000; i++) {
        g_autoptr(GByteArray) out = g_byte_array_new();
        uint8_t data[64];
        HtFtRecord r = {
            .data = data,
            .size = g_test_rand_int_range(8, sizeof(data)),
        };

        for (k = 0; k < sizeof(data); k++) {
            data[k] = g_test_rand_int_range(0, i % 2 ? 256 : 64);
        }
        g_assert_true(ht_ft_class_payload(out, e, &r, SIZE_MAX));
        g_assert_cmpint(ht_class_payload(c, out->data, out->len), ==,
                        out->len);
        g_byte_array_set_size(out, 0);
        g_assert_true(ht_ft_class_payload(out, NULL, &r, SIZE_MAX));
        g_assert_cmpint(ht_class_payload(raw, out->data, out->len), ==,
                        out->len);
        g_assert_cmpuint(out->len, ==, 7 + 2 + r.size - 8);
    }
    ht_class_table_free(t);
}

/*
 * Promise: a format with 60 fields, of which many have one name of maximum
 * length, gives a class with HT_FIELDS_MAX fields.
 */
static void test_names(void)
{
    g_autoptr(GString) text = g_string_new("system: s\nname: n\nID: 20\n"
                                           "format:\n" FG_COMMON_FIELDS);
    g_autofree char *longest = g_strnfill(HT_FT_NAME_MAX - 1, 'n');
    HtClassTable *t = ht_class_table_new();
    g_autoptr(HtFtFormats) f = NULL;
    const HtClass *c;
    unsigned i;

    for (i = 0; i < 60; i++) {
        g_string_append_printf(text, "\tfield:u8 %s;\toffset:%u;\tsize:1;"
                               "\tsigned:0;\n", i % 3 ? longest : "stream",
                               8 + i);
    }
    g_string_append(text, "\nprint fmt: \"\"\n");
    f = ht_ft_formats_parse(text->str, text->len, NULL);
    g_assert_nonnull(f);
    c = add(t, longest, ht_ft_formats_get(f, 20));
    g_assert_cmpuint(c->nr_fields, ==, HT_FIELDS_MAX);
    ht_class_table_free(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ftrace-class/kinds", test_kinds);
    g_test_add_func("/ftrace-class/any-bytes", test_any_bytes);
    g_test_add_func("/ftrace-class/names", test_names);
    return g_test_run();
}
