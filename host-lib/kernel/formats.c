/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's event formats from its memory
 */
#include "hypertrace/kernel-formats.h"
#include "hypertrace/ftrace-page.h"

#define NAME_MAX_BYTES      256u
#define TYPE_MAX_BYTES      512u
#define PRINT_MAX_BYTES     16384u
/*
 * Maximum number of bytes of all events; Debian's 7.2 kernel has 2 MiB.  An
 * event that would exceed this sum is left out.
 */
#define EVENTS_MAX_BYTES    (16u << 20)
/* Maximum number of type names to keep; Debian's 7.2 kernel has 1,000 */
#define STRINGS_MAX         8192u
/*
 * Units of work of a step: WORK_READ for a read of memory, WORK_COPY for a copy
 * from the cache, or for TEXT_BYTES of a text
 */
#define WORK_READ           16u
#define WORK_COPY           1u
#define TEXT_BYTES          256u
/* Maximum number of bytes that are read of one of the kernel's structures */
#define STRUCT_MAX          1024u
/*
 * Value of the kernel's TRACE_EVENT_FL_TRACEPOINT, if BTF has no enumerator for
 * it
 */
#define FLAG_TRACEPOINT     0x10u
#define PRINT_FMT           "\nprint fmt: "

typedef struct Struct {
    const char *name;
    /* number of bytes of the structure to copy */
    uint32_t size;
} Struct;

typedef struct Member {
    uint32_t offset;
    /* size of the member in bytes; 0: this kernel's structure lacks it */
    uint32_t size;
} Member;

/*
 * An event.  HtKernelFormats.events and each HtKernelFormatsList that has it
 * hold a reference.  Once it is in HtKernelFormats.events, only @pass may
 * change, and only the reader's thread changes it.  The strings follow the
 * structure in its memory.
 */
typedef struct Event {
    uint64_t call;              /* guest address of the trace_event_call */
    uint64_t print_fmt;         /* guest address of the event's print format */
    uint32_t id;
    const char *system;
    const char *name;
    const char *layout;         /* names, offsets and sizes of the fields */
    const char *text;
    gsize bytes;                /* size of the structure with the strings */
    bool unsure;
    bool named;                 /* @text has names of enumerators */
    /* number of the last pass that found the event */
    unsigned pass;
} Event;

struct HtKernelFormatsList {
    GPtrArray *events;          /* elements: Event */
    char *common;
    uint32_t page_size;
};

struct HtKernelFormats {
    HtKernelSpace space;
    HtKernelCache *cache;       /* pages that this step has read */
    HtKernelFormatsAt at;
    uint32_t page_size;
    /* members of trace_event_call */
    Struct call_type;
    Member call_list, call_class, call_name, call_tp, call_id, call_print;
    Member call_flags, call_data;
    uint64_t flag_tracepoint, flag_custom;
    /* members of trace_event_class */
    Struct class_type;
    Member class_system, class_fields, class_get;
    Member tp_name;
    Member enter_fields;        /* member of struct syscall_metadata */
    /* members of ftrace_event_field */
    Struct field_type;
    Member field_link, field_name, field_kind, field_offset, field_size;
    Member field_len;
    HtBtfField field_signed;    /* a bit field in some kernels */
    /* address of the next node that the pass reads; 0: no pass is under way */
    uint64_t next;
    /* address of the list's first node when the pass began */
    uint64_t first;
    unsigned seen;
    /* work of this step, except the reads that @cache counts */
    uint64_t work;
    /* ht_kernel_cache_reads() at the start of this step */
    unsigned reads;
    unsigned pass;              /* number of the present or last pass */
    GHashTable *events;         /* Event by id */
    gsize bytes;                /* sum of Event.bytes of @events */
    /*
     * ids of the events that the last complete pass found and whose print
     * formats have names of enumerators, which the kernel replaces by numbers;
     * set at the end of each pass
     */
    GArray *named;
    unsigned sample;            /* number of tests of elements of @named */
    /* names of fields' types, by the address of the name in the guest */
    GHashTable *strings;
    /* text of the fields that all events have in common */
    char *common;
    GString *layout;            /* Event.layout of the event that is read */
    unsigned serial;
};

static void free_event(gpointer e)
{
    g_atomic_rc_box_release(e);
}

/* Copy a string and its NUL to *@to, and move *@to after them */
static const char *put_string(char **to, const GString *s)
{
    char *copy = *to;

    memcpy(copy, s->str, s->len + 1);
    *to += s->len + 1;
    return copy;
}

static Event *new_event(const GString *system, const GString *name,
                        const GString *layout, const GString *text)
{
    gsize bytes = sizeof(Event) + system->len + name->len + layout->len +
                  text->len + 4;
    Event *e = g_atomic_rc_box_alloc(bytes);
    char *to = (char *)(e + 1);

    *e = (Event) { .bytes = bytes };
    e->system = put_string(&to, system);
    e->name = put_string(&to, name);
    e->layout = put_string(&to, layout);
    e->text = put_string(&to, text);
    return e;
}

void ht_kernel_formats_free(HtKernelFormats *f)
{
    if (f) {
        ht_kernel_cache_free(f->cache);
        g_hash_table_destroy(f->events);
        g_hash_table_destroy(f->strings);
        g_array_unref(f->named);
        g_string_free(f->layout, true);
        g_free(f->common);
        g_free(f);
    }
}

/*
 * Include a member in the copies of its structure.  Returns false with @error
 * set if the member is not @found, if its size is not @least to @most bytes, or
 * if the copy would exceed STRUCT_MAX.  The types may come from the guest's
 * memory, so their values are not trusted.
 */
static bool include(Struct *type, const char *path, bool found,
                    const Member *m, uint32_t least, uint32_t most,
                    GError **error)
{
    if (!found || m->size < least || m->size > most ||
        m->offset > STRUCT_MAX - m->size) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's types have no %s.%s: its event formats "
                    "cannot be read", type->name, path);
        return false;
    }
    type->size = MAX(type->size, m->offset + m->size);
    return true;
}

/*
 * Find a member that is a number or a pointer; returns false with @error set if
 * the kernel does not have it
 */
static bool need(const HtBtf *btf, Struct *type, const char *path, Member *m,
                 GError **error)
{
    bool found = !ht_btf_offset(btf, type->name, path, &m->offset, &m->size);

    return include(type, path, found, m, 1, 8, error);
}

static bool need_list(const HtBtf *btf, Struct *type, const char *path,
                      Member *m, GError **error)
{
    bool found = !ht_btf_offset(btf, type->name, path, &m->offset, &m->size);

    return include(type, path, found, m, 16, 16, error);
}

static uint64_t flag(const HtBtf *btf, const char *name, uint64_t otherwise)
{
    int64_t v;

    return ht_btf_enum(btf, name, &v) ? otherwise : (uint64_t)v;
}

static bool need_signed(HtKernelFormats *f, const HtBtf *btf, GError **error)
{
    bool found = !ht_btf_field(btf, f->field_type.name, "is_signed",
                               &f->field_signed);
    const Member m = { f->field_signed.offset, f->field_signed.size };

    return include(&f->field_type, "is_signed", found, &m, 1, 8, error);
}

static bool find_members(HtKernelFormats *f, const HtBtf *btf, GError **error)
{
    Struct *call = &f->call_type, *class = &f->class_type;
    Struct *field = &f->field_type;
    Struct tp = { .name = "tracepoint" };
    Struct meta = { .name = "syscall_metadata" };

    call->name = "trace_event_call";
    class->name = "trace_event_class";
    field->name = "ftrace_event_field";
    /* Only some kernels have these members. */
    if (!need_list(btf, &meta, "enter_fields", &f->enter_fields, NULL)) {
        f->enter_fields.size = 0;
    }
    if (!need(btf, field, "len", &f->field_len, NULL)) {
        f->field_len.size = 0;
    }
    f->flag_tracepoint = flag(btf, "TRACE_EVENT_FL_TRACEPOINT",
                              FLAG_TRACEPOINT);
    f->flag_custom = flag(btf, "TRACE_EVENT_FL_CUSTOM", 0);
    return need_list(btf, call, "list", &f->call_list, error) &&
           need(btf, call, "class", &f->call_class, error) &&
           need(btf, call, "name", &f->call_name, error) &&
           need(btf, call, "tp", &f->call_tp, error) &&
           need(btf, call, "event.type", &f->call_id, error) &&
           need(btf, call, "print_fmt", &f->call_print, error) &&
           need(btf, call, "flags", &f->call_flags, error) &&
           need(btf, call, "data", &f->call_data, error) &&
           need(btf, class, "system", &f->class_system, error) &&
           need_list(btf, class, "fields", &f->class_fields, error) &&
           need(btf, class, "get_fields", &f->class_get, error) &&
           need(btf, &tp, "name", &f->tp_name, error) &&
           need_list(btf, field, "link", &f->field_link, error) &&
           need(btf, field, "name", &f->field_name, error) &&
           need(btf, field, "type", &f->field_kind, error) &&
           need(btf, field, "offset", &f->field_offset, error) &&
           need(btf, field, "size", &f->field_size, error) &&
           need_signed(f, btf, error);
}

HtKernelFormats *ht_kernel_formats_new(const HtKernelSpace *space,
                                       const HtBtf *btf,
                                       const HtKernelFormatsAt *at,
                                       uint32_t page_size, GError **error)
{
    g_autoptr(HtKernelFormats) f = g_new0(HtKernelFormats, 1);

    f->space = *space;
    f->cache = ht_kernel_cache_new(&f->space);
    f->at = *at;
    f->page_size = page_size;
    f->layout = g_string_new(NULL);
    f->events = g_hash_table_new_full(NULL, NULL, NULL, free_event);
    f->named = g_array_new(false, false, sizeof(uint32_t));
    f->strings = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                       g_free);
    return find_members(f, btf, error) ? g_steal_pointer(&f) : NULL;
}

static int copy_struct(HtKernelFormats *f, uint64_t addr, void *copy,
                       size_t size)
{
    f->work += WORK_COPY;
    return ht_kernel_cache_read(f->cache, addr, copy, size);
}

static uint64_t get(const uint8_t *copy, const Member *m)
{
    return ht_get_le(copy + m->offset, m->size, false);
}

/* Get the prev pointer of a list_head in a copy of its structure */
static uint64_t get_prev(const uint8_t *copy, const Member *list)
{
    return ht_get_le64(copy + list->offset + 8);
}

/* Replace non-printable bytes by '?', because the text is parsed by lines. */
static void clean(GString *s, gsize from)
{
    for (; from < s->len; from++) {
        if (!g_ascii_isprint(s->str[from])) {
            s->str[from] = '?';
        }
    }
}

static int append(HtKernelFormats *f, uint64_t addr, size_t max, GString *out)
{
    gsize from = out->len;
    int ret = ht_kernel_cache_string(f->cache, addr, max, out);

    /*
     * If a text cannot be read, count the maximum work: one read of memory for
     * each TEXT_BYTES.  The cache counts only a part of these reads.
     */
    f->work += ret ? WORK_READ * (1 + max / TEXT_BYTES) :
               WORK_COPY * (1 + (out->len - from) / TEXT_BYTES);
    clean(out, from);
    return ret;
}

/* Get the name of a type; cached, because many fields share few types */
static const char *type_name(HtKernelFormats *f, uint64_t addr)
{
    const char *known = g_hash_table_lookup(f->strings, &addr);
    g_autoptr(GString) text = NULL;

    if (known) {
        return known;
    }
    text = g_string_new(NULL);
    if (append(f, addr, TYPE_MAX_BYTES, text)) {
        return NULL;
    }
    if (g_hash_table_size(f->strings) == STRINGS_MAX) {
        g_hash_table_remove_all(f->strings);
    }
    g_hash_table_insert(f->strings, g_memdup2(&addr, sizeof(addr)),
                        g_strdup(text->str));
    return g_hash_table_lookup(f->strings, &addr);
}

/* Print a field as the kernel's f_show() does */
static void put_field(const HtKernelFormats *f, const uint8_t *copy,
                      const char *type, const char *name, GString *out)
{
    const char *array = strchr(type, '[');
    int32_t len = f->field_len.size ? (int32_t)get(copy, &f->field_len) : 0;
    uint64_t is_signed = 0;

    if (!array || g_str_has_prefix(type, "__data_loc")) {
        g_string_append_printf(out, "\tfield:%s %s;", type, name);
    } else {
        g_string_append_printf(out, "\tfield:%.*s %s", (int)(array - type),
                               type, name);
        if (len > 0) {
            g_string_append_printf(out, "[%d];", len);
        } else {
            g_string_append_printf(out, "%s;",
                                   f->field_len.size ? "[]" : array);
        }
    }
    ht_btf_field_value(&f->field_signed, copy, f->field_type.size,
                       &is_signed);
    g_string_append_printf(out, "\toffset:%u;\tsize:%u;\tsigned:%d;\n",
                           (uint32_t)get(copy, &f->field_offset),
                           (uint32_t)get(copy, &f->field_size),
                           is_signed != 0);
}

/*
 * Print the fields of a list in the order in which the kernel has added them:
 * from the end to the start of the list
 */
static int put_fields(HtKernelFormats *f, uint64_t head, GString *out)
{
    g_autoptr(GString) name = g_string_new(NULL);
    uint8_t copy[STRUCT_MAX], pointers[16];
    unsigned i;
    uint64_t at;
    int ret = copy_struct(f, head, pointers, sizeof(pointers));

    at = ret ? head : ht_get_le64(pointers + 8);
    for (i = 0; !ret && at && at != head; i++) {
        const char *type;

        if (i == HT_KERNEL_FIELDS_MAX) {
            return -ELOOP;
        }
        ret = copy_struct(f, at - f->field_link.offset, copy,
                          f->field_type.size);
        if (ret) {
            break;
        }
        g_string_truncate(name, 0);
        ret = append(f, get(copy, &f->field_name), NAME_MAX_BYTES, name);
        type = ret ? NULL : type_name(f, get(copy, &f->field_kind));
        if (!type) {
            return ret ? ret : -EFAULT;
        }
        put_field(f, copy, type, name->str, out);
        g_string_append_printf(f->layout, "%s:%u:%u\n", name->str,
                               (uint32_t)get(copy, &f->field_offset),
                               (uint32_t)get(copy, &f->field_size));
        at = get_prev(copy, &f->field_link);
    }
    return ret;
}

static int read_common(HtKernelFormats *f)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int ret = f->common ? 0 : put_fields(f, f->at.common, text);

    if (!ret && !f->common && text->len) {
        f->common = g_string_free(g_steal_pointer(&text), false);
    }
    return ret ? ret : f->common ? 0 : -EAGAIN;
}

static int read_name(HtKernelFormats *f, const uint8_t *call, GString *name)
{
    uint64_t flags = get(call, &f->call_flags);
    uint64_t addr = get(call, &f->call_name);
    int ret = 0;

    if (flags & f->flag_tracepoint && !(flags & f->flag_custom)) {
        f->work += WORK_READ;
        ret = ht_kernel_space_u64(&f->space, get(call, &f->call_tp) +
                                  f->tp_name.offset, &addr);
    }
    ret = ret ? ret : append(f, addr, NAME_MAX_BYTES, name);
    return ret ? ret : name->len ? 0 : -EINVAL;
}

/*
 * Find the list of an event's fields.  The event of a system call's entry has
 * its list in the call's syscall_metadata.  Returns 0 if the event has another
 * function that gets its fields, so that the list is not known.
 */
static uint64_t fields_of(const HtKernelFormats *f, const uint8_t *call,
                          const uint8_t *class)
{
    uint64_t get_fields = get(class, &f->class_get);

    if (!get_fields) {
        return get(call, &f->call_class) + f->class_fields.offset;
    }
    return get_fields == f->at.enter_fields && f->enter_fields.size ?
           get(call, &f->call_data) + f->enter_fields.offset : 0;
}

static const char *print_of(const Event *e)
{
    return strstr(e->text, PRINT_FMT);
}

/*
 * Test whether a print format has a name of an enumerator in place of its
 * value: "{ NAME, "text" }".  Other uses of names are not found, but the kernel
 * replaces all names at about the same time.
 */
static bool has_names(const Event *e)
{
    const char *p = print_of(e);

    while (p && (p = strchr(p, '{'))) {
        p++;
        p += strspn(p, " ");
        if (g_ascii_isalpha(*p) || *p == '_') {
            return true;
        }
    }
    return false;
}

/*
 * Test whether @old and @e are readings of the same event.  The kernel changes
 * types of fields and print formats in place.  It adds an event to its list
 * before the event's fields, so the first reading may lack some.
 */
static bool is_same(const Event *old, const Event *e)
{
    return !strcmp(old->system, e->system) && !strcmp(old->name, e->name) &&
           (!strcmp(old->layout, e->layout) ||
            (old->call == e->call && g_str_has_prefix(e->layout, old->layout) &&
             !strcmp(print_of(old), print_of(e))));
}

static void keep(HtKernelFormats *f, Event *e)
{
    Event *old = g_hash_table_lookup(f->events, GUINT_TO_POINTER(e->id));
    gsize others = f->bytes - (old ? old->bytes : 0);

    if (old) {
        bool same = is_same(old, e);

        e->unsure = old->unsure || !same;
        if (e->unsure == old->unsure && same && !strcmp(old->text, e->text)) {
            old->pass = e->pass;
            free_event(e);
            return;
        }
    }
    if (e->bytes > EVENTS_MAX_BYTES - others) {
        free_event(e);
        return;
    }
    e->named = has_names(e);
    f->bytes = others + e->bytes;
    g_hash_table_insert(f->events, GUINT_TO_POINTER(e->id), e);
    f->serial++;
}

static int read_event(HtKernelFormats *f, const uint8_t *call, uint64_t addr)
{
    g_autoptr(GString) name = g_string_new(NULL), text = g_string_new(NULL);
    g_autoptr(GString) system = g_string_new(NULL);
    uint8_t class[STRUCT_MAX];
    uint32_t id = get(call, &f->call_id);
    uint64_t fields;
    Event *e;
    int ret;

    if (!id || id > UINT16_MAX) {
        return 0;               /* the event is not registered yet */
    }
    ret = copy_struct(f, get(call, &f->call_class), class,
                      f->class_type.size);
    ret = ret ? ret : read_name(f, call, name);
    ret = ret ? ret : append(f, get(class, &f->class_system), NAME_MAX_BYTES,
                             system);
    if (ret || !system->len) {
        return ret;
    }
    g_string_append_printf(text, "name: %s\nID: %u\nformat:\n%s\n", name->str,
                           id, f->common);
    g_string_truncate(f->layout, 0);
    fields = fields_of(f, call, class);
    ret = fields ? put_fields(f, fields, text) : 0;
    g_string_append(text, PRINT_FMT);
    ret = ret ? ret : append(f, get(call, &f->call_print), PRINT_MAX_BYTES,
                             text);
    if (ret) {
        return ret;
    }
    g_string_append_c(text, '\n');
    e = new_event(system, name, f->layout, text);
    e->call = addr;
    e->print_fmt = get(call, &f->call_print);
    e->id = id;
    e->pass = f->pass;
    keep(f, e);
    return 0;
}

static int begin(HtKernelFormats *f)
{
    int ret = read_common(f);

    ret = ret ? ret : ht_kernel_space_u64(&f->space, f->at.events, &f->first);
    if (!ret) {
        f->next = f->first;
        f->seen = 0;
        f->pass++;
    }
    return ret ? ret : f->first ? 0 : -EAGAIN;
}

static void list_named(HtKernelFormats *f)
{
    GHashTableIter it;
    gpointer p;

    g_array_set_size(f->named, 0);
    g_hash_table_iter_init(&it, f->events);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        const Event *e = p;

        if (e->named && e->pass == f->pass) {
            g_array_append_val(f->named, e->id);
        }
    }
}

/*
 * Begin a step: empty the cache, because the guest may have changed its memory
 * since the last step
 */
static void begin_step(HtKernelFormats *f)
{
    ht_kernel_cache_clear(f->cache);
    f->reads = ht_kernel_cache_reads(f->cache);
    f->work = 0;
}

static bool is_step_over(const HtKernelFormats *f, unsigned reads)
{
    unsigned done = ht_kernel_cache_reads(f->cache) - f->reads;

    return f->work + (uint64_t)WORK_READ * done >= (uint64_t)WORK_READ * reads;
}

int ht_kernel_formats_step(HtKernelFormats *f, unsigned reads)
{
    uint8_t call[STRUCT_MAX];
    uint64_t addr;
    int ret;

    begin_step(f);
    ret = f->next ? 0 : begin(f);
    while (!ret && f->next != f->at.events) {
        if (is_step_over(f, reads)) {
            return 0;
        }
        if (f->seen++ == HT_KERNEL_EVENTS_MAX) {
            ret = -ELOOP;
            break;
        }
        addr = f->next - f->call_list.offset;
        ret = copy_struct(f, addr, call, f->call_type.size);
        if (!ret) {
            /*
             * Skip an event that cannot be read: the kernel may be removing it.
             */
            read_event(f, call, addr);
            f->next = ht_get_le64(call + f->call_list.offset);
        }
    }
    f->next = 0;
    if (!ret) {
        list_named(f);
    }
    return ret ? ret : f->seen ? 1 : -EAGAIN;
}

/*
 * Test whether a print format with names of enumerators has changed.  Each call
 * tests one event of @named, in turn.  False also if it cannot be read.
 */
static bool sample_changed(HtKernelFormats *f)
{
    g_autoptr(GString) now = NULL;
    const Event *e;
    uint32_t id;

    if (!f->named->len) {
        return false;
    }
    id = g_array_index(f->named, uint32_t, f->sample++ % f->named->len);
    e = g_hash_table_lookup(f->events, GUINT_TO_POINTER(id));
    now = g_string_new(PRINT_FMT);
    begin_step(f);
    if (append(f, e->print_fmt, PRINT_MAX_BYTES, now)) {
        return false;
    }
    g_string_append_c(now, '\n');
    return !g_str_has_suffix(e->text, now->str);
}

bool ht_kernel_formats_changed(HtKernelFormats *f, bool texts)
{
    uint64_t first = f->first;

    if (f->next ||
        ht_kernel_space_u64_again(&f->space, f->at.events, &first)) {
        return false;
    }
    return first != f->first || (texts && sample_changed(f));
}

unsigned ht_kernel_formats_serial(const HtKernelFormats *f)
{
    return f->serial;
}

uint64_t ht_kernel_formats_bytes(const HtKernelFormats *f)
{
    return f->bytes;
}

unsigned ht_kernel_formats_count(const HtKernelFormats *f)
{
    return g_hash_table_size(f->events);
}

static int by_system(gconstpointer a, gconstpointer b)
{
    const Event *x = *(Event *const *)a, *y = *(Event *const *)b;
    int order = strcmp(x->system, y->system);

    return order ? order : strcmp(x->name, y->name);
}

/* Print what tracefs has in header_page and header_event, each with a title */
static void put_headers(uint32_t page_size, GString *out)
{
    g_string_append_printf(
        out, "header: header_page\n"
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
        "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
        "\tfield: char data;\toffset:16;\tsize:%u;\tsigned:1;\n",
        page_size - HT_FT_PAGE_HEADER);
    g_string_append(
        out, "header: header_event\n"
        "# compressed entry header\n"
        "\ttype_len    :    5 bits\n"
        "\ttime_delta  :   27 bits\n"
        "\tarray       :   32 bits\n"
        "\n"
        "\tpadding     : type == 29\n"
        "\ttime_extend : type == 30\n"
        "\ttime_stamp : type == 31\n"
        "\tdata max type_len  == 28\n");
}

HtKernelFormatsList *ht_kernel_formats_list(const HtKernelFormats *f)
{
    HtKernelFormatsList *list = g_new(HtKernelFormatsList, 1);
    GHashTableIter it;
    gpointer e;

    list->events = g_ptr_array_new_full(g_hash_table_size(f->events),
                                        free_event);
    g_hash_table_iter_init(&it, f->events);
    while (g_hash_table_iter_next(&it, NULL, &e)) {
        g_ptr_array_add(list->events, g_atomic_rc_box_acquire(e));
    }
    list->common = g_strdup(f->common);
    list->page_size = f->page_size;
    return list;
}

void ht_kernel_formats_list_free(HtKernelFormatsList *list)
{
    if (list) {
        g_ptr_array_unref(list->events);
        g_free(list->common);
        g_free(list);
    }
}

GString *ht_kernel_formats_list_text(HtKernelFormatsList *list)
{
    GString *out = g_string_new(NULL);
    const char *system = "";
    guint i;

    put_headers(list->page_size, out);
    g_ptr_array_sort(list->events, by_system);
    for (i = 0; i < list->events->len; i++) {
        const Event *event = list->events->pdata[i];

        if (strcmp(system, event->system)) {
            system = event->system;
            g_string_append_printf(out, "system: %s\n", system);
        }
        if (event->unsure) {
            g_string_append_printf(out, "name: unsure_%u\nID: %u\nformat:\n"
                                   "%s\nprint fmt: \"\"\n", event->id,
                                   event->id, list->common);
        } else {
            g_string_append(out, event->text);
        }
    }
    return out;
}
