/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: conditions on the fields of events
 *
 *   prev_state != 0 && next_comm ~ "kworker*"
 *
 * Operators, from the weakest: ||, &&, !, and == != < <= > >= & ~ between a
 * field and a number or a text; ~ matches a pattern with '*' and '?'. A field
 * alone is true if it is not 0. Parentheses group. The fields "cpu", "pid" and
 * "comm" are those of every event, unless it has its own. A comparison with a
 * field that an event does not have is false.
 */
#ifndef HYPERTRACE_MODEL_WHERE_H
#define HYPERTRACE_MODEL_WHERE_H

#include "model/model.h"

typedef struct HtWhere HtWhere;

/**
 * ht_where_new() - understand a condition
 * @text: see above
 * @error: set to the place that is not understood
 *
 * Return: for ht_where_free(); NULL on failure
 */
HtWhere *ht_where_new(const char *text, GError **error);
void ht_where_free(HtWhere *w);

/**
 * ht_where_check() - does any event of a recording have all these fields?
 * @formats: of the recording
 * @error: set to a field that no event has, and to names that are near it
 */
bool ht_where_check(const HtWhere *w, const HtFtFormats *formats,
                    GError **error);

/** ht_where_is_true() - does the condition hold for an event? */
bool ht_where_is_true(const HtWhere *w, const HtModelEvent *ev);

#endif
