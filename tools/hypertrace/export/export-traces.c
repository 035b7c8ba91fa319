/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format perfetto: add CTF traces to recordings
 *
 * The traces are those of a device, of a ring or of LTTng. A trace fails the
 * export unless its clock is known to be the host's CLOCK_MONOTONIC. Each trace
 * becomes a sequence of packets and a track with child tracks: for a device or
 * ring one for each stream, for LTTng one for each provider and CPU, or for
 * each provider and stream if hypertrace delivered the events. Events are
 * instants on the child tracks.
 */
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/number.h"
#include "ctf-read.h"
#include "export/export.h"
#include "export/perfetto-field.h"
#include "export/protobuf.h"
#include "model/traces.h"

/*
 * Maximum number of child tracks of a trace's track. Events that would need
 * another child track are put on the trace's track itself.
 */
#define TRACKS_MAX      4096

typedef struct Stream {
    int64_t index;
    /* processor of the stream's events; -1 if not known */
    int64_t cpu;
} Stream;

typedef struct Class {
    bool wanted;
    /*
     * name of the device; for LTTng the provider or, for events of the host's
     * kernel, the domain
     */
    char *system;
    const char *name;
    const bt_field_class *fields;
    /*
     * by index of a field: the field is left out, because it is the length of
     * the next field
     */
    bool *skip;
    /*
     * Events that hypertrace delivers to LTTng have the fields "stream" and
     * "guest_ns". Their time on the host's clock is "guest_ns"; LTTng's own
     * time of the event is that of the delivery.
     */
    bool dated;
    uint64_t stream_field, guest_ns_field;
} Class;

typedef struct Trace {
    HtExport *x;
    const char *dir;
    /*
     * name of the trace's track: virtual machine and device, or LTTng's trace
     */
    char *name;
    bool lttng;
    PfSequence s;
    bool begun;                 /* pf_sequence_init() was called for @s */
    int64_t shift;              /* value to add to the trace's times, in ns */
    const bt_clock_class *clock;
    uint64_t precision_ns;
    GHashTable *streams;        /* table from bt_stream to Stream */
    GHashTable *classes;        /* table from bt_event_class to Class */
    GHashTable *tracks;         /* table from the name of a track to its UUID */
    GString *scratch;
    uint64_t end_ns;
    uint64_t events;
    uint64_t discarded;
    GError *error;
} Trace;

static bool G_GNUC_PRINTF(2, 3) refuse(Trace *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!t->error) {
        t->error = g_error_new_valist(G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                                      fmt, ap);
    }
    va_end(ap);
    return false;
}

/*
 * Get the id of the host's boot in which the trace was recorded; NULL or "" if
 * not known. In traces of LTTng, it is the UUID of the clock.
 */
static char *host_boot(const Trace *t, const bt_trace *trace)
{
    bt_uuid uuid = bt_clock_class_get_uuid(t->clock);
    GString *s;
    unsigned i;

    if (!t->lttng) {
        return g_strdup(ht_ctf_env(trace, "host_boot"));
    }
    s = g_string_new(NULL);
    for (i = 0; uuid && i < 16; i++) {
        g_string_append_printf(s, "%s%02x", i == 4 || i == 6 || i == 8 ||
                               i == 10 ? "-" : "", uuid[i]);
    }
    return g_string_free(s, false);
}

static bool relate_clock(Trace *t, const bt_trace *trace)
{
    g_autofree char *boot = host_boot(t, trace);
    uint64_t hz = bt_clock_class_get_frequency(t->clock), cycles;
    HtExport *x = t->x;
    int64_t s, wall;

    bt_clock_class_get_offset(t->clock, &s, &cycles);
    if (s < 0 || s > INT64_MAX / 4 / G_USEC_PER_SEC / 1000) {
        return refuse(t, "'%s': the offset of its clock is not possible",
                      t->dir);
    }
    wall = s * G_USEC_PER_SEC * 1000 +
           (int64_t)((double)cycles / hz * 1e9 + 0.5);
    if (!x->clock_known) {
        x->clock_known = true;
        x->host_boot = g_strdup(boot);
        x->wall_known = true;
        x->wall_ns = wall;
    } else if (!boot || !*boot || g_strcmp0(boot, x->host_boot)) {
        t->shift = x->wall_known ? wall - x->wall_ns : 0;
        g_printerr("hypertrace export: '%s' is not known to be from the same"
                   " boot of the same host as the first recording: its times"
                   " are as exact as the wall clocks of the hosts agree\n",
                   t->name);
    }
    return true;
}

/*
 * Begin the sequence, unless it has begun. @ns is the time of the event or loss
 * that the caller handles. Return false with @t->error set if this time cannot
 * be put on the common clock.
 */
static bool begin(Trace *t, const bt_stream *stream, uint64_t ns)
{
    const bt_trace *trace = bt_stream_borrow_trace_const(stream);
    HtExport *x = t->x;

    if (t->begun) {
        return true;
    }
    if (!relate_clock(t, trace)) {
        return false;
    }
    if ((int64_t)ns + t->shift < 0) {
        return refuse(t, "'%s' was recorded before the host of the first"
                      " recording booted", t->dir);
    }
    ns += t->shift;
    ht_export_perfetto_host(x, ns);
    pf_sequence_init(&t->s, &x->out, t->lttng ? 0 : ++x->machines,
                     ++x->sequences);
    t->begun = true;
    if (!t->lttng) {
        pf_machine(&t->s, ns, t->name);
    }
    pf_track(&t->s, ns, PF_TRACK_BASE + ((uint64_t)t->s.id << 32), 0,
             t->name);
    return true;
}

/*
 * Refuse a stream whose clock is not known to be the host's CLOCK_MONOTONIC, or
 * is not that of the trace's first stream. The clock is known only in traces of
 * hypertrace and LTTng. For the first stream, also set the members of @t
 * that describe the trace: whether it is of LTTng, its clock and its name.
 */
static bool check_clock(Trace *t, const bt_stream *bs)
{
    const bt_trace *trace = bt_stream_borrow_trace_const(bs);
    const char *tracer = ht_ctf_env(trace, "tracer_name") ?: "";
    const bt_clock_class *c =
        bt_stream_class_borrow_default_clock_class_const(
            bt_stream_borrow_class_const(bs));
    const char *name = c ? bt_clock_class_get_name(c) : NULL;
    const char *what = c ? bt_clock_class_get_description(c) : NULL;
    bool own = !strcmp(ht_ctf_env(trace, "written_by") ?: tracer,
                       "hypertrace");

    if (t->clock) {
        return c == t->clock || refuse(t, "'%s' has several clocks", t->dir);
    }
    t->lttng = !own && g_str_has_prefix(tracer, "lttng");
    if (own && what && !strstr(what, "CLOCK_MONOTONIC")) {
        return refuse(t, "'%s' has its guest's clock: give the recording from"
                      " which it was exported, or export that with"
                      " --clock=host", t->dir);
    }
    if (!c || !name || strcmp(name, "monotonic") || !(own || t->lttng)) {
        return refuse(t, "'%s' has no clock that is known to be the host's"
                      " CLOCK_MONOTONIC; traces of hypertrace and LTTng have"
                      " one", t->dir);
    }
    t->clock = c;
    t->precision_ns = bt_clock_class_get_precision(c);
    t->name = t->lttng ?
        g_strdup_printf("LTTng, %s", ht_ctf_env(trace, "trace_name") ?:
                        tracer) :
        g_strdup_printf("%s, %s", ht_ctf_env(trace, "vm_name") ?: "vm",
                        ht_ctf_env(trace, "device") ?: "device");
    return true;
}

static Stream *stream_of(Trace *t, const bt_stream *bs)
{
    Stream *s = g_hash_table_lookup(t->streams, bs);

    if (!s && check_clock(t, bs)) {
        s = g_new0(Stream, 1);
        s->cpu = -1;
        g_hash_table_insert(t->streams, (gpointer)bs, s);
    }
    return s;
}

static bool read_packet(void *opaque, const bt_message *msg)
{
    Trace *t = opaque;
    const bt_packet *p = bt_message_packet_beginning_borrow_packet_const(msg);
    Stream *s = stream_of(t, bt_packet_borrow_stream_const(p));
    const bt_field *context = bt_packet_borrow_context_field_const(p);

    if (s) {
        ht_ctf_number(context, "stream_index", &s->index);
        ht_ctf_number(context, "cpu_id", &s->cpu);
    }
    return s;
}

static void find_fields(Class *c)
{
    uint64_t i, n = bt_field_class_structure_get_member_count(c->fields);

    c->skip = g_new0(bool, n + 1);
    for (i = 0; i < n; i++) {
        c->skip[i] = ht_ctf_is_length(c->fields, i);
    }
    c->dated =
        ht_ctf_unsigned_find(c->fields, "stream", &c->stream_field) &&
        ht_ctf_unsigned_find(c->fields, "guest_ns", &c->guest_ns_field);
}

static Class *class_of(Trace *t, const bt_event_class *bc,
                       const bt_stream *bs)
{
    Class *c = g_hash_table_lookup(t->classes, bc);
    const bt_trace *trace = bt_stream_borrow_trace_const(bs);
    const char *name, *colon;

    if (c) {
        return c;
    }
    c = g_new0(Class, 1);
    name = bt_event_class_get_name(bc) ?: "?";
    colon = t->lttng ? strchr(name, ':') : NULL;
    c->name = colon ? colon + 1 : name;
    c->system = colon ? g_strndup(name, colon - name) :
        g_strdup(ht_ctf_env(trace, t->lttng ? "domain" : "device") ?: "?");
    c->wanted = ht_view_event(t->x->v, c->system, c->name);
    c->fields = bt_event_class_borrow_payload_field_class_const(bc);
    if (c->fields) {
        find_fields(c);
        c->dated &= t->lttng;
    }
    g_hash_table_insert(t->classes, (gpointer)bc, c);
    return c;
}

static void free_class(gpointer data)
{
    Class *c = data;

    g_free(c->system);
    g_free(c->skip);
    g_free(c);
}

/*
 * Get the UUID of the child track whose name is in @t->scratch, and write the
 * track if it is new. If there are too many, return the UUID of the trace's
 * track.
 */
static uint64_t track(Trace *t, uint64_t ns)
{
    uint64_t base = PF_TRACK_BASE + ((uint64_t)t->s.id << 32);
    uint64_t *uuid = g_hash_table_lookup(t->tracks, t->scratch->str);

    if (!uuid && g_hash_table_size(t->tracks) == TRACKS_MAX) {
        return base;
    }
    if (!uuid) {
        uuid = g_new(uint64_t, 1);
        *uuid = base + 1 + g_hash_table_size(t->tracks);
        g_hash_table_insert(t->tracks, g_strdup(t->scratch->str), uuid);
        pf_track(&t->s, ns, *uuid, base, t->scratch->str);
    }
    return *uuid;
}

static void name_track(Trace *t, const Stream *s, const char *system,
                       int64_t stream)
{
    GString *name = t->scratch;

    g_string_truncate(name, 0);
    if (system) {
        g_string_append_printf(name, "%s, ", system);
    }
    if (stream >= 0) {
        g_string_append_printf(name, "stream %" PRId64, stream);
    }
    if (s->cpu >= 0 && (!system || stream < 0)) {
        g_string_append_printf(name, "%sCPU %" PRId64,
                               stream >= 0 ? ", " : "", s->cpu);
    }
}

static gsize begin_event(Trace *t, uint64_t ns, const char *system,
                         const char *name, gsize *packet)
{
    uint64_t uuid = track(t, ns);
    gsize event;

    *packet = pf_packet_begin(&t->s, ns);
    event = ht_pb_begin(t->s.packet, PF_PACKET_TRACK_EVENT);
    ht_pb_uint(t->s.packet, PF_TRACK_EVENT_TYPE, PF_INSTANT);
    ht_pb_uint(t->s.packet, PF_TRACK_EVENT_UUID, uuid);
    ht_pb_guest(t->s.packet, PF_TRACK_EVENT_CATEGORIES, system,
                strlen(system));
    ht_pb_guest(t->s.packet, PF_TRACK_EVENT_NAME, name, strlen(name));
    return event;
}

static bool check_time(Trace *t, uint64_t ns)
{
    return ns <= INT64_MAX / 2 ||
           refuse(t, "'%s': the time of an event is too large", t->dir);
}

static bool put_event(Trace *t, const Stream *s, const Class *c,
                      const bt_event *event, uint64_t ns, uint64_t stamp)
{
    const bt_field *payload = bt_event_borrow_payload_field_const(event);
    const bt_field *contexts[] = {
        bt_event_borrow_common_context_field_const(event),
        bt_event_borrow_specific_context_field_const(event),
    };
    GString *b = t->s.packet;
    gsize packet, at;
    unsigned i;

    if (c->dated) {
        name_track(t, s, c->system,
                   MIN(ht_ctf_unsigned_value(payload, c->stream_field),
                       INT64_MAX));
    } else {
        name_track(t, s, t->lttng ? c->system : NULL,
                   t->lttng ? -1 : s->index);
    }
    at = begin_event(t, ns, c->system, c->name, &packet);
    if (payload) {
        pf_fields(b, payload, c->skip);
    }
    for (i = 0; i < G_N_ELEMENTS(contexts); i++) {
        if (contexts[i]) {
            pf_fields(b, contexts[i], NULL);
        }
    }
    if (c->dated) {
        pf_annotation(b, "delivered_ns", stamp);
    }
    ht_pb_end(b, at);
    t->events++;
    t->x->any = true;
    t->end_ns = MAX(t->end_ns, ns);
    return pf_packet_end(&t->s, packet);
}

static bool read_event(void *opaque, const bt_message *msg)
{
    Trace *t = opaque;
    const bt_event *event = bt_message_event_borrow_event_const(msg);
    const bt_stream *bs = bt_event_borrow_stream_const(event);
    const Stream *s = stream_of(t, bs);
    const Class *c;
    uint64_t ns, stamp, guest;

    if (!s) {
        return false;
    }
    c = class_of(t, bt_event_borrow_class_const(event), bs);
    if (!c->wanted) {
        return true;
    }
    stamp = ns = ht_ctf_ns(
        bt_message_event_borrow_default_clock_snapshot_const(msg));
    if (c->dated) {
        guest = ht_ctf_unsigned_value(
            bt_event_borrow_payload_field_const(event), c->guest_ns_field);
        ns = guest < INT64_MAX / 2 ? guest : ns;
    }
    return check_time(t, ns) && begin(t, bs, ns) &&
           put_event(t, s, c, event, MAX((int64_t)ns + t->shift, 0),
                     MAX((int64_t)stamp + t->shift, 0));
}

/*
 * Write an event "discarded events": @count events were lost before @ns. @count
 * is 1 if the number is not known.
 */
static bool put_loss(Trace *t, const Stream *s, uint64_t ns, uint64_t count)
{
    gsize packet, at;

    name_track(t, s, t->lttng ? "discarded" : NULL, t->lttng ? -1 : s->index);
    at = begin_event(t, ns, "hypertrace", "discarded events", &packet);
    pf_annotation(t->s.packet, "count", count);
    ht_pb_end(t->s.packet, at);
    t->end_ns = MAX(t->end_ns, ns);
    /*
     * Without --event, a loss counts as output. If --event selects no event of
     * any input, the export fails, even if a trace has losses.
     */
    t->x->any |= !t->x->v->event;
    return pf_packet_end(&t->s, packet);
}

static bool read_loss(void *opaque, const bt_message *msg)
{
    Trace *t = opaque;
    const bt_stream *bs = bt_message_discarded_events_borrow_stream_const(msg);
    const Stream *s = stream_of(t, bs);
    uint64_t count = 1, ns;

    if (!s) {
        return false;
    }
    bt_message_discarded_events_get_count(msg, &count);
    t->discarded += count;
    if (!bt_stream_class_discarded_events_have_default_clock_snapshots(
            bt_stream_borrow_class_const(bs))) {
        return true;
    }
    ns = ht_ctf_ns(
        bt_message_discarded_events_borrow_end_default_clock_snapshot_const(
            msg));
    return check_time(t, ns) && begin(t, bs, ns) &&
           put_loss(t, s, MAX((int64_t)ns + t->shift, 0), count);
}

static const HtCtfReader reader = {
    .event = read_event,
    .packet = read_packet,
    .lost_events = read_loss,
};

/*
 * Write the attributes of a trace, and free its sequence. The maximum error of
 * the times is known only for a trace of a device or ring that states it, and
 * only if @t->shift is 0.
 */
static void end_trace(Trace *t)
{
    bool known = !t->lttng && !t->shift && t->precision_ns;
    gsize at, all;

    at = pf_packet_begin(&t->s, t->end_ns);
    all = ht_pb_begin(t->s.packet, PF_PACKET_TRACE_ATTRIBUTES);
    pf_clock_attributes(&t->s, known ? &t->precision_ns : NULL);
    ht_pb_end(t->s.packet, all);
    pf_packet_end(&t->s, at);
    pf_sequence_end(&t->s);
}

static void report(const Trace *t)
{
    g_autoptr(GString) text = g_string_new("hypertrace export: '");

    ht_escape_str(text, HT_ESCAPE_TERMINAL, t->dir);
    g_string_append_printf(text, "': %" PRIu64 " event%s", t->events,
                           ht_number_s(t->events));
    if (t->discarded) {
        g_string_append_printf(text, ", %" PRIu64 " were discarded",
                               t->discarded);
    }
    if (!t->lttng && !t->shift && t->precision_ns) {
        g_string_append(text, "; on the host's clock, their error is at most ");
        ht_number_duration(text, t->precision_ns, 0);
    }
    g_printerr("%s\n", text->str);
}

static bool read_trace(void *opaque, const char *dir, GError **errp)
{
    HtExport *x = opaque;
    g_autoptr(GPtrArray) dirs = g_ptr_array_new();
    Trace t = {
        .x = x,
        .dir = dir,
        .streams = g_hash_table_new_full(NULL, NULL, NULL, g_free),
        .classes = g_hash_table_new_full(NULL, NULL, NULL, free_class),
        .tracks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                        g_free),
        .scratch = g_string_new(NULL),
    };
    bool ok;

    g_ptr_array_add(dirs, (gpointer)dir);
    ok = ht_ctf_read(dirs, &reader, &t, &t.error) && !t.error;
    if (t.begun) {
        end_trace(&t);
    }
    if (ok) {
        report(&t);
    } else {
        g_propagate_error(errp, t.error);
    }
    g_free(t.name);
    g_hash_table_destroy(t.streams);
    g_hash_table_destroy(t.classes);
    g_hash_table_destroy(t.tracks);
    g_string_free(t.scratch, true);
    return ok && !x->out.error;
}

bool ht_export_trace(HtExport *x, const char *dir, GError **errp)
{
    return ht_traces_each(dir, read_trace, x, errp);
}
