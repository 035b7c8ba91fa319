/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: register event classes as LTTng-UST events, at run time
 *
 * LTTng-UST's macros generate a probe for each event at compile time.  This
 * file fills in the same public structures at run time, for the classes of
 * guests.  One probe serves all classes: every field is declared with an
 * alignment of 8 bits, so the probe copies a payload to LTTng's buffer
 * unchanged, and decodes it only for filters and captures.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"

#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#include "lttng-ust.h"
#include "hypertrace/lttng-ust-thread.h"

/* LTTng-UST connects a probe only to a call site with the same signature. */
#define SIGNATURE       "hypertrace"

/*
 * A group of up to HT_UST_BATCH events that are registered together.  After the
 * registration, LTTng-UST keeps pointers to the group.
 */
typedef struct UstBatch {
    struct lttng_ust_probe_desc probe;
    const struct lttng_ust_event_desc *event[HT_UST_BATCH];
    struct lttng_ust_tracepoint *tp[HT_UST_BATCH];
} UstBatch;

/*
 * Hash table of events, by key; protected by registry_lock.  An event is
 * removed only if its registration has failed.
 */
static GMutex registry_lock;
static GHashTable *registry;
static bool timed_out;

static void set_integer(struct lttng_ust_type_integer *t, unsigned kind,
                        unsigned flags)
{
    t->parent.type = lttng_ust_type_integer;
    t->struct_size = sizeof(*t);
    t->size = 8 * ht_kind_size(kind);
    t->alignment = 8;
    t->signedness = ht_kind_signed(kind);
    t->reverse_byte_order = G_BYTE_ORDER != G_LITTLE_ENDIAN && t->size > 8;
    t->base = flags & HT_FIELD_HEX ? 16 : 10;
}

static UstField *add_field(HtUstEvent *e, const char *name)
{
    UstField *f = &e->fields[e->nr_fields];

    f->field.struct_size = sizeof(f->field);
    f->field.name = g_strdup(name);
    f->field.type = &f->type.common;
    e->field_array[e->nr_fields++] = &f->field;
    return f;
}

static void add_scalar(HtUstEvent *e, const char *name, unsigned kind,
                       unsigned flags)
{
    UstField *f = add_field(e, name);

    if (kind == HT_FIELD_F32 || kind == HT_FIELD_F64) {
        struct lttng_ust_type_float *t = &f->type.floating;

        t->parent.type = lttng_ust_type_float;
        t->struct_size = sizeof(*t);
        t->mant_dig = kind == HT_FIELD_F32 ? FLT_MANT_DIG : DBL_MANT_DIG;
        t->exp_dig = 8 * ht_kind_size(kind) - t->mant_dig;
        t->alignment = 8;
        t->reverse_byte_order = G_BYTE_ORDER != G_LITTLE_ENDIAN;
    } else {
        set_integer(&f->type.integer, kind, flags);
    }
}

static void add_enum(HtUstEvent *e, const HtField *cf)
{
    UstField *f = add_field(e, cf->name);
    const struct lttng_ust_enum_entry **entries;
    unsigned i;

    set_integer(&f->elem, cf->kind, cf->flags);
    f->entries = g_new0(struct lttng_ust_enum_entry, cf->nr_labels);
    entries = g_new0(const struct lttng_ust_enum_entry *, cf->nr_labels);
    for (i = 0; i < cf->nr_labels; i++) {
        const struct lttng_ust_enum_value value = {
            .value = cf->labels[i].value,
            .signedness = ht_kind_signed(cf->kind),
        };

        f->entries[i] = (struct lttng_ust_enum_entry) {
            .struct_size = sizeof(f->entries[i]),
            .start = value,
            .end = value,
            .string = g_strdup(cf->labels[i].name),
        };
        entries[i] = &f->entries[i];
    }
    f->labels = (struct lttng_ust_enum_desc) {
        .struct_size = sizeof(f->labels),
        .name = g_strdup_printf("%s_%s", e->key, cf->name),
        .entries = entries,
        .nr_entries = cf->nr_labels,
    };
    f->type.enumeration = (struct lttng_ust_type_enum) {
        .parent.type = lttng_ust_type_enum,
        .struct_size = sizeof(f->type.enumeration),
        .desc = &f->labels,
        .container_type = &f->elem.parent,
    };
}

static void free_labels(UstField *f)
{
    unsigned i;

    for (i = 0; i < f->labels.nr_entries; i++) {
        g_free((char *)f->entries[i].string);
    }
    g_free(f->entries);
    g_free((void *)f->labels.entries);
    g_free((char *)f->labels.name);
}

static void add_class_field(HtUstEvent *e, const HtField *cf)
{
    UstField *f;

    switch (cf->kind) {
    case HT_FIELD_TEXT:
    case HT_FIELD_SEQUENCE: {
        g_autofree char *length = g_strdup_printf("_%s_length", cf->name);

        add_scalar(e, length, HT_FIELD_U16, 0);
        e->fields[e->nr_fields - 1].field.nofilter = 1;
        f = add_field(e, cf->name);
        set_integer(&f->elem, cf->elem, cf->flags);
        f->type.sequence = (struct lttng_ust_type_sequence) {
            .parent.type = lttng_ust_type_sequence,
            .struct_size = sizeof(f->type.sequence),
            /*
             * With NULL, LTTng-UST takes the length from the event's previous
             * field.
             */
            .length_name = NULL,
            .elem_type = &f->elem.parent,
            .encoding = cf->kind == HT_FIELD_TEXT ?
                        lttng_ust_string_encoding_UTF8 :
                        lttng_ust_string_encoding_none,
        };
        break;
    }
    case HT_FIELD_ARRAY:
        f = add_field(e, cf->name);
        set_integer(&f->elem, cf->elem, cf->flags);
        f->type.array = (struct lttng_ust_type_array) {
            .parent.type = lttng_ust_type_array,
            .struct_size = sizeof(f->type.array),
            .elem_type = &f->elem.parent,
            .length = cf->count,
            .encoding = cf->flags & HT_FIELD_UTF8 ?
                        lttng_ust_string_encoding_UTF8 :
                        lttng_ust_string_encoding_none,
        };
        break;
    default:
        if (cf->nr_labels) {
            add_enum(e, cf);
        } else {
            add_scalar(e, cf->name, cf->kind, cf->flags);
        }
        break;
    }
}

static char *make_schema(const HtClass *c)
{
    GString *s = g_string_new(NULL);
    unsigned i, j;

    g_string_append_printf(s, "%u", c->loglevel);
    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];

        g_string_append_printf(s, ";%u,%u,%u,%u,%s", f->kind, f->elem,
                               f->flags, f->count, f->name);
        for (j = 0; j < f->nr_labels; j++) {
            g_string_append_printf(s, ",%" PRId64 "=%s", f->labels[j].value,
                                   f->labels[j].name);
        }
    }
    return g_string_free(s, false);
}

static HtUstEvent *event_new(const char *provider, const char *name,
                             const HtClass *c)
{
    HtUstEvent *e = g_malloc0(sizeof(*e) + sizeof(e->fields[0]) *
                              (PREFIX_FIELDS + c->nr_fields + c->nr_vars));
    unsigned i;

    e->key = g_strdup_printf("%s:%s", provider, name);
    e->schema = make_schema(c);
    e->provider = g_strdup(provider);
    e->name = g_strdup(name);
    e->loglevel = c->loglevel;
    e->loglevel_ptr = &e->loglevel;
    e->nr_class_fields = c->nr_fields;
    e->class_fields = g_new0(HtField, c->nr_fields);

    add_scalar(e, "stream", HT_FIELD_U32, 0);
    add_scalar(e, "vcpu", HT_FIELD_S32, 0);
    add_scalar(e, "guest_ns", HT_FIELD_U64, 0);
    for (i = 0; i < c->nr_fields; i++) {
        e->class_fields[i] = c->fields[i];
        e->class_fields[i].name = NULL;
        e->class_fields[i].labels = NULL;
        e->class_fields[i].nr_labels = 0;
        add_class_field(e, &c->fields[i]);
    }

    e->tp_class = (struct lttng_ust_tracepoint_class) {
        .struct_size = sizeof(e->tp_class),
        .fields = e->field_array,
        .nr_fields = e->nr_fields,
        .probe_callback = (void (*)(void))ht_ust_probe,
        .signature = SIGNATURE,
    };
    e->event = (struct lttng_ust_event_desc) {
        .struct_size = sizeof(e->event),
        .event_name = e->name,
        .tp_class = &e->tp_class,
        .loglevel = &e->loglevel_ptr,
    };
    e->tp = (struct lttng_ust_tracepoint) {
        .struct_size = sizeof(e->tp),
        .provider_name = e->provider,
        .event_name = e->name,
        .signature = SIGNATURE,
    };
    return e;
}

static void event_free(HtUstEvent *e)
{
    unsigned i;

    for (i = 0; i < e->nr_fields; i++) {
        g_free((char *)e->fields[i].field.name);
        free_labels(&e->fields[i]);
    }
    g_free(e->provider);
    g_free(e->class_fields);
    g_free(e->name);
    g_free(e->schema);
    g_free(e->key);
    g_free(e);
}

/*
 * Return the time that LTTng-UST waits for a session daemon's answer, in ms, at
 * least 10; a negative value means no limit.  After that time LTTng-UST shuts
 * down the connection, and that daemon does not enable events that this process
 * registers later.
 */
static int register_timeout(void)
{
    const char *s = getenv("LTTNG_UST_REGISTER_TIMEOUT");
    int ms = s && *s ? atoi(s) : 3000;

    return ms >= 0 && ms < 10 ? 10 : ms;
}

/*
 * Test whether a registration took the whole timeout.  A socket's timeout is
 * counted in ticks of up to 10 ms and may end one tick early.
 */
static bool took_all(gint64 us, int ms)
{
    return ms >= 0 && us >= MAX(ms * 1000LL - 10000, ms * 500LL);
}

bool ht_ust_timed_out(void)
{
    return ht_atomic_load_acquire(&timed_out);
}

/*
 * Remove events from the registry.  If @free_them, also free the events: the
 * caller knows that LTTng-UST has no pointer to them.
 */
static void forget(HtUstEvent *const *events, unsigned count, bool free_them)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        g_hash_table_remove(registry, events[i]->key);
        if (free_them) {
            event_free(events[i]);
        }
    }
}

/*
 * Set @probe_desc of the event, its class and its enumerations; if a session is
 * active, LTTng-UST reads @probe_desc of an enumeration, too.
 */
static void set_probe(HtUstEvent *e, struct lttng_ust_probe_desc *probe)
{
    unsigned i;

    e->event.probe_desc = probe;
    e->tp_class.probe_desc = probe;
    for (i = 0; i < e->nr_fields; i++) {
        e->fields[i].labels.probe_desc = probe;
    }
}

/*
 * Register new events of one provider.  On failure, remove all of them from the
 * registry.
 *
 * Returns: NULL or the reason of the failure
 *
 * Context: registry_lock held
 */
static const char *register_events(HtUstEvent *const *events, unsigned count)
{
    int ms = register_timeout();
    UstBatch *b;
    gint64 begin;
    unsigned i;

    if (!lttng_ust_tracepoint_dlopen_ptr ||
        !lttng_ust_tracepoint_dlopen_ptr->
            lttng_ust_tracepoint_module_register ||
        !LTTNG_UST_TP_RCU_LINK_TEST()) {
        forget(events, count, true);
        return "liblttng-ust-tracepoint could not be loaded";
    }
    b = g_new0(UstBatch, 1);
    b->probe = (struct lttng_ust_probe_desc) {
        .struct_size = sizeof(b->probe),
        .provider_name = events[0]->provider,
        .event_desc = b->event,
        .nr_events = count,
        .major = LTTNG_UST_PROVIDER_MAJOR,
        .minor = LTTNG_UST_PROVIDER_MINOR,
    };
    for (i = 0; i < count; i++) {
        set_probe(events[i], &b->probe);
        b->event[i] = &events[i]->event;
        b->tp[i] = &events[i]->tp;
    }
    begin = g_get_monotonic_time();
    if (!lttng_ust_probe_register(&b->probe)) {
        forget(events, count, true);
        g_free(b);
        return "LTTng-UST refused it";
    }
    if (took_all(g_get_monotonic_time() - begin, ms)) {
        ht_atomic_store_release(&timed_out, true);
    }
    /* From here on LTTng-UST keeps pointers to the batch. */
    if (lttng_ust_tracepoint_dlopen_ptr->
            lttng_ust_tracepoint_module_register(b->tp, count)) {
        forget(events, count, false);
        return "LTTng-UST refused its call site";
    }
    return NULL;
}

/* Context: registry_lock held */
static HtUstEvent *find_event(const char *provider, const HtClass *c,
                              bool *is_new, char **why)
{
    g_autofree char *name = g_strdup(c->name);
    g_autofree char *schema = make_schema(c);
    unsigned version;

    if (!registry) {
        registry = g_hash_table_new(g_str_hash, g_str_equal);
    }
    for (version = 2; ; version++) {
        g_autofree char *key = g_strdup_printf("%s:%s", provider, name);
        HtUstEvent *e;

        if (strlen(key) >= LTTNG_UST_TRACEPOINT_NAME_LEN_MAX) {
            *why = g_strdup_printf("'%s' is longer than the %d bytes that"
                                   " LTTng-UST allows", key,
                                   LTTNG_UST_TRACEPOINT_NAME_LEN_MAX - 1);
            return NULL;
        }
        e = g_hash_table_lookup(registry, key);
        *is_new = !e;
        if (!e) {
            e = event_new(provider, name, c);
            g_hash_table_insert(registry, e->key, e);
        }
        if (!strcmp(e->schema, schema)) {
            return e;
        }
        g_free(name);
        name = g_strdup_printf("%s.v%u", c->name, version);
    }
}

HtUstEvent *ht_ust_event_get(const char *provider, const HtClass *c,
                             char **why)
{
    const char *error = NULL;
    HtUstEvent *e;
    bool is_new;

    if (!ht_ust_enter()) {
        *why = g_strdup("the process is ending");
        return NULL;
    }
    g_mutex_lock(&registry_lock);
    e = find_event(provider, c, &is_new, why);
    if (e && is_new) {
        error = register_events(&e, 1);
    }
    g_mutex_unlock(&registry_lock);
    ht_ust_leave();
    if (error) {
        *why = g_strdup(error);
        return NULL;
    }
    return e;
}

HtUstEvent *ht_ust_discarded_get(const char *provider, char **why)
{
    static HtField fields[] = {
        { .name = (char *)"events", .kind = HT_FIELD_U64 },
        { .name = (char *)"total", .kind = HT_FIELD_U64 },
    };
    static const HtClass discarded = {
        .name = (char *)"discarded",
        .loglevel = LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING,
        .nr_fields = G_N_ELEMENTS(fields),
        .fields = fields,
        .fixed = HT_UST_DISCARDED_SIZE,
    };

    return ht_ust_event_get(provider, &discarded, why);
}

void ht_ust_events_prepare(const char *provider, HtClass *const *classes,
                           unsigned count)
{
    HtUstEvent *new[HT_UST_BATCH];
    unsigned i, n = 0;

    assert(count <= HT_UST_BATCH);
    if (!ht_ust_enter()) {
        return;
    }
    g_mutex_lock(&registry_lock);
    for (i = 0; i < count; i++) {
        g_autofree char *why = NULL;
        bool is_new;
        HtUstEvent *e = find_event(provider, classes[i], &is_new, &why);

        if (e && is_new) {
            new[n++] = e;
        }
    }
    if (n) {
        register_events(new, n);
    }
    g_mutex_unlock(&registry_lock);
    ht_ust_leave();
}

bool ht_ust_event_enabled(const HtUstEvent *e)
{
    return CMM_LOAD_SHARED(e->tp.state);
}

const char *ht_ust_event_name(const HtUstEvent *e)
{
    return e->name;
}
