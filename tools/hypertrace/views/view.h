/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what report, log, top and boot have in common on their command
 * lines: one recording, a choice of its events, a form of output
 */
#ifndef HYPERTRACE_TOOL_VIEW_H
#define HYPERTRACE_TOOL_VIEW_H

#include "cli/output.h"
#include "model/host-clock.h"
#include "model/model.h"
#include "model/patterns.h"
#include "model/where.h"

/**
 * HtView: a command's choice, from its command line
 * @dir: the recording
 * @json: JSON instead of text
 * @boot: only this boot, counted from 1; 0 for all
 * @from_ns: no event before
 * @to_ns: no event after
 * @host: times of events are the host's; NULL: the guest's, as those above are
 * @shift: added to the host's
 * @undated: events that were left out, because nobody knows the host's
 */
typedef struct HtView {
    char *dir;
    gboolean json;
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
    char *from;
    char *to;
    char *cpu;
    char *event;
    char *task;
    char *where_text;
    char *grep_text;
    HtWhere *where;             /* NULL: all */
    GRegex *grep;               /* NULL: all */
    GString *text;              /* of an event, for @grep */
    bool from_end;              /* @from_ns counts back from the end */
    bool to_end;
    GArray *cpus;               /* of unsigned, NULL: all */
    HtNames *events;         /* NULL: all */
    HtNames *tasks;          /* NULL: all */
    bool several;            /* recordings: an event may be in another */
} HtView;

/* Which of the common options a command has */
enum {
    HT_VIEW_TIME   = 1,         /* --from, --to */
    HT_VIEW_EVENT  = 2,         /* --event, --where, --grep */
    HT_VIEW_CPU    = 4,         /* --cpu */
    HT_VIEW_TASK   = 8,         /* --task */
    HT_VIEW_BOOT   = 16,        /* --boot */
    HT_VIEW_OUTPUT = 32,        /* --output, --json, --color */
    HT_VIEW_TWO    = 64,        /* a second recording is welcome */
    HT_VIEW_PAIR   = 128,       /* two events come before the recording */
    HT_VIEW_CLOCK  = 256,       /* --clock */
    HT_VIEW_MANY   = 512,       /* any number of recordings is welcome */
    HT_VIEW_FILE   = 1024,      /* --output alone */
    HT_VIEW_TRACE  = 2048,      /* a host's trace instead of a recording */

    HT_VIEW_ALL = HT_VIEW_TIME | HT_VIEW_EVENT | HT_VIEW_CPU | HT_VIEW_TASK |
                  HT_VIEW_BOOT | HT_VIEW_OUTPUT,
};

/**
 * ht_view_parse: read a command line
 * @v: zeroed; filled in
 * @argc: main()'s; on return what is left besides the name and @v->dir
 * @argv: likewise
 * @summary: of --help: what the command does
 * @which: HT_VIEW_*
 * @own: the command's own options, or NULL
 * @status: set to the exit status if there is nothing to do
 *
 * Returns: false if the command is to end with @status
 */
bool ht_view_parse(HtView *v, int *argc, char **argv, const char *summary,
                   unsigned which, const GOptionEntry *own, int *status);

/**
 * ht_view_text: append the text of an event, escaped for terminals
 * @m: model
 * @ev: event
 * @fields: name=value instead of the kernel's own format
 * @raw: for use meanwhile
 * @out: appended to; the text of a stack has several lines
 */
void ht_view_text(HtModel *m, const HtModelEvent *ev, bool fields,
                  GString *raw, GString *out);

/**
 * ht_view_trouble: tell on standard error what a recording lacks
 * @m: model; read to its end
 *
 * ht_view_next() does so after the last event.
 */
void ht_view_trouble(HtModel *m);

/**
 * ht_view_on_host: whether times shall be the host's
 * @v: view
 */
bool ht_view_on_host(const HtView *v);

/**
 * ht_view_use_host: choose the clock as --clock does
 * @v: view; not open
 * @host: the host's clock, and --event may name events that are not the
 *        kernel's; false: as if --clock was not given
 */
void ht_view_use_host(HtView *v, bool host);

/**
 * ht_view_programs: test whether events of programs are to be shown
 * @v: view
 *
 * Returns: false if an option selects by times, processors, tasks or texts of
 * the kernel's events, or asks for the guest's clock
 */
bool ht_view_programs(const HtView *v);

/**
 * ht_view_free: give up what ht_view_parse() made
 * @v: view
 */
void ht_view_free(HtView *v);

/**
 * ht_view_output: open the output as --output and --color say
 * @v: view
 * @o: set up
 *
 * Ends the program if the file cannot be made.
 */
void ht_view_output(const HtView *v, HtOutput *o);

/**
 * ht_view_open: open the recording, and resolve times that count from its end;
 * relate it to the host's clock if that was asked for
 * @v: view
 * @errp: why not
 *
 * Returns: the model, or NULL
 */
HtModel *ht_view_open(HtView *v, GError **errp);

/**
 * ht_view_next: the next event that was asked for
 * @v: view
 * @m: its model
 * @ev: filled in
 *
 * Returns: false after the last one
 */
bool ht_view_next(HtView *v, HtModel *m, HtModelEvent *ev);

/**
 * ht_view_event: whether events of a name are asked for
 * @v: view
 * @system: of the event
 * @name: of the event
 */
bool ht_view_event(const HtView *v, const char *system, const char *name);

/**
 * ht_view_selects: whether more than a boot was picked
 * @v: view
 *
 * Returns: true if some events of a boot may be left out
 */
bool ht_view_selects(const HtView *v);

/**
 * ht_view_times: whether some events may be left out because of their time
 * @v: view
 */
bool ht_view_times(const HtView *v);

/**
 * ht_view_section: append a line about where an event's boot or segment begins
 * @ev: the first event of it
 * @boot: of the event before
 * @out: appended to, without a newline
 */
void ht_view_section(const HtModelEvent *ev, unsigned boot, GString *out);

/**
 * ht_view_gap: append a line about the gap before an event
 * @ev: event; @ev.rec.lost_before is set
 * @out: appended to, without a newline
 */
void ht_view_gap(const HtModelEvent *ev, GString *out);

/**
 * ht_view_finish: end a command
 * @o: output to be finished
 * @ok: whether all went well so far
 * @error: what did not; freed
 *
 * Returns: the exit status, an error having been printed
 */
int ht_view_finish(HtOutput *o, bool ok, GError *error);

#endif /* HYPERTRACE_TOOL_VIEW_H */
