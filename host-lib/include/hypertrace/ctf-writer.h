/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a directory with a CTF 1.8 trace
 */
#ifndef HYPERTRACE_CTF_WRITER_H
#define HYPERTRACE_CTF_WRITER_H

#include "hypertrace/run.h"
#include "hypertrace/ctf-metadata.h"

typedef struct HtCtfWriter HtCtfWriter;

/**
 * ht_ctf_writer_new: create a trace without events
 * @dir: an existing directory
 * @name: name of the trace's directory in @dir; if it exists, a number is
 *        appended
 * @info: copied into the trace's metadata
 * @streams: number of streams; HtStreamInfo.index is less
 * @out: set to the writer
 *
 * Returns: 0 or -errno
 */
int ht_ctf_writer_new(const char *dir, const char *name, const HtCtfInfo *info,
                      uint32_t streams, HtCtfWriter **out);

/**
 * ht_ctf_writer_new_at: make a trace without events in a directory that is open
 * @parent: the directory; not used after this call
 * @dir: its name, for ht_ctf_writer_path()
 * @name: as for ht_ctf_writer_new(), as all below
 * @info: copied
 * @streams: number of streams
 * @out: set to the writer
 *
 * For a process that can no longer open @dir by its name.
 *
 * Returns: 0 or -errno
 */
int ht_ctf_writer_new_at(int parent, const char *dir, const char *name,
                         const HtCtfInfo *info, uint32_t streams,
                         HtCtfWriter **out);

/**
 * ht_ctf_writer_free: close all streams and free the writer
 * @w: the writer or NULL
 */
void ht_ctf_writer_free(HtCtfWriter *w);

/**
 * ht_ctf_writer_path: get the path of the trace's directory
 * @w: the writer
 */
const char *ht_ctf_writer_path(const HtCtfWriter *w);

/**
 * ht_ctf_writer_class: add a class before an event uses it
 * @w: the writer
 * @c: the class; it is ignored if it was added before
 *
 * Returns: 0, or -errno with the trace unchanged
 *
 * Context: any thread
 */
int ht_ctf_writer_class(HtCtfWriter *w, const HtClass *c);

/**
 * ht_ctf_writer_run: write a run
 * @w: the writer
 * @run: the run
 *
 * Returns: 0 or -errno.  On failure the run's events are dropped and counted;
 * the trace stays valid, and later runs are tried again.
 *
 * Context: one thread at a time for each stream; different streams may be
 * written at the same time
 */
int ht_ctf_writer_run(HtCtfWriter *w, const HtRun *run);

/**
 * ht_ctf_writer_dropped: get the number of events that could not be written
 * @w: the writer
 *
 * Context: any thread
 */
uint64_t ht_ctf_writer_dropped(const HtCtfWriter *w);

#endif /* HYPERTRACE_CTF_WRITER_H */
