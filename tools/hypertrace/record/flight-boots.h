/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: note the ends of a guest's boots, for the flight recorder
 *
 * Several sources report the end of a boot: QEMU's monitor (if there is one),
 * the kernel's log, a kernel that is missing, and the events of the next boot.
 * The reports come late, in any order, and several times: QEMU often reports
 * two or three resets when the guest was reset once.  Each end counts once, but
 * each panic that the monitor reports counts if the log has none.
 *
 * Boots are numbered from 1.  Boot n runs while
 *
 *     n == boots && n > ended && n > panicked
 *
 * and the sources raise these numbers:
 *
 *     source               raises                  cause of a recording
 *     RESET (monitor)      ended to boots; lowers  reset, if ended was lower
 *                          panicked to boots, or
 *                          the last boot whose
 *                          log has a panic
 *     panic (monitor)      panicked to the boot    panic, if that boot's log
 *                          that runs or starts     has none
 *     panic (log)          logged and panicked     panic, if panicked was
 *                          to the log's boot       lower
 *     kernel is missing    ended to boots          reset, if the boot ran
 *     next boot            boots; ended to the     reset, if the boot before
 *                          boot before it          it ran
 */
#ifndef HYPERTRACE_RECORD_FLIGHT_BOOTS_H
#define HYPERTRACE_RECORD_FLIGHT_BOOTS_H

#include "record/record-session.h"

/**
 * HT_FLIGHT_GONE_NS - minimum time in ns for which the kernel of the running
 *                     boot must be missing before the boot counts as ended by a
 *                     reset
 *
 * If the machine ends sooner, the cause is its end.
 */
#define HT_FLIGHT_GONE_NS UINT64_C(2000000000)

/* How a boot has ended; HT_FLIGHT_NO_DEATH: no cause of a recording */
typedef enum HtFlightDeath {
    HT_FLIGHT_NO_DEATH,
    HT_FLIGHT_RESET,
    HT_FLIGHT_PANIC,
} HtFlightDeath;

/**
 * struct HtFlightBoots - boots of a guest; zero at the start
 * @boots: number of the newest boot; 0: none was found
 * @ended: highest number of a boot that is known to have ended
 * @panicked: highest number of a boot that is known to have panicked
 * @logged: highest number of a boot whose log has a panic
 * @kernel: number of a running boot of which a poll has found a kernel with a
 *          log; valid if it is equal to @boots. 0: none
 * @gone: time in ns of the first poll that missed this kernel; 0: it is not
 *        missing. Used only while @kernel is valid
 */
typedef struct HtFlightBoots {
    uint32_t boots;
    uint32_t ended;
    uint32_t panicked;
    uint32_t logged;
    uint32_t kernel;
    uint64_t gone;
} HtFlightBoots;

/**
 * ht_flight_boots_reset() - note that the monitor has reported a reset
 * @b: the boots
 * @n: results of the last poll of the guest's memory; panic_boot is used
 *
 * Return: the cause of a recording, or HT_FLIGHT_NO_DEATH
 */
HtFlightDeath ht_flight_boots_reset(HtFlightBoots *b,
                                    const HtSessionStats *n);

/**
 * ht_flight_boots_panic() - note that the monitor has reported a panic
 *
 * Return: the cause of a recording, or HT_FLIGHT_NO_DEATH
 */
HtFlightDeath ht_flight_boots_panic(HtFlightBoots *b);

/**
 * ht_flight_boots_note() - use the results of a poll of the guest's memory
 * @b: the boots
 * @n: boots, kernel_boot and panic_boot are used
 * @now: time in ns
 *
 * Call this after the reports of the monitor that came before the poll.
 *
 * Return: the cause of a recording, or HT_FLIGHT_NO_DEATH
 */
HtFlightDeath ht_flight_boots_note(HtFlightBoots *b, const HtSessionStats *n,
                                   uint64_t now);

#endif
