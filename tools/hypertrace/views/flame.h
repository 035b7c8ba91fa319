/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace flame: stacks of names, and how long each was what went on
 */
#ifndef HYPERTRACE_TOOL_FLAME_H
#define HYPERTRACE_TOOL_FLAME_H

#include "model/model.h"

/* More stacks than this are not told from each other. */
#define HT_FLAME_NODES_MAX      (1u << 18)

/**
 * HtFlameNode: a name in a stack
 * @name: interned by its HtFlame
 * @self: nanoseconds that nothing above it has
 * @total: with all that is above; set by ht_flame_sum()
 * @children: of HtFlameNode by name, or NULL
 */
typedef struct HtFlameNode {
    const char *name;
    uint64_t self;
    uint64_t total;
    GHashTable *children;
} HtFlameNode;

typedef struct HtFlame HtFlame;

/**
 * ht_flame_new: no stacks
 */
HtFlame *ht_flame_new(void);

/**
 * ht_flame_free: forget all
 * @f: flame or NULL
 */
void ht_flame_free(HtFlame *f);

/**
 * ht_flame_root: what all stacks begin with
 * @f: flame
 */
HtFlameNode *ht_flame_root(HtFlame *f);

/**
 * ht_flame_node: a node that is in no stack yet
 * @f: flame
 * @name: any bytes, copied
 *
 * Returns: the node, or NULL if there are too many
 */
HtFlameNode *ht_flame_node(HtFlame *f, const char *name);

/**
 * ht_flame_child: the node of a name above another
 * @f: flame
 * @n: node
 * @name: any bytes, copied
 *
 * Returns: the node; @n if there are too many
 */
HtFlameNode *ht_flame_child(HtFlame *f, HtFlameNode *n, const char *name);

/**
 * ht_flame_adopt: put a node, and all above it, above another
 * @f: flame
 * @n: node
 * @child: given away: may be joined with what is there
 */
void ht_flame_adopt(HtFlame *f, HtFlameNode *n, HtFlameNode *child);

/**
 * ht_flame_sum: set the totals of a node and of all above it
 * @n: node
 *
 * Returns: its total
 */
uint64_t ht_flame_sum(HtFlameNode *n);

/**
 * ht_flame_sorted: what is above a node, by name
 * @n: node
 *
 * Returns: new array of HtFlameNode
 */
GPtrArray *ht_flame_sorted(const HtFlameNode *n);

/* What is collected; each is fed with all events in turn, then ended. */

/**
 * HtFlameCalls: calls of functions, by the kernel's function_graph tracer
 */
typedef struct HtFlameCalls HtFlameCalls;
HtFlameCalls *ht_flame_calls_new(HtFlame *f, HtModel *m);
void ht_flame_calls_event(HtFlameCalls *c, const HtModelEvent *ev);
void ht_flame_calls_end(HtFlameCalls *c);

/**
 * HtFlameCpu: what processors did: tasks, and in them initcalls, system calls,
 * interrupts
 */
typedef struct HtFlameCpu HtFlameCpu;
HtFlameCpu *ht_flame_cpu_new(HtFlame *f, HtModel *m);
void ht_flame_cpu_event(HtFlameCpu *c, const HtModelEvent *ev);
void ht_flame_cpu_end(HtFlameCpu *c);

/**
 * HtFlameOff: why tasks were off their processors
 */
typedef struct HtFlameOff HtFlameOff;
HtFlameOff *ht_flame_off_new(HtFlame *f, HtModel *m);
void ht_flame_off_event(HtFlameOff *o, const HtModelEvent *ev);
void ht_flame_off_end(HtFlameOff *o);

/* Forms of output */

/**
 * ht_flame_svg: draw it
 * @f: flame, summed up
 * @title: any bytes
 * @out: appended to: a whole SVG document, which loads nothing
 */
void ht_flame_svg(HtFlame *f, const char *title, GString *out);

/**
 * ht_flame_speedscope: write it for speedscope
 * @f: flame, summed up
 * @title: any bytes
 * @out: appended to: a JSON document
 */
void ht_flame_speedscope(HtFlame *f, const char *title, GString *out);

#endif /* HYPERTRACE_TOOL_FLAME_H */
