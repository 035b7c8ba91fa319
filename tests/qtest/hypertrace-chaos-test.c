/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: in random order, plug and unplug devices, and stop and migrate
 * VMs, while backends hang or fail
 *
 * A sequence starts one QEMU, and more by migration, with at most one device
 * for each channel.  Each device has the backend "witness", which always works.
 *
 * Promise: after any sequence the witness has each event exactly once.  Three
 * of four sequences then delete all devices and backends, which must succeed.
 *
 * HT_FUZZ_SEED: seed of the first sequence; each further one adds 1
 * HT_FUZZ_SECONDS: time for all sequences; by default a few sequences run
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "libqos/malloc-pc.h"
#include "libqos/pci-pc.h"
#include "hypertrace-chaos.h"

#define SEQUENCES 3
#define STEPS 30
#define PACKET 4096u

/* Number of elements of the array in an event of class "fat" */
#define FAT 240u

/*
 * Time limit of an action in us: far more than QEMU waits for backends that
 * hang
 */
#define LIMIT_US (60 * G_USEC_PER_SEC)

static const char *const channels[DEVICES] = { "hypercall", "shm", "virtio" };

/**
 * Device: a device as its guest knows it
 * @h: NULL while the device is unplugged
 * @number, @fat: class ids
 * @s: streams; the image of a closed stream is NULL
 * @emitted: number of events that the device must have consumed since it was
 *           plugged in; a loaded snapshot brings back the number of that time
 * @given: number of events that the device's present sinks must get
 * @backend: indices into chaos_backends[]; the first @backends are used
 */
typedef struct Device {
    QHt *h;
    uint32_t number, fat;
    QHtStream s[STREAMS];
    uint64_t emitted;
    uint64_t given;
    unsigned backend[BACKENDS];
    unsigned backends;
} Device;

/**
 * Chaos: a sequence
 * @base: the machine, which all devices share
 * @f: files of the present QEMU
 * @stopped: the VM is stopped
 * @saved: the snapshot @saves can be loaded
 * @saves: number of snapshots made; also the tag of the last one
 * @dev: devices now
 * @was: devices at the snapshot
 * @next: number of the next event
 * @seen: by an event's number, how often the witness files have the event
 */
typedef struct Chaos {
    GRand *rand;
    QHt base;
    Files f;
    bool stopped;
    bool saved;
    unsigned saves;
    Device dev[DEVICES];
    Device was[DEVICES];
    uint64_t next;
    GByteArray *seen;
} Chaos;

static uint32_t below(Chaos *c, uint32_t n)
{
    return g_rand_int_range(c->rand, 0, n);
}

static unsigned slot(unsigned i)
{
    return QHT_SLOT + i;
}

static char *backend_ids(const Device *d)
{
    GString *ids = g_string_new(NULL);
    unsigned i;

    for (i = 0; i < d->backends; i++) {
        g_string_append_printf(ids, "%s%s", i ? ":" : "",
                               chaos_backends[d->backend[i]]);
    }
    return g_string_free(ids, false);
}

/* Start a QEMU with new files and with those devices that are plugged in now */
static QTestState *start(Chaos *c, const char *extra)
{
    g_autoptr(GString) args = g_string_new(NULL);
    unsigned i;

    files_new(&c->f, below(c, 2));
    files_args(&c->f, args);
    g_string_append_printf(args, " -machine pc -nodefaults %s", extra);
    for (i = 0; i < DEVICES; i++) {
        if (c->dev[i].h) {
            g_autofree char *ids = backend_ids(&c->dev[i]);

            g_string_append_printf(args, " -device hypertrace,id=dev%u,addr=%u,"
                                   "channel=%s,backend=%s,streams=%u,"
                                   "packet-size=%u,packets=8,backlog=1M", i,
                                   slot(i), channels[i], ids, STREAMS, PACKET);
        }
    }
    return qtest_init(args->str);
}

static void forget_saved(Chaos *c)
{
    unsigned i, j;

    for (i = 0; c->saved && i < DEVICES; i++) {
        for (j = 0; j < STREAMS; j++) {
            qht_stream_forget(&c->was[i].s[j]);
        }
    }
    c->saved = false;
}

/*
 * If @d is plugged in, check that each emitted event was consumed, and that
 * each backend delivered or discarded it; the witness and "null" discard none
 */
static void check(Chaos *c, Device *d)
{
    unsigned i;

    if (!d->h) {
        return;
    }
    for (i = 0; i < STREAMS && !c->stopped; i++) {
        if (d->s[i].image) {
            qht_stream_flush(&d->s[i]);
            g_assert_false(qht_stream_flag(d->h, i, "stopped"));
        }
    }
    /* A reset may return before the device has consumed all events. */
    QHT_WAIT(qht_stat(d->h, "events") == d->emitted);
    g_assert_cmpuint(qht_stat(d->h, "dropped"), ==, 0);
    g_assert_cmpuint(qht_stat(d->h, "errors"), ==, 0);
    for (i = 0; i < d->backends; i++) {
        QHT_WAIT(qht_backend_stat(d->h, i, "events") +
                 qht_backend_stat(d->h, i, "discarded") == d->given);
        if (d->backend[i] == WITNESS || d->backend[i] == NOTHING) {
            g_assert_cmpuint(qht_backend_stat(d->h, i, "discarded"), ==, 0);
        }
    }
}

/*
 * Check @d, before its sinks close.  If it has the backend "fifo", add the
 * numbers of posted and discarded events of that sink to c->f.
 */
static void settle_accounts(Chaos *c, Device *d)
{
    unsigned i;

    check(c, d);
    for (i = 0; i < d->backends; i++) {
        if (d->backend[i] == FIFO) {
            c->f.posted += d->given;
            c->f.discarded += qht_backend_stat(d->h, i, "discarded");
        }
    }
    d->given = 0;
}

static void forget_streams(Device *d)
{
    unsigned i;

    for (i = 0; i < STREAMS; i++) {
        qht_stream_forget(&d->s[i]);
    }
}

static void register_classes(Device *d)
{
    static const uint8_t fields[] = {
        HT_FIELD_U64, 0, 0, 1, 0, 0, 'n',
        HT_FIELD_ARRAY, HT_FIELD_U64, 0, 1, FAT & 0xff, FAT >> 8, 'a',
    };
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);

    d->number = qht_register_number(d->h, "number");
    m->nr_fields = 2;
    m->name_len = 3;
    m->loglevel = 13;
    memcpy(m->data, "fat", 3);
    memcpy(m->data + 3, fields, sizeof(fields));
    g_assert_cmpuint(qht_call(d->h, HT_MSG_CLASS_REGISTER, m, sizeof(*m) + 3 +
                              sizeof(fields)), ==, HT_STATUS_OK);
    d->fat = le32_to_cpu(m->id);
}

static void choose_backends(Chaos *c, Device *d)
{
    static const unsigned chance[BACKENDS] = {
        [FIFO] = 70, [FULL] = 30, [CTF] = 50, [NOTHING] = 30,
    };
    unsigned i, j;

    d->backends = 0;
    for (i = WITNESS + 1; i < BACKENDS; i++) {
        if (below(c, 100) < chance[i]) {
            d->backend[d->backends++] = i;
        }
    }
    j = below(c, d->backends + 1);
    memmove(&d->backend[j + 1], &d->backend[j],
            (d->backends - j) * sizeof(d->backend[0]));
    d->backend[j] = WITNESS;
    d->backends++;
}

static void plug(Chaos *c, unsigned i)
{
    g_autofree char *id = g_strdup_printf("dev%u", i);
    g_autofree char *addr = g_strdup_printf("%u", slot(i));
    g_autofree char *ids = NULL;
    Device *d = &c->dev[i];

    forget_saved(c);
    memset(d, 0, sizeof(*d));
    choose_backends(c, d);
    ids = backend_ids(d);
    qtest_qmp_device_add(c->base.qts, "hypertrace", id,
                         "{'addr': %s, 'channel': %s, 'backend': %s,"
                         " 'streams': %u, 'packet-size': %u, 'packets': 8,"
                         " 'backlog': 1048576}", addr, channels[i], ids,
                         STREAMS, PACKET);
    d->h = qht_attach(&c->base, id, slot(i));
    register_classes(d);
}

static void unplug(Chaos *c, unsigned i)
{
    Device *d = &c->dev[i];

    forget_saved(c);
    settle_accounts(c, d);
    c->f.lossy |= c->f.hanging;
    qht_unplug(d->h);
    qht_wait_deleted(d->h);
    forget_streams(d);
    qht_quit(d->h);
    d->h = NULL;
}

/*
 * Emit up to 300 small events, or up to 100 large ones. With virtio, each
 * commit takes an entry of the virtqueue, so commit small events 16 at a time:
 * then the entries suffice for a full ring.
 */
static void emit(Chaos *c, Device *d)
{
    uint64_t payload[1 + FAT] = { };
    QHtStream *s = &d->s[below(c, STREAMS)];
    bool fat = below(c, 2);
    unsigned n = 1 + below(c, fat ? 100 : 300), i;

    if (!s->image) {
        qht_stream_open(s, d->h, s - d->s);
    }
    /*
     * Wait until the queue of the backend "witness" is empty, so that its sink
     * discards no event. Each device has this log backend, which never hangs.
     */
    for (i = 0; d->backend[i] != WITNESS; i++) {
        continue;
    }
    QHT_WAIT(qht_backend_stat(d->h, i, "queued") == 0);
    for (i = 1; i <= n; i++) {
        payload[0] = cpu_to_le64(c->next++);
        if (fat) {
            qht_write(s, d->fat, payload, sizeof(payload));
        } else {
            qht_write(s, d->number, payload, sizeof(payload[0]));
        }
        if (fat || i % 16 == 0 || i == n) {
            qht_commit(s);
        }
    }
    g_byte_array_set_size(c->seen, c->next);
    memset(c->seen->data + c->next - n, 0, n);
    d->emitted += n;
    d->given += n;
}

static void close_one(Chaos *c, Device *d)
{
    QHtStream *s = &d->s[below(c, STREAMS)];

    if (s->image) {
        qht_stream_close(s);
    }
}

static void reset(Chaos *c)
{
    unsigned i;

    qtest_system_reset(c->base.qts);
    for (i = 0; i < DEVICES; i++) {
        Device *d = &c->dev[i];

        if (d->h) {
            forget_streams(d);
            qht_restart(d->h);
            register_classes(d);
        }
    }
}

static void set_stopped(Chaos *c, bool stopped)
{
    unsigned i;

    qtest_qmp_assert_success(c->base.qts, "{'execute': %s}",
                             stopped ? "stop" : "cont");
    c->stopped = stopped;
    for (i = 0; i < DEVICES; i++) {
        check(c, &c->dev[i]);
    }
}

static void copy_devices(Device *to, const Device *from)
{
    unsigned i, j;

    for (i = 0; i < DEVICES; i++) {
        to[i] = from[i];
        for (j = 0; j < STREAMS; j++) {
            to[i].s[j].image = g_memdup2(from[i].s[j].image,
                                         from[i].s[j].image ? PACKET : 0);
        }
    }
}

static void snapshot(Chaos *c, bool back)
{
    g_autofree char *tag = g_strdup_printf("%u", c->saves);

    qht_snapshot(c->base.qts, back, tag);
}

static void save(Chaos *c)
{
    if (!c->f.disk) {
        c->f.disk = qht_add_disk(c->base.qts);
    }
    forget_saved(c);
    c->saves++;
    snapshot(c, false);
    copy_devices(c->was, c->dev);
    c->saved = true;
}

static void load(Chaos *c)
{
    unsigned i;

    if (!c->saved) {
        return;
    }
    snapshot(c, true);
    for (i = 0; i < DEVICES; i++) {
        Device *d = &c->dev[i];
        uint64_t given = d->given;

        forget_streams(d);
        *d = c->was[i];
        d->given = given;
        if (d->h) {
            /*
             * virtio: loadvm has restored the virtqueues of the snapshot, so
             * set them up again.
             */
            qht_restart(d->h);
        }
    }
    copy_devices(c->was, c->dev);
}

static void settle_all(Chaos *c)
{
    unsigned i;

    for (i = 0; i < DEVICES; i++) {
        if (c->dev[i].h) {
            settle_accounts(c, &c->dev[i]);
        }
    }
    c->f.lossy |= c->f.hanging;
}

static void migrate(Chaos *c)
{
    QHtTarget *t = g_new0(QHtTarget, 1);
    Files before;
    unsigned i;

    forget_saved(c);
    /*
     * If the FIFO's backend hangs, let it continue in three of four cases. In
     * the fourth, the source QEMU may wait 5 s for this backend at its exit.
     */
    if (c->f.hanging && below(c, 4)) {
        files_hang(&c->f, false);
    }
    settle_all(c);
    before = c->f;
    t->messages = qht_temporary();
    t->qts = start(c, "-incoming defer");
    qht_migrate(&c->base, t);
    g_assert_null(qht_move(&c->base, t, !c->stopped));
    qht_target_free(t);
    for (i = 0; i < DEVICES; i++) {
        if (c->dev[i].h) {
            c->dev[i].h->qts = c->base.qts;
        }
    }
    files_end(&before, c->seen);
}

static void act(Chaos *c)
{
    unsigned i = below(c, DEVICES), what = below(c, 100);
    Device *d = &c->dev[i];

    if (c->stopped && what < 80) {
        set_stopped(c, false);
    } else if (what >= 97) {
        migrate(c);
    } else if (what >= 90) {
        files_hang(&c->f, !c->f.hanging);
    } else if (what >= 88) {
        files_vanish(&c->f);
    } else if (c->stopped) {
        return;
    } else if (what >= 84) {
        set_stopped(c, true);
    } else if (what >= 80) {
        save(c);
    } else if (what >= 76) {
        load(c);
    } else if (what >= 73) {
        reset(c);
    } else if (!d->h) {
        plug(c, i);
    } else if (what >= 67) {
        unplug(c, i);
    } else if (what >= 60) {
        check(c, d);
    } else if (what >= 55) {
        close_one(c, d);
    } else {
        emit(c, d);
    }
}

/* Unplug all devices, and check that all backends can then be deleted */
static void leave(Chaos *c)
{
    unsigned i;

    if (c->stopped) {
        set_stopped(c, false);
    }
    files_hang(&c->f, false);
    for (i = 0; i < DEVICES; i++) {
        if (c->dev[i].h) {
            unplug(c, i);
        }
    }
    for (i = 0; i < BACKENDS; i++) {
        QHT_WAIT(qht_object_del(c->base.qts, chaos_backends[i]));
    }
    /* No sink uses "fifo" now, so its file must have all events. */
    c->f.lossy = false;
}

static void sequence(uint32_t seed)
{
    Chaos c = { .rand = g_rand_new_with_seed(seed) };
    unsigned i;

    printf("# HT_FUZZ_SEED=%u\n", seed);
    fflush(stdout);
    c.seen = g_byte_array_new();
    c.base.qts = start(&c, "");
    c.base.alloc = g_new0(QGuestAllocator, 1);
    pc_alloc_init(c.base.alloc, c.base.qts, 0);
    c.base.bus = qpci_new_pc(c.base.qts, c.base.alloc);
    for (i = 0; i < STEPS; i++) {
        gint64 begin = g_get_monotonic_time();

        act(&c);
        g_assert_cmpint(g_get_monotonic_time() - begin, <, LIMIT_US);
    }
    if (below(&c, 4)) {
        leave(&c);
    } else {
        settle_all(&c);
    }
    forget_saved(&c);
    for (i = 0; i < DEVICES; i++) {
        if (c.dev[i].h) {
            forget_streams(&c.dev[i]);
            qht_quit(c.dev[i].h);
        }
    }
    qtest_quit(c.base.qts);
    qpci_free_pc(c.base.bus);
    alloc_destroy(c.base.alloc);
    g_free(c.base.alloc);
    files_end(&c.f, c.seen);
    for (i = 0; i < c.next; i++) {
        if (c.seen->data[i] != 1) {
            g_error("event %u is %u times in the witness", i, c.seen->data[i]);
        }
    }
    g_byte_array_unref(c.seen);
    g_rand_free(c.rand);
}

static void test_sequences(void)
{
    const char *seconds = getenv("HT_FUZZ_SECONDS");
    const char *first = getenv("HT_FUZZ_SEED");
    gint64 end = g_get_monotonic_time() +
                 (seconds ? atoll(seconds) : 0) * G_USEC_PER_SEC;
    uint32_t seed = first ? strtoul(first, NULL, 0) : g_test_rand_int();
    unsigned n = 0;

    do {
        sequence(seed++);
        n++;
    } while (seconds ? g_get_monotonic_time() < end : n < SEQUENCES);
    printf("# chaos: %u actions, %u sequences\n", n * STEPS, n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/chaos/sequences", test_sequences);
    return g_test_run();
}
