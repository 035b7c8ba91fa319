/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find events, or lines of the log, while they are recorded
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "hypertrace/base.h"
#include "model/match.h"
#include "model/model.h"
#include "model/patterns.h"
#include "model/tasks.h"
#include "model/where.h"

/* Prefix of an option's argument that is a pattern for lines of the log */
#define LOG     "log:"
/*
 * The guest writes the lines, and some patterns take seconds for some lines. So
 * only the first COMPARED_BYTES of a line are compared, and LINE_STEPS ends the
 * comparison after 100,000 steps of the library. The kernel's own lines have
 * less than 2 KiB.
 */
#define LINE_STEPS      "(*LIMIT_MATCH=100000)"
#define COMPARED_BYTES  2048
/*
 * Maximum number of bytes of a line of the log that ht_match_text() shows;
 * escapes can make the text longer
 */
#define LINE_BYTES  160
#define TYPES   (1 << 16)
/* Maximum number of tasks whose names are known: the guest may be hostile */
#define TASKS   (1 << 15)

struct HtMatchFormats {
    HtFtFormats *formats;
    /*
     * HtMatch.list, parsed; has a cache by type of event, which is valid only
     * with @formats
     */
    HtNames *names;
    /* tasks, to know their names; NULL if the condition does not need names */
    HtTasks *tasks;
    HtEventClass *classes[TYPES];
};

struct HtMatch {
    const char *option;
    /* pattern for lines of the kernel's log; NULL: the match is for events */
    GRegex *lines;
    char *list;
    /* text of @list without the names after a '!' */
    char *wanted;
    HtNames *names;
    /* condition; NULL: an event matches if @names has it */
    HtWhere *where;
    /* formats of the guest's events; NULL: not known */
    HtMatchFormats *f;
    /* number of events that could not be checked, because @f was NULL */
    uint64_t skipped;
    uint64_t count;
    /* description of the first event or line that was counted in @count */
    char *text;
};

static char *wanted_names(const char *list)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    GString *names = g_string_new(NULL);
    unsigned i;

    for (i = 0; parts[i]; i++) {
        if (*parts[i] && *parts[i] != '!') {
            g_string_append_printf(names, "%s%s", names->len ? "," : "",
                                   parts[i]);
        }
    }
    return g_string_free(names, false);
}

/*
 * Compile a pattern with LINE_STEPS before it. First compile the pattern alone,
 * so that places in error messages refer to @text.
 */
static GRegex *bounded_pattern(const char *text, GError **error)
{
    g_autoptr(GRegex) plain = ht_grep_new(text, error);
    g_autofree char *bounded = g_strconcat(LINE_STEPS, text, NULL);

    return plain ? ht_grep_new(bounded, error) : NULL;
}

/*
 * Parse "LIST", "LIST where CONDITION" or "log:REGEX". Returns false if @text
 * is malformed.
 */
static bool parse(HtMatch *m, const char *text, GError **error)
{
    const char *rest = text + strcspn(text, " \t\n");

    if (!strcmp(text, LOG)) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "give a regular expression after '" LOG "'");
        return false;
    }
    if (g_str_has_prefix(text, LOG)) {
        m->wanted = g_strdup("");
        m->lines = bounded_pattern(text + strlen(LOG), error);
        return m->lines;
    }
    m->list = g_strndup(text, rest - text);
    rest += strspn(rest, " \t\n");
    m->wanted = wanted_names(m->list);
    if (!*m->wanted) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "give the name of an event");
        return false;
    }
    m->names = ht_names_new(m->list);
    if (!*rest) {
        return true;
    }
    if (!g_str_has_prefix(rest, "where") || !g_ascii_isspace(rest[5])) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "expected 'where CONDITION' at '%s'", rest);
        return false;
    }
    rest += 5;
    rest += strspn(rest, " \t\n");
    m->where = ht_where_new(rest, error);
    return m->where;
}

HtMatch *ht_match_new(const char *option, const char *text, GError **error)
{
    g_autoptr(HtMatch) m = g_new0(HtMatch, 1);

    m->option = option;
    if (!parse(m, text, error)) {
        g_prefix_error(error, "%s: ", option);
        return NULL;
    }
    return g_steal_pointer(&m);
}

void ht_match_formats_free(HtMatchFormats *f)
{
    unsigned i;

    if (f) {
        for (i = 0; i < TYPES; i++) {
            g_clear_pointer(&f->classes[i], ht_event_class_free);
        }
        ht_ft_formats_free(f->formats);
        ht_names_free(f->names);
        ht_tasks_free(f->tasks);
        g_free(f);
    }
}

void ht_match_free(HtMatch *m)
{
    if (m) {
        ht_match_formats_free(m->f);
        g_clear_pointer(&m->lines, g_regex_unref);
        ht_names_free(m->names);
        ht_where_free(m->where);
        g_free(m->list);
        g_free(m->wanted);
        g_free(m->text);
        g_free(m);
    }
}

const char *ht_match_events(const HtMatch *m)
{
    return m->wanted;
}

bool ht_match_is_log(const HtMatch *m)
{
    return m->lines;
}

bool ht_match_check(const HtMatch *m, const HtFtFormats *formats,
                    GError **error)
{
    if (m->lines) {
        return true;
    }
    if (!ht_names_check(m->list, formats, error) ||
        (m->where && !ht_where_check(m->where, formats, m->names, error))) {
        g_prefix_error(error, "%s: ", m->option);
        return false;
    }
    return true;
}

/*
 * Test whether the condition needs the names of tasks: it has "comm", and one
 * of the events in @f->names has no field of that name.
 */
static bool needs_tasks(const HtMatch *m, const HtMatchFormats *f)
{
    unsigned n = ht_ft_formats_count(f->formats), i;

    for (i = 0; m->where && ht_where_uses(m->where, "comm") && i < n; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(f->formats, i);

        if (ht_names_match(f->names, e->system, e->name) &&
            !ht_ft_event_field(e, "comm")) {
            return true;
        }
    }
    return false;
}

HtMatchFormats *ht_match_formats_new(const HtMatch *m, const char *text,
                                     gsize size)
{
    HtFtFormats *formats = m && !m->lines ?
                           ht_ft_formats_parse(text, size, NULL) : NULL;
    HtMatchFormats *f = formats ? g_new0(HtMatchFormats, 1) : NULL;

    if (f) {
        f->formats = formats;
        f->names = ht_names_new(m->list);
        f->tasks = needs_tasks(m, f) ? ht_tasks_new(TASKS) : NULL;
    }
    return f;
}

HtMatchFormats *ht_match_formats_set(HtMatch *m, HtMatchFormats *f)
{
    HtMatchFormats *before = NULL;

    if (f) {
        before = m->f;
        m->f = f;
    }
    return before;
}

void ht_match_formats(HtMatch *m, const char *text, gsize size)
{
    HtMatchFormats *f = ht_match_formats_new(m, text, size);

    ht_match_formats_free(f ? ht_match_formats_set(m, f) : NULL);
}

static HtEventClass *class_of(HtMatchFormats *f, uint16_t type)
{
    if (!f->classes[type]) {
        f->classes[type] = ht_event_class_new(f->formats, type);
    }
    return f->classes[type];
}

static void note(HtMatch *m, const HtModelEvent *ev)
{
    if (!m->count++) {
        m->text = g_strdup_printf("%s:%s at %" PRIu64 ".%06" PRIu64
                                  " s on processor %" PRIu32,
                                  ev->class->system, ev->class->name,
                                  ev->rec.ns / 1000000000,
                                  ev->rec.ns / 1000 % 1000000, ev->rec.cpu);
    }
}

static void note_line(HtMatch *m, const HtLogRecord *r)
{
    g_autoptr(GString) line = g_string_new(NULL);

    if (!m->count++) {
        ht_escape(line, HT_ESCAPE_TERMINAL, r->text, MIN(r->len, LINE_BYTES));
        m->text = g_strdup_printf("'%s' at %" PRIu64 ".%06" PRIu64 " s in the"
                                  " kernel's log", line->str,
                                  r->ns / 1000000000, r->ns / 1000 % 1000000);
    }
}

static void match_event(HtMatch *m, HtModelEvent *ev, uint64_t from_ns)
{
    static const HtTask unknown = { .comm = "<...>" };
    HtMatchFormats *f = m->f;

    ev->task = f->tasks ? ht_tasks_before(f->tasks, ev) : &unknown;
    if (ev->rec.ns >= from_ns && ht_names_event(f->names, ev->class) &&
        (!m->where || ht_where_is_true(m->where, ev))) {
        note(m, ev);
    }
    if (f->tasks) {
        ht_tasks_after(f->tasks, ev);
    }
}

void ht_match_piece(HtMatch *m, const HtFtPiece *p, uint64_t from_ns)
{
    HtFtRecord r;
    HtFtIter it;

    if (!m || m->lines || p->end_ns < from_ns) {
        return;
    }
    if (!m->f) {
        m->skipped += p->events;
        return;
    }
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        HtModelEvent ev = { .boot = p->epoch + 1 };

        ht_rec_event(p, &r, &ev.rec);
        ev.class = class_of(m->f, ev.rec.type);
        match_event(m, &ev, from_ns);
    }
}

void ht_match_line(HtMatch *m, const HtLogRecord *r)
{
    if (m && m->lines && g_regex_match_full(m->lines, r->text,
                                            MIN(r->len, COMPARED_BYTES), 0, 0,
                                            NULL, NULL)) {
        note_line(m, r);
    }
}

uint64_t ht_match_count(const HtMatch *m)
{
    return m ? m->count : 0;
}

uint64_t ht_match_skipped(const HtMatch *m)
{
    return m->skipped;
}

const char *ht_match_text(const HtMatch *m)
{
    return m->text;
}

void ht_match_forget(HtMatch *m)
{
    m->count = 0;
    g_clear_pointer(&m->text, g_free);
}
