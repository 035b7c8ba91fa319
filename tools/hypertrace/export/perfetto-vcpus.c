/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format perfetto: the vCPUs of the host's part
 *
 * Each vCPU has a track, up to a maximum number. The slices of a track do not
 * overlap. The tracks of a virtual machine's vCPUs are children of a track for
 * that virtual machine.
 */
#include <string.h>

#include "export/export.h"
#include "export/perfetto.h"
#include "export/protobuf.h"
#include "host/host-sums.h"
#include "views/host-view.h"

#define TRACKS_MAX      4096

typedef struct Track {
    uint64_t uuid;
    uint64_t end_ns;
} Track;

typedef struct Vcpus {
    HtExport *x;
    PfSequence s;
    GHashTable *threads;
    GHashTable *tracks;         /* table from a vCPU's thread ID to Track */
    /* table from a virtual machine's process ID to the UUID of its track */
    GHashTable *machines;
} Vcpus;

static uint64_t new_uuid(const Vcpus *c)
{
    return PF_TRACK_BASE + ((uint64_t)c->s.id << 32) + 1 +
           g_hash_table_size(c->tracks) + g_hash_table_size(c->machines);
}

static uint64_t machine_track(Vcpus *c, const HtVcpuSums *v, uint64_t ns)
{
    gpointer key = GUINT_TO_POINTER(v->machine);
    uint64_t *uuid = g_hash_table_lookup(c->machines, key);
    const HtHostThread *t = ht_host_thread(c->threads, v->machine);
    g_autofree char *name = NULL;

    if (!uuid) {
        uuid = g_new(uint64_t, 1);
        *uuid = new_uuid(c);
        g_hash_table_insert(c->machines, key, uuid);
        name = g_strdup_printf("vCPUs of %s %u", t ? t->name : "process",
                               v->machine);
        pf_track(&c->s, ns, *uuid, 0, name);
    }
    return *uuid;
}

/* Get or create the track of a vCPU; NULL if there are too many tracks. */
static Track *vcpu_track(Vcpus *c, const HtVcpuSums *v, uint64_t ns)
{
    Track *t = g_hash_table_lookup(c->tracks, GUINT_TO_POINTER(v->tid));
    g_autofree char *name = NULL;
    uint64_t parent;

    if (t || g_hash_table_size(c->tracks) == TRACKS_MAX) {
        return t;
    }
    parent = machine_track(c, v, ns);
    t = g_new0(Track, 1);
    t->uuid = new_uuid(c);
    g_hash_table_insert(c->tracks, GUINT_TO_POINTER(v->tid), t);
    name = v->vcpu < 0 ? g_strdup_printf("all vCPUs (thread %u)", v->tid) :
           g_strdup_printf("vCPU %d (thread %u)", v->vcpu, v->tid);
    pf_track(&c->s, ns, t->uuid, parent, name);
    return t;
}

static void put_edge(Vcpus *c, const Track *t, uint64_t ns, const char *name)
{
    gsize at = pf_packet_begin(&c->s, ns), event;

    event = ht_pb_begin(c->s.packet, PF_PACKET_TRACK_EVENT);
    ht_pb_uint(c->s.packet, PF_TRACK_EVENT_TYPE, name ? PF_SLICE_BEGIN :
               PF_SLICE_END);
    ht_pb_uint(c->s.packet, PF_TRACK_EVENT_UUID, t->uuid);
    if (name) {
        ht_pb_str(c->s.packet, PF_TRACK_EVENT_CATEGORIES, "vcpu");
        ht_pb_guest(c->s.packet, PF_TRACK_EVENT_NAME, name, strlen(name));
    }
    ht_pb_end(c->s.packet, event);
    pf_packet_end(&c->s, at);
}

static void put_slice(Vcpus *c, const HtVcpuSums *v, uint64_t from, uint64_t to,
                      const char *name)
{
    int64_t shift = c->x->v->shift;
    Track *t;

    from = MAX((int64_t)from + shift, 0);
    to = MAX((int64_t)to + shift, 0);
    t = vcpu_track(c, v, from);
    if (!t) {
        return;
    }
    from = MAX(from, t->end_ns);
    if (to > from) {
        put_edge(c, t, from, name);
        put_edge(c, t, to, NULL);
        t->end_ns = to;
    }
}

/*
 * HtTakenFunc: write a slice for the time in which a vCPU waits for a CPU that
 * runs another task or is idle
 */
static void taken(void *opaque, const HtVcpuSums *v, const HtHostTask *task,
                  uint64_t from, uint64_t to)
{
    g_autofree char *name = task->idle ? g_strdup("waits for an idle CPU") :
        g_strdup_printf("waits for %.*s-%d", (int)task->len, task->comm,
                        task->pid);

    put_slice(opaque, v, from, to, name);
}

/*
 * HtRunstates.span: write a slice for the time in which a vCPU kept its state
 * and mode, unless the vCPU was offline. taken() may have written slices for a
 * part of a wait; put_slice() leaves out the time up to the end of the last
 * slice.
 */
static void span(void *opaque, const HtVcpuSums *v, HtRunstate state,
                 HtRunMode mode, uint64_t from, uint64_t to)
{
    static const char * const states[HT_RUN_STATES] = {
        [HT_RUN_RUNNABLE] = "waits for a CPU", [HT_RUN_BLOCKED] = "blocked",
    };
    static const char * const modes[HT_MODES] = {
        "runs", "guest", "exit", "QEMU",
    };
    g_autofree char *name = NULL;

    if (state == HT_RUN_OFFLINE) {
        return;
    }
    if (state == HT_RUN_RUNNING && mode == HT_MODE_EXIT && v->exit &&
        *v->exit->name) {
        name = g_strdup_printf("exit %s", v->exit->name);
    }
    put_slice(opaque, v, from, to, name ? name :
              state == HT_RUN_RUNNING ? modes[mode] :
              state == HT_RUN_BLOCKED && v->halt ? "halted" : states[state]);
}

void ht_export_vcpus(HtExport *x, unsigned machine)
{
    g_autoptr(HtRunstates) sums = ht_runstates_new();
    Vcpus c = {
        .x = x,
        .threads = ht_host_sums_threads(x->m, NULL),
        .tracks = g_hash_table_new_full(NULL, NULL, NULL, g_free),
        .machines = g_hash_table_new_full(NULL, NULL, NULL, g_free),
    };

    pf_sequence_init(&c.s, &x->out, machine, ++x->sequences);
    sums->taken = taken;
    sums->span = span;
    sums->opaque = &c;
    sums->from = x->v->from_ns;
    sums->to = x->v->to_ns;
    ht_model_rewind(x->m);
    ht_host_sums(sums, x->m, c.threads);
    pf_sequence_end(&c.s);
    g_hash_table_destroy(c.threads);
    g_hash_table_destroy(c.tracks);
    g_hash_table_destroy(c.machines);
}
