/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the self-test's files
 */
#ifndef PAYLOAD_SELFTEST_H
#define PAYLOAD_SELFTEST_H

#include "device.h"

/* Print one line; if @got is not @want, count a failure and return false */
bool selftest_check(const char *what, int64_t got, int64_t want);
/*
 * Print how many events and discarded events of stream instance @instance the
 * host's trace must have
 */
void selftest_sent(unsigned index, const char *stream, uint64_t instance,
                   uint64_t events, uint64_t lost);

/*
 * Emit events with fields of all kinds, and with headers of 4, 6 and 13 bytes;
 * check the device's counts of them
 */
void selftest_events(struct ht_bm_device *d, unsigned index);
/*
 * Open device @d again, as a new driver does, while a stream of the old driver
 * is open
 */
void selftest_takeover(struct ht_bm_device **d, unsigned index);
/*
 * Check that the host stops a stream with an invalid event and, if the device
 * has more than one stream, that another stream still works
 */
void selftest_stopped(struct ht_bm_device *d, unsigned index);

#endif /* PAYLOAD_SELFTEST_H */
