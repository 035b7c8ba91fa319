// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-ftrace: a class from the text of an event's format file
 *
 *	name: irq_handler_entry
 *	ID: 154
 *	format:
 *		field:int irq;	offset:8;	size:4;	signed:1;
 *		field:__data_loc char[] name;	offset:12;	size:4;	signed:0;
 *
 * Of char arrays that are text up to their first NUL, the tasks' names of the
 * scheduler's events stay arrays.
 */
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ftrace.h"

/* Informational, as hypertrace-export(1) has it */
#define HTF_LOGLEVEL	6

/**
 * struct htf_decl - a field of a format file
 * @decl: as declared
 * @relative: see struct htf_op
 * @offset: in the record
 */
struct htf_decl {
	struct ht_kernel_decl decl;
	bool relative;
	u32 offset;
};

static bool htf_skip(char **s, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*s, word, len))
		return false;
	*s += len;
	return true;
}

static bool htf_ends(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

/* "field:DECLARATION;\toffset:N;\tsize:N;\tsigned:N;" */
static bool htf_split(char *line, struct htf_decl *out)
{
	char *text = strsep(&line, ";"), *bracket, *name;
	struct ht_kernel_decl *d = &out->decl;
	unsigned int is_signed;

	memset(out, 0, sizeof(*out));
	if (!line || sscanf(line, " offset:%u; size:%u; signed:%u;",
			    &out->offset, &d->size, &is_signed) != 3 ||
	    out->offset > U16_MAX || d->size > U16_MAX)
		return false;
	d->is_signed = is_signed;
	if (htf_skip(&text, "__data_loc ")) {
		d->dynamic = true;
	} else if (htf_skip(&text, "__rel_loc ")) {
		d->dynamic = true;
		out->relative = true;
	}
	bracket = strchr(text, '[');
	if (bracket) {
		d->array = true;
		/* A macro's name, or none, stays 0. */
		if (sscanf(bracket, "[%u]", &d->count) != 1)
			d->count = 0;
		/* Behind the name, or "char[] name" */
		if (htf_ends(text, "]"))
			*bracket = '\0';
	}
	name = strrchr(text, ' ');
	if (!name)
		return false;
	*name++ = '\0';
	d->type = text;
	text[strcspn(text, "[")] = '\0';
	/* "char *name" */
	while (*name == '*') {
		name++;
		d->type = "*";
	}
	d->name = name;
	return *name && (!d->dynamic || d->size == 4);
}

/*
 * The scheduler's events copy all bytes of a task's name: no need to look for
 * its end.  Others may leave what was there behind it.
 */
static bool htf_is_comm(const struct htf_type *t,
			const struct ht_kernel_decl *d)
{
	return !strcmp(t->system, "sched") && !d->dynamic &&
	       d->size == TASK_COMM_LEN && htf_ends(d->name, "comm");
}

/* A plain piece that begins where the last one ends is the same piece. */
static void htf_add_op(struct htf_type *t, const struct htf_op *op)
{
	struct htf_op *last = t->nr_ops ? &t->ops[t->nr_ops - 1] : NULL;

	if (last && op->kind == HTF_PLAIN && last->kind == HTF_PLAIN &&
	    last->offset + last->size == op->offset)
		last->size += op->size;
	else
		t->ops[t->nr_ops++] = *op;
	t->fixed += op->kind == HTF_PLAIN ? op->size : 2;
	t->least = max(t->least, op->offset + op->size);
}

static int htf_add(struct htf_type *t, const struct htf_decl *d)
{
	struct ht_kernel_decl decl = d->decl;
	struct htf_op op = { .offset = d->offset, .size = decl.size };
	const struct ht_field *f;

	decl.padded = htf_is_comm(t, &decl);
	f = ht_kernel_add_field(&t->class, t->fields, &decl);
	if (!f)
		return -EINVAL;
	if (f->kind == HT_FIELD_TEXT || f->kind == HT_FIELD_SEQUENCE) {
		op.kind = decl.dynamic ? HTF_DYNAMIC : HTF_COUNTED;
		op.relative = d->relative;
		op.text = f->kind == HT_FIELD_TEXT;
		op.shift = ht_kernel_shift(f);
	}
	htf_add_op(t, &op);
	return 0;
}

/* The fields that all events begin with are the same in all kernels. */
static int htf_add_common(struct htf_type *t)
{
	static const struct htf_decl common[] = {
		{ { "u8", "common_flags", .size = 1 }, .offset = 2 },
		{ { "u8", "common_preempt_count", .size = 1 }, .offset = 3 },
		{ { "int", "common_pid", .size = 4, .is_signed = true },
		  .offset = 4 },
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(common) && !ret; i++)
		ret = htf_add(t, &common[i]);
	t->fields[0].flags = HT_FIELD_HEX;
	return ret;
}

static int htf_parse(struct htf_type *t, char *text)
{
	bool have_id = false;
	unsigned int id;
	char *line;
	int ret = htf_add_common(t);

	while (!ret && (line = strsep(&text, "\n"))) {
		struct htf_decl d;

		line = skip_spaces(line);
		if (htf_skip(&line, "name: ")) {
			t->class.name = line;
		} else if (sscanf(line, "ID: %u", &id) == 1) {
			if (id > U16_MAX)
				return -EINVAL;
			t->id = id;
			have_id = true;
		} else if (htf_skip(&line, "field:")) {
			if (!htf_split(line, &d))
				return -EINVAL;
			if (strncmp(d.decl.name, "common_", 7))
				ret = htf_add(t, &d);
		} else if (htf_skip(&line, "print fmt:")) {
			break;
		}
	}
	if (!have_id || !t->class.name)
		return -EINVAL;
	return ret;
}

/**
 * htf_type_parse() - a type and its class, not yet registered
 * @system: of the event; kept as it is
 * @text: of its format file
 *
 * Return: to be freed by htf_type_free(); -ENOMEM; -EINVAL: not understood
 */
struct htf_type *htf_type_parse(const char *system, const char *text)
{
	const char *end = strstr(text, "\nprint fmt:");
	struct htf_type *t;
	int ret;

	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&t->all);
	INIT_HLIST_NODE(&t->hash);
	t->least = HTF_RECORD_MIN;
	t->class.fields = t->fields;
	t->class.loglevel = HTF_LOGLEVEL;
	t->system = kstrdup_const(system, GFP_KERNEL);
	t->text = kmemdup_nul(text, end ? end - text : strlen(text),
			      GFP_KERNEL);
	ret = t->system && t->text ? htf_parse(t, t->text) : -ENOMEM;
	if (ret) {
		htf_type_free(t);
		return ERR_PTR(ret);
	}
	return t;
}

void htf_type_free(struct htf_type *t)
{
	kfree_const(t->system);
	kfree(t->text);
	kfree(t);
}
