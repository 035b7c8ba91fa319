/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that the fuzz targets share: take numbers and events from the input,
 * make classes and sinks, and check counters
 *
 * Most targets read their input as a program: each byte chooses an action, the
 * bytes after it are its arguments, and bytes missing at the end are 0.  So
 * every input is meaningful, and a change of one byte changes one action. Other
 * targets take the input as the content of a file or text.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "hypertrace/base.h"
#include "core-testlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);

/** FuzzInput: the part of the fuzzer's input that was not used yet */
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

/* Take the next @bytes bytes of the input, as a little-endian number */
uint64_t fuzz_bits(FuzzInput *in, unsigned bytes);

static inline uint8_t fuzz_u8(FuzzInput *in)
{
    return fuzz_more(in) ? *in->p++ : 0;
}

/* Return a number that is small, near a power of two, or arbitrary. */
uint64_t fuzz_number(FuzzInput *in);

/* Remove up to @size bytes from @in, and return them as a separate input. */
FuzzInput fuzz_slice(FuzzInput *in, size_t size);

/*
 * Return a copy in an allocation of exactly @size bytes, so that the sanitizer
 * detects reads beyond it.
 */
void *fuzz_copy(const void *bytes, size_t size);

/* Classes in addition to those of ct_classes() */
enum {
    /* a class with fields of all kinds, fixed and variable */
    FUZZ_MANY = CT_FAR + 1,
    /* a class whose fixed part is larger than any packet */
    FUZZ_HUGE,
};

/*
 * Return a table with these classes and those of ct_classes(); a target must
 * not change it
 */
HtClassTable *fuzz_classes(void);

/*
 * Return the length of an event's payload, computed from the fields of its
 * class; -1 if it exceeds @avail.
 */
ssize_t fuzz_payload(const HtClass *c, const uint8_t *p, size_t avail);

/**
 * fuzz_event: append an event as an honest guest writes it
 * @in: chooses class, values and the step of the clock
 * @out: array to append to
 * @clock: the guest's counter at the last event; updated
 */
void fuzz_event(FuzzInput *in, GByteArray *out, uint64_t *clock);

/* Return a sink as ct_sink_init() makes one, but with fuzz_classes() */
CtSink fuzz_sink(void);

/* Add a reading of the clocks: usually plausible, sometimes arbitrary */
void fuzz_sample(FuzzInput *in, HtTimeMap *m);

/* Check a consumer's counters against the runs that its sink received */
void fuzz_check_consumer(const HtConsumer *c, const CtSink *s);

#endif
