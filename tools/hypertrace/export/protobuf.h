/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write the wire format of protocol buffers
 *
 * A message is a GString, to which the functions append fields.
 */
#ifndef HYPERTRACE_TOOL_PROTOBUF_H
#define HYPERTRACE_TOOL_PROTOBUF_H

#include <glib.h>
#include <stdint.h>

/**
 * ht_pb_uint: append an int32, int64, uint32, uint64, bool or enum
 * @field: number of the field
 * @v: value; a negative one must be sign-extended to 64 bits
 */
void ht_pb_uint(GString *b, unsigned field, uint64_t v);

/**
 * ht_pb_double: append a double
 * @field: number of the field
 * @v: value
 */
void ht_pb_double(GString *b, unsigned field, double v);

/**
 * ht_pb_bytes: append bytes or a string
 * @field: number of the field
 * @data: the bytes; a string must be UTF-8
 * @len: number of bytes
 */
void ht_pb_bytes(GString *b, unsigned field, const void *data, gsize len);

/**
 * ht_pb_str: append a constant string
 * @field: number of the field
 * @s: string, which must be UTF-8
 */
void ht_pb_str(GString *b, unsigned field, const char *s);

/**
 * ht_pb_guest: append a string that is not trusted
 * @field: number of the field
 * @s: any bytes; NUL and bytes that are not UTF-8 become U+FFFD
 * @len: number of bytes
 */
void ht_pb_guest(GString *b, unsigned field, const char *s, gsize len);

/**
 * ht_pb_begin: begin a nested message
 * @field: number of the field
 *
 * Returns: position, for ht_pb_end()
 */
gsize ht_pb_begin(GString *b, unsigned field);

/**
 * ht_pb_end: end the innermost nested message
 * @begin: return value of ht_pb_begin()
 *
 * The bytes of the nested message move if its length needs more than one byte.
 */
void ht_pb_end(GString *b, gsize begin);

#endif /* HYPERTRACE_TOOL_PROTOBUF_H */
