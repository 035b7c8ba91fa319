/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a kernel's types and their members by name (BTF)
 *
 * The kernel's Documentation/bpf/btf.rst describes the format.  Parsing checks
 * the bounds of each type, that names are in the string section, and that the
 * types exist that this file follows.  It does not check for cycles: each walk
 * has a limit instead.
 */
#include "hypertrace/btf.h"
#include "hypertrace/name-hash.h"

#define MAGIC           0xeb9fu
#define HEADER          24u
/* size in bytes of a type's head, with which each type begins */
#define TYPE            12u

/*
 * Maximum length of a chain of typedefs and qualifiers, and maximum depth of
 * nested arrays and of nested anonymous members
 */
#define CHAIN_MAX       32u
/* Maximum number of structure members that one ht_btf_field() visits */
#define VISITS_MAX      (1u << 16)
#define NAME_MAX_BYTES  255u

enum {
    KIND_INT = 1, KIND_PTR, KIND_ARRAY, KIND_STRUCT, KIND_UNION, KIND_ENUM,
    KIND_FWD, KIND_TYPEDEF, KIND_VOLATILE, KIND_CONST, KIND_RESTRICT,
    KIND_FUNC, KIND_FUNC_PROTO, KIND_VAR, KIND_DATASEC, KIND_FLOAT,
    KIND_DECL_TAG, KIND_TYPE_TAG, KIND_ENUM64, KINDS,
};

struct HtBtf {
    uint8_t *data;
    const uint8_t *types;
    const char *names;
    uint32_t names_size;
    uint32_t n;                 /* number of types, with type 0 (void) */
    /* by number of the type: its offset in the section of types */
    uint32_t *at;
    /* number of the type of a structure or union, by its name */
    GHashTable *structs;
    GHashTable *typedefs;
    GHashTable *enums;
};

typedef struct Type {
    const uint8_t *p;           /* first byte after the type's head */
    const char *name;
    unsigned kind;
    unsigned vlen;
    bool flag;
    /* size of the type in bytes, or number of the type to which it refers */
    uint32_t size;
} Type;

/*
 * Get the number of bytes that follow a type's head: @fixed, and @each for each
 * of its Type.vlen parts.  Returns false if the kind is unknown.
 */
static bool extra(unsigned kind, unsigned *fixed, unsigned *each)
{
    static const uint8_t sizes[KINDS][2] = {
        [KIND_INT] = { 4, 0 }, [KIND_ARRAY] = { 12, 0 },
        [KIND_STRUCT] = { 0, 12 }, [KIND_UNION] = { 0, 12 },
        [KIND_ENUM] = { 0, 8 }, [KIND_FUNC_PROTO] = { 0, 8 },
        [KIND_VAR] = { 4, 0 }, [KIND_DATASEC] = { 0, 12 },
        [KIND_DECL_TAG] = { 4, 0 }, [KIND_ENUM64] = { 0, 12 },
    };

    if (kind == 0 || kind >= KINDS) {
        return false;
    }
    *fixed = sizes[kind][0];
    *each = sizes[kind][1];
    return true;
}

/* Decode the head of a type; type 0 (void) and an unknown type get kind 0 */
static Type type_get(const HtBtf *b, uint32_t id)
{
    const uint8_t *p;
    uint32_t info;

    if (id == 0 || id >= b->n) {
        return (Type) { .name = "" };
    }
    p = b->types + b->at[id];
    info = ht_get_le32(p + 4);
    return (Type) {
        .p = p + TYPE,
        .name = b->names + ht_get_le32(p),
        .kind = info >> 24 & 31,
        .vlen = info & 0xffff,
        .flag = info >> 31,
        .size = ht_get_le32(p + 8),
    };
}

static bool malformed(GError **error, const char *what, uint32_t id)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "malformed BTF: type %u: %s", id, what);
    return false;
}

static bool split(HtBtf *b, uint32_t size, GError **error)
{
    g_autoptr(GArray) at = g_array_new(false, false, sizeof(uint32_t));
    uint32_t offset = 0;

    g_array_append_val(at, offset);
    while (offset < size) {
        unsigned fixed, each;
        uint32_t info;
        uint64_t bytes;

        if (size - offset < TYPE) {
            return malformed(error, "it is cut off", at->len);
        }
        info = ht_get_le32(b->types + offset + 4);
        if (!extra(info >> 24 & 31, &fixed, &each)) {
            return malformed(error, "its kind is unknown", at->len);
        }
        bytes = TYPE + fixed + (uint64_t)each * (info & 0xffff);
        if (bytes > size - offset) {
            return malformed(error, "it is cut off", at->len);
        }
        if (at->len > HT_BTF_TYPES_MAX) {
            return malformed(error, "there are too many types", at->len);
        }
        if (ht_get_le32(b->types + offset) >= b->names_size) {
            return malformed(error, "its name is out of range", at->len);
        }
        g_array_append_val(at, offset);
        offset += bytes;
    }
    b->n = at->len;
    b->at = (uint32_t *)g_array_free(g_steal_pointer(&at), false);
    return true;
}

/*
 * Check the names and types to which the parts of a type refer.  Returns NULL
 * or the problem.
 */
static const char *parts_wrong(const HtBtf *b, const Type *t)
{
    unsigned i, fixed, each;

    if (!extra(t->kind, &fixed, &each) || !each) {
        return NULL;
    }
    for (i = 0; i < t->vlen; i++) {
        const uint8_t *p = t->p + (size_t)i * each;
        bool named = t->kind != KIND_DATASEC;

        if (named && ht_get_le32(p) >= b->names_size) {
            return "a name is out of range";
        }
        if ((t->kind == KIND_STRUCT || t->kind == KIND_UNION ||
             t->kind == KIND_FUNC_PROTO) && ht_get_le32(p + 4) >= b->n) {
            return "a part's type does not exist";
        }
    }
    return NULL;
}

static bool check_types(const HtBtf *b, GError **error)
{
    uint32_t id;

    for (id = 1; id < b->n; id++) {
        Type t = type_get(b, id);
        const char *wrong = parts_wrong(b, &t);

        switch (t.kind) {
        case KIND_ARRAY:
            if (ht_get_le32(t.p) >= b->n) {
                wrong = "its elements' type does not exist";
            }
            break;
        case KIND_PTR:
        case KIND_TYPEDEF:
        case KIND_VOLATILE:
        case KIND_CONST:
        case KIND_RESTRICT:
        case KIND_TYPE_TAG:
            if (t.size >= b->n) {
                wrong = "it refers to a type that does not exist";
            }
            break;
        default:
            break;
        }
        if (wrong) {
            return malformed(error, wrong, id);
        }
    }
    return true;
}

/*
 * Add a type's name to a table, except a name of more than NAME_MAX_BYTES
 * bytes.  Names may overlap, so the size of the BTF does not bound the sum of
 * their lengths.  No type that hypertrace reads has a longer name.
 */
static void remember(GHashTable *table, const char *name, uint32_t id)
{
    size_t length = strnlen(name, NAME_MAX_BYTES + 1);

    if (length && length <= NAME_MAX_BYTES &&
        !g_hash_table_contains(table, name)) {
        g_hash_table_insert(table, (gpointer)name, GUINT_TO_POINTER(id));
    }
}

static void index_names(HtBtf *b)
{
    uint32_t id;

    b->structs = g_hash_table_new(ht_name_hash, g_str_equal);
    b->typedefs = g_hash_table_new(ht_name_hash, g_str_equal);
    b->enums = g_hash_table_new(ht_name_hash, g_str_equal);
    for (id = 1; id < b->n; id++) {
        Type t = type_get(b, id);

        switch (t.kind) {
        case KIND_STRUCT:
        case KIND_UNION:
            remember(b->structs, t.name, id);
            break;
        case KIND_TYPEDEF:
            remember(b->typedefs, t.name, id);
            break;
        case KIND_ENUM:
        case KIND_ENUM64:
            remember(b->enums, t.name, id);
            break;
        default:
            break;
        }
    }
}

static bool sections(HtBtf *b, const uint8_t *p, size_t size,
                     uint32_t *types_size, GError **error)
{
    uint32_t header, types, names;
    uint64_t left;

    if (size < HEADER || size > HT_BTF_MAX || ht_get_le16(p) != MAGIC ||
        p[2] != 1) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%zu bytes are no little-endian BTF of version 1 "
                    "(at most %u MiB)", size, HT_BTF_MAX >> 20);
        return false;
    }
    header = ht_get_le32(p + 4);
    types = ht_get_le32(p + 8);
    *types_size = ht_get_le32(p + 12);
    names = ht_get_le32(p + 16);
    b->names_size = ht_get_le32(p + 20);
    left = header >= HEADER && header <= size ? size - header : 0;
    if (types > left || *types_size > left - types || names > left ||
        b->names_size > left - names || !b->names_size) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "malformed BTF: a section exceeds the %zu bytes", size);
        return false;
    }
    b->data = g_memdup2(p, size);
    b->types = b->data + header + types;
    b->names = (const char *)b->data + header + names;
    if (b->names[0] || b->names[b->names_size - 1]) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "malformed BTF: the names do not begin and end with NUL");
        return false;
    }
    return true;
}

HtBtf *ht_btf_parse(const void *data, size_t size, GError **error)
{
    g_autoptr(HtBtf) b = g_new0(HtBtf, 1);
    uint32_t types_size;

    if (!sections(b, data, size, &types_size, error) ||
        !split(b, types_size, error) || !check_types(b, error)) {
        return NULL;
    }
    index_names(b);
    return g_steal_pointer(&b);
}

void ht_btf_free(HtBtf *b)
{
    if (b) {
        g_clear_pointer(&b->structs, g_hash_table_unref);
        g_clear_pointer(&b->typedefs, g_hash_table_unref);
        g_clear_pointer(&b->enums, g_hash_table_unref);
        g_free(b->at);
        g_free(b->data);
        g_free(b);
    }
}

/* Skip typedefs and qualifiers; returns 0 if there are too many */
static uint32_t strip(const HtBtf *b, uint32_t id)
{
    unsigned i;

    for (i = 0; i < CHAIN_MAX; i++) {
        Type t = type_get(b, id);

        switch (t.kind) {
        case KIND_TYPEDEF:
        case KIND_VOLATILE:
        case KIND_CONST:
        case KIND_RESTRICT:
        case KIND_TYPE_TAG:
            id = t.size;
            break;
        default:
            return id;
        }
    }
    return 0;
}

static bool is_struct(const Type *t)
{
    return t->kind == KIND_STRUCT || t->kind == KIND_UNION;
}

/*
 * Set the members of @f that the type determines.  Returns false if the size is
 * not known or too large.
 */
static bool describe(const HtBtf *b, uint32_t id, HtBtfField *f)
{
    uint64_t count = 1;
    unsigned depth;
    Type t;

    t = type_get(b, strip(b, id));
    for (depth = 0; t.kind == KIND_ARRAY; depth++) {
        count *= ht_get_le32(t.p + 8);
        if (depth == CHAIN_MAX || count > UINT32_MAX) {
            return false;
        }
        t = type_get(b, strip(b, ht_get_le32(t.p)));
    }
    f->is_signed = (t.kind == KIND_INT && ht_get_le32(t.p) >> 24 & 1) ||
                   ((t.kind == KIND_ENUM || t.kind == KIND_ENUM64) && t.flag);
    switch (t.kind) {
    case KIND_INT:
    case KIND_STRUCT:
    case KIND_UNION:
    case KIND_ENUM:
    case KIND_ENUM64:
    case KIND_FLOAT:
        f->element = t.size;
        break;
    case KIND_PTR:
        f->element = 8;
        break;
    default:
        return false;
    }
    if (count * f->element > UINT32_MAX) {
        return false;
    }
    f->count = count;
    f->size = count * f->element;
    return true;
}

typedef struct Member {
    uint32_t type;
    uint64_t bit;               /* offset in bits from the structure's start */
    /* width of a bit field in bits; 0 for a member that is no bit field */
    uint32_t bits;
} Member;

static Member member_get(const Type *t, unsigned i)
{
    const uint8_t *p = t->p + (size_t)i * 12;
    uint32_t offset = ht_get_le32(p + 8);

    return (Member) {
        .type = ht_get_le32(p + 4),
        .bit = t->flag ? offset & 0xffffff : offset,
        .bits = t->flag ? offset >> 24 : 0,
    };
}

/* Find a member by its name, also in anonymous members */
static bool member_find(const HtBtf *b, uint32_t id, const char *name,
                        size_t len, unsigned depth, unsigned *visits,
                        Member *out)
{
    Type t = type_get(b, id);
    unsigned i;

    if (!is_struct(&t) || depth == CHAIN_MAX) {
        return false;
    }
    for (i = 0; i < t.vlen && ++*visits < VISITS_MAX; i++) {
        const char *is = b->names + ht_get_le32(t.p + (size_t)i * 12);
        Member m = member_get(&t, i);

        if (*is) {
            if (!strncmp(is, name, len) && !is[len]) {
                *out = m;
                return true;
            }
        } else if (member_find(b, strip(b, m.type), name, len, depth + 1,
                               visits, out)) {
            out->bit += m.bit;
            return true;
        }
    }
    return false;
}

/*
 * Test whether a member lies within its structure: readers copy as many bytes
 * as the structure has, and read the member from the copy.  A member of unknown
 * size counts as empty.
 */
static bool member_fits(const HtBtf *b, uint32_t id, const Member *m)
{
    const uint64_t room = type_get(b, id).size * UINT64_C(8);
    HtBtfField f = { 0 };
    uint64_t bits = m->bits;

    if (!bits && describe(b, m->type, &f)) {
        bits = f.size * UINT64_C(8);
    }
    return m->bit <= room && bits <= room - m->bit;
}

/*
 * Read a name at *@path and advance *@path after it.  Returns its length, or 0
 * if it is empty or longer than NAME_MAX_BYTES.
 */
static size_t path_name(const char **path, const char **name)
{
    size_t len = strcspn(*path, ".[");

    *name = *path;
    *path += len;
    return len <= NAME_MAX_BYTES ? len : 0;
}

/* Read "[N]" at *@path and select that element of the array */
static int path_index(const HtBtf *b, const char **path, uint32_t *type,
                      uint64_t *bit)
{
    Type t = type_get(b, strip(b, *type));
    HtBtfField element;
    uint64_t index;
    char *end;

    if (!g_ascii_isdigit((*path)[1])) {
        return -EINVAL;
    }
    index = g_ascii_strtoull(*path + 1, &end, 10);
    if (*end != ']' || t.kind != KIND_ARRAY) {
        return -EINVAL;
    }
    *type = ht_get_le32(t.p);
    /* The count of a flexible array is 0: do not compare the index with it. */
    if ((ht_get_le32(t.p + 8) && index >= ht_get_le32(t.p + 8)) ||
        index > UINT32_MAX || !describe(b, *type, &element)) {
        return -EINVAL;
    }
    *bit += index * element.size * 8;
    *path = end + 1;
    return 0;
}

static uint32_t struct_by_name(const HtBtf *b, const char *name)
{
    uint32_t id = GPOINTER_TO_UINT(g_hash_table_lookup(b->structs, name));
    Type t;

    if (!id) {
        id = strip(b, GPOINTER_TO_UINT(g_hash_table_lookup(b->typedefs,
                                                           name)));
    }
    t = type_get(b, id);
    return is_struct(&t) ? id : 0;
}

int ht_btf_struct_size(const HtBtf *btf, const char *name, uint32_t *size)
{
    uint32_t id = struct_by_name(btf, name);

    if (!id) {
        return -ENOENT;
    }
    *size = type_get(btf, id).size;
    return 0;
}

int ht_btf_field(const HtBtf *btf, const char *name, const char *path,
                 HtBtfField *field)
{
    uint32_t id = struct_by_name(btf, name);
    unsigned visits = 0;
    uint64_t bit = 0;
    Member m = { 0 };

    if (!id) {
        return -ENOENT;
    }
    do {
        const char *member;
        size_t len = path_name(&path, &member);

        if (!len || m.bits) {
            return -EINVAL;
        }
        id = strip(btf, id);
        if (!member_find(btf, id, member, len, 0, &visits, &m)) {
            return -ENOENT;
        }
        if (!member_fits(btf, id, &m)) {
            return -EINVAL;
        }
        bit += m.bit;
        id = m.type;
        while (*path == '[') {
            int ret = path_index(btf, &path, &id, &bit);

            if (ret) {
                return ret;
            }
        }
    } while (*path++ == '.');
    if (path[-1] || bit / 8 > UINT32_MAX) {
        return -EINVAL;
    }
    *field = (HtBtfField) { .offset = bit / 8, .bits = m.bits };
    if (!describe(btf, id, field)) {
        return -EINVAL;
    }
    /*
     * In old BTF, the width of a bit field is in its integer type, so m.bits is
     * 0.  Refuse such a field if it does not begin at a byte.
     */
    if (m.bits || bit % 8) {
        field->bit = bit % 8;
        if (!m.bits || field->count != 1 || m.bits > 64) {
            return -EINVAL;
        }
    }
    return 0;
}

int ht_btf_offset(const HtBtf *btf, const char *name, const char *path,
                  uint32_t *offset, uint32_t *size)
{
    HtBtfField f;
    int ret = ht_btf_field(btf, name, path, &f);

    if (!ret && f.bits) {
        ret = -EINVAL;
    }
    if (!ret) {
        *offset = f.offset;
        if (size) {
            *size = f.size;
        }
    }
    return ret;
}

int ht_btf_field_value(const HtBtfField *field, const void *copy, size_t size,
                       uint64_t *value)
{
    uint8_t bytes[16] = { 0 };
    uint64_t v, high;
    unsigned used;

    if (!field->bits) {
        if (field->count != 1 || (field->size != 1 && field->size != 2 &&
                                  field->size != 4 && field->size != 8)) {
            return -EINVAL;
        }
        if (field->size > size || field->offset > size - field->size) {
            return -ERANGE;
        }
        *value = ht_get_le((const uint8_t *)copy + field->offset, field->size,
                           field->is_signed);
        return 0;
    }
    if (field->bits > 64 || field->bit > 7) {
        return -EINVAL;
    }
    used = (field->bit + field->bits + 7) / 8;
    if (used > size || field->offset > size - used) {
        return -ERANGE;
    }
    memcpy(bytes, (const uint8_t *)copy + field->offset, used);
    v = ht_get_le64(bytes) >> field->bit;
    high = ht_get_le64(bytes + 8);
    if (field->bit) {
        v |= high << (64 - field->bit);
    }
    if (field->bits < 64) {
        v &= (UINT64_C(1) << field->bits) - 1;
        if (field->is_signed && v >> (field->bits - 1)) {
            v |= ~UINT64_C(0) << field->bits;
        }
    }
    *value = v;
    return 0;
}

static int64_t enum_value(const Type *t, unsigned i)
{
    const uint8_t *p;

    if (t->kind == KIND_ENUM64) {
        p = t->p + (size_t)i * 12;
        return ht_get_le32(p + 4) | (uint64_t)ht_get_le32(p + 8) << 32;
    }
    p = t->p + (size_t)i * 8 + 4;
    /* BTF of Linux 5.x has no flag for signed values: treat all as signed. */
    return (int32_t)ht_get_le32(p);
}

static const char *enum_part(const HtBtf *b, const Type *t, unsigned i)
{
    return b->names +
           ht_get_le32(t->p + (size_t)i * (t->kind == KIND_ENUM64 ? 12 : 8));
}

int ht_btf_enum(const HtBtf *btf, const char *name, int64_t *value)
{
    uint32_t id;
    unsigned i;

    for (id = 1; id < btf->n; id++) {
        Type t = type_get(btf, id);

        if (t.kind != KIND_ENUM && t.kind != KIND_ENUM64) {
            continue;
        }
        for (i = 0; i < t.vlen; i++) {
            if (!strcmp(enum_part(btf, &t, i), name)) {
                *value = enum_value(&t, i);
                return 0;
            }
        }
    }
    return -ENOENT;
}
