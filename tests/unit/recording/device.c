/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write the trace of a guest's device as the CTF backend would have written it,
 * for test_merge.py
 */
#include <glib/gstdio.h>

#include "backend-testlib.h"
#include "hypertrace/ctf-writer.h"
#include "recording-make.h"

#define BOUND       3000        /* maximum error of an event's date in ns */

struct Device {
    HtClassTable *classes;
    HtClass *think, *odd;
    HtCtfWriter *w;
    HtStreamInfo info[2];
    GByteArray *data;
    uint64_t begin_ns, end_ns, discarded;
    uint32_t events;
};

static void check(int status)
{
    if (status) {
        fprintf(stderr, "recording-device: %s\n", g_strerror(-status));
        exit(1);
    }
}

static void write_run(Device *d, unsigned stream, unsigned flags)
{
    HtRun run = {
        .stream = &d->info[stream],
        .flags = flags,
        .events = d->events,
        .data = d->data->data,
        .size = d->data->len,
        .begin_ns = d->begin_ns,
        .end_ns = d->end_ns,
        .counter = d->begin_ns,
        .discarded = d->discarded,
    };

    check(ht_ctf_writer_run(d->w, &run));
    g_byte_array_set_size(d->data, 0);
    d->events = 0;
}

static void put_event(Device *d, const HtClass *c, uint64_t ns)
{
    if (!d->events) {
        d->begin_ns = d->end_ns = ns;
    }
    ht_run_put_header(d->data, c->id, ns, d->end_ns);
    d->end_ns = ns;
    d->events++;
}

static void put(Device *d, const void *data, size_t size)
{
    g_byte_array_append(d->data, data, size);
}

Device *device_new(const char *dir, uint64_t ns)
{
    static const HtCtfInfo info = {
        .vm_name = "pong\"\033",
        .device = "ht0",
        .channel = "shm",
        .host_boot = "test",
        .uuid = "0123456789abcde",
        .clock_uuid = "fedcba987654321",
        .clock_offset_ns = INT64_C(1700000000000000000) - 5000000000,
        .precision_ns = BOUND,
    };
    Device *d = g_new0(Device, 1);
    unsigned i;

    g_mkdir(dir, 0700);
    d->data = g_byte_array_new();
    d->classes = ht_class_table_new();
    d->think = tl_class(d->classes, "think", "u32:n u64:truth");
    d->odd = tl_class(d->classes, "odd", "text:some text:what s16:minus"
                      " f32:half seq-u8:bytes text:long arr-s32-2:pair"
                      " u64:last");
    check(ht_ctf_writer_new(dir, "ht0", &info, 2, &d->w));
    check(ht_ctf_writer_class(d->w, d->think));
    check(ht_ctf_writer_class(d->w, d->odd));
    d->begin_ns = d->end_ns = ns;
    for (i = 0; i < 2; i++) {
        d->info[i] = (HtStreamInfo) {
            .index = i, .vcpu = i ? 1 : -1, .instance = i + 7,
        };
        write_run(d, i, HT_RUN_OPEN);
    }
    return d;
}

void device_think(Device *d, uint64_t host, uint32_t n)
{
    /*
     * date each event wrongly by up to BOUND, but never before the previous
     * one
     */
    uint64_t ns = MAX(host + n * 997 % (2 * BOUND) - BOUND, d->end_ns);
    uint64_t truth = GUINT64_TO_LE(host);

    n = GUINT32_TO_LE(n);
    put_event(d, d->think, ns);
    put(d, &n, sizeof(n));
    put(d, &truth, sizeof(truth));
    if (d->data->len > 16384) {
        write_run(d, 0, 0);
    }
}

/*
 * Put an event "odd": it has the text @some, a text with terminal controls, and
 * a text of maximum length.
 */
static void put_odd(Device *d, uint64_t ns, const char *some)
{
    static const char what[] = "\033[2J</script>\"'&\001\377x";
    static const uint8_t rest[] = { 3, 0, 170, 187, 204 };
    uint16_t len = GUINT16_TO_LE(strlen(some));
    int16_t minus = GINT16_TO_LE(-2);
    int32_t pair[2] = { GINT32_TO_LE(-1), GINT32_TO_LE(1) };
    g_autofree char *text = g_strnfill(65535, 'x');
    uint64_t last = 0;
    float half = 0.5;

    put_event(d, d->odd, ns);
    put(d, &len, 2);
    put(d, some, strlen(some));
    len = GUINT16_TO_LE(sizeof(what) - 1);
    put(d, &len, 2);
    put(d, what, sizeof(what) - 1);
    put(d, &minus, 2);
    put(d, &half, 4);
    put(d, rest, sizeof(rest));
    len = 65535;
    put(d, &len, 2);
    put(d, text, 65535);
    put(d, pair, 8);
    put(d, &last, 8);
}

static void free_device(Device *d)
{
    ht_ctf_writer_free(d->w);
    ht_class_table_free(d->classes);
    g_byte_array_unref(d->data);
    g_free(d);
}

void device_end_quiet(Device *d)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        d->discarded = i ? 5 : 0;
        write_run(d, i, HT_RUN_CLOSE);
    }
    free_device(d);
}

void device_end(Device *d)
{
    unsigned i;

    write_run(d, 0, 0);
    d->discarded = 5;
    put_odd(d, d->end_ns + BOUND, "some");
    put_odd(d, d->end_ns + BOUND, "");
    write_run(d, 1, HT_RUN_CUT);
    for (i = 0; i < 2; i++) {
        d->begin_ns = d->end_ns;
        d->discarded = i ? 5 : 0;
        write_run(d, i, HT_RUN_CLOSE);
    }
    free_device(d);
}
