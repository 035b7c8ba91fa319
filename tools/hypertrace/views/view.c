/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse the options and arguments that several commands share, and
 * select events
 */
#include <errno.h>
#include <gio/gio.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "cli/wrong-option.h"
#include "model/duration.h"
#include "model/fields.h"
#include "views/view.h"

static bool parse_cpus(HtView *v, GError **errp)
{
    g_auto(GStrv) parts = g_strsplit(v->cpu, ",", -1);
    unsigned i;

    v->cpus = g_array_new(false, false, sizeof(unsigned));
    for (i = 0; parts[i]; i++) {
        g_auto(GStrv) ends = g_strsplit(parts[i], "-", 2);
        const guint64 most = HT_FT_CPUS_MAX - 1;
        guint64 first, last;
        unsigned c;

        if (!ends[0] ||
            !g_ascii_string_to_unsigned(ends[0], 10, 0, most, &first, NULL) ||
            !g_ascii_string_to_unsigned(ends[1] ? ends[1] : ends[0], 10,
                                        first, most, &last, NULL)) {
            g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--cpu=%s: give CPU numbers from 0 to %u and ranges:"
                        " 0,2-3", v->cpu, HT_FT_CPUS_MAX - 1);
            return false;
        }
        for (c = first; c <= last; c++) {
            g_array_append_val(v->cpus, c);
        }
    }
    return true;
}

/*
 * Refuse empty lists and texts: a script whose variable is empty must not get
 * all events.
 */
static bool check_empty(const HtView *v, GError **errp)
{
    if (v->grep_text && !*v->grep_text) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--grep is empty; omit it to select all");
        return false;
    }
    return ht_names_whole("--cpu", v->cpu, errp) &&
           ht_names_whole("--event", v->event, errp) &&
           ht_names_whole("--task", v->task, errp);
}

static bool check_order(const HtView *v, GError **errp)
{
    if (v->from_end || v->to_end || v->from_ns <= v->to_ns) {
        return true;
    }
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--from=%s is later than --to=%s", v->from, v->to);
    return false;
}

static bool check(HtView *v, GError **errp)
{
    guint64 boot = 0;

    v->to_ns = UINT64_MAX;
    if (v->colour && strcmp(v->colour, "always") &&
        strcmp(v->colour, "never") && strcmp(v->colour, "auto")) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--color=%s: must be always, never or auto", v->colour);
        return false;
    }
    if (v->clock && strcmp(v->clock, "guest") && strcmp(v->clock, "host")) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--clock=%s: must be guest or host", v->clock);
        return false;
    }
    if (v->boot_text &&
        !g_ascii_string_to_unsigned(v->boot_text, 10, 1, G_MAXINT, &boot,
                                    NULL)) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--boot=%s: give a number; boots are counted from 1",
                    v->boot_text);
        return false;
    }
    v->boot = boot;
    if ((v->from && !ht_number_time("--from", v->from, &v->from_ns,
                                  &v->from_end, errp)) ||
        (v->to && !ht_number_time("--to", v->to, &v->to_ns, &v->to_end,
                                  errp)) ||
        !check_empty(v, errp) || !check_order(v, errp) ||
        (v->cpu && !parse_cpus(v, errp))) {
        return false;
    }
    if (v->event) {
        v->events = ht_names_new(v->event);
    }
    if (v->where_text) {
        v->where = ht_where_new(v->where_text, errp);
        if (!v->where) {
            g_prefix_error(errp, "--where: ");
            return false;
        }
    }
    if (v->grep_text) {
        v->grep = ht_grep_new(v->grep_text, errp);
        if (!v->grep) {
            g_prefix_error(errp, "--grep: ");
            return false;
        }
    }
    if (v->task) {
        v->tasks = ht_names_new(v->task);
    }
    return true;
}

static void add_option(GOptionGroup *g, const char *name, GOptionArg arg,
                       void *to, const char *help, const char *metavar)
{
    const GOptionEntry entries[] = {
        { name, !strcmp(name, "output") ? 'o' : 0, 0, arg, to, help, metavar },
        { 0 }
    };

    g_option_group_add_entries(g, entries);
}

/*
 * Find the recording in the working directory whose file "info" was changed
 * last.
 */
static char *newest_recording(void)
{
    g_autoptr(GDir) dir = g_dir_open(".", 0, NULL);
    struct timespec newest = { 0 };
    const char *name;
    char *best = NULL;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *info = g_build_filename(name, "info", NULL);
        g_autoptr(GKeyFile) keys = g_key_file_new();
        struct stat st;

        if (!stat(info, &st) && S_ISREG(st.st_mode) &&
            (st.st_mtim.tv_sec > newest.tv_sec ||
             (st.st_mtim.tv_sec == newest.tv_sec &&
              st.st_mtim.tv_nsec >= newest.tv_nsec)) &&
            g_key_file_load_from_file(keys, info, G_KEY_FILE_NONE, NULL) &&
            g_key_file_has_key(keys, "recording", "version", NULL)) {
            newest = st.st_mtim;
            g_free(best);
            best = g_strdup(name);
        }
    }
    return best;
}

bool ht_view_parse(HtView *v, int *argc, char **argv, const char *summary,
                   unsigned which, const GOptionEntry *own, int *status)
{
    g_autoptr(GOptionContext) context = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *program = g_strdup_printf("hypertrace %s", argv[0]);
    GOptionGroup *g = g_option_group_new(NULL, NULL, NULL, NULL, NULL);
    int i, at;

    if (own) {
        g_option_group_add_entries(g, own);
    }
    if (which & HT_VIEW_TIME) {
        add_option(g, "from", G_OPTION_ARG_STRING, &v->from,
                   "skip events before TIME: 1.5 (seconds), 20ms; -20ms"
                   " counts from the end", "TIME");
        add_option(g, "to", G_OPTION_ARG_STRING, &v->to,
                   "skip events after TIME", "TIME");
    }
    if (which & HT_VIEW_EVENT) {
        /* Names may have any bytes: do not convert them from the locale. */
        add_option(g, "event", G_OPTION_ARG_FILENAME, &v->event,
                   "only these events: sched_switch,irq_*,task:*,!irq_exit",
                   "LIST");
        add_option(g, "where", G_OPTION_ARG_FILENAME, &v->where_text,
                   "only events whose fields meet the condition:"
                   " 'prev_state != 0 && next_comm ~ \"kworker*\"'",
                   "CONDITION");
    }
    if (which & (HT_VIEW_EVENT | HT_VIEW_GREP)) {
        add_option(g, "grep", G_OPTION_ARG_FILENAME, &v->grep_text,
                   which & HT_VIEW_GREP ? "only lines that match" :
                   "only events whose text matches", "REGEX");
    }
    if (which & HT_VIEW_CPU) {
        add_option(g, "cpu", G_OPTION_ARG_STRING, &v->cpu,
                   "only events on these CPUs: 0,2-3", "LIST");
    }
    if (which & HT_VIEW_TASK) {
        add_option(g, "task", G_OPTION_ARG_FILENAME, &v->task,
                   "only events of these tasks: 17,systemd*", "LIST");
    }
    if (which & HT_VIEW_BOOT) {
        add_option(g, "boot", G_OPTION_ARG_STRING, &v->boot_text,
                   "only this boot of the guest, counted from 1", "N");
    }
    if (which & (HT_VIEW_OUTPUT | HT_VIEW_FILE)) {
        add_option(g, "output", G_OPTION_ARG_FILENAME, &v->output,
                   "write to FILE; '-' means standard output", "FILE");
    }
    if (which & HT_VIEW_OUTPUT) {
        add_option(g, "json", G_OPTION_ARG_NONE, &v->json,
                   "print JSON instead of text", NULL);
        add_option(g, "color", G_OPTION_ARG_STRING, &v->colour,
                   "use colors: always, never, or auto (on a terminal)",
                   "WHEN");
        add_option(g, "no-pager", G_OPTION_ARG_NONE, &v->no_pager,
                   "do not show the text in a pager on a terminal", NULL);
    }
    if (which & HT_VIEW_CLOCK) {
        add_option(g, "clock", G_OPTION_ARG_STRING, &v->clock,
                   "guest: show the guest's times; host: convert them to the"
                   " host's CLOCK_MONOTONIC", "CLOCK");
    }
    context = g_option_context_new(which & HT_VIEW_MANY ? "[DIR...]" :
                                   which & HT_VIEW_PAIR ? "A B [DIR]" :
                                   "[DIR]");
    g_option_context_set_summary(context, summary);
    g_option_context_set_main_group(context, g);
    g_set_prgname(program);
    ht_progress_begin();
    if (!ht_parse_goptions(context, argc, &argv, &error) ||
        !check(v, &error)) {
        *status = ht_wrong_goption(context, error);
        return false;
    }
    /* Drop the word "--", which ends the options. */
    if (*argc > 1 && !strcmp(argv[1], "--")) {
        for (i = 1; i < *argc; i++) {
            argv[i] = argv[i + 1];
        }
        (*argc)--;
    }
    at = which & HT_VIEW_PAIR ? 3 : 1;
    /* if the second of two arguments is a directory, the event B is missing */
    if (*argc < at || (at > 1 && *argc == at &&
                       g_file_test(argv[at - 1], G_FILE_TEST_IS_DIR))) {
        *status = ht_usage_error("give both events of a pair: A B"
                                 " [DIR]");
        return false;
    }
    v->dir = *argc > at ? g_strdup(argv[at]) : newest_recording();
    if (!v->dir) {
        *status = access(".", R_OK | X_OK) ?
                  ht_error("cannot read this directory: %s; give the DIR of a"
                           " recording", g_strerror(errno)) :
                  ht_usage_error("this directory has no recording; give the DIR"
                                 " that 'hypertrace record -o DIR' wrote");
        return false;
    }
    if (*argc <= at) {
        fprintf(stderr, "%s: reading %s\n", program, v->dir);
        argv[at] = v->dir;
        *argc = at + 1;
    }
    v->several = *argc > at + 1;
    if (!(which & HT_VIEW_MANY) && *argc > at + 1) {
        *status = ht_usage_error("unexpected argument '%s': the recording is"
                                 " '%s'", argv[*argc - 1], v->dir);
        return false;
    }
    return true;
}

void ht_view_free(HtView *v)
{
    g_free(v->dir);
    ht_host_clock_free(v->host);
    g_free(v->colour);
    g_free(v->output);
    g_free(v->where_text);
    g_free(v->grep_text);
    g_clear_pointer(&v->where, ht_where_free);
    g_clear_pointer(&v->grep, g_regex_unref);
    if (v->text) {
        g_string_free(v->text, true);
    }
    g_free(v->clock);
    g_free(v->boot_text);
    g_free(v->from);
    g_free(v->to);
    g_free(v->cpu);
    g_free(v->event);
    g_free(v->task);
    g_clear_pointer(&v->cpus, g_array_unref);
    g_clear_pointer(&v->events, ht_names_free);
    g_clear_pointer(&v->tasks, ht_names_free);
}

void ht_view_output(const HtView *v, HtOutput *o)
{
    g_autoptr(GError) error = NULL;

    if (!v->output || !strcmp(v->output, "-")) {
        ht_output_stdout(o);
        if (!v->output && !v->no_pager) {
            ht_pager_start();
        }
    } else if (!ht_output_file(o, v->output, &error)) {
        exit(ht_error("%s", error->message));
    }
    if (v->colour && strcmp(v->colour, "auto")) {
        o->colour = !strcmp(v->colour, "always");
    }
    if (v->json) {
        o->colour = false;
    }
}

bool ht_view_end(HtView *v, uint64_t end, GError **errp)
{
    if (v->from_end) {
        v->from_ns = ht_elapsed(v->from_ns, end);
        v->from_end = false;
    }
    if (v->to_end) {
        v->to_ns = ht_elapsed(v->to_ns, end);
        v->to_end = false;
    }
    return check_order(v, errp);
}

/*
 * Get the number of boots. Set @ns to the end of the boot of --boot, or of the
 * last boot if there is no such option or if no time counts back. For the last
 * boot, read only the ends of the recording's files. If a file is damaged
 * there, or for an earlier boot, read all events.
 */
static unsigned find_end(const HtView *v, HtModel *m, uint64_t *ns)
{
    unsigned last = 0;
    HtModelEvent ev;
    HtRecEnd end;

    if (ht_rec_end(ht_model_recording(m), &end) &&
        (!v->boot || (!v->from_end && !v->to_end) ||
         (unsigned)v->boot > end.epoch)) {
        *ns = end.ns;
        return end.epoch + 1;
    }
    *ns = 0;
    while (ht_model_next(m, &ev)) {
        last = ev.boot;
        if (!v->boot || ev.boot == (unsigned)v->boot) {
            *ns = ev.rec.ns;
        }
    }
    ht_model_rewind(m);
    return last;
}

/*
 * Check that the boot of --boot exists. Make times absolute that count back
 * from its end or, without --boot, from the end of the recording.
 */
static bool look_ahead(HtView *v, HtModel *m, GError **errp)
{
    uint64_t end;
    unsigned last = find_end(v, m, &end);

    if (v->boot > 1 && last < (unsigned)v->boot) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--boot=%d: %s has %u boot%s", v->boot, v->dir, last,
                    ht_number_s(last));
        return false;
    }
    return ht_view_end(v, end, errp);
}

static bool check_cpus(const HtView *v, HtModel *m, GError **errp)
{
    uint32_t cpus = ht_rec_info(ht_model_recording(m))->cpus;
    unsigned i;

    for (i = 0; i < v->cpus->len; i++) {
        if (g_array_index(v->cpus, unsigned, i) < cpus) {
            return true;
        }
    }
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--cpu=%s: %s has CPUs 0 to %u", v->cpu, v->dir,
                MAX(cpus, 1) - 1);
    return false;
}

/*
 * Check that the recording has the events and the fields that the user named,
 * and at least one of the processors of --cpu, but not with several recordings
 * or after ht_view_use_host(). Check events and fields only if the recording
 * has formats of events. Check that the recording has the named boot if its
 * number is above 1, and make times absolute that count back from an end.
 */
static bool check_selection(HtView *v, HtModel *m, GError **errp)
{
    const HtFtFormats *formats = ht_model_formats(m);
    const bool known = formats && !v->several;

    if (known && v->event &&
        !ht_names_check(v->event, formats, errp)) {
        g_prefix_error(errp, "--event: ");
        return false;
    }
    if (known && v->where &&
        !ht_where_check(v->where, formats, v->events, errp)) {
        g_prefix_error(errp, "--where: ");
        return false;
    }
    return (v->several || !v->cpus || check_cpus(v, m, errp)) &&
           (!(v->from_end || v->to_end || v->boot > 1) ||
            look_ahead(v, m, errp));
}

HtModel *ht_view_open(HtView *v, GError **errp)
{
    HtModel *m = ht_model_open(v->dir, errp);

    if (m && !check_selection(v, m, errp)) {
        g_clear_pointer(&m, ht_model_free);
    }
    if (m) {
        ht_rec_until(ht_model_recording(m),
                     v->boot ? (uint32_t)v->boot - 1 : UINT32_MAX,
                     v->to_ns);
    }
    v->some = v->boot || ht_view_filters(v);
    g_clear_pointer(&v->host, ht_host_clock_free);
    if (m && ht_view_on_host(v)) {
        v->host = ht_host_clock_new(m, errp);
        if (!v->host) {
            g_clear_pointer(&m, ht_model_free);
        }
    }
    return m;
}

static bool text_matches(HtView *v, HtModel *m, const HtModelEvent *ev)
{
    if (!v->text) {
        v->text = g_string_new(NULL);
    }
    g_string_printf(v->text, "%s-%d %s: ", ev->task->comm, ev->rec.pid,
                    ev->class->name);
    ht_model_print(m, ev, v->text);
    return g_regex_match(v->grep, v->text->str, 0, NULL);
}

static bool wanted(HtView *v, HtModel *m, const HtModelEvent *ev)
{
    unsigned i;

    if (ev->rec.ns < v->from_ns || ev->rec.ns > v->to_ns) {
        return false;
    }
    if (!v->some) {
        return true;
    }
    if ((v->boot && ev->boot != (unsigned)v->boot) ||
        (v->events && !ht_names_event(v->events, ev->class)) ||
        (v->tasks && !ht_names_task(v->tasks, ev->task))) {
        return false;
    }
    for (i = 0; v->cpus && i < v->cpus->len; i++) {
        if (g_array_index(v->cpus, unsigned, i) == ev->rec.cpu) {
            break;
        }
    }
    return (!v->cpus || i < v->cpus->len) &&
           (!v->where || ht_where_is_true(v->where, ev)) &&
           (!v->grep || text_matches(v, m, ev));
}

void ht_view_text(HtModel *m, const HtModelEvent *ev, bool fields,
                  GString *raw, GString *out)
{
    const char *line, *end;

    g_string_truncate(raw, 0);
    if (fields) {
        ht_fields_text(ev, raw);
    } else {
        ht_model_print(m, ev, raw);
    }
    while (raw->len && raw->str[raw->len - 1] == '\n') {
        g_string_truncate(raw, raw->len - 1);
    }
    line = raw->str;
    while (!fields && ht_event_has_lines(ev) && (end = strchr(line, '\n'))) {
        ht_escape(out, HT_ESCAPE_TERMINAL, line, end - line);
        g_string_append_c(out, '\n');
        line = end + 1;
    }
    ht_escape(out, HT_ESCAPE_TERMINAL, line, raw->str + raw->len - line);
}

void ht_view_trouble(HtModel *m)
{
    g_autoptr(GString) lines = g_string_new(NULL);
    g_autoptr(GString) safe = g_string_new(NULL);
    char *line, *rest;

    ht_progress_clear();
    ht_model_trouble(m, lines);
    for (line = lines->str; (rest = strchr(line, '\n')); line = rest + 1) {
        g_string_truncate(safe, 0);
        ht_escape(safe, HT_ESCAPE_TERMINAL, line, rest - line);
        g_printerr("%s: %s\n", g_get_prgname(), safe->str);
    }
}

bool ht_view_next(HtView *v, HtModel *m, HtModelEvent *ev)
{
    while (ht_model_next(m, ev)) {
        if (!wanted(v, m, ev)) {
            continue;
        }
        v->found = true;
        if (!v->host) {
            return true;
        }
        if (ht_host_clock_date(v->host, ev)) {
            ev->rec.ns = MAX((int64_t)ev->rec.ns + v->shift, 0);
            return true;
        }
        v->undated++;
    }
    ht_view_trouble(m);
    if (!v->found && !v->told && ht_view_selects(v)) {
        g_printerr("%s: no event meets all the conditions of the command"
                   " line\n", g_get_prgname());
        v->told = true;
    }
    return false;
}

bool ht_view_on_host(const HtView *v)
{
    return v->clock && !strcmp(v->clock, "host");
}

void ht_view_use_host(HtView *v, bool host)
{
    g_free(v->clock);
    v->clock = host ? g_strdup("host") : NULL;
    v->several = host;
}

bool ht_view_programs(const HtView *v)
{
    return !v->from && !v->to && !v->cpu && !v->task && !v->where &&
           !v->grep && !v->boot && (!v->clock || ht_view_on_host(v));
}

bool ht_view_event(const HtView *v, const char *system, const char *name)
{
    return !v->events || ht_names_match(v->events, system, name);
}

bool ht_view_selects(const HtView *v)
{
    return ht_view_times(v) || ht_view_filters(v);
}

bool ht_view_filters(const HtView *v)
{
    return v->cpu || v->event || v->task || v->where || v->grep;
}

bool ht_view_times(const HtView *v)
{
    return v->from || v->to;
}

void ht_view_section(const HtModelEvent *ev, unsigned boot, GString *out)
{
    if (ev->boot != boot) {
        g_string_append_printf(out, "-- boot %u --", ev->boot);
    } else {
        g_string_append(out, "-- the guest's clock went back --");
    }
}

void ht_view_gap(const HtModelEvent *ev, GString *out)
{
    g_string_append_printf(out, "-- CPU %" PRIu32 " lost ", ev->rec.cpu);
    if (ev->rec.lost_estimate) {
        g_string_append_printf(out, "about %" PRIu64 " ",
                               ev->rec.lost_estimate);
    }
    g_string_append_printf(out, "event%s between ",
                           ht_number_s(ev->rec.lost_estimate));
    ht_number_seconds(out, ev->rec.lost_from_ns, 0);
    g_string_append(out, " and ");
    ht_number_seconds(out, ev->rec.ns, 0);
    g_string_append(out, " --");
}

int ht_view_finish(HtOutput *o, bool ok, GError *error)
{
    int status = HT_EXIT_OK;

    ht_progress_end();
    if (!ok && o->path) {
        ht_output_abort(o);
    } else {
        ok = ht_output_finish(o, ok ? &error : NULL) && ok;
    }
    if (!ok) {
        g_autoptr(GString) s = g_string_new(NULL);

        ht_escape_str(s, HT_ESCAPE_TERMINAL,
                      error ? error->message : "unknown error");
        status = ht_error("%s", s->str);
    }
    g_clear_error(&error);
    return status;
}
