/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: internal interface of the parser of print formats
 *
 * print-expression.c parses expressions, print-call.c the calls of the kernel's
 * functions in them. On failure, functions that return a node return NULL and
 * set &HtPrintParse.error.
 */
#ifndef HYPERTRACE_TOOL_PRINT_PARSE_H
#define HYPERTRACE_TOOL_PRINT_PARSE_H

#include "print/print-program.h"

/**
 * PpType: an integer type of C, or a pointer
 * @bytes: size; 0 if not known, so that a cast keeps the operand's type
 * @is_signed: whether the type is signed
 * @pointee: size of the objects that a pointer points to; 0 if not known, or
 *           for an integer
 */
typedef struct PpType {
    uint8_t bytes;
    bool is_signed;
    uint8_t pointee;
} PpType;

/**
 * pp_fail() - set the parser's error, unless it has one, and free @n; returns
 * NULL
 */
HtPrintNode *pp_fail(HtPrintParse *p, HtPrintNode *n, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/**
 * pp_expect() - consume the operator @op; if it is not next, set the error
 * and return false
 */
bool pp_expect(HtPrintParse *p, const char *op);

/**
 * pp_word() - consume an identifier, and return it, to be freed; NULL if the
 * next token is not an identifier
 */
char *pp_word(HtPrintParse *p);

/**
 * pp_accept_word() - consume the identifier @word if it is next; returns
 * whether it was
 */
bool pp_accept_word(HtPrintParse *p, const char *word);

/**
 * pp_type() - consume a type
 * @p: position
 * @t: set to the type
 * @known: set to false if the identifier may be another name than a type's
 *
 * Return: false if there is no identifier that may be a type
 */
bool pp_type(HtPrintParse *p, PpType *t, bool *known);

/**
 * pp_unary() - parse an operand with its casts and unary operators, up to the
 * next binary operator outside of parentheses
 */
HtPrintNode *pp_unary(HtPrintParse *p);

/**
 * pp_node() - make a node with operation @op and the type int
 */
HtPrintNode *pp_node(HtPrintParse *p, HtPrintOp op);

/**
 * pp_constant() - make a node for the constant @v of type @t
 */
HtPrintNode *pp_constant(HtPrintParse *p, uint64_t v, PpType t);

/**
 * pp_is_constant() - return true if @n is a numeric constant, or if @n is NULL
 */
bool pp_is_constant(const HtPrintNode *n);

/**
 * pp_type_of() - get the type in C of a node's value
 */
PpType pp_type_of(const HtPrintNode *n);

/**
 * pp_field() - make a node with operation @op on the event's field @name
 */
HtPrintNode *pp_field(HtPrintParse *p, HtPrintOp op, const char *name);

/**
 * pp_place() - replace @n, whose value is the address of a field, by a node
 * with operation @op on that field
 */
HtPrintNode *pp_place(HtPrintParse *p, HtPrintOp op, HtPrintNode *n);

/**
 * pp_binary() - make a node for the binary operator @op: a character, or an
 * HT_OP2(); frees the operands on failure, and returns NULL if one is NULL
 */
HtPrintNode *pp_binary(HtPrintParse *p, unsigned op, HtPrintNode *a,
                       HtPrintNode *b);

/**
 * pp_call() - parse the arguments in a call of the function @name, and make a
 * node for the call
 */
HtPrintNode *pp_call(HtPrintParse *p, const char *name);

/**
 * pp_sizeof() - parse the operand of "sizeof", and make a constant of its size
 */
HtPrintNode *pp_sizeof(HtPrintParse *p);

#endif /* HYPERTRACE_TOOL_PRINT_PARSE_H */
