/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what the bytes of a Linux guest's trace events mean
 *
 * Made from the text of tracefs' files events/<system>/<event>/format, all in
 * one:
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
 * The text comes from a guest and is not trusted.  An event whose text is
 * malformed is left out and counted.  Guests are little-endian.  All functions
 * are pure; a table may be read by any number of threads.
 */
#ifndef HYPERTRACE_FTRACE_FORMAT_H
#define HYPERTRACE_FTRACE_FORMAT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hypertrace/base.h"

/* What is read of a text, in bytes, and fields of one event */
#define HT_FT_FORMATS_MAX       (32u << 20)
#define HT_FT_FIELDS_MAX        128
#define HT_FT_NAME_MAX          128

/* Each event begins with these: u16 type, u8 flags, u8 preempt, s32 pid. */
#define HT_FT_COMMON_SIZE       8

/**
 * enum HtFtKind - how a field is stored
 * @HT_FT_INT: an integer of 1, 2, 4 or 8 bytes, also a pointer or an enum
 * @HT_FT_STRING: char[], in place; ends at the first NUL
 * @HT_FT_ARRAY: elements in place
 * @HT_FT_DYN_STRING: a u32 in place says where the characters are
 * @HT_FT_DYN_ARRAY: a u32 in place says where the elements are
 * @HT_FT_BYTES: anything else, in place
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
 * @type: the type as the kernel writes it, as "unsigned long" or "char[16]"
 * @offset: of the field, in bytes from the record's begin
 * @size: in bytes; 0 for what reaches to the record's end
 * @elem_size: of an array's element, in bytes: 1, 2, 4 or 8
 * @kind: see &enum HtFtKind
 * @is_signed: the integer or the elements are
 * @is_pointer: the integer is an address
 * @relative: a dynamic field counts from behind itself, not from the begin
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
 * @f: the field: HT_FT_INT or an array
 * @p: the bytes: @f->size of an integer, @f->elem_size of an element
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
 * @system: as "sched"
 * @name: as "sched_switch"
 * @id: what the first two bytes of its records say
 * @nr_fields: without the common ones
 * @fields: by offset
 * @text: the format file, not terminated
 * @text_size: in bytes
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
 * ht_ft_formats_parse() - make the table
 * @text: see above; copied
 * @size: its bytes, at most HT_FT_FORMATS_MAX
 * @error: set if the text is too large or has no event
 *
 * Return: the table, for ht_ft_formats_free(); or NULL
 */
HtFtFormats *ht_ft_formats_parse(const char *text, size_t size,
                                 GError **error);
void ht_ft_formats_free(HtFtFormats *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtFormats, ht_ft_formats_free)

/**
 * ht_ft_formats_get() - the event class of an id
 *
 * Return: NULL if there is none
 */
const HtFtEvent *ht_ft_formats_get(const HtFtFormats *f, uint16_t id);

/**
 * ht_ft_formats_find() - the event class of a name
 * @system: NULL for the first in any
 * @name: the event's
 *
 * Return: NULL if there is none
 */
const HtFtEvent *ht_ft_formats_find(const HtFtFormats *f, const char *system,
                                    const char *name);

/**
 * ht_ft_formats_count() - how many event classes there are
 *
 * ht_ft_formats_nth() gives each, in the text's order.
 */
unsigned ht_ft_formats_count(const HtFtFormats *f);
const HtFtEvent *ht_ft_formats_nth(const HtFtFormats *f, unsigned n);

/** ht_ft_formats_skipped() - how many events were malformed */
unsigned ht_ft_formats_skipped(const HtFtFormats *f);

/**
 * ht_ft_formats_header() - the text of header_page or header_event
 * @name: which
 * @size: set to its bytes
 *
 * Return: not terminated; NULL if the text has none
 */
const char *ht_ft_formats_header(const HtFtFormats *f, const char *name,
                                 size_t *size);

/**
 * ht_ft_event_field() - a field by its name
 *
 * Return: NULL if there is none
 */
const HtFtField *ht_ft_event_field(const HtFtEvent *e, const char *name);

/**
 * ht_ft_field_uint() - an integer of a record
 * @data: the record, from its common fields on
 * @size: its bytes; what lies behind is not read
 *
 * Return: sign-extended if the field is signed; 0 if the field is no integer
 * or not within the record
 */
uint64_t ht_ft_field_uint(const HtFtField *field, const uint8_t *data,
                          size_t size);

/**
 * ht_ft_field_bytes() - what any field holds
 * @data: the record, from its common fields on
 * @size: its bytes
 * @len: set to the bytes of the field, clipped to the record
 *
 * Return: where in @data; NULL if outside of it, @len is 0 then
 */
const uint8_t *ht_ft_field_bytes(const HtFtField *field, const uint8_t *data,
                                 size_t size, size_t *len);

/**
 * ht_ft_field_str() - a string of a record
 * @len: set to its bytes before any NUL
 *
 * Return: where in @data, not terminated, any bytes; NULL if the field is no
 * string or not within the record
 */
const char *ht_ft_field_str(const HtFtField *field, const uint8_t *data,
                            size_t size, size_t *len);

#endif
