/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what the commands for a QEMU that runs have in common
 */
#ifndef HYPERTRACE_TOOL_CONTROL_H
#define HYPERTRACE_TOOL_CONTROL_H

#include "cli/output.h"
#include "qemu/qmp.h"

/**
 * HtControl: the command line, and the connection
 * @device: only this one; NULL: all
 * @json: write JSON
 * @quiet: of commands that have it
 * @rest: the words behind the socket
 * @qmp: the connection
 * @objects: HtQmpObject that the command is for
 */
typedef struct HtControl {
    char *device;
    gboolean json;
    gboolean quiet;
    char **rest;
    HtQmp *qmp;
    GPtrArray *objects;
} HtControl;

/* What a command is for, and takes */
enum ht_control {
    HT_CONTROL_DEVICES = 1,
    HT_CONTROL_RINGS = 2,
    HT_CONTROL_JSON = 4,
    HT_CONTROL_QUIET = 8,
};

/**
 * ht_control_open: read the command line, and connect
 * @c: zeroed; to be closed, whatever is returned
 * @argc, @argv: main()'s
 * @name: of the command
 * @flags: of enum ht_control
 * @words: how many words the command takes behind the socket
 * @usage: what these are
 * @summary: what the command does
 * @status: set to the exit status if there is nothing to do
 */
bool ht_control_open(HtControl *c, int argc, char **argv, const char *name,
                     unsigned flags, unsigned words, const char *usage,
                     const char *summary, int *status);
void ht_control_close(HtControl *c);

/**
 * ht_control_finish: write what is left
 * @o: output
 * @error: or NULL; what went wrong, is freed
 *
 * Returns: the exit status
 */
int ht_control_finish(HtOutput *o, GError *error);

#endif /* HYPERTRACE_TOOL_CONTROL_H */
