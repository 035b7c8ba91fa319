/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the events of the guest's programs from a recording
 */
#include <gio/gio.h>
#include <string.h>

#include "ctf-read.h"
#include "record/programs.h"
#include "views/ctf-fields.h"
#include "views/programs.h"

typedef struct Stream {
    int64_t index;
    int64_t vcpu;
    char *source;
    /* number of events lost since the last event that was read */
    uint64_t lost;
} Stream;

typedef struct Reader {
    HtProgramOne *one;
    void *opaque;
    GHashTable *streams;        /* table from bt_stream to Stream */
    GError *error;
    /* @one has returned false: it wants no more events */
    bool ended;
} Reader;

static void free_stream(void *opaque)
{
    Stream *s = opaque;

    g_free(s->source);
    g_free(s);
}

/*
 * Get the name of a stream from the name of its file, which is
 * stream-INDEX-INSTANCE[-NAME]-PART. Returns "" if it has no name.
 */
static char *source_of(const bt_stream *bs)
{
    const char *path = bt_stream_get_name(bs);
    g_autofree char *base = path ? g_path_get_basename(path) : NULL;
    g_auto(GStrv) parts = base ? g_strsplit(base, "-", 4) : NULL;
    char *end;

    if (!parts || g_strv_length(parts) < 4) {
        return g_strdup("");
    }
    end = strrchr(parts[3], '-');
    return end ? g_strndup(parts[3], end - parts[3]) : g_strdup("");
}

static Stream *stream_of(Reader *r, const bt_stream *bs)
{
    Stream *s = g_hash_table_lookup(r->streams, bs);

    if (!s && !bt_stream_class_borrow_default_clock_class_const(
            bt_stream_borrow_class_const(bs))) {
        g_set_error(&r->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the programs' trace has no clock");
    } else if (!s) {
        s = g_new0(Stream, 1);
        s->vcpu = -1;
        s->source = source_of(bs);
        g_hash_table_insert(r->streams, (gpointer)bs, s);
    }
    return s;
}

static bool read_packet(void *opaque, const bt_message *msg)
{
    const bt_packet *packet =
        bt_message_packet_beginning_borrow_packet_const(msg);
    Stream *s = stream_of(opaque, bt_packet_borrow_stream_const(packet));
    const bt_field *context = bt_packet_borrow_context_field_const(packet);

    if (s) {
        ht_ctf_number(context, "stream_index", &s->index);
        ht_ctf_number(context, "cpu_id", &s->vcpu);
    }
    return s;
}

static bool read_event(void *opaque, const bt_message *msg)
{
    Reader *r = opaque;
    const bt_event *event = bt_message_event_borrow_event_const(msg);
    Stream *s = stream_of(r, bt_event_borrow_stream_const(event));
    HtProgramEvent ev;

    if (!s) {
        return false;
    }
    ev = (HtProgramEvent) {
        .ns = ht_ctf_ns(
            bt_message_event_borrow_default_clock_snapshot_const(msg)),
        .stream = s->index,
        .vcpu = s->vcpu,
        .source = s->source,
        .name = bt_event_class_get_name(bt_event_borrow_class_const(event)),
        .lost_before = s->lost,
        .payload = bt_event_borrow_payload_field_const(event),
    };
    ev.name = ev.name ? ev.name : "?";
    s->lost = 0;
    r->ended = !r->one(r->opaque, &ev);
    return !r->ended;
}

static bool read_loss(void *opaque, const bt_message *msg)
{
    Stream *s = stream_of(opaque,
        bt_message_discarded_events_borrow_stream_const(msg));
    uint64_t count = 1;

    if (s) {
        bt_message_discarded_events_get_count(msg, &count);
        s->lost += count;
    }
    return s;
}

char *ht_programs_path(const char *dir)
{
    g_autofree char *metadata = g_build_filename(dir, HT_PROGRAMS_FOLDER,
                                                 "metadata", NULL);

    return g_file_test(metadata, G_FILE_TEST_IS_REGULAR) ?
           g_path_get_dirname(metadata) : NULL;
}

bool ht_programs_read(const char *dir, HtProgramOne *one, void *opaque,
                      uint64_t *lost, GError **errp)
{
    static const HtCtfReader reader = {
        .event = read_event,
        .packet = read_packet,
        .lost_events = read_loss,
    };
    g_autofree char *path = g_build_filename(dir, HT_PROGRAMS_FOLDER, NULL);
    g_autoptr(GPtrArray) dirs = g_ptr_array_new();
    Reader r = {
        .one = one,
        .opaque = opaque,
        .streams = g_hash_table_new_full(NULL, NULL, NULL, free_stream),
    };
    GHashTableIter it;
    gpointer s;
    bool ok;

    g_ptr_array_add(dirs, path);
    ok = (ht_ctf_read(dirs, &reader, &r, &r.error) && !r.error) || r.ended;
    *lost = 0;
    g_hash_table_iter_init(&it, r.streams);
    while (g_hash_table_iter_next(&it, NULL, &s)) {
        *lost += ((Stream *)s)->lost;
    }
    if (!ok) {
        g_propagate_error(errp, g_steal_pointer(&r.error));
    }
    g_clear_error(&r.error);
    g_hash_table_destroy(r.streams);
    return ok;
}

void ht_programs_text(const HtProgramEvent *ev, GString *out)
{
    if (ev->payload) {
        ht_ctf_put_fields(out, ev->payload);
    }
}

void ht_programs_json(const HtProgramEvent *ev, HtJson *j)
{
    if (ev->payload) {
        ht_ctf_json_fields(j, ev->payload);
    }
}
