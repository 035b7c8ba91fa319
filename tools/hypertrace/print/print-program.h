/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: compiled print formats
 *
 * print-format.c, print-expression.c and print-call.c compile the format,
 * print-fmt.c runs the program. A program is a list of pieces. The argument of
 * a piece is a tree of nodes, which have types of C.
 */
#ifndef HYPERTRACE_TOOL_PRINT_PROGRAM_H
#define HYPERTRACE_TOOL_PRINT_PROGRAM_H

#include "print/print-fmt.h"

/*
 * HtPrintOp: operation of a node.  Each comment begins with what the node
 * yields: a value, or a text that is printed.
 */
typedef enum HtPrintOp {
    HT_OP_CONSTANT,             /* value: @value, or the string @text */
    HT_OP_FIELD,                /* value: that of @field, or its bytes */
    HT_OP_LENGTH,               /* value: number of bytes of @field */
    HT_OP_CAST,                 /* value: @a, cast to the type of this node */
    /* value: the result of the unary operator @value for the operand @a */
    HT_OP_UNARY,
    /* value: the result of the binary operator @value for @a and @b */
    HT_OP_BINARY,
    HT_OP_SELECT,               /* value: @a ? @b : @c */
    HT_OP_ELEMENT,              /* value: element @a of @field */
    /*
     * text: names of the bits of @a, with @text between them, then the bits
     * without a name in hexadecimal
     */
    HT_OP_FLAGS,
    /* text: name of the value @a, or the value in hexadecimal if it has none */
    HT_OP_SYMBOLIC,
    /* text: name of the value @a, or @text if it has no name */
    HT_OP_NAMED,
    /*
     * text: the first @a bytes of @field in hexadecimal, with @text between
     * them
     */
    HT_OP_HEX,
    /*
     * text: the first @a elements of @field, of @b bytes each, with @text
     * between them
     */
    HT_OP_ARRAY,
    HT_OP_BITMASK,              /* text: @field as hexadecimal words */
    /* text: @field as ranges of bits, such as 0-3 */
    HT_OP_CPUMASK,
    /* text: "disk=NAME, " if @field has a name, else empty */
    HT_OP_DISK,
    /*
     * text: call of the unknown function @text with the argument @a, and with
     * the further arguments in @b, which is NULL or an HT_OP_CALL without
     * @text; @text alone if @value is not 0
     */
    HT_OP_CALL,
} HtPrintOp;

/* Unary operator that reverses the bytes of its operand */
#define HT_OP_SWAP      's'

/* Operator of two characters in a number: the second one is in bits 8 to 15. */
#define HT_OP2(x, y)    ((x) | (y) << 8)

typedef struct HtPrintName {
    uint64_t value;
    char *text;
} HtPrintName;

/**
 * HtPrintNode: part of an expression
 * @op: operation
 * @a: first operand, or NULL
 * @b: second operand, or NULL
 * @c: third operand, or NULL
 * @value: value of a constant; operator of HT_OP_UNARY and HT_OP_BINARY; for
 *         HT_OP_CALL see &enum HtPrintOp
 * @text: see &enum HtPrintOp
 * @bytes: size of the type in which the node is computed: 1, 2, 4 or 8
 * @is_signed: that type is signed
 * @pointee: size of the objects that a pointer points to; 0 if not known
 * @unknown: the constant is a name for which the format gives no value, or was
 *           computed from such names
 * @field: copy of the field that is used, without its name and type
 * @names: array of HtPrintName, or NULL
 *
 * Values have 64 bits and are sign- or zero-extended as their type requires,
 * except the result of "<<" by the width of the type or more.
 */
typedef struct HtPrintNode HtPrintNode;
struct HtPrintNode {
    HtPrintOp op;
    HtPrintNode *a, *b, *c;
    uint64_t value;
    char *text;
    uint8_t bytes;
    bool is_signed;
    uint8_t pointee;
    bool unknown;
    HtFtField field;
    GArray *names;
};

/**
 * HtPrintPiece: literal text, then at most one conversion
 * @text: the literal text
 * @text_len: bytes of @text
 * @conversion: 0, or one of d u x X o c s p
 * @pointer: letters after %p, such as "S", "I6c" or "UB"
 * @bytes: size of the integer: 1, 2, 4 or 8
 * @flags: flags of printf
 * @width: minimum width, or -1
 * @precision: precision, or -1
 * @width_arg: value of a '*' in place of @width, or NULL
 * @precision_arg: value of a '*' in place of @precision, or NULL
 * @is_bare: there are no flags, no width and no precision
 * @arg: the argument
 */
typedef struct HtPrintPiece {
    char *text;
    gsize text_len;
    char conversion;
    char pointer[10];
    unsigned bytes;
    char flags[6];
    int width;
    int precision;
    HtPrintNode *width_arg;
    HtPrintNode *precision_arg;
    bool is_bare;
    HtPrintNode *arg;
} HtPrintPiece;

struct HtPrint {
    GArray *pieces;
};

/*
 * Limits for hostile print formats: value of HtPrintParse.depth, and number of
 * nodes in a program. A long sum such as "a + b + c + ..." is not nested, but
 * its tree may be deeper than HT_PRINT_DEPTH.
 */
#define HT_PRINT_DEPTH          64
#define HT_PRINT_NODES_MAX      8192

/**
 * HtPrintParse: a position in the text of a print format
 * @event: class of the events for which the text names fields
 * @p: next byte to read
 * @end: end of the text
 * @depth: number of calls of ht_print_expression() and pp_unary() that have not
 *         returned
 * @nodes: number of nodes created
 * @calls: number of calls of unknown functions, and of statements that are not
 *         understood, in the present argument
 * @variables: variables of the statement expressions being parsed
 * @error: the first error, to be freed; NULL if there was no error
 */
typedef struct HtPrintParse {
    const HtFtEvent *event;
    const char *p;
    const char *end;
    unsigned depth;
    unsigned nodes;
    unsigned calls;
    struct HtPrintVariable *variables;
    char *error;
} HtPrintParse;

/**
 * ht_print_string() - parse adjacent string literals
 * @p: position
 * @out: set to the characters, to be freed
 *
 * Return: false if there is no string literal; false, with @p->error set, if a
 * literal has no end
 */
bool ht_print_string(HtPrintParse *p, char **out);

/**
 * ht_print_accept() - skip blanks and one operator
 * @p: position
 * @op: the operator
 *
 * Return: false if the operator is not next; blanks are skipped in any case
 */
bool ht_print_accept(HtPrintParse *p, const char *op);

/**
 * ht_print_expression() - parse an expression
 * @p: position
 *
 * Return: the tree, for ht_print_node_free(); NULL with @p->error set
 */
HtPrintNode *ht_print_expression(HtPrintParse *p);

/**
 * ht_print_value() - evaluate an expression for a record
 * @n: the expression
 * @data: the record; NULL if the expression uses no field
 * @size: bytes of the record
 */
uint64_t ht_print_value(const HtPrintNode *n, const uint8_t *data,
                        size_t size);

/**
 * ht_print_pointer() - print an object for a %p with letters after it
 * @letters: &HtPrintPiece.pointer
 * @p: bytes of the object; NULL if @len is 0
 * @len: length of @p
 * @width: number of bytes to print for %ph, of bits for %pb; -1: not given
 * @out: appended to
 */
void ht_print_pointer(const char *letters, const uint8_t *p, size_t len,
                      int width, GString *out);

/**
 * ht_print_mask() - print a bitmask of the kernel
 * @p: bytes of the mask
 * @len: length of @p
 * @ranges: print ranges of bits, such as "0-3,5", instead of hexadecimal words
 * @out: appended to
 */
void ht_print_mask(const uint8_t *p, size_t len, bool ranges, GString *out);

void ht_print_node_free(HtPrintNode *n);

#endif /* HYPERTRACE_TOOL_PRINT_PROGRAM_H */
