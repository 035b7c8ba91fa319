/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print the fields of any event
 */
#ifndef HYPERTRACE_TOOL_FIELDS_H
#define HYPERTRACE_TOOL_FIELDS_H

#include "cli/json.h"
#include "model/model.h"

/**
 * ht_fields_text: append all fields as name=value, with spaces between them
 * @out: appended to; not escaped. If the event's format is not known, the bytes
 *       after the event's header are appended in hexadecimal.
 */
void ht_fields_text(const HtModelEvent *ev, GString *out);

/**
 * ht_fields_value: append one field's value
 * @f: field
 * @out: appended to; not escaped
 */
void ht_fields_value(const HtFtField *f, const HtModelEvent *ev, GString *out);

/**
 * ht_fields_json: append all fields as an object's members
 * @j: inside an object
 *
 * Numbers and strings become numbers and strings of JSON, arrays become arrays
 * of numbers. Fields of other types become strings of hexadecimal digits. If
 * the event's format is not known, the only member is "bytes", with the bytes
 * after the event's header in hexadecimal.
 */
void ht_fields_json(const HtModelEvent *ev, HtJson *j);

#endif /* HYPERTRACE_TOOL_FIELDS_H */
