/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: a tree of stacks of names, with the time of each stack
 *
 * As in a flame graph, callers are below the functions that they call.
 */
#ifndef HYPERTRACE_TOOL_FLAME_H
#define HYPERTRACE_TOOL_FLAME_H

#include "model/model.h"
#include "views/host-split.h"

/*
 * Maximum number of nodes of an HtFlame. The time of further nodes is added to
 * the nodes below them.
 */
#define HT_FLAME_NODES_MAX      (1u << 18)

/**
 * HtFlameNode: a name in a stack
 * @name: owned by the HtFlame, which has one copy of each name
 * @self: nanoseconds of this stack without the nodes above
 * @total: nanoseconds with all nodes above; set by ht_flame_sum()
 * @children: HtFlameNode by name: the nodes directly above; or NULL
 */
typedef struct HtFlameNode {
    const char *name;
    uint64_t self;
    uint64_t total;
    GHashTable *children;
} HtFlameNode;

typedef struct HtFlame HtFlame;

/**
 * ht_flame_new: create a tree that has only a root
 */
HtFlame *ht_flame_new(void);

/**
 * ht_flame_free: free a tree
 * @f: tree or NULL
 */
void ht_flame_free(HtFlame *f);

/** ht_flame_root: get the root, with which all stacks begin */
HtFlameNode *ht_flame_root(HtFlame *f);

/**
 * ht_flame_node: create a node, for ht_flame_adopt()
 * @name: copied; may have any bytes
 *
 * Returns: the node, or NULL if there are too many
 */
HtFlameNode *ht_flame_node(HtFlame *f, const char *name);

/**
 * ht_flame_child: get or create the node of a name above another node
 * @n: the node below
 * @name: copied; may have any bytes
 *
 * Returns: the node; @n if there are too many
 */
HtFlameNode *ht_flame_child(HtFlame *f, HtFlameNode *n, const char *name);

/**
 * ht_flame_adopt: put a node, with all nodes above it, above another node
 * @n: the node below
 * @child: node from ht_flame_node(). If @n already has a child of this name,
 *         that child takes over the time and children of @child, and @child is
 *         freed.
 */
void ht_flame_adopt(HtFlame *f, HtFlameNode *n, HtFlameNode *child);

/**
 * ht_flame_sum: compute the totals of a node and of all nodes above it
 *
 * Returns: the node's total in nanoseconds
 */
uint64_t ht_flame_sum(HtFlameNode *n);

/**
 * ht_flame_sorted: sort the nodes directly above a node by name
 *
 * Returns: new array of HtFlameNode
 */
GPtrArray *ht_flame_sorted(const HtFlameNode *n);

/*
 * Collectors. The caller passes the events that count, in their order, to the
 * _event() function. The _end() function completes the tree and frees the
 * collector.
 */

/**
 * HtFlameCalls: makes a tree of the functions that tasks called, as the
 * function_graph tracer recorded them. A call without a recorded end has no
 * time of its own.
 */
typedef struct HtFlameCalls HtFlameCalls;
HtFlameCalls *ht_flame_calls_new(HtFlame *f, HtModel *m);
void ht_flame_calls_event(HtFlameCalls *c, const HtModelEvent *ev);
void ht_flame_calls_end(HtFlameCalls *c);

/**
 * HtFlameCpu: collect the time of each task on the processors, divided into
 * initcalls, system calls and interrupts. If @host is not NULL, the own time of
 * these nodes is only HT_SPLIT_GUEST. Further nodes above them have the other
 * parts: "(exits)", "(stolen)", "(blocked)" and "(unknown)".
 */
typedef struct HtFlameCpu HtFlameCpu;
HtFlameCpu *ht_flame_cpu_new(HtFlame *f, HtModel *m, HtHostSplit *host);
void ht_flame_cpu_event(HtFlameCpu *c, const HtModelEvent *ev);
void ht_flame_cpu_end(HtFlameCpu *c);

/**
 * HtFlameOff: makes a tree of the time in which tasks did not run, by the
 * reason. A time counts if both the switch away from the task and the next
 * switch to it were recorded, and no gap of the recording is between them.
 */
typedef struct HtFlameOff HtFlameOff;
HtFlameOff *ht_flame_off_new(HtFlame *f, HtModel *m);
void ht_flame_off_event(HtFlameOff *o, const HtModelEvent *ev);
void ht_flame_off_end(HtFlameOff *o);

/* Forms in which a tree can be written */

/**
 * ht_flame_svg: draw a tree
 * @f: tree, after ht_flame_sum() of the root
 * @title: title of the picture; may have any bytes
 * @out: appended to: a whole SVG document, which loads no other file
 */
void ht_flame_svg(HtFlame *f, const char *title, GString *out);

/**
 * ht_flame_speedscope: write a tree for speedscope
 * @f: tree, after ht_flame_sum() of the root
 * @title: name of the profile; may have any bytes
 * @out: appended to: a JSON document
 */
void ht_flame_speedscope(HtFlame *f, const char *title, GString *out);

#endif /* HYPERTRACE_TOOL_FLAME_H */
