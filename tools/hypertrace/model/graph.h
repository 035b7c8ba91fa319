/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: which functions a task is in, by the events of the kernel's
 * function_graph and function tracers
 *
 * A task takes its calls along to another processor, and interrupts call
 * within whatever task they interrupt: so calls nest by task.  Each event says
 * how deep it is, so that what was lost does not disturb what comes after.
 */
#ifndef HYPERTRACE_TOOL_GRAPH_H
#define HYPERTRACE_TOOL_GRAPH_H

#include "model/model.h"

/* Deeper calls are not kept; the kernel has 50 in its own stack of them. */
#define HT_GRAPH_DEPTH_MAX      1024

/**
 * HtFrame: a call that did not end yet
 * @func: address
 * @ns: when it began
 * @depth: how many calls it is within
 * @mark: for use by the view
 * @base: likewise
 */
typedef struct HtFrame {
    uint64_t func;
    uint64_t ns;
    int32_t depth;
    int32_t base;
    bool mark;
} HtFrame;

/**
 * HtStack: the calls of a task
 * @pid: task
 * @cpu: where it was last
 * @frames: of HtFrame, the outermost first
 */
typedef struct HtStack {
    int32_t pid;
    uint32_t cpu;
    GArray *frames;
} HtStack;

/**
 * HtGraphStep: what an event changed
 * @stack: its task's calls, afterwards
 * @frame: the call that began, or that ended
 * @end_ns: when it ended; @frame.ns is as exact as the kernel has it then
 * @known: of an end: its begin was recorded
 * @lost: of HtFrame: calls whose end was not recorded, but must have been
 *        before; the innermost first.  Valid until the next event.
 */
typedef struct HtGraphStep {
    HtStack *stack;
    HtFrame frame;
    uint64_t end_ns;
    bool known;
    const GArray *lost;
} HtGraphStep;

typedef struct HtGraph HtGraph;

/**
 * ht_graph_new: know of no calls
 * @m: model, whose events they are
 */
HtGraph *ht_graph_new(HtModel *m);

/**
 * ht_graph_free: forget them
 * @g: graph or NULL
 */
void ht_graph_free(HtGraph *g);

/**
 * ht_graph_event: the next event
 * @g: graph
 * @ev: any event
 * @step: filled in if it is of a tracer of functions
 *
 * A boot and a step of the clock begin with no calls.  The function tracer
 * tells of no ends: its calls end when another function of the same or an
 * outer caller begins, and @step.lost is empty.
 *
 * Returns: whether it is
 */
bool ht_graph_event(HtGraph *g, const HtModelEvent *ev, HtGraphStep *step);

/**
 * ht_graph_stacks: all tasks that have had calls
 * @g: graph
 *
 * Returns: a table with values of HtStack
 */
GHashTable *ht_graph_stacks(HtGraph *g);

#endif /* HYPERTRACE_TOOL_GRAPH_H */
