/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: shared code of the backends' tests: classes, runs as the walk
 * delivers them, and the text that babeltrace2 prints for them
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
 * Add an event with random values from @rand. Each text has @pad bytes, and
 * each sequence @pad elements.
 */
void tl_run_event(TlRun *r, const HtClass *c, uint64_t ns, GRand *rand,
                  unsigned pad);

const HtRun *tl_run_end(TlRun *r);

/* Return the run with @flag, HT_RUN_OPEN or HT_RUN_CLOSE, of a stream */
HtRun tl_mark(const HtStreamInfo *stream, unsigned flag, uint64_t ns,
              uint64_t discarded);

/*
 * Run a program; return its wait status, its output and its messages. Assert
 * that it could be started.
 */
int tl_spawn(const char *const *argv, char **out, char **err);

/*
 * Return what babeltrace2 prints for a trace. Assert that it succeeds. If @err
 * is NULL, also assert that it prints no warning.
 */
char *tl_babeltrace(const char *dir, char **err);

/* Assert that two texts are equal; if not, show the first line that differs. */
void tl_assert_lines(const char *got, const char *want);

/* Count the events in a trace; returns -1 if babeltrace2 fails */
int64_t tl_count(const char *dir, char **err);

/* Sum the numbers in babeltrace2's warnings "discarded N events" */
uint64_t tl_discarded(const char *err);

char *tl_tmpdir(void);
void tl_rmdir(char *dir);

#endif
