/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: event classes on the host
 */
#ifndef HYPERTRACE_CLASS_H
#define HYPERTRACE_CLASS_H

#include "hypertrace/base.h"
#include "hypertrace/abi.h"

/**
 * HtLabel: a name for a value of a field
 */
typedef struct HtLabel {
    int64_t value;
    char *name;
} HtLabel;

/**
 * HtField: one field of an event class, as checked by the host
 * @name: valid and unique in its class
 * @kind: enum ht_field_kind
 * @elem: integer kind of a sequence's or array's elements; HT_FIELD_U8 for
 *        text; else 0
 * @flags: HT_FIELD_HEX; HT_FIELD_UTF8: an array that is text; HT_FIELD_LABELS,
 *         HT_FIELD_BITS: an integer with @labels
 * @count: elements of an array, else 0
 * @labels: @nr_labels of them, for values or, with HT_FIELD_BITS, for bits
 */
typedef struct HtField {
    char *name;
    uint8_t kind;
    uint8_t elem;
    uint8_t flags;
    uint16_t count;
    uint16_t nr_labels;
    HtLabel *labels;
} HtField;

/**
 * HtClass: an event class; immutable once published, never freed
 * @id: 1 to HT_CLASSES_MAX, for the life of the trace
 * @name: unique; the guest's name, with ".vN" if that name was registered
 *        before with other fields, or before by a program if this class is the
 *        kernel's, or the other way round
 * @origin: HT_ORIGIN_KERNEL, or the user who registered the class first: all
 *          programs share their classes
 * @loglevel: 0 to 14
 * @nr_fields: number of @fields
 * @fields: in payload order
 * @fixed: bytes of the payload behind the last variable part (all of them,
 *         if there is none)
 * @nr_vars: number of variable parts (text, sequence)
 * @vars: for each: bytes before its u16 count, and bytes an element
 */
typedef struct HtClass {
    uint32_t id;
    char *name;
    uint32_t origin;
    uint8_t loglevel;
    uint8_t nr_fields;
    HtField *fields;
    uint32_t fixed;
    uint32_t nr_vars;
    struct {
        uint32_t before;
        uint32_t elem;
    } vars[HT_FIELDS_MAX];
} HtClass;

/**
 * ht_kind_size: bytes of a scalar
 * @kind: enum ht_field_kind
 *
 * Returns: 1, 2, 4 or 8; 0 for kinds that are not scalars
 */
unsigned ht_kind_size(unsigned kind);

/**
 * ht_kind_signed: whether @kind is a signed integer
 * @kind: enum ht_field_kind
 */
bool ht_kind_signed(unsigned kind);

/**
 * ht_class_payload: the length of an event's payload
 * @c: the class
 * @p: the payload
 * @avail: bytes that can be read at @p
 *
 * Returns: bytes, at most @avail; -1 if the payload does not fit @avail
 */
static inline ssize_t ht_class_payload(const HtClass *c, const uint8_t *p,
                                       size_t avail)
{
    size_t pos = 0;
    unsigned i;

    for (i = 0; i < c->nr_vars; i++) {
        pos += c->vars[i].before;
        if (pos + 2 > avail) {
            return -1;
        }
        pos += 2 + (size_t)(p[pos] | p[pos + 1] << 8) * c->vars[i].elem;
        /* a count cannot overflow pos: 32 fields x 64 Ki x 8 bytes */
    }
    pos += c->fixed;
    return pos <= avail ? (ssize_t)pos : -1;
}

/**
 * HtClassTable: the event classes of one trace
 * @by_id: class by id
 *
 * It only grows.  Writers hold the table's lock (registration); readers need
 * none: a class is published with release order and stays.
 */
typedef struct HtClassTable HtClassTable;
struct HtClassTable {
    HtClass *by_id[HT_CLASSES_MAX + 1];
    /*< private >*/
    uint32_t count;
    GMutex lock;                /* for the fields below, and adding */
    GHashTable *by_name;
    size_t size;                /* of what ht_class_table_save() returns */
    size_t limit;               /* of @size */
};

/**
 * ht_class_free: free a class that is in no table
 * @c: the class or NULL
 */
void ht_class_free(HtClass *c);

/**
 * ht_class_field_free: may a class have one more field of that name?
 * @c: the class
 * @name: of letters, digits and '_'
 *
 * Returns: false if a field of @c or one of a backend's own has it, or one
 * that readers of traces take for the same
 */
bool ht_class_field_free(const HtClass *c, const char *name);

HtClassTable *ht_class_table_new(void);
void ht_class_table_free(HtClassTable *t);

/* Largest size of a saved table */
#define HT_CLASSES_SAVED_MAX (HT_CLASSES_MAX * (4 + HT_MESSAGE_MAX))

/**
 * ht_class_table_set_limit: limit the size of a table
 * @t: the table
 * @limit: bytes of what ht_class_table_save() returns; HT_CLASSES_SAVED_MAX
 *         at the start.  Classes that are in the table stay in any case
 *
 * Context: any thread
 */
void ht_class_table_set_limit(HtClassTable *t, size_t limit);

/**
 * ht_class_table_size: size of a table
 * @t: the table
 *
 * Returns: bytes of what ht_class_table_save() returns
 *
 * Context: any thread
 */
size_t ht_class_table_size(HtClassTable *t);

/**
 * ht_class_table_add: check a HT_MSG_CLASS_REGISTER and find or add its class
 * @t: the table
 * @msg: the message, a private copy
 * @size: its bytes
 * @added: set to whether the class is new
 * @cls: set to the class
 *
 * Returns: HT_STATUS_OK; HT_STATUS_INVAL if the message is malformed;
 * HT_STATUS_LIMIT if the table has no room for the class
 *
 * Context: any thread
 */
enum ht_status ht_class_table_add(HtClassTable *t, const void *msg,
                                  size_t size, bool *added, HtClass **cls);

/**
 * ht_class_table_get: the class with an id
 * @t: the table
 * @id: anything
 *
 * Returns: the class, or NULL.  Lock-free.
 */
HtClass *ht_class_table_get(const HtClassTable *t, uint32_t id);

/**
 * ht_class_table_count: classes so far; their ids are 1 to this number
 * @t: the table
 */
uint32_t ht_class_table_count(const HtClassTable *t);

/**
 * ht_class_encode: write a class as a message, for HT_MSG_CLASS_LIST
 * @c: the class
 * @msg: HT_MESSAGE_MAX bytes
 *
 * Returns: bytes written
 */
size_t ht_class_encode(const HtClass *c, struct ht_msg_class *msg);

/**
 * ht_class_table_save: all classes, for a table elsewhere
 * @t: the table
 *
 * For each, in the order of ids: 32 bits with the size of what follows, then
 * the class as ht_class_encode() writes it.
 *
 * Returns: a new array
 */
GByteArray *ht_class_table_save(const HtClassTable *t);

/**
 * ht_class_table_load: have at least the classes that were saved
 * @t: the table; where both have an id, it must be the same class
 * @data: anything
 * @size: bytes at @data
 * @why: set to what is wrong, to be freed
 *
 * Returns: false if @t is as it was before
 *
 * Context: as ht_class_table_add()
 */
bool ht_class_table_load(HtClassTable *t, const void *data, size_t size,
                         char **why);

#endif /* HYPERTRACE_CLASS_H */
