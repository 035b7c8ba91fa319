/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target class: register event classes as a guest does
 *
 * Only classes that the specification allows get an id.  The id is permanent: a
 * class that is registered again, or listed, has the same id.  For any bytes,
 * ht_class_payload() returns the length that the class's fields give.
 */
#include "hypertrace/base.h"
#include "hypertrace/class.h"
#include "fuzz.h"

static bool is_integer(unsigned kind)
{
    return kind >= HT_FIELD_U8 && kind <= HT_FIELD_S64;
}

static void check_field(const HtField *f)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz_";
    static const char other[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strlen(f->name);

    g_assert_true(len >= 1 && len <= HT_FIELD_NAME_MAX);
    g_assert_cmpuint(strspn(f->name, first), >=, 1);
    g_assert_cmpuint(strspn(f->name, other), ==, len);
    g_assert_true(strcmp(f->name, "stream") && strcmp(f->name, "vcpu") &&
                  strcmp(f->name, "guest_ns"));
    if (f->flags & HT_FIELD_UTF8) {
        g_assert_cmpuint(f->flags, ==, HT_FIELD_UTF8);
        g_assert_cmpuint(f->kind, ==, HT_FIELD_ARRAY);
        g_assert_cmpuint(f->elem, ==, HT_FIELD_U8);
    }
    g_assert_cmpuint(f->flags & ~(HT_FIELD_HEX | HT_FIELD_UTF8 |
                                  HT_FIELD_LABELS | HT_FIELD_BITS), ==, 0);
    g_assert_true(f->nr_labels ? f->flags & HT_FIELD_LABELS &&
                                 f->nr_labels <= HT_LABELS_MAX &&
                                 is_integer(f->kind) :
                                 !(f->flags & HT_FIELD_LABELS));
    switch (f->kind) {
    case HT_FIELD_TEXT:
        g_assert_true(f->elem == HT_FIELD_U8 && f->count == 0);
        break;
    case HT_FIELD_SEQUENCE:
        g_assert_true(is_integer(f->elem) && f->count == 0);
        break;
    case HT_FIELD_ARRAY:
        g_assert_true(is_integer(f->elem) && f->count >= 1 &&
                      f->count <= 4096);
        break;
    default:
        g_assert_true(f->kind >= HT_FIELD_U8 && f->kind <= HT_FIELD_F64 &&
                      f->elem == 0 && f->count == 0);
    }
}

static void check_class(const HtClass *c)
{
    size_t len = strlen(c->name);
    unsigned i, j;

    g_assert_true(c->id >= 1 && c->id <= HT_CLASSES_MAX);
    g_assert_true(len >= 1 && len <= HT_CLASS_NAME_MAX);
    g_assert_cmpuint(strspn(c->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "abcdefghijklmnopqrstuvwxyz0123456789_.-"),
                     ==, len);
    g_assert_cmpuint(c->loglevel, <=, 14);
    g_assert_cmpuint(c->nr_fields, <=, HT_FIELDS_MAX);
    for (i = 0; i < c->nr_fields; i++) {
        check_field(&c->fields[i]);
        for (j = 0; j < i; j++) {
            g_assert_cmpstr(c->fields[i].name, !=, c->fields[j].name);
        }
    }
}

/* Check that ht_class_payload() agrees with fuzz_payload() for any bytes. */
static void check_payload(const HtClass *c, FuzzInput *in)
{
    FuzzInput bytes = fuzz_slice(in, fuzz_u8(in));
    size_t size = bytes.end - bytes.p;
    g_autofree uint8_t *payload = fuzz_copy(bytes.p, size);

    g_assert_cmpint(ht_class_payload(c, payload, size), ==,
                    fuzz_payload(c, payload, size));
}

/*
 * Register the message that the table makes for the class @c, as in the reply
 * to HT_MSG_CLASS_LIST: the result must be @c, and no class may be added.
 */
static void check_list(HtClassTable *t, HtClass *c)
{
    _Alignas(8) uint8_t listed[HT_MESSAGE_MAX] = { };
    struct ht_msg_class *m = (struct ht_msg_class *)listed;
    size_t size = ht_class_encode(c, m);
    bool added = true;
    HtClass *again;

    g_assert_cmpuint(size, <=, HT_MESSAGE_MAX);
    g_assert_cmpuint(ht_get_le32(&m->id), ==, c->id);
    g_assert_cmpint(ht_class_table_add(t, listed, size, &added, &again), ==,
                    HT_STATUS_OK);
    g_assert_true(again == c && !added);
}

static HtClass *add(HtClassTable *t, const uint8_t *bytes, size_t size)
{
    g_autofree uint8_t *msg = fuzz_copy(bytes, size);
    uint32_t count = ht_class_table_count(t);
    HtClass *c = (HtClass *)t, *again;
    enum ht_status status;
    bool added = true;

    status = ht_class_table_add(t, msg, size, &added, &c);
    g_assert_cmpuint(ht_class_table_count(t), ==, count + added);
    g_assert_true((status == HT_STATUS_OK) == (c != NULL));
    if (!c) {
        g_assert_true(status == HT_STATUS_INVAL || status == HT_STATUS_LIMIT);
        g_assert_false(added);
        return NULL;
    }
    check_class(c);
    g_assert_true(ht_class_table_get(t, c->id) == c);
    if (added) {
        g_assert_cmpuint(c->id, ==, count + 1);
        g_assert_true(t->by_id[c->id] == c);
    }
    g_assert_cmpint(ht_class_table_add(t, msg, size, &added, &again), ==,
                    HT_STATUS_OK);
    g_assert_true(again == c && !added);
    return c;
}

/*
 * Register classes "fillN" without fields, until the table has @count classes
 * or already had the next of them.
 */
static void fill(HtClassTable *t, uint32_t count)
{
    CtMessage m;

    while (ht_class_table_count(t) < count) {
        g_autofree char *name = g_strdup_printf("fill%u",
                                                ht_class_table_count(t));
        HtClass *c;
        bool added;

        ct_class(&m, name);
        if (ct_add(t, &m, &added, &c) != HT_STATUS_OK) {
            g_assert_not_reached();
        }
        if (!added) {
            /* the input has already registered this class */
            return;
        }
    }
}

/*
 * An action of the input is a byte modulo 8. The actions 0 to 4 register a
 * class: two bytes with the length of the message follow, then the message, so
 * that LLVMFuzzerCustomMutator() can find the messages.
 */
enum {
    ADD = 0,
    LIST = 5,
    PAYLOAD,
    FILL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size), msg;
    HtClassTable *t = ht_class_table_new();
    HtClass *c = NULL, *added;
    uint32_t id;

    while (fuzz_more(&in)) {
        switch (fuzz_u8(&in) % 8) {
        case LIST:
            added = ht_class_table_get(t, fuzz_number(&in));
            if (added) {
                check_list(t, added);
            }
            break;
        case PAYLOAD:
            if (c) {
                check_payload(c, &in);
            }
            break;
        case FILL:
            fill(t, fuzz_bits(&in, 2) == 0xffff ? HT_CLASSES_MAX : 3);
            break;
        default:
            msg = fuzz_slice(&in, fuzz_bits(&in, 2) % (HT_MESSAGE_MAX + 1));
            added = add(t, msg.p, msg.end - msg.p);
            c = added ? added : c;
        }
    }
    for (id = 1; id <= ht_class_table_count(t); id++) {
        check_class(ht_class_table_get(t, id));
    }
    ht_class_table_free(t);
    return 0;
}

static unsigned any_of(GRand *rand, const uint8_t *of, unsigned n)
{
    return of[g_rand_int_range(rand, 0, n)];
}

/*
 * Choose a name: in half of the cases a name of the list, which has valid and
 * invalid names, else "n" and a number. Some names of the list differ only by
 * a prefix, which a backend may add or remove.
 */
static void any_name(GRand *rand, char *name, size_t size)
{
    static const char *const names[] = {
        "n", "_n", "__n", "n_length", "_n_length", "__n_length", "stream",
        "vcpu", "guest_ns", "event", "x.v2", "x", "9", "-", "", "\n", "_",
        "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789",
    };
    unsigned i = g_rand_int_range(rand, 0, 2 * G_N_ELEMENTS(names));

    if (i < G_N_ELEMENTS(names)) {
        g_strlcpy(name, names[i], size);
    } else {
        snprintf(name, size, "n%u", i);
    }
}

static void any_field(GRand *rand, CtMessage *m)
{
    static const uint8_t kinds[] = {
        HT_FIELD_U8, HT_FIELD_U16, HT_FIELD_U32, HT_FIELD_U64, HT_FIELD_S8,
        HT_FIELD_S16, HT_FIELD_S32, HT_FIELD_S64, HT_FIELD_F32, HT_FIELD_F64,
        HT_FIELD_TEXT, HT_FIELD_SEQUENCE, HT_FIELD_ARRAY, HT_FIELD_TEXT,
        HT_FIELD_SEQUENCE, HT_FIELD_ARRAY, 0, 15, 19, 255,
    };
    static const uint16_t counts[] = { 0, 1, 4096, 4097, 65535, 7 };
    char name[80];
    struct ht_msg_field f = {
        .kind = any_of(rand, kinds, G_N_ELEMENTS(kinds)),
        .flags = g_rand_int_range(rand, 0, 8) ? g_rand_int_range(rand, 0, 3) :
                                                g_rand_int(rand),
    };

    any_name(rand, name, sizeof(name));
    f.name_len = strlen(name);
    if (f.kind == HT_FIELD_SEQUENCE || f.kind == HT_FIELD_ARRAY) {
        f.elem = g_rand_int_range(rand, 0, 10);
    }
    if (f.kind == HT_FIELD_ARRAY || !g_rand_int_range(rand, 0, 8)) {
        f.count = ht_le16(counts[g_rand_int_range(rand, 0,
                                                      G_N_ELEMENTS(counts))]);
    }
    ct_field_bytes(m, &f, name, f.name_len);
}

static void any_class(GRand *rand, CtMessage *m)
{
    unsigned fields = g_rand_int_range(rand, 0, 5);
    char name[80];

    if (!g_rand_int_range(rand, 0, 16)) {
        fields = HT_FIELDS_MAX + g_rand_int_range(rand, -1, 2);
    }
    any_name(rand, name, sizeof(name));
    ct_class(m, name);
    while (fields--) {
        any_field(rand, m);
    }
}

/*
 * In half of the cases, and if the new input would be too large, let libFuzzer
 * change the input. Its changes rarely give a valid class: in the other cases,
 * insert the message of a class, or append a field to a message of the input.
 */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autofree uint8_t *rest = NULL;
    size_t at = 0, left, need;
    CtMessage m;

    if (g_rand_int_range(rand, 0, 2)) {
        return LLVMFuzzerMutate(data, size, max);
    }
    /* skip a random number of the messages at the beginning of the input */
    while (at + 3 <= size && data[at] % 8 < LIST &&
           at + 3 + ht_get_le16(data + at + 1) <= size &&
           g_rand_int_range(rand, 0, 4)) {
        at += 3 + ht_get_le16(data + at + 1);
    }
    left = size - at;
    any_class(rand, &m);
    if (left > 3 + sizeof(struct ht_msg_class) && data[at] % 8 < LIST &&
        g_rand_int_range(rand, 0, 2)) {
        size_t old = MIN(ht_get_le16(data + at + 1), left - 3);

        if (old >= sizeof(struct ht_msg_class) &&
            old + 80 < sizeof(m.data)) {
            memcpy(m.data, data + at + 3, old);
            m.size = old;
            any_field(rand, &m);
            left -= 3 + old;
        }
    }
    need = 3 + m.size;
    if (at + need > max) {
        return LLVMFuzzerMutate(data, size, max);
    }
    left = MIN(left, max - at - need);
    rest = g_memdup2(data + size - left, left);
    data[at] = ADD;
    ht_put_le16(data + at + 1, m.size);
    memcpy(data + at + 3, m.data, m.size);
    if (left) {
        memcpy(data + at + need, rest, left);
    }
    return at + need + left;
}
