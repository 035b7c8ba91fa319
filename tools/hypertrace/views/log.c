/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: print the log of the guest's kernel
 *
 * The recorder has read the log from the guest's memory. After the last record
 * of a boot, the command prints the text of later events printk:console. If the
 * recording has no log, all text comes from these events. With --follow, all
 * text comes from the log.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "views/log.h"
#include "views/view.h"

/* With --follow: pause between two reads of new lines, in us */
#define FOLLOW_US 100000

static void put_time(HtOutput *o, uint64_t ns)
{
    ht_output_colour(o, HT_COLOUR_GREEN);
    g_string_append_printf(o->text, "[%5" PRIu64 ".%06" PRIu64 "] ",
                           ns / 1000000000, ns % 1000000000 / 1000);
    ht_output_colour(o, HT_COLOUR_NONE);
}

/* Print one line. Keep its tabs, which the kernel uses to align columns. */
static void put_line(HtOutput *o, uint64_t ns, const char *s, gsize len)
{
    put_time(o, ns);
    while (len) {
        const char *tab = memchr(s, '\t', len);
        gsize n = tab ? (gsize)(tab - s) : len;

        ht_escape(o->text, HT_ESCAPE_TERMINAL, s, n);
        if (tab) {
            g_string_append_c(o->text, '\t');
            n++;
        }
        s += n;
        len -= n;
    }
    g_string_append_c(o->text, '\n');
}

/*
 * Print a record.  Its text may have several lines, and may end with a newline.
 */
void ht_log_text(HtOutput *o, uint64_t ns, const char *s, gsize len)
{
    const char *end;

    while (len && (s[len - 1] == '\n' || s[len - 1] == '\r')) {
        len--;
    }
    while (len && (end = memchr(s, '\n', len))) {
        gsize n = end - s;

        put_line(o, ns, s, n && s[n - 1] == '\r' ? n - 1 : n);
        s += n + 1;
        len -= n + 1;
    }
    put_line(o, ns, s, len);
}

static void put_json(HtOutput *o, const HtLogLine *line)
{
    const HtLogRecord *r = &line->record;
    HtJson j = { .out = o->text };

    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "ns", r->ns);
    ht_json_uint(&j, "boot", r->boot + 1);
    if (!line->is_event) {
        ht_json_uint(&j, "seq", r->seq);
        ht_json_uint(&j, "level", r->level);
        ht_json_uint(&j, "facility", r->facility);
    }
    if (line->is_event || r->caller & HT_LOG_CALLER_CPU) {
        ht_json_uint(&j, "cpu", line->is_event ? line->cpu :
                     r->caller & ~HT_LOG_CALLER_CPU);
    }
    if (line->is_event || !(r->caller & HT_LOG_CALLER_CPU)) {
        ht_json_int(&j, "pid", r->caller);
    }
    ht_json_text(&j, "text", r->text, r->len);
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

typedef struct Printed {
    const GRegex *grep;         /* regular expression of --grep, or NULL */
    bool any;
    uint32_t boot;
    uint32_t seq_boot;          /* boot to which @next_seq belongs */
    /*
     * sequence number of the next record if none is lost; 0 at the begin of a
     * boot and after an event
     */
    uint64_t next_seq;
} Printed;

static bool in_view(const HtView *v, const HtLogRecord *r, const GRegex *grep)
{
    return r->ns >= v->from_ns && r->ns <= v->to_ns &&
           (!v->boot || r->boot + 1 == (uint32_t)v->boot) &&
           (!grep || g_regex_match_full(grep, r->text, r->len, 0, 0, NULL,
                                        NULL));
}

/*
 * Print a record if the options select it. Without --json, print before it how
 * many records are missing there and, if @lost is set, that events were lost. A
 * record that the options do not select does not count as missing.
 */
static void put_record(const HtView *v, HtOutput *o, const HtLogLine *line,
                       bool lost, Printed *p)
{
    const HtLogRecord *r = &line->record;

    if (r->boot != p->seq_boot) {
        p->seq_boot = r->boot;
        p->next_seq = 0;
    }
    if (!in_view(v, r, p->grep)) {
        p->next_seq = line->is_event ? 0 : r->seq + 1;
        return;
    }
    if (v->json) {
        put_json(o, line);
    } else {
        if (p->any && r->boot != p->boot) {
            g_string_append_printf(o->text, "-- boot %u --\n", r->boot + 1);
            lost = false;
        }
        if (!line->is_event && r->seq > p->next_seq) {
            uint64_t n = r->seq - p->next_seq;

            g_string_append_printf(o->text, "-- %" PRIu64 " %s overwritten"
                                   " before %s read --\n", n,
                                   ht_number_form(n, "record was",
                                                  "records were"),
                                   ht_number_form(n, "it was", "they were"));
        }
        if (lost) {
            g_string_append(o->text, "-- events were lost here; lines may be"
                            " missing --\n");
        }
        ht_log_text(o, r->ns, r->text, r->len);
    }
    p->any = true;
    p->boot = r->boot;
    p->next_seq = line->is_event ? 0 : r->seq + 1;
}

static bool put_log(const HtView *v, const GRegex *grep, HtLogLines *l,
                    HtOutput *o)
{
    Printed p = { .grep = grep };
    HtLogLine line;

    while (ht_log_lines_next(l, &line)) {
        put_record(v, o, &line, false, &p);
        if (!ht_output_room(o)) {
            break;
        }
    }
    return p.any;
}

/*
 * For a recording without a log: print the lines of the events printk:console.
 */
static bool put_events(HtView *v, const GRegex *grep, HtModel *m, HtOutput *o)
{
    Printed p = { .grep = grep };
    bool lost = false;
    HtModelEvent ev;

    while (ht_view_next(v, m, &ev)) {
        HtLogLine line;

        lost |= ev.rec.lost_before;
        if (ev.class->kind != HT_KIND_CONSOLE) {
            continue;
        }
        ht_log_line_event(&ev, &line);
        put_record(v, o, &line, lost, &p);
        lost = false;
        if (!ht_output_room(o)) {
            break;
        }
    }
    return p.any;
}

/*
 * Check whether the recording has ended: its info file then says how it ended
 * or why it was cut short.
 */
static bool has_ended(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "info", NULL);
    g_autoptr(GKeyFile) info = g_key_file_new();

    return g_key_file_load_from_file(info, path, G_KEY_FILE_NONE, NULL) &&
           (g_key_file_has_key(info, "recording", "end", NULL) ||
            g_key_file_has_key(info, "recording", "cut", NULL));
}

/* Print lines as they are recorded, until the recording ends. */
static bool follow(const HtView *v, const GRegex *grep, HtOutput *o,
                   GError **errp)
{
    g_autoptr(HtLogReader) reader = NULL;
    HtLogLine line = { 0 };
    Printed p = { .grep = grep };
    bool ended;

    do {
        /*
         * Test for the end before reading, so that no line that was written
         * before the end is missed.
         */
        ended = has_ended(v->dir);
        if (!reader) {
            reader = ht_log_reader_open(v->dir, errp);
        }
        if (*errp) {
            break;
        }
        while (reader && ht_log_reader_next(reader, &line.record)) {
            put_record(v, o, &line, false, &p);
        }
        if (!ht_output_flush(o)) {
            break;
        }
        if (!ended) {
            g_usleep(FOLLOW_US);
        }
    } while (!ended);
    return p.any;
}

int ht_log(int argc, char **argv)
{
    HtView v = { 0 };
    GError *error = NULL;
    g_autoptr(HtModel) m = NULL;
    g_autoptr(HtLogLines) lines = NULL;
    g_autoptr(GRegex) grep = NULL;
    gboolean follows = false;
    const GOptionEntry own[] = {
        { "follow", 'F', 0, G_OPTION_ARG_NONE, &follows,
          "print lines as they are recorded, until the recording ends", NULL },
        { 0 }
    };
    bool any = true, selects;
    HtOutput o;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Print the log of the guest's kernel.",
                       HT_VIEW_TIME | HT_VIEW_BOOT | HT_VIEW_GREP |
                       HT_VIEW_OUTPUT, own, &status)) {
        ht_view_free(&v);
        return status;
    }
    if (follows && (v.from || v.to)) {
        ht_view_free(&v);
        return ht_usage_error("--follow prints all lines: leave out --from and"
                              " --to");
    }
    /*
     * put_record() matches --grep against the text of each record. Clear
     * @v.grep, because ht_view_next() would match it against texts of events.
     */
    grep = g_steal_pointer(&v.grep);
    selects = grep || v.boot || ht_view_times(&v);
    /*
     * Prevent that ht_view_next() prints that the options select no event: this
     * function prints a message if no line was printed.
     */
    v.told = true;
    /*
     * With --follow, do not start a pager: it may show a line only when further
     * lines come.
     */
    v.no_pager |= follows;
    ht_view_output(&v, &o);
    m = ht_view_open(&v, &error);
    if (m && follows) {
        any = follow(&v, grep, &o, &error);
    } else if (m) {
        lines = ht_log_lines_open(v.dir, m, &error);
    }
    if (lines) {
        any = put_log(&v, grep, lines, &o);
        ht_view_trouble(m);
    } else if (m && !error && !follows) {
        any = put_events(&v, grep, m, &o);
    }
    if (!any && selects) {
        g_printerr("hypertrace log: no line meets all the conditions of the"
                   " command line\n");
    } else if (!any) {
        g_printerr("hypertrace log: no lines: the recording has neither the"
                   " kernel's log nor events 'printk'\n");
    }
    status = ht_view_finish(&o, m && !error, error);
    ht_view_free(&v);
    return status;
}
