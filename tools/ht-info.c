/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-info: show the properties, the event classes and the counters of a
 * hypertrace device, and the host's times of this guest's vCPUs; see ht-info(1)
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hypertrace/port.h"
#include "ht-channel.h"

static int fail(const char *what, int r)
{
    fprintf(stderr, "ht-info: %s: %s\n", what, strerror(-r));
    return 1;
}

static void print_device(const struct ht_device *dev)
{
    const struct ht_caps *c = &dev->caps;

    printf("channel      %s\n", ht_channel_name(c->channel));
    printf("mapping      %s\n", dev->mapping);
    printf("mode         %s\n",
           c->mode == HT_MODE_OVERWRITE ? "overwrite" : "discard");
    printf("streams      %" PRIu32 ", each of %" PRIu32 " packets of %" PRIu32
           " bytes\n", c->streams, c->packets, c->packet_size);
    if (c->channel == HT_CHANNEL_HYPERCALL) {
        printf("batch        %" PRIu32 " events a doorbell\n", c->batch);
    }
    printf("flush        after %" PRIu32 " ms at the latest\n", c->flush_ms);
    if (c->clock_hz) {
        printf("clock        %" PRIu64 " Hz\n", c->clock_hz);
    } else {
        puts("clock        of unknown frequency");
    }
}

static const char *kind_name(uint8_t kind, uint8_t flags)
{
    static const char * const decimal[] = {
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64",
    };
    static const char * const hex[] = { "x8", "x16", "x32", "x64" };

    if (flags & HT_FIELD_HEX && kind >= HT_FIELD_U8 && kind <= HT_FIELD_U64) {
        return hex[kind - HT_FIELD_U8];
    }
    return kind >= HT_FIELD_U8 && kind <= HT_FIELD_F64 ?
           decimal[kind - HT_FIELD_U8] : "?";
}

static void print_field(const struct ht_msg_field *f, const uint8_t *name)
{
    switch (f->kind) {
    case HT_FIELD_TEXT:
        printf("(text, %.*s)", f->name_len, (const char *)name);
        break;
    case HT_FIELD_SEQUENCE:
        printf("(seq, %s, %.*s)", kind_name(f->elem, f->flags), f->name_len,
               (const char *)name);
        break;
    case HT_FIELD_ARRAY:
        if (f->flags & HT_FIELD_UTF8) {
            printf("(chars, %.*s, %u)", f->name_len, (const char *)name,
                   f->count);
            break;
        }
        printf("(array, %s, %.*s, %u)", kind_name(f->elem, f->flags),
               f->name_len, (const char *)name, f->count);
        break;
    default:
        if (f->flags & HT_FIELD_LABELS) {
            printf("(%s, %s, %.*s, %u labels)",
                   f->flags & HT_FIELD_BITS ? "flags" : "enum",
                   kind_name(f->kind, f->flags), f->name_len,
                   (const char *)name, f->count);
            break;
        }
        printf("(%s, %.*s)", kind_name(f->kind, f->flags), f->name_len,
               (const char *)name);
    }
}

/* Skip the labels of a field's values. Returns NULL if they are truncated. */
static const uint8_t *skip_labels(const struct ht_msg_field *f,
                                  const uint8_t *p, const uint8_t *end)
{
    unsigned i;

    for (i = 0; f->flags & HT_FIELD_LABELS && i < f->count; i++) {
        if (end - p < (ptrdiff_t)HT_LABEL_HEADER ||
            end - p - HT_LABEL_HEADER < p[8]) {
            return NULL;
        }
        p += HT_LABEL_HEADER + p[8];
    }
    return p;
}

/*
 * Print a class. Check all lengths in the reply, so that a wrong length does
 * not make this function read past the end of the reply.
 */
static int print_class(const struct ht_msg_class *m)
{
    const uint8_t *p = m->data, *end = (const uint8_t *)m + m->h.size;
    unsigned i;

    if (m->h.size < sizeof(*m) || end - p < m->name_len) {
        return -EIO;
    }
    printf("%5" PRIu32 "  %.*s", m->id, m->name_len, (const char *)p);
    p += m->name_len;
    for (i = 0; i < m->nr_fields; i++) {
        struct ht_msg_field f;

        if (end - p < (ptrdiff_t)sizeof(f)) {
            return -EIO;
        }
        memcpy(&f, p, sizeof(f));
        p += sizeof(f);
        if (end - p < f.name_len) {
            return -EIO;
        }
        fputs(i ? ", " : " ", stdout);
        print_field(&f, p);
        p = skip_labels(&f, p + f.name_len, end);
        if (!p) {
            return -EIO;
        }
    }
    putchar('\n');
    return 0;
}

static int print_classes(struct ht_device *dev)
{
    union {
        struct ht_msg_class m;
        uint8_t bytes[HT_MESSAGE_MAX];
    } u;
    uint32_t n;
    int r;

    puts("\n   id  class");
    for (n = 0; n < HT_CLASSES_MAX; n++) {
        memset(&u.m, 0, sizeof(u.m));
        u.m.h.type = HT_MSG_CLASS_LIST;
        u.m.h.size = sizeof(u.m);
        u.m.index = n;
        r = dev->ops->control(dev, &u.m.h, sizeof(u));
        if (r || u.m.h.status == HT_STATUS_NOENT) {
            break;
        }
        r = u.m.h.status == HT_STATUS_OK ? print_class(&u.m) : -EIO;
        if (r) {
            break;
        }
    }
    if (!r && !n) {
        puts("       none yet");
    }
    return r;
}

static void print_stats(const char *name, const struct ht_stats *s)
{
    printf("%6s %12" PRIu64 " %14" PRIu64 " %10" PRIu64 " %10" PRIu64
           " %10" PRIu64 " %7" PRIu64 "\n", name, s->events, s->bytes,
           s->lost, s->dropped, s->wakeups, s->errors);
}

static int print_all_stats(struct ht_device *dev)
{
    struct ht_stats s;
    char name[12];
    uint32_t i;
    int r;

    printf("\n%6s %12s %14s %10s %10s %10s %7s\n", "stream", "events",
           "bytes", "lost", "dropped", "wake-ups", "errors");
    for (i = 0; i < dev->caps.streams; i++) {
        r = ht_get_stats(dev, i, &s);
        if (r) {
            return r;
        }
        if (s.events || s.lost || s.dropped || s.errors) {
            snprintf(name, sizeof(name), "%" PRIu32, i);
            print_stats(name, &s);
        }
    }
    r = ht_get_stats(dev, HT_STREAM_ANY, &s);
    if (!r) {
        print_stats("all", &s);
    }
    return r;
}

static void print_vcpu(unsigned vcpu, const struct ht_host_stats *s)
{
    const uint64_t ns[] = {
        s->guest_ns, s->exits_ns, s->vmm_ns, s->halted_ns, s->waiting_ns,
        s->preempted_ns + s->woken_ns, s->machines_ns, s->tasks_ns, s->own_ns,
    };
    unsigned i;

    if (s->vcpu < 0) {
        printf("%6s", "all");
    } else {
        printf("%6u", vcpu);
    }
    for (i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
        printf(" %9" PRIu64, ns[i] / 1000000);
    }
    putchar('\n');
    for (i = 0; i < s->nr_exits; i++) {
        printf("       exit %-20s %12" PRIu64 " times %9" PRIu64 " ms\n",
               s->exits[i].name, s->exits[i].count, s->exits[i].ns / 1000000);
    }
}

/*
 * Copy the times of a vCPU; if the host is changing them, try once more after
 * 1 ms.
 */
static int read_host(const struct ht_device *dev, unsigned vcpu,
                     struct ht_host_stats *s)
{
    static const struct timespec pause = { .tv_nsec = 1000000 };
    int r = ht_host_stats(dev, vcpu, s);

    if (r == -EAGAIN) {
        nanosleep(&pause, NULL);
        r = ht_host_stats(dev, vcpu, s);
    }
    return r;
}

/* Print the host's times of this guest's vCPUs, if the host provides them. */
static void print_host(const struct ht_device *dev)
{
    struct ht_host_stats s;
    bool any = false;
    unsigned i;
    int r;

    for (i = 0; i < HT_HOST_VCPUS; i++) {
        r = read_host(dev, i, &s);
        if (r == -ENODATA) {
            continue;
        }
        if (r == -EPROTO) {
            puts("\nThe host's times of the vCPUs have another version.");
            return;
        }
        if (!any) {
            printf("\nhost's times of the vCPUs in ms\n%6s %9s %9s %9s %9s %9s"
                   " %9s %9s %9s %9s\n", "vCPU", "guest", "exits", "VMM",
                   "halted", "waiting", "stolen", "machines", "tasks", "own");
            any = true;
        }
        if (r) {
            printf("%6u %s\n", i, r == -EAGAIN ?
                   "the host has not finished writing them" :
                   "a value is out of its range");
        } else {
            print_vcpu(i, &s);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "help", no_argument, NULL, 'h' },
        { }
    };
    struct ht_device *dev;
    int c, r;

    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (c != 'h') {
            return 2;
        }
        puts("usage: ht-info [device]\n\n"
             "  device      /dev/hypertraceN or a PCI address");
        return 0;
    }
    if (argc - optind > 1) {
        fputs("ht-info: give at most one device; see --help\n", stderr);
        return 2;
    }
    r = ht_open(argv[optind], &dev);
    if (r) {
        return fail(argv[optind] ? argv[optind] : "no device", r);
    }
    print_device(dev);
    r = print_classes(dev);
    if (!r) {
        r = print_all_stats(dev);
    }
    if (!r) {
        print_host(dev);
    }
    ht_close(dev);
    return r ? fail("cannot query the device", r) :
               fflush(stdout) != 0;
}
