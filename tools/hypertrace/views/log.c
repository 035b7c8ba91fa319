/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace log: what the guest's kernel printed
 *
 * From the event printk:console, which has each record as it was printed,
 * also those that no console ever showed.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "views/log.h"
#include "views/view.h"

static void put_time(HtOutput *o, uint64_t ns)
{
    ht_output_colour(o, HT_COLOUR_GREEN);
    g_string_append_printf(o->text, "[%5" PRIu64 ".%06" PRIu64 "] ",
                           ns / 1000000000, ns % 1000000000 / 1000);
    ht_output_colour(o, HT_COLOUR_NONE);
}

/* Tabs stay: they are how tables are printed. */
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

/* Records end with or without a newline and may have several lines. */
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

static void put_json(HtOutput *o, const HtModelEvent *ev, const char *s,
                     gsize len)
{
    HtJson j = { .out = o->text };

    ht_json_open(&j, NULL, '{');
    ht_json_uint(&j, "ns", ev->rec.ns);
    ht_json_uint(&j, "boot", ev->boot);
    ht_json_uint(&j, "cpu", ev->rec.cpu);
    ht_json_int(&j, "pid", ev->rec.pid);
    ht_json_text(&j, "text", s, len);
    ht_json_close(&j, '}');
    g_string_append_c(o->text, '\n');
}

int ht_log(int argc, char **argv)
{
    HtView v = { 0 };
    GError *error = NULL;
    g_autoptr(HtModel) m = NULL;
    bool ok, lost = false, any = false;
    unsigned boot = 0;
    HtOutput o;
    HtModelEvent ev;
    int status;

    if (!ht_view_parse(&v, &argc, argv, "Print what the guest's kernel"
                       " printed.", HT_VIEW_TIME | HT_VIEW_BOOT |
                       HT_VIEW_OUTPUT, NULL, &status)) {
        ht_view_free(&v);
        return status;
    }
    ht_view_output(&v, &o);
    m = ht_view_open(&v, &error);
    while (m && ht_view_next(&v, m, &ev)) {
        const char *s;
        gsize len;

        lost |= ev.rec.lost_before;
        if (ev.class->kind != HT_KIND_CONSOLE) {
            continue;
        }
        any = true;
        s = ht_event_text(&ev, HT_F_CONSOLE_TEXT, &len);
        if (v.json) {
            put_json(&o, &ev, s, len);
        } else {
            if (boot && ev.boot != boot) {
                g_string_append_printf(o.text, "-- boot %u --\n", ev.boot);
                lost = false;
            }
            boot = ev.boot;
            if (lost) {
                g_string_append(o.text, "-- events were lost here, maybe"
                                " lines, too --\n");
            }
            ht_log_text(&o, ev.rec.ns, s, len);
        }
        lost = false;
        if (!ht_output_room(&o)) {
            break;
        }
    }
    ok = m != NULL;
    if (ok && !any) {
        g_printerr("hypertrace log: no line there; were the events"
                   " 'printk' recorded?\n");
    }
    status = ht_view_finish(&o, ok, error);
    ht_view_free(&v);
    return status;
}
