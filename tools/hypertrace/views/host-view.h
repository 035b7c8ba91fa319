/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the host's part of a recording, or a trace of xentrace, and
 * show the vCPUs in it, for several views
 */
#ifndef HYPERTRACE_TOOL_HOST_VIEW_H
#define HYPERTRACE_TOOL_HOST_VIEW_H

#include "cli/json.h"
#include "host/runstates.h"
#include "host/threads.h"
#include "model/bounds.h"
#include "views/view.h"

/**
 * HtHostView: a view of a host
 * @v: the common options, and the recording or the file of xentrace
 * @xentrace: the user named a file of xentrace, not a recording
 * @hz: number of ticks in a second, for the times in @x
 * @threads: from ht_host_threads(); NULL with xentrace
 * @x: the sums
 * @cpus: number of the host's processors; with xentrace, or if the
 *        recording lacks the number, only of those that were recorded
 */
typedef struct HtHostView {
    HtView v;
    gboolean xentrace;
    double hz;
    GHashTable *threads;
    HtRunstates *x;
    unsigned cpus;

    /*< private >*/
    char *frequency;
} HtHostView;

/**
 * ht_host_view_parse: parse a command line
 * @h: zeroed; filled in
 * @argc: as for ht_view_parse()
 * @argv: as for ht_view_parse()
 * @summary: as for ht_view_parse()
 * @which: HT_VIEW_*
 * @status: set to the exit status if parsing fails
 *
 * Returns: false if the command must end with @status
 */
bool ht_host_view_parse(HtHostView *h, int *argc, char **argv,
                        const char *summary, unsigned which, int *status);

/**
 * ht_host_view_part: find the host's part of a recording
 * @dir: the recording, or the host's part itself
 *
 * Returns: the folder of the host's part, newly allocated; NULL if there is no
 * such part
 */
char *ht_host_view_part(const char *dir);

/**
 * ht_host_view_no_part: set the error after ht_host_view_part() returned NULL
 * @dir: the recording
 * @errp: set: @dir is no directory, cannot be read, or has no host's part
 */
void ht_host_view_no_part(const char *dir, GError **errp);

/**
 * ht_host_view_error: append the maximum error of 99 % of some times, and the
 * largest error if it is more than twice that, as text without a final period
 * @b: the errors
 * @whose: owner of the times, such as "its" or "the guest's"
 */
void ht_host_view_error(const HtBounds *b, const char *whose, HtOutput *o);

/**
 * ht_host_view_read: read the recording or the file of xentrace, and add up its
 * events
 * @h: view; @h->x, @h->threads and @h->cpus are set
 * @taken: called for each time in which a task ran while a vCPU waited, or NULL
 * @opaque: argument of @taken
 * @errp: set on failure
 *
 * Returns: false on failure
 */
bool ht_host_view_read(HtHostView *h, HtTakenFunc *taken, void *opaque,
                       GError **errp);

/**
 * ht_host_view_free: free the members of a view, but not @h itself
 */
void ht_host_view_free(HtHostView *h);

/**
 * ht_host_view_ns: convert ticks, in which the sums are, to nanoseconds
 */
uint64_t ht_host_view_ns(const HtHostView *h, uint64_t ticks);

/**
 * ht_host_view_total: get the sum of a vCPU's ticks in all states and without
 * a known state
 */
uint64_t ht_host_view_total(const HtVcpuSums *v);

/**
 * ht_host_view_unknown: get the ticks of a vCPU for which its state or, without
 * Xen, the mode of the running vCPU is not known
 */
uint64_t ht_host_view_unknown(const HtVcpuSums *v);

/**
 * ht_host_view_summary: append a line about the size and the losses of the
 * host's trace, and an empty line
 */
void ht_host_view_summary(const HtHostView *h, HtOutput *o);

/**
 * ht_host_view_json: append the members that describe the host's trace
 */
void ht_host_view_json(const HtHostView *h, HtJson *j);

/**
 * ht_host_view_name: get the name of a vCPU for the output, newly allocated
 */
char *ht_host_view_name(const HtVcpuSums *v);

/** ht_host_view_vcpu: append the name of a vCPU, padded to 12 characters */
void ht_host_view_vcpu(const HtVcpuSums *v, HtOutput *o);

/**
 * ht_host_view_share: append @ticks as a percentage of @whole and as a time
 */
void ht_host_view_share(const HtHostView *h, HtOutput *o, uint64_t ticks,
                        uint64_t whole);

/**
 * ht_host_view_sorted: list the takers of a table, by falling time
 *
 * Returns: a new list of HtTaker, which the table owns
 */
GList *ht_host_view_sorted(GHashTable *takers);

/**
 * ht_host_view_taker: append the time, the number of waits, the longest time in
 * one wait, and up to 4 processors of a taker, and a newline
 * @t: the taker; its processors are sorted by falling time
 * @whole: ticks that are 100 %
 */
void ht_host_view_taker(const HtHostView *h, HtOutput *o, const HtTaker *t,
                        uint64_t whole);

/** HT_HOST_TAKER_HEADING: heading of the columns of ht_host_view_taker() */
#define HT_HOST_TAKER_HEADING   "            time     waits  longest  CPU"

/**
 * ht_host_view_takers: append a table with up to 5 tasks for each vCPU: those
 * that ran longest while the vCPU waited
 */
void ht_host_view_takers(const HtHostView *h, HtOutput *o);

/**
 * ht_host_view_taker_json: append the members of a taker: its time, number of
 * waits, longest time in one wait, and all its processors
 */
void ht_host_view_taker_json(const HtHostView *h, HtJson *j, const HtTaker *t);

/**
 * ht_host_view_takers_json: append the member "waited_for", an array of
 * @v->takers
 */
void ht_host_view_takers_json(const HtHostView *h, HtJson *j,
                              const HtVcpuSums *v);

#endif /* HYPERTRACE_TOOL_HOST_VIEW_H */
