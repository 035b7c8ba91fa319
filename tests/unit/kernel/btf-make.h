/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make BTF for tests
 *
 * Types are numbered from 1 in the order in which they are made; a type may
 * refer to a type that is made later.
 */
#ifndef BTF_MAKE_H
#define BTF_MAKE_H

#include "hypertrace/base.h"

enum {
    BM_INT = 1, BM_PTR, BM_ARRAY, BM_STRUCT, BM_UNION, BM_ENUM, BM_FWD,
    BM_TYPEDEF, BM_VOLATILE, BM_CONST, BM_RESTRICT, BM_FUNC, BM_FUNC_PROTO,
    BM_VAR, BM_DATASEC, BM_FLOAT, BM_DECL_TAG, BM_TYPE_TAG, BM_ENUM64,
};

typedef struct BtfMake {
    GByteArray *types;
    GByteArray *names;
    uint32_t n;
    /* offset in @types of the type that was made last */
    size_t last;
} BtfMake;

void bm_init(BtfMake *m);

/* Return the finished BTF, and free the content of @m. */
GBytes *bm_finish(BtfMake *m);

/*
 * Append the words with which each kind of type begins. Return the number of
 * the type.
 */
uint32_t bm_type(BtfMake *m, const char *name, unsigned kind, unsigned vlen,
                 bool flag, uint32_t size);

/* Append a 4-byte word to the types. */
void bm_u32(BtfMake *m, uint32_t v);
uint32_t bm_name(BtfMake *m, const char *name);

uint32_t bm_int(BtfMake *m, const char *name, unsigned size, bool is_signed);
uint32_t bm_ptr(BtfMake *m, uint32_t to);
uint32_t bm_array(BtfMake *m, uint32_t of, uint32_t n);

/*
 * Make a structure or union. Until the next type is made, bm_member() and
 * bm_bits() add its members.
 */
uint32_t bm_struct(BtfMake *m, const char *name, uint32_t size);
uint32_t bm_union(BtfMake *m, const char *name, uint32_t size);
void bm_member(BtfMake *m, const char *name, uint32_t type, uint32_t offset);
void bm_bits(BtfMake *m, const char *name, uint32_t type, uint32_t bit,
             unsigned bits);

/*
 * Make an enumeration. Until the next type is made, bm_value() adds its
 * values.
 */
uint32_t bm_enum(BtfMake *m, const char *name);
uint32_t bm_enum64(BtfMake *m, const char *name);
void bm_value(BtfMake *m, const char *name, int64_t value);

#endif
