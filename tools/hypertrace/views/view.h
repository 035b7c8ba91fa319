/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse the options and arguments that several commands share: a
 * recording, a selection of its events, a form of output; and read the selected
 * events
 */
#ifndef HYPERTRACE_TOOL_VIEW_H
#define HYPERTRACE_TOOL_VIEW_H

#include "cli/output.h"
#include "model/host-clock.h"
#include "model/model.h"
#include "model/patterns.h"
#include "model/where.h"

/**
 * HtView: the selection and form of output that a command line asks for
 * @dir: the recording
 * @json: JSON instead of text
 * @no_pager: use no pager on a terminal
 * @boot: only this boot, counted from 1; 0 for all
 * @from_ns: skip earlier events; nanoseconds by the recording's own clock: the
 *           guest's; in a host's part, the host's; for a trace of xentrace,
 *           since its begin
 * @to_ns: skip later events; nanoseconds by the clock of @from_ns
 * @host: converts times of events to the host's clock; NULL: events keep the
 *        times of the recording
 * @shift: with @host: nanoseconds added to the time of each event
 * @undated: with @host: number of events left out because their host time is
 *           not known
 */
typedef struct HtView {
    char *dir;
    gboolean json;
    gboolean no_pager;
    gint boot;
    uint64_t from_ns;
    uint64_t to_ns;
    HtHostClock *host;
    int64_t shift;
    uint64_t undated;

    /*< private >*/
    char *colour;
    char *output;
    char *clock;
    char *boot_text;
    char *from;
    char *to;
    char *cpu;
    char *event;
    char *task;
    char *where_text;
    char *grep_text;
    /* condition of --where; NULL: it was not given */
    HtWhere *where;
    /* regular expression of --grep; NULL: it was not given */
    GRegex *grep;
    /* buffer for an event's text, in which @grep searches */
    GString *text;
    /*
     * @from_ns, or @to_ns, still counts backward from the end of the recording
     * or, with @boot, of that boot; ht_view_end() makes the time absolute
     */
    bool from_end;
    bool to_end;
    /* of unsigned: numbers of the processors of --cpu; NULL: all */
    GArray *cpus;
    HtNames *events;
    HtNames *tasks;
    bool several;
    /* an option other than --from and --to selects events */
    bool some;
    bool found;
    /* ht_view_next() must not print that the options select no event */
    bool told;
} HtView;

/* Groups of options and arguments, of which each command takes some */
enum {
    HT_VIEW_TIME   = 1,         /* the options --from and --to */
    HT_VIEW_EVENT  = 2,         /* the options --event, --where and --grep */
    HT_VIEW_CPU    = 4,         /* --cpu */
    HT_VIEW_TASK   = 8,         /* --task */
    HT_VIEW_BOOT   = 16,        /* --boot */
    /* the options --output, --json, --color and --no-pager */
    HT_VIEW_OUTPUT = 32,
    /* arguments: the names of two events, before the recording */
    HT_VIEW_PAIR   = 128,
    HT_VIEW_CLOCK  = 256,       /* --clock */
    HT_VIEW_MANY   = 512,       /* arguments: any number of recordings */
    /* the option --output, but not --json, --color and --no-pager */
    HT_VIEW_FILE   = 1024,
    /* the option --grep, but not --event and --where */
    HT_VIEW_GREP   = 2048,

    HT_VIEW_ALL = HT_VIEW_TIME | HT_VIEW_EVENT | HT_VIEW_CPU | HT_VIEW_TASK |
                  HT_VIEW_BOOT | HT_VIEW_OUTPUT,
};

/**
 * ht_view_parse: parse a command line
 * @v: zeroed; filled in
 * @argc: number of entries in @argv; on return, without the options
 * @argv: the command's name and its arguments; on return, without the options,
 *        and with @v->dir added if no recording was named
 * @summary: the first sentence of --help
 * @which: HT_VIEW_*
 * @own: the command's own options, or NULL
 * @status: set to the exit status if parsing fails
 *
 * If no recording is named, the function chooses the newest recording in the
 * working directory, by the time of its file "info", and prints its name on
 * standard error.
 *
 * Returns: false if the command must end with @status
 */
bool ht_view_parse(HtView *v, int *argc, char **argv, const char *summary,
                   unsigned which, const GOptionEntry *own, int *status);

/**
 * ht_view_text: append the text of an event, escaped for terminals
 * @fields: name=value instead of the kernel's own format
 * @raw: buffer for the unescaped text; overwritten
 * @out: appended to, without a newline at the end. Without @fields, the text of
 *       a stack has several lines
 */
void ht_view_text(HtModel *m, const HtModelEvent *ev, bool fields,
                  GString *raw, GString *out);

/**
 * ht_view_trouble: report on standard error what a recording lacks
 * @m: model; read to its end
 *
 * ht_view_next() calls this after the last event.
 */
void ht_view_trouble(HtModel *m);

/**
 * ht_view_on_host: test whether the option --clock chooses the host's clock
 * @v: view
 */
bool ht_view_on_host(const HtView *v);

/**
 * ht_view_use_host: choose the clock of times
 * @v: view; not open
 * @host: true: as with --clock=host, and ht_view_open() does not check the
 *        values of --event, --where and --cpu; false: as without --clock
 */
void ht_view_use_host(HtView *v, bool host);

/**
 * ht_view_programs: whether the options let a command show events of programs
 *
 * Returns: false if an option selects the kernel's events by times, boots,
 * processors, tasks, fields or texts, or asks for the guest's clock
 */
bool ht_view_programs(const HtView *v);

/**
 * ht_view_free: free the members of a view, but not @v itself
 * @v: view
 */
void ht_view_free(HtView *v);

/**
 * ht_view_output: open the output that the options choose
 * @o: set up by the function
 *
 * Starts a pager if the output is a terminal, unless --output or --no-pager is
 * given. Ends the process if the file of --output cannot be created.
 */
void ht_view_output(const HtView *v, HtOutput *o);

/**
 * ht_view_open: open the recording and check the selection against it
 * @v: view; @v->host is set if the host's clock was chosen
 * @errp: set on failure; also if the recording does not have an event, a field
 *        or a boot that the user named, or any of the named processors
 *
 * Times that count back from the end of the recording or, with @v->boot, of
 * that boot become absolute.
 *
 * Returns: the model, or NULL
 */
HtModel *ht_view_open(HtView *v, GError **errp);

/**
 * ht_view_next: get the next selected event
 * @m: its model
 * @ev: filled in
 *
 * Returns: false after the last one
 */
bool ht_view_next(HtView *v, HtModel *m, HtModelEvent *ev);

/**
 * ht_view_event: whether --event, if given, selects events of this name
 * @system: the event's system
 * @name: the event's name
 */
bool ht_view_event(const HtView *v, const char *system, const char *name);

/** ht_view_selects: whether an option other than --boot selects events */
bool ht_view_selects(const HtView *v);

/**
 * ht_view_filters: whether an option selects events by something other than
 * their times and boots
 */
bool ht_view_filters(const HtView *v);

/** ht_view_times: whether --from or --to is given */
bool ht_view_times(const HtView *v);

/**
 * ht_view_end: make times of --from and --to that count back from the end
 *              absolute
 * @end: the end, in nanoseconds
 * @errp: set if --from is later than --to
 *
 * ht_view_open() calls this if a time counts back.
 *
 * Returns: false on failure
 */
bool ht_view_end(HtView *v, uint64_t end, GError **errp);

/**
 * ht_view_section: append a heading for a new boot, or for a new segment of the
 *                  guest's clock in the same boot
 * @ev: first event of the new boot or segment
 * @boot: the boot of the previous event
 * @out: appended to, without a newline
 */
void ht_view_section(const HtModelEvent *ev, unsigned boot, GString *out);

/**
 * ht_view_gap: append a line about the events that were lost before an event
 * @ev: event; @ev.rec.lost_before is set
 * @out: appended to, without a newline
 */
void ht_view_gap(const HtModelEvent *ev, GString *out);

/**
 * ht_view_finish: finish the output, and print an error if there was one
 * @ok: false if the command failed; the file of --output is then dropped
 * @error: the reason, or NULL; freed
 *
 * Returns: the exit status of the command
 */
int ht_view_finish(HtOutput *o, bool ok, GError *error);

#endif /* HYPERTRACE_TOOL_VIEW_H */
