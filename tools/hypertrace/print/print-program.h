/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a print format as a program
 *
 * print-compile.c makes it, in a process of its own (print-parser.c), from
 * where it comes as bytes (print-wire.c); print-fmt.c runs it.
 */
#ifndef HYPERTRACE_TOOL_PRINT_PROGRAM_H
#define HYPERTRACE_TOOL_PRINT_PROGRAM_H

#include "print/print-fmt.h"

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
    uint32_t field_nr;          /* of the event's, behind these common ones */
    HtFtField field;            /* its names are not kept */
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
};

/* Expressions are no deeper, whatever a guest's format says. */
#define HT_PRINT_DEPTH  32

#define HT_PRINT_NO_FIELD       UINT32_MAX

/**
 * ht_print_node_new() - make a node
 * @op: what it is; the rest is to be filled in
 *
 * Return: for ht_print_node_free(), which frees those below as well
 */
HtPrintNode *ht_print_node_new(HtPrintOp op);
void ht_print_node_free(HtPrintNode *n);

/**
 * ht_print_set_field() - let a node use a field
 * @n: the node
 * @e: the event class
 * @name: of a field of its own or a common one
 *
 * Return: false if there is none
 */
bool ht_print_set_field(HtPrintNode *n, const HtFtEvent *e, const char *name);

/** ht_print_set_field_nr() - the same, by &HtPrintNode.field_nr */
bool ht_print_set_field_nr(HtPrintNode *n, const HtFtEvent *e, uint32_t nr);

/** ht_print_names_new() - make an array of HtPrintName, whose texts it frees */
GArray *ht_print_names_new(void);

/** ht_print_empty() - make a program that prints nothing yet */
HtPrint *ht_print_empty(void);

/**
 * ht_print_compile() - compile the print format of an event class
 * @e: need not stay
 *
 * A format may crash libtraceevent, which parses it: ht_print_new() does it
 * elsewhere.
 *
 * Return: for ht_print_free(); NULL if it is not understood
 */
HtPrint *ht_print_compile(const HtFtEvent *e);

/**
 * ht_print_encode() - make bytes of a program
 *
 * Return: its bytes
 */
GBytes *ht_print_encode(const HtPrint *print);

/**
 * ht_print_decode() - make a program of bytes
 * @bytes: any; who wrote them is not trusted
 * @e: the event class that it prints
 *
 * Return: for ht_print_free(); NULL if it is none
 */
HtPrint *ht_print_decode(GBytes *bytes, const HtFtEvent *e);

#endif /* HYPERTRACE_TOOL_PRINT_PROGRAM_H */
