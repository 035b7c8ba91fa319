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

/* Start of a text that is a pattern for lines of the kernel's log */
#define LOG     "log:"
/* Maximum number of bytes of a line in a description */
#define LINE_BYTES  160
#define TYPES   (1 << 16)
/* Maximum number of tasks whose names are known: the guest may be hostile */
#define TASKS   (1 << 15)

struct HtMatch {
    const char *option;
    GRegex *lines;              /* pattern for lines of the log; NULL: events */
    char *list;
    /* text of @list without the names after a '!' */
    char *wanted;
    HtNames *names;
    /* condition; NULL: each event that @names has matches */
    HtWhere *where;
    /* names of tasks; NULL if the condition does not need them */
    HtTasks *tasks;
    HtFtFormats *formats;
    HtEventClass *classes[TYPES];
    /* number of events that could not be checked, because @formats was NULL */
    uint64_t skipped;
    uint64_t count;
    /* description of the first event or line that @count has */
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
 * Split "LIST where CONDITION", or read "log:REGEX". Returns false if the text
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
        m->lines = ht_grep_new(text + strlen(LOG), error);
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

static void drop_formats(HtMatch *m)
{
    unsigned i;

    for (i = 0; i < TYPES; i++) {
        g_clear_pointer(&m->classes[i], ht_event_class_free);
    }
    g_clear_pointer(&m->formats, ht_ft_formats_free);
}

void ht_match_free(HtMatch *m)
{
    if (m) {
        drop_formats(m);
        g_clear_pointer(&m->lines, g_regex_unref);
        ht_names_free(m->names);
        ht_where_free(m->where);
        ht_tasks_free(m->tasks);
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
 * Test whether the condition needs the names of tasks: it has "comm", and an
 * event that @m->names has lacks a field of that name.
 */
static bool needs_tasks(const HtMatch *m)
{
    unsigned n = ht_ft_formats_count(m->formats), i;

    for (i = 0; m->where && ht_where_uses(m->where, "comm") && i < n; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(m->formats, i);

        if (ht_names_match(m->names, e->system, e->name) &&
            !ht_ft_event_field(e, "comm")) {
            return true;
        }
    }
    return false;
}

void ht_match_formats(HtMatch *m, const char *text, gsize size)
{
    HtFtFormats *formats = m && !m->lines ?
                           ht_ft_formats_parse(text, size, NULL) : NULL;

    if (formats) {
        drop_formats(m);
        m->formats = formats;
        /* @names caches results by type of event, and types have changed. */
        ht_names_free(m->names);
        m->names = ht_names_new(m->list);
        g_clear_pointer(&m->tasks, ht_tasks_free);
        m->tasks = needs_tasks(m) ? ht_tasks_new(TASKS) : NULL;
    }
}

static HtEventClass *class_of(HtMatch *m, uint16_t type)
{
    if (!m->classes[type]) {
        m->classes[type] = ht_event_class_new(m->formats, type);
    }
    return m->classes[type];
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

    ev->task = m->tasks ? ht_tasks_before(m->tasks, ev) : &unknown;
    if (ev->rec.ns >= from_ns && ht_names_event(m->names, ev->class) &&
        (!m->where || ht_where_is_true(m->where, ev))) {
        note(m, ev);
    }
    if (m->tasks) {
        ht_tasks_after(m->tasks, ev);
    }
}

void ht_match_piece(HtMatch *m, const HtFtPiece *p, uint64_t from_ns)
{
    HtFtRecord r;
    HtFtIter it;

    if (!m || m->lines || p->end_ns < from_ns) {
        return;
    }
    if (!m->formats) {
        m->skipped += p->events;
        return;
    }
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        HtModelEvent ev = { .boot = p->epoch + 1 };

        ht_rec_event(p, &r, &ev.rec);
        ev.class = class_of(m, ev.rec.type);
        match_event(m, &ev, from_ns);
    }
}

void ht_match_line(HtMatch *m, const HtLogRecord *r)
{
    if (m && m->lines && g_regex_match_full(m->lines, r->text, r->len, 0, 0,
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
