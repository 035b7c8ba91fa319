/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: classes and functions that node-test.c and
 * node-step-test.c share
 */
#ifndef NODE_PROGRAM_H
#define NODE_PROGRAM_H

#include <hypertrace.h>
#include "node-host.h"

HT_EVENT_NAMED(probe, "node.probe", (u32, n));
HT_EVENT_NAMED(step, "node.step", (u32, n), (u64, check));

/* A part of a test that runs in the traced process */
typedef struct NodeChild {
    const char *name;
    void (*run)(const char *value);
} NodeChild;

/* Number of events that this process has passed to emit(), not yet reported */
extern unsigned emitted;

/* emit: emit @n events of the class "step" */
void emit(unsigned n);

/* say_emitted: report @emitted by a command to the test, and set it to 0 */
void say_emitted(void);

/*
 * emit_until_open: emit events of the class "probe" until this thread has a
 * stream
 */
void emit_until_open(void);

/**
 * node_child: run the child that argv[1] of the traced process names
 * @children: all children of the program; the last one has no name
 *
 * Returns: exit status for the process: 0, or 96 if there is no such child
 */
int node_child(char **argv, const NodeChild *children);

/* steps_got: return how many events of the class "step" arrived */
unsigned steps_got(NodeHost *h);

#endif
