/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find events, or lines of the log, while they are recorded
 *
 *   sched:sched_process_exec where filename ~ "*login"
 *   log:Kernel panic
 *
 * The argument of an option describes the match, as in these examples. It is a
 * list of events as for ht_names_new(), and then may have "where" and a
 * condition as for ht_where_new(). Or it is "log:" and a regular expression
 * for lines of the kernel's log, as for ht_grep_new(). Only one thread at a
 * time may use a match, except in functions that state another context.
 */
#ifndef HYPERTRACE_MODEL_MATCH_H
#define HYPERTRACE_MODEL_MATCH_H

#include "hypertrace/ftrace-follow.h"
#include "hypertrace/ftrace-format.h"
#include "hypertrace/recording-log.h"

typedef struct HtMatch HtMatch;

/**
 * ht_match_new: parse an option
 * @option: name of the option, for messages; must outlive the match
 * @text: the option's argument
 * @error: set if @text is malformed
 *
 * Returns: the match, for ht_match_free(); NULL on failure
 */
HtMatch *ht_match_new(const char *option, const char *text, GError **error);

/**
 * ht_match_free: free a match
 * @m: match or NULL
 */
void ht_match_free(HtMatch *m);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtMatch, ht_match_free)

/**
 * ht_match_events: get the list of events, without names that begin with '!'
 *
 * Returns: the names, separated by commas; "" if the match is for lines of the
 *          log
 */
const char *ht_match_events(const HtMatch *m);

/** ht_match_is_log: test whether the match is for lines of the kernel's log */
bool ht_match_is_log(const HtMatch *m);

/**
 * ht_match_check: check that the events and their fields exist
 * @formats: formats of the guest's events
 * @error: set if a name in the list matches no event; or as ht_where_check():
 *         if the condition has a field that is in none of the listed events,
 *         or compares a field that is a number with a text
 *
 * Returns: true if @error was not set; always for a match for lines of the log
 */
bool ht_match_check(const HtMatch *m, const HtFtFormats *formats,
                    GError **error);

/**
 * ht_match_formats: parse and set formats; without formats, no event matches
 * @m: match or NULL
 * @text: formats as in a recording
 * @size: size of @text in bytes
 *
 * If @text is not valid, the earlier formats remain. This does nothing if the
 * match is for lines of the log.
 */
void ht_match_formats(HtMatch *m, const char *text, gsize size);

typedef struct HtMatchFormats HtMatchFormats;

/**
 * ht_match_formats_new: parse formats for a match
 * @m: match or NULL
 * @text: as for ht_match_formats()
 * @size: size of @text in bytes
 *
 * Returns: the formats, for ht_match_formats_set(); NULL if @text is not valid,
 * if @m is NULL, or if @m is for lines of the log
 *
 * Context: another thread may use @m meanwhile
 */
HtMatchFormats *ht_match_formats_new(const HtMatch *m, const char *text,
                                     gsize size);

/**
 * ht_match_formats_set: set parsed formats
 * @m: match or NULL
 * @f: formats that were made for @m; NULL: keep the earlier ones
 *
 * Returns: the earlier formats, for ht_match_formats_free(); NULL if there were
 * no formats, or if @f is NULL
 */
HtMatchFormats *ht_match_formats_set(HtMatch *m, HtMatchFormats *f);

/**
 * ht_match_formats_free: free formats
 * @f: formats or NULL
 *
 * Context: any thread
 */
void ht_match_formats_free(HtMatchFormats *f);

/**
 * ht_match_piece: count the events of a piece that match
 * @m: match or NULL
 * @p: piece. The pieces of a processor must be passed in the order of the ring.
 * @from_ns: guest time in nanoseconds; earlier events do not match
 */
void ht_match_piece(HtMatch *m, const HtFtPiece *p, uint64_t from_ns);

/**
 * ht_match_line: count a record of the kernel's log if it matches
 * @m: match or NULL
 * @r: record
 */
void ht_match_line(HtMatch *m, const HtLogRecord *r);

/**
 * ht_match_count: get the number of events or lines that matched since the
 *                 start or ht_match_forget()
 * @m: match, or NULL for 0
 */
uint64_t ht_match_count(const HtMatch *m);

/**
 * ht_match_skipped: get the number of events that were not checked, because
 *                   the formats were not known yet
 * @m: match
 */
uint64_t ht_match_skipped(const HtMatch *m);

/**
 * ht_match_text: describe the first event or line that matched since the start
 *                or ht_match_forget()
 *
 * Returns: the description, owned by the match; safe for a terminal; NULL if
 * nothing has matched
 */
const char *ht_match_text(const HtMatch *m);

/**
 * ht_match_forget: set the number of events or lines that matched to 0, and
 *                  forget the description of the first one
 * @m: match
 */
void ht_match_forget(HtMatch *m);

#endif /* HYPERTRACE_MODEL_MATCH_H */
