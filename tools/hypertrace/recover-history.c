/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: of what a guest's ftrace had before its module came,
 * which is in events of hypertrace-ftrace.ko
 *
 * A guest chose the fields of these classes, too: one that has others is
 * somebody else's.
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "hypertrace/ftrace-history.h"
#include "ctf-read.h"
#include "recover-history.h"

typedef struct History {
    const char *dir;            /* the recording's */
    const char *trace;
    HtRecWriter *w;             /* NULL: nothing was found yet */
    HtFtHistory *h;
    GKeyFile *info;
    GByteArray *page;
    GError *error;
} History;

/* Fields ------------------------------------------------------------------- */

static const bt_field *member(const bt_field *f, const char *name)
{
    return bt_field_structure_borrow_member_field_by_name_const(f, name);
}

static bool get_number(const bt_field *f, const char *name, uint64_t *v)
{
    const bt_field *m = member(f, name);

    if (!m || !bt_field_class_type_is(bt_field_get_class_type(m),
                                      BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        return false;
    }
    *v = bt_field_integer_unsigned_get_value(m);
    return true;
}

static const char *get_text(const bt_field *f, const char *name)
{
    const bt_field *m = member(f, name);

    return m && bt_field_class_type_is(bt_field_get_class_type(m),
                                       BT_FIELD_CLASS_TYPE_STRING) ?
           bt_field_string_get_value(m) : NULL;
}

static bool get_bytes(const bt_field *f, const char *name, GByteArray *to)
{
    const bt_field *m = member(f, name);
    uint64_t i, n;

    if (!m || !bt_field_class_type_is(bt_field_get_class_type(m),
                                      BT_FIELD_CLASS_TYPE_ARRAY) ||
        !bt_field_class_type_is(bt_field_class_get_type(
            bt_field_class_array_borrow_element_field_class_const(
                bt_field_borrow_class_const(m))),
            BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        return false;
    }
    n = MIN(bt_field_array_get_length(m), UINT16_MAX);
    g_byte_array_set_size(to, n);
    for (i = 0; i < n; i++) {
        to->data[i] = bt_field_integer_unsigned_get_value(
            bt_field_array_borrow_element_field_by_index_const(m, i));
    }
    return true;
}

/* Events ------------------------------------------------------------------- */

/* The recording, made when there is something for it */
static bool make(History *h)
{
    g_autofree char *command = NULL;

    if (h->w) {
        return true;
    }
    h->w = ht_rec_writer_new(h->dir, &h->error);
    if (!h->w) {
        return false;
    }
    h->h = ht_ft_history_new(h->w);
    command = g_strdup_printf("hypertrace recover %s", h->trace);
    ht_rec_info_begin(h->info, command, "pages that the guest's module sent",
                      0);
    return true;
}

static void put_text(History *h, const char *group, const char *key,
                     const char *text)
{
    if (text && g_utf8_validate(text, -1, NULL)) {
        g_key_file_set_string(h->info, group, key, text);
    }
}

static bool read_begin(History *h, const bt_field *f)
{
    uint64_t address;

    if (!get_number(f, "address", &address)) {
        return true;
    }
    ht_rec_info_text(h->info, ht_ft_history_begin(h->h), address);
    put_text(h, "kernel", "symbol", get_text(f, "symbol"));
    put_text(h, "guest", "instance", get_text(f, "instance"));
    put_text(h, "guest", "release", get_text(f, "release"));
    put_text(h, "guest", "machine", get_text(f, "machine"));
    return true;
}

static bool read_page(History *h, const bt_field *f)
{
    uint64_t cpu, seq;

    return !get_number(f, "cpu", &cpu) || !get_number(f, "seq", &seq) ||
           !get_bytes(f, "page", h->page) ||
           ht_ft_history_page(h->h, MIN(cpu, UINT32_MAX), seq, h->page->data,
                              h->page->len, &h->error);
}

static bool read_text(History *h, const bt_field *f)
{
    const char *name = get_text(f, "name"), *part = get_text(f, "part");
    uint64_t offset, size;

    if (name && part && get_number(f, "offset", &offset) &&
        get_number(f, "size", &size)) {
        ht_ft_history_text(h->h, name, offset, MIN(size, UINT32_MAX), part,
                           strlen(part));
    }
    return true;
}

static bool read_event(void *opaque, const bt_message *msg)
{
    static const struct {
        const char *name;
        bool (*read)(History *h, const bt_field *f);
    } classes[] = {
        { "ftrace_history", read_begin },
        { "ftrace_page", read_page },
        { "ftrace_text", read_text },
    };
    const bt_event *event = bt_message_event_borrow_event_const(msg);
    const bt_field *f = bt_event_borrow_payload_field_const(event);
    const char *name =
        bt_event_class_get_name(bt_event_borrow_class_const(event));
    History *h = opaque;
    unsigned i;

    for (i = 0; f && name && i < G_N_ELEMENTS(classes); i++) {
        if (!strcmp(name, classes[i].name)) {
            return make(h) && classes[i].read(h, f);
        }
    }
    return true;
}

static bool ignore(void *opaque, const bt_message *msg)
{
    return true;
}

static const HtCtfReader reader = {
    .event = read_event,
    .packet = ignore,
    .lost_events = ignore,
};

/* ------------------------------------------------------------------------- */

static bool read_traces(History *h, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    bool ok = ht_ctf_find(h->trace, found, error);
    unsigned i;

    for (i = 0; ok && i < found->len; i++) {
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        uint64_t before = h->h ? ht_ft_history_stats(h->h).pages : 0;

        g_ptr_array_add(one, found->pdata[i]);
        ok = ht_ctf_read(one, &reader, h, &h->error) && !h->error;
        if (ok && before && ht_ft_history_stats(h->h).pages > before) {
            g_set_error(&h->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                        "several traces in '%s' have pages of ftrace's: name"
                        " one of them", h->trace);
            ok = false;
        }
    }
    if (h->error) {
        g_propagate_error(error, g_steal_pointer(&h->error));
    } else if (ok && !(h->h && ht_ft_history_stats(h->h).pages)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "there is no trace in '%s' that has pages of ftrace's: the"
                    " guest has to load hypertrace-ftrace.ko with history=,"
                    " see hypertrace(4)", h->trace);
        ok = false;
    }
    return ok;
}

static bool finish(History *h, GError **error)
{
    HtFtHistoryStats n = ht_ft_history_stats(h->h);
    GString *formats = ht_ft_history_formats(h->h);
    g_autofree char *info = NULL;
    uint32_t page = 4096;
    gsize size;
    bool ok;

    while (page < n.largest) {
        page *= 2;
    }
    g_key_file_set_integer(h->info, "guest", "page-size", page);
    ht_rec_info_end(h->info, "recovered from a device's trace",
                    g_get_monotonic_time() * UINT64_C(1000));
    info = g_key_file_to_data(h->info, &size, NULL);
    ok = (!formats->len ||
          ht_rec_writer_file(h->w, "formats", formats->str, formats->len,
                             error)) &&
         ht_rec_writer_flush(h->w, error) &&
         ht_rec_writer_file(h->w, "info", info, size, error);
    g_string_free(formats, true);
    return ok;
}

static void say(const History *h)
{
    HtFtHistoryStats n = ht_ft_history_stats(h->h);

    printf("%" PRIu64 " events, %.1f MB in %s", n.events,
           ht_rec_writer_bytes(h->w) / 1e6, h->dir);
    if (n.gaps || n.bad) {
        printf("; events are missing in %" PRIu64 " places, %" PRIu64 " pages"
               " are damaged", n.gaps, n.bad);
    }
    printf("\n\n");
    /* what follows is not by stdio */
    fflush(stdout);
}

bool ht_recover_history(const char *trace, const char *dir, bool quiet,
                        GError **error)
{
    g_autoptr(GByteArray) page = g_byte_array_new();
    g_autoptr(GKeyFile) info = g_key_file_new();
    History h = { .dir = dir, .trace = trace, .info = info, .page = page };
    bool ok = read_traces(&h, error), any;

    any = h.h && ht_ft_history_stats(h.h).pages;
    /* What was there up to an error is a recording as well. */
    if (any) {
        ok = finish(&h, ok ? error : NULL) && ok;
    }
    if (ok && !quiet) {
        say(&h);
    }
    ht_rec_writer_free(h.w);
    if (h.h && !any) {
        rmdir(dir);
    }
    ht_ft_history_free(h.h);
    return ok;
}
