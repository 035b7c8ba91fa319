/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: shared code of the backends' tests: make classes, runs as
 * backends get them, and the text that babeltrace2 prints for the events
 */
#ifndef BACKEND_TESTLIB_H
#define BACKEND_TESTLIB_H

#include "hypertrace/run.h"

/**
 * tl_class: register a class as a guest does
 * @t: table that gets the class
 * @name: name of the class
 * @spec: fields "kind:name ...", where kind is u8 to u64, x8 to x64 (shown in
 *         base 16), s8 to s64, f32, f64, text, seq-KIND, arr-KIND-COUNT,
 *         chars-COUNT (a text in an array of COUNT bytes), or label-KIND (an
 *         integer whose values 0 and 7 have names)
 *
 * Returns: the class, ready for use
 */
HtClass *tl_class(HtClassTable *t, const char *name, const char *spec);

/**
 * TlRun: a run under construction
 * @data: bytes of the events
 * @text: for each event, its fields as babeltrace2 prints them
 * @times: date of each event, ns
 */
typedef struct TlRun {
    HtRun run;
    GByteArray *data;
    GPtrArray *text;
    GArray *times;
    uint64_t ns;
    bool open;
} TlRun;

void tl_run_init(TlRun *r, const HtStreamInfo *stream);
void tl_run_clear(TlRun *r);

/* Empty @r and begin the next run of its stream. */
void tl_run_begin(TlRun *r, unsigned flags, uint64_t discarded);

/*
 * Add an event with random values from @rand. A field of kind text has @pad
 * bytes, a sequence @pad elements. An array for a text has at most @pad + 1
 * letters, then NUL.
 */
void tl_run_event(TlRun *r, const HtClass *c, uint64_t ns, GRand *rand,
                  unsigned pad);

const HtRun *tl_run_end(TlRun *r);

/* Return a run without events that opens or closes a stream, by its @flag */
HtRun tl_mark(const HtStreamInfo *stream, unsigned flag, uint64_t ns,
              uint64_t discarded);

/*
 * Run a program; return its wait status. Set @out and @err to its standard
 * output and error. Assert that the program could be started.
 */
int tl_spawn(const char *const *argv, char **out, char **err);

/*
 * Return what babeltrace2 prints for the traces in @dir. Assert that it
 * succeeds. Set @err to its warnings; if @err is NULL, assert that it prints
 * none.
 */
char *tl_babeltrace(const char *dir, char **err);

/* Let the test fail if two texts differ; show the first line that differs. */
void tl_assert_lines(const char *got, const char *want);

/*
 * Count the events in the traces in @dir; returns -1 if babeltrace2 fails. Sets
 * @err, if not NULL, to the warnings.
 */
int64_t tl_count(const char *dir, char **err);

/* Sum the numbers in babeltrace2's warnings "discarded N events" */
uint64_t tl_discarded(const char *err);

char *tl_tmpdir(void);
void tl_rmdir(char *dir);

#endif
