/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: check, keep, save and load the event classes of a guest
 */
#ifndef HYPERTRACE_CLASS_H
#define HYPERTRACE_CLASS_H

#include "hypertrace/base.h"
#include "hypertrace/abi.h"

/**
 * HtLabel: a name for a value of a field; with HT_FIELD_BITS, @value is a mask
 */
typedef struct HtLabel {
    int64_t value;
    char *name;
} HtLabel;

/**
 * HtField: one field of an event class, as checked by the host
 * @name: name of the field; valid and unique in its class
 * @kind: kind of the field, an enum ht_field_kind
 * @elem: integer kind of the elements of a sequence or array; HT_FIELD_U8 for a
 *        text; 0 for other kinds
 * @flags: HT_FIELD_HEX: shown in base 16; HT_FIELD_UTF8: an array of u8 that
 *         holds text; HT_FIELD_LABELS: an integer with @labels; HT_FIELD_BITS:
 *         the labels name bits, not values
 * @count: number of elements of an array; 0 for other kinds
 * @nr_labels: number of @labels
 * @labels: names of values; with HT_FIELD_BITS, names of bits
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
 * HtClass: an event class; immutable once it is in a table, which also frees it
 * @id: number of the class in its table, 1 to HT_CLASSES_MAX; 0 in no table
 * @name: name, unique in the table: the name that was registered.  If an
 *        earlier class has the same name but other fields, or if only one of
 *        the two classes comes from the kernel, ".vN" is appended
 * @origin: HT_ORIGIN_KERNEL if the guest's kernel registered the class; else
 *          the id of the user who registered the class first; 0 if the host
 *          made it.  All programs that register an equal class share this
 *          HtClass
 * @loglevel: severity, 0 (emergency) to 14 (debug)
 * @nr_fields: number of @fields
 * @fields: the fields, in the order of the payload
 * @fixed: number of bytes after the last variable part of the payload; if there
 *         is no variable part, size of the whole payload
 * @nr_vars: number of variable parts: texts and sequences
 * @vars: the variable parts: @before is the number of bytes from the end of the
 *        previous variable part, or from the start of the payload, to the u16
 *        count of this part; @elem is the size of an element in bytes
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
 * ht_kind_size: get the size of a scalar
 * @kind: enum ht_field_kind
 *
 * Returns: 1, 2, 4 or 8 bytes; 0 for kinds that are not scalars
 */
unsigned ht_kind_size(unsigned kind);

/**
 * ht_kind_signed: test whether a kind is a signed integer
 * @kind: enum ht_field_kind
 */
bool ht_kind_signed(unsigned kind);

/**
 * ht_class_payload: compute the size of an event's payload
 * @c: the class
 * @p: the payload
 * @avail: number of bytes that can be read at @p
 *
 * Returns: the size in bytes; -1 if the payload is larger than @avail
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
        /*
         * No overflow of @pos: an event has at most 32 fields of 65,535
         * elements of 8 bytes.
         */
    }
    pos += c->fixed;
    return pos <= avail ? (ssize_t)pos : -1;
}

/**
 * HtClassTable: the event classes of one trace
 * @by_id: array of the classes, indexed by id; NULL where no class has the id
 *
 * Classes are added and never removed.  A thread that adds a class holds @lock.
 * Readers need no lock: a class is published by a store-release.
 */
typedef struct HtClassTable HtClassTable;
struct HtClassTable {
    HtClass *by_id[HT_CLASSES_MAX + 1];
    /*< private >*/
    uint32_t count;
    /* held while a class is added; protects the members below */
    GMutex lock;
    GHashTable *by_name;
    /* size of the result of ht_class_table_save() */
    size_t size;
    size_t limit;               /* maximum of @size */
};

/**
 * ht_class_free: free a class that is in no table
 * @c: the class or NULL
 */
void ht_class_free(HtClass *c);

/**
 * ht_class_field_free: test whether a class can have another field of this name
 * @c: the class
 * @name: the name, of letters, digits and '_'
 *
 * Returns: false if backends add a field of this name to each event themselves,
 * or if readers of traces confuse the name with that of a field of @c
 */
bool ht_class_field_free(const HtClass *c, const char *name);

HtClassTable *ht_class_table_new(void);
void ht_class_table_free(HtClassTable *t);

/* Maximum size of a saved table in bytes */
#define HT_CLASSES_SAVED_MAX (HT_CLASSES_MAX * (4 + HT_MESSAGE_MAX))

/**
 * ht_class_table_set_limit: limit the size of a saved table
 * @t: the table
 * @limit: maximum number of bytes that ht_class_table_save() may return; the
 *         default is HT_CLASSES_SAVED_MAX.  Classes that are already in the
 *         table are not removed
 *
 * Context: any thread
 */
void ht_class_table_set_limit(HtClassTable *t, size_t limit);

/**
 * ht_class_table_size: get the size of a saved table
 * @t: the table
 *
 * Returns: number of bytes that ht_class_table_save() returns
 *
 * Context: any thread
 */
size_t ht_class_table_size(HtClassTable *t);

/**
 * ht_class_table_add: check a HT_MSG_CLASS_REGISTER and find or add its class
 * @t: the table
 * @msg: the message, a private copy
 * @size: size of @msg in bytes
 * @added: set to true if the class is new, else to false
 * @cls: set to the class, or to NULL on failure
 *
 * Returns: HT_STATUS_OK; HT_STATUS_INVAL if the message is malformed;
 * HT_STATUS_LIMIT if the table has no room for the class, if there are
 * HT_CLASS_VERSIONS_MAX other classes of its name, or if ".vN" makes its name
 * or its message too long
 *
 * Context: any thread
 */
enum ht_status ht_class_table_add(HtClassTable *t, const void *msg,
                                  size_t size, bool *added, HtClass **cls);

/**
 * ht_class_table_get: find a class by its id
 * @t: the table
 * @id: the id; any value is allowed
 *
 * Returns: the class; NULL if no class has this id
 *
 * Context: any thread; takes no lock
 */
HtClass *ht_class_table_get(const HtClassTable *t, uint32_t id);

/**
 * ht_class_table_count: get the number of classes; their ids are 1 to this
 * number
 * @t: the table
 */
uint32_t ht_class_table_count(const HtClassTable *t);

/**
 * ht_class_encode: encode a class, as in the reply to HT_MSG_CLASS_LIST
 * @c: the class
 * @msg: buffer of HT_MESSAGE_MAX bytes; the members @h, @index and @on are not
 *       set
 *
 * Returns: the size of the message in bytes
 */
size_t ht_class_encode(const HtClass *c, struct ht_msg_class *msg);

/**
 * ht_class_table_save: encode all classes, for ht_class_table_load()
 * @t: the table
 *
 * For each class, in the order of ids, the result holds the size of its message
 * (32 bits, little-endian), then the message as ht_class_encode() writes it.
 *
 * Returns: the bytes, for g_byte_array_unref()
 */
GByteArray *ht_class_table_save(const HtClassTable *t);

/**
 * ht_class_table_load: add the classes of a saved table
 * @t: the table; if a class of it has the id of a saved class, both must have
 *     the same name and fields, and both or neither be of the kernel
 * @data: result of ht_class_table_save(); not trusted
 * @size: size of @data in bytes
 * @why: set to the reason of a failure; free with g_free()
 *
 * Returns: false on failure; @t is then unchanged
 *
 * Context: as ht_class_table_add()
 */
bool ht_class_table_load(HtClassTable *t, const void *data, size_t size,
                         char **why);

#endif /* HYPERTRACE_CLASS_H */
