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
 * Integers stay what they are, char arrays become text up to their first NUL (of
 * the scheduler's events, tasks' names stay arrays of text), other arrays keep
 * their elements, and what is neither becomes bytes.
 */
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ftrace.h"

/* Informational, as hypertrace-export(1) has it */
#define HTF_LOGLEVEL	6

/**
 * struct htf_decl - a field of a format file
 * @type: its words, without __data_loc and brackets
 * @name: of the field
 * @count: of elements, where it is a plain number; else 0
 * @array: it has brackets
 * @dynamic: where it is, its 32 bits say
 * @relative: see struct htf_op
 */
struct htf_decl {
	char *type;
	char *name;
	u32 count;
	bool array;
	bool dynamic;
	bool relative;
	u32 offset;
	u32 size;
	bool is_signed;
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
static bool htf_split(char *line, struct htf_decl *d)
{
	char *decl = strsep(&line, ";"), *bracket;
	unsigned int is_signed;

	memset(d, 0, sizeof(*d));
	if (!line || sscanf(line, " offset:%u; size:%u; signed:%u;",
			    &d->offset, &d->size, &is_signed) != 3 ||
	    d->offset > U16_MAX || d->size > U16_MAX)
		return false;
	d->is_signed = is_signed;
	if (htf_skip(&decl, "__data_loc ")) {
		d->dynamic = true;
	} else if (htf_skip(&decl, "__rel_loc ")) {
		d->dynamic = true;
		d->relative = true;
	}
	bracket = strchr(decl, '[');
	if (bracket) {
		d->array = true;
		/* A macro's name, or none, stays 0. */
		if (sscanf(bracket, "[%u]", &d->count) != 1)
			d->count = 0;
		/* Behind the name, or "char[] name" */
		if (htf_ends(decl, "]"))
			*bracket = '\0';
	}
	d->name = strrchr(decl, ' ');
	if (!d->name)
		return false;
	*d->name++ = '\0';
	d->type = decl;
	d->type[strcspn(d->type, "[")] = '\0';
	/* "char *name" */
	while (*d->name == '*') {
		d->name++;
		d->type = "*";
	}
	return *d->name && (!d->dynamic || d->size == 4);
}

/* Bytes of a type that is known by its last word; else 0 */
static unsigned int htf_size_of(const char *type)
{
	static const struct {
		const char *name;
		unsigned int size;
	} known[] = {
		{ "char", 1 }, { "u8", 1 }, { "s8", 1 }, { "bool", 1 },
		{ "uint8_t", 1 }, { "int8_t", 1 },
		{ "u16", 2 }, { "s16", 2 }, { "short", 2 }, { "__le16", 2 },
		{ "__be16", 2 }, { "uint16_t", 2 }, { "int16_t", 2 },
		{ "u32", 4 }, { "s32", 4 }, { "int", 4 }, { "unsigned", 4 },
		{ "__le32", 4 }, { "__be32", 4 }, { "uint32_t", 4 },
		{ "int32_t", 4 }, { "pid_t", 4 },
		{ "u64", 8 }, { "s64", 8 }, { "__le64", 8 }, { "__be64", 8 },
		{ "uint64_t", 8 }, { "int64_t", 8 },
		{ "long", sizeof(long) }, { "size_t", sizeof(long) },
	};
	const char *last = strrchr(type, ' ');
	unsigned int i;

	if (htf_ends(type, "*"))
		return sizeof(long);
	last = last ? last + 1 : type;
	/* "__u32" is called as "u32" */
	if (last[0] == '_' && last[1] == '_' && last[2] != 'l' && last[2] != 'b')
		last += 2;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(last, known[i].name))
			return known[i].size;
	}
	return 0;
}

static bool htf_is_integer(unsigned int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static u8 htf_integer(unsigned int size, bool is_signed)
{
	return (is_signed ? HT_FIELD_S8 : HT_FIELD_U8) + ilog2(size);
}

static bool htf_is_address(const struct htf_decl *d)
{
	return htf_ends(d->type, "*") || !strcmp(d->name, "ip") ||
	       htf_ends(d->name, "_ip");
}

/*
 * The scheduler's events copy all bytes of a task's name: no need to look for
 * its end.  Others may leave what was there behind it.
 */
static bool htf_is_comm(const struct htf_type *t, const struct htf_decl *d)
{
	return !strcmp(t->system, "sched") && !d->dynamic &&
	       d->size == TASK_COMM_LEN && htf_ends(d->name, "comm");
}

/*
 * Names of an event must differ, and by more than what a reader puts around
 * those of counted fields: x, _x, x_length.
 */
static bool htf_taken(const struct htf_type *t, const char *name)
{
	unsigned int i;

	for (i = 0; i < t->class.nr_fields; i++) {
		const char *other = t->fields[i].name;
		const char *a = name, *b = other;
		size_t n;

		a += *a == '_';
		b += *b == '_';
		if (!strcmp(a, b) || !strcmp(a, other) || !strcmp(name, b))
			return true;
		n = strlen(b);
		if (!strncmp(a, b, n) && !strcmp(a + n, "_length"))
			return true;
		n = strlen(a);
		if (!strncmp(b, a, n) && !strcmp(b + n, "_length"))
			return true;
	}
	return false;
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
	struct ht_field *f = &t->fields[t->class.nr_fields];
	struct htf_op op = { .offset = d->offset, .size = d->size };
	unsigned int elem = htf_size_of(d->type);
	bool text = htf_ends(d->type, "char") && !strstr(d->type, "unsigned");

	if (t->class.nr_fields == HT_FIELDS_MAX || htf_taken(t, d->name))
		return -EINVAL;
	f->name = d->name;
	f->flags = htf_is_address(d) ? HT_FIELD_HEX : 0;

	if (!d->dynamic && !d->array && htf_is_integer(d->size)) {
		f->kind = htf_integer(d->size, d->is_signed);
		goto add;
	}
	/* The bytes know better than the type how large an element is. */
	if (!d->dynamic && d->count && d->size % d->count == 0)
		elem = d->size / d->count;
	if (!d->array || !htf_is_integer(elem)) {
		elem = 1;
		f->flags = HT_FIELD_HEX;
	}
	if (text && d->array && htf_is_comm(t, d)) {
		f->kind = HT_FIELD_ARRAY;
		f->flags = HT_FIELD_UTF8;
		f->count = d->size;
		f->elem = HT_FIELD_U8;
		goto add;
	}
	if (d->dynamic || (d->array && text) || !d->size) {
		op.kind = d->dynamic ? HTF_DYNAMIC : HTF_COUNTED;
		op.relative = d->relative;
		op.text = text && d->array;
		op.shift = ilog2(elem);
		f->kind = op.text ? HT_FIELD_TEXT : HT_FIELD_SEQUENCE;
		if (op.text) {
			f->flags = 0;
			goto add;
		}
	} else {
		f->kind = HT_FIELD_ARRAY;
		f->count = d->size / elem;
	}
	f->elem = htf_integer(elem, d->is_signed);
add:
	t->class.nr_fields++;
	htf_add_op(t, &op);
	return 0;
}

/* The fields that all events begin with are the same in all kernels. */
static int htf_add_common(struct htf_type *t)
{
	static const struct htf_decl common[] = {
		{ "u8", "common_flags", .offset = 2, .size = 1 },
		{ "u8", "common_preempt_count", .offset = 3, .size = 1 },
		{ "int", "common_pid", .offset = 4, .size = 4,
		  .is_signed = true },
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
			if (strncmp(d.name, "common_", 7))
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
