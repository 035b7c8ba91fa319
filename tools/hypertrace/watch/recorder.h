/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: run the recorder of a virtual machine
 *
 * The recorder is a child process that does the same as "hypertrace record
 * --pid PID --flight SIZE". It runs as the machine's user, so that its files
 * belong to this user and a fault in it has this user's rights. It ends with
 * its parent. The parent prints its messages, and starts it again if it ends
 * before the machine.
 */
#ifndef HYPERTRACE_WATCH_RECORDER_H
#define HYPERTRACE_WATCH_RECORDER_H

#include "watch/vms.h"

/**
 * struct HtWatchRecorder - a virtual machine and its recorder
 * @vm: the machine
 * @where: folder of its recordings in HtWatchSettings.dir, as "alice/web1"
 * @child: PID of the recorder; 0 if none runs
 * @out: descriptor of the recorder's messages; -1 at their end
 * @due: time of the next start in us, if none runs
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
    /* messages that are not printed again */
    GHashTable *told;
    unsigned failures;
    int64_t started;
    /*
     * credit for messages in us: it grows with time, and each printed message
     * costs LINE_US
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

/** ht_watch_recorder_free() - free it; no recorder may run */
void ht_watch_recorder_free(HtWatchRecorder *r);

/**
 * ht_watch_recorder_start() - start the recorder
 * @r: no recorder may run
 * @error: set if no process could be started; @r->due is set then
 */
bool ht_watch_recorder_start(HtWatchRecorder *r,
                             const HtWatchSettings *settings, GError **error);

/**
 * ht_watch_recorder_read() - print new messages of the recorder
 * @r: a recorder
 *
 * A message that does not name a recording is printed at most once, and the
 * number of messages in a time is limited, because a guest can cause them.
 *
 * Return: true if a recording was made
 */
bool ht_watch_recorder_read(HtWatchRecorder *r);

/**
 * ht_watch_recorder_ended() - note that the recorder has ended
 * @r: a recorder; @r->child is set to 0, and @r->due to the next start
 * @status: of waitpid()
 */
void ht_watch_recorder_ended(HtWatchRecorder *r, int status);

#endif
