/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parse the event formats of tracefs: each kind of field, and malformed text
 */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-format.h"

#define COMMON                                                              \
    "format:\n"                                                             \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"  \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"  \
    "\tfield:unsigned char common_preempt_count;"                           \
    "\toffset:3;\tsize:1;\tsigned:0;\n"                                     \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(decl, offset, size, is_signed)                                \
    "\tfield:" decl ";\toffset:" #offset ";\tsize:" #size ";"               \
    "\tsigned:" #is_signed ";\n"
#define EVENT(name, id, fields)                                             \
    "name: " name "\nID: " #id "\n" COMMON fields                           \
    "\nprint fmt: \"%d\", REC->n\n"

static HtFtFormats *parse(const char *text)
{
    GError *error = NULL;
    HtFtFormats *f = ht_ft_formats_parse(text, strlen(text), &error);

    g_assert_no_error(error);
    return f;
}

static const HtFtField *field(const HtFtFormats *f, const char *name,
                              const char *type, HtFtKind kind)
{
    const HtFtField *field = ht_ft_event_field(ht_ft_formats_nth(f, 0), name);

    g_assert_nonnull(field);
    g_assert_cmpstr(field->type, ==, type);
    g_assert_cmpint(field->kind, ==, kind);
    return field;
}

static void assert_str(const HtFtField *field, const uint8_t *data,
                       size_t size, const char *expected)
{
    size_t len;
    const char *s = ht_ft_field_str(field, data, size, &len);

    g_assert_nonnull(s);
    g_assert_cmpmem(s, len, expected, strlen(expected));
}

static void test_integers(void)
{
    static const uint8_t data[] = {
        0x2a, 0, 0, 0, 0, 0, 0, 0,
        0xfe, 0xff, 0xff, 0xff, 0, 0x80, 0xff, 7,
        1, 2, 3, 4, 5, 6, 7, 0x88,
    };
    g_autoptr(HtFtFormats) f = parse(
        "system: s\n"
        EVENT("e", 42,
              FIELD("int n", 8, 4, 1)
              FIELD("short t", 12, 2, 1)
              FIELD("s8 c", 14, 1, 1)
              FIELD("bool b", 15, 1, 0)
              FIELD("void * p", 16, 8, 0)));
    const HtFtEvent *e = ht_ft_formats_get(f, 42);

    g_assert_cmpstr(e->system, ==, "s");
    g_assert_cmpstr(e->name, ==, "e");
    g_assert_cmpuint(e->nr_fields, ==, 5);
    g_assert_null(ht_ft_formats_get(f, 41));
    g_assert_cmpint((int64_t)ht_ft_field_uint(field(f, "n", "int", HT_FT_INT),
                                              data, sizeof(data)), ==, -2);
    g_assert_cmpint((int64_t)ht_ft_field_uint(field(f, "t", "short",
                                                    HT_FT_INT),
                                              data, sizeof(data)), ==,
                    INT16_MIN);
    g_assert_cmpint((int64_t)ht_ft_field_uint(field(f, "c", "s8", HT_FT_INT),
                                              data, sizeof(data)), ==, -1);
    g_assert_cmpuint(ht_ft_field_uint(field(f, "b", "bool", HT_FT_INT), data,
                                      sizeof(data)), ==, 7);
    g_assert_cmphex(ht_ft_field_uint(field(f, "p", "void *", HT_FT_INT), data,
                                     sizeof(data)), ==,
                    0x8807060504030201ull);
    g_assert_true(field(f, "p", "void *", HT_FT_INT)->is_pointer);
    /* if the record ends within the field, ht_ft_field_uint() returns 0 */
    g_assert_cmpuint(ht_ft_field_uint(field(f, "p", "void *", HT_FT_INT),
                                      data, sizeof(data) - 1), ==, 0);
}

static void test_strings_and_arrays(void)
{
    static const uint8_t data[] = {
        0, 0, 0, 0, 0, 0, 0, 0,
        /* comm: 4 bytes with a NUL; full: 4 bytes without one */
        'a', 'b', 0, 'c', 'w', 'x', 'y', 'z',
        /* name: its text has 3 bytes, at offset 40 of the record */
        40, 0, 3, 0,
        /* r: its array has 4 bytes, at offset 40: 16 bytes after r's end */
        16, 0, 4, 0,
        1, 2, 3, 4, 5, 6, 7, 8,                 /* u16 h[4] */
        /* big: its text ends outside of the record, and is cut */
        48, 0, 0xff, 0xff,
        /* far: its array begins outside of the record */
        0xff, 0xff, 8, 0,
        'h', 'i', 0, '!', 0x11, 0x22, 0x33, 0x44,
        't', 'a', 'i', 'l',
    };
    g_autoptr(HtFtFormats) f = parse(
        "system: s\n"
        EVENT("e", 1,
              FIELD("char comm[4]", 8, 4, 0)
              FIELD("char full[4]", 12, 4, 0)
              FIELD("__data_loc char[] name", 16, 4, 0)
              FIELD("__rel_loc u32[] r", 20, 4, 0)
              FIELD("u16 h[4]", 24, 8, 0)
              FIELD("__data_loc char[] big", 32, 4, 0)
              FIELD("__data_loc unsigned long[] far", 36, 4, 0)
              FIELD("struct in6_addr a", 40, 12, 0)
              FIELD("char tail[]", 48, 0, 0)));
    const HtFtField *h = field(f, "h", "u16[4]", HT_FT_ARRAY);
    const HtFtField *r = field(f, "r", "__rel_loc u32[]", HT_FT_DYN_ARRAY);
    const HtFtField *a = field(f, "far", "__data_loc unsigned long[]",
                               HT_FT_DYN_ARRAY);
    size_t len;

    assert_str(field(f, "comm", "char[4]", HT_FT_STRING), data, sizeof(data),
               "ab");
    assert_str(field(f, "full", "char[4]", HT_FT_STRING), data, sizeof(data),
               "wxyz");
    assert_str(field(f, "name", "__data_loc char[]", HT_FT_DYN_STRING), data,
               sizeof(data), "hi");
    assert_str(field(f, "tail", "char[]", HT_FT_STRING), data, sizeof(data),
               "tail");
    assert_str(field(f, "big", "__data_loc char[]", HT_FT_DYN_STRING), data,
               sizeof(data), "tail");
    g_assert_cmpuint(h->elem_size, ==, 2);
    g_assert_true(ht_ft_field_bytes(h, data, sizeof(data), &len) == data + 24);
    g_assert_cmpuint(len, ==, 8);
    g_assert_true(r->relative);
    g_assert_cmpuint(r->elem_size, ==, 4);
    g_assert_true(ht_ft_field_bytes(r, data, sizeof(data), &len) == data + 40);
    g_assert_cmpuint(len, ==, 4);
    g_assert_cmpuint(a->elem_size, ==, 8);
    g_assert_null(ht_ft_field_bytes(a, data, sizeof(data), &len));
    g_assert_cmpuint(len, ==, 0);
    g_assert_null(ht_ft_field_str(h, data, sizeof(data), &len));
    field(f, "a", "struct in6_addr", HT_FT_BYTES);
}

static void test_headers(void)
{
    g_autoptr(HtFtFormats) f = parse(
        "header: header_page\n\tfield: u64 timestamp;\toffset:0;\n"
        "header: header_event\n# compressed\nsystem: s\n"
        EVENT("e", 1, FIELD("int n", 8, 4, 1)));
    const HtFtEvent *e = ht_ft_formats_nth(f, 0);
    size_t size;
    const char *text = ht_ft_formats_header(f, "header_page", &size);

    g_assert_cmpmem(text, size, "\tfield: u64 timestamp;\toffset:0;\n", 33);
    text = ht_ft_formats_header(f, "header_event", &size);
    g_assert_cmpmem(text, size, "# compressed\n", 13);
    g_assert_null(ht_ft_formats_header(f, "other", &size));
    /* an event's text begins at the line "name:" of its format */
    g_assert_true(g_str_has_prefix(e->text, "name: e\nID: 1\n"));
    g_assert_cmpmem(e->text + e->text_size - 7, 7, "REC->n\n", 7);
}

/* A malformed format does not hide the formats before and after it. */
static void test_malformed(void)
{
    static const char * const bad[] = {
        EVENT("e", 65536, ""),
        EVENT("e", 5, FIELD("int n", 65536, 4, 1)),
        EVENT("e", 5, FIELD("int n", 8, -1, 1)),
        EVENT("e", 5, FIELD("int n", 8, 4, 2)),
        EVENT("e", 5, FIELD("n", 8, 4, 1)),
        EVENT("e", 5, FIELD("int 2n", 8, 4, 1)),
        EVENT("e", 5, FIELD("int n]", 8, 4, 1)),
        EVENT("e", 5, FIELD("\033[mint n", 8, 4, 1)),
        EVENT("e", 5, "\tfield:int n\n"),
        EVENT("e", 5, FIELD("int common_pid", 8, 4, 1)),
        EVENT("e f", 5, ""),
        EVENT("", 5, ""),
        EVENT("e", 1, ""),
        "name: e\nformat:\n",
        "name: e",
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strconcat(
            "system: s\n" EVENT("a", 1, FIELD("int n", 8, 4, 1)), bad[i],
            "\nsystem: t\n" EVENT("z", 2, FIELD("int n", 8, 4, 1)), NULL);
        g_autoptr(HtFtFormats) f = parse(text);

        g_test_message("%s", bad[i]);
        g_assert_cmpuint(ht_ft_formats_count(f), ==, 2);
        g_assert_cmpuint(ht_ft_formats_skipped(f), ==, 1);
        g_assert_cmpstr(ht_ft_formats_get(f, 1)->name, ==, "a");
        g_assert_cmpstr(ht_ft_formats_get(f, 2)->system, ==, "t");
    }
}

static void test_too_many_fields(void)
{
    g_autoptr(GString) text = g_string_new("system: s\n");
    g_autoptr(HtFtFormats) f = NULL;
    unsigned event, i;

    for (event = 0; event < 2; event++) {
        g_string_append_printf(text, "name: e%u\nID: %u\n" COMMON, event,
                               event);
        for (i = 0; i < HT_FT_FIELDS_MAX + event; i++) {
            g_string_append_printf(text, "\tfield:int f%u;\toffset:%u;"
                                   "\tsize:4;\tsigned:1;\n", i, 8 + 4 * i);
        }
    }
    f = parse(text->str);
    g_assert_cmpuint(ht_ft_formats_count(f), ==, 1);
    g_assert_cmpuint(ht_ft_formats_get(f, 0)->nr_fields, ==,
                     HT_FT_FIELDS_MAX);
}

static void test_nothing(void)
{
    static const char * const texts[] = { "", "\n", "name: e\nID: 1\n" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ht_ft_formats_parse(texts[i], strlen(texts[i]),
                                          &error));
        g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ftrace-format/integers", test_integers);
    g_test_add_func("/ftrace-format/strings-and-arrays",
                    test_strings_and_arrays);
    g_test_add_func("/ftrace-format/headers", test_headers);
    g_test_add_func("/ftrace-format/malformed", test_malformed);
    g_test_add_func("/ftrace-format/too-many-fields", test_too_many_fields);
    g_test_add_func("/ftrace-format/nothing", test_nothing);
    return g_test_run();
}
