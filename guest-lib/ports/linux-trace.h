/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: declarations shared by ht_trace()'s files
 *
 * linux-process.c       processes, fork()
 * linux-trace.c         streams of threads
 * linux-trace-device.c  the device of the streams, and the classes
 * linux-event.c         classes made at run time, and their events
 */
#ifndef HT_LINUX_TRACE_H
#define HT_LINUX_TRACE_H

/* With HT_LIBRARY, trace.h omits the definitions that only programs need */
#define HT_LIBRARY
#include "hypertrace/trace.h"
#include "linux-node.h"

/* Minimum time in ms between two attempts to open a device or a stream */
#define HT_TRACE_RETRY_MS       500

/* linux-trace.c */
extern const struct ht_runtime ht_trace_runtime;

/**
 * ht_trace_init() - initialize the library, if this was not done before
 *
 * Return: false: a system call failed, so ht_trace() cannot work.
 */
bool ht_trace_init(void);

/**
 * ht_trace_begin_opening() - start a section in which the thread may have a
 *                            descriptor, and signals are blocked
 * @mask: set, for ht_trace_end_opening()
 *
 * Context: the thread has called ht_this_process(), which did not return NULL
 *
 * Return: true if the thread may open descriptors now; false if the thread is
 * already in this section, a thread is in fork(), or signals cannot be blocked.
 */
bool ht_trace_begin_opening(uint64_t *mask);

/* @mask: from ht_trace_begin_opening() */
void ht_trace_end_opening(const uint64_t *mask);

/**
 * ht_trace_descriptor() - get the variable for a descriptor
 *
 * While a descriptor is open, the variable must hold it, so that a child of
 * fork() closes it.
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: the variable, set to -1, for ht_trace_close_descriptor(); NULL: all
 * variables are in use.
 */
int *ht_trace_descriptor(void);

/**
 * ht_trace_close_descriptor() - close a descriptor and release its variable
 * @fd: from ht_trace_descriptor()
 */
void ht_trace_close_descriptor(int *fd);

/**
 * ht_trace_tell() - report discarded events to the host, before the program
 * exits or unloads a module
 *
 * Reports in the counts of this thread's streams and of the shared stream, and
 * by a message if these are not open.
 */
void ht_trace_tell(void);

/* linux-trace-device.c */

/**
 * ht_trace_report() - report discarded events to the host in a message
 * @count: number of events
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: true if the host knows the number or will execute the message; false
 * if the device with the process's classes cannot be opened, or on failure.
 */
bool ht_trace_report(uint64_t count);

/**
 * ht_trace_open() - open the device, open and map a stream, close the device
 * @s: initialized by this
 * @map: initialized by this
 * @params: for ht_stream_open()
 *
 * If the device was replaced or suspended since the classes were registered,
 * they are registered again.
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: as ht_stream_open(); -EAGAIN: another thread is registering classes,
 * or ht_trace_descriptor() failed.
 */
int ht_trace_open(struct ht_stream *s, struct ht_node_map *map,
                  const struct ht_stream_params *params);

/**
 * ht_trace_attached() - test whether the process's classes are registered on a
 *                       device
 */
bool ht_trace_attached(void);

/**
 * ht_trace_had_device() - test whether a search has found a device, even one
 *                         that did not answer or could not be opened
 */
bool ht_trace_had_device(void);

/**
 * ht_trace_attach() - find a device and register all classes
 *
 * Context: between ht_trace_begin_opening() and ht_trace_end_opening()
 *
 * Return: 0 or a negative errno; -EAGAIN: as for ht_trace_open().
 */
int ht_trace_attach(void);

/**
 * ht_trace_add_class() - add a class that was made at run time
 *
 * Return: false if there are too many classes, or if ht_trace_init() failed.
 */
bool ht_trace_add_class(struct ht_class *cls);

/**
 * ht_trace_no_stream() - test whether this thread could not open a stream, and
 *                        the process has no shared stream
 */
bool ht_trace_no_stream(void);

/**
 * ht_trace_debug() - print the state of tracing if it has changed and
 *                    HYPERTRACE_DEBUG is 1
 */
void ht_trace_debug(void);

void ht_trace_remove(struct ht_module *module);

/* Add one of the library's own classes */
void ht_trace_builtin(struct ht_class *cls);

/* Set @name, of HT_STREAM_NAME_MAX + 1 bytes, to COMM/TID or COMM/shared */
void ht_trace_name(char *name, const char *comm, int tid);

#endif /* HT_LINUX_TRACE_H */
