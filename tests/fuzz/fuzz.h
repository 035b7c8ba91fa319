/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that the fuzz targets share: take numbers, events and clock readings
 * from the input, make classes and sinks, and check a consumer's counters
 *
 * Many targets read their input as a program: a byte chooses an action, the
 * bytes after it are the action's arguments, and bytes missing at the end are
 * 0.  So every input is valid, and a change of one byte often changes only one
 * action. Other targets take the input as the content of a file, of memory or
 * of a text.
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

/*
 * Take the next @bytes bytes of the input, at most 8, as a little-endian
 * number; bytes after the end of the input are 0.
 */
uint64_t fuzz_bits(FuzzInput *in, unsigned bytes);

static inline uint8_t fuzz_u8(FuzzInput *in)
{
    return fuzz_more(in) ? *in->p++ : 0;
}

/*
 * Take a number from the input: less than 128, near a power of two, or
 * arbitrary.
 */
uint64_t fuzz_number(FuzzInput *in);

/*
 * Take the next @size bytes of @in, or all that are left, and return them as a
 * separate input.
 */
FuzzInput fuzz_slice(FuzzInput *in, size_t size);

/*
 * Return a copy of @bytes in an allocation of exactly @size bytes, so that the
 * sanitizer detects reads beyond it; free it with free() or g_free().
 */
void *fuzz_copy(const void *bytes, size_t size);

/* Classes in addition to those of ct_classes() */
enum {
    /* a class with a field of each kind, and sequences of each integer kind */
    FUZZ_MANY = CT_FAR + 1,
    /* a class with a payload that does not fit into a packet of any size */
    FUZZ_HUGE,
};

/*
 * Return the table of FUZZ_MANY, FUZZ_HUGE and the classes of ct_classes(). All
 * callers share it: a target must neither change nor free it.
 */
HtClassTable *fuzz_classes(void);

/*
 * Return the length in bytes of the payload at @p of an event of class @c,
 * computed field by field; -1 if it exceeds @avail.
 */
ssize_t fuzz_payload(const HtClass *c, const uint8_t *p, size_t avail);

/**
 * fuzz_event: append an event as an honest guest writes it
 * @in: chooses the class, the values and the step of the clock
 * @out: array to append to
 * @clock: the guest's counter at the last event; updated
 */
void fuzz_event(FuzzInput *in, GByteArray *out, uint64_t *clock);

/* Return an empty sink for runs with events of fuzz_classes() */
CtSink fuzz_sink(void);

/*
 * Add a reading of the clocks to @m: near what the last segment gives, or
 * arbitrary; arbitrary if @m has no segment.
 */
void fuzz_sample(FuzzInput *in, HtTimeMap *m);

/* Check a consumer's counters against the runs that its sink received */
void fuzz_check_consumer(const HtConsumer *c, const CtSink *s);

#endif
