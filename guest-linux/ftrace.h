/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-ftrace: the module's own declarations
 *
 * ftrace-main.c    which types of events there are, and their helper
 * ftrace-export.c  what ftrace calls with each record
 * ftrace-format.c  a class from the text of an event's format file
 * ftrace-history.c what a ring had before the module came
 * ftrace-tracefs.c reading tracefs
 */
#ifndef HTF_H
#define HTF_H

#include <linux/list.h>
#include <linux/types.h>

#include "hypertrace-kernel.h"

/* The trace instance that is made */
#define HTF_INSTANCE	"hypertrace"

/* What every record begins with: type, flags, preempt_count, pid */
#define HTF_RECORD_MIN	8u

enum htf_op_kind {
	HTF_PLAIN,		/* bytes as they are */
	HTF_COUNTED,		/* a fixed place; size 0: up to the record's end */
	HTF_DYNAMIC,		/* a place told by 32 bits: size, offset */
};

/**
 * struct htf_op - how a piece of a record becomes a piece of an event
 * @kind: enum htf_op_kind
 * @text: ends at its first NUL
 * @relative: of a dynamic one, the offset counts from behind its 32 bits
 * @shift: of a counted or dynamic one, log2 of the size of an element
 * @offset: in the record
 * @size: in bytes
 */
struct htf_op {
	u8 kind;
	bool text;
	bool relative;
	u8 shift;
	u32 offset;
	u32 size;
};

/**
 * struct htf_type - a type of ftrace records, and its class
 * @class: its name and the fields' point into @text
 * @fields: of @class
 * @ops: @nr_ops of them
 * @fixed: bytes of an event in which everything counted is empty
 * @least: bytes of a record which the ops take for granted
 * @id: ftrace's number
 * @usual: in how many instances it was on when that was last seen; 0: unknown
 * @dead: the kernel forgot the event; its number is another's
 * @hash: of all types that are known, by @system and class name
 * @all: list of all types
 * @text: of the format file, in pieces
 */
struct htf_type {
	struct ht_class class;
	struct ht_field fields[HT_FIELDS_MAX];
	struct htf_op ops[HT_FIELDS_MAX];
	unsigned int nr_ops;
	u32 fixed;
	u32 least;
	u16 id;
	u8 usual;
	bool dead;
	struct hlist_node hash;
	struct list_head all;
	const char *system;
	char *text;
};

/* ftrace-format.c */
struct htf_type *htf_type_parse(const char *system, const char *text);
void htf_type_free(struct htf_type *t);

/* ftrace-tracefs.c */
int htf_tracefs_init(void);
void htf_tracefs_exit(void);
bool htf_tracefs_exists(const char *path);
char *htf_tracefs_read(const char *path);

/* ftrace-main.c */
struct htf_type *htf_type_get(u16 id);
void htf_type_wanted(u16 id);
bool htf_type_renewed(u16 id, u32 since);
u32 htf_renewals(void);
void htf_help(void);
extern struct htf_type htf_untyped;

/* ftrace-export.c */
int htf_export_init(void);
int htf_export_start(bool held);
void htf_export_go(int cpu);
void htf_export_stop(void);
void htf_export_exit(void);
bool htf_export_drain(void);

/* ftrace-history.c */
int htf_history_init(void);
bool htf_history_wanted(void);
void htf_history_send(void);
void htf_history_exit(void);

#endif /* HTF_H */
