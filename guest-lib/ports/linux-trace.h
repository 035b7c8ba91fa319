/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: what the two files of ht_trace() share
 *
 * linux-trace.c         streams of threads
 * linux-trace-device.c  the device behind them, and the classes
 */
#ifndef HT_LINUX_TRACE_H
#define HT_LINUX_TRACE_H

#define HT_LIBRARY              /* it is no module of its own */
#include "hypertrace/trace.h"
#include "linux-node.h"

/* linux-trace.c */
extern const struct ht_runtime ht_trace_runtime;

/**
 * ht_trace_init() - have what a process needs, once
 *
 * Return: whether it has.
 */
bool ht_trace_init(void);

/**
 * ht_trace_child() - is this a child of fork()?
 */
bool ht_trace_child(void);

/**
 * ht_trace_tell() - tell the host what was discarded: the program may end
 *
 * By the streams of this thread and of all, and if there is none, by a message.
 */
void ht_trace_tell(void);

/* linux-trace-device.c */

/**
 * ht_trace_report() - tell the host of events that had no stream
 * @count: how many
 *
 * Context: this thread opens no stream meanwhile
 *
 * Return: whether it knows; not if the device cannot be opened, or is not the
 * one of the classes.
 */
bool ht_trace_report(uint64_t count);

/**
 * ht_trace_open() - open, map and close the device for one more stream
 * @s: set up
 * @map: set
 * @params: for ht_stream_open()
 *
 * If the device is another one than that on which the classes were registered,
 * or was suspended, they are registered again.
 *
 * Context: an event; one call at a time for a thread.
 *
 * Return: as ht_stream_open(); -EAGAIN: another thread registers.
 */
int ht_trace_open(struct ht_stream *s, struct ht_node_map *map,
                  const struct ht_stream_params *params);

/**
 * ht_trace_silence() - a child of fork(): turn everything off
 */
void ht_trace_silence(void);

void ht_trace_remove(struct ht_module *module);

/**
 * ht_trace_builtin() - a class of the library's own
 */
void ht_trace_builtin(struct ht_class *cls);

/* "comm/tid"; @name has HT_STREAM_NAME_MAX + 1 bytes */
void ht_trace_name(char *name, const char *comm, int tid);

#endif /* HT_LINUX_TRACE_H */
