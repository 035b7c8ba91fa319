/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up the states and exits of the vCPUs of a host
 *
 * There are two sources: a trace of a Xen host (xentrace.h) and the host's part
 * of a recording (host-sums.h). With Xen, times and ticks are cycles of the
 * TSC, else nanoseconds. Both sources report changes in the order of their
 * times.
 */
#ifndef HYPERTRACE_TOOL_RUNSTATES_H
#define HYPERTRACE_TOOL_RUNSTATES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* States of a vCPU in the host's scheduler, with Xen's numbers */
typedef enum HtRunstate {
    HT_RUN_RUNNING,             /* the vCPU has a physical processor */
    HT_RUN_RUNNABLE,            /* the vCPU waits for a physical processor */
    /* the vCPU waits for something else, or is halted */
    HT_RUN_BLOCKED,
    HT_RUN_OFFLINE,             /* Xen: offline; else: the thread has ended */
    HT_RUN_STATES,
} HtRunstate;

/*
 * What a running vCPU does; not known with Xen. If TCG emulates a vCPU,
 * ht_host_sums() counts all its running time as HT_MODE_VMM.
 */
typedef enum HtRunMode {
    /* no event has shown the mode, or none since a gap */
    HT_MODE_UNKNOWN,
    HT_MODE_GUEST,              /* the vCPU executes the guest's code */
    /* the host's kernel handles an exit of the vCPU */
    HT_MODE_EXIT,
    /* from an exit to QEMU until the next entry to the guest */
    HT_MODE_VMM,
    HT_MODES,
} HtRunMode;

/* Number of Xen's domain whose vCPUs stand for idle CPUs */
#define HT_XEN_IDLE     32767

/*
 * Buckets for durations of exits: one for each duration below 32 ticks, and 32
 * for each higher power of two. The longest duration of a bucket exceeds any
 * other in it by at most 1/32.
 */
#define HT_EXIT_BUCKETS 1920

/**
 * HtExitSums: exits of one vCPU for one reason
 * @reason: number of the reason, as the processor defines it (VMX or SVM)
 * @name: the kernel's name of the reason; "" if it is not known
 * @count: exits with a known end
 * @ticks: their total time, without the time in which the vCPU did not run
 * @max: longest time of one of these exits, counted like @ticks
 * @buckets: number of these exits by their time
 */
typedef struct HtExitSums {
    uint32_t reason;
    char name[28];
    uint64_t count;
    uint64_t ticks;
    uint64_t max;
    uint32_t buckets[HT_EXIT_BUCKETS];
} HtExitSums;

/**
 * HtHostTask: a task of the host that had a processor
 * @pid: ID of the task's thread, 0 for Linux's idle tasks; with Xen: the @id of
 *       ht_runstates_vcpu()
 * @machine: PID of the task's process, or @pid if the process is not known;
 *           with Xen: number of the domain
 * @idle: the task stands for an idle processor
 * @len: length of @comm in bytes
 * @comm: name of the task, which may have any bytes
 */
typedef struct HtHostTask {
    int32_t pid;
    uint32_t machine;
    bool idle;
    gsize len;
    char comm[16];
} HtHostTask;

/**
 * HtCpuTicks: the part of HtTaker.ticks for which the taker ran on one
 * processor
 */
typedef struct HtCpuTicks {
    uint32_t cpu;
    uint64_t ticks;
} HtCpuTicks;

/**
 * HtTaker: a task, or all tasks with the same HtHostTask.machine, that ran
 * while a vCPU waited for a processor
 * @pid: HtHostTask.pid of the task that ran last
 * @machine: HtHostTask.machine of the task that ran last
 * @idle: the taker stands for idle processors
 * @comm: name of the task that ran last, which may have any bytes
 * @ticks: time for which the vCPU waited while the taker ran
 * @waits: number of the vCPU's waits in which the taker ran
 * @longest: longest time for which the taker ran in one wait
 * @cpus: array of HtCpuTicks, in no order: parts of @ticks, or all of them if
 *        the limit of entries was not reached; NULL: none
 */
typedef struct HtTaker {
    int32_t pid;
    uint32_t machine;
    bool idle;
    char comm[17];
    uint64_t ticks;
    uint64_t waits;
    uint64_t longest;
    GArray *cpus;

    /*< private >*/
    uint64_t wait;              /* start of the wait for which @part counts */
    /* ticks for which the taker ran in the wait that began at @wait */
    uint64_t part;
} HtTaker;

/**
 * HtCpuSums: the time of one processor. It is not counted between two changes
 * of the task if the task is not known or events were lost meanwhile.
 * @seen: ht_runstates_ran() was called for the processor
 * @idle: time for which the processor was idle
 * @busy: time for which the processor had another task than an idle one
 */
typedef struct HtCpuSums {
    bool seen;
    uint64_t idle;
    uint64_t busy;

    /*< private >*/
    /*
     * time at which @task began to run, or the start of the sums if that is
     * later
     */
    uint64_t since;
    /* value of HtRunstates.losses->len when the time was counted last */
    unsigned losses;
    bool open;                  /* @task is known */
    HtHostTask task;
} HtCpuSums;

/**
 * HtVcpuSums: sums of one vCPU
 * @machine: number of the domain (Xen), or PID of the machine's process; 0 if
 *           it is not known
 * @vcpu: number of the vCPU in the machine; -1: the thread runs all vCPUs
 * @tid: ID of the vCPU's thread; 0 with Xen
 * @emulated: the thread has a name that QEMU gives vCPUs that TCG emulates
 * @begin: time of the first event that has shown that the thread is a vCPU; 0
 *         with Xen
 * @ticks: time in each state. If the end of an interval is not in the trace,
 *         the interval ends at the end of the sums; such an offline interval
 *         does not count. With Xen, such an interval counts only if the vCPU
 *         runs, and ends at the last record of the vCPU's processor if that is
 *         before the end of the sums
 * @intervals: number of intervals that are in @ticks, for each state
 * @preempted: runnable time after the vCPU ran
 * @woken: runnable time after the vCPU was blocked
 * @unknown: time without a known state since the vCPU's first event: events
 *           were lost, or the events at the two ends of an interval name
 *           different states
 * @modes: parts of the running time, by HtRunMode
 * @halted: part of the blocked time in which the guest had halted the vCPU
 * @exits: HtExitSums by reason
 * @rest_exits: exits with a known end that are not in @exits, because the
 *              tables of all vCPUs together were full
 * @rest_ticks: total time of @rest_exits
 * @open_exits: number of exits that have no known end
 * @hypercalls: uint64_t counts by number of the hypercall
 * @takers: HtTaker by HtHostTask.pid: parts of the runnable time
 * @rivals: HtTaker by HtHostTask.machine: parts of the runnable time
 */
typedef struct HtVcpuSums {
    uint32_t machine;
    int32_t vcpu;
    uint32_t tid;
    bool emulated;
    uint64_t begin;
    uint64_t ticks[HT_RUN_STATES];
    uint64_t intervals[HT_RUN_STATES];
    uint64_t preempted;
    uint64_t woken;
    uint64_t unknown;
    uint64_t modes[HT_MODES];
    uint64_t halted;
    GHashTable *exits;
    uint64_t rest_exits;
    uint64_t rest_ticks;
    uint64_t open_exits;
    GHashTable *hypercalls;
    GHashTable *takers;
    GHashTable *rivals;

    /*< private >*/
    bool seen;                  /* @state and @since are valid */
    HtRunstate state;
    HtRunstate before;
    uint64_t since;
    /* physical processor that ran the vCPU last, or for which it waits */
    unsigned cpu;
    /* value of HtRunstates.losses->len at the last change of @state */
    unsigned losses;
    /* sums for the exit that the host handles now; or NULL */
    HtExitSums *exit;
    /* the exit that the host now handles has no HtExitSums */
    bool rest_open;
    uint64_t exit_since;
    /*
     * ticks for which the vCPU has run in the open exit, up to the last
     * change of @state
     */
    uint64_t exit_ticks;
    HtRunMode mode;
    uint64_t mode_since;
    /* part of @modes[HT_MODE_UNKNOWN] that is before the last loss of events */
    uint64_t unknown_kept;
    /* the vCPU's last exit was for HLT, and no entry has followed yet */
    bool halt;
    /* time up to which the vCPU's present wait has been added to its takers */
    uint64_t taken_since;
} HtVcpuSums;

/**
 * HtTakenFunc: a task, perhaps an idle one, had the processor for which a vCPU
 * waited
 * @opaque: HtRunstates.opaque
 * @v: the vCPU
 * @task: the task
 * @from: start of the time in which the task ran and the vCPU waited
 * @to: end of that time
 */
typedef void HtTakenFunc(void *opaque, const HtVcpuSums *v,
                         const HtHostTask *task, uint64_t from, uint64_t to);

/**
 * HtSpanFunc: a vCPU kept its state and its mode for a time
 * @opaque: HtRunstates.opaque
 * @v: the vCPU. Its member exit is the exit that the time belongs to, or NULL;
 *     its member halt is true if the guest has asked to halt the vCPU
 * @state: the state
 * @mode: the mode, if @state is HT_RUN_RUNNING
 * @from: start of the time
 * @to: end of the time, later than @from
 *
 * The times of a vCPU do not overlap, and are reported in their order. Time
 * without a known state is not reported.
 */
typedef void HtSpanFunc(void *opaque, const HtVcpuSums *v, HtRunstate state,
                        HtRunMode mode, uint64_t from, uint64_t to);

/**
 * HtRunstates: sums of all vCPUs
 * @from: time at which the sums begin; the caller may set it before the first
 *        event
 * @to: time at which the sums end; the caller may set it before the first event
 * @taken: called for each time in which a task ran while a vCPU waited, or NULL
 * @span: called for each time in which a vCPU kept its state and mode, or NULL
 * @opaque: argument of @taken and @span
 * @vcpus: of HtVcpuSums, in order of machine and vCPU after ht_runstates_end()
 * @cpus: number of physical processors that the trace names
 * @cpu_sums: array of HtCpuSums, by number of the processor
 * @records: events read since the start of the sums
 * @lost: events that were lost, as far as the host counted them
 * @gaps: places where events were lost
 * @damaged: bytes that were skipped because they hold no valid event; 0 without
 *           Xen
 * @backward: events with a time before that of the previous event (Xen: of the
 *            same processor); the time was raised
 * @others: number of times that an event, or a part of a wait, was left out of
 *          a table because the table was full
 * @begin: start of the sums
 * @end: end of the sums: time of the last event, or @to if there was a later
 *       event
 */
typedef struct HtRunstates {
    uint64_t from;
    uint64_t to;
    HtTakenFunc *taken;
    HtSpanFunc *span;
    void *opaque;
    GPtrArray *vcpus;
    unsigned cpus;
    GArray *cpu_sums;
    uint64_t records;
    uint64_t lost;
    uint64_t gaps;
    uint64_t damaged;
    uint64_t backward;
    uint64_t others;
    uint64_t begin;
    uint64_t end;

    /*< private >*/
    GHashTable *by_id;
    /* for each gap, the time from which on events may be missing: uint64_t */
    GArray *losses;
    unsigned rows;
    /* number of HtTaker and HtCpuTicks of all vCPUs */
    unsigned takers;
    unsigned runnable;
    /* an event at or after @from was read, or the sums were stopped */
    bool begun;
} HtRunstates;

HtRunstates *ht_runstates_new(void);
void ht_runstates_free(HtRunstates *x);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRunstates, ht_runstates_free)

/**
 * ht_runstates_vcpu: find or create a vCPU
 * @id: a number that no other vCPU has
 *
 * Returns: the vCPU; NULL if there are too many
 */
HtVcpuSums *ht_runstates_vcpu(HtRunstates *x, uint32_t id);

/** ht_runstates_find: find a vCPU by the number it was created with; or NULL */
HtVcpuSums *ht_runstates_find(const HtRunstates *x, uint32_t id);

/**
 * ht_runstates_forget: remove a number, if a vCPU has it
 *
 * The vCPU stays in @x->vcpus. A later vCPU may have the number.
 */
void ht_runstates_forget(HtRunstates *x, uint32_t id);

/**
 * ht_runstates_time: go on to the time of an event
 * @t: time of the event; raised to the time of the previous event if it is
 *     before that
 *
 * Returns: false if the event is after the end of the sums. The caller must
 * then leave the event out and call ht_runstates_stop().
 */
bool ht_runstates_time(HtRunstates *x, uint64_t *t);

/**
 * ht_runstates_stop: add the time up to the end of the sums to each processor
 * @waits: also add this time to the takers of the vCPUs that still wait, for
 *         each processor with a known task
 */
void ht_runstates_stop(HtRunstates *x, bool waits);

/**
 * ht_runstates_change: a vCPU changes its state
 * @from: its old state according to the event
 * @to: its new state
 * @t: time of the change
 *
 * If @from is not the state that the last event left, the time since then
 * counts as unknown. If the vCPU was running, the time up to its last change of
 * mode still counts as running.
 */
void ht_runstates_change(HtRunstates *x, HtVcpuSums *v, HtRunstate from,
                         HtRunstate to, uint64_t t);

/**
 * ht_runstates_close: add the time of a vCPU's present state
 * @v: a vCPU whose state is known
 * @t: time up to which to add: the end of the trace, or of the events so far
 */
void ht_runstates_close(HtRunstates *x, HtVcpuSums *v, uint64_t t);

/**
 * ht_runstates_mode: a running vCPU changes its mode
 * @from: the mode that the event ends. It is used only if the mode is not known
 *        and no events were lost since the last change of state: then the time
 *        of HT_MODE_UNKNOWN since events were last lost is counted as time of
 *        this mode
 * @to: the new mode
 * @t: time of the change
 */
void ht_runstates_mode(HtRunstates *x, HtVcpuSums *v, HtRunMode from,
                       HtRunMode to, uint64_t t);

/**
 * ht_runstates_ran: note that a processor changes its task
 * @cpu: the processor; HtRunstates.cpu_sums has the first 4096 only
 * @task: the task that ran until @t; NULL if it is not known
 * @next: the task that runs from @t on; NULL if it is not known
 * @vcpu: the vCPU of @next; NULL if @next is no vCPU
 * @t: time of the change
 *
 * The time up to @t in which a vCPU waited is added to the entries of @task in
 * the tables of the vCPU (HtVcpuSums.takers, rivals). This is done for @vcpu,
 * if it waited, and for each other vCPU that waited for this processor, except
 * the vCPU of @task. Call this before ht_runstates_change() for the vCPUs of
 * @task and @next.
 */
void ht_runstates_ran(HtRunstates *x, uint32_t cpu, const HtHostTask *task,
                      const HtHostTask *next, const HtVcpuSums *vcpu,
                      uint64_t t);

/**
 * ht_taker_add: add up the takers of several vCPUs
 * @to: the sum; zeroed, or takers of the same task or machine as @from
 * @from: the taker to add
 */
void ht_taker_add(HtTaker *to, const HtTaker *from);

/** ht_taker_free: free an HtTaker; a GDestroyNotify */
void ht_taker_free(gpointer taker);

/**
 * ht_runstates_exit: note that an exit of a vCPU begins
 * @reason: see HtExitSums
 * @t: time of the exit
 *
 * If an exit of the vCPU has not ended yet, it counts in HtVcpuSums.open_exits.
 */
void ht_runstates_exit(HtRunstates *x, HtVcpuSums *v, uint32_t reason,
                       uint64_t t);

/**
 * ht_runstates_entry: note that the exit which the host handles for a vCPU
 * has ended
 */
void ht_runstates_entry(HtVcpuSums *v, uint64_t t);

/**
 * ht_runstates_drop_exit: end the exit that the host handles for a vCPU, if
 * there is one, as an exit without a known end
 */
void ht_runstates_drop_exit(HtVcpuSums *v);

/**
 * ht_runstates_exits: list the exits of a vCPU
 *
 * Returns: a list of HtExitSums, by falling @ticks; the caller frees the list,
 * but not its elements
 */
GList *ht_runstates_exits(const HtVcpuSums *v);

/**
 * ht_runstates_hypercall: count a vCPU's hypercall with this number
 */
void ht_runstates_hypercall(HtRunstates *x, HtVcpuSums *v, uint32_t number);

/**
 * ht_runstates_lost: events were lost
 * @count: number of lost events; 0 if not known
 * @first: time from which on events may be missing
 *
 * The state of each vCPU is unknown from @first on until its next event,
 * because a vCPU may move to any processor.
 */
void ht_runstates_lost(HtRunstates *x, uint64_t count, uint64_t first);

/**
 * ht_runstates_end: count the exits that have not ended as exits without a
 * known end, and sort the vCPUs
 */
void ht_runstates_end(HtRunstates *x);

/**
 * ht_runstates_percentile: compute a percentile of the durations of exits
 * @e: exits; at least one
 * @percent: 1 to 100
 *
 * Returns: ticks, at most 1/32 more than the exact figure
 */
uint64_t ht_runstates_percentile(const HtExitSums *e, unsigned percent);

#endif /* HYPERTRACE_TOOL_RUNSTATES_H */
