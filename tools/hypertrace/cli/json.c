/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write JSON as a stream
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/json.h"

/* Escape @name: the guest's kernel chooses the names of event fields. */
static void begin(HtJson *j, const char *name)
{
    if (j->comma) {
        g_string_append_c(j->out, ',');
    }
    j->comma = true;
    if (name) {
        g_string_append_c(j->out, '"');
        ht_escape_str(j->out, HT_ESCAPE_JSON, name);
        g_string_append(j->out, "\":");
    }
}

void ht_json_open(HtJson *j, const char *name, char bracket)
{
    begin(j, name);
    g_string_append_c(j->out, bracket);
    j->comma = false;
}

void ht_json_begin(HtJson *j)
{
    ht_json_open(j, NULL, '{');
    ht_json_uint(j, "version", HT_JSON_VERSION);
}

void ht_json_close(HtJson *j, char bracket)
{
    g_string_append_c(j->out, bracket);
    j->comma = true;
}

void ht_json_text(HtJson *j, const char *name, const char *s, gsize len)
{
    begin(j, name);
    if (!s) {
        g_string_append(j->out, "null");
        return;
    }
    g_string_append_c(j->out, '"');
    ht_escape(j->out, HT_ESCAPE_JSON, s, len);
    g_string_append_c(j->out, '"');
}

void ht_json_str(HtJson *j, const char *name, const char *s)
{
    ht_json_text(j, name, s, s ? strlen(s) : 0);
}

void ht_json_made(HtJson *j, const GString *json)
{
    begin(j, NULL);
    g_string_append_len(j->out, json->str, json->len);
}

void ht_json_int(HtJson *j, const char *name, int64_t v)
{
    begin(j, name);
    g_string_append_printf(j->out, "%" PRId64, v);
}

void ht_json_uint(HtJson *j, const char *name, uint64_t v)
{
    begin(j, name);
    g_string_append_printf(j->out, "%" PRIu64, v);
}

void ht_json_real(HtJson *j, const char *name, double v, bool single)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    begin(j, name);
    g_string_append(j->out, isfinite(v) ?
                    g_ascii_formatd(buf, sizeof(buf),
                                    single ? "%.9g" : "%.17g", v) : "null");
}

void ht_json_bool(HtJson *j, const char *name, bool v)
{
    begin(j, name);
    g_string_append(j->out, v ? "true" : "false");
}
