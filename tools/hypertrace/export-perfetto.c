/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format perfetto
 *
 * Events go in bundles of one CPU each, in any order: Perfetto sorts them.
 * Times are the guest's clock, which takes the place of BOOTTIME; one
 * ClockSnapshot relates it to the wall clock.  All packets that intern are of
 * one sequence.
 *
 * With the host's clock there is one file, in which that takes the place of
 * BOOTTIME.  The host comes first, since Perfetto takes the first machine that
 * it sees for the one whose clock it is; each boot of each guest is another
 * machine, without a clock of its own, and each segment of a guest's clock a
 * sequence.
 */
#include <gio/gio.h>
#include <string.h>

#include "export.h"
#include "perfetto.h"
#include "protobuf.h"

#define BUNDLE_BYTES    65536
#define TRACKS_MAX      4096
#define TRACK_BASE      0x68740000      /* uuids; any but 0 */

#define SLICE_BEGIN     1
#define SLICE_END       2

typedef struct Bundle {
    GByteArray *events;
    bool lost;
} Bundle;

typedef struct File {
    HtExport *x;
    PfWriter w;
    HtOutput *o;
    HtOutput own;
    uint32_t machine;           /* 0: the only one */
    uint32_t sequence;
    uint64_t worst_ns;
    Bundle cpus[PF_CPUS_MAX];
    GHashTable *tracks;         /* pids that have a track of initcalls */
    GHashTable *unknown;        /* threads of no known process */
    GByteArray *packet;
    bool first;                 /* the sequence begins */
} File;

static gsize begin_packet(File *f, uint64_t ns)
{
    gsize at;

    g_byte_array_set_size(f->packet, 0);
    at = ht_pb_begin(f->packet, PF_TRACE_PACKET);
    ht_pb_uint(f->packet, PF_PACKET_TIMESTAMP, ns);
    ht_pb_uint(f->packet, PF_PACKET_SEQUENCE_ID, f->sequence);
    if (f->machine) {
        ht_pb_uint(f->packet, PF_PACKET_MACHINE_ID, f->machine);
    }
    if (f->first) {
        ht_pb_uint(f->packet, PF_PACKET_SEQUENCE_FLAGS,
                   PF_INCREMENTAL_STATE_CLEARED);
        f->first = false;
    }
    return at;
}

static bool end_packet(File *f, gsize at)
{
    ht_pb_end(f->packet, at);
    g_string_append_len(f->o->text, (const char *)f->packet->data,
                        f->packet->len);
    return ht_output_room(f->o);
}

/* Without it Perfetto takes the kernel for an old one and misreads states. */
static void put_system(File *f, uint64_t ns, unsigned boot)
{
    HtModel *m = f->x->m;
    const HtRecInfo *info = ht_rec_info(ht_model_recording(m));
    const char *release = ht_model_info(m, "guest", "release");
    const char *machine = ht_model_info(m, "guest", "machine");
    gsize at = begin_packet(f, ns), system, name;

    system = ht_pb_begin(f->packet, PF_PACKET_SYSTEM_INFO);
    name = ht_pb_begin(f->packet, PF_SYSTEM_UTSNAME);
    ht_pb_str(f->packet, PF_UTSNAME_SYSNAME, "Linux");
    ht_pb_guest(f->packet, PF_UTSNAME_RELEASE, release, strlen(release));
    ht_pb_guest(f->packet, PF_UTSNAME_MACHINE, machine, strlen(machine));
    ht_pb_end(f->packet, name);
    ht_pb_uint(f->packet, PF_SYSTEM_PAGE_SIZE, info->subbuf_size);
    ht_pb_uint(f->packet, PF_SYSTEM_NUM_CPUS, info->cpus);
    if (f->machine) {
        g_autofree char *called = boot == 1 ? g_strdup(f->x->name) :
            g_strdup_printf("%s, boot %u", f->x->name, boot);

        ht_pb_guest(f->packet, PF_SYSTEM_MACHINE_NAME, called, strlen(called));
    }
    ht_pb_end(f->packet, system);
    end_packet(f, at);
}

static void put_clock(GByteArray *b, unsigned clock, uint64_t ns)
{
    gsize at = ht_pb_begin(b, PF_CLOCKS);

    ht_pb_uint(b, PF_CLOCK_ID, clock);
    ht_pb_uint(b, PF_CLOCK_TIMESTAMP, ns);
    ht_pb_end(b, at);
}

/* The first packet of all: the clock can be set only before it is used. */
static void put_clocks(File *f, uint64_t ns, unsigned boot)
{
    gsize at = begin_packet(f, ns), snapshot;
    int64_t wall;

    snapshot = ht_pb_begin(f->packet, PF_PACKET_CLOCK_SNAPSHOT);
    put_clock(f->packet, PF_CLOCK_BOOTTIME, ns);
    if (f->x->v->host) {
        put_clock(f->packet, PF_CLOCK_MONOTONIC, ns);
    }
    if (ht_export_wall(f->x, boot, &wall)) {
        put_clock(f->packet, PF_CLOCK_REALTIME, wall + ns);
    }
    ht_pb_uint(f->packet, PF_PRIMARY_TRACE_CLOCK, PF_CLOCK_BOOTTIME);
    ht_pb_end(f->packet, snapshot);
    end_packet(f, at);
}

/* Who was there before: only what is not made by an event of this file */
static void put_processes(File *f, uint64_t ns, GHashTable *tasks)
{
    GHashTableIter iter;
    gpointer data;
    gsize at, tree, one;
    bool any = false;

    at = begin_packet(f, ns);
    tree = ht_pb_begin(f->packet, PF_PACKET_PROCESS_TREE);
    g_hash_table_iter_init(&iter, tasks);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const HtTask *t = data;

        if (t->tgid <= 0) {
            continue;
        }
        any = true;
        if (t->tgid == t->pid) {
            one = ht_pb_begin(f->packet, PF_TREE_PROCESSES);
            ht_pb_uint(f->packet, PF_PROCESS_PID, t->pid);
            ht_pb_uint(f->packet, PF_PROCESS_PPID, MAX(t->ppid, 0));
            ht_pb_guest(f->packet, PF_PROCESS_CMDLINE, t->comm,
                        strlen(t->comm));
            ht_pb_uint(f->packet, PF_PROCESS_CMDLINE_IS_COMM, 1);
            ht_pb_end(f->packet, one);
        }
        one = ht_pb_begin(f->packet, PF_TREE_THREADS);
        ht_pb_uint(f->packet, PF_THREAD_TID, t->pid);
        ht_pb_guest(f->packet, PF_THREAD_NAME, t->comm, strlen(t->comm));
        ht_pb_uint(f->packet, PF_THREAD_TGID, t->tgid);
        ht_pb_end(f->packet, one);
    }
    ht_pb_end(f->packet, tree);
    if (any) {
        end_packet(f, at);
    }
}

static void put_attribute(File *f, const char *key, const char *text,
                          uint64_t number)
{
    gsize one = ht_pb_begin(f->packet, PF_ATTRIBUTE);

    ht_pb_str(f->packet, PF_ATTRIBUTE_KEY, key);
    if (text) {
        ht_pb_guest(f->packet, PF_ATTRIBUTE_STRING, text, strlen(text));
    } else {
        ht_pb_uint(f->packet, PF_ATTRIBUTE_LONG, number);
    }
    ht_pb_end(f->packet, one);
}

/* What is not known is said in the trace, too. */
static void put_attributes(File *f, uint64_t ns)
{
    gsize at = begin_packet(f, ns), all;

    all = ht_pb_begin(f->packet, PF_PACKET_TRACE_ATTRIBUTES);
    if (f->x->v->host) {
        g_autofree char *key = g_strdup_printf("hypertrace.bound_ns.%u.%u",
                                               f->machine, f->sequence);

        put_attribute(f, "hypertrace.clock", "host's CLOCK_MONOTONIC", 0);
        put_attribute(f, key, NULL, f->worst_ns);
    } else {
        put_attribute(f, "hypertrace.clock", "guest's trace clock", 0);
    }
    put_attribute(f, "hypertrace.threads_without_process", NULL,
                  g_hash_table_size(f->unknown));
    ht_pb_end(f->packet, all);
    end_packet(f, at);
}

static bool flush_cpu(File *f, unsigned cpu, uint64_t ns)
{
    Bundle *b = &f->cpus[cpu];
    gsize at, bundle;

    if (!b->events || !b->events->len) {
        return true;
    }
    at = begin_packet(f, ns);
    bundle = ht_pb_begin(f->packet, PF_PACKET_FTRACE_EVENTS);
    ht_pb_uint(f->packet, PF_BUNDLE_CPU, cpu);
    g_byte_array_append(f->packet, b->events->data, b->events->len);
    if (b->lost) {
        ht_pb_uint(f->packet, PF_BUNDLE_LOST_EVENTS, 1);
    }
    g_byte_array_append(f->packet, f->w.descriptors->data,
                        f->w.descriptors->len);
    ht_pb_end(f->packet, bundle);
    if (f->w.interned->len) {
        ht_pb_bytes(f->packet, PF_PACKET_INTERNED_DATA, f->w.interned->data,
                    f->w.interned->len);
    }
    g_byte_array_set_size(f->w.descriptors, 0);
    g_byte_array_set_size(f->w.interned, 0);
    g_byte_array_set_size(b->events, 0);
    b->lost = false;
    return end_packet(f, at);
}

/* Tracks of their own: nothing else nests in them. */
static uint64_t initcall_track(File *f, const HtModelEvent *ev)
{
    int32_t pid = ev->rec.pid;
    uint64_t uuid = TRACK_BASE + ((uint64_t)f->sequence << 32) +
                    (uint32_t)pid;
    gsize at, track;

    if (g_hash_table_contains(f->tracks, GINT_TO_POINTER(pid))) {
        return uuid;
    }
    if (g_hash_table_size(f->tracks) >= TRACKS_MAX) {
        return 0;
    }
    g_hash_table_add(f->tracks, GINT_TO_POINTER(pid));
    at = begin_packet(f, ev->rec.ns);
    track = ht_pb_begin(f->packet, PF_PACKET_TRACK_DESCRIPTOR);
    ht_pb_uint(f->packet, PF_TRACK_UUID, uuid);
    if (pid == 1) {
        ht_pb_str(f->packet, PF_TRACK_NAME, "initcalls");
    } else {
        g_autofree char *name = g_strdup_printf("initcalls of %d", pid);

        ht_pb_str(f->packet, PF_TRACK_NAME, name);
    }
    ht_pb_end(f->packet, track);
    end_packet(f, at);
    return uuid;
}

static void put_initcall(File *f, const HtModelEvent *ev)
{
    bool begin = ev->class->kind == HT_KIND_INITCALL_START;
    uint64_t uuid = initcall_track(f, ev);
    gsize at, event, note;

    if (!uuid) {
        return;
    }
    at = begin_packet(f, ev->rec.ns);
    event = ht_pb_begin(f->packet, PF_PACKET_TRACK_EVENT);
    ht_pb_uint(f->packet, PF_TRACK_EVENT_TYPE, begin ? SLICE_BEGIN : SLICE_END);
    ht_pb_uint(f->packet, PF_TRACK_EVENT_UUID, uuid);
    if (begin) {
        GString *s = f->w.scratch;

        g_string_truncate(s, 0);
        ht_model_symbol(f->x->m, ev->boot,
                        ht_event_uint(ev, HT_F_INITCALL_FUNC), s);
        ht_pb_str(f->packet, PF_TRACK_EVENT_CATEGORIES, "initcall");
        ht_pb_guest(f->packet, PF_TRACK_EVENT_NAME, s->str, s->len);
    } else {
        note = ht_pb_begin(f->packet, PF_TRACK_EVENT_ANNOTATIONS);
        ht_pb_str(f->packet, PF_ANNOTATION_NAME, "ret");
        ht_pb_uint(f->packet, PF_ANNOTATION_INT,
                   ht_event_uint(ev, HT_F_INITCALL_RET));
        ht_pb_end(f->packet, note);
    }
    ht_pb_end(f->packet, event);
    end_packet(f, at);
}

static bool put_event(File *f, const HtModelEvent *ev)
{
    Bundle *b;

    if (ev->rec.cpu >= PF_CPUS_MAX) {
        return true;
    }
    if (ev->rec.pid > 0 && ev->task->tgid == 0 &&
        g_hash_table_size(f->unknown) < HT_EXPORT_FILES_MAX * 100) {
        g_hash_table_add(f->unknown, GINT_TO_POINTER(ev->rec.pid));
    }
    if (ev->class->kind == HT_KIND_INITCALL_START ||
        ev->class->kind == HT_KIND_INITCALL_FINISH) {
        put_initcall(f, ev);
        return !f->o->error;
    }
    b = &f->cpus[ev->rec.cpu];
    if (!b->events) {
        b->events = g_byte_array_sized_new(BUNDLE_BYTES * 2);
    }
    if (ev->rec.lost_before) {
        if (!flush_cpu(f, ev->rec.cpu, ev->rec.ns)) {
            return false;
        }
        b->lost = true;
    }
    pf_event(&f->w, ev, b->events);
    return b->events->len < BUNDLE_BYTES ||
           flush_cpu(f, ev->rec.cpu, ev->rec.ns);
}

static void free_file(File *f)
{
    unsigned i;

    for (i = 0; i < PF_CPUS_MAX; i++) {
        g_clear_pointer(&f->cpus[i].events, g_byte_array_unref);
    }
    g_hash_table_destroy(f->w.symbols);
    g_hash_table_destroy(f->tracks);
    g_hash_table_destroy(f->unknown);
    g_byte_array_unref(f->w.interned);
    g_byte_array_unref(f->w.descriptors);
    g_byte_array_unref(f->packet);
    g_string_free(f->w.scratch, true);
    g_free(f);
}

static File *new_file(HtExport *x)
{
    File *f = g_new0(File, 1);

    f->x = x;
    f->first = true;
    f->w.m = x->m;
    f->w.symbols = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                         NULL);
    f->w.interned = g_byte_array_new();
    f->w.descriptors = g_byte_array_new();
    f->w.scratch = g_string_new(NULL);
    f->packet = g_byte_array_new();
    f->tracks = g_hash_table_new(NULL, NULL);
    f->unknown = g_hash_table_new(NULL, NULL);
    f->sequence = x->v->host ? ++x->sequences : 1;
    f->o = x->v->host ? &x->out : &f->own;
    return f;
}

/* The host itself, with the clock that all have */
static void put_host(HtExport *x, uint64_t ns)
{
    File *f = new_file(x);
    gsize at, system;

    put_clocks(f, ns, 0);
    at = begin_packet(f, ns);
    system = ht_pb_begin(f->packet, PF_PACKET_SYSTEM_INFO);
    ht_pb_str(f->packet, PF_SYSTEM_MACHINE_NAME, "host");
    ht_pb_end(f->packet, system);
    end_packet(f, at);
    free_file(f);
}

/* @boot is that of the file before, 0 if this is the recording's first */
static File *begin_file(HtExport *x, const HtModelEvent *ev, unsigned boot,
                        GError **errp)
{
    HtExportPart *part = ht_export_part(x, ev->boot, ev->rec.segment);
    File *f;

    if (!part) {
        return NULL;
    }
    if (x->v->host && !x->sequences) {
        put_host(x, ev->rec.ns);
    }
    f = new_file(x);
    if (x->v->host) {
        x->machines += ev->boot != boot;
        f->machine = x->machines;
        f->worst_ns = part->worst_ns;
    } else if (!ht_output_file(&f->own, part->path, errp)) {
        free_file(f);
        return NULL;
    } else {
        put_clocks(f, ev->rec.ns, ev->boot);
    }
    part->made = true;
    put_system(f, ev->rec.ns, ev->boot);
    put_processes(f, ev->rec.ns, ht_model_tasks(x->m, ev->boot));
    return f;
}

static bool end_file(File *f, uint64_t ns, GError **errp)
{
    unsigned cpu;
    bool ok = true;

    for (cpu = 0; cpu < PF_CPUS_MAX; cpu++) {
        ok = flush_cpu(f, cpu, ns) && ok;
    }
    put_attributes(f, ns);
    f->x->unknown_tasks += g_hash_table_size(f->unknown);
    if (f->o == &f->own) {
        ok = ht_output_finish(&f->own, errp);
    }
    free_file(f);
    return ok;
}

bool ht_export_perfetto(HtExport *x, GError **errp)
{
    unsigned boot = 0, segment = 0;
    uint64_t ns = 0;
    File *f = NULL;
    HtModelEvent ev;
    bool ok = true;

    while (ok && ht_export_next(x, &ev)) {
        if (f && (ev.boot != boot || ev.rec.segment != segment)) {
            ok = end_file(f, ns, errp);
            f = NULL;
        }
        if (ok && !f) {
            f = begin_file(x, &ev, boot, errp);
            ns = ev.rec.ns;
            boot = ev.boot;
            segment = ev.rec.segment;
        }
        ok = f != NULL && ok && put_event(f, &ev);
        ns = MAX(ns, ev.rec.ns);
    }
    if (f) {
        /* also says why it could not be written */
        ok = end_file(f, ns, errp) && ok;
    }
    return ok;
}
