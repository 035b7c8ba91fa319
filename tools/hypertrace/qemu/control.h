/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse what the command lines of all commands for a QEMU have in
 * common, and connect to that QEMU
 */
#ifndef HYPERTRACE_TOOL_CONTROL_H
#define HYPERTRACE_TOOL_CONTROL_H

#include "cli/output.h"
#include "qemu/qmp.h"

/**
 * HtControl: a command line, and the connection to QEMU
 * @device: id of the device to use; NULL: all
 * @json: print JSON
 * @rest: the arguments after the address of QMP
 * @qmp: the connection
 * @objects: array of HtQmpObject: the devices to use
 */
typedef struct HtControl {
    char *device;
    gboolean json;
    char **rest;
    HtQmp *qmp;
    GPtrArray *objects;
} HtControl;

/* Options that only some callers of ht_control_open() take */
enum ht_control {
    HT_CONTROL_JSON = 1,
};

/**
 * ht_control_open: parse a command line, and connect to QEMU
 * @c: zeroed; the caller must call ht_control_close(), also on failure
 * @argc: number of arguments
 * @argv: name of the command and its arguments
 * @name: name of the command
 * @flags: of enum ht_control
 * @words: number of arguments after the address of QMP
 * @usage: names of all arguments, for messages and --help
 * @summary: description for --help
 * @status: set to the exit status on failure
 *
 * Returns: false if the command must end with @status
 */
bool ht_control_open(HtControl *c, int argc, char **argv, const char *name,
                     unsigned flags, unsigned words, const char *usage,
                     const char *summary, int *status);
void ht_control_close(HtControl *c);

/**
 * ht_control_finish: finish the output, and print errors on standard error
 * @error: error of the command, or NULL; freed
 *
 * Returns: the exit status
 */
int ht_control_finish(HtOutput *o, GError *error);

#endif /* HYPERTRACE_TOOL_CONTROL_H */
