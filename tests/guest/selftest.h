/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: shared by the files of the self-test
 */
#ifndef PAYLOAD_SELFTEST_H
#define PAYLOAD_SELFTEST_H

#include "device.h"

/* Prints one line, counts; returns whether @got is @want */
bool selftest_check(const char *what, int64_t got, int64_t want);
/* Prints a line of numbers that the host is to find in its output */
void selftest_sent(unsigned index, const char *stream, uint64_t instance,
                   uint64_t events, uint64_t lost);

/* A known sequence of every kind of field and header */
void selftest_events(struct ht_bm_device *d, unsigned index);
/* Streams left open by a driver that vanished: @d is opened anew */
void selftest_takeover(struct ht_bm_device **d, unsigned index);
/* A stream that breaks the rules is stopped, and only that */
void selftest_stopped(struct ht_bm_device *d, unsigned index);

#endif /* PAYLOAD_SELFTEST_H */
