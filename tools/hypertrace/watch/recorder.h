/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: run the recorder of a virtual machine
 *
 * The recorder is a child process that works as "hypertrace record --pid PID
 * --flight SIZE" does. It runs as the machine's user, so that its files belong
 * to this user. A recorder that root started keeps only the capability to read
 * processes. If the parent process ends, the recorder gets SIGTERM. The parent
 * prints the recorder's messages, and starts a new recorder if the recorder
 * ends before the machine.
 */
#ifndef HYPERTRACE_WATCH_RECORDER_H
#define HYPERTRACE_WATCH_RECORDER_H

#include "watch/vms.h"

/**
 * struct HtWatchRecorder - a virtual machine and its recorder
 * @vm: the machine
 * @where: folder of its recordings in HtWatchSettings.dir, as "alice/web1"
 * @child: PID of the recorder; 0 if none runs
 * @out: descriptor of the recorder's messages; -1 before the first start and
 *       at the end of the messages
 * @due: if none runs: earliest time of the next start, by the host's
 *       CLOCK_MONOTONIC, in us
 */
typedef struct HtWatchRecorder {
    HtWatchVm *vm;
    char *where;
    pid_t child;
    int out;
    int64_t due;

    /* private members */
    /* path of the folder @where below HtWatchSettings.dir */
    char *path;
    GString *line;
    /* messages that are not printed if they come again */
    GHashTable *told;
    unsigned failures;
    int64_t started;
    /*
     * credit for messages in us: it grows with time up to CREDIT_US, and each
     * printed message costs LINE_US
     */
    int64_t credit;
    int64_t credited;
    uint64_t suppressed;
} HtWatchRecorder;

/**
 * ht_watch_recorder_new() - prepare a recorder
 * @vm: the machine; the result takes ownership
 * @where: folder of its recordings; copied
 */
HtWatchRecorder *ht_watch_recorder_new(HtWatchVm *vm, const char *where);

/**
 * ht_watch_is_recording() - whether a message says that a recording was made
 * @text: the message, as "panic: PATH/3-panic, ..."; "..." is text of the guest
 * @path: folder of the recordings
 */
bool ht_watch_is_recording(const char *text, const char *path);

/**
 * ht_watch_recorder_free() - free a machine and the state of its recorder
 * @r: its process must have ended; or NULL
 */
void ht_watch_recorder_free(HtWatchRecorder *r);

/**
 * ht_watch_recorder_start() - start the recorder's process
 * @r: a recorder without a running process
 * @error: set if no process could be started; @r->due is set then
 *
 * Return: true if the process was started
 */
bool ht_watch_recorder_start(HtWatchRecorder *r,
                             const HtWatchSettings *settings, GError **error);

/**
 * ht_watch_recorder_read() - print new messages of the recorder
 * @r: a recorder
 *
 * A message is printed at most once, unless it says that a recording was made.
 * A guest can cause messages, so their number in a time is limited. After the
 * machine's end, only messages about recordings are printed.
 *
 * Return: true if a message says that a recording was made
 */
bool ht_watch_recorder_read(HtWatchRecorder *r);

/**
 * ht_watch_recorder_ended() - note that the recorder's process has ended
 * @r: a recorder; @r->child is set to 0, and @r->due to the next start
 * @status: of waitpid()
 */
void ht_watch_recorder_ended(HtWatchRecorder *r, int status);

#endif
