/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzz targets share
 *
 * A target reads its input as a program: each byte chooses an action, the ones
 * behind it are its arguments, and what is missing at the end is 0.  So every
 * input means something, and a change of one byte changes one action.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "hypertrace/base.h"
#include "core-testlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);

/**
 * FuzzInput: what is left of an input
 */
typedef struct FuzzInput {
    const uint8_t *p;
    const uint8_t *end;
} FuzzInput;

static inline FuzzInput fuzz_input(const uint8_t *data, size_t size)
{
    return (FuzzInput) { data, data + size };
}

static inline bool fuzz_more(const FuzzInput *in)
{
    return in->p < in->end;
}

/* The next @bytes bytes, little-endian */
uint64_t fuzz_bits(FuzzInput *in, unsigned bytes);

static inline uint8_t fuzz_u8(FuzzInput *in)
{
    return fuzz_more(in) ? *in->p++ : 0;
}

/* A small number, one near a power of two, or any */
uint64_t fuzz_number(FuzzInput *in);

/* Up to @size bytes are an input of their own. */
FuzzInput fuzz_slice(FuzzInput *in, size_t size);

/* A copy of exactly so many bytes, so that one too many is noticed */
void *fuzz_copy(const void *bytes, size_t size);

/* Classes besides those of ct_classes() */
enum {
    FUZZ_MANY = CT_FAR + 1,     /* each kind, fixed and variable in turn */
    FUZZ_HUGE,                  /* fixed part larger than any packet */
};

/* Made once; for targets that do not change it */
HtClassTable *fuzz_classes(void);

/*
 * The length of an event's payload, found from the fields alone; -1 if it
 * does not fit @avail
 */
ssize_t fuzz_payload(const HtClass *c, const uint8_t *p, size_t avail);

/**
 * fuzz_event: an event as an honest guest writes it
 * @in: chooses class, values and how far the clock goes on
 * @out: appended to
 * @clock: of the last event, and of this one afterwards
 */
void fuzz_event(FuzzInput *in, GByteArray *out, uint64_t *clock);

/* A sink as ct_sink_init() makes, with the shared classes */
CtSink fuzz_sink(void);

/* A reading of the clocks: usually plausible after the last one, or any */
void fuzz_sample(FuzzInput *in, HtTimeMap *m);

/* What a consumer's counters must be, given what its sink saw */
void fuzz_check_consumer(const HtConsumer *c, const CtSink *s);

#endif
