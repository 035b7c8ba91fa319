/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: shared by the files of ht_trace()
 *
 * linux-process.c       processes, fork()
 * linux-trace.c         streams of threads
 * linux-trace-device.c  the device of the streams, and the classes
 * linux-event.c         classes made at run time, and their events
 */
#ifndef HT_LINUX_TRACE_H
#define HT_LINUX_TRACE_H

#define HT_LIBRARY              /* it is no module of its own */
#include "hypertrace/trace.h"
#include "linux-node.h"

/* Pause between two tries to open what could not be opened */
#define HT_TRACE_RETRY_MS       500

/* linux-trace.c */
extern const struct ht_runtime ht_trace_runtime;

/**
 * ht_trace_init() - have what a process needs, once
 *
 * Return: whether it has.
 */
bool ht_trace_init(void);

/**
 * ht_trace_process() - an address that no parent or child of the process has
 *
 * Return: the address; NULL: the system calls that are needed fail.
 */
const void *ht_trace_process(void);

/**
 * ht_trace_begin_opening() - begin what no signal handler may interrupt
 * @mask: for ht_trace_end_opening()
 *
 * Context: ht_trace_process() has returned one
 *
 * Return: whether the thread may open descriptors now; if not, it does so
 * already, fork() is under way, or signals cannot be blocked.
 */
bool ht_trace_begin_opening(uint64_t *mask);
void ht_trace_end_opening(const uint64_t *mask);

/**
 * ht_trace_descriptor() - where a descriptor must be while it is open
 *
 * A child of fork() closes it.
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: set to -1, for ht_trace_close_descriptor(); NULL: too many threads
 * have one.
 */
int *ht_trace_descriptor(void);
void ht_trace_close_descriptor(int *fd);

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
 * ht_trace_attached() - does a device have the classes?
 */
bool ht_trace_attached(void);

/**
 * ht_trace_has_device() - was there a device, though it may not have answered,
 *                         or may not be opened?
 */
bool ht_trace_has_device(void);

/**
 * ht_trace_attach() - find a device and register all classes
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: 0 or a negative errno; -EAGAIN: another thread does it.
 */
int ht_trace_attach(void);

/**
 * ht_trace_add_class() - make a class known that a program made
 *
 * Return: whether it is; not if there are too many.
 */
bool ht_trace_add_class(struct ht_class *cls);

/**
 * ht_trace_no_stream() - does this thread find no stream?
 */
bool ht_trace_no_stream(void);

/**
 * ht_trace_debug() - print the state of tracing if it has changed, and if the
 *                    user asked for that
 */
void ht_trace_debug(void);

void ht_trace_remove(struct ht_module *module);

/**
 * ht_trace_builtin() - a class of the library's own
 */
void ht_trace_builtin(struct ht_class *cls);

/* "comm/tid"; @name has HT_STREAM_NAME_MAX + 1 bytes */
void ht_trace_name(char *name, const char *comm, int tid);

#endif /* HT_LINUX_TRACE_H */
