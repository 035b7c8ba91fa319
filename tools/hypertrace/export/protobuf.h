/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the wire format of protocol buffers, written
 */
#ifndef HYPERTRACE_TOOL_PROTOBUF_H
#define HYPERTRACE_TOOL_PROTOBUF_H

#include <glib.h>
#include <stdint.h>

/* Messages are appended to a GByteArray; each function adds one field. */

/**
 * ht_pb_uint: int32, int64, uint32, uint64, bool or an enum
 * @b: message
 * @field: number
 * @v: value; a negative one is cast, as the format wants it
 */
void ht_pb_uint(GByteArray *b, unsigned field, uint64_t v);

/**
 * ht_pb_double: a double
 * @b: message
 * @field: number
 * @v: value
 */
void ht_pb_double(GByteArray *b, unsigned field, double v);

/**
 * ht_pb_bytes: bytes or a string
 * @b: message
 * @field: number
 * @data: the bytes; a string's must be UTF-8
 * @len: how many
 */
void ht_pb_bytes(GByteArray *b, unsigned field, const void *data, gsize len);

/**
 * ht_pb_str: a string of the program's own
 */
void ht_pb_str(GByteArray *b, unsigned field, const char *s);

/**
 * ht_pb_guest: a string that anybody may have written; made UTF-8
 */
void ht_pb_guest(GByteArray *b, unsigned field, const char *s, gsize len);

/**
 * ht_pb_begin: begin a message inside the message
 * @b: message
 * @field: number
 *
 * Returns: what ht_pb_end() wants to know
 */
gsize ht_pb_begin(GByteArray *b, unsigned field);

/**
 * ht_pb_end: end the message that was begun last
 * @b: message
 * @begin: what ht_pb_begin() returned
 *
 * Its bytes are moved if its size needs more than one byte.
 */
void ht_pb_end(GByteArray *b, gsize begin);

#endif /* HYPERTRACE_TOOL_PROTOBUF_H */
