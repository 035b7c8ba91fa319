/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: event classes as LTTng-UST events, defined at run time
 *
 * LTTng-UST's macros generate a probe for each event at compile time.  Here
 * the same public structures are filled in when a guest registers a class, and
 * one probe serves all of them: every field is declared with an alignment of 8
 * bits, so a payload can be copied into the buffer as it is, and only filters
 * look into it.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"

#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>
#include <lttng/ust-ringbuffer-context.h>
#include <lttng/ust-thread.h>

#include "hypertrace/lttng-ust-event.h"
#include "hypertrace/lttng-ust-thread.h"

#define PREFIX_FIELDS   3
#define PREFIX_SIZE     16

/* LTTng compares the call site's with the probe's; both are ours. */
#define SIGNATURE       "hypertrace"

#define FIELDS_MAX      (PREFIX_FIELDS + 2 * HT_FIELDS_MAX)

typedef struct UstField {
    struct lttng_ust_event_field field;
    union {
        struct lttng_ust_type_common common;
        struct lttng_ust_type_integer integer;
        struct lttng_ust_type_float floating;
        struct lttng_ust_type_array array;
        struct lttng_ust_type_sequence sequence;
    } type;
    struct lttng_ust_type_integer elem;
} UstField;

struct HtUstEvent {
    char *key;                  /* provider:name */
    char *schema;
    char *name;
    int loglevel;
    const int *loglevel_ptr;
    unsigned nr_class_fields;
    HtField *class_fields;      /* for filters */

    struct lttng_ust_tracepoint tp;
    struct lttng_ust_tracepoint *tp_array[1];
    struct lttng_ust_probe_desc probe;
    struct lttng_ust_event_desc event;
    const struct lttng_ust_event_desc *event_array[1];
    struct lttng_ust_tracepoint_class tp_class;
    const struct lttng_ust_event_field *field_array[FIELDS_MAX];
    unsigned nr_fields;
    UstField fields[];
};

/* Payloads up to this size are written together with the prefix. */
#define SMALL           48

/* What a probe gets to see of an event */
typedef struct UstRecord {
    uint8_t prefix[PREFIX_SIZE + SMALL];
    const uint8_t *payload;
    size_t size;
} UstRecord;

typedef void UstProbe(void *data, const HtUstEvent *e, const UstRecord *r);

/* Events by key; what is in it stays. */
static GMutex registry_lock;
static GHashTable *registry;
static bool timed_out;

static uint64_t load(const uint8_t *p, unsigned size)
{
    switch (size) {
    case 1:
        return *p;
    case 2:
        return (uint16_t)ht_get_le16(p);
    case 4:
        return (uint32_t)ht_get_le32(p);
    default:
        return ht_get_le64(p);
    }
}

/* Filters ------------------------------------------------------------------ */

typedef struct FilterStack {
    char bytes[FIELDS_MAX * 2 * sizeof(unsigned long)];
    size_t used;
} FilterStack;

static void push(FilterStack *s, const void *v, size_t size)
{
    memcpy(s->bytes + s->used, v, size);
    s->used += size;
}

static const uint8_t *push_scalar(FilterStack *s, unsigned kind,
                                  const uint8_t *p)
{
    unsigned size = ht_kind_size(kind);
    uint64_t v = load(p, size);
    uint32_t bits = v;
    float f32;
    double f64;

    if (kind == HT_FIELD_F32) {
        memcpy(&f32, &bits, sizeof(f32));
        f64 = f32;
        push(s, &f64, sizeof(f64));
    } else {
        /* a double's bits are what they are */
        if (ht_kind_signed(kind)) {
            v = (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
        }
        push(s, &v, sizeof(v));
    }
    return p + size;
}

static const uint8_t *push_elements(FilterStack *s, unsigned kind,
                                    unsigned long count, const uint8_t *p)
{
    const void *elements = p;

    push(s, &count, sizeof(count));
    push(s, &elements, sizeof(elements));
    return p + count * ht_kind_size(kind);
}

static void push_fields(FilterStack *s, const HtUstEvent *e,
                        const UstRecord *r)
{
    const uint8_t *p = r->payload;
    unsigned i;

    s->used = 0;
    push_scalar(s, HT_FIELD_U32, r->prefix);
    push_scalar(s, HT_FIELD_S32, r->prefix + 4);
    push_scalar(s, HT_FIELD_U64, r->prefix + 8);
    for (i = 0; i < e->nr_class_fields; i++) {
        const HtField *f = &e->class_fields[i];

        switch (f->kind) {
        case HT_FIELD_TEXT:
        case HT_FIELD_SEQUENCE:
            p = push_elements(s, f->elem, load(p, 2), p + 2);
            break;
        case HT_FIELD_ARRAY:
            p = push_elements(s, f->elem, f->count, p);
            break;
        default:
            p = push_scalar(s, f->kind, p);
            break;
        }
    }
}

/* The probe ---------------------------------------------------------------- */

static void record(struct lttng_ust_event_recorder *recorder,
                   struct lttng_ust_probe_ctx *probe_ctx, const UstRecord *r)
{
    struct lttng_ust_channel_buffer_ops *ops = recorder->chan->ops;
    struct lttng_ust_ring_buffer_ctx ctx;

    lttng_ust_ring_buffer_ctx_init(&ctx, recorder, PREFIX_SIZE + r->size, 1,
                                   probe_ctx);
    if (ops->event_reserve(&ctx) < 0) {
        return;                 /* full, or too large; counted by LTTng */
    }
    if (r->size <= SMALL) {
        ops->event_write(&ctx, r->prefix, PREFIX_SIZE + r->size, 1);
    } else {
        ops->event_write(&ctx, r->prefix, PREFIX_SIZE, 1);
        ops->event_write(&ctx, r->payload, r->size, 1);
    }
    ops->event_commit(&ctx);
}

/*
 * Filters and captures are not inlined: QEMU is compiled to clear variables,
 * and an event without a filter need not pay for that much stack.
 */
static bool G_NO_INLINE accepted(struct lttng_ust_event_common *common,
                                 struct lttng_ust_probe_ctx *probe_ctx,
                                 const HtUstEvent *e, const UstRecord *r)
{
    FilterStack stack;

    push_fields(&stack, e, r);
    return common->run_filter(common, stack.bytes, probe_ctx, NULL) ==
           LTTNG_UST_EVENT_FILTER_ACCEPT;
}

static void G_NO_INLINE notify(struct lttng_ust_event_notifier *notifier,
                               struct lttng_ust_probe_ctx *probe_ctx,
                               const HtUstEvent *e, const UstRecord *r)
{
    struct lttng_ust_notification_ctx ctx = {
        .struct_size = sizeof(ctx),
        .eval_capture = CMM_ACCESS_ONCE(notifier->eval_capture),
    };
    FilterStack stack;

    if (ctx.eval_capture) {
        push_fields(&stack, e, r);
    }
    notifier->notification_send(notifier, stack.bytes, probe_ctx, &ctx);
}

static void probe(void *data, const HtUstEvent *e, const UstRecord *r)
{
    struct lttng_ust_event_common *common = data;
    struct lttng_ust_probe_ctx probe_ctx = {
        .struct_size = sizeof(probe_ctx),
        .ip = __builtin_return_address(0),
    };

    if (common->type == LTTNG_UST_EVENT_TYPE_RECORDER) {
        struct lttng_ust_event_recorder *recorder = common->child;
        struct lttng_ust_channel_common *chan = recorder->chan->parent;

        if (!CMM_ACCESS_ONCE(chan->session->active) ||
            !CMM_ACCESS_ONCE(chan->enabled)) {
            return;
        }
    } else if (common->type != LTTNG_UST_EVENT_TYPE_NOTIFIER) {
        return;
    }
    if (!CMM_ACCESS_ONCE(common->enabled)) {
        return;
    }
    if (CMM_ACCESS_ONCE(common->eval_filter) &&
        !accepted(common, &probe_ctx, e, r)) {
        return;
    }
    if (common->type == LTTNG_UST_EVENT_TYPE_RECORDER) {
        record(common->child, &probe_ctx, r);
    } else {
        notify(common->child, &probe_ctx, e, r);
    }
}

void ht_ust_event_emit(const HtUstEvent *e, uint32_t stream, int32_t vcpu,
                       uint64_t ns, const uint8_t *payload, size_t size)
{
    struct lttng_ust_tracepoint_probe *p;
    UstRecord r;

    if (G_LIKELY(!CMM_LOAD_SHARED(e->tp.state))) {
        return;
    }
    ht_put_le32(r.prefix, stream);
    ht_put_le32(r.prefix + 4, vcpu);
    ht_put_le64(r.prefix + 8, ns);
    if (size <= SMALL) {
        memcpy(r.prefix + PREFIX_SIZE, payload, size);
    }
    r.payload = payload;
    r.size = size;

    p = lttng_ust_tp_rcu_dereference(e->tp.probes);
    for (; p && p->func; p++) {
        ((UstProbe *)p->func)(p->data, e, &r);
    }
}

bool ht_ust_event_enabled(const HtUstEvent *e)
{
    return CMM_LOAD_SHARED(e->tp.state);
}

bool ht_ust_begin(void)
{
    static __thread bool known;

    if (G_UNLIKELY(!ht_ust_enter())) {
        return false;
    }
    if (G_UNLIKELY(!known)) {
        /* so that the first event is as quick as others */
        lttng_ust_init_thread();
        known = true;
    }
    lttng_ust_tp_rcu_read_lock();
    return true;
}

void ht_ust_done(void)
{
    lttng_ust_tp_rcu_read_unlock();
    ht_ust_leave();
}

/* Registration ------------------------------------------------------------- */

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
            .length_name = NULL,        /* the field before */
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
        add_scalar(e, cf->name, cf->kind, cf->flags);
        break;
    }
}

static char *make_schema(const HtClass *c)
{
    GString *s = g_string_new(NULL);
    unsigned i;

    g_string_append_printf(s, "%u", c->loglevel);
    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];

        g_string_append_printf(s, ";%u,%u,%u,%u,%s", f->kind, f->elem,
                               f->flags, f->count, f->name);
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
        add_class_field(e, &c->fields[i]);
    }

    e->tp_class = (struct lttng_ust_tracepoint_class) {
        .struct_size = sizeof(e->tp_class),
        .fields = e->field_array,
        .nr_fields = e->nr_fields,
        .probe_callback = (void (*)(void))probe,
        .signature = SIGNATURE,
        .probe_desc = &e->probe,
    };
    e->event = (struct lttng_ust_event_desc) {
        .struct_size = sizeof(e->event),
        .event_name = e->name,
        .probe_desc = &e->probe,
        .tp_class = &e->tp_class,
        .loglevel = &e->loglevel_ptr,
    };
    e->event_array[0] = &e->event;
    e->probe = (struct lttng_ust_probe_desc) {
        .struct_size = sizeof(e->probe),
        .provider_name = g_strdup(provider),
        .event_desc = e->event_array,
        .nr_events = 1,
        .major = LTTNG_UST_PROVIDER_MAJOR,
        .minor = LTTNG_UST_PROVIDER_MINOR,
    };
    e->tp = (struct lttng_ust_tracepoint) {
        .struct_size = sizeof(e->tp),
        .provider_name = e->probe.provider_name,
        .event_name = e->name,
        .signature = SIGNATURE,
    };
    e->tp_array[0] = &e->tp;
    return e;
}

static void event_free(HtUstEvent *e)
{
    unsigned i;

    for (i = 0; i < e->nr_fields; i++) {
        g_free((char *)e->fields[i].field.name);
    }
    g_free((char *)e->probe.provider_name);
    g_free(e->class_fields);
    g_free(e->name);
    g_free(e->schema);
    g_free(e->key);
    g_free(e);
}

/*
 * How long LTTng-UST waits for a session daemon's answer, in ms; < 0: for
 * ever.  It shuts that connection when the time is over, and no event that is
 * registered from then on is ever enabled by that daemon.
 */
static int register_timeout(void)
{
    const char *s = getenv("LTTNG_UST_REGISTER_TIMEOUT");
    int ms = s && *s ? atoi(s) : 3000;

    return ms >= 0 && ms < 10 ? 10 : ms;
}

bool ht_ust_timed_out(void)
{
    return ht_atomic_load_acquire(&timed_out);
}

/* @known: set once LTTng-UST has the event's address for good */
static const char *event_register(HtUstEvent *e, bool *known)
{
    int ms = register_timeout();
    gint64 begin;

    *known = false;
    if (!lttng_ust_tracepoint_dlopen_ptr ||
        !lttng_ust_tracepoint_dlopen_ptr->
            lttng_ust_tracepoint_module_register ||
        !LTTNG_UST_TP_RCU_LINK_TEST()) {
        return "liblttng-ust-tracepoint could not be loaded";
    }
    begin = g_get_monotonic_time();
    if (!lttng_ust_probe_register(&e->probe)) {
        return "LTTng-UST refused it";
    }
    if (ms >= 0 && g_get_monotonic_time() - begin >= ms * 1000LL) {
        ht_atomic_store_release(&timed_out, true);
    }
    *known = true;
    if (lttng_ust_tracepoint_dlopen_ptr->
            lttng_ust_tracepoint_module_register(e->tp_array, 1)) {
        return "LTTng-UST refused its call site";
    }
    return NULL;
}

HtUstEvent *ht_ust_event_get(const char *provider, const HtClass *c,
                             char **why)
{
    g_autofree char *name = g_strdup(c->name);
    g_autofree char *schema = make_schema(c);
    HtUstEvent *e = NULL;
    const char *error;
    unsigned version;
    bool known;

    if (!ht_ust_enter()) {
        *why = g_strdup("the process is ending");
        return NULL;
    }
    g_mutex_lock(&registry_lock);
    if (!registry) {
        registry = g_hash_table_new(g_str_hash, g_str_equal);
    }
    for (version = 2; ; version++) {
        g_autofree char *key = g_strdup_printf("%s:%s", provider, name);

        if (strlen(key) >= LTTNG_UST_TRACEPOINT_NAME_LEN_MAX) {
            *why = g_strdup_printf("'%s' is longer than the %d bytes that"
                                   " LTTng-UST allows", key,
                                   LTTNG_UST_TRACEPOINT_NAME_LEN_MAX - 1);
            break;
        }
        e = g_hash_table_lookup(registry, key);
        if (e && strcmp(e->schema, schema)) {
            e = NULL;
            g_free(name);
            name = g_strdup_printf("%s.v%u", c->name, version);
            continue;
        }
        if (e) {
            break;
        }

        e = event_new(provider, name, c);
        error = event_register(e, &known);
        if (error) {
            *why = g_strdup(error);
            if (!known) {
                event_free(e);
            }
            e = NULL;
        } else {
            g_hash_table_insert(registry, e->key, e);
        }
        break;
    }
    g_mutex_unlock(&registry_lock);
    ht_ust_leave();
    return e;
}

const char *ht_ust_event_name(const HtUstEvent *e)
{
    return e->name;
}
