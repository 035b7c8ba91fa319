/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "compare.h"
#include "report.h"

static const char *kind_name(TraceKind kind)
{
    return kind == TRACE_CTF ? "ctf" : "lttng";
}

static void text_latency(const Latency *l)
{
    if (l->count) {
        printf("  %10.1f  %10.1f", latency_percentile(l, 50) / 1e3,
               latency_percentile(l, 99) / 1e3);
    } else {
        printf("  %10s  %10s", "-", "-");
    }
}

void report_text(const Account *a)
{
    unsigned i, j;

    printf("%s: %d trace%s", a->path, a->traces, a->traces == 1 ? "" : "s");
    if (a->discarded || a->discarded_packets || a->unknown) {
        printf("; LTTng discarded %s%" PRIu64 " events, %" PRIu64 " packets",
               a->unknown ? "at least " : "", a->discarded,
               a->discarded_packets);
    }
    printf("\n%-16s %6s %5s %-16s %10s %8s %8s  %10s  %10s\n", "device",
           "stream", "trace", "class", "recorded", "altered", "missing",
           "median us", "99% us");
    for (i = 0; i < a->streams->len; i++) {
        const Stream *s = a->streams->pdata[i];

        for (j = 0; j < s->rows->len; j++) {
            const Row *r = s->rows->pdata[j];

            printf("%-16s %6" PRIu32 " %5s %-16s %10" PRIu64 " ", s->device,
                   s->index, kind_name(s->kind), r->name, r->recorded);
            if (r->checked) {
                printf("%8" PRIu64, r->altered);
            } else {
                printf("%8s", "-");
            }
            printf(" %8s", "");
            text_latency(&r->latency);
            printf("\n");
        }
        printf("%-16s %6" PRIu32 " %5s %-16s %10" PRIu64 " %8" PRIu64
               " %8" PRIu64, s->device, s->index, kind_name(s->kind), "all",
               s->recorded, s->altered, account_missing(s));
        text_latency(&s->latency);
        printf("\n");
    }
}

void report_differences(const GPtrArray *differences)
{
    unsigned i;

    printf("%-16s %6s %10s %12s %12s\n", "device", "stream", "same",
           "only first", "only second");
    for (i = 0; i < differences->len; i++) {
        const Difference *d = differences->pdata[i];

        printf("%-16s %6" PRIu32 " %10" PRIu64 " %12" PRIu64 " %12" PRIu64
               "\n", d->device, d->index, d->same, d->only_a, d->only_b);
    }
}

static void json_string(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            printf("\\%c", *s);
        } else if ((unsigned char)*s < ' ') {
            printf("\\u%04x", *s);
        } else {
            putchar(*s);
        }
    }
    putchar('"');
}

static void json_key(const char *key)
{
    printf(", \"%s\": ", key);
}

static void json_u64(const char *key, uint64_t v)
{
    json_key(key);
    printf("%" PRIu64, v);
}

static void json_latency(const Latency *l)
{
    json_key("latency");
    if (l->count == 0) {
        printf("null");
        return;
    }
    printf("{\"count\": %" PRIu64 ", \"median_ns\": %" PRIu64
           ", \"p99_ns\": %" PRIu64 ", \"min_ns\": %" PRId64
           ", \"max_ns\": %" PRId64 ", \"negative\": %" PRIu64 "}", l->count,
           latency_percentile(l, 50), latency_percentile(l, 99), l->min_ns,
           l->max_ns, l->negative);
}

static void json_stream(const Stream *s)
{
    unsigned i;

    printf("{\"device\": ");
    json_string(s->device);
    json_u64("stream", s->index);
    json_u64("instance", s->instance);
    json_key("trace");
    json_string(kind_name(s->kind));
    json_u64("recorded", s->recorded);
    json_u64("altered", s->altered);
    json_u64("sequenced", s->sequenced);
    json_u64("first_seq", s->first_seq);
    json_u64("last_seq", s->last_seq);
    json_u64("missing", account_missing(s));
    json_u64("duplicates", s->duplicates);
    json_u64("disordered", s->disordered);
    json_u64("backward", s->backward);
    json_u64("discarded", s->discarded);
    json_latency(&s->latency);
    json_key("classes");
    printf("[");
    for (i = 0; i < s->rows->len; i++) {
        const Row *r = s->rows->pdata[i];

        printf("%s{\"class\": ", i ? ", " : "");
        json_string(r->name);
        json_key("checked");
        printf(r->checked ? "true" : "false");
        json_u64("recorded", r->recorded);
        json_u64("altered", r->altered);
        json_latency(&r->latency);
        printf("}");
    }
    printf("]}");
}

static void json_account(const Account *a)
{
    GHashTableIter it;
    gpointer name, sum;
    bool first = true;
    unsigned i;

    printf("{\"path\": ");
    json_string(a->path);
    json_u64("traces", a->traces);
    json_u64("lttng_discarded", a->discarded);
    json_u64("lttng_discarded_packets", a->discarded_packets);
    json_key("lttng_discarded_exact");
    printf(a->unknown || a->discarded_packets ? "false" : "true");
    json_key("lttng_channels");
    printf("{");
    g_hash_table_iter_init(&it, a->channels);
    while (g_hash_table_iter_next(&it, &name, &sum)) {
        printf("%s", first ? "" : ", ");
        json_string(name);
        printf(": %" PRIu64, *(uint64_t *)sum);
        first = false;
    }
    printf("}");
    json_key("streams");
    printf("[");
    for (i = 0; i < a->streams->len; i++) {
        printf("%s", i ? ", " : "");
        json_stream(a->streams->pdata[i]);
    }
    printf("]");
    json_key("problems");
    printf("[");
    for (i = 0; i < a->problems->len; i++) {
        printf("%s", i ? ", " : "");
        json_string(a->problems->pdata[i]);
    }
    printf("]}");
}

void report_json(const GPtrArray *accounts, const GPtrArray *differences,
                 bool ok)
{
    unsigned i;

    printf("{\"tool\": \"ht-verify\", \"ok\": %s, \"inputs\": [",
           ok ? "true" : "false");
    for (i = 0; i < accounts->len; i++) {
        printf("%s", i ? ", " : "");
        json_account(accounts->pdata[i]);
    }
    printf("], \"differences\": ");
    if (!differences) {
        printf("null}\n");
        return;
    }
    printf("[");
    for (i = 0; i < differences->len; i++) {
        const Difference *d = differences->pdata[i];

        printf("%s{\"device\": ", i ? ", " : "");
        json_string(d->device);
        json_u64("stream", d->index);
        json_u64("same", d->same);
        json_u64("only_first", d->only_a);
        json_u64("only_second", d->only_b);
        printf("}");
    }
    printf("]}\n");
}
