/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace report: the events, a line each
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/number.h"
#include "model/duration.h"
#include "model/fields.h"
#include "views/view.h"

typedef struct Report {
    HtView v;
    gboolean fields;
    HtModel *m;
    HtOutput o;
    GString *raw;               /* a line before it is escaped */
    unsigned boot, segment;
    uint64_t last_ns;
    bool any;
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
    ht_number_seconds(out, ev->rec.ns, 6);
    ht_output_colour(&r->o, HT_COLOUR_DIM);
    g_string_append(out, " +");
    ht_number_seconds(out, ht_elapsed(r->last_ns, ev->rec.ns), 0);
    ht_output_colour(&r->o, HT_COLOUR_NONE);
    g_string_append(out, " [");
    ht_number_decimal(out, ev->rec.cpu, 3, '0');
    g_string_append(out, "] ");

    start = out->len;
    ht_escape_str(out, HT_ESCAPE_TERMINAL, ev->task->comm);
    g_string_append_c(out, '-');
    if (ev->rec.pid < 0) {
        g_string_append_c(out, '-');
    }
    ht_number_decimal(out, ABS((int64_t)ev->rec.pid), 0, ' ');
    while (out->len - start < 22) {
        g_string_append_c(out, ' ');
    }
    g_string_append_c(out, ' ');
    ht_output_colour(&r->o, HT_COLOUR_CYAN);
    ht_escape_str(out, HT_ESCAPE_TERMINAL, ev->class->name);
    ht_output_colour(&r->o, HT_COLOUR_NONE);
    g_string_append(out, ": ");

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

int ht_report(int argc, char **argv)
{
    Report r = { 0 };
    const GOptionEntry own[] = {
        { "fields", 0, 0, G_OPTION_ARG_NONE, &r.fields,
          "name=value instead of the kernel's own format", NULL },
        { 0 }
    };
    GError *error = NULL;
    HtModelEvent ev;
    int status;

    if (!ht_view_parse(&r.v, &argc, argv, "Print the events of a recording, a"
                       " line each.", HT_VIEW_ALL | HT_VIEW_CLOCK, own,
                       &status)) {
        ht_view_free(&r.v);
        return status;
    }
    ht_view_output(&r.v, &r.o);
    r.raw = g_string_new(NULL);
    r.m = ht_view_open(&r.v, &error);
    while (r.m && ht_output_room(&r.o) && ht_view_next(&r.v, r.m, &ev)) {
        if (r.v.json) {
            put_json(&r, &ev);
        } else {
            put_text(&r, &ev);
        }
    }
    status = ht_view_finish(&r.o, r.m != NULL, error);
    if (r.v.undated) {
        g_printerr("hypertrace report: %" PRIu64 " events were left out: nobody"
                   " looked twice while the guest's clock went as they say\n",
                   r.v.undated);
    }
    ht_model_free(r.m);
    g_string_free(r.raw, true);
    ht_view_free(&r.v);
    return status;
}
