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
 * @s: the stream; first, so that a pointer to it is one to this structure
 * @map: its mappings
 * @owner: thread id; 0: free; SHARED: the stream for threads without one
 * @holder: SHARED: the thread that emits, or 0
 * @last: SHARED: the thread of the previous event
 * @retry_at: SHARED: time of the next try to open it, in ms; 0: now
 * @retired: 0, or the number of its retirement
 * @used: its thread has emitted to it, so modules may point to it
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
 * struct process - the streams of one process; wiped by fork()
 * @alive: 1; 0: this is a child that has no struct process of its own yet
 * @pid: of the process
 * @threads_seen: threads that had a stream of their own so far
 * @retirements: streams retired so far
 * @openings: threads between ht_trace_begin_opening() and _end_opening()
 * @forks: threads in fork()
 * @missed: events without a stream that the host was not told of
 * @attach_at: time of the next try to find a device, in ms
 * @shared: the stream for threads without one, or NULL
 * @sharing: 1: a thread opens @shared, or did
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
 * struct self - what a thread knows
 * @process: its process when it emitted last; another one: this is a child
 * @own: its stream, or NULL
 * @retry_at: time of the next try to open a stream, in ms
 * @another_at: time when it last gave an event to another stream, in ms
 * @stuck: a stream that was seen busy
 * @stuck_mark: its progress by then
 * @stuck_since: time by then, in ms
 * @stuck_events: events discarded since
 * @tid: thread id; 0: not asked yet
 * @opening: it is in a function that opens a stream or a device
 * @ended: its destructor has run
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

/* The process that a parent or this one made last; NULL: none yet */
extern struct process *ht_process;

extern __thread struct self ht_self HT_TLS_MODEL;

/**
 * ht_new_process() - make a process without streams
 *
 * Return: the process, or NULL.
 */
struct process *ht_new_process(void);

/**
 * ht_this_process() - this process, and this thread as one of its threads
 *
 * A child of fork() makes its process at its first call.
 *
 * Return: the process, or NULL.
 */
struct process *ht_this_process(void);

/**
 * ht_watch_forks() - be called at each fork(), once
 */
void ht_watch_forks(void);

#endif /* HT_LINUX_PROCESS_H */
