/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the self-test's files
 */
#ifndef PAYLOAD_SELFTEST_H
#define PAYLOAD_SELFTEST_H

#include "device.h"

/* Print one line, and count a failure if @got is not @want; returns success */
bool selftest_check(const char *what, int64_t got, int64_t want);
/*
 * Print the numbers of events and losses that the host must find in its trace
 */
void selftest_sent(unsigned index, const char *stream, uint64_t instance,
                   uint64_t events, uint64_t lost);

/* Emit a fixed sequence of events, with every kind of field and header */
void selftest_events(struct ht_bm_device *d, unsigned index);
/* Open @d again, as a new driver does, while the old one has open streams */
void selftest_takeover(struct ht_bm_device **d, unsigned index);
/* Check that the host stops a stream that breaks the rules, and no other one */
void selftest_stopped(struct ht_bm_device *d, unsigned index);

#endif /* PAYLOAD_SELFTEST_H */
