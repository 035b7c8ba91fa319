/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "account.h"
#include "compare.h"

/* Maximum number of messages about single events of one Account */
#define REPORTED_MAX 20

/*
 * An event with a sequence number of SEQ_MAX or more counts as altered. The
 * bitmap Stream.seen has bits for lower numbers only. It grows as needed, at
 * least to twice its size, and stays below 256 MiB.
 */
#define SEQ_MAX (UINT64_C(1) << 30)

typedef struct ClassUser {
    WorkloadClass workload;
    /* stream of the previous event of the class */
    Stream *stream;
    Row *row;                   /* counters of @stream for the class */
} ClassUser;

void account_problem(Account *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_ptr_array_add(a->problems, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

/*
 * Count a message about an event, and append it to the problems unless
 * REPORTED_MAX or more such messages came before.
 */
static void G_GNUC_PRINTF(3, 4) report_event(Account *a, const Stream *s,
                                             const char *fmt, ...)
{
    g_autofree char *what = NULL;
    va_list ap;

    if (a->reported++ >= REPORTED_MAX) {
        return;
    }
    va_start(ap, fmt);
    what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    account_problem(a, "%s stream %" PRIu32 ": %s", s->device, s->index,
                    what);
}

static bool stream_is(const Stream *s, TraceKind kind, const char *device,
                      uint32_t index, uint64_t instance)
{
    return s->index == index && s->instance == instance && s->kind == kind &&
           !strcmp(s->device, device);
}

static Stream *stream_get(Account *a, TraceKind kind, const char *device,
                          uint32_t index, uint64_t instance)
{
    Stream *s = a->last;
    unsigned i;

    if (s && stream_is(s, kind, device, index, instance)) {
        return s;
    }
    for (i = 0; i < a->streams->len; i++) {
        s = a->streams->pdata[i];
        if (stream_is(s, kind, device, index, instance)) {
            a->last = s;
            return s;
        }
    }
    s = g_new0(Stream, 1);
    s->kind = kind;
    s->device = g_strdup(device);
    s->index = index;
    s->instance = instance;
    s->rows = g_ptr_array_new();
    s->seen = g_byte_array_new();
    if (a->keep) {
        s->list = g_array_new(FALSE, FALSE, sizeof(Recorded));
    }
    g_ptr_array_add(a->streams, s);
    a->last = s;
    return s;
}

static Row *row_get(Stream *s, const TraceClass *cls, bool checked)
{
    unsigned i;
    Row *r;

    for (i = 0; i < s->rows->len; i++) {
        r = s->rows->pdata[i];
        if (!strcmp(r->name, cls->name)) {
            return r;
        }
    }
    r = g_new0(Row, 1);
    r->name = g_strdup(cls->name);
    r->checked = checked;
    g_ptr_array_add(s->rows, r);
    return r;
}

static void stream_free(gpointer p)
{
    Stream *s = p;
    unsigned i;

    for (i = 0; i < s->rows->len; i++) {
        Row *r = s->rows->pdata[i];

        g_free(r->name);
        g_free(r);
    }
    g_ptr_array_unref(s->rows);
    g_byte_array_unref(s->seen);
    if (s->list) {
        g_array_unref(s->list);
    }
    g_free(s->device);
    g_free(s);
}

/* Mark a sequence number as seen. Returns false if it was seen before. */
static bool mark_seen(Stream *s, uint64_t seq)
{
    uint64_t byte = seq / 8;
    uint8_t bit = 1u << seq % 8;

    if (byte >= s->seen->len) {
        guint old = s->seen->len;
        guint len = MAX(byte + 1, 2 * (uint64_t)old);

        g_byte_array_set_size(s->seen, len);
        memset(s->seen->data + old, 0, len - old);
    }
    if (s->seen->data[byte] & bit) {
        return false;
    }
    s->seen->data[byte] |= bit;
    return true;
}

static void check_sequence(Account *a, Stream *s, uint64_t seq)
{
    if (!mark_seen(s, seq)) {
        s->duplicates++;
        report_event(a, s, "sequence number %" PRIu64 " is repeated", seq);
        return;
    }
    if (s->sequenced && seq < s->previous_seq) {
        s->disordered++;
        report_event(a, s, "sequence number %" PRIu64 " comes after %" PRIu64,
                     seq, s->previous_seq);
    }
    s->previous_seq = seq;
    s->first_seq = s->sequenced ? MIN(s->first_seq, seq) : seq;
    s->last_seq = MAX(s->last_seq, seq);
    s->sequenced++;
}

static void check_payload(Account *a, Stream *s, Row *r,
                          const WorkloadClass *w, const TraceEvent *ev)
{
    const char *field;
    uint64_t seq;

    if (!w->schema || !ev->payload) {
        if (r->altered++ == 0) {
            report_event(a, s, "%s does not have the fields of ht-bench",
                         r->name);
        }
        s->altered++;
        return;
    }
    seq = workload_seq(w, ev->payload);
    field = seq < SEQ_MAX ? workload_check(w, s->index, ev->payload) : "seq";
    if (field) {
        r->altered++;
        s->altered++;
        report_event(a, s, "%s %" PRIu64 ": the field '%s' was altered",
                     r->name, seq, field);
    }
    if (seq < SEQ_MAX) {
        check_sequence(a, s, seq);
    }
}

static void on_event(void *opaque, const TraceEvent *ev)
{
    Account *a = opaque;
    ClassUser *u = ev->cls->user;
    Stream *s = stream_get(a, ev->cls->kind, ev->cls->device, ev->stream,
                           ev->instance);

    if (!u) {
        u = g_new0(ClassUser, 1);
        workload_class(ev->cls, &u->workload);
        ev->cls->user = u;
    }
    if (u->stream != s) {
        u->stream = s;
        u->row = row_get(s, ev->cls, u->workload.known);
    }
    u->row->recorded++;
    s->recorded++;

    if (ev->guest_ns < s->previous_ns) {
        s->backward++;
        report_event(a, s, "an event of %" PRIu64 " ns comes after one of %"
                     PRIu64, ev->guest_ns, s->previous_ns);
    }
    s->previous_ns = ev->guest_ns;
    if (ev->delivered_ns) {
        int64_t ns = ev->delivered_ns - ev->guest_ns;

        latency_add(&u->row->latency, ns);
        latency_add(&s->latency, ns);
    }
    if (u->workload.known) {
        check_payload(a, s, u->row, &u->workload, ev);
    }
    if (a->keep) {
        Recorded e = {
            .guest_ns = ev->guest_ns,
            .hash = compare_hash(ev),
        };

        g_array_append_val(s->list, e);
    }
}

static void on_loss(void *opaque, const TraceLoss *loss)
{
    Account *a = opaque;
    uint64_t *sum;
    Stream *s;

    if (loss->device) {
        s = stream_get(a, loss->kind, loss->device, loss->stream,
                       loss->instance);
        /*
         * LTTng may have discarded reports of losses that the device made since
         * the previous report in the trace. The difference of the totals
         * includes the events of those discarded reports.
         */
        s->discarded += s->has_total && loss->total > s->previous_total ?
                        loss->total - s->previous_total : loss->events;
        s->previous_total = loss->total;
        s->has_total = loss->kind == TRACE_LTTNG;
    } else {
        a->discarded += loss->events;
        a->discarded_packets += loss->packets;
        a->unknown |= loss->unknown;
        sum = g_hash_table_lookup(a->channels, loss->channel);
        if (!sum) {
            sum = g_new0(uint64_t, 1);
            g_hash_table_insert(a->channels, g_strdup(loss->channel), sum);
        }
        *sum += loss->events;
    }
}

uint64_t account_missing(const Stream *s)
{
    return s->sequenced ? s->last_seq + 1 - s->sequenced : 0;
}

void account_lossless(Account *a)
{
    unsigned i;

    if (a->discarded || a->discarded_packets || a->unknown) {
        account_problem(a, "LTTng discarded %s%" PRIu64 " events and %" PRIu64
                        " packets", a->unknown ? "at least " : "",
                        a->discarded, a->discarded_packets);
    }
    for (i = 0; i < a->streams->len; i++) {
        const Stream *s = a->streams->pdata[i];

        if (s->discarded || account_missing(s)) {
            account_problem(a, "%s stream %" PRIu32 ": %" PRIu64
                            " events are missing, %" PRIu64 " of them are"
                            " counted as discarded", s->device, s->index,
                            account_missing(s), s->discarded);
        }
    }
}

static gint by_stream(gconstpointer a, gconstpointer b)
{
    const Stream *x = *(Stream **)a, *y = *(Stream **)b;
    int r = strcmp(x->device, y->device);

    if (r == 0) {
        r = (x->index > y->index) - (x->index < y->index);
    }
    if (r == 0) {
        r = (x->instance > y->instance) - (x->instance < y->instance);
    }
    return r ? r : (int)x->kind - (int)y->kind;
}

Account *account_read(const char *path, bool keep, GError **err)
{
    Account *a = g_new0(Account, 1);
    const TraceReader reader = {
        .event = on_event,
        .loss = on_loss,
        .opaque = a,
    };

    a->path = g_strdup(path);
    a->keep = keep;
    a->streams = g_ptr_array_new_with_free_func(stream_free);
    a->channels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                        g_free);
    a->problems = g_ptr_array_new_with_free_func(g_free);
    a->traces = trace_read(path, &reader, err);
    if (a->traces < 0) {
        account_free(a);
        return NULL;
    }
    g_ptr_array_sort(a->streams, by_stream);
    if (a->reported > REPORTED_MAX) {
        account_problem(a, "%u more of these", a->reported - REPORTED_MAX);
    }
    return a;
}

void account_free(Account *a)
{
    if (!a) {
        return;
    }
    g_ptr_array_unref(a->streams);
    g_ptr_array_unref(a->problems);
    g_hash_table_destroy(a->channels);
    g_free(a->path);
    g_free(a);
}
