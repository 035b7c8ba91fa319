/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a print format as a program: what print-compile.c makes and
 * print-fmt.c runs
 */
#ifndef HYPERTRACE_TOOL_PRINT_PROGRAM_H
#define HYPERTRACE_TOOL_PRINT_PROGRAM_H

#include "print-fmt.h"

typedef enum HtPrintOp {
    HT_OP_CONSTANT,             /* @value, as a text @text */
    HT_OP_FIELD,                /* @field */
    HT_OP_LENGTH,               /* bytes of @field */
    HT_OP_CAST,                 /* @a to @bytes, with or without sign */
    HT_OP_UNARY,                /* @value is the operator, of @a */
    HT_OP_BINARY,               /* likewise, of @a and @b */
    HT_OP_SELECT,               /* @a ? @b : @c */
    HT_OP_ELEMENT,              /* @field[@a] */
    HT_OP_FLAGS,                /* names of @a's bits, @text between */
    HT_OP_SYMBOLIC,             /* name of @a */
    HT_OP_HEX,                  /* @a bytes of @field, @text between */
    HT_OP_ARRAY,                /* @a elements of @field, of @b bytes */
} HtPrintOp;

/* Operators of two characters: the first one, and the second one above it */
#define HT_OP2(x, y)    ((x) | (y) << 8)

typedef struct HtPrintName {
    uint64_t value;
    char *text;
} HtPrintName;

typedef struct HtPrintNode HtPrintNode;
struct HtPrintNode {
    HtPrintOp op;
    HtPrintNode *a, *b, *c;
    uint64_t value;
    char *text;
    unsigned bytes;
    bool is_signed;
    HtFtField field;            /* names are not kept */
    GArray *names;              /* of HtPrintName */
};

/**
 * HtPrintPiece: a part of the format: text, then maybe a conversion
 * @text: as it is
 * @conversion: 0, or d u x X o c s, p for %p, S and s' for symbols
 * @symbol: of %p: 'S' with offset, 's' without, 0 for a number
 * @bytes: of the integer: 1, 2, 4, 8
 * @flags: printf's, without '*'
 * @width: least; -1: none
 * @precision: -1: none
 * @width_arg: of '*', or NULL
 * @precision_arg: likewise
 * @arg: what is converted
 */
typedef struct HtPrintPiece {
    char *text;
    gsize text_len;
    char conversion;
    char symbol;
    unsigned bytes;
    char flags[6];
    int width;
    int precision;
    HtPrintNode *width_arg;
    HtPrintNode *precision_arg;
    HtPrintNode *arg;
} HtPrintPiece;

struct HtPrint {
    GArray *pieces;             /* of HtPrintPiece */
    GString *scratch;
};

/* Expressions are no deeper, whatever a guest's format says. */
#define HT_PRINT_DEPTH  32

#endif /* HYPERTRACE_TOOL_PRINT_PROGRAM_H */
