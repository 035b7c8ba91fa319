/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Look up a kernel's types (BTF) by name: structures with members at several
 * offsets, malformed types, and circular types
 */
#include "hypertrace/btf.h"
#include "btf-make.h"

static HtBtf *finish(BtfMake *m)
{
    g_autoptr(GBytes) bytes = bm_finish(m);
    g_autoptr(GError) error = NULL;
    HtBtf *btf = ht_btf_parse(g_bytes_get_data(bytes, NULL),
                              g_bytes_get_size(bytes), &error);

    g_assert_no_error(error);
    return btf;
}

/*
 * Promise: members are found by name, at whatever offset the kernel's build
 * put them. The test makes the same structure with several sets of offsets.
 */
static void test_moved(void)
{
    static const unsigned orders[][4] = {
        { 0, 8, 16, 48 }, { 48, 40, 8, 0 }, { 20, 24, 32, 64 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(orders); i++) {
        const unsigned *at = orders[i];
        g_autoptr(HtBtf) btf = NULL;
        uint32_t u32, u64, list, pages, inner, head, tail, offset, size;
        uint8_t copy[128] = { 0 };
        HtBtfField f;
        uint64_t v;
        BtfMake m;

        bm_init(&m);
        u32 = bm_int(&m, "unsigned int", 4, false);
        u64 = bm_int(&m, "long unsigned int", 8, false);
        list = bm_struct(&m, "list_head", 16);
        /* a pointer, whose type is made below */
        bm_member(&m, "next", 8, 0);
        bm_member(&m, "prev", 8, 8);
        pages = bm_array(&m, u64, 4);
        inner = bm_struct(&m, NULL, 8);
        bm_bits(&m, "low", u32, 3, 5);
        bm_bits(&m, "high", u32, 8, 12);
        head = bm_type(&m, "head_t", BM_TYPEDEF, 0, false, 7);
        bm_type(&m, NULL, BM_CONST, 0, false, list);
        bm_ptr(&m, list);
        g_assert_cmpuint(head, ==, 6);
        tail = bm_array(&m, u64, 0);
        bm_struct(&m, "ring", 128);
        bm_member(&m, "count", u32, at[0]);
        bm_member(&m, NULL, inner, at[1]);
        bm_member(&m, "pages", pages, at[2]);
        bm_member(&m, "list", head, at[3]);
        bm_member(&m, "tail", tail, 120);
        btf = finish(&m);

        g_assert_cmpint(ht_btf_struct_size(btf, "ring", &size), ==, 0);
        g_assert_cmpuint(size, ==, 128);
        g_assert_cmpint(ht_btf_struct_size(btf, "head_t", &size), ==, 0);
        g_assert_cmpuint(size, ==, 16);
        g_assert_cmpint(ht_btf_offset(btf, "ring", "count", &offset, &size),
                        ==, 0);
        g_assert_cmpuint(offset, ==, at[0]);
        g_assert_cmpuint(size, ==, 4);
        g_assert_cmpint(ht_btf_offset(btf, "ring", "pages", &offset, &size),
                        ==, 0);
        g_assert_cmpuint(offset, ==, at[2]);
        g_assert_cmpuint(size, ==, 32);
        g_assert_cmpint(ht_btf_offset(btf, "ring", "pages[3]", &offset,
                                      &size), ==, 0);
        g_assert_cmpuint(offset, ==, at[2] + 24);
        g_assert_cmpuint(size, ==, 8);
        g_assert_cmpint(ht_btf_field(btf, "ring", "pages[4]", &f), ==,
                        -EINVAL);
        g_assert_cmpint(ht_btf_field(btf, "ring", "list.prev", &f), ==, 0);
        g_assert_cmpuint(f.offset, ==, at[3] + 8);
        g_assert_cmpint(ht_btf_field(btf, "ring", "list.prev.next", &f), ==,
                        -ENOENT);
        g_assert_cmpint(ht_btf_field(btf, "ring", "nothing", &f), ==, -ENOENT);
        g_assert_cmpint(ht_btf_field(btf, "nothing", "count", &f), ==,
                        -ENOENT);
        g_assert_cmpint(ht_btf_field(btf, "ring", "list..prev", &f), ==,
                        -EINVAL);
        g_assert_cmpint(ht_btf_field(btf, "ring", "", &f), ==, -EINVAL);
        g_assert_cmpint(ht_btf_field(btf, "ring", "pages[1", &f), ==, -EINVAL);
        g_assert_cmpint(ht_btf_field(btf, "ring", "tail", &f), ==, 0);
        g_assert_cmpuint(f.count, ==, 0);

        /* values of "high" (bits 8 to 19) and "low" (bits 3 to 7) */
        ht_put_le32(copy + at[1], 0x000abc00 | 9 << 3);
        g_assert_cmpint(ht_btf_field(btf, "ring", "high", &f), ==, 0);
        g_assert_cmpint(ht_btf_field_value(&f, copy, sizeof(copy), &v), ==, 0);
        g_assert_cmphex(v, ==, 0xabc);
        g_assert_cmpint(ht_btf_offset(btf, "ring", "high", &offset, NULL), ==,
                        -EINVAL);
        g_assert_cmpint(ht_btf_field(btf, "ring", "low", &f), ==, 0);
        g_assert_cmpint(ht_btf_field_value(&f, copy, sizeof(copy), &v), ==, 0);
        g_assert_cmphex(v, ==, 9);
        g_assert_cmpint(ht_btf_field_value(&f, copy, f.offset, &v), ==,
                        -ERANGE);
    }
}

/* Promise: enumerators of 32 and of 64 bits keep their sign. */
static void test_enums(void)
{
    g_autoptr(HtBtf) btf = NULL;
    int64_t value;
    BtfMake m;

    bm_init(&m);
    bm_enum(&m, "kind");
    bm_value(&m, "KIND_NONE", -1);
    bm_value(&m, "KIND_FN", 7);
    bm_enum64(&m, "wide");
    bm_value(&m, "WIDE", INT64_MIN + 5);
    btf = finish(&m);
    g_assert_cmpint(ht_btf_enum(btf, "KIND_NONE", &value), ==, 0);
    g_assert_cmpint(value, ==, -1);
    g_assert_cmpint(ht_btf_enum(btf, "WIDE", &value), ==, 0);
    g_assert_cmpint(value, ==, INT64_MIN + 5);
    g_assert_cmpint(ht_btf_enum(btf, "NOTHING", &value), ==, -ENOENT);
}

/*
 * Promise: a search through types that contain themselves ends within 1 s, even
 * if a structure has 1000 members of its own type.
 */
static void test_circles(void)
{
    g_autoptr(HtBtf) btf = NULL;
    HtBtfField f;
    BtfMake m;
    unsigned i;
    gint64 begin = g_get_monotonic_time();

    bm_init(&m);
    /* types 1 and 2 refer to each other */
    bm_type(&m, "a", BM_TYPEDEF, 0, false, 2);
    bm_type(&m, "b", BM_TYPEDEF, 0, false, 1);
    /* type 3 is an array of itself */
    bm_array(&m, 3, 2);
    bm_struct(&m, "self", 8);                           /* type 4 */
    for (i = 0; i < 1000; i++) {
        bm_member(&m, NULL, 4, 0);
    }
    bm_struct(&m, "uses", 8);                           /* type 5 */
    bm_member(&m, "typedefs", 1, 0);
    bm_member(&m, "arrays", 3, 0);
    bm_member(&m, "pointer", 6, 0);
    /* type 6: a pointer to itself */
    bm_ptr(&m, 6);
    btf = finish(&m);
    g_assert_cmpint(ht_btf_field(btf, "self", "x", &f), ==, -ENOENT);
    g_assert_cmpint(ht_btf_field(btf, "uses", "typedefs", &f), ==, -EINVAL);
    g_assert_cmpint(ht_btf_field(btf, "uses", "arrays", &f), ==, -EINVAL);
    g_assert_cmpint(ht_btf_field(btf, "uses", "arrays[1][1]", &f), ==,
                    -EINVAL);
    g_assert_cmpint(ht_btf_field(btf, "a", "x", &f), ==, -ENOENT);
    g_assert_cmpint(ht_btf_field(btf, "uses", "pointer", &f), ==, 0);
    g_assert_cmpuint(f.size, ==, 8);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, G_USEC_PER_SEC);
}

/* Assert that a field, if it is found, lies within its structure. */
static void check_inside(const HtBtf *btf, const char *type, const char *path)
{
    HtBtfField f;
    uint32_t size;

    if (!ht_btf_field(btf, type, path, &f)) {
        uint64_t bits = f.bits ? f.bits : f.size * UINT64_C(8);

        g_assert_cmpint(ht_btf_struct_size(btf, type, &size), ==, 0);
        g_assert_cmpuint(f.offset * UINT64_C(8) + f.bit + bits, <=,
                         size * UINT64_C(8));
    }
}

/*
 * Promise: a member beyond the end of its structure is refused.  Readers copy a
 * structure of the guest by its size, and then read members in the copy.
 */
static void test_outside(void)
{
    static const struct {
        const char *path;
        int ret;
    } cases[] = {
        { "first", 0 }, { "last", 0 }, { "bits", 0 }, { "inner.fits", 0 },
        { "after", -EINVAL }, { "across", -EINVAL }, { "far", -EINVAL },
        { "long", -EINVAL }, { "bits_after", -EINVAL },
        { "inner.outside", -EINVAL }, { "far.fits", -EINVAL },
        { "outside", -EINVAL },
    };
    g_autoptr(HtBtf) btf = NULL;
    HtBtfField f;
    BtfMake m;
    unsigned i;

    bm_init(&m);
    bm_int(&m, "int", 4, true);                         /* type 1 */
    bm_array(&m, 1, 1000);                              /* type 2 */
    bm_struct(&m, "inner", 8);                          /* type 3 */
    bm_member(&m, "fits", 1, 4);
    bm_member(&m, "outside", 1, 8);
    bm_struct(&m, "s", 24);                             /* type 4 */
    bm_member(&m, "first", 1, 0);
    bm_member(&m, "last", 1, 20);
    bm_member(&m, "after", 1, 24);
    bm_member(&m, "across", 1, 21);
    bm_member(&m, "inner", 3, 8);
    bm_member(&m, "far", 3, 100000);
    bm_member(&m, "long", 2, 0);
    bm_member(&m, NULL, 3, 16);
    bm_struct(&m, "b", 4);
    bm_bits(&m, "bits", 1, 30, 2);
    bm_bits(&m, "bits_after", 1, 30, 3);
    btf = finish(&m);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *type = "s";

        if (g_str_has_prefix(cases[i].path, "bits")) {
            type = "b";
        }
        g_assert_cmpint(ht_btf_field(btf, type, cases[i].path, &f), ==,
                        cases[i].ret);
        check_inside(btf, type, cases[i].path);
    }
}

/*
 * Promise: BTF with one changed byte is refused, or read within its bounds (in
 * builds with a sanitizer, this test proves the bounds). The member "y", if it
 * is found, lies within its structure. BTF that is cut off is refused.
 */
static void test_damaged(void)
{
    g_autoptr(GBytes) bytes = NULL;
    const uint8_t *good;
    unsigned i, refused = 0;
    size_t size;
    BtfMake m;

    bm_init(&m);
    bm_int(&m, "int", 4, true);
    bm_array(&m, 1, 3);
    bm_struct(&m, "s", 16);
    bm_member(&m, "x", 2, 0);
    bm_member(&m, "y", 1, 12);
    bm_enum(&m, "e");
    bm_value(&m, "ONE", 1);
    bytes = bm_finish(&m);
    good = g_bytes_get_data(bytes, &size);
    for (i = 0; i < size * 3; i++) {
        static const uint8_t changes[] = { 1, 0x7f, 0xff };
        g_autofree uint8_t *bad = g_memdup2(good, size);
        g_autoptr(HtBtf) btf = NULL;
        g_autoptr(GError) error = NULL;
        int64_t value;

        bad[i / 3] ^= changes[i % 3];
        btf = ht_btf_parse(bad, size, &error);
        if (btf) {
            HtBtfField f;

            check_inside(btf, "s", "y");
            /* the change may make "x" a flexible array: do not check its end */
            ht_btf_field(btf, "s", "x[2]", &f);
            ht_btf_enum(btf, "ONE", &value);
        } else {
            g_assert_nonnull(error);
            refused++;
        }
    }
    g_assert_cmpuint(refused, >, size / 2);
    for (i = 0; i < size; i++) {
        g_autofree uint8_t *cut = g_memdup2(good, i);

        g_assert_null(ht_btf_parse(cut, i, NULL));
    }
}

#define MANY    (1u << 18)

/*
 * Make MANY structures; the name of structure number i is at offset
 * @at + i * @step of the names.
 */
static HtBtf *make_many(BtfMake *m, uint32_t at, uint32_t step)
{
    uint32_t i, first = m->types->len;

    for (i = 0; i < MANY; i++) {
        bm_struct(m, NULL, 4);
    }
    for (i = 0; i < MANY; i++) {
        ht_put_le32(m->types->data + first + i * 12, at + i * step);
    }
    return finish(m);
}

/*
 * Promise: the time to index names that a hostile guest chose does not grow
 * with the square of their number, nor with their length.  If the index used
 * g_str_hash() and names of any length, each part of this test would exceed its
 * time limit.
 */
static void test_names(void)
{
    g_autoptr(HtBtf) overlap = NULL, collide = NULL;
    g_autofree char *text = g_strnfill(4 << 20, 'a');
    uint32_t size, at, i, j;
    BtfMake m;

    bm_init(&m);
    bm_struct(&m, "good", 8);
    at = bm_name(&m, text);
    overlap = make_many(&m, at, 1);
    g_assert_cmpint(ht_btf_struct_size(overlap, "good", &size), ==, 0);
    g_assert_cmpuint(size, ==, 8);

    /*
     * "ab" and "bA" have the same g_str_hash(), so all names of 18 such pairs
     * have the same hash, too.
     */
    bm_init(&m);
    bm_struct(&m, "good", 8);
    at = m.names->len;
    for (i = 0; i < MANY; i++) {
        char name[37];

        for (j = 0; j < 18; j++) {
            memcpy(name + 2 * j, i >> j & 1 ? "ab" : "bA", 2);
        }
        name[36] = 0;
        bm_name(&m, name);
    }
    collide = make_many(&m, at, 37);
    g_assert_cmpint(ht_btf_struct_size(collide, "good", &size), ==, 0);
    g_assert_cmpuint(size, ==, 8);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/btf/moved", test_moved);
    g_test_add_func("/btf/outside", test_outside);
    g_test_add_func("/btf/enums", test_enums);
    g_test_add_func("/btf/circles", test_circles);
    g_test_add_func("/btf/damaged", test_damaged);
    g_test_add_func("/btf/names", test_names);
    return g_test_run();
}
