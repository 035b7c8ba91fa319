/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the functions that each task is in, by the events of the
 * kernel's function_graph and function tracers
 *
 * Calls nest by task, not by processor: a task keeps its calls when it
 * migrates, and interrupts call within the task that they interrupt. Each event
 * of function_graph has the depth of its call. So after a gap, calls that ended
 * in the gap can be removed from the stack.
 */
#ifndef HYPERTRACE_TOOL_GRAPH_H
#define HYPERTRACE_TOOL_GRAPH_H

#include "model/model.h"

/* Maximum number of frames of a stack; further calls are not kept */
#define HT_GRAPH_DEPTH_MAX      1024

/**
 * HtFrame: a call of a function
 * @func: address of the function
 * @ns: guest time in nanoseconds at which the call began
 * @depth: number of calls around this call
 * @base: for use by the view
 * @mark: for use by the view
 * @cut: for use by the view
 */
typedef struct HtFrame {
    uint64_t func;
    uint64_t ns;
    int32_t depth;
    int32_t base;
    bool mark;
    bool cut;
} HtFrame;

/**
 * HtStack: the calls of a task that have not ended
 * @pid: PID of the task
 * @cpu: processor of the task's last event of a function tracer
 * @frames: of HtFrame, the outermost first
 */
typedef struct HtStack {
    int32_t pid;
    uint32_t cpu;
    GArray *frames;
} HtStack;

/**
 * HtGraphStep: what an event has changed
 * @stack: calls of the event's task, after the change; valid until the next
 *         event
 * @frame: the call that began or ended
 * @end_ns: if the event is the end of a call: the guest time of the end, in
 *          nanoseconds; the event also has the time of the begin, which is in
 *          @frame.ns. Else 0.
 * @known: if the event is the end of a call: the event of its begin was
 *         recorded, too
 * @lost: of HtFrame: calls that must have ended although no end was recorded;
 *        innermost first. Valid until the next event.
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
 * ht_graph_new: start without any calls
 * @m: model of the events
 */
HtGraph *ht_graph_new(HtModel *m);

/**
 * ht_graph_free: free all stacks
 * @g: graph or NULL
 */
void ht_graph_free(HtGraph *g);

/**
 * ht_graph_event: update the stacks by the next event
 * @ev: any event
 * @step: filled in if the event is one of a function tracer
 *
 * The first event of a function tracer in a boot or a segment of the clock
 * frees all stacks. The function tracer (not function_graph) does not record
 * the ends of calls: a call counts as ended at the first later event of the
 * task that has a caller outside this call. @step->lost is then empty.
 *
 * Returns: true if the event is one of a function tracer
 */
bool ht_graph_event(HtGraph *g, const HtModelEvent *ev, HtGraphStep *step);

/**
 * ht_graph_stacks: get the stacks of the tasks that had calls in the segment of
 *                  the last event for which ht_graph_event() returned true; of
 *                  up to 65,536 tasks
 *
 * Returns: a table whose values are HtStack
 */
GHashTable *ht_graph_stacks(HtGraph *g);

#endif /* HYPERTRACE_TOOL_GRAPH_H */
