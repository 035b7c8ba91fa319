/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "compare.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9fb21c651e98df25);
    return h ^ h >> 32;
}

static uint64_t mix_text(uint64_t h, const char *s, size_t len)
{
    uint64_t word = 0;
    size_t i;

    h = mix(h, len);
    for (i = 0; i + 8 <= len; i += 8) {
        memcpy(&word, s + i, 8);
        h = mix(h, word);
    }
    word = 0;
    memcpy(&word, s + i, len - i);
    return mix(h, word);
}

static uint64_t mix_field(uint64_t h, const bt_field *f)
{
    bt_field_class_type type = bt_field_get_class_type(f);
    uint64_t i, n;
    double d;

    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        return mix(h, bt_field_integer_unsigned_get_value(f));
    }
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        return mix(h, bt_field_integer_signed_get_value(f));
    }
    if (type == BT_FIELD_CLASS_TYPE_STRING) {
        return mix_text(h, bt_field_string_get_value(f),
                        bt_field_string_get_length(f));
    }
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
        n = bt_field_array_get_length(f);
        h = mix(h, n);
        for (i = 0; i < n; i++) {
            h = mix_field(
                h, bt_field_array_borrow_element_field_by_index_const(f, i));
        }
        return h;
    }
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_REAL)) {
        d = type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL ?
            bt_field_real_single_precision_get_value(f) :
            bt_field_real_double_precision_get_value(f);
        memcpy(&i, &d, sizeof(i));
        return mix(h, i);
    }
    /* hypertrace's events have no other kinds of fields */
    return h;
}

uint64_t compare_hash(const TraceEvent *ev)
{
    uint64_t h = mix_text(1, ev->cls->name, strlen(ev->cls->name));
    uint64_t i, n;

    if (!ev->payload) {
        return h;
    }
    n = bt_field_class_structure_get_member_count(ev->cls->fields);
    for (i = 0; i < n; i++) {
        const bt_field_class_structure_member *m =
            bt_field_class_structure_borrow_member_by_index_const(
                ev->cls->fields, i);
        const char *name = bt_field_class_structure_member_get_name(m);

        if (!workload_is_extra(ev->cls, name)) {
            h = mix_field(
                h, bt_field_structure_borrow_member_field_by_index_const(
                       ev->payload, i));
        }
    }
    return h;
}

/*
 * Collect the events of all instances of a device's stream @index, one
 * instance after the other.
 */
static GArray *events_of(const Account *a, const char *device, uint32_t index)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Recorded));
    unsigned i;

    for (i = 0; i < a->streams->len; i++) {
        const Stream *s = a->streams->pdata[i];

        if (s->index == index && !strcmp(s->device, device) && s->list->len) {
            g_array_append_vals(all, s->list->data, s->list->len);
        }
    }
    return all;
}

static bool same_event(const Recorded *x, const Recorded *y)
{
    return x->guest_ns == y->guest_ns && x->hash == y->hash;
}

/*
 * Check whether @e is in @list at index @i or later, among the events with the
 * same guest_ns.
 */
static bool follows(const GArray *list, guint i, const Recorded *e)
{
    for (; i < list->len; i++) {
        const Recorded *x = &g_array_index(list, Recorded, i);

        if (x->guest_ns != e->guest_ns) {
            break;
        }
        if (x->hash == e->hash) {
            return true;
        }
    }
    return false;
}

/*
 * Count the events that are in both lists, only in @a, and only in @b. The
 * lists must be sorted by guest_ns, or too few events are found in both.
 * If a Stream is not sorted, account_read() has made its @backward not 0.
 */
static void compare_stream(Difference *d, const GArray *a, const GArray *b)
{
    guint i = 0, j = 0;

    while (i < a->len && j < b->len) {
        const Recorded *x = &g_array_index(a, Recorded, i);
        const Recorded *y = &g_array_index(b, Recorded, j);

        if (same_event(x, y)) {
            d->same++;
            i++;
            j++;
        } else if (x->guest_ns < y->guest_ns ||
                   (x->guest_ns == y->guest_ns && follows(a, i + 1, y))) {
            d->only_a++;
            i++;
        } else {
            d->only_b++;
            j++;
        }
    }
    d->only_a += a->len - i;
    d->only_b += b->len - j;
}

static void add_streams(GPtrArray *found, const Account *a)
{
    unsigned i, j;

    for (i = 0; i < a->streams->len; i++) {
        const Stream *s = a->streams->pdata[i];
        Difference *d = NULL;

        for (j = 0; j < found->len; j++) {
            d = found->pdata[j];
            if (d->index == s->index && !strcmp(d->device, s->device)) {
                break;
            }
        }
        if (j == found->len) {
            d = g_new0(Difference, 1);
            d->device = s->device;
            d->index = s->index;
            g_ptr_array_add(found, d);
        }
    }
}

/*
 * Get the number of events that the traces of a directory report as
 * discarded.
 */
static uint64_t reported(const Account *a)
{
    uint64_t sum = a->discarded;
    unsigned i;

    for (i = 0; i < a->streams->len; i++) {
        sum += ((const Stream *)a->streams->pdata[i])->discarded;
    }
    return sum;
}

/*
 * Check the number of events that trace @lacks reports as discarded. It lacks
 * @missing events of @other, so it must report at least @missing. @other lacks
 * @others_missing events of @lacks, and both traces report the events that both
 * lack. So @lacks must report at least @missing - @others_missing more events
 * than @other.
 */
static void check_missing(Account *to, const Account *lacks, uint64_t missing,
                          const Account *other, uint64_t others_missing)
{
    if (missing > reported(lacks) ||
        missing + reported(other) > others_missing + reported(lacks)) {
        account_problem(to, "%" PRIu64 " events are only in %s; %s reports %"
                        PRIu64 " discarded events, the other %" PRIu64,
                        missing, other->path, lacks->path, reported(lacks),
                        reported(other));
    }
}

GPtrArray *compare(Account *a, Account *b)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
    uint64_t only_a = 0, only_b = 0;
    unsigned i;

    add_streams(found, a);
    add_streams(found, b);
    for (i = 0; i < found->len; i++) {
        Difference *d = found->pdata[i];
        g_autoptr(GArray) x = events_of(a, d->device, d->index);
        g_autoptr(GArray) y = events_of(b, d->device, d->index);

        compare_stream(d, x, y);
        only_a += d->only_a;
        only_b += d->only_b;
    }
    check_missing(b, b, only_a, a, only_b);
    check_missing(b, a, only_b, b, only_a);
    return found;
}
