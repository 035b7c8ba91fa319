/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: split times of a guest by what its host did meanwhile
 */
#ifndef HYPERTRACE_TOOL_HOST_SPLIT_H
#define HYPERTRACE_TOOL_HOST_SPLIT_H

#include "cli/json.h"
#include "cli/output.h"
#include "model/model.h"

/*
 * Parts into which a guest's time on a processor is split by what the host
 * did
 */
typedef enum HtSplitPart {
    /* the vCPU executed the guest's code, or is emulated (TCG) and ran */
    HT_SPLIT_GUEST,
    /* the vCPU's thread ran in the host's kernel for an exit, or in QEMU */
    HT_SPLIT_EXITS,
    HT_SPLIT_STOLEN,            /* the vCPU waited for a CPU of the host */
    /* the vCPU's thread slept: the vCPU was halted, or the thread waited */
    HT_SPLIT_BLOCKED,
    HT_SPLIT_UNKNOWN,           /* it is not known what the vCPU did */
    HT_SPLIT_PARTS,
} HtSplitPart;

/**
 * HtSplit: time in ns, by HtSplitPart
 */
typedef struct HtSplit {
    uint64_t ns[HT_SPLIT_PARTS];
} HtSplit;

typedef struct HtHostSplit HtHostSplit;

/* Help text of the option --host */
#define HT_HOST_SPLIT_HELP \
    "split times by the host's part of the recording: guest, exits, stolen," \
    " blocked"

/**
 * ht_host_split_new: read what the host did for each vCPU of a guest
 * @dir: recording of the guest
 * @guest: its model, which is rewound
 * @errp: set on failure; also if the recording has no host's part, no times of
 *        the host's clock, or not the PID of the virtual machine
 *
 * Memory is bounded: each change of a vCPU's HtSplitPart takes 16 bytes, and
 * some 8 million changes of all vCPUs are stored at most. Later times are
 * HT_SPLIT_UNKNOWN.
 *
 * Returns: the times; NULL on failure
 */
HtHostSplit *ht_host_split_new(const char *dir, HtModel *guest, GError **errp);

/** ht_host_split_free: free the times, or do nothing for NULL */
void ht_host_split_free(HtHostSplit *s);

/**
 * ht_host_split_add: split a time and add its parts
 * @boot: boot of the guest, counted from 1
 * @segment: segment of the guest's clock in that boot
 * @cpu: processor of the guest
 * @from_ns: guest time of the begin
 * @to_ns: guest time of the end
 * @split: the parts are added; their sum is @to_ns - @from_ns, or 0 if that is
 *         negative
 */
void ht_host_split_add(HtHostSplit *s, unsigned boot, uint32_t segment,
                       uint32_t cpu, uint64_t from_ns, uint64_t to_ns,
                       HtSplit *split);

/**
 * ht_host_split_since: split a time up to a time of the host's clock
 * @boot: boot of the guest, counted from 1
 * @segment: segment of the guest's clock in that boot
 * @cpu: processor of the guest
 * @from_ns: guest time of the begin
 * @host_ns: the end, by the host's CLOCK_MONOTONIC
 * @split: the parts are added
 *
 * Returns: the sum of the parts; 0 if the vCPU or the host time of the begin is
 * not known, or if the end is not after it
 */
uint64_t ht_host_split_since(HtHostSplit *s, unsigned boot, uint32_t segment,
                             uint32_t cpu, uint64_t from_ns, uint64_t host_ns,
                             HtSplit *split);

/**
 * ht_host_split_sum: add the times in @from to those in @to
 */
void ht_host_split_sum(HtSplit *to, const HtSplit *from);

/**
 * ht_host_split_total: get the sum of the times of all parts
 */
uint64_t ht_host_split_total(const HtSplit *split);

/** ht_host_split_name: get the name of a part, for example "stolen" */
const char *ht_host_split_name(HtSplitPart part);

/**
 * ht_host_split_text: append a line with the percentage of each part (unknown
 * only if it is not 0), and with the text of ht_host_split_error()
 */
void ht_host_split_text(const HtHostSplit *s, const HtSplit *split,
                        HtOutput *o);

/**
 * ht_host_split_error: append a line with the maximum error of 99 % of the
 * guest times that were converted to the host's clock, and with the largest
 * error if it is more than twice that; or a line that no time was converted
 */
void ht_host_split_error(const HtHostSplit *s, HtOutput *o);

/**
 * ht_host_split_share: append the percentage of one part, in 10 columns
 */
void ht_host_split_share(const HtSplit *split, HtSplitPart part, HtOutput *o);

/**
 * ht_host_split_json: append a member @name, an object with the time of each
 * part
 */
void ht_host_split_json(const HtSplit *split, const char *name, HtJson *j);

#endif /* HYPERTRACE_TOOL_HOST_SPLIT_H */
