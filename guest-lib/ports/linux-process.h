/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: processes, threads and their streams
 *
 * linux-process.c  processes and fork()
 * linux-trace.c    streams
 */
#ifndef HT_LINUX_PROCESS_H
#define HT_LINUX_PROCESS_H

#include "hypertrace/port.h"
#include "linux-trace.h"

#define THREADS_MAX     256

/**
 * struct thread_stream - a stream and its owner
 * @s: the stream; the first member, so that the addresses are equal
 * @map: its mappings
 * @owner: thread id; 0: free; SHARED: the stream for threads without their own
 * @holder: SHARED: the thread that is emitting, or 0
 * @last: SHARED: the thread of the previous event
 * @retry_at: SHARED: time of the next attempt to open it, in ms; 0: now
 * @retired: 0, or the number of its retirement
 * @used: it was opened for its thread, so modules may point to it
 */
struct thread_stream {
    struct ht_stream s;
    struct ht_node_map map;
    int owner;
    int holder;
    int last;
    uint64_t retry_at;
    uint32_t retired;
    bool used;
} __attribute__((aligned(64)));

/**
 * struct process - the streams of one process; fork() zeroes it in the child
 * @alive: 1; 0 in a child that has not made its own struct process yet
 * @pid: id of the process
 * @threads_seen: number of threads that had their own stream so far
 * @retirements: number of streams retired so far
 * @openings: threads between ht_trace_begin_opening() and _end_opening()
 * @forks: number of threads in fork()
 * @missed: events without a stream that were not reported to the host
 * @attach_at: time of the next attempt to find a device, in ms
 * @shared: the stream for threads without their own, or NULL
 * @sharing: 1: a thread is opening or has opened @shared
 * @threads: all streams
 */
struct process {
    int alive;
    int pid;
    int threads_seen;
    uint32_t retirements;
    int openings;
    int forks;
    uint64_t missed;
    uint64_t attach_at;
    struct thread_stream *shared;
    int sharing;
    struct thread_stream threads[THREADS_MAX] __attribute__((aligned(64)));
};

/**
 * struct self - state of a thread
 * @process: its process at its last event; differs in a child of fork()
 * @own: its stream, or NULL
 * @retry_at: time of the next attempt to open a stream, in ms
 * @another_at: time when the thread last moved an event to another stream, ms
 * @stuck: a stream that was found busy
 * @stuck_mark: progress of @stuck when it was found busy
 * @stuck_since: time when it was found busy, in ms
 * @stuck_events: number of events discarded since then
 * @tid: thread id; 0: not known yet
 * @opening: the thread is in a function that opens a stream or a device
 * @ended: its key destructor has run
 */
struct self {
    struct process *process;
    struct thread_stream *own;
    uint64_t retry_at;
    uint64_t another_at;
    const struct thread_stream *stuck;
    uint64_t stuck_mark;
    uint64_t stuck_since;
    unsigned stuck_events;
    int tid;
    bool opening;
    bool ended;
};

/*
 * The structure of this process. After fork() it is the parent's until
 * ht_this_process() makes the child's. NULL: none was made yet
 */
extern struct process *ht_process;

extern __thread struct self ht_self HT_TLS_MODEL;

/**
 * ht_new_process() - make a struct process without streams
 *
 * Return: the process; NULL: a system call failed.
 */
struct process *ht_new_process(void);

/**
 * ht_this_process() - get the struct process of the calling process
 *
 * If the calling thread is new to it, initialize ht_self.  The first call in a
 * child of fork() makes the child's struct process.
 *
 * Return: the process; NULL: none was made yet, or ht_new_process() failed.
 */
struct process *ht_this_process(void);

/**
 * ht_watch_forks() - install handlers for fork(), once
 */
void ht_watch_forks(void);

#endif /* HT_LINUX_PROCESS_H */
