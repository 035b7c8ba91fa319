/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the hostile guest's files
 */
#ifndef PAYLOAD_HOSTILE_H
#define PAYLOAD_HOSTILE_H

#include "device.h"

/**
 * struct honest - a producer that keeps the rules, whose events the host checks
 * @s: its stream
 * @sent: number of events emitted, and the next event's number
 */
struct honest {
    struct ht_stream s;
    uint64_t sent;
};

/* Get a random number; the option "seed" makes the sequence repeatable */
uint64_t hostile_random(void);
/* A random number below @n, which must not be 0 */
uint64_t hostile_below(uint64_t n);
void hostile_fill(void *to, size_t len);

/* Count a check; if @got is not @want, also count a failure and print a line */
bool hostile_check(const char *what, int64_t got, int64_t want);

/*
 * Open the device with the number @index, as a new driver does, and register
 * the class of honest events
 */
struct ht_bm_device *hostile_open(unsigned index);
/*
 * Get the class id of honest events; their payload is one unsigned 64-bit
 * number
 */
uint32_t hostile_class(void);
/* Open a stream; if no stream is free, end the payload */
void hostile_stream(struct ht_bm_device *d, struct ht_stream *s,
                    const char *name);

struct honest *honest_new(void);
void honest_open(struct honest *h, struct ht_bm_device *d);
/*
 * Emit @n honest events. This is one check, which fails if any of the events
 * was lost, for example because the ring had no room.
 */
void honest_emit(struct honest *h, unsigned n);
void honest_flush(struct honest *h);
/* Close @h, and print how many of its events the host must have read */
void honest_close(struct honest *h, unsigned index);
/*
 * Print that the host must have read at least @flushed and at most @h->sent
 * events; keep @h open
 */
void honest_report(struct honest *h, unsigned index, uint64_t flushed);

/*
 * Each function below runs the attacks of one value of the option "what", on
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
 * Value of the option "rounds", by default @otherwise: how often to repeat
 * random attacks
 */
unsigned hostile_rounds(unsigned otherwise);
/*
 * Value of the option "step": read and write only every step-th offset of the
 * registers
 */
unsigned hostile_step(void);

#endif /* PAYLOAD_HOSTILE_H */
