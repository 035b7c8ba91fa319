/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the guest's counter to the host's CLOCK_MONOTONIC
 */
#ifndef HW_HYPERTRACE_CLOCK_H
#define HW_HYPERTRACE_CLOCK_H

#include "qemu/thread.h"
#include "hypertrace/abi.h"
#include "hypertrace/time-map.h"

typedef enum HtClockSource {
    HT_CLOCK_ELAPSED,           /* TCG on x86, qtest: QEMU makes the counter */
    HT_CLOCK_KVM,               /* host TSC + the offset that KVM reports */
    HT_CLOCK_BRACKET,           /* exchanges with the guest */
} HtClockSource;

typedef struct HtClock {
    HtClockSource source;
    enum ht_counter counter;
    QemuMutex lock;             /* protects all members below */
    HtTimeMap map;
    unsigned version;
    int64_t tsc_offset;
    int64_t sampled_ns;         /* time of the last reading in the map */
    int64_t looked_ns;          /* host time of the last check */
    uint64_t exchange_ns;       /* bracket: time of the last exchange */
    uint32_t exchange_cookie;
    bool scaled;                /* KVM scales the TSC: brackets only */
} HtClock;

/* Returns false if the guest's counter is not known.  BQL, after CPUs exist */
bool ht_clock_init(HtClock *c, Error **errp);
void ht_clock_destroy(HtClock *c);
/* Get the counter's frequency in Hz.  Any thread */
uint64_t ht_clock_hz(HtClock *c);
/*
 * Get the maximum error of dates in ns, UINT64_MAX if it is not known.  If the
 * host reads the counter itself, this covers events of the next 10 ms, else of
 * the next second, whenever they are consumed.  Any thread
 */
uint64_t ht_clock_bound_ns(HtClock *c);
/* Read the counter if the last reading is old, or now.  Any thread */
void ht_clock_sample(HtClock *c, bool now);
/* Note that the VM stopped or runs again: the counter may stop.  BQL */
void ht_clock_vm_change(HtClock *c, bool running);
/* Ask KVM for the TSC's offset, if this is a vCPU's thread.  BQL */
void ht_clock_update_offset(HtClock *c);
/* Copy the map if it changed since *version */
void ht_clock_copy(HtClock *c, HtTimeMap *map, unsigned *version);
/* HT_MSG_TIME_SYNC.  Context: BQL */
void ht_clock_exchange(HtClock *c, struct ht_msg_time *m);
/* Returns the number of segments written, at most HT_TIME_SEGMENTS */
unsigned ht_clock_save(HtClock *c, HtTimeSegment *seg);
/* Continue another host's map; add @shift to its times.  BQL */
bool ht_clock_load(HtClock *c, const HtTimeSegment *seg, unsigned count,
                   int64_t shift);

/* clock-target.c */

/* A vCPU's TSC: (the host's, scaled by khz / host_khz) + offset */
typedef struct HtKvmTsc {
    int64_t offset;
    int khz;
    int host_khz;
} HtKvmTsc;

/* Set the source and the map's frequency */
bool ht_clock_target(HtClock *c, uint64_t host_hz, uint32_t host_ppm,
                     Error **errp);
/* Returns false if KVM does not report it, or outside of a vCPU's thread */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc);

#endif /* HW_HYPERTRACE_CLOCK_H */
