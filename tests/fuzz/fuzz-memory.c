/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target memory: the memory-only transport as a whole.  The guest writes
 * any word of the memory and sends messages of all types, between the host's
 * polls and before the host's atomic loads.  Hosts are killed, and other hosts
 * take over the memory.
 *
 * With each host, delivered runs are well-formed, and those of a stream never
 * go back in time; each instance of a stream has one opening and one closing
 * run; a poll ends; the server's counter of events equals the sum of the runs'
 * events.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/memory.h"
#include <sys/mman.h>
#include "fuzz.h"

#define SIZE        HT_MEMORY_SIZE_MIN
#define PACKET      4096
#define PACKETS     2
#define POLLS_MAX   64
#define HOSTS_MAX   4

typedef struct Fuzz {
    HtMemory *m;
    HtMemoryConfig cfg;
    int fd;
    /*
     * how far the previous host has recorded its streams with odd indexes, as
     * recorded() tells the next host
     */
    HtRecorded recorded;
    uint8_t *base;
    const struct ht_caps *caps;
    uint64_t events;
    uint64_t instance[HT_STREAMS_MAX];
    uint64_t last_ns[HT_STREAMS_MAX];
    bool open[HT_STREAMS_MAX];
    /* the part of the input that chooses the guest's actions during a poll */
    FuzzInput race;
    bool in_poll;
} Fuzz;

static Fuzz *racing;

static void check_events(Fuzz *f, const HtRun *run)
{
    uint32_t events = 0;
    HtRunIter it;
    HtEvent ev;

    if (!run->events) {
        return;
    }
    ht_run_iter_init(&it, run, ht_server_classes(ht_memory_server(f->m)));
    while (ht_run_next(&it, &ev)) {
        g_assert_nonnull(ev.cls);
        g_assert_cmpuint(ev.cls->id, <=, run->classes);
        g_assert_cmpuint(ev.ns, >=, f->last_ns[run->stream->index]);
        f->last_ns[run->stream->index] = ev.ns;
        events++;
    }
    g_assert_cmpuint(events, ==, run->events);
    f->events += events;
}

static void deliver(void *opaque, const HtRun *run)
{
    Fuzz *f = opaque;
    uint32_t i = run->stream->index;

    g_assert_cmpuint(i, <, f->caps->streams);
    if (run->flags & HT_RUN_OPEN) {
        g_assert_false(f->open[i]);
        g_assert_cmpuint(run->stream->instance, >, f->instance[i]);
        f->open[i] = true;
        f->instance[i] = run->stream->instance;
        f->last_ns[i] = run->begin_ns;
    }
    g_assert_true(f->open[i]);
    g_assert_cmpuint(run->begin_ns, >=, f->last_ns[i]);
    g_assert_cmpuint(run->end_ns, >=, run->begin_ns);
    check_events(f, run);
    if (run->flags & HT_RUN_CLOSE) {
        f->open[i] = false;
    }
}

/* Write 1 or 8 bytes at a place that the host reads or writes, or anywhere */
static void scribble(Fuzz *f, FuzzInput *in)
{
    uint8_t how = fuzz_u8(in);
    uint64_t ring = f->caps->ring_offset +
                    fuzz_u8(in) % f->caps->streams * f->caps->ring_stride;
    uint64_t v = fuzz_number(in), at;

    switch (how & 7) {
    case 0:
        at = fuzz_bits(in, 3);
        break;
    case 1:
        at = fuzz_bits(in, 2) % sizeof(struct ht_memory);
        break;
    case 2:
        at = f->caps->mailbox_offset + fuzz_u8(in);
        break;
    case 3:
        at = ring + fuzz_u8(in) % 40;
        break;
    case 4:
        at = ring + HT_HOST_LINE_OFFSET + fuzz_u8(in) % 40;
        break;
    case 5:
        /* change the first streams of the directory, or its first classes */
        at = f->caps->mailbox_offset + 2 * HT_MAILBOX_SIZE + fuzz_u8(in) +
             (how & 16 ? HT_MAP_ALIGN : 0);
        break;
    default:
        at = ring + HT_PACKETS_OFFSET + fuzz_bits(in, 2) % (PACKET * PACKETS);
    }
    at = MIN(at, SIZE - sizeof(v));
    memcpy(f->base + at, &v, how & 8 ? 1 : sizeof(v));
}

/*
 * Write the first packet of a stream, with whole events of class 1, each with a
 * payload of 64 bits, and store the head after them
 */
static void emit(Fuzz *f, FuzzInput *in)
{
    uint32_t stream = fuzz_u8(in) % f->caps->streams, n = fuzz_u8(in) % 64, i;
    struct ht_ring_control *ring = (struct ht_ring_control *)
        (f->base + f->caps->ring_offset + stream * f->caps->ring_stride);
    uint8_t *p = (uint8_t *)ring + HT_PACKETS_OFFSET;
    struct ht_packet h = {
        .magic = ht_le32(HT_PACKET_MAGIC),
        .stream = ht_le32(stream),
        .instance = ring->host.instance,
    };

    memcpy(p, &h, sizeof(h));
    for (i = 0; i < n; i++) {
        ht_put_le32(p + sizeof(h) + i * 12, 1 | i << 8);
        ht_put_le64(p + sizeof(h) + i * 12 + 4, i);
    }
    ht_atomic_store_release(&ring->guest.head, ht_le64(sizeof(h) + n * 12));
}

static void send_bytes(Fuzz *f, const void *msg, uint32_t size)
{
    struct ht_memory *page = (struct ht_memory *)f->base;

    memcpy(f->base + f->caps->mailbox_offset, msg, size);
    ht_atomic_set(&page->bytes, ht_le32(size));
    ht_atomic_set(&page->to, page->caps.epoch);
    ht_atomic_store_release(&page->go, page->go + 1);
}

static void send_class(Fuzz *f, FuzzInput *in)
{
    uint8_t buf[64] = { };
    struct ht_msg_class *m = (struct ht_msg_class *)buf;
    struct ht_msg_field field = { .kind = HT_FIELD_U64, .name_len = 1 };
    uint32_t size = sizeof(*m) + 1 + sizeof(field) + 1;

    m->h.type = ht_le16(HT_MSG_CLASS_REGISTER);
    m->h.size = ht_le32(size);
    m->nr_fields = 1;
    m->name_len = 1;
    m->data[0] = 'a' + fuzz_u8(in) % 4;
    memcpy(m->data + 1, &field, sizeof(field));
    m->data[1 + sizeof(field)] = 'n';
    send_bytes(f, buf, size);
}

/*
 * Send a message of a type that the input chooses, with the size of this type.
 * The input also chooses the bytes after the header; the other members of the
 * header are 0.
 */
static void send_message(Fuzz *f, FuzzInput *in)
{
    static const struct {
        uint16_t type;
        uint16_t size;
    } kinds[] = {
        { HT_MSG_STREAM_OPEN, sizeof(struct ht_msg_open) },
        { HT_MSG_STREAM_CLOSE, sizeof(struct ht_msg_stream) },
        { HT_MSG_STREAM_FLUSH, sizeof(struct ht_msg_stream) },
        { HT_MSG_TIME_SYNC, sizeof(struct ht_msg_time) },
        { HT_MSG_STATS, sizeof(struct ht_msg_stats) },
        { HT_MSG_DISCARDED, sizeof(struct ht_msg_discarded) },
        { HT_MSG_TAKEOVER, sizeof(struct ht_msg) },
        { HT_MSG_CLASS_LIST, sizeof(struct ht_msg_class) },
        { HT_MSG_ENABLED, sizeof(struct ht_msg_enabled) + 16 },
        { HT_MSG_SETTINGS, sizeof(struct ht_msg_settings) + 16 },
    };
    unsigned kind = fuzz_u8(in) % G_N_ELEMENTS(kinds), at;
    uint8_t buf[128] = { };
    struct ht_msg *h = (struct ht_msg *)buf;

    h->type = ht_le16(kinds[kind].type);
    h->size = ht_le32(kinds[kind].size);
    for (at = sizeof(*h); at < kinds[kind].size; at += 8) {
        uint8_t what = fuzz_u8(in);
        uint64_t v = what & 1 ? UINT64_MAX : what & 2 ? fuzz_number(in) :
                     what >> 2;

        memcpy(buf + at, &v, MIN(8, kinds[kind].size - at));
    }
    send_bytes(f, buf, kinds[kind].size);
}

static void act(Fuzz *f, FuzzInput *in)
{
    switch (fuzz_u8(in) % 4) {
    case 0:
        send_class(f, in);
        break;
    case 1:
        send_message(f, in);
        break;
    case 2:
        emit(f, in);
        break;
    default:
        scribble(f, in);
    }
}

/*
 * Called before the host's atomic loads and acquire fences
 * (shim/hypertrace/atomic.h): about every second time, the guest acts, as long
 * as @race has input.
 */
static void run_guest(void)
{
    Fuzz *f = racing;

    if (f && !f->in_poll && fuzz_more(&f->race) && fuzz_u8(&f->race) & 1) {
        /* Loads in act() must not call act() again. */
        f->in_poll = true;
        act(f, &f->race);
        f->in_poll = false;
    }
}

static void poll_once(Fuzz *f, FuzzInput *in)
{
    int64_t ns;

    f->race = fuzz_slice(in, fuzz_u8(in) % 32);
    racing = f;
    fuzz_guest = run_guest;
    ns = ht_memory_poll(f->m);
    fuzz_guest = NULL;
    racing = NULL;
    g_assert_cmpint(ns, >=, 0);
    g_assert_cmpint(ns, <=, HT_MEMORY_IDLE_NS);
}

/*
 * HtMemoryConfig.recorded: tell that the previous host has recorded a stream
 * with an odd index as far as f->recorded says.  For a stream with an even
 * index, tell that the previous host's recording is not known.
 */
static bool recorded(void *opaque, const HtStreamInfo *info, HtRecorded *r)
{
    Fuzz *f = opaque;

    *r = f->recorded;
    return info->index % 2;
}

static void end_host(Fuzz *f)
{
    struct ht_stats stats;
    uint32_t i;

    ht_server_close_all(ht_memory_server(f->m));
    for (i = 0; i < f->caps->streams; i++) {
        g_assert_false(f->open[i]);
    }
    g_assert_true(ht_server_stats(ht_memory_server(f->m), HT_STREAM_ANY,
                                  &stats));
    g_assert_cmpuint(stats.events, ==, f->events);
    ht_memory_free(f->m);
    f->m = NULL;
}

/*
 * Start a host: with @attach it takes over the memory as it is, else it
 * initializes the memory. Returns false if the host refuses the memory.
 */
static bool begin_host(Fuzz *f, bool attach)
{
    f->m = attach ? ht_memory_attach(f->fd, &f->cfg, NULL) :
                    ht_memory_create(f->fd, &f->cfg, NULL);
    if (!f->m) {
        return false;
    }
    f->events = 0;
    memset(f->instance, 0, sizeof(f->instance));
    memset(f->last_ns, 0, sizeof(f->last_ns));
    f->caps = ht_memory_caps(f->m);
    ht_memory_start(f->m);
    return true;
}

/*
 * Kill the host: end it, then restore the memory as it was before, which undoes
 * the writes of that end. Then start the next host; returns false if it refuses
 * the memory.
 */
static bool next_host(Fuzz *f, FuzzInput *in)
{
    g_autofree void *copy = g_memdup2(f->base, SIZE);

    end_host(f);
    memcpy(f->base, copy, SIZE);
    f->recorded = (HtRecorded) {
        .events = fuzz_number(in),
        .lost = fuzz_number(in),
        .end_ns = fuzz_number(in) % HT_TIME_MAX_NS,
    };
    return begin_host(f, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    g_autofree Fuzz *f = g_new0(Fuzz, 1);
    unsigned polls = 0, hosts = 0;
    uint8_t what;

    f->fd = ht_memory_memfd(SIZE, NULL);
    g_assert_cmpint(f->fd, >=, 0);
    f->cfg = (HtMemoryConfig) {
        .packet_size = PACKET,
        .packets = PACKETS,
        .mode = fuzz_u8(&in) & 1,
        .deliver = deliver,
        .recorded = recorded,
        .opaque = f,
    };
    f->base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    g_assert_true(f->base != MAP_FAILED);
    g_assert_true(begin_host(f, false));
    while (fuzz_more(&in) && polls < POLLS_MAX) {
        what = fuzz_u8(&in);
        if (what & 1) {
            polls++;
            poll_once(f, &in);
        } else if (what >= 0xf8 && hosts < HOSTS_MAX) {
            hosts++;
            if (!next_host(f, &in)) {
                break;
            }
        } else {
            act(f, &in);
        }
    }
    if (f->m) {
        end_host(f);
    }
    munmap(f->base, SIZE);
    close(f->fd);
    return 0;
}
