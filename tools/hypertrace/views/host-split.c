/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: split times of a guest by what its host did meanwhile
 *
 * Each vCPU has an array of the times at which its HtSplitPart changed. For
 * every MARK_EVERY entries there is a mark, with the sums of the times of all
 * parts up to that entry. A time is thus split without reading all entries in
 * it.
 */
#include <string.h>

#include "cli/number.h"
#include "host/changes.h"
#include "host/guest-tasks.h"
#include "host/host-sums.h"
#include "model/duration.h"
#include "model/host-clock.h"
#include "views/host-split.h"
#include "views/host-view.h"

#define CHANGES_MAX     (8u << 20)
#define MARK_EVERY      64
#define VCPUS_MAX       4096

typedef struct Change {
    uint64_t ns;
    /* HtSplitPart to which the vCPU's time belongs from @ns on */
    uint32_t part;
    /* the vCPU ran in a mode that is not known: see set_parts() */
    bool no_mode;
} Change;

typedef struct Vcpu {
    GArray *changes;            /* of Change, sorted by time */
    GArray *marks;              /* of HtSplit */
    /* host time in ns up to which the last change's part is known */
    uint64_t end_ns;
    /* TCG emulates the vCPU: it has no modes. Valid after find_emulated() */
    bool emulated;
} Vcpu;

struct HtHostSplit {
    HtHostClock *clock;
    uint32_t process;
    bool one_cpu;
    /*
     * table from the number of a vCPU to Vcpu; -1: a thread that runs all vCPUs
     */
    GHashTable *vcpus;
    unsigned changes;           /* number of Change in all of @vcpus */
    /* maximum errors of the guest times that were converted to host times */
    HtBounds bounds;
};

static void free_vcpu(gpointer data)
{
    Vcpu *v = data;

    g_array_unref(v->changes);
    g_array_unref(v->marks);
    g_free(v);
}

static Vcpu *find_vcpu(HtHostSplit *s, int32_t number)
{
    return g_hash_table_lookup(s->vcpus, GINT_TO_POINTER(number));
}

static Vcpu *add_vcpu(HtHostSplit *s, int32_t number)
{
    Vcpu *v = find_vcpu(s, number);

    if (!v && g_hash_table_size(s->vcpus) < VCPUS_MAX) {
        v = g_new0(Vcpu, 1);
        v->changes = g_array_new(false, false, sizeof(Change));
        v->marks = g_array_new(false, false, sizeof(HtSplit));
        v->emulated = true;
        g_hash_table_insert(s->vcpus, GINT_TO_POINTER(number), v);
    }
    return v;
}

static const Change *change_at(const Vcpu *v, unsigned i)
{
    return &g_array_index(v->changes, Change, i);
}

/* Add up the times of a vCPU's parts up to its change @i. */
static HtSplit sums_to(const Vcpu *v, unsigned i)
{
    unsigned mark = i / MARK_EVERY, k;
    HtSplit sums = g_array_index(v->marks, HtSplit, mark);

    for (k = mark * MARK_EVERY; k < i; k++) {
        sums.ns[change_at(v, k)->part] += change_at(v, k + 1)->ns -
                                          change_at(v, k)->ns;
    }
    return sums;
}

static void add_change(HtHostSplit *s, Vcpu *v, uint64_t ns, HtSplitPart part,
                       bool no_mode)
{
    unsigned n = v->changes->len;
    Change c = { ns, part, no_mode };
    const Change *last = n ? change_at(v, n - 1) : NULL;

    if (last && last->part == c.part && last->no_mode == no_mode) {
        return;
    }
    s->changes++;
    g_array_append_val(v->changes, c);
}

static HtSplitPart part_of(HtRunstate state, HtRunMode mode)
{
    switch (state) {
    case HT_RUN_RUNNING:
        return mode == HT_MODE_EXIT || mode == HT_MODE_VMM ? HT_SPLIT_EXITS :
               mode == HT_MODE_GUEST ? HT_SPLIT_GUEST : HT_SPLIT_UNKNOWN;
    case HT_RUN_RUNNABLE:
        return HT_SPLIT_STOLEN;
    case HT_RUN_BLOCKED:
        return HT_SPLIT_BLOCKED;
    default:
        return HT_SPLIT_UNKNOWN;
    }
}

static void add_span(void *opaque, const HtVcpuSums *v, HtRunstate state,
                     HtRunMode mode, uint64_t from, uint64_t to)
{
    HtHostSplit *s = opaque;
    Vcpu *own = v->machine == s->process ? add_vcpu(s, v->vcpu) : NULL;

    if (!own || s->changes >= CHANGES_MAX) {
        return;
    }
    if (own->changes->len && from > own->end_ns) {
        add_change(s, own, own->end_ns, HT_SPLIT_UNKNOWN, false);
    }
    add_change(s, own, from, part_of(state, mode),
               state == HT_RUN_RUNNING && mode == HT_MODE_UNKNOWN);
    own->end_ns = to;
}

/* Find out which vCPUs TCG emulates. This is known only after all events. */
static void find_emulated(HtHostSplit *s, const HtRunstates *x)
{
    unsigned i;

    for (i = 0; i < x->vcpus->len; i++) {
        const HtVcpuSums *v = x->vcpus->pdata[i];
        Vcpu *own = v->machine == s->process ? find_vcpu(s, v->vcpu) : NULL;

        if (own) {
            own->emulated &= ht_host_sums_emulated(v);
        }
    }
}

/*
 * Make a vCPU's marks, and choose the part of its running times with an unknown
 * mode: HT_SPLIT_GUEST if TCG emulates the vCPU, because the vCPU's thread then
 * executes the guest's code; else HT_SPLIT_UNKNOWN.
 */
static void set_parts(Vcpu *v)
{
    unsigned i;

    for (i = 0; i < v->changes->len; i++) {
        Change *c = &g_array_index(v->changes, Change, i);

        if (c->no_mode && v->emulated) {
            c->part = HT_SPLIT_GUEST;
        }
        if (i % MARK_EVERY == 0) {
            /* The time before the first change counts as unknown. */
            HtSplit sums = { .ns[HT_SPLIT_UNKNOWN] = c->ns };

            if (i) {
                sums = sums_to(v, i - 1);
                sums.ns[c[-1].part] += c->ns - c[-1].ns;
            }
            g_array_append_val(v->marks, sums);
        }
    }
}

static void set_all_parts(HtHostSplit *s, const HtRunstates *x)
{
    GHashTableIter it;
    gpointer v;

    find_emulated(s, x);
    g_hash_table_iter_init(&it, s->vcpus);
    while (g_hash_table_iter_next(&it, NULL, &v)) {
        set_parts(v);
    }
}

static bool read_host(HtHostSplit *s, const char *dir, GError **errp)
{
    g_autofree char *part = ht_host_view_part(dir);
    g_autoptr(HtRunstates) sums = NULL;
    g_autoptr(GHashTable) threads = NULL;
    g_autoptr(HtModel) m = NULL;
    GError *error = NULL;

    if (!part) {
        ht_host_view_no_part(dir, errp);
        return false;
    }
    m = ht_model_open(part, errp);
    if (!m) {
        return false;
    }
    threads = ht_host_sums_threads(m, &error);
    if (error) {
        g_propagate_error(errp, error);
        return false;
    }
    sums = ht_runstates_new();
    sums->span = add_span;
    sums->opaque = s;
    ht_host_sums(sums, m, threads);
    set_all_parts(s, sums);
    ht_view_trouble(m);
    return true;
}

HtHostSplit *ht_host_split_new(const char *dir, HtModel *guest, GError **errp)
{
    HtHostSplit *s = g_new0(HtHostSplit, 1);

    s->vcpus = g_hash_table_new_full(NULL, NULL, NULL, free_vcpu);
    s->one_cpu = !g_strcmp0(ht_model_info(guest, "guest", "cpus"), "1");
    if (ht_guest_tasks_find_process(guest, &s->process, errp) &&
        read_host(s, dir, errp)) {
        s->clock = ht_host_clock_new(guest, errp);
    }
    if (!s->clock) {
        ht_host_split_free(s);
        return NULL;
    }
    return s;
}

void ht_host_split_free(HtHostSplit *s)
{
    if (s) {
        ht_host_clock_free(s->clock);
        g_hash_table_destroy(s->vcpus);
        g_free(s);
    }
}

/* Add up the times of a vCPU's parts up to the host time @ns. */
static HtSplit sums_at(const Vcpu *v, uint64_t ns)
{
    uint64_t known = MIN(ns, v->end_ns);
    unsigned n = ht_changes_until(v->changes, known);
    HtSplit sums = { .ns[HT_SPLIT_UNKNOWN] = ns };
    const Change *c;

    if (n) {
        c = change_at(v, n - 1);
        sums = sums_to(v, n - 1);
        sums.ns[c->part] += known - c->ns;
        sums.ns[HT_SPLIT_UNKNOWN] += ns - known;
    }
    return sums;
}

/*
 * Get the vCPU of a processor; NULL if it is not known. A thread of the host
 * that runs all vCPUs is the vCPU only if the guest has just one processor.
 */
static Vcpu *vcpu_of(HtHostSplit *s, uint32_t cpu)
{
    return find_vcpu(s, cpu) ?: s->one_cpu ? find_vcpu(s, -1) : NULL;
}

void ht_host_split_add(HtHostSplit *s, unsigned boot, uint32_t segment,
                       uint32_t cpu, uint64_t from_ns, uint64_t to_ns,
                       HtSplit *split)
{
    uint64_t all = ht_elapsed(from_ns, to_ns), left = all, from, to, a, b, ns;
    const Vcpu *v = vcpu_of(s, cpu);
    HtSplit before, after;
    unsigned i;

    if (!v || !ht_host_clock_at(s->clock, boot, segment, from_ns, &from, &a) ||
        !ht_host_clock_at(s->clock, boot, segment, to_ns, &to, &b) ||
        to <= from) {
        split->ns[HT_SPLIT_UNKNOWN] += all;
        return;
    }
    ht_bounds_add(&s->bounds, MAX(a, b));
    before = sums_at(v, from);
    after = sums_at(v, to);
    /*
     * scale to the guest's time, because the two clocks may have different
     * rates
     */
    for (i = HT_SPLIT_GUEST + 1; i < HT_SPLIT_PARTS; i++) {
        ns = (double)(after.ns[i] - before.ns[i]) / (to - from) * all + 0.5;
        ns = MIN(ns, left);
        split->ns[i] += ns;
        left -= ns;
    }
    split->ns[HT_SPLIT_GUEST] += left;
}

uint64_t ht_host_split_since(HtHostSplit *s, unsigned boot, uint32_t segment,
                             uint32_t cpu, uint64_t from_ns, uint64_t host_ns,
                             HtSplit *split)
{
    const Vcpu *v = vcpu_of(s, cpu);
    uint64_t from, bound;
    HtSplit before, after;
    unsigned i;

    if (!v || !ht_host_clock_at(s->clock, boot, segment, from_ns, &from,
                                &bound) || host_ns <= from) {
        return 0;
    }
    ht_bounds_add(&s->bounds, bound);
    before = sums_at(v, from);
    after = sums_at(v, host_ns);
    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        split->ns[i] += after.ns[i] - before.ns[i];
    }
    return host_ns - from;
}

void ht_host_split_sum(HtSplit *to, const HtSplit *from)
{
    unsigned i;

    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        to->ns[i] += from->ns[i];
    }
}

const char *ht_host_split_name(HtSplitPart part)
{
    static const char * const names[HT_SPLIT_PARTS] = {
        "guest", "exits", "stolen", "blocked", "unknown",
    };

    return names[part];
}

uint64_t ht_host_split_total(const HtSplit *split)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        sum += split->ns[i];
    }
    return sum;
}

void ht_host_split_error(const HtHostSplit *s, HtOutput *o)
{
    if (s->bounds.all) {
        ht_host_view_error(&s->bounds, "the guest's", o);
        g_string_append_c(o->text, '\n');
    } else {
        g_string_append(o->text, "no time of the guest is known on the"
                        " host's clock\n");
    }
}

void ht_host_split_text(const HtHostSplit *s, const HtSplit *split, HtOutput *o)
{
    uint64_t all = MAX(ht_host_split_total(split), 1);
    unsigned i;

    g_string_append(o->text, "by the host:");
    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        if (i != HT_SPLIT_UNKNOWN || split->ns[i]) {
            g_string_append_printf(o->text, "%s %s %.1f%%", i ? "," : "",
                                   ht_host_split_name(i),
                                   100.0 * split->ns[i] / all);
        }
    }
    g_string_append(o->text, "; ");
    ht_host_split_error(s, o);
}

void ht_host_split_share(const HtSplit *split, HtSplitPart part, HtOutput *o)
{
    uint64_t all = ht_host_split_total(split);

    g_string_append_printf(o->text, " %8.1f%%",
                           all ? 100.0 * split->ns[part] / all : 0);
}

void ht_host_split_json(const HtSplit *split, const char *name, HtJson *j)
{
    unsigned i;

    ht_json_open(j, name, '{');
    for (i = 0; i < HT_SPLIT_PARTS; i++) {
        g_autofree char *key = g_strdup_printf("%s_ns", ht_host_split_name(i));

        ht_json_uint(j, key, split->ns[i]);
    }
    ht_json_close(j, '}');
}
