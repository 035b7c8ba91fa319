/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the process and the name of a host's thread
 */
#ifndef HYPERTRACE_TOOL_THREADS_H
#define HYPERTRACE_TOOL_THREADS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of bytes after which a thread's name is cut */
#define HT_HOST_COMM_MAX        16

/**
 * HtHostThread: a thread of the host
 * @pid: PID of the thread's process; 0: not known
 * @name: name of the thread, which may have any bytes
 */
typedef struct HtHostThread {
    uint32_t pid;
    char name[HT_HOST_COMM_MAX + 1];
} HtHostThread;

/**
 * ht_host_threads: parse the file "threads" of a host's part
 * @text: content of the file, which may have any bytes
 * @size: number of bytes
 *
 * Lines that are not valid are left out.
 *
 * Returns: a table from TID to HtHostThread, at most 100,000, for
 * g_hash_table_destroy()
 */
GHashTable *ht_host_threads(const char *text, size_t size);

/**
 * ht_host_thread: find a thread
 * @threads: from ht_host_threads()
 * @tid: ID of the thread
 *
 * Returns: the thread, or NULL
 */
const HtHostThread *ht_host_thread(GHashTable *threads, uint32_t tid);

/**
 * ht_host_thread_add: look up a thread in this host's /proc, and add it
 * @threads: a table without the thread
 * @tid: ID of the thread
 *
 * Returns: the thread with an empty name; its @pid is 0 if the thread has
 * ended. NULL if the table is full
 */
const HtHostThread *ht_host_thread_add(GHashTable *threads, uint32_t tid);

/**
 * ht_host_vcpu_name: recognize the name that QEMU gives a vCPU's thread
 * @comm: the name; any bytes
 * @len: its length
 * @vcpu: set to the number of the vCPU; -1: the thread runs all vCPUs
 *
 * Returns: false if @comm is no such name
 */
bool ht_host_vcpu_name(const char *comm, size_t len, int32_t *vcpu);

/**
 * ht_host_emulated_name: whether a thread has the name of a vCPU that TCG
 * emulates
 * @comm: a name that ht_host_vcpu_name() recognizes
 * @len: its length
 */
bool ht_host_emulated_name(const char *comm, size_t len);

#endif /* HYPERTRACE_TOOL_THREADS_H */
