/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse and evaluate conditions on the fields of events
 *
 *   prev_state != 0 && next_comm ~ "kworker*"
 *
 * Operators, in the order of increasing precedence: ||, &&, !, and the
 * comparisons == != < <= > >= & ~ !~ of a field with a number or a text. "="
 * means ==, and "=~" means ~. "&" is true if field and number have a common
 * bit. "~" is true if the field's text matches a pattern with '*' and '?', and
 * "!~" if it does not match. A field without an operator is true if it is
 * neither 0 nor empty. Parentheses group. If an event has no field "cpu", the
 * name means the event's processor; likewise "pid" and "common_pid" mean the
 * PID of its task, and "comm" the name of its task. If an event lacks any
 * other field, a comparison with that field is false, and the field without an
 * operator, too.
 */
#ifndef HYPERTRACE_MODEL_WHERE_H
#define HYPERTRACE_MODEL_WHERE_H

#include "model/model.h"
#include "model/patterns.h"

typedef struct HtWhere HtWhere;

/**
 * ht_where_new: parse a condition
 * @text: condition, see above
 * @error: set to a message with the expected token and its place
 *
 * Returns: the condition; NULL on failure
 */
HtWhere *ht_where_new(const char *text, GError **error);

/**
 * ht_where_free: free a condition
 * @w: condition or NULL
 */
void ht_where_free(HtWhere *w);

/**
 * ht_where_check: check that each field of a condition is in some event, and
 *                 can have the value with which it is compared
 * @formats: formats of the recording
 * @events: the events that the condition is for; NULL: all
 * @error: set if none of these events has a field, with similar names; or if a
 *         field that is a number in all of them is compared with a text
 *
 * Returns: false if @error was set
 */
bool ht_where_check(const HtWhere *w, const HtFtFormats *formats,
                    const HtNames *events, GError **error);

/**
 * ht_where_uses: whether a condition contains a field
 * @field: name of the field
 */
bool ht_where_uses(const HtWhere *w, const char *field);

/** ht_where_is_true: evaluate a condition */
bool ht_where_is_true(const HtWhere *w, const HtModelEvent *ev);

#endif
