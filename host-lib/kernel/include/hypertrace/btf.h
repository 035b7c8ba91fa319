/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a kernel's types and their members by name (BTF)
 *
 * BTF, the type information in a kernel's image, has the offset of each member
 * of each structure.  BTF is not trusted: parsing checks the references that
 * the functions follow, and every walk is bounded.
 *
 * A table never changes after parsing; several threads may read it at the same
 * time.
 */
#ifndef HYPERTRACE_BTF_H
#define HYPERTRACE_BTF_H

#include "hypertrace/base.h"

/*
 * Maximum size of BTF in bytes, and maximum number of its types.  Debian's 6.12
 * has 5 MB and 107,000 types.
 */
#define HT_BTF_MAX          (64u << 20)
#define HT_BTF_TYPES_MAX    (1u << 20)

typedef struct HtBtf HtBtf;

/**
 * HtBtfField: a member of a structure or union
 * @offset: offset of the member in the outermost structure, in bytes; for a bit
 *          field, of the byte that holds its first bit
 * @size: size of the member in bytes; for a bit field, of its declared type;
 *        for a flexible array, 0
 * @bit: a bit field's first bit in the byte at @offset, 0 to 7; else 0
 * @bits: width of a bit field in bits; else 0
 * @count: number of elements of an array, all dimensions multiplied; 0 for a
 *         flexible array; 1 if it is no array
 * @element: size of one element in bytes; @size if it is no array
 * @is_signed: the member is, or its elements are, signed integers or signed
 *             enumerations
 */
typedef struct HtBtfField {
    uint32_t offset;
    uint32_t size;
    uint32_t bit;
    uint32_t bits;
    uint32_t count;
    uint32_t element;
    bool is_signed;
} HtBtfField;

/**
 * ht_btf_parse: parse the content of a section .BTF
 * @data: little-endian BTF, version 1; copied
 * @size: size of @data in bytes, at most HT_BTF_MAX
 * @error: set if the data is malformed
 *
 * Returns: the table, for ht_btf_free(); or NULL
 */
HtBtf *ht_btf_parse(const void *data, size_t size, GError **error);

/**
 * ht_btf_free: free a table
 * @btf: the table or NULL
 */
void ht_btf_free(HtBtf *btf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtBtf, ht_btf_free)

/**
 * ht_btf_struct_size: get the size of a structure or union
 * @btf: the table
 * @name: its tag, or the name of a typedef of one
 * @size: set to its size in bytes
 *
 * Returns: 0, or -ENOENT if the name is unknown
 */
int ht_btf_struct_size(const HtBtf *btf, const char *name, uint32_t *size);

/**
 * ht_btf_field: find a member
 * @btf: the table
 * @name: tag of a structure or union, or the name of a typedef of one.  If
 *        several types have the name, the first one counts, as in the kernel.
 * @path: name of the member.  Dots select members of members.  Members of
 *        anonymous members are found directly.  A number in brackets selects an
 *        element: "buffers[2].page".
 * @field: filled in
 *
 * Pointers are not followed: a path must stay within the structure.
 *
 * Returns: 0; -ENOENT if there is no such structure or member; -EINVAL if the
 * path is malformed, the index is beyond the array, the member exceeds its
 * structure, the size of its type is unknown, or the member is a bit field that
 * cannot be read.  Such a bit field has more than 64 bits, or is an array, or
 * does not begin at a byte in BTF of old tools, which have its width in its
 * type.
 */
int ht_btf_field(const HtBtf *btf, const char *name, const char *path,
                 HtBtfField *field);

/**
 * ht_btf_offset: get the offset and size of a member
 * @btf: the table
 * @name: as for ht_btf_field()
 * @path: as for ht_btf_field()
 * @offset: set to its offset in bytes
 * @size: set to its size in bytes; or NULL
 *
 * Returns: as ht_btf_field(); -EINVAL also for a bit field
 */
int ht_btf_offset(const HtBtf *btf, const char *name, const char *path,
                  uint32_t *offset, uint32_t *size);

/**
 * ht_btf_field_value: get a field's value from a copy of its structure
 * @field: an integer, enumeration, pointer or bit field of at most 8 bytes
 * @copy: copy of the structure
 * @size: size of @copy in bytes
 * @value: set to the value; signed values are sign-extended
 *
 * Returns: 0; -ERANGE if the field lies beyond @size; -EINVAL if it is neither
 * a bit field nor a single value of 1, 2, 4 or 8 bytes
 */
int ht_btf_field_value(const HtBtfField *field, const void *copy, size_t size,
                       uint64_t *value);

/**
 * ht_btf_enum: get the value of an enumerator
 * @btf: the table
 * @name: name, for example "TRACE_FN"; if it occurs several times, the first
 *        one counts
 * @value: set to the value; a value of 4 bytes is read as a signed number
 *
 * Returns: 0, or -ENOENT if the name is unknown
 */
int ht_btf_enum(const HtBtf *btf, const char *name, int64_t *value);

#endif
