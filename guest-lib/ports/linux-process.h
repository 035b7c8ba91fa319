/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: state of a process, of its threads and of
 * their streams
 */
#ifndef HT_LINUX_PROCESS_H
#define HT_LINUX_PROCESS_H

#include "hypertrace/port.h"
#include "linux-trace.h"

#define THREADS_MAX     256

/**
 * struct thread_stream - a stream and its owner
 * @s: the stream; the first member, so that the addresses are equal
 * @map: mappings of the stream
 * @owner: id of the thread, also after it has ended, until reclaim() frees the
 *         stream or claim() reuses it; 0: free; SHARED: this is the shared
 *         stream, for threads that have no stream of their own, or reclaim() is
 *         closing the stream
 * @holder: shared stream: id of the thread that is emitting, or 0
 * @last: shared stream: id of the thread of the previous event; 0: none
 * @retry_at: shared stream: time of the next attempt to open it, in ms; 0: now
 * @retired: 0: not retired; else the number of the retirement, which is lower
 *           for streams that were retired earlier
 * @used: the stream was opened for its thread, so a program may have a pointer
 *        to it
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
 * struct process - the streams of one process; all zeroes in a child of fork()
 * @alive: 1; 0 in a child that has not made its own struct process yet
 * @pid: id of the process
 * @threads_seen: number of streams opened for a thread's own use so far,
 *                without reopenings
 * @retirements: number of streams retired so far
 * @openings: threads between ht_trace_begin_opening() and _end_opening()
 * @forks: number of threads in fork()
 * @missed: number of discarded events not yet reported to the host: those
 *          without a stream, and those of closed streams
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
 * @process: result of the thread's last ht_this_process(); in a child of fork()
 *           it may be the parent's
 * @own: the thread's stream, or NULL
 * @retry_at: time of the next attempt to open a stream, in ms
 * @another_at: time when the thread last moved an event to another stream, ms
 * @stuck: the stream that the thread found busy
 * @stuck_mark: number of events and discards of @stuck when it was found busy
 * @stuck_since: time when @stuck was found busy, in ms
 * @stuck_events: number of events that the thread discarded since @stuck_since
 * @tid: thread id; 0: not known yet
 * @opening: the thread is between ht_trace_begin_opening() and _end_opening()
 * @ended: the thread's key destructor has run
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
 * The structure of this process; NULL: none was made yet.  In a child of fork()
 * it is the structure of the parent, which the kernel has cleared, until
 * ht_this_process() makes another.
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
 * The first call in a child of fork() makes the child's struct process.  The
 * first call of a thread in a process initializes ht_self.
 *
 * Return: the process; NULL: none was made yet, or ht_new_process() failed.
 */
struct process *ht_this_process(void);

/**
 * ht_watch_forks() - install handlers for fork(); must not be called again, not
 *                    even in a child of fork(), which inherits the handlers
 */
void ht_watch_forks(void);

#endif /* HT_LINUX_PROCESS_H */
