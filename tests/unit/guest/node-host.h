/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: /dev/hypertrace0 for one process, without a driver
 *
 * A seccomp filter passes the process's openat() and the driver's ioctl() calls
 * to the test.  openat() of the node returns a file that contains the rings and
 * the enable page.  The host of loopback.h executes the control messages.  The
 * process uses the library as shipped.
 */
#ifndef NODE_HOST_H
#define NODE_HOST_H

#include "loopback.h"

/*
 * If the process opens a path in this folder, the file's name is a command to
 * the test, and the call fails with ENOENT.
 */
#define NODE_COMMAND "/node-host/"

/* Counts of the traced process's calls between two commands "mark" */
typedef struct NodeMark {
    /* calls of openat() for /dev/hypertrace*, including failed ones */
    unsigned opens;
    unsigned ioctls;
    /* streams that are open at the second command */
    unsigned streams;
} NodeMark;

#define NODE_MARKS 16

/**
 * NodeHost:
 * @lb: the device
 * @file: memory that the process maps: rings and enable page
 * @channel: enum ht_channel of the device
 * @streams_max: number of the device's streams; 0: 64
 * @plugged: the node exists; commands "plug" and "unplug"
 * @error: each control message fails with this error number; 0: none; commands
 *         "stall" (ETIMEDOUT), "refuse" (EBUSY) and "go" (0)
 * @unwanted: all classes are off
 * @busy: submitted buffers never return; command "busy".  If set before
 *        node_host_run(): the host has no thread that consumes, either
 * @denied: errno of opening the node; 0: it may be opened
 * @told: discarded events that the library reported by HT_MSG_DISCARDED
 * @lost: events that streams counted as lost; command "take-N": close the
 *        stream N after the process has unmapped its memory
 * @emitted: sum of the commands "emitted-N"
 * @streams: streams that were opened
 * @files: number of open files that the process got
 * @opened_by: by stream: number of the open file that opened it; 0: it is not
 *             open
 * @got: events by name: GUINT_TO_POINTER(count)
 * @lock: guards @got while the process runs
 * @now: calls since the last mark
 */
typedef struct NodeHost {
    struct ht_loopback *lb;
    int file;
    uint32_t channel;
    uint32_t streams_max;
    uint32_t generation;
    bool plugged;
    bool unwanted;
    bool busy;
    int error;
    int denied;
    uint64_t told;
    uint64_t lost;
    uint64_t emitted;
    unsigned streams;
    unsigned files;
    unsigned opened_by[HT_STREAMS_MAX];
    unsigned controls;
    GMutex lock;
    GHashTable *got;
    NodeMark now;
    NodeMark mark[NODE_MARKS];
    unsigned marks;
} NodeHost;

/**
 * node_host_run: run this program again as the process that is served
 * @host: the caller sets @channel, and, if not 0, @streams_max, @plugged,
 *         @error, @unwanted, @busy and @denied; the results are set when this
 *         returns
 * @argument: argv[1] of the process
 * @value: argv[2] of the process, or NULL
 *
 * Returns: exit status of the process, or 128 plus the signal that ended it
 */
int node_host_run(NodeHost *host, const char *argument, const char *value);

/**
 * node_host_free: free what node_host_run() allocated in @host
 */
void node_host_free(NodeHost *host);

/**
 * node_host_got: return how many events of the class @name arrived
 */
unsigned node_host_got(NodeHost *host, const char *name);

/**
 * node_command: send a command to the test
 *
 * Context: the process that is served
 */
void node_command(const char *command);

#endif
