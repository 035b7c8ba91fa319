// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: make fields of an event class from kernel declarations
 *
 * Integers and pointers become integers of their size and sign.  Arrays of char
 * become text.  Other arrays of integers keep their elements.  Everything else
 * becomes an array or a sequence of bytes.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "events.h"

static bool hte_ends(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

bool hte_type(const char *type, u32 *size, bool *is_signed)
{
	static const struct {
		const char *name;
		u8 size;
		bool is_signed;
	} known[] = {
		{ "char", 1, true }, { "s8", 1, true }, { "int8_t", 1, true },
		{ "u8", 1 }, { "uint8_t", 1 }, { "bool", 1 },
		{ "short", 2, true }, { "s16", 2, true },
		{ "int16_t", 2, true },
		{ "u16", 2 }, { "uint16_t", 2 }, { "le16", 2 }, { "be16", 2 },
		{ "umode_t", 2 }, { "old_uid_t", 2 }, { "old_gid_t", 2 },
		{ "int", 4, true }, { "s32", 4, true }, { "int32_t", 4, true },
		{ "pid_t", 4, true }, { "clockid_t", 4, true },
		{ "timer_t", 4, true }, { "mqd_t", 4, true },
		{ "key_t", 4, true }, { "key_serial_t", 4, true },
		{ "rwf_t", 4, true },
		{ "unsigned", 4 }, { "u32", 4 }, { "uint32_t", 4 },
		{ "le32", 4 }, { "be32", 4 }, { "uid_t", 4 }, { "gid_t", 4 },
		{ "qid_t", 4 }, { "landlock_rule_type", 4 },
		{ "s64", 8, true }, { "int64_t", 8, true },
		{ "loff_t", 8, true },
		{ "u64", 8 }, { "uint64_t", 8 }, { "le64", 8 }, { "be64", 8 },
		{ "long", sizeof(long), true },
		{ "off_t", sizeof(long), true },
		{ "size_t", sizeof(long) },
	};
	const char *last = strrchr(type, ' ');
	unsigned int i;

	*size = sizeof(long);
	*is_signed = false;
	if (hte_ends(type, "*"))
		return true;
	last = last ? last + 1 : type;
	/* "__u32" is the same type as "u32". */
	if (last[0] == '_' && last[1] == '_')
		last += 2;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(last, known[i].name))
			continue;
		*size = known[i].size;
		*is_signed = known[i].is_signed && !strstr(type, "unsigned");
		return true;
	}
	return false;
}

/* Size of an array's element in bytes, or 0 if the type is unknown */
static unsigned int hte_size_of(const char *type)
{
	bool is_signed;
	u32 size;

	return hte_type(type, &size, &is_signed) ? size : 0;
}

static bool hte_is_integer(unsigned int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static u8 hte_integer(unsigned int size, bool is_signed)
{
	return (is_signed ? HT_FIELD_S8 : HT_FIELD_U8) + ilog2(size);
}

static bool hte_is_address(const struct hte_decl *d)
{
	return hte_ends(d->type, "*") || !strcmp(d->name, "ip") ||
	       hte_ends(d->name, "_ip");
}

/*
 * Check whether a name is too similar to that of another field of the class.
 * Readers put the length of a field x into fields with names like _x_length, so
 * x, _x and x_length are too similar.
 */
static bool hte_taken(const struct ht_class *c, const char *name)
{
	unsigned int i;

	for (i = 0; i < c->nr_fields; i++) {
		const char *other = c->fields[i].name;
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

static void hte_describe(struct ht_field *f, const struct hte_decl *d)
{
	unsigned int elem = hte_size_of(d->type);
	bool text = d->array && hte_ends(d->type, "char") &&
		    !strstr(d->type, "unsigned");

	if (!d->dynamic && !d->array && hte_is_integer(d->size)) {
		f->kind = hte_integer(d->size, d->is_signed);
		f->flags = hte_is_address(d) ? HT_FIELD_HEX : 0;
		return;
	}
	if (text && !d->dynamic) {
		f->kind = HT_FIELD_ARRAY;
		f->elem = HT_FIELD_U8;
		f->flags = HT_FIELD_UTF8;
		f->count = d->size;
		return;
	}
	if (text) {
		f->kind = HT_FIELD_TEXT;
		return;
	}
	/* Derive the element's size: hte_size_of() may not know the type. */
	if (!d->dynamic && d->count && d->size % d->count == 0)
		elem = d->size / d->count;
	f->flags = hte_is_address(d) ? HT_FIELD_HEX : 0;
	if (!d->array || !hte_is_integer(elem)) {
		elem = 1;
		f->flags = HT_FIELD_HEX;
	}
	f->elem = hte_integer(elem, d->is_signed);
	if (d->dynamic) {
		f->kind = HT_FIELD_SEQUENCE;
	} else {
		f->kind = HT_FIELD_ARRAY;
		f->count = d->size / elem;
	}
}

const struct ht_field *hte_add_field(struct ht_class *cls,
				     struct ht_field *fields,
				     const struct hte_decl *d)
{
	struct ht_field *f = &fields[cls->nr_fields];

	if (cls->nr_fields == HT_FIELDS_MAX || hte_taken(cls, d->name))
		return NULL;
	memset(f, 0, sizeof(*f));
	f->name = d->name;
	hte_describe(f, d);
	cls->nr_fields++;
	return f;
}
