/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print the fields of an event of a CTF trace as text or JSON
 */
#ifndef HYPERTRACE_TOOL_CTF_FIELDS_H
#define HYPERTRACE_TOOL_CTF_FIELDS_H

#include <babeltrace2/babeltrace.h>
#include <glib.h>

#include "cli/json.h"

/**
 * ht_ctf_put_fields: append " name=value" of each member, escaped for terminals
 * @out: appended to. Long strings are cut. Once the line has about 8 KiB,
 *       further members and array elements are left out.
 * @f: a structure
 */
void ht_ctf_put_fields(GString *out, const bt_field *f);

/**
 * ht_ctf_json_fields: append each member, in full, to a JSON object
 * @j: an object that is open
 * @f: a structure
 */
void ht_ctf_json_fields(HtJson *j, const bt_field *f);

#endif /* HYPERTRACE_TOOL_CTF_FIELDS_H */
