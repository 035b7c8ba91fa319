/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse the formats of a Linux guest's trace events
 *
 * The input is one text that concatenates tracefs' files
 * events/<system>/<event>/format:
 *
 *     header: header_page
 *     ...                      (that file)
 *     header: header_event
 *     ...
 *     system: sched            (for all events up to the next such line)
 *     name: sched_switch
 *     ID: 289
 *     ...
 *
 * The text comes from a guest and is not trusted.  An event is left out and
 * counted if it is malformed, or if an earlier event has its id.  Guests are
 * little-endian.  A parsed table does not change; several threads may read it
 * at the same time.
 */
#ifndef HYPERTRACE_FTRACE_FORMAT_H
#define HYPERTRACE_FTRACE_FORMAT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hypertrace/base.h"

/* Maximum numbers: bytes of a text, fields of an event, bytes of a name */
#define HT_FT_FORMATS_MAX       (32u << 20)
#define HT_FT_FIELDS_MAX        128
#define HT_FT_NAME_MAX          128

/* Size of the common fields: u16 type, u8 flags, u8 preempt count, s32 pid */
#define HT_FT_COMMON_SIZE       8

/**
 * enum HtFtKind - how a field is stored
 * @HT_FT_INT: an integer of 1, 2, 4 or 8 bytes, also a pointer or an enum
 * @HT_FT_STRING: char[], in place; ends at the first NUL
 * @HT_FT_ARRAY: elements in place
 * @HT_FT_DYN_STRING: characters; a u32 in place gives their offset and length
 * @HT_FT_DYN_ARRAY: elements; a u32 in place gives their offset and length
 * @HT_FT_BYTES: any other type, in place
 */
typedef enum HtFtKind {
    HT_FT_INT,
    HT_FT_STRING,
    HT_FT_ARRAY,
    HT_FT_DYN_STRING,
    HT_FT_DYN_ARRAY,
    HT_FT_BYTES,
} HtFtKind;

/**
 * struct HtFtField - one field of an event
 * @name: an identifier
 * @type: the type as the kernel writes it, for example "unsigned long" or
 *        "char[16]"
 * @offset: offset of the field in the record, in bytes
 * @size: size in bytes; 0 for a field that extends to the end of the record
 * @elem_size: size of an array's element in bytes: 1, 2, 4 or 8
 * @kind: see &enum HtFtKind
 * @is_signed: the integer or the elements are signed
 * @is_pointer: the integer is an address
 * @relative: the offset of a dynamic field counts from the end of the field's
 *            u32, not from the start of the record
 */
typedef struct HtFtField {
    const char *name;
    const char *type;
    uint16_t offset;
    uint16_t size;
    uint8_t elem_size;
    uint8_t kind;
    bool is_signed;
    bool is_pointer;
    bool relative;
} HtFtField;

/**
 * ht_ft_elem_uint() - read an integer, or one element of an array
 * @f: the field: HT_FT_INT, HT_FT_ARRAY or HT_FT_DYN_ARRAY
 * @p: the bytes: @f->size for an integer, @f->elem_size for an element
 *
 * Return: the value, extended by its sign if the field is signed
 */
static inline uint64_t ht_ft_elem_uint(const HtFtField *f, const uint8_t *p)
{
    unsigned size = f->kind == HT_FT_INT ? f->size : f->elem_size;

    return ht_get_le(p, size, f->is_signed);
}

/**
 * struct HtFtEvent - one event class
 * @system: name of the subsystem, for example "sched"
 * @name: name of the event, for example "sched_switch"
 * @id: value of the first two bytes of the event's records
 * @nr_fields: number of fields, without the common ones
 * @fields: the fields, ordered by offset
 * @text: the text of the format file, not NUL-terminated
 * @text_size: size of @text in bytes
 */
typedef struct HtFtEvent {
    const char *system;
    const char *name;
    uint16_t id;
    uint16_t nr_fields;
    const HtFtField *fields;
    const char *text;
    size_t text_size;
} HtFtEvent;

typedef struct HtFtFormats HtFtFormats;

/**
 * ht_ft_formats_parse() - parse a text of formats
 * @text: the formats, as described at the top of this file; copied
 * @size: its size in bytes, at most HT_FT_FORMATS_MAX
 * @error: set if the text is too large or has no valid event
 *
 * Return: the table, for ht_ft_formats_free(); or NULL
 */
HtFtFormats *ht_ft_formats_parse(const char *text, size_t size,
                                 GError **error);
void ht_ft_formats_free(HtFtFormats *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtFormats, ht_ft_formats_free)

/**
 * ht_ft_formats_get() - find an event by its id
 * @f: the table
 * @id: the event's id
 *
 * Return: the event, or NULL if no event has this id
 */
const HtFtEvent *ht_ft_formats_get(const HtFtFormats *f, uint16_t id);

/**
 * ht_ft_formats_count() - get the number of events
 * @f: the table
 */
unsigned ht_ft_formats_count(const HtFtFormats *f);

/**
 * ht_ft_formats_nth() - get an event by its position in the text
 * @f: the table
 * @n: the position, from 0; events that were left out do not count
 *
 * Return: the event, or NULL if @n is too large
 */
const HtFtEvent *ht_ft_formats_nth(const HtFtFormats *f, unsigned n);

/**
 * ht_ft_formats_skipped() - get the number of events that were left out
 * @f: the table
 */
unsigned ht_ft_formats_skipped(const HtFtFormats *f);

/**
 * ht_ft_formats_header() - get the text of header_page or header_event
 * @f: the table
 * @name: "header_page" or "header_event"
 * @size: set to the size of the text in bytes
 *
 * Return: the text, not NUL-terminated; NULL if the input did not have it
 */
const char *ht_ft_formats_header(const HtFtFormats *f, const char *name,
                                 size_t *size);

/**
 * ht_ft_event_field() - find a field by its name
 * @e: the event
 * @name: name of the field
 *
 * Return: the field, or NULL
 */
const HtFtField *ht_ft_event_field(const HtFtEvent *e, const char *name);

/**
 * ht_ft_field_uint() - get the integer in a record's field
 * @field: the field
 * @data: the record, starting with its common fields
 * @size: size of @data in bytes
 *
 * Return: sign-extended if the field is signed; 0 if the field is no integer
 * or not within the record
 */
static inline uint64_t ht_ft_field_uint(const HtFtField *field,
                                        const uint8_t *data, size_t size)
{
    if (field->kind != HT_FT_INT || size < field->offset ||
        size - field->offset < field->size) {
        return 0;
    }
    return ht_get_le(data + field->offset, field->size, field->is_signed);
}

/**
 * ht_ft_field_bytes() - get the bytes of a record's field
 * @field: the field, of any kind
 * @data: the record, starting with its common fields
 * @size: size of @data in bytes
 * @len: set to the size of the field in bytes, limited to the record
 *
 * Return: a pointer into @data; NULL, with @len 0, if the field is outside the
 * record
 */
const uint8_t *ht_ft_field_bytes(const HtFtField *field, const uint8_t *data,
                                 size_t size, size_t *len);

/**
 * ht_ft_field_str() - get the string in a record's field
 * @field: the field
 * @data: the record, starting with its common fields
 * @size: size of @data in bytes
 * @len: set to the length of the string in bytes, without NUL
 *
 * Return: a pointer into @data, not NUL-terminated; the bytes can have any
 * value.  NULL if the field is no string or not within the record.
 */
const char *ht_ft_field_str(const HtFtField *field, const uint8_t *data,
                            size_t size, size_t *len);

#endif
