// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: make the class of a trace event from the kernel's
 * description of the event's ring buffer entry
 *
 * The class has first the fields of a fixed size, in the order of the entry,
 * then the fields that the entry's words __data_loc_x refer to.  For a system
 * call, hte_syscall_fields() makes the fields instead.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "events.h"

/* Size in bytes of a type's name with the NUL; a longer name is cut */
#define HTE_WORD_MAX	64

/*
 * Set @d to the parts of a type: the type of an element and, for an array, the
 * number of elements, or 0 if the type does not have it as a number.
 * "__data_loc char[]" is an array of "char"; a word of the entry has the
 * array's offset and size.
 */
static void hte_split(struct hte_decl *d, char *type)
{
	char *bracket = strchr(type, '[');
	size_t len;

	d->dynamic = str_has_prefix(type, "__data_loc ");
	d->type = d->dynamic ? type + strlen("__data_loc ") : type;
	d->array = bracket;
	if (bracket) {
		if (sscanf(bracket, "[%u]", &d->count) != 1)
			d->count = 0;
		*bracket = '\0';
	}
	len = strlen(type);
	if (len && type[len - 1] == ' ')
		type[len - 1] = '\0';
}

static int hte_add_fields(struct hte_event *e, struct ht_field *fields,
			  bool dynamic)
{
	const struct trace_event_fields *raw;
	unsigned int at = 0, n = 0;

	for (raw = e->raw; raw->type; at += raw->size, raw++) {
		struct hte_decl d = {
			.name = raw->name,
			.size = raw->size,
			.is_signed = raw->is_signed,
		};
		const struct ht_field *f;
		char type[HTE_WORD_MAX];

		strscpy(type, raw->type, sizeof(type));
		hte_split(&d, type);
		if (d.dynamic != dynamic)
			continue;
		f = hte_add_field(&e->class, fields, &d);
		if (!f)
			return -E2BIG;
		if (!dynamic)
			continue;
		if (n == e->nr_dynamic)
			return -EINVAL;
		e->dynamic[n].word = at;
		e->dynamic[n].text = f->kind == HT_FIELD_TEXT;
		e->dynamic[n++].shift = hte_shift(f);
	}
	/* The fields must fill the entry exactly, and also e->dynamic. */
	return at == e->size && (!dynamic || n == e->nr_dynamic) ? 0 : -EINVAL;
}

/**
 * hte_class_make() - make the class of an event, without registering it
 * @e: the event; its @class has no fields
 *
 * Context: may sleep
 *
 * Return: 0; -ENOMEM; -E2BIG: the entry has too many fields, or two fields
 * whose names are too similar, such as x, _x and x_length; -EINVAL: the
 * kernel's description of the entry is inconsistent.
 */
int hte_class_make(struct hte_event *e)
{
	struct ht_field *fields;
	int ret;

	fields = kcalloc(HT_FIELDS_MAX, sizeof(*fields), GFP_KERNEL);
	e->dynamic = kcalloc(e->nr_dynamic + 1, sizeof(*e->dynamic), GFP_KERNEL);
	e->class = (struct ht_class) {
		.name = e->name,
		.fields = fields,
		.loglevel = HT_LEVEL_DEBUG,
	};
	ret = fields && e->dynamic ? 0 : -ENOMEM;
	if (!ret && e->syscall)
		ret = hte_syscall_fields(e, fields);
	else if (!ret)
		ret = hte_add_fields(e, fields, false) ?:
		      hte_add_fields(e, fields, true);
	if (ret)
		hte_class_free(e);
	return ret;
}

/**
 * hte_class_free() - undo hte_class_make()
 * @e: the event; its class is not registered
 *
 * Context: may sleep
 */
void hte_class_free(struct hte_event *e)
{
	kfree(e->class.fields);
	kfree(e->dynamic);
	e->class.fields = NULL;
	e->dynamic = NULL;
}
