/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: Linux' trace events as events of hypertrace's classes
 *
 * The payload of each begins with the kernel's common_pid and common_flags,
 * then come the fields that the event's format tells.  An event without a
 * format has its type and its bytes instead.
 */
#ifndef HYPERTRACE_FTRACE_CLASS_H
#define HYPERTRACE_FTRACE_CLASS_H

#include "hypertrace/class.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-page.h"

/**
 * ht_ft_class_new: make the class of an event
 * @name: of any length and content; what no class can be named is replaced
 * @e: its format, or NULL: common_pid, common_flags, common_type and bytes
 *
 * Fields that a class has no room for are left out, and names that a class
 * or its readers cannot have are changed.
 *
 * Returns: a class with id 0, for ht_class_free()
 */
HtClass *ht_ft_class_new(const char *name, const HtFtEvent *e);

/**
 * ht_ft_class_payload: append what an event of such a class says
 * @out: appended to; the payload of ht_ft_class_new(..., @e)
 * @e: as there
 * @r: the event, from anybody
 *
 * Fields that are not within the record are 0 or empty.  Texts are made valid
 * UTF-8.  Fields may share a record's bytes: see @max.
 *
 * @max: bytes that may be appended
 *
 * Returns: false, with nothing appended, if that would be more
 */
bool ht_ft_class_payload(GByteArray *out, const HtFtEvent *e,
                         const HtFtRecord *r, size_t max);

/**
 * ht_ft_put_text: append a text field's payload
 * @out: appended to
 * @s: made valid UTF-8, and cut if it is longer than a field may be
 * @len: bytes
 */
void ht_ft_put_text(GByteArray *out, const char *s, size_t len);

#endif /* HYPERTRACE_FTRACE_CLASS_H */
