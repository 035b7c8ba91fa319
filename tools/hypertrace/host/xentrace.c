/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up a trace that xentrace wrote on a Xen host
 *
 * The file is not trusted: a chunk that is longer than the rest of the file is
 * cut, and a record must lie within its chunk.
 */
#include <glib.h>
#include <string.h>

#include "host/xentrace.h"
#include "hypertrace/base.h"

#define CPUS_MAX        1024

#define EVENT_MASK      0x0fffffff
#define WITH_TSC        0x80000000

/* Ids of trace records, as in Xen's public/trace.h */
enum {
    LOST_RECORDS    = 0x0001f001,
    CPU_CHANGE      = 0x0001f003,
    /* a vCPU changes its state; bits 8 and 9: old state; 4 and 5: new state */
    RUNSTATE        = 0x00021001,
    /* the scheduler chose the vCPU that already runs on the CPU */
    CONTINUE        = 0x00021002,
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
    GArray *chunks;
    unsigned chunk;
    /* unread range of the present chunk, as offsets in the file */
    size_t at, end;
    uint64_t tsc;
    HtVcpuSums *current;
    /* vCPU that ran last on this CPU; NULL if not known */
    const HtVcpuSums *last;
} Cpu;

typedef struct Record {
    uint32_t event;
    unsigned words;
    uint32_t word[7];
    uint64_t tsc;
    size_t size;
} Record;

/*
 * Find or create the vCPU with the number @id, domain << 16 | vCPU. Returns
 * NULL if the table of vCPUs is full.
 */
static HtVcpuSums *find_vcpu(HtRunstates *x, uint32_t id)
{
    HtVcpuSums *v = ht_runstates_vcpu(x, id);

    if (v) {
        v->machine = id >> 16;
        v->vcpu = id & 0xffff;
    }
    return v;
}

static HtHostTask task_of(const HtVcpuSums *v)
{
    return (HtHostTask) {
        .pid = v->machine << 16 | v->vcpu,
        .machine = v->machine,
        .idle = v->machine == HT_XEN_IDLE,
    };
}

/*
 * Report to @x that CPU @n changes its task at @t. The time before @t counts
 * for the vCPU that ran there last, if that vCPU is known. @v: the vCPU that
 * runs next; NULL: not known
 */
static void end_turn(HtRunstates *x, const Cpu *cpus, unsigned n,
                     const HtVcpuSums *v, uint64_t t)
{
    HtHostTask task, next;

    if (cpus[n].last) {
        task = task_of(cpus[n].last);
    }
    if (v) {
        next = task_of(v);
    }
    ht_runstates_ran(x, n, cpus[n].last ? &task : NULL, v ? &next : NULL, v, t);
}

static void runstate(HtRunstates *x, Cpu *cpus, unsigned n, const Record *r)
{
    unsigned from = r->event >> 8 & 3, to = r->event >> 4 & 3;
    HtVcpuSums *v = find_vcpu(x, r->word[0]);

    if (!v) {
        cpus[n].current = to == HT_RUN_RUNNING ? NULL : cpus[n].current;
        return;
    }
    if (cpus[v->cpu].current == v) {
        cpus[v->cpu].current = NULL;
        end_turn(x, cpus, v->cpu, NULL, r->tsc);
    }
    if (to == HT_RUN_RUNNING) {
        end_turn(x, cpus, n, v, r->tsc);
        cpus[n].current = v;
        cpus[n].last = v;
    }
    ht_runstates_change(x, v, from, to, r->tsc);
    if (to == HT_RUN_RUNNING) {
        v->cpu = n;
    }
}

/*
 * Handle CONTINUE. This changes the sums only if the vCPU was not known to run
 * on this CPU: a record of its start was lost, or is before the trace.
 */
static void run_on(HtRunstates *x, Cpu *cpus, unsigned n, Record r)
{
    const HtVcpuSums *v = find_vcpu(x, r.word[0]);

    if (v && (!v->seen || cpus[n].current != v)) {
        r.event = RUNSTATE;
        runstate(x, cpus, n, &r);
    }
}

static void lost_records(HtRunstates *x, Cpu *cpu, const Record *r)
{
    uint64_t first = r->tsc;

    if (r->words >= 4) {
        first = MIN(first, r->word[2] | (uint64_t)r->word[3] << 32);
    }
    ht_runstates_lost(x, r->words ? r->word[0] : 0, first);
    if (cpu->current) {
        ht_runstates_drop_exit(cpu->current);
        cpu->current = NULL;
    }
    cpu->last = NULL;
}

static void count(HtRunstates *x, Cpu *cpus, unsigned n, const Record *r)
{
    HtVcpuSums *v = cpus[n].current;
    uint32_t hvm = r->event & ~(HVM_NESTED | HVM_64);

    x->records++;
    if (r->event == LOST_RECORDS) {
        lost_records(x, &cpus[n], r);
    } else if ((r->event & RUNSTATE_MASK) == RUNSTATE && r->words >= 1) {
        runstate(x, cpus, n, r);
    } else if (r->event == CONTINUE && r->words >= 1) {
        run_on(x, cpus, n, *r);
    } else if (v && (hvm == HVM_EXIT || hvm == HVM_EXIT64) && r->words >= 1) {
        ht_runstates_exit(x, v, r->word[0], r->tsc);
    } else if (v && hvm == HVM_ENTRY) {
        ht_runstates_entry(v, r->tsc);
    } else if (v && r->event == PV_CALL && r->words >= 1) {
        /*
         * Bits 0 to 19 of the first word are the number of the hypercall. The
         * higher bits show which arguments follow.
         */
        ht_runstates_hypercall(x, v, r->word[0] & 0xfffff);
    } else if (v && hvm == HVM_VMMCALL && r->words >= 1) {
        ht_runstates_hypercall(x, v, r->word[0]);
    } else if (v && r->event == PV_CALL_OLD && r->words >= 2) {
        ht_runstates_hypercall(x, v, r->word[1]);
    } else if (v && r->event == PV_CALL_OLD64 && r->words >= 3) {
        ht_runstates_hypercall(x, v, r->word[2]);
    }
}

/*
 * Decode a CPU's next record, without advancing past it. Returns false if the
 * CPU has no further record.
 */
static bool peek(HtRunstates *x, const uint8_t *data, Cpu *cpu, Record *r)
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

static bool find_chunks(HtRunstates *x, Cpu *cpus, const uint8_t *data,
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

static void merge(HtRunstates *x, Cpu *cpus, const uint8_t *data)
{
    unsigned used[CPUS_MAX], n = 0, i;
    g_autofree Record *next = g_new0(Record, CPUS_MAX);
    bool stopped = false;

    for (i = 0; i < CPUS_MAX; i++) {
        if (cpus[i].chunks && peek(x, data, &cpus[i], &next[i])) {
            used[n++] = i;
        }
    }
    while (n) {
        unsigned best = 0;
        Record *r;
        Cpu *cpu;
        bool back;

        for (i = 1; i < n; i++) {
            best = next[used[i]].tsc < next[used[best]].tsc ? i : best;
        }
        r = &next[used[best]];
        cpu = &cpus[used[best]];
        /*
         * If this record's time is before the time of a record that was handled
         * earlier, of any CPU, raise it to that time. Otherwise an interval
         * could be counted twice.
         */
        back = r->tsc < cpu->tsc;
        r->tsc = MAX(r->tsc, x->end);
        if (r->tsc && !ht_runstates_time(x, &r->tsc)) {
            stopped = true;
            break;
        }
        cpu->tsc = r->tsc;
        x->backward += back;
        count(x, cpus, used[best], r);
        cpu->at += r->size;
        if (!peek(x, data, cpu, r)) {
            used[best] = used[--n];
        }
    }
    ht_runstates_stop(x, false);
    /*
     * Add the time of vCPUs that still run: up to the end of the sums if the
     * trace has a record after that end, else up to the last record of the
     * vCPU's CPU.
     */
    for (i = 0; i < CPUS_MAX; i++) {
        if (cpus[i].current) {
            ht_runstates_close(x, cpus[i].current,
                               stopped ? x->end : cpus[i].tsc);
        }
    }
}

bool ht_xentrace_read(HtRunstates *x, const uint8_t *data, size_t size,
                      GError **errp)
{
    g_autofree Cpu *cpus = g_new0(Cpu, CPUS_MAX);
    bool ok = find_chunks(x, cpus, data, size, errp);
    unsigned i;

    if (ok) {
        merge(x, cpus, data);
    }
    for (i = 0; i < CPUS_MAX; i++) {
        g_clear_pointer(&cpus[i].chunks, g_array_unref);
    }
    ht_runstates_end(x);
    return ok;
}
