/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the hostile guest's files
 */
#ifndef PAYLOAD_HOSTILE_H
#define PAYLOAD_HOSTILE_H

#include "device.h"

/**
 * struct honest - a producer that keeps the rules; a test on the host checks
 *                 that the producer's events arrive
 * @s: its stream
 * @sent: number of events emitted; the next event has this number
 */
struct honest {
    struct ht_stream s;
    uint64_t sent;
};

/* Get a random number; the option "seed" determines the sequence */
uint64_t hostile_random(void);
/* Get a random number from 0 to @n - 1; @n must not be 0 */
uint64_t hostile_below(uint64_t n);
void hostile_fill(void *to, size_t len);

/*
 * Count a check; if @got is not @want, also count a failure, print a line and
 * return false
 */
bool hostile_check(const char *what, int64_t got, int64_t want);

/*
 * Open the device with the number @index, as a new driver does, and register
 * the class hostile.seq
 */
struct ht_bm_device *hostile_open(unsigned index);
/*
 * Get the id of the class hostile.seq; the payload of such an event is one
 * unsigned 64-bit number
 */
uint32_t hostile_class(void);
/* Open any free stream; on failure, end the payload */
void hostile_stream(struct ht_bm_device *d, struct ht_stream *s,
                    const char *name);

struct honest *honest_new(void);
void honest_open(struct honest *h, struct ht_bm_device *d);
/*
 * Emit @n events of the class hostile.seq. This is one check, which fails if an
 * event was discarded, for example because the ring had no room.
 */
void honest_emit(struct honest *h, unsigned n);
void honest_flush(struct honest *h);
/* Close @h, and report that the host must deliver all its events */
void honest_close(struct honest *h, unsigned index);
/*
 * Print a line: the host must deliver at least @flushed and at most @h->sent
 * events of the stream. Does not close @h.
 */
void honest_report(struct honest *h, unsigned index, uint64_t flushed);

/*
 * Each of these functions does what one value of the option "what" selects, on
 * the device with the number @index
 */
void hostile_registers(unsigned index);
void hostile_streams(unsigned index);
void hostile_virtqueues(unsigned index);
void hostile_takeovers(unsigned index);
void hostile_chance(unsigned index);
/* emits until a reset of the machine */
void hostile_emits(unsigned index);

/*
 * Get the value of the option "rounds", by default @otherwise: the number of
 * repetitions, the meaning of which depends on the option "what"
 */
unsigned hostile_rounds(unsigned otherwise);
/*
 * Get the value of the option "step", by default 1: with what=registers, access
 * only every step-th offset of BAR 0
 */
unsigned hostile_step(void);

#endif /* PAYLOAD_HOSTILE_H */
