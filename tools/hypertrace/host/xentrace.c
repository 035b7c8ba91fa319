/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: sums of a trace that xentrace wrote on a Xen host
 *
 * The file may hold any bytes: every length is checked against its chunk, and
 * each table has a limit.
 */
#include <glib.h>
#include <string.h>

#include "host/xentrace.h"
#include "hypertrace/base.h"

#define CPUS_MAX        1024
#define VCPUS_MAX       4096
#define EXIT_ROWS_MAX   8192    /* 7.7 KB each */
#define CALLS_MAX       256     /* different hypercalls of a vCPU */

#define EVENT_MASK      0x0fffffff
#define WITH_TSC        0x80000000

/* Numbers of records; Xen's public/trace.h defines them */
enum {
    LOST_RECORDS    = 0x0001f001,
    CPU_CHANGE      = 0x0001f003,
    RUNSTATE        = 0x00021001,   /* and the two states */
    CONTINUE        = 0x00021002,   /* the scheduler lets the vCPU run on */
    RUNSTATE_MASK   = 0x0ffffccf,
    HVM_ENTRY       = 0x00081001,
    HVM_EXIT        = 0x00081002,
    HVM_EXIT64      = 0x00081003,
    HVM_VMMCALL     = 0x00082012,
    PV_CALL_OLD     = 0x0020f001,
    PV_CALL_OLD64   = 0x0020f101,
    PV_CALL         = 0x0020100d,
    HVM_NESTED      = 0x400,
    HVM_64          = 0x100,
};

typedef struct Chunk {
    size_t at, end;
} Chunk;

typedef struct Cpu {
    GArray *chunks;             /* of Chunk */
    unsigned chunk;
    size_t at, end;             /* rest of the current chunk */
    uint64_t tsc;
    HtXenVcpu *current;
} Cpu;

typedef struct Record {
    uint32_t event;
    unsigned words;
    uint32_t word[7];
    uint64_t tsc;
    size_t size;
} Record;

static void free_vcpu(gpointer p)
{
    HtXenVcpu *v = p;

    g_hash_table_destroy(v->exits);
    g_hash_table_destroy(v->hypercalls);
    g_free(v);
}

/* Find or create a vCPU. @id: domain << 16 | vCPU. NULL: too many vCPUs */
static HtXenVcpu *find_vcpu(HtXentrace *x, uint32_t id)
{
    HtXenVcpu *v = g_hash_table_lookup(x->by_id, GUINT_TO_POINTER(id));

    if (!v && x->vcpus->len < VCPUS_MAX) {
        v = g_new0(HtXenVcpu, 1);
        v->domain = id >> 16;
        v->vcpu = id;
        v->exits = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        v->hypercalls = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        g_ptr_array_add(x->vcpus, v);
        g_hash_table_insert(x->by_id, GUINT_TO_POINTER(id), v);
    }
    x->others += !v;
    return v;
}

static void end_exit(HtXenVcpu *v)
{
    v->open_exits += v->exit != NULL;
    v->exit = NULL;
}

static void add_state(HtXenVcpu *v, unsigned state, uint64_t cycles)
{
    v->cycles[state] += cycles;
    v->intervals[state]++;
    if (state == HT_XEN_RUNNABLE) {
        v->preempted += v->before == HT_XEN_RUNNING ? cycles : 0;
        v->woken += v->before == HT_XEN_BLOCKED ? cycles : 0;
    }
}

/*
 * Check whether any physical CPU lost records since the vCPU's last change of
 * state. The losses of all CPUs count, because a vCPU may move to any of them.
 * @tsc is set to the time of the first lost record.
 */
static bool lost_since(const HtXentrace *x, const HtXenVcpu *v, uint64_t *tsc)
{
    if (v->losses >= x->losses->len) {
        return false;
    }
    *tsc = g_array_index(x->losses, uint64_t, v->losses);
    return true;
}

/*
 * Add the time since the vCPU's last change to the state that it had. Time from
 * the first lost record on counts as unknown, and so does all the time if the
 * state is not the one that the record names as the old one (@from).
 */
static void end_state(HtXentrace *x, HtXenVcpu *v, unsigned from, uint64_t tsc)
{
    uint64_t cycles = tsc > v->since ? tsc - v->since : 0, lost;

    if (lost_since(x, v, &lost)) {
        uint64_t before = lost > v->since ? MIN(lost - v->since, cycles) : 0;

        add_state(v, v->state, before);
        v->unknown += cycles - before;
        end_exit(v);
    } else if (v->state == from) {
        add_state(v, from, cycles);
    } else {
        v->unknown += cycles;
        end_exit(v);
    }
}

static void runstate(HtXentrace *x, Cpu *cpus, unsigned n, const Record *r)
{
    unsigned from = r->event >> 8 & 3, to = r->event >> 4 & 3;
    HtXenVcpu *v = find_vcpu(x, r->word[0]);

    if (!v) {
        cpus[n].current = to == HT_XEN_RUNNING ? NULL : cpus[n].current;
        return;
    }
    if (v->seen) {
        end_state(x, v, from, r->tsc);
    }
    if (v->exit && from == HT_XEN_RUNNING) {
        v->exit_cycles += r->tsc > v->exit_since ? r->tsc - v->exit_since : 0;
    }
    v->exit_since = r->tsc;
    v->before = from;
    v->state = to;
    v->seen = true;
    v->since = r->tsc;
    v->losses = x->losses->len;
    if (cpus[v->cpu].current == v) {
        cpus[v->cpu].current = NULL;
    }
    if (to == HT_XEN_RUNNING) {
        v->cpu = n;
        cpus[n].current = v;
    }
}

/*
 * Handle CONTINUE: the scheduler lets the vCPU run on. If it was not known to
 * run on this CPU, its state is known from this record on.
 */
static void run_on(HtXentrace *x, Cpu *cpus, unsigned n, Record r)
{
    const HtXenVcpu *v = find_vcpu(x, r.word[0]);

    if (v && (!v->seen || cpus[n].current != v)) {
        r.event = RUNSTATE;
        runstate(x, cpus, n, &r);
    }
}

static unsigned bucket(uint64_t cycles)
{
    unsigned e;

    if (cycles < 32) {
        return cycles;
    }
    e = 63 - __builtin_clzll(cycles);
    return (e - 4) * 32 + (cycles >> (e - 5) & 31);
}

/* The largest time of a bucket */
static uint64_t bucket_end(unsigned i)
{
    unsigned shift = i < 64 ? 0 : i / 32 - 1;

    return i < 32 ? i : ((i % 32 + 32ULL) << shift) + ((1ULL << shift) - 1);
}

uint64_t ht_xentrace_percentile(const HtXenExit *e, unsigned percent)
{
    uint64_t need = (e->count * percent + 99) / 100, sum = 0;
    unsigned i;

    for (i = 0; i < HT_XEN_BUCKETS; i++) {
        sum += e->buckets[i];
        if (sum >= need) {
            return MIN(bucket_end(i), e->max);
        }
    }
    return e->max;
}

static void hvm_exit(HtXentrace *x, HtXenVcpu *v, const Record *r)
{
    gpointer key = GUINT_TO_POINTER(r->word[0]);

    end_exit(v);
    v->exit = g_hash_table_lookup(v->exits, key);
    if (!v->exit) {
        if (x->rows >= EXIT_ROWS_MAX) {
            x->others++;
            return;
        }
        x->rows++;
        v->exit = g_new0(HtXenExit, 1);
        v->exit->reason = r->word[0];
        g_hash_table_insert(v->exits, key, v->exit);
    }
    v->exit_since = r->tsc;
    v->exit_cycles = 0;
}

static void hvm_entry(HtXenVcpu *v, uint64_t tsc)
{
    HtXenExit *e = v->exit;

    if (e) {
        uint64_t cycles = v->exit_cycles +
                          (tsc > v->exit_since ? tsc - v->exit_since : 0);

        e->count++;
        e->cycles += cycles;
        e->max = MAX(e->max, cycles);
        e->buckets[bucket(cycles)]++;
        v->exit = NULL;
    }
}

static void hypercall(HtXentrace *x, HtXenVcpu *v, uint32_t number)
{
    gpointer key = GUINT_TO_POINTER(number);
    uint64_t *count = g_hash_table_lookup(v->hypercalls, key);

    if (!count) {
        if (g_hash_table_size(v->hypercalls) >= CALLS_MAX) {
            x->others++;
            return;
        }
        count = g_new0(uint64_t, 1);
        g_hash_table_insert(v->hypercalls, key, count);
    }
    ++*count;
}

static void lost_records(HtXentrace *x, Cpu *cpu, const Record *r)
{
    uint64_t first = r->tsc;

    if (r->words >= 4) {
        first = MIN(first, r->word[2] | (uint64_t)r->word[3] << 32);
    }
    x->lost += r->words ? r->word[0] : 0;
    x->gaps++;
    g_array_append_val(x->losses, first);
    if (cpu->current) {
        end_exit(cpu->current);
        cpu->current = NULL;
    }
}

static void count(HtXentrace *x, Cpu *cpus, unsigned n, const Record *r)
{
    HtXenVcpu *v = cpus[n].current;
    uint32_t hvm = r->event & ~(HVM_NESTED | HVM_64);

    x->records++;
    if (r->event == LOST_RECORDS) {
        lost_records(x, &cpus[n], r);
    } else if ((r->event & RUNSTATE_MASK) == RUNSTATE && r->words >= 1) {
        runstate(x, cpus, n, r);
    } else if (r->event == CONTINUE && r->words >= 1) {
        run_on(x, cpus, n, *r);
    } else if (v && (hvm == HVM_EXIT || hvm == HVM_EXIT64) && r->words >= 1) {
        hvm_exit(x, v, r);
    } else if (v && hvm == HVM_ENTRY) {
        hvm_entry(v, r->tsc);
    } else if (v && r->event == PV_CALL && r->words >= 1) {
        /* Bits 20 and above describe the arguments. */
        hypercall(x, v, r->word[0] & 0xfffff);
    } else if (v && hvm == HVM_VMMCALL && r->words >= 1) {
        hypercall(x, v, r->word[0]);
    } else if (v && r->event == PV_CALL_OLD && r->words >= 2) {
        hypercall(x, v, r->word[1]);
    } else if (v && r->event == PV_CALL_OLD64 && r->words >= 3) {
        hypercall(x, v, r->word[2]);
    }
}

/* Read the CPU's next record, without consuming it. */
static bool peek(HtXentrace *x, const uint8_t *data, Cpu *cpu, Record *r)
{
    for (;;) {
        size_t left = cpu->end - cpu->at;
        const uint8_t *p = data + cpu->at;
        uint32_t head = left >= 4 ? ht_get_le32(p) : 0;
        unsigned i;

        r->words = head >> 28 & 7;
        r->size = 4 + (head & WITH_TSC ? 8 : 0) + 4 * r->words;
        if (left >= r->size) {
            p += 4;
            r->event = head & EVENT_MASK;
            r->tsc = cpu->tsc;
            if (head & WITH_TSC) {
                r->tsc = ht_get_le64(p);
                p += 8;
            }
            for (i = 0; i < r->words; i++) {
                r->word[i] = ht_get_le32(p + 4 * i);
            }
            return true;
        }
        x->damaged += left;
        if (cpu->chunk >= cpu->chunks->len) {
            cpu->at = cpu->end;
            return false;
        }
        cpu->at = g_array_index(cpu->chunks, Chunk, cpu->chunk).at;
        cpu->end = g_array_index(cpu->chunks, Chunk, cpu->chunk).end;
        cpu->chunk++;
    }
}

/* Collect the chunks of each CPU. */
static bool find_chunks(HtXentrace *x, Cpu *cpus, const uint8_t *data,
                        size_t size, GError **errp)
{
    size_t at = 0;

    while (size - at >= 12) {
        uint32_t head = ht_get_le32(data + at);
        uint32_t cpu = ht_get_le32(data + at + 4);
        uint32_t len = ht_get_le32(data + at + 8);
        Chunk c;

        if (head != (2U << 28 | CPU_CHANGE)) {
            break;
        }
        at += 12;
        c = (Chunk) { at, at + MIN(len, size - at) };
        at = c.end;
        if (cpu >= CPUS_MAX) {
            x->damaged += c.end - c.at;
            continue;
        }
        if (!cpus[cpu].chunks) {
            cpus[cpu].chunks = g_array_new(false, false, sizeof(Chunk));
            x->cpus++;
        }
        g_array_append_val(cpus[cpu].chunks, c);
    }
    if (!at) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the file is not a trace of xentrace: it does not begin"
                    " with a record 0x2001f003; record one with 'xentrace -D -e"
                    " 0x0008f000 FILE' on the Xen host");
        return false;
    }
    x->damaged += size - at;
    return true;
}

/* Count the records of all CPUs in the order of their times */
static void merge(HtXentrace *x, Cpu *cpus, const uint8_t *data)
{
    unsigned used[CPUS_MAX], n = 0, i;
    g_autofree Record *next = g_new0(Record, CPUS_MAX);

    for (i = 0; i < CPUS_MAX; i++) {
        if (cpus[i].chunks && peek(x, data, &cpus[i], &next[i])) {
            used[n++] = i;
        }
    }
    while (n) {
        unsigned best = 0;
        Record *r;
        Cpu *cpu;

        for (i = 1; i < n; i++) {
            best = next[used[i]].tsc < next[used[best]].tsc ? i : best;
        }
        r = &next[used[best]];
        cpu = &cpus[used[best]];
        /*
         * Raise a time that goes back to the latest time, so that no interval
         * is counted twice.
         */
        x->backward += r->tsc < cpu->tsc;
        r->tsc = cpu->tsc = MAX(r->tsc, x->end);
        if (r->tsc) {
            x->begin = MIN(x->begin, r->tsc);
            x->end = r->tsc;
        }
        count(x, cpus, used[best], r);
        cpu->at += r->size;
        if (!peek(x, data, cpu, r)) {
            used[best] = used[--n];
        }
    }
    /* End the runs that are still open at the last record of their CPU. */
    for (i = 0; i < CPUS_MAX; i++) {
        if (cpus[i].current) {
            end_state(x, cpus[i].current, HT_XEN_RUNNING, cpus[i].tsc);
        }
    }
}

static gint by_id(gconstpointer a, gconstpointer b)
{
    const HtXenVcpu *v = *(const HtXenVcpu * const *)a;
    const HtXenVcpu *w = *(const HtXenVcpu * const *)b;

    return v->domain != w->domain ? v->domain - w->domain : v->vcpu - w->vcpu;
}

HtXentrace *ht_xentrace_read(const uint8_t *data, size_t size, GError **errp)
{
    HtXentrace *x = g_new0(HtXentrace, 1);
    g_autofree Cpu *cpus = g_new0(Cpu, CPUS_MAX);
    bool ok;
    unsigned i;

    x->vcpus = g_ptr_array_new_with_free_func(free_vcpu);
    x->by_id = g_hash_table_new(NULL, NULL);
    x->losses = g_array_new(false, false, sizeof(uint64_t));
    x->begin = UINT64_MAX;
    ok = find_chunks(x, cpus, data, size, errp);
    if (ok) {
        merge(x, cpus, data);
    }
    x->begin = MIN(x->begin, x->end);
    for (i = 0; i < x->vcpus->len; i++) {
        end_exit(x->vcpus->pdata[i]);
    }
    for (i = 0; i < CPUS_MAX; i++) {
        g_clear_pointer(&cpus[i].chunks, g_array_unref);
    }
    g_ptr_array_sort(x->vcpus, by_id);
    if (!ok) {
        ht_xentrace_free(x);
        return NULL;
    }
    return x;
}

void ht_xentrace_free(HtXentrace *x)
{
    if (x) {
        g_hash_table_destroy(x->by_id);
        g_array_unref(x->losses);
        g_ptr_array_unref(x->vcpus);
        g_free(x);
    }
}
