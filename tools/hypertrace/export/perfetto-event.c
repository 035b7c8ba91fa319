/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace export --format perfetto: events
 *
 * If the table below has one of Perfetto's messages for an event, the event
 * becomes that message, except a second report of a system call, and a new name
 * of a task that is not known. Other events are written with a description of
 * their fields, which Perfetto reads since v50. If the event's format is not
 * known, the event becomes a generic event with its bytes.
 */
#include <string.h>

#include "export/perfetto.h"
#include "export/protobuf.h"
#include "model/fields.h"
#include "model/tasks.h"

#define SYMBOLS_MAX     (1u << 20)

/* Values of google.protobuf.FieldDescriptorProto.Type and .Label */
#define TYPE_INT64      3
#define TYPE_UINT64     4
#define TYPE_STRING     9
#define LABEL_OPTIONAL  1

typedef enum Put {
    PUT_NONE,
    PUT_INT,
    PUT_TEXT,
    PUT_ARRAY,
    PUT_SYMBOL,
} Put;

/* How to write a kind of the kernel's events as one of Perfetto's messages */
typedef struct Known {
    /*
     * number of the message among the fields of FtraceEvent; 0: the table has
     * no message for this kind
     */
    uint16_t number;
    /* how to write a field of the kernel's event, by HT_F_* */
    struct {
        uint8_t field;          /* number of the field in Perfetto's message */
        uint8_t put;            /* how to write the value: enum Put */
    } as[HT_KIND_FIELDS];
} Known;

static const Known known[HT_KINDS] = {
    [HT_KIND_SCHED_SWITCH] = { 4, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT }, { 4, PUT_INT },
        { 5, PUT_TEXT }, { 6, PUT_INT }, { 7, PUT_INT } } },
    [HT_KIND_SCHED_WAKING] = { 20, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT }, { 5, PUT_INT } } },
    [HT_KIND_SCHED_WAKEUP] = { 17, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT }, { 5, PUT_INT } } },
    [HT_KIND_SCHED_WAKEUP_NEW] = { 114, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT }, { 5, PUT_INT } } },
    [HT_KIND_SCHED_MIGRATE] = { 491, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT }, { 4, PUT_INT },
        { 5, PUT_INT } } },
    [HT_KIND_SCHED_EXEC] = { 237, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT } } },
    [HT_KIND_SCHED_FORK] = { 239, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_TEXT }, { 4, PUT_INT } } },
    [HT_KIND_SCHED_EXIT] = { 238, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 4, PUT_INT } } },
    [HT_KIND_SCHED_FREE] = { 240, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT } } },
    [HT_KIND_SCHED_WAIT] = { 242, {
        { 1, PUT_TEXT }, { 2, PUT_INT }, { 3, PUT_INT } } },
    [HT_KIND_TASK_NEW] = { 235, {
        { 2, PUT_TEXT }, { 1, PUT_INT }, { 3, PUT_INT }, { 4, PUT_INT } } },
    [HT_KIND_TASK_RENAME] = { 236, {
        { 3, PUT_TEXT }, { 1, PUT_INT }, { 2, PUT_TEXT }, { 4, PUT_INT } } },
    [HT_KIND_IRQ_ENTRY] = { 36, { { 1, PUT_INT }, { 2, PUT_TEXT } } },
    [HT_KIND_IRQ_EXIT] = { 37, { { 1, PUT_INT }, { 2, PUT_INT } } },
    [HT_KIND_SOFTIRQ_ENTRY] = { 24, { { 1, PUT_INT } } },
    [HT_KIND_SOFTIRQ_EXIT] = { 25, { { 1, PUT_INT } } },
    [HT_KIND_SOFTIRQ_RAISE] = { 26, { { 1, PUT_INT } } },
    [HT_KIND_SYS_ENTER] = { 329, { { 1, PUT_INT }, { 2, PUT_ARRAY } } },
    [HT_KIND_SYS_EXIT] = { 330, { { 1, PUT_INT }, { 2, PUT_INT } } },
    [HT_KIND_CPU_FREQUENCY] = { 11, { { 1, PUT_INT }, { 2, PUT_INT } } },
    [HT_KIND_CPU_IDLE] = { 13, { { 1, PUT_INT }, { 2, PUT_INT } } },
    [HT_KIND_GRAPH_ENTRY] = { 437, { { 2, PUT_SYMBOL }, { 1, PUT_INT } } },
    [HT_KIND_GRAPH_EXIT] = { 438, {
        { 3, PUT_SYMBOL }, { 2, PUT_INT }, { 4, PUT_INT }, { 1, PUT_INT },
        { 5, PUT_INT } } },
};

/*
 * Return the interning id (iid) of a kernel address.  If the address is new,
 * add its name to @w->interned.  If there are too many symbols, return @addr.
 */
static uint64_t symbol(PfWriter *w, unsigned boot, uint64_t addr)
{
    const uint64_t *iid = g_hash_table_lookup(w->symbols, &addr);
    uint64_t *key;
    gsize at;

    if (iid) {
        return iid[1];
    }
    if (g_hash_table_size(w->symbols) >= SYMBOLS_MAX) {
        /* No name is written for this iid, so Perfetto shows the address. */
        return addr;
    }
    key = g_new(uint64_t, 2);
    key[0] = addr;
    key[1] = g_hash_table_size(w->symbols) + 1;
    g_hash_table_insert(w->symbols, key, key);

    g_string_truncate(w->scratch, 0);
    ht_model_symbol(w->m, boot, addr, w->scratch);
    at = ht_pb_begin(w->interned, PF_INTERNED_KERNEL_SYMBOLS);
    ht_pb_uint(w->interned, PF_INTERNED_IID, key[1]);
    ht_pb_guest(w->interned, PF_INTERNED_STR, w->scratch->str,
                w->scratch->len);
    ht_pb_end(w->interned, at);
    return key[1];
}

static void put_array(const HtModelEvent *ev, const HtFtField *f,
                      unsigned number, GString *out)
{
    size_t len = 0;
    const uint8_t *p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);

    for (; f->elem_size && len >= f->elem_size; len -= f->elem_size) {
        ht_pb_uint(out, number, ht_ft_elem_uint(f, p));
        p += f->elem_size;
    }
}

/*
 * Append the arguments of a system call: all integer fields of an event
 * syscalls:sys_enter_* except its first field, which is the call's number.
 */
static void put_arguments(const HtModelEvent *ev, unsigned number,
                          GString *out)
{
    const HtFtEvent *e = ev->class->format;
    unsigned i;

    for (i = 1; i < e->nr_fields; i++) {
        if (e->fields[i].kind == HT_FT_INT) {
            ht_pb_uint(out, number, ht_ft_field_uint(&e->fields[i],
                                                     ev->rec.data,
                                                     ev->rec.size));
        }
    }
}

static void put_known(PfWriter *w, const HtModelEvent *ev, const Known *k,
                      GString *out)
{
    gsize at = ht_pb_begin(out, k->number);
    const char *s;
    unsigned i;
    gsize len;

    for (i = 0; i < HT_KIND_FIELDS; i++) {
        unsigned number = k->as[i].field;

        if (!ev->class->field[i]) {
            continue;
        }
        switch (k->as[i].put) {
        case PUT_INT:
            ht_pb_uint(out, number, ht_event_uint(ev, i));
            break;
        case PUT_TEXT:
            s = ht_event_text(ev, i, &len);
            ht_pb_guest(out, number, s, len);
            break;
        case PUT_ARRAY:
            put_array(ev, ev->class->field[i], number, out);
            break;
        case PUT_SYMBOL:
            ht_pb_uint(out, number,
                       symbol(w, ev->boot, ht_event_uint(ev, i)));
            break;
        }
    }
    if (ev->class->kind == HT_KIND_SYS_ENTER &&
        !ev->class->field[HT_F_SYS_ARGS]) {
        put_arguments(ev, k->as[HT_F_SYS_ARGS].field, out);
    }
    if (ev->class->kind == HT_KIND_TASK_RENAME &&
        !ev->class->field[HT_F_RENAME_PID]) {
        ht_pb_uint(out, 1, (int64_t)ht_tasks_renamed(ev, ev->task));
    }
    ht_pb_end(out, at);
}

static unsigned field_type(const HtFtField *f)
{
    return f->kind != HT_FT_INT ? TYPE_STRING :
           f->is_signed ? TYPE_INT64 : TYPE_UINT64;
}

static void describe(PfWriter *w, const HtEventClass *c)
{
    const HtFtEvent *e = c->format;
    g_autoptr(GString) d = g_string_new(NULL);
    unsigned i;
    gsize at;

    ht_pb_guest(d, PF_DESCRIPTOR_NAME, e->name, strlen(e->name));
    for (i = 0; i < e->nr_fields && i < PF_GENERIC_FIELDS_MAX; i++) {
        at = ht_pb_begin(d, PF_DESCRIPTOR_FIELD);
        ht_pb_guest(d, PF_FIELD_NAME, e->fields[i].name,
                    strlen(e->fields[i].name));
        ht_pb_uint(d, PF_FIELD_NUMBER, i + 1);
        ht_pb_uint(d, PF_FIELD_LABEL, LABEL_OPTIONAL);
        ht_pb_uint(d, PF_FIELD_TYPE, field_type(&e->fields[i]));
        ht_pb_end(d, at);
    }
    at = ht_pb_begin(w->descriptors, PF_BUNDLE_GENERIC_DESCRIPTORS);
    ht_pb_uint(w->descriptors, PF_GENERIC_FIELD_ID, PF_GENERIC_BASE + c->type);
    ht_pb_bytes(w->descriptors, PF_GENERIC_DESCRIPTOR, d->str, d->len);
    ht_pb_guest(w->descriptors, PF_GENERIC_GROUP, e->system,
                strlen(e->system));
    ht_pb_end(w->descriptors, at);
}

static void put_described(PfWriter *w, const HtModelEvent *ev, GString *out)
{
    const HtFtEvent *e = ev->class->format;
    uint16_t type = ev->class->type;
    unsigned i;
    gsize at;

    if (!(w->described[type / 8] & 1 << type % 8)) {
        w->described[type / 8] |= 1 << type % 8;
        describe(w, ev->class);
    }
    at = ht_pb_begin(out, PF_GENERIC_BASE + type);
    for (i = 0; i < e->nr_fields && i < PF_GENERIC_FIELDS_MAX; i++) {
        const HtFtField *f = &e->fields[i];

        if (f->kind == HT_FT_INT) {
            ht_pb_uint(out, i + 1, ht_ft_field_uint(f, ev->rec.data,
                                                    ev->rec.size));
        } else {
            g_string_truncate(w->scratch, 0);
            ht_fields_value(f, ev, w->scratch);
            ht_pb_guest(out, i + 1, w->scratch->str, w->scratch->len);
        }
    }
    ht_pb_end(out, at);
}

static void put_unknown(PfWriter *w, const HtModelEvent *ev, GString *out)
{
    gsize at = ht_pb_begin(out, PF_EVENT_GENERIC), field;

    ht_pb_guest(out, PF_GENERIC_EVENT_NAME, ev->class->name,
                strlen(ev->class->name));
    field = ht_pb_begin(out, PF_GENERIC_EVENT_FIELD);
    ht_pb_str(out, PF_GENERIC_EVENT_FIELD_NAME, "bytes");
    g_string_truncate(w->scratch, 0);
    ht_fields_text(ev, w->scratch);
    ht_pb_guest(out, PF_GENERIC_EVENT_FIELD_STR, w->scratch->str,
                w->scratch->len);
    ht_pb_end(out, field);
    ht_pb_end(out, at);
}

/*
 * Check whether the event may report a system call a second time. The event
 * systems raw_syscalls and syscalls both report system calls. The system of the
 * first such event that this writer gets is chosen: only its events become
 * slices of system calls.
 */
static bool is_second_syscall(PfWriter *w, const HtModelEvent *ev)
{
    if (ev->class->kind != HT_KIND_SYS_ENTER &&
        ev->class->kind != HT_KIND_SYS_EXIT) {
        return false;
    }
    if (!w->syscalls) {
        w->syscalls = ev->class->system;
    }
    return strcmp(w->syscalls, ev->class->system) != 0;
}

/* Perfetto would take this event for a name of the idle task. */
static bool is_unknown_rename(const HtModelEvent *ev)
{
    return ev->class->kind == HT_KIND_TASK_RENAME &&
           !ht_tasks_renamed(ev, ev->task);
}

void pf_event(PfWriter *w, const HtModelEvent *ev, GString *out)
{
    const Known *k = &known[ev->class->kind];
    gsize at = ht_pb_begin(out, PF_BUNDLE_EVENT);

    ht_pb_uint(out, PF_EVENT_TIMESTAMP, ev->rec.ns);
    /* Perfetto drops events without this field, so write PID 0, too. */
    ht_pb_uint(out, PF_EVENT_PID, (int64_t)ev->rec.pid);
    if (is_second_syscall(w, ev) || is_unknown_rename(ev)) {
        put_described(w, ev, out);
    } else if (k->number) {
        put_known(w, ev, k, out);
    } else if (ev->class->format) {
        put_described(w, ev, out);
    } else {
        put_unknown(w, ev, out);
    }
    ht_pb_end(out, at);
}
