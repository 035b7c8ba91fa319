/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: read the kernel's log of a recording, and add lines of events
 */
#include <inttypes.h>
#include <string.h>

#include "cli/number.h"
#include "views/log.h"

/* Maximum number of lines in all Boot.tail; further events are left out */
#define TAIL_MAX    65536u
/*
 * Events and records of the log may have different clocks. Boot.shift estimates
 * the difference. The estimate is assumed to be wrong by at most this many
 * nanoseconds.
 */
#define SLACK_NS    1000000000
/*
 * If the times of an event and of the record with its text differ by more than
 * this many ns, the event is assumed to repeat the text of an old record.
 */
#define SHIFT_MAX   (60 * INT64_C(1000000000))
/* Maximum number of texts of a boot that are kept to estimate the difference */
#define TEXTS_MAX   65536u
/* value in Boot.texts: several records have the text, or an event has had it */
#define NOT_UNIQUE  UINT64_MAX

/*
 * A line that an event has, and that the log seems to lack: it may be shown
 * after the log's last record
 */
typedef struct Tail {
    uint64_t ns;
    /* @ns is from the text: it is a time of the log, not of the event */
    bool stamped;
    uint32_t cpu;
    int32_t pid;
    GString *text;
} Tail;

typedef struct Boot {
    uint32_t boot;              /* number of the boot, from 0 */
    bool has_log;
    /* an event had the text and about the time of the log's last record */
    bool met;
    uint64_t last_ns;           /* time of the log's last record in ns */
    GString *last;
    /* by text: uint64_t time of the record that has it, or NOT_UNIQUE */
    GHashTable *texts;
    /* estimate: time of an event minus the time of its record, in ns */
    int64_t shift;
    /* difference by the last event that matched a record, in ns */
    int64_t candidate;
    bool has_candidate;
    /* time of the last record that has set @shift, in ns */
    uint64_t matched_ns;
    /* of Tail: lines to show after the log's last record */
    GPtrArray *tail;
} Boot;

struct HtLogLines {
    HtLogReader *reader;
    /* the next record of the log; valid if @ahead */
    HtLogRecord record;
    bool ahead;
    GHashTable *boots;
    GPtrArray *order;
    unsigned at;                /* index in @order of the present boot */
    /* index of the next element of the present boot's Boot.tail */
    unsigned tail_at;
    /* number of elements in Boot.tail of all boots, before drop_early() */
    unsigned tails;
};

static void free_tail(gpointer data)
{
    Tail *t = data;

    g_string_free(t->text, true);
    g_free(t);
}

static void free_boot(gpointer data)
{
    Boot *b = data;

    g_string_free(b->last, true);
    g_hash_table_unref(b->texts);
    g_ptr_array_unref(b->tail);
    g_free(b);
}

/*
 * Parse the time at the start of a text, as in "[    1.234567] text".  Returns
 * the length of the time with the blank after it; 0 if there is no time.
 */
static gsize parse_time(const char *s, gsize len, uint64_t *ns)
{
    uint64_t seconds = 0, us = 0;
    gsize i = 1, n;

    if (!len || s[0] != '[') {
        return 0;
    }
    while (i < len && s[i] == ' ') {
        i++;
    }
    for (n = i; i < len && g_ascii_isdigit(s[i]) && i - n < 10; i++) {
        seconds = seconds * 10 + (s[i] - '0');
    }
    if (i == n || len - i < 9 || s[i] != '.' || s[i + 7] != ']' ||
        s[i + 8] != ' ') {
        return 0;
    }
    for (n = i + 1; n < i + 7; n++) {
        if (!g_ascii_isdigit(s[n])) {
            return 0;
        }
        us = us * 10 + (s[n] - '0');
    }
    *ns = (seconds * 1000000 + us) * 1000;
    return i + 9;
}

bool ht_log_line_event(const HtModelEvent *ev, HtLogLine *line)
{
    HtLogRecord *r = &line->record;
    gsize skip;

    *line = (HtLogLine) {
        .record = {
            .ns = ev->rec.ns, .boot = ev->rec.epoch, .caller = ev->rec.pid,
        },
        .is_event = true,
        .cpu = ev->rec.cpu,
    };
    r->text = ht_event_text(ev, HT_F_CONSOLE_TEXT, &r->len);
    skip = parse_time(r->text, r->len, &r->ns);
    r->text += skip;
    r->len -= skip;
    return skip;
}

static Boot *find_boot(HtLogLines *l, uint32_t boot)
{
    Boot *b = g_hash_table_lookup(l->boots, GUINT_TO_POINTER(boot));

    if (!b) {
        b = g_new0(Boot, 1);
        b->boot = boot;
        b->last = g_string_new(NULL);
        b->texts = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                         (GDestroyNotify)g_bytes_unref, g_free);
        b->tail = g_ptr_array_new_with_free_func(free_tail);
        g_hash_table_insert(l->boots, GUINT_TO_POINTER(boot), b);
    }
    return b;
}

static gsize trimmed(const char *s, gsize len)
{
    while (len && (s[len - 1] == '\n' || s[len - 1] == '\r')) {
        len--;
    }
    return len;
}

static bool is_last(const Boot *b, const char *s, gsize len)
{
    len = trimmed(s, len);
    return len == trimmed(b->last->str, b->last->len) &&
           !memcmp(s, b->last->str, len);
}

/*
 * Store in @b->texts the time of the record that was read last; NOT_UNIQUE if
 * an earlier record has the same text.
 */
static void keep_last(Boot *b)
{
    GBytes *text = g_bytes_new(b->last->str,
                               trimmed(b->last->str, b->last->len));
    uint64_t *ns = g_hash_table_lookup(b->texts, text);

    if (ns) {
        *ns = NOT_UNIQUE;
        g_bytes_unref(text);
        return;
    }
    if (g_hash_table_size(b->texts) == TEXTS_MAX) {
        g_bytes_unref(text);
        return;
    }
    ns = g_new(uint64_t, 1);
    *ns = b->last_ns;
    g_hash_table_insert(b->texts, text, ns);
}

/*
 * Estimate the boot's shift, if exactly one record has the event's text and no
 * earlier event had it. A kernel that dies often prints lines that it has
 * printed before. So two successive estimates must be about the same, and the
 * record must not be older than the record that set the shift last.
 */
static void compare_clocks(Boot *b, uint64_t event_ns, const char *s, gsize len)
{
    g_autoptr(GBytes) text = g_bytes_new_static(s, trimmed(s, len));
    uint64_t *ns = g_hash_table_lookup(b->texts, text);
    int64_t shift, last = b->candidate;

    if (!ns || *ns == NOT_UNIQUE) {
        return;
    }
    shift = event_ns - *ns;
    if (*ns >= b->matched_ns && shift >= -SHIFT_MAX && shift <= SHIFT_MAX) {
        if (b->has_candidate && shift - last >= -SLACK_NS &&
            shift - last <= SLACK_NS) {
            b->shift = shift;
            b->matched_ns = *ns;
        }
        b->candidate = shift;
        b->has_candidate = true;
    }
    *ns = NOT_UNIQUE;
}

/*
 * Return by how many ns an event is later than the log's last record, by the
 * estimate of the clocks' difference; negative if the event is earlier.
 */
static int64_t after_last(const Boot *b, uint64_t event_ns)
{
    return event_ns - b->last_ns - b->shift;
}

/*
 * Test whether the log seems to have the line of an event whose text has no
 * time. If the line is the log's last record, drop the lines of earlier events.
 */
static bool has_line(HtLogLines *l, Boot *b, uint64_t event_ns, const char *s,
                     gsize len)
{
    compare_clocks(b, event_ns, s, len);
    if (!b->has_log) {
        return false;
    }
    if (after_last(b, event_ns) < -SLACK_NS) {
        return true;
    }
    /*
     * an equal text that is more than SLACK_NS later is a new line, which the
     * log lacks
     */
    if (after_last(b, event_ns) > SLACK_NS || !is_last(b, s, len)) {
        return false;
    }
    /* the event is the last record, and the log has all lines before it */
    l->tails -= b->tail->len;
    g_ptr_array_set_size(b->tail, 0);
    b->met = true;
    return true;
}

/*
 * Append the line of an event printk:console to the boot's tail, unless the log
 * seems to have that line, or there are TAIL_MAX lines.
 */
static void add_event(HtLogLines *l, const HtModelEvent *ev)
{
    Boot *b = find_boot(l, ev->rec.epoch);
    HtLogLine line;
    bool stamped = ht_log_line_event(ev, &line), has;
    const char *s = line.record.text;
    gsize len = line.record.len;
    Tail *t;

    /*
     * The log has all lines up to its last one. A time in a text is one of the
     * log, in whole microseconds.
     */
    has = stamped ? b->has_log && line.record.ns / 1000 <= b->last_ns / 1000 :
          has_line(l, b, ev->rec.ns, s, len);
    if (has || l->tails == TAIL_MAX) {
        return;
    }
    t = g_new(Tail, 1);
    t->ns = line.record.ns;
    t->stamped = stamped;
    t->cpu = ev->rec.cpu;
    t->pid = ev->rec.pid;
    t->text = g_string_new_len(s, len);
    g_ptr_array_add(b->tail, t);
    l->tails++;
}

static bool is_early(const Boot *b, const Tail *t)
{
    return !t->stamped && after_last(b, t->ns) <= 0;
}

/*
 * Unless @met is set, drop the first lines of the tail, until one is later than
 * the log's last record.
 */
static void drop_early(Boot *b)
{
    unsigned n = 0;

    while (b->has_log && !b->met && n < b->tail->len &&
           is_early(b, b->tail->pdata[n])) {
        n++;
    }
    if (n) {
        g_ptr_array_remove_range(b->tail, 0, n);
    }
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    const Boot *x = *(Boot *const *)a, *y = *(Boot *const *)b;

    return x->boot < y->boot ? -1 : x->boot > y->boot;
}

static void sort_boots(HtLogLines *l)
{
    GHashTableIter iter;
    gpointer b;

    g_hash_table_iter_init(&iter, l->boots);
    while (g_hash_table_iter_next(&iter, NULL, &b)) {
        drop_early(b);
        g_ptr_array_add(l->order, b);
    }
    g_ptr_array_sort(l->order, by_number);
}

static void read_ends(HtLogLines *l)
{
    HtLogRecord r;

    while (ht_log_reader_next(l->reader, &r)) {
        Boot *b = find_boot(l, r.boot);

        b->has_log = true;
        b->last_ns = r.ns;
        g_string_truncate(b->last, 0);
        g_string_append_len(b->last, r.text, r.len);
        keep_last(b);
    }
    if (ht_log_reader_damaged(l->reader)) {
        uint64_t n = ht_log_reader_damaged(l->reader);

        g_printerr("%s: the recording's log has %" PRIu64 " damaged line%s,"
                   " which %s left out\n", g_get_prgname(), n, ht_number_s(n),
                   ht_number_form(n, "is", "are"));
    }
}

HtLogLines *ht_log_lines_open(const char *dir, HtModel *m, GError **errp)
{
    HtLogReader *reader = ht_log_reader_open(dir, errp);
    HtLogLines *l;
    HtModelEvent ev;

    if (!reader) {
        return NULL;
    }
    l = g_new0(HtLogLines, 1);
    l->reader = reader;
    l->boots = g_hash_table_new_full(NULL, NULL, NULL, free_boot);
    l->order = g_ptr_array_new();
    read_ends(l);
    while (ht_model_next(m, &ev)) {
        if (ev.class->kind == HT_KIND_CONSOLE) {
            add_event(l, &ev);
        }
    }
    ht_model_rewind(m);
    sort_boots(l);
    ht_log_reader_close(l->reader);
    l->reader = ht_log_reader_open(dir, errp);
    if (!l->reader) {
        g_clear_pointer(&l, ht_log_lines_close);
    }
    return l;
}

static bool next_record(HtLogLines *l, const Boot *b, HtLogLine *line)
{
    if (!l->ahead) {
        l->ahead = ht_log_reader_next(l->reader, &l->record);
    }
    if (!l->ahead || l->record.boot != b->boot) {
        return false;
    }
    *line = (HtLogLine) { .record = l->record };
    l->ahead = false;
    return true;
}

bool ht_log_lines_next(HtLogLines *l, HtLogLine *line)
{
    for (; l->at < l->order->len; l->at++, l->tail_at = 0) {
        const Boot *b = l->order->pdata[l->at];
        const Tail *t;

        if (next_record(l, b, line)) {
            return true;
        }
        if (l->tail_at < b->tail->len) {
            t = b->tail->pdata[l->tail_at++];
            *line = (HtLogLine) {
                .record = {
                    .ns = t->ns, .boot = b->boot, .caller = t->pid,
                    .text = t->text->str, .len = t->text->len,
                },
                .is_event = true,
                .cpu = t->cpu,
            };
            return true;
        }
    }
    return false;
}

void ht_log_lines_close(HtLogLines *l)
{
    if (l) {
        ht_log_reader_close(l->reader);
        g_ptr_array_unref(l->order);
        g_hash_table_unref(l->boots);
        g_free(l);
    }
}
