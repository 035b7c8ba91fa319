/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: shared by the files of the hostile guest
 */
#ifndef PAYLOAD_HOSTILE_H
#define PAYLOAD_HOSTILE_H

#include "device.h"

/**
 * struct honest - a producer that keeps the rules, for the host to compare
 * @s: its stream
 * @sent: events so far; they are numbered
 */
struct honest {
    struct ht_stream s;
    uint64_t sent;
};

/* Reproducible: the option "seed" */
uint64_t hostile_random(void);
/* Below @n, which is not 0 */
uint64_t hostile_below(uint64_t n);
void hostile_fill(void *to, size_t len);

/* Counts; prints a line if @got is not @want */
bool hostile_check(const char *what, int64_t got, int64_t want);

/* Open the device at @index anew and register the class of honest events */
struct ht_bm_device *hostile_open(unsigned index);
/* The id of honest events: one unsigned 64-bit number */
uint32_t hostile_class(void);
/* A stream; ends the payload if there is none */
void hostile_stream(struct ht_bm_device *d, struct ht_stream *s,
                    const char *name);

struct honest *honest_new(void);
void honest_open(struct honest *h, struct ht_bm_device *d);
/* Emit @n events; those that find no room are a failed check */
void honest_emit(struct honest *h, unsigned n);
void honest_flush(struct honest *h);
/* Prints what the host should have */
void honest_close(struct honest *h, unsigned index);
/* The line alone: between @flushed and @sent events were delivered */
void honest_report(struct honest *h, unsigned index, uint64_t flushed);

/* The subjects; each takes the index of the device it works on */
void hostile_registers(unsigned index);
void hostile_streams(unsigned index);
void hostile_virtqueues(unsigned index);
void hostile_takeovers(unsigned index);
void hostile_chance(unsigned index);
void hostile_emits(unsigned index);     /* until the machine is reset */

/* The option "rounds" */
unsigned hostile_rounds(unsigned otherwise);
/* The option "step": of how many offsets one is looked at */
unsigned hostile_step(void);

#endif /* PAYLOAD_HOSTILE_H */
