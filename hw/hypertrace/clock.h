/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relating the guest's counter to host CLOCK_MONOTONIC
 */
#ifndef HW_HYPERTRACE_CLOCK_H
#define HW_HYPERTRACE_CLOCK_H

#include "qemu/thread.h"
#include "hypertrace/abi.h"
#include "hypertrace/time-map.h"

typedef enum HtClockSource {
    HT_CLOCK_ELAPSED,           /* TCG on x86, qtest: QEMU makes the counter */
    HT_CLOCK_KVM,               /* host TSC + the offset KVM tells */
    HT_CLOCK_BRACKET,           /* exchanges with the guest */
} HtClockSource;

typedef struct HtClock {
    HtClockSource source;
    enum ht_counter counter;
    QemuMutex lock;             /* all below */
    HtTimeMap map;
    unsigned version;
    int64_t tsc_offset;
    int64_t sampled_ns;         /* when the map was last given a reading */
    int64_t looked_ns;          /* the host's time at the last look */
    uint64_t exchange_ns;       /* bracket: the last exchange */
    uint32_t exchange_cookie;
    bool scaled;                /* KVM scales the TSC: brackets only */
} HtClock;

/* False if the guest's counter is not known.  BQL, CPUs are there */
bool ht_clock_init(HtClock *c, Error **errp);
void ht_clock_destroy(HtClock *c);
/* The counter's frequency, ticks a second.  Any thread */
uint64_t ht_clock_hz(HtClock *c);
/*
 * How wrong dates are at most, UINT64_MAX if there is no idea: of events of the
 * next 10 ms where the host reads the counter itself, else of the next second,
 * whenever they are consumed.  Any thread
 */
uint64_t ht_clock_bound_ns(HtClock *c);
/* Read the counter if the last reading is old, or now.  Any thread */
void ht_clock_sample(HtClock *c, bool now);
/* The VM stopped, or runs again: its counter may have stood still.  BQL */
void ht_clock_vm_change(HtClock *c, bool running);
/* Ask KVM for the TSC's offset, if this is a vCPU's thread.  BQL */
void ht_clock_update_offset(HtClock *c);
/* Copy the map if it changed since *version */
void ht_clock_copy(HtClock *c, HtTimeMap *map, unsigned *version);
/* HT_MSG_TIME_SYNC.  Context: BQL */
void ht_clock_exchange(HtClock *c, struct ht_msg_time *m);
/* Returns the number of segments written, at most HT_TIME_SEGMENTS */
unsigned ht_clock_save(HtClock *c, HtTimeSegment *seg);
/* Go on with another host's, whose clock was behind by @shift.  BQL */
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
/* False if KVM does not tell or this is no vCPU's thread */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc);

#endif /* HW_HYPERTRACE_CLOCK_H */
