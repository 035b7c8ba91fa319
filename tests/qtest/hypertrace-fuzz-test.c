/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: perform random actions as a guest
 *
 * An episode starts a QEMU and performs ROUNDS rounds of random actions:
 * accesses to registers and configuration, messages with wrong details,
 * virtqueues and rings with random contents, resets at any time.  In two of
 * three rounds a thread rewrites the stream RAM or the buffers that the device
 * reads.
 *
 * Promise: QEMU survives, and after each round the device, once reset, works
 * for a correct driver.
 *
 * HT_FUZZ_SEED: seed of the first episode; each further one adds 1
 * HT_FUZZ_SECONDS: time for all channels; by default one episode for each
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "qemu/units.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "hw/pci/pci_regs.h"
#include "standard-headers/linux/virtio_config.h"

#define STREAMS 3
#define PACKET 4096u
#define PACKETS 4u
#define RAM (64 * MiB)
#define ARENA (256 * KiB)

/* Number of actions between two checks that the device works */
#define ROUND 150
#define ROUNDS 12

/**
 * Fuzz: an episode
 * @file: file of the memory @mem
 * @mem: stream RAM or, if channel=virtio, the guest's RAM
 * @arena: address of ARENA bytes of guest RAM for buffers
 * @thread: a thread that rewrites memory
 * @race_at, @race_size: range of @mem that the thread rewrites
 * @racing: the thread should rewrite memory
 * @quiet: the thread has seen that @racing is false
 * @stop: the thread should end
 */
typedef struct Fuzz {
    QHt *h;
    GRand *rand;
    char *file;
    uint8_t *mem;
    size_t mem_size;
    /* offset in @mem of the stream RAM's directory; UINT64_MAX with virtio */
    uint64_t directory;
    uint64_t arena;
    GThread *thread;
    uint32_t thread_seed;
    size_t race_at;
    size_t race_size;
    bool racing;
    bool quiet;
    bool stop;
} Fuzz;

static uint64_t actions;

static uint32_t below(Fuzz *f, uint32_t n)
{
    return g_rand_int_range(f->rand, 0, n);
}

static uint64_t any64(Fuzz *f)
{
    uint64_t v = (uint64_t)g_rand_int(f->rand) << 32 | g_rand_int(f->rand);

    switch (below(f, 4)) {
    case 0:
        return v >> below(f, 64);
    case 1:
        return below(f, 16);
    case 2:
        return (UINT64_C(1) << below(f, 64)) + below(f, 3) - 1;
    default:
        return v;
    }
}

static void *rewrite(void *opaque)
{
    Fuzz *f = opaque;
    uint32_t n = f->thread_seed;

    while (!qatomic_read(&f->stop)) {
        unsigned i;

        if (!qatomic_read(&f->racing)) {
            /* pairs with the load in race_stop() */
            qatomic_store_release(&f->quiet, true);
            g_usleep(100);
            continue;
        }
        for (i = 0; i < 64; i++) {
            uint64_t at;

            n = n * 1664525 + 1013904223;
            at = f->race_at + (n >> 7) % f->race_size / 4 * 4;
            /*
             * The device does not read the stream RAM's directory back: change
             * a word of the rings instead.
             */
            if (at >= f->directory && at < QHT_RING_OFFSET) {
                at = QHT_RING_OFFSET + at % (f->mem_size - QHT_RING_OFFSET);
            }
            qatomic_set((uint32_t *)(f->mem + at), n & 0x40 ? n :
                        *(uint32_t *)(f->mem + at) ^ 1u << (n >> 27));
        }
        g_usleep(20);
    }
    return NULL;
}

static void race_start(Fuzz *f)
{
    qatomic_set(&f->quiet, false);
    qatomic_set(&f->racing, true);
}

static void race_stop(Fuzz *f)
{
    qatomic_set(&f->racing, false);
    QHT_WAIT(qatomic_load_acquire(&f->quiet));
}

static void access_any(Fuzz *f, uint64_t addr)
{
    uint64_t v = any64(f);
    uint8_t bytes[64];

    switch (below(f, 10)) {
    case 0:
        qtest_writeb(f->h->qts, addr, v);
        break;
    case 1:
        qtest_writew(f->h->qts, addr, v);
        break;
    case 2:
    case 3:
        qtest_writel(f->h->qts, addr, v);
        break;
    case 4:
        qtest_writeq(f->h->qts, addr, v);
        break;
    case 5:
        qtest_readb(f->h->qts, addr);
        break;
    case 6:
        qtest_readw(f->h->qts, addr);
        break;
    case 7:
        qtest_readl(f->h->qts, addr);
        break;
    case 8:
        qtest_readq(f->h->qts, addr);
        break;
    default:
        memset(bytes, v, sizeof(bytes));
        qtest_memwrite(f->h->qts, addr, bytes, 1 + below(f, sizeof(bytes)));
    }
}

/*
 * Size in bytes of the room for the reply in the messages ENABLED and SETTINGS
 */
#define ROOM 64

/* Build a random message with some valid fields; returns its size */
static size_t make_message(Fuzz *f, uint8_t *buf)
{
    static const size_t sizes[] = {
        [0] = sizeof(struct ht_msg),            /* an unknown type */
        [HT_MSG_CLASS_REGISTER] = sizeof(struct ht_msg_class),
        [HT_MSG_CLASS_LIST] = sizeof(struct ht_msg_class),
        [HT_MSG_STREAM_OPEN] = sizeof(struct ht_msg_open),
        [HT_MSG_STREAM_CLOSE] = sizeof(struct ht_msg_stream),
        [HT_MSG_STREAM_FLUSH] = sizeof(struct ht_msg_stream),
        [HT_MSG_TIME_SYNC] = sizeof(struct ht_msg_time),
        [HT_MSG_STATS] = sizeof(struct ht_msg_stats),
        [HT_MSG_TAKEOVER] = sizeof(struct ht_msg),
        [HT_MSG_DISCARDED] = sizeof(struct ht_msg_discarded),
        [HT_MSG_ENABLED] = sizeof(struct ht_msg_enabled) + ROOM,
        [HT_MSG_SETTINGS] = sizeof(struct ht_msg_settings) + ROOM,
        [HT_MSG_SETTINGS + 1] = sizeof(struct ht_msg),  /* an unknown type */
    };
    unsigned type = below(f, G_N_ELEMENTS(sizes)), i;
    struct ht_msg *m = (struct ht_msg *)buf;
    size_t size = sizes[type];

    memset(buf, 0, HT_MESSAGE_MAX);
    if (type == HT_MSG_CLASS_REGISTER) {
        g_autofree char *name = g_strdup_printf("c%u", below(f, 40));

        size = qht_class_message(buf, name);
    }
    stl_le_p(buf + 16, below(f, 8) ? below(f, STREAMS + 1) : any64(f));
    if (type == HT_MSG_STREAM_OPEN) {
        stl_le_p(buf + 20, below(f, 3) - 1);
    }
    if (type == HT_MSG_STREAM_CLOSE || type == HT_MSG_STREAM_FLUSH) {
        stq_le_p(buf + 24, below(f, 64));
    }
    if (type == HT_MSG_ENABLED && below(f, 8)) {
        stl_le_p(buf + offsetof(struct ht_msg_enabled, count), ROOM);
    }
    if (type == HT_MSG_SETTINGS && below(f, 8)) {
        stl_le_p(buf + offsetof(struct ht_msg_settings, count), ROOM);
    }
    for (i = below(f, 4); i && below(f, 2); i--) {
        stq_le_p(buf + sizeof(*m) + below(f, MAX(size, 24) - 23), any64(f));
    }
    if (!below(f, 8)) {
        size = below(f, 2) ? below(f, HT_MESSAGE_MAX) :
               MIN(any64(f), HT_MESSAGE_MAX);
    }
    stw_le_p(&m->type, type);
    stl_le_p(&m->size, below(f, 10) ? size : any64(f));
    stl_le_p(&m->cookie, below(f, 4));
    return size;
}

static void mailbox(Fuzz *f)
{
    uint8_t buf[HT_MESSAGE_MAX];
    size_t size = make_message(f, buf);
    uint64_t box = f->h->ring.addr + f->h->caps.mailbox_offset;

    qtest_memwrite(f->h->qts, box, buf, size);
    qtest_writel(f->h->qts, f->h->regs.addr + HT_REG_MAILBOX_GO,
                 below(f, 10) ? size : any64(f));
    /* In half of the cases, read the reply; its content does not matter. */
    if (below(f, 2)) {
        qtest_memread(f->h->qts, box, buf, 64);
    }
}

/*
 * Get an offset in BAR0: in the 64 KiB of the registers or of a stream's
 * doorbell, mostly in the first 256 bytes of this area; it may be after the
 * BAR's end
 */
static uint64_t bar0(Fuzz *f)
{
    return below(f, STREAMS + 2) * HT_MAP_ALIGN +
           below(f, below(f, 8) ? 0x100 : HT_MAP_ALIGN);
}

static void doorbell(Fuzz *f)
{
    const struct ht_caps *c = &f->h->caps;

    qtest_writel(f->h->qts, f->h->regs.addr + c->doorbell_offset +
                 below(f, STREAMS + 1) * c->doorbell_stride, any64(f));
}

/*
 * Write a ring's control lines or a packet with a header that is partly valid,
 * or access any place in the ring or before the rings in BAR4
 */
static void ring(Fuzz *f)
{
    uint32_t stream = below(f, STREAMS);
    uint64_t base = f->h->ring.addr + f->h->caps.ring_offset +
                    stream * f->h->caps.ring_stride;
    uint32_t packet = below(f, PACKETS), content = 64 + 12 * below(f, 300);
    struct ht_packet p = {
        .magic = cpu_to_le32(HT_PACKET_MAGIC),
        .stream = cpu_to_le32(below(f, STREAMS)),
        .instance = cpu_to_le64(below(f, 64)),
        .seq = cpu_to_le64(packet),
        .clock_begin = cpu_to_le64(any64(f)),
        .events = cpu_to_le64(below(f, 300)),
        .lost = cpu_to_le64(below(f, 3)),
        .content = cpu_to_le32(content),
    };
    uint8_t event[12] = { 1 };

    switch (below(f, 7)) {
    case 0:
        qtest_writeq(f->h->qts, base + QHT_GUEST(head),
                     packet * PACKET + content);
        break;
    case 1:
        qtest_writeq(f->h->qts, base + QHT_GUEST(head), any64(f));
        break;
    case 2:
        access_any(f, base + below(f, sizeof(struct ht_ring_control)));
        break;
    case 3:
        /*
         * Write a packet to its place in the ring, with valid events, this
         * stream's index, and the instance that the device reports.
         */
        p.instance = cpu_to_le64(qtest_readq(f->h->qts,
                                             base + QHT_HOST(instance)));
        p.stream = cpu_to_le32(stream);
        p.events = 0;
        base += HT_PACKETS_OFFSET + packet * PACKET;
        qtest_memwrite(f->h->qts, base, &p, sizeof(p));
        for (content = 64; content < 1024; content += sizeof(event)) {
            qtest_memwrite(f->h->qts, base + content, event, sizeof(event));
        }
        break;
    case 4:
        qtest_memwrite(f->h->qts, base + HT_PACKETS_OFFSET + packet * PACKET,
                       &p, sizeof(p));
        break;
    case 5:
        /* access an offset of BAR4 before the rings */
        access_any(f, f->h->ring.addr + below(f, f->h->caps.ring_offset));
        break;
    default:
        access_any(f, base + below(f, f->h->caps.ring_stride));
    }
}

/*
 * Get an address for a descriptor: in RAM, in a BAR, at the end of RAM, or
 * unmapped
 */
static uint64_t any_address(Fuzz *f)
{
    switch (below(f, 8)) {
    case 0:
        return f->h->pci->bar.addr + below(f, 0x4000);
    case 1:
        return f->h->regs.addr ? f->h->regs.addr + bar0(f) :
               f->h->pci->bar.addr;
    case 2:
        return RAM - below(f, 5000);
    case 3:
        /* an unmapped address */
        return any64(f) | UINT64_C(1) << 52;
    default:
        return f->arena + below(f, ARENA);
    }
}

static QVirtQueue *any_queue(Fuzz *f)
{
    return below(f, 3) ? f->h->data[below(f, STREAMS)] : f->h->control;
}

static void kick(Fuzz *f, QVirtQueue *vq)
{
    f->h->pci->vdev.bus->virtqueue_kick(&f->h->pci->vdev, vq);
}

/* Write up to four random descriptors to a queue, mostly followed by a kick */
static void descriptors(Fuzz *f)
{
    static const uint32_t lengths[] = { 0, 1, 16, 40, 64, 4096, UINT32_MAX };
    QVirtQueue *vq = any_queue(f);
    uint64_t table = vq->desc;
    uint16_t idx = qtest_readw(f->h->qts, vq->avail + 2);
    unsigned n = 1 + below(f, 4);

    if (!below(f, 6)) {
        /* an indirect descriptor */
        table = f->arena + below(f, ARENA / 2);
        qtest_writeq(f->h->qts, vq->desc, table);
        qtest_writel(f->h->qts, vq->desc + 8, below(f, 4) ? n * 16 :
                     any64(f));
        qtest_writew(f->h->qts, vq->desc + 12, VRING_DESC_F_INDIRECT |
                     below(f, 4));
    }
    while (n--) {
        uint64_t d = table + 16 * below(f, vq->size);

        qtest_writeq(f->h->qts, d, any_address(f));
        qtest_writel(f->h->qts, d + 8, below(f, 8) ?
                     lengths[below(f, G_N_ELEMENTS(lengths))] : any64(f));
        qtest_writew(f->h->qts, d + 12, below(f, 12) ? below(f, 4) :
                     any64(f));
        qtest_writew(f->h->qts, d + 14, below(f, 12) ? below(f, vq->size) :
                     any64(f));
        qtest_writew(f->h->qts, vq->avail + 4 + 2 * (idx % vq->size),
                     below(f, 20) ? below(f, vq->size) : any64(f));
        idx++;
    }
    qtest_writew(f->h->qts, vq->avail + 2, below(f, 12) ? idx : any64(f));
    if (below(f, 8)) {
        kick(f, vq);
    }
}

/*
 * Submit a valid chain of descriptors: a stream's buffer, or a message and room
 * for its reply at any address
 */
static void buffer(Fuzz *f)
{
    uint8_t buf[HT_MESSAGE_MAX + 64];
    uint64_t at = f->arena + below(f, ARENA - sizeof(buf));
    QVirtQueue *vq = f->h->control;
    bool control = below(f, 2);
    uint16_t idx;
    size_t size;

    if (control) {
        size = make_message(f, buf);
    } else {
        uint64_t from = below(f, 3) ? 0 : below(f, PACKET);
        struct ht_submit *sub = (struct ht_submit *)buf;
        struct ht_packet *p = (struct ht_packet *)(sub + 1);
        unsigned events = below(f, 20), i;

        memset(buf, 0, sizeof(buf));
        size = sizeof(*sub) + sizeof(*p) + 12 * events;
        i = below(f, STREAMS);
        vq = f->h->data[i];
        stl_le_p(&sub->stream, below(f, 16) ? i : any64(f));
        stq_le_p(&sub->from, from);
        stq_le_p(&sub->to, from + size - sizeof(*sub));
        stl_le_p(&p->magic, HT_PACKET_MAGIC);
        stl_le_p(&p->stream, i);
        stq_le_p(&p->instance, below(f, 64));
        for (i = 0; i < events; i++) {
            buf[sizeof(*sub) + sizeof(*p) + 12 * i] = 1;
        }
    }
    qtest_memwrite(f->h->qts, at, buf, size);
    qtest_writeq(f->h->qts, vq->desc, at);
    qtest_writel(f->h->qts, vq->desc + 8, size);
    qtest_writew(f->h->qts, vq->desc + 12, control ? VRING_DESC_F_NEXT : 0);
    qtest_writew(f->h->qts, vq->desc + 14, 1);
    qtest_writeq(f->h->qts, vq->desc + 16, any_address(f));
    qtest_writel(f->h->qts, vq->desc + 24, below(f, 2) ? HT_MESSAGE_MAX :
                 below(f, 64));
    qtest_writew(f->h->qts, vq->desc + 28, VRING_DESC_F_WRITE);
    idx = qtest_readw(f->h->qts, vq->avail + 2);
    qtest_writew(f->h->qts, vq->avail + 4 + 2 * (idx % vq->size), 0);
    qtest_writew(f->h->qts, vq->avail + 2, idx + 1);
    kick(f, vq);
}

/*
 * Access virtio's registers: write any address of a queue or any device status,
 * or access any offset
 */
static void virtio_registers(Fuzz *f)
{
    uint64_t common = f->h->pci->bar.addr + f->h->pci->common_cfg_offset;

    switch (below(f, 5)) {
    case 0:
        qtest_writew(f->h->qts, common + 22, below(f, STREAMS + 3));
        qtest_writeq(f->h->qts, common + 32 + 8 * below(f, 3),
                     any_address(f));
        break;
    case 1:
        qtest_writeb(f->h->qts, common + 20, below(f, 256));
        break;
    case 2:
        qtest_writeb(f->h->qts, common + 20, 0);
        break;
    default:
        access_any(f, f->h->pci->bar.addr + below(f, 0x4000));
    }
}

static void config_space(Fuzz *f)
{
    QPCIDevice *d = f->h->pci->pdev;
    uint8_t at = below(f, 256);

    switch (below(f, 8)) {
    case 0:
        qpci_config_writew(d, PCI_COMMAND, below(f, 0x800));
        break;
    case 1:
    case 2:
        /* Do not write the BARs, because the test must know their addresses. */
        if (at > PCI_BASE_ADDRESS_5 + 3) {
            qpci_config_writel(d, at & ~3, any64(f));
        }
        break;
    case 3:
        qpci_config_readw(d, at & ~1);
        break;
    case 4:
        qpci_config_readb(d, at);
        break;
    default:
        qpci_config_readl(d, at & ~3);
    }
}

static void machine(Fuzz *f)
{
    switch (below(f, 12)) {
    case 0:
        qtest_qmp_assert_success(f->h->qts, "{'execute': 'stop'}");
        qtest_qmp_assert_success(f->h->qts, "{'execute': 'cont'}");
        break;
    case 1:
        qtest_system_reset(f->h->qts);
        qht_restart(f->h);
        break;
    default:
        qht_stat(f->h, "errors");
    }
}

static void act(Fuzz *f)
{
    bool rings = !f->h->control;
    unsigned what = below(f, 100);

    actions++;
    if (what < 25) {
        if (rings) {
            mailbox(f);
        } else {
            buffer(f);
        }
    } else if (what < 55) {
        if (rings) {
            ring(f);
        } else {
            descriptors(f);
        }
    } else if (what < 75 && rings) {
        doorbell(f);
    } else if (what < 85 && rings) {
        access_any(f, f->h->regs.addr + bar0(f));
    } else if (what < 96) {
        virtio_registers(f);
    } else if (what < 98) {
        config_space(f);
    } else {
        machine(f);
    }
}

/* Reset the device, then check that a correct driver can use it */
static void check_alive(Fuzz *f)
{
    struct ht_msg m = { 0 };
    uint32_t id;
    QHtStream s;
    uint64_t n;

    qht_restart(f->h);
    g_assert_cmpuint(qht_call(f->h, HT_MSG_TAKEOVER, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    id = qht_register_number(f->h, "number");
    g_assert_cmpuint(id, ==, 1);
    qht_stream_open(&s, f->h, below(f, STREAMS));
    for (n = 0; n < 20; n++) {
        qht_write_number(&s, id, n);
        qht_commit(&s);
    }
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(f->h, s.index, "events"), ==, 20);
    qht_stream_close(&s);
}

static void boot(Fuzz *f, const char *channel)
{
    bool virtio = !strcmp(channel, "virtio");
    g_autofree char *extra = NULL, *props = NULL;
    const char *mode = !virtio && below(f, 2) ? ",mode=overwrite" : "";
    int fd = g_file_open_tmp("hypertrace-fuzz-XXXXXX", &f->file, NULL);

    f->mem_size = virtio ? RAM : qht_ram_size(STREAMS, HT_PAGE +
                                                       PACKETS * PACKET);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, f->mem_size), ==, 0);
    f->mem = mmap(NULL, f->mem_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0);
    g_assert_true(f->mem != MAP_FAILED);
    close(fd);
    /*
     * With -d guest_errors, QEMU also executes the code that formats messages
     * about the guest.
     */
    extra = g_strdup_printf("-object memory-backend-file,id=mem,share=on,"
                            "mem-path=%s,size=%zu -m %zu -d guest_errors"
                            " -D /dev/null", f->file, f->mem_size,
                            (size_t)(RAM / MiB));
    props = g_strdup_printf("channel=%s,streams=%d,packet-size=%u,packets=%u,"
                            "flush-ms=1%s%s", channel, STREAMS, PACKET, PACKETS,
                            mode, virtio ? "" : ",memdev=mem");
    f->h = qht_boot(virtio ? "pc,memory-backend=mem" : "pc",
                    below(f, 2) ? "log" : "null", props, extra);
    f->arena = guest_alloc(f->h->alloc, ARENA);
    f->race_at = virtio ? f->arena : 0;
    f->race_size = virtio ? ARENA : f->mem_size;
    f->directory = virtio ? UINT64_MAX :
                   f->h->caps.mailbox_offset + 2 * HT_MAILBOX_SIZE;
    g_assert_cmpuint(qht_register_number(f->h, "number"), ==, 1);
}

static void episode(const char *channel, uint32_t seed)
{
    Fuzz f = { .rand = g_rand_new_with_seed(seed), .thread_seed = seed };
    unsigned round, i;

    printf("# %s: HT_FUZZ_SEED=%u\n", channel, seed);
    fflush(stdout);
    boot(&f, channel);
    f.thread = g_thread_new("guest", rewrite, &f);
    for (round = 0; round < ROUNDS; round++) {
        if (round % 3) {
            race_start(&f);
        }
        for (i = 0; i < ROUND; i++) {
            act(&f);
        }
        race_stop(&f);
        check_alive(&f);
    }
    qatomic_set(&f.stop, true);
    g_thread_join(f.thread);
    qht_quit(f.h);
    munmap(f.mem, f.mem_size);
    unlink(f.file);
    g_free(f.file);
    g_rand_free(f.rand);
}

static void test_anything(const void *channel)
{
    const char *seconds = getenv("HT_FUZZ_SECONDS");
    const char *first = getenv("HT_FUZZ_SEED");
    gint64 end = g_get_monotonic_time() +
                 (seconds ? atoll(seconds) : 0) * G_USEC_PER_SEC / 3;
    uint32_t seed = first ? strtoul(first, NULL, 0) : g_test_rand_int();
    unsigned episodes = 0;

    actions = 0;
    do {
        episode(channel, seed++);
        episodes++;
    } while (g_get_monotonic_time() < end);
    printf("# fuzz: %" PRIu64 " actions, %u episodes\n", actions, episodes);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const QHtTest test = { "anything", test_anything, QHT_CHANNELS };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("fuzz", &test, 1);
    return g_test_run();
}
