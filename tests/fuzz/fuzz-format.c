/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target format: parse any text as event formats that a guest has printed,
 * and read the fields of each event from one record of any bytes
 *
 * Names of events, systems and fields are not empty, and no field is read
 * outside the record.
 */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-format.h"
#include "fuzz.h"

static void check_field(const HtFtField *field, const uint8_t *data,
                        size_t size)
{
    size_t len, bytes;
    const uint8_t *p = ht_ft_field_bytes(field, data, size, &bytes);
    const char *s = ht_ft_field_str(field, data, size, &len);

    g_assert_true(field->name[0] && field->type[0]);
    g_assert_true(field->elem_size == 1 || field->elem_size == 2 ||
                  field->elem_size == 4 || field->elem_size == 8);
    if (p) {
        g_assert_true(p >= data && bytes <= size &&
                      p + bytes <= data + size);
    }
    if (s) {
        g_assert_true(len <= bytes && (const uint8_t *)s == p);
        g_assert_null(memchr(s, 0, len));
    }
    ht_ft_field_uint(field, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    FuzzInput record = fuzz_slice(&in, fuzz_u8(&in));
    size_t bytes = record.end - record.p;
    g_autofree uint8_t *copy = fuzz_copy(record.p, bytes);
    g_autoptr(HtFtFormats) f =
        ht_ft_formats_parse((const char *)in.p, in.end - in.p, NULL);
    unsigned i, j;

    for (i = 0; f && i < ht_ft_formats_count(f); i++) {
        const HtFtEvent *e = ht_ft_formats_nth(f, i);

        g_assert_true(ht_ft_formats_get(f, e->id) == e);
        g_assert_true(e->name[0] && e->system[0] && e->text_size);
        g_assert_cmpuint(e->nr_fields, <=, HT_FT_FIELDS_MAX);
        for (j = 0; j < e->nr_fields; j++) {
            check_field(&e->fields[j], copy, bytes);
        }
    }
    return 0;
}
