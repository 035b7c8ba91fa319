/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace report: print one line for each event
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "cli/text.h"
#include "model/duration.h"
#include "model/fields.h"
#include "views/programs.h"
#include "views/view.h"

typedef struct Report {
    HtView v;
    gboolean fields;
    HtModel *m;
    HtOutput o;
    /* buffer in which an event's text is composed */
    GString *raw;
    unsigned boot, segment;
    uint64_t last_ns;
    bool any;
    bool pending;               /* @next has an event that is not printed yet */
    HtModelEvent next;
} Report;

static void put_section(Report *r, const HtModelEvent *ev)
{
    if (r->any) {
        ht_output_colour(&r->o, HT_COLOUR_BOLD);
        ht_view_section(ev, r->boot, r->o.text);
        ht_output_colour(&r->o, HT_COLOUR_NONE);
        g_string_append_c(r->o.text, '\n');
    }
    r->boot = ev->boot;
    r->segment = ev->rec.segment;
    r->last_ns = ev->rec.ns;
}

static void put_gap(Report *r, const HtModelEvent *ev)
{
    ht_output_colour(&r->o, HT_COLOUR_RED);
    ht_view_gap(ev, r->o.text);
    ht_output_colour(&r->o, HT_COLOUR_NONE);
    g_string_append_c(r->o.text, '\n');
}

/*
 * Append the columns of an event's time and of the time since the previous
 * printed event, and the "[" before the processor.
 */
static void put_times(Report *r, uint64_t ns, uint64_t delta)
{
    ht_number_seconds(r->o.text, ns, 6);
    ht_output_colour(&r->o, HT_COLOUR_DIM);
    ht_text_append(r->o.text, " +", 2);
    ht_number_seconds(r->o.text, delta, 0);
    ht_output_colour(&r->o, HT_COLOUR_NONE);
    ht_text_append(r->o.text, " [", 2);
}

/*
 * Fill the column of the task or stream, which begins at @start, with spaces,
 * and append the event's name.
 */
static void put_name(Report *r, gsize start, const char *name)
{
    GString *out = r->o.text;

    ht_text_fill(out, ' ', start + 23 - MIN(start + 22, out->len));
    ht_output_colour(&r->o, HT_COLOUR_CYAN);
    ht_escape_str(out, HT_ESCAPE_TERMINAL, name);
    ht_output_colour(&r->o, HT_COLOUR_NONE);
}

static void put_text(Report *r, const HtModelEvent *ev)
{
    GString *out = r->o.text;
    gsize start;

    if (!r->any || ev->boot != r->boot || ev->rec.segment != r->segment) {
        put_section(r, ev);
    }
    if (ev->rec.lost_before) {
        put_gap(r, ev);
    }
    put_times(r, ev->rec.ns, ht_elapsed(r->last_ns, ev->rec.ns));
    ht_number_decimal(out, ev->rec.cpu, 3, '0');
    ht_text_append(out, "] ", 2);

    start = out->len;
    ht_escape_str(out, HT_ESCAPE_TERMINAL, ev->task->comm);
    g_string_append_c(out, '-');
    if (ev->rec.pid < 0) {
        g_string_append_c(out, '-');
    }
    ht_number_decimal(out, ABS((int64_t)ev->rec.pid), 0, ' ');
    put_name(r, start, ev->class->name);
    ht_text_append(out, ": ", 2);

    ht_view_text(r->m, ev, r->fields, r->raw, out);
    g_string_append_c(out, '\n');
    r->last_ns = ev->rec.ns;
    r->any = true;
}

static void put_json(Report *r, const HtModelEvent *ev)
{
    HtJson j = { .out = r->o.text };

    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "ns", ev->rec.ns);
    if (r->v.host) {
        ht_json_uint(&j, "bound_ns", ev->bound_ns);
    }
    ht_json_uint(&j, "boot", ev->boot);
    ht_json_uint(&j, "segment", ev->rec.segment);
    ht_json_uint(&j, "cpu", ev->rec.cpu);
    ht_json_int(&j, "pid", ev->rec.pid);
    ht_json_int(&j, "tgid", ev->task->tgid);
    ht_json_str(&j, "task", ev->task->comm);
    ht_json_str(&j, "system", ev->class->system);
    ht_json_str(&j, "event", ev->class->name);
    ht_json_uint(&j, "flags", ev->rec.flags);
    if (ev->rec.lost_before) {
        ht_json_uint(&j, "lost_from_ns", ev->rec.lost_from_ns);
        ht_json_uint(&j, "lost_estimate", ev->rec.lost_estimate);
    }
    if (!r->fields) {
        g_string_truncate(r->raw, 0);
        ht_model_print(r->m, ev, r->raw);
        ht_json_text(&j, "text", r->raw->str, r->raw->len);
    }
    ht_json_open(&j, "fields", '{');
    ht_fields_json(ev, &j);
    ht_json_close(&j, '}');
    ht_json_close(&j, '}');
    g_string_append_c(r->o.text, '\n');
}

/*
 * Print the selected events of the kernel up to the time @until_ns. Returns
 * false if writing to the output failed.
 */
static bool put_kernel(Report *r, uint64_t until_ns)
{
    while (ht_output_room(&r->o)) {
        if (!r->pending && !ht_view_next(&r->v, r->m, &r->next)) {
            return true;
        }
        r->pending = r->next.rec.ns > until_ns;
        if (r->pending) {
            return true;
        }
        if (r->v.json) {
            put_json(r, &r->next);
        } else {
            put_text(r, &r->next);
        }
    }
    return false;
}

static void put_lost_programs(Report *r, uint64_t lost, int64_t stream)
{
    GString *out = r->o.text;

    ht_output_colour(&r->o, HT_COLOUR_RED);
    g_string_append(out, "-- ");
    if (stream >= 0) {
        g_string_append_printf(out, "stream %" PRId64, stream);
    } else {
        g_string_append(out, "programs");
    }
    g_string_append_printf(out, " lost %" PRIu64 " event%s --", lost,
                           ht_number_s(lost));
    ht_output_colour(&r->o, HT_COLOUR_NONE);
    g_string_append_c(out, '\n');
}

static void put_program_text(Report *r, const HtProgramEvent *ev)
{
    GString *out = r->o.text;
    gsize start;

    if (ev->lost_before) {
        put_lost_programs(r, ev->lost_before, ev->stream);
    }
    put_times(r, ev->ns, r->any ? ht_elapsed(r->last_ns, ev->ns) : 0);
    if (ev->vcpu >= 0) {
        ht_number_decimal(out, ev->vcpu, 3, '0');
    } else {
        g_string_append(out, "---");
    }
    g_string_append(out, "] ");
    start = out->len;
    if (*ev->source) {
        ht_escape_str(out, HT_ESCAPE_TERMINAL, ev->source);
    } else {
        g_string_append_printf(out, "stream %" PRId64, ev->stream);
    }
    put_name(r, start, ev->name);
    g_string_append_c(out, ':');
    g_string_truncate(r->raw, 0);
    /* ht_programs_text() limits the length of its text */
    ht_programs_text(ev, r->raw);
    g_string_append_len(out, r->raw->str, r->raw->len);
    g_string_append_c(out, '\n');
    r->last_ns = ev->ns;
    r->any = true;
}

static void put_program_json(Report *r, const HtProgramEvent *ev)
{
    HtJson j = { .out = r->o.text };

    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "ns", ev->ns);
    ht_json_int(&j, "stream", ev->stream);
    ht_json_int(&j, "cpu", ev->vcpu);
    ht_json_str(&j, "source", ev->source);
    ht_json_str(&j, "system", "programs");
    ht_json_str(&j, "event", ev->name);
    if (ev->lost_before) {
        ht_json_uint(&j, "lost_before", ev->lost_before);
    }
    ht_json_open(&j, "fields", '{');
    ht_programs_json(ev, &j);
    ht_json_close(&j, '}');
    ht_json_close(&j, '}');
    g_string_append_c(r->o.text, '\n');
}

static bool put_program(void *opaque, const HtProgramEvent *ev)
{
    Report *r = opaque;

    if (!put_kernel(r, ev->ns)) {
        return false;
    }
    if (!ht_view_event(&r->v, "programs", ev->name)) {
        return true;
    }
    if (r->v.json) {
        put_program_json(r, ev);
    } else {
        put_program_text(r, ev);
    }
    return ht_output_room(&r->o);
}

static bool has_kernel_events(Report *r)
{
    HtModelEvent ev;
    bool any = ht_model_next(r->m, &ev);

    ht_model_rewind(r->m);
    return any;
}

/*
 * Open the recording. Set @programs to whether events of programs are printed:
 * if the recording has them, the options permit them, and the times of the
 * kernel's events can be converted to the host's clock. All times are then
 * those of the host's clock.
 */
static bool open_report(Report *r, bool *programs, GError **error)
{
    g_autofree char *trace = ht_programs_path(r->v.dir);
    g_autoptr(GError) why = NULL;

    *programs = trace && ht_view_programs(&r->v);
    if (!*programs) {
        r->m = ht_view_open(&r->v, error);
        return r->m;
    }
    ht_view_use_host(&r->v, true);
    r->m = ht_view_open(&r->v, &why);
    if (!r->m) {
        ht_view_use_host(&r->v, false);
        r->m = ht_view_open(&r->v, error);
        if (r->m && has_kernel_events(r)) {
            g_printerr("hypertrace report: the events of programs are left"
                       " out: %s\n", why->message);
            *programs = false;
        }
    }
    return r->m;
}

int ht_report(int argc, char **argv)
{
    Report r = { 0 };
    const GOptionEntry own[] = {
        { "fields", 0, 0, G_OPTION_ARG_NONE, &r.fields,
          "print name=value instead of the kernel's own format", NULL },
        { 0 }
    };
    GError *error = NULL;
    bool programs, ok;
    uint64_t lost = 0;
    int status;

    if (!ht_view_parse(&r.v, &argc, argv, "Print the events of a recording, a"
                       " line each.", HT_VIEW_ALL | HT_VIEW_CLOCK, own,
                       &status)) {
        ht_view_free(&r.v);
        return status;
    }
    ht_view_output(&r.v, &r.o);
    r.raw = g_string_new(NULL);
    ok = open_report(&r, &programs, &error);
    if (ok && programs) {
        ok = ht_programs_read(r.v.dir, put_program, &r, &lost, &error);
    }
    if (ok) {
        put_kernel(&r, UINT64_MAX);
    }
    if (lost && !r.v.json) {
        put_lost_programs(&r, lost, -1);
    }
    status = ht_view_finish(&r.o, ok, error);
    if (r.v.undated) {
        g_printerr("hypertrace report: %" PRIu64 " event%s left out: their"
                   " host time is not known, because the recorder polled the"
                   " guest less than twice in that part of its clock\n",
                   r.v.undated, r.v.undated == 1 ? " was" : "s were");
    }
    ht_model_free(r.m);
    g_string_free(r.raw, true);
    ht_view_free(&r.v);
    return status;
}
