/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target btf: parse any bytes as BTF, the description of a kernel's types,
 * and look up members. Size, bits and number of elements of each member that is
 * found are consistent.
 */
#include "hypertrace/btf.h"
#include "fuzz.h"

static void look_up(const HtBtf *btf, const char *name, const char *path)
{
    uint32_t offset, size, whole;
    HtBtfField f;
    uint64_t value;
    uint8_t bytes[16] = { 0 };

    if (ht_btf_field(btf, name, path, &f)) {
        return;
    }
    g_assert_cmpint(ht_btf_struct_size(btf, name, &whole), ==, 0);
    g_assert_cmpuint(f.bits, <=, 64);
    g_assert_cmpuint(f.bit, <=, 7);
    g_assert_cmpuint((uint64_t)f.count * f.element, ==, f.size);
    if (!f.bits) {
        g_assert_cmpint(ht_btf_offset(btf, name, path, &offset, &size), ==, 0);
        g_assert_cmpuint(offset, ==, f.offset);
        g_assert_cmpuint(size, ==, f.size);
    }
    ht_btf_field_value(&f, bytes, sizeof(bytes), &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "s", "t", "u" };
    static const char *const paths[] = { "a", "b", "a.b", "a[1]", "b[0].a",
                                         "a[1][2]" };
    g_autofree uint8_t *copy = fuzz_copy(data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(HtBtf) btf = ht_btf_parse(copy, size, &error);
    int64_t value;
    unsigned i;

    g_assert_true(!btf == !!error);
    if (!btf) {
        return 0;
    }
    for (i = 0; i < G_N_ELEMENTS(names) * G_N_ELEMENTS(paths); i++) {
        look_up(btf, names[i % G_N_ELEMENTS(names)],
                paths[i / G_N_ELEMENTS(names)]);
    }
    ht_btf_enum(btf, "e", &value);
    return 0;
}
