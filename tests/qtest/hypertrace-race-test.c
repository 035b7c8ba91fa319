/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test producers that write while the device reads
 *
 * The stream RAM is a file that this test maps.  Threads of the test write
 * events to it at full speed, as vCPUs would, while the main thread sends
 * control messages.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define STREAMS 4
#define SIZE 4096u
#define EVENT 12u

/*
 * Producer: a thread that writes events
 * @spite: overwrite a random word after every @spite events; 0: never
 */
typedef struct Producer {
    QHtStream s;
    struct ht_ring_control *ring;
    uint8_t *packets;
    uint32_t nr_packets;
    uint32_t id;
    bool overwrite;
    unsigned spite;
    uint32_t seed;
    bool stop;
    GThread *thread;
} Producer;

typedef struct Race {
    QHt *h;
    char *file;
    uint8_t *ram;
    size_t ram_size;
    uint32_t id;
    Producer p[STREAMS];
} Race;

static void setup(Race *r, const char *channel, uint32_t packets,
                  const char *more)
{
    size_t ring = HT_PAGE + packets * SIZE;
    g_autofree char *extra = NULL, *props = NULL;
    int fd;

    memset(r, 0, sizeof(*r));
    r->ram_size = qht_ram_size(STREAMS, ring);
    fd = g_file_open_tmp("hypertrace-ram-XXXXXX", &r->file, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, r->ram_size), ==, 0);
    r->ram = mmap(NULL, r->ram_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0);
    g_assert_true(r->ram != MAP_FAILED);
    close(fd);
    extra = g_strdup_printf("-object memory-backend-file,id=ram,share=on,"
                            "mem-path=%s,size=%zu", r->file, r->ram_size);
    props = g_strdup_printf("channel=%s,streams=%d,packet-size=%u,packets=%u,"
                            "memdev=ram,flush-ms=1%s", channel, STREAMS, SIZE,
                            packets, more);
    r->h = qht_boot("pc", "null", props, extra);
    g_assert_cmpuint(r->h->caps.ring_stride, ==,
                     ROUND_UP(ring, HT_MAP_ALIGN));
    r->id = qht_register_number(r->h, "number");
}

static void teardown(Race *r)
{
    qht_quit(r->h);
    munmap(r->ram, r->ram_size);
    unlink(r->file);
    g_free(r->file);
}

static void publish(Producer *p)
{
    qatomic_store_release(&p->ring->guest.head,
                          cpu_to_le64(p->s.packet * SIZE + p->s.offset));
}

static struct ht_packet *slot(Producer *p)
{
    return (struct ht_packet *)(p->packets +
                                p->s.packet % p->nr_packets * SIZE);
}

static bool begin_packet(Producer *p)
{
    struct ht_packet *k = slot(p);

    if (p->overwrite) {
        qatomic_set(&p->ring->guest.opening, cpu_to_le64(p->s.packet));
        /*
         * Store `opening` before the slot.  Pairs with the consumer's acquire
         * fence between its copy of the slot and its load of `opening`.
         */
        smp_wmb();
    } else if (p->s.packet - le64_to_cpu(qatomic_load_acquire(
                   &p->ring->host.tail)) >= p->nr_packets) {
        p->s.lost++;
        qatomic_set(&p->ring->guest.lost, cpu_to_le64(p->s.lost));
        return false;
    }
    *k = (struct ht_packet) {
        .magic = cpu_to_le32(HT_PACKET_MAGIC),
        .stream = cpu_to_le32(p->s.index),
        .instance = cpu_to_le64(p->s.instance),
        .seq = cpu_to_le64(p->s.packet),
        .clock_begin = cpu_to_le64(p->s.clock),
        .events = cpu_to_le64(p->s.events),
        .lost = cpu_to_le64(p->s.lost),
    };
    p->s.offset = sizeof(*k);
    return true;
}

static void produce_one(Producer *p)
{
    uint8_t *e;

    p->s.clock += 50;
    if (p->s.offset == 0 && !begin_packet(p)) {
        return;
    }
    e = (uint8_t *)slot(p) + p->s.offset;
    stl_le_p(e, p->id | (uint32_t)p->s.clock << 8);
    stq_le_p(e + 4, p->s.events);
    p->s.offset += EVENT;
    p->s.events++;
    if (p->s.offset + EVENT > SIZE) {
        stq_le_p(&slot(p)->clock_end, p->s.clock);
        stl_le_p(&slot(p)->content, p->s.offset);
        p->s.packet++;
        p->s.offset = 0;
    }
    publish(p);
}

/*
 * Overwrite a random word of the control page or of the packets, while the
 * device may be reading it
 */
static void spite(Producer *p)
{
    uint32_t at;

    p->seed = p->seed * 1664525 + 1013904223;
    at = p->seed >> 8;
    if (p->seed & 0x80) {
        at = at % sizeof(struct ht_ring_control) & ~7u;
        qatomic_set((uint64_t *)((uint8_t *)p->ring + at),
                    (uint64_t)p->seed << (at & 31));
    } else {
        at = at % (p->nr_packets * SIZE) & ~3u;
        qatomic_set((uint32_t *)(p->packets + at), p->seed);
    }
}

static void *produce(void *opaque)
{
    Producer *p = opaque;
    unsigned n = 0;

    while (!qatomic_read(&p->stop)) {
        produce_one(p);
        if (p->spite && ++n % p->spite == 0) {
            spite(p);
        }
    }
    return NULL;
}

static void producer_start(Race *r, unsigned i, unsigned nonsense)
{
    Producer *p = &r->p[i];
    uint8_t *ring = r->ram + r->h->caps.ring_offset +
                    i * r->h->caps.ring_stride;

    memset(p, 0, sizeof(*p));
    qht_stream_open(&p->s, r->h, i);
    p->ring = (struct ht_ring_control *)ring;
    p->packets = ring + HT_PACKETS_OFFSET;
    p->nr_packets = r->h->caps.packets;
    p->id = r->id;
    p->overwrite = r->h->caps.mode == HT_MODE_OVERWRITE;
    p->spite = nonsense;
    p->seed = g_test_rand_int();
    p->thread = g_thread_new("producer", produce, p);
}

static void producer_stop(Producer *p)
{
    qatomic_set(&p->stop, true);
    g_thread_join(p->thread);
}

static void flush_all(QHt *h)
{
    struct ht_msg_stream m = { .stream = cpu_to_le32(HT_STREAM_ANY) };

    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_FLUSH, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
}

/*
 * While producers write, each flush ends.  The device has then counted each
 * event that was committed before the flush, as consumed or as dropped.  After
 * the close of the streams, it has counted each event once.
 */
static void run(Race *r)
{
    uint64_t rounds = g_test_quick() ? 50 : 1000, before[STREAMS], n;
    unsigned i;

    for (i = 0; i < STREAMS; i++) {
        producer_start(r, i, 0);
    }
    for (n = 0; n < rounds; n++) {
        for (i = 0; i < STREAMS; i++) {
            before[i] = qatomic_read(&r->p[i].s.events);
            /*
             * The producer has counted its last event, but may not have
             * committed it yet.
             */
            before[i] -= before[i] > 0;
        }
        if (r->h->caps.channel == HT_CHANNEL_HYPERCALL) {
            qht_doorbell(&r->p[n % STREAMS].s);
        }
        flush_all(r->h);
        for (i = 0; i < STREAMS; i++) {
            g_assert_cmpuint(qht_stream_stat(r->h, i, "events") +
                             qht_stream_stat(r->h, i, "dropped"), >=,
                             before[i]);
        }
    }
    for (i = 0; i < STREAMS; i++) {
        Producer *p = &r->p[i];

        producer_stop(p);
        qht_stream_close(&p->s);
        g_test_message("stream %u: %" PRIu64 " events, %" PRIu64 " lost, %"
                       PRIu64 " overwritten", i, p->s.events, p->s.lost,
                       qht_stream_stat(r->h, i, "dropped"));
        g_assert_cmpuint(qht_stream_stat(r->h, i, "events") +
                         qht_stream_stat(r->h, i, "dropped"), ==,
                         p->s.events);
        g_assert_cmpuint(qht_stream_stat(r->h, i, "lost"), ==, p->s.lost);
    }
    g_assert_cmpuint(qht_stat(r->h, "errors"), ==, 0);
}

static void test_discard(const void *channel)
{
    Race r;

    setup(&r, channel, 4, "");
    run(&r);
    teardown(&r);
}

static void test_overwrite(const void *channel)
{
    Race r;

    setup(&r, channel, 8, ",mode=overwrite");
    run(&r);
    teardown(&r);
}

/* A reset or a takeover closes streams although their producers still write. */
static void test_taken(const void *channel)
{
    struct ht_msg m = { 0 };
    unsigned round, i;
    Race r;

    setup(&r, channel, 4, ",mode=overwrite");
    for (round = 0; round < 15; round++) {
        for (i = 0; i < STREAMS; i++) {
            producer_start(&r, i, 0);
        }
        if (round % 3 == 0) {
            qtest_system_reset(r.h->qts);
            qht_restart(r.h);
        } else {
            g_assert_cmpuint(qht_call(r.h, HT_MSG_TAKEOVER, &m, sizeof(m)),
                             ==, HT_STATUS_OK);
        }
        for (i = 0; i < STREAMS; i++) {
            QHT_WAIT(!qht_stream_flag(r.h, i, "open"));
        }
        for (i = 0; i < STREAMS; i++) {
            producer_stop(&r.p[i]);
            qht_stream_forget(&r.p[i].s);
        }
    }
    g_assert_cmpuint(qht_stat(r.h, "errors"), ==, 0);
    teardown(&r);
}

/*
 * Two producers that also write random words do not disturb the two other
 * producers.
 */
static void test_spite(const void *channel)
{
    unsigned round, i, stopped = 0;
    Race r;

    setup(&r, channel, 4, g_test_rand_bit() ? "" : ",mode=overwrite");
    producer_start(&r, 0, 0);
    producer_start(&r, 1, 0);
    for (round = 0; round < 20; round++) {
        for (i = 2; i < STREAMS; i++) {
            producer_start(&r, i, 1 << (round % 10));
        }
        for (i = 0; i < 5; i++) {
            qht_doorbell(&r.p[2].s);
            qht_doorbell(&r.p[3].s);
            flush_all(r.h);
        }
        for (i = 2; i < STREAMS; i++) {
            producer_stop(&r.p[i]);
            stopped += qht_stream_flag(r.h, i, "stopped");
            qht_stream_close(&r.p[i].s);
        }
    }
    g_assert_cmpuint(stopped, >, 0);
    g_assert_cmpuint(qht_stat(r.h, "errors"), >=, stopped);
    for (i = 0; i < 2; i++) {
        producer_stop(&r.p[i]);
        qht_stream_close(&r.p[i].s);
        g_assert_false(qht_stream_flag(r.h, i, "stopped"));
        g_assert_cmpuint(qht_stream_stat(r.h, i, "events") +
                         qht_stream_stat(r.h, i, "dropped"), ==,
                         r.p[i].s.events);
    }
    teardown(&r);
}

/* The device can be unplugged while producers write; QEMU still works. */
static void test_unplug(const void *channel)
{
    unsigned i;
    Race r;

    setup(&r, channel, 4, "");
    for (i = 0; i < STREAMS; i++) {
        producer_start(&r, i, 0);
    }
    qht_unplug(r.h);
    qht_wait_deleted(r.h);
    for (i = 0; i < STREAMS; i++) {
        producer_stop(&r.p[i]);
        qht_stream_forget(&r.p[i].s);
    }
    teardown(&r);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "discard", test_discard, QHT_RINGS },
        { "overwrite", test_overwrite, QHT_RINGS },
        { "taken", test_taken, QHT_RINGS },
        { "spite", test_spite, QHT_RINGS },
        { "unplug", test_unplug, QHT_RINGS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("race", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
