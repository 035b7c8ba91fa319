/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format perfetto
 *
 * Events of initcalls become slices of tracks. Other events are written in
 * bundles, each for one CPU. Bundles may be in any order, because Perfetto
 * sorts events.
 *
 * With the guest's clock, each segment of the clock becomes a file with one
 * sequence of packets. The guest's times are written as BOOTTIME, and one
 * ClockSnapshot relates them to the wall clock, if that is known.
 *
 * With the host's clock, there is one file for all recordings, in which the
 * host's times are written as BOOTTIME. The first machine in it is the host of
 * the first recording (or trace, if there is no recording), because Perfetto
 * assigns the clock to the first machine of a trace. Each boot of each guest is
 * another machine, for which no clock is written, and each segment of a guest's
 * clock is a sequence.
 *
 * A host's part becomes events of its host, and tracks of the vCPUs
 * (perfetto-vcpus.c). If that is not the first recording's host, or if this is
 * not known, the host is another machine.
 */
#include <gio/gio.h>
#include <string.h>

#include "cli/text.h"
#include "export/export.h"
#include "export/perfetto.h"
#include "export/protobuf.h"
#include "host/host-sums.h"
#include "views/host-view.h"

#define BUNDLE_BYTES    65536
#define TRACKS_MAX      4096
#define RECENT          1024

typedef struct Bundle {
    GString *events;
    bool lost;
} Bundle;

typedef struct File {
    HtExport *x;
    HtExportPart *part;
    PfWriter w;
    /* the sequence of all packets of @part */
    PfSequence s;
    /*
     * the file of @part, with the guest's clock; with the host's clock, the
     * output is HtExport.out instead
     */
    HtOutput own;
    uint64_t worst_ns;
    Bundle cpus[PF_CPUS_MAX];
    /* set of PIDs that have a track for initcalls */
    GHashTable *tracks;
    /*
     * set of PIDs of threads that have an event and whose process is not known
     */
    GHashTable *unknown;
    /* cache of PIDs that are in @unknown, by PID modulo RECENT */
    int32_t recent_unknown[RECENT];
} File;

/*
 * Write the kernel release and other properties of the machine, and its name
 * unless it is machine 0. Without the release, Perfetto assumes an old kernel
 * and misinterprets the states of tasks.
 */
static void put_system(File *f, uint64_t ns, unsigned boot)
{
    HtModel *m = f->x->m;
    const HtRecInfo *info = ht_rec_info(ht_model_recording(m));
    const char *release = ht_model_info(m, "guest", "release");
    const char *machine = ht_model_info(m, "guest", "machine");
    gsize at = pf_packet_begin(&f->s, ns), system, name;

    system = ht_pb_begin(f->s.packet, PF_PACKET_SYSTEM_INFO);
    name = ht_pb_begin(f->s.packet, PF_SYSTEM_UTSNAME);
    ht_pb_str(f->s.packet, PF_UTSNAME_SYSNAME, "Linux");
    ht_pb_guest(f->s.packet, PF_UTSNAME_RELEASE, release, strlen(release));
    ht_pb_guest(f->s.packet, PF_UTSNAME_MACHINE, machine, strlen(machine));
    ht_pb_end(f->s.packet, name);
    ht_pb_uint(f->s.packet, PF_SYSTEM_PAGE_SIZE, info->subbuf_size);
    ht_pb_uint(f->s.packet, PF_SYSTEM_NUM_CPUS, info->cpus);
    if (f->s.machine) {
        g_autofree char *called = boot == 1 ? g_strdup(f->x->name) :
            g_strdup_printf("%s, boot %u", f->x->name, boot);

        ht_pb_guest(f->s.packet, PF_SYSTEM_MACHINE_NAME, called,
                    strlen(called));
    }
    ht_pb_end(f->s.packet, system);
    pf_packet_end(&f->s, at);
}

static void put_process(File *f, int32_t pid, int32_t ppid, const char *comm)
{
    gsize one = ht_pb_begin(f->s.packet, PF_TREE_PROCESSES);

    ht_pb_uint(f->s.packet, PF_PROCESS_PID, pid);
    ht_pb_uint(f->s.packet, PF_PROCESS_PPID, MAX(ppid, 0));
    ht_pb_guest(f->s.packet, PF_PROCESS_CMDLINE, comm, strlen(comm));
    ht_pb_uint(f->s.packet, PF_PROCESS_CMDLINE_IS_COMM, 1);
    ht_pb_end(f->s.packet, one);
}

static void put_thread(File *f, int32_t tid, int32_t tgid, const char *comm)
{
    gsize one = ht_pb_begin(f->s.packet, PF_TREE_THREADS);

    ht_pb_uint(f->s.packet, PF_THREAD_TID, tid);
    ht_pb_guest(f->s.packet, PF_THREAD_NAME, comm, strlen(comm));
    ht_pb_uint(f->s.packet, PF_THREAD_TGID, tgid);
    ht_pb_end(f->s.packet, one);
}

static void put_host_threads(File *f, uint64_t ns)
{
    g_autoptr(GHashTable) threads = ht_host_sums_threads(f->x->m, NULL);
    gsize at = pf_packet_begin(&f->s, ns);
    gsize tree = ht_pb_begin(f->s.packet, PF_PACKET_PROCESS_TREE);
    GHashTableIter iter;
    gpointer tid, data;

    g_hash_table_iter_init(&iter, threads);
    while (g_hash_table_iter_next(&iter, &tid, &data)) {
        const HtHostThread *t = data;

        if (t->pid == GPOINTER_TO_UINT(tid)) {
            put_process(f, t->pid, 0, t->name);
        }
        put_thread(f, GPOINTER_TO_UINT(tid), t->pid, t->name);
    }
    ht_pb_end(f->s.packet, tree);
    if (g_hash_table_size(threads)) {
        pf_packet_end(&f->s, at);
    }
}

/*
 * Write the processes and threads that are known at the first event of the
 * part. Perfetto learns later ones from events.
 */
static void put_processes(File *f, uint64_t ns, GHashTable *tasks)
{
    GHashTableIter iter;
    gpointer data;
    gsize at, tree;
    bool any = false;

    at = pf_packet_begin(&f->s, ns);
    tree = ht_pb_begin(f->s.packet, PF_PACKET_PROCESS_TREE);
    g_hash_table_iter_init(&iter, tasks);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const HtTask *t = data;

        if (t->tgid <= 0) {
            continue;
        }
        any = true;
        if (t->tgid == t->pid) {
            put_process(f, t->pid, t->ppid, t->comm);
        }
        put_thread(f, t->pid, t->tgid, t->comm);
    }
    ht_pb_end(f->s.packet, tree);
    if (any) {
        pf_packet_end(&f->s, at);
    }
}

/*
 * Write attributes of the trace: its clock, with the host's clock the maximum
 * error of the part's times, and the number of threads of the part whose
 * process is not known.
 */
static void put_attributes(File *f, uint64_t ns)
{
    gsize at = pf_packet_begin(&f->s, ns), all;

    all = ht_pb_begin(f->s.packet, PF_PACKET_TRACE_ATTRIBUTES);
    if (f->x->v->host) {
        pf_clock_attributes(&f->s, &f->worst_ns);
    } else {
        pf_attribute(&f->s, "hypertrace.clock", "guest's trace clock", 0);
    }
    pf_attribute(&f->s, "hypertrace.threads_without_process", NULL,
                  g_hash_table_size(f->unknown));
    ht_pb_end(f->s.packet, all);
    pf_packet_end(&f->s, at);
}

static bool flush_cpu(File *f, unsigned cpu, uint64_t ns)
{
    Bundle *b = &f->cpus[cpu];
    gsize at, bundle;

    if (!b->events || !b->events->len) {
        return true;
    }
    at = pf_packet_begin(&f->s, ns);
    bundle = ht_pb_begin(f->s.packet, PF_PACKET_FTRACE_EVENTS);
    ht_pb_uint(f->s.packet, PF_BUNDLE_CPU, cpu);
    ht_text_append(f->s.packet, b->events->str, b->events->len);
    if (b->lost) {
        ht_pb_uint(f->s.packet, PF_BUNDLE_LOST_EVENTS, 1);
    }
    ht_text_append(f->s.packet, f->w.descriptors->str,
                   f->w.descriptors->len);
    ht_pb_end(f->s.packet, bundle);
    if (f->w.interned->len) {
        ht_pb_bytes(f->s.packet, PF_PACKET_INTERNED_DATA, f->w.interned->str,
                    f->w.interned->len);
    }
    g_string_truncate(f->w.descriptors, 0);
    g_string_truncate(f->w.interned, 0);
    g_string_truncate(b->events, 0);
    b->lost = false;
    return pf_packet_end(&f->s, at);
}

/*
 * Get or create a task's track for initcalls; return 0 if there are too many
 * tracks. The track has no other slices, so none can overlap the initcalls.
 */
static uint64_t initcall_track(File *f, const HtModelEvent *ev)
{
    int32_t pid = ev->rec.pid;
    uint64_t uuid = PF_TRACK_BASE + ((uint64_t)f->s.id << 32) +
                    (uint32_t)pid;
    g_autofree char *name = NULL;

    if (g_hash_table_contains(f->tracks, GINT_TO_POINTER(pid))) {
        return uuid;
    }
    if (g_hash_table_size(f->tracks) >= TRACKS_MAX) {
        return 0;
    }
    g_hash_table_add(f->tracks, GINT_TO_POINTER(pid));
    name = pid == 1 ? g_strdup("initcalls") :
           g_strdup_printf("initcalls of %d", pid);
    pf_track(&f->s, ev->rec.ns, uuid, 0, name);
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
    at = pf_packet_begin(&f->s, ev->rec.ns);
    event = ht_pb_begin(f->s.packet, PF_PACKET_TRACK_EVENT);
    ht_pb_uint(f->s.packet, PF_TRACK_EVENT_TYPE, begin ?
               PF_SLICE_BEGIN : PF_SLICE_END);
    ht_pb_uint(f->s.packet, PF_TRACK_EVENT_UUID, uuid);
    if (begin) {
        GString *s = f->w.scratch;

        g_string_truncate(s, 0);
        ht_model_symbol(f->x->m, ev->boot,
                        ht_event_uint(ev, HT_F_INITCALL_FUNC), s);
        ht_pb_str(f->s.packet, PF_TRACK_EVENT_CATEGORIES, "initcall");
        ht_pb_guest(f->s.packet, PF_TRACK_EVENT_NAME, s->str, s->len);
    } else {
        note = ht_pb_begin(f->s.packet, PF_TRACK_EVENT_ANNOTATIONS);
        ht_pb_str(f->s.packet, PF_ANNOTATION_NAME, "ret");
        ht_pb_uint(f->s.packet, PF_ANNOTATION_INT,
                   ht_event_uint(ev, HT_F_INITCALL_RET));
        ht_pb_end(f->s.packet, note);
    }
    ht_pb_end(f->s.packet, event);
    pf_packet_end(&f->s, at);
}

static void note_unknown(File *f, int32_t pid)
{
    int32_t *recent = &f->recent_unknown[(uint32_t)pid % RECENT];

    if (*recent != pid &&
        g_hash_table_size(f->unknown) < HT_EXPORT_FILES_MAX * 100) {
        g_hash_table_add(f->unknown, GINT_TO_POINTER(pid));
        *recent = pid;
    }
}

static bool put_event(File *f, const HtModelEvent *ev)
{
    Bundle *b;

    if (ev->rec.cpu >= PF_CPUS_MAX) {
        return true;
    }
    if (ev->rec.pid > 0 && ev->task->tgid == 0 && !f->x->host_part) {
        note_unknown(f, ev->rec.pid);
    }
    if (ev->class->kind == HT_KIND_INITCALL_START ||
        ev->class->kind == HT_KIND_INITCALL_FINISH) {
        put_initcall(f, ev);
        return !f->s.o->error;
    }
    b = &f->cpus[ev->rec.cpu];
    if (!b->events) {
        b->events = g_string_sized_new(BUNDLE_BYTES * 2);
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
        if (f->cpus[i].events) {
            g_string_free(f->cpus[i].events, true);
        }
    }
    g_hash_table_destroy(f->w.symbols);
    g_hash_table_destroy(f->tracks);
    g_hash_table_destroy(f->unknown);
    g_string_free(f->w.interned, true);
    g_string_free(f->w.descriptors, true);
    pf_sequence_end(&f->s);
    g_string_free(f->w.scratch, true);
    g_free(f);
}

static File *new_file(HtExport *x)
{
    File *f = g_new0(File, 1);

    f->x = x;
    f->w.m = x->m;
    f->w.symbols = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                         NULL);
    f->w.interned = g_string_new(NULL);
    f->w.descriptors = g_string_new(NULL);
    f->w.scratch = g_string_new(NULL);
    f->tracks = g_hash_table_new(NULL, NULL);
    f->unknown = g_hash_table_new(NULL, NULL);
    pf_sequence_init(&f->s, x->v->host ? &x->out : &f->own, 0,
                     x->v->host ? ++x->sequences : 1);
    return f;
}

void ht_export_perfetto_host(HtExport *x, uint64_t ns)
{
    PfSequence s;

    if (x->sequences) {
        return;
    }
    pf_sequence_init(&s, &x->out, 0, ++x->sequences);
    pf_clocks(&s, ns, true, x->wall_known ? &x->wall_ns : NULL);
    pf_machine(&s, ns, "host");
    pf_sequence_end(&s);
}

/*
 * Check whether the recording is a host's part, and its host is machine 0 of
 * the trace.
 */
static bool is_host(const HtExport *x)
{
    return x->host_part && x->same_host;
}

/*
 * Begin the part (x->part) of the event @ev: with the guest's clock, create its
 * file; with the host's clock, begin its sequence in the common file. @boot is
 * the boot of the previous part, or 0 for the first part.
 */
static File *begin_file(HtExport *x, const HtModelEvent *ev, unsigned boot,
                        GError **errp)
{
    HtExportPart *part = x->part;
    File *f;

    if (x->v->host) {
        ht_export_perfetto_host(x, ev->rec.ns);
        x->any = true;
    }
    f = new_file(x);
    if (x->v->host) {
        x->machines += ev->boot != boot && !is_host(x);
        f->s.machine = is_host(x) ? 0 : x->machines;
        f->worst_ns = part->worst_ns;
    } else if (!ht_output_file(&f->own, part->path, errp)) {
        free_file(f);
        return NULL;
    } else {
        int64_t wall;
        bool known = ht_export_wall(x, part, &wall);

        pf_clocks(&f->s, ev->rec.ns, false, known ? &wall : NULL);
    }
    f->part = part;
    put_system(f, ev->rec.ns, ev->boot);
    if (x->host_part) {
        put_host_threads(f, ev->rec.ns);
    } else {
        put_processes(f, ev->rec.ns, ht_model_tasks(x->m, ev->boot));
    }
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
    if (f->s.o == &f->own) {
        ok = ht_output_finish(&f->own, errp);
    }
    f->part->made = ok;
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
        /*
         * If put_event() failed to write, @errp is not set yet: end_file()
         * sets it, and with the host's clock run_all() does.
         */
        ok = end_file(f, ns, errp) && ok;
    }
    if (ok && x->host_part && boot) {
        ht_export_vcpus(x, is_host(x) ? 0 : x->machines);
    }
    return ok;
}
