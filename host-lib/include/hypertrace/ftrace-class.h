/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: describe Linux's trace events by hypertrace's classes
 *
 * The payload of an event begins with the kernel's common_pid and common_flags.
 * The fields of the event's format follow.  An event without a format has
 * common_type and the bytes after the kernel's common fields instead.
 */
#ifndef HYPERTRACE_FTRACE_CLASS_H
#define HYPERTRACE_FTRACE_CLASS_H

#include "hypertrace/class.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-page.h"

/**
 * ht_ft_class_new: make the class of an event
 * @name: name of the event, not empty; characters that a class name cannot have
 *        are replaced, and a longer name than HT_CLASS_NAME_MAX is cut
 * @e: the event's format; NULL makes the class of events without a format,
 *     which has common_pid, common_flags, common_type and bytes
 *
 * Fields beyond the maximum of a class are left out.  Field names that a class
 * or a reader does not support are changed.
 *
 * Returns: a class with id 0, for ht_class_free()
 */
HtClass *ht_ft_class_new(const char *name, const HtFtEvent *e);

/**
 * ht_ft_class_payload: append the payload of an event
 * @out: the payload of class ht_ft_class_new(..., @e) is appended to this
 * @e: the event's format, or NULL
 * @r: the event; its content is not trusted
 * @max: maximum number of bytes to append; several fields of a record may refer
 *       to the same bytes, so the payload can be larger than the record
 *
 * Fields that are not within the record are 0 or empty.  Texts are made valid
 * UTF-8.
 *
 * Returns: false, with nothing appended, if the payload is larger than @max
 */
bool ht_ft_class_payload(GByteArray *out, const HtFtEvent *e,
                         const HtFtRecord *r, size_t max);

/**
 * ht_ft_put_text: append a text field's payload
 * @out: the payload is appended to this
 * @s: the text, or NULL for an empty text; it is made valid UTF-8, and cut to
 *     64 KiB - 1
 * @len: length of @s in bytes
 */
void ht_ft_put_text(GByteArray *out, const char *s, size_t len);

#endif /* HYPERTRACE_FTRACE_CLASS_H */
