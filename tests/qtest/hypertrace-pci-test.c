/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the PCI device: layout, registers, properties, plugging
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qapi/error.h"

/*
 * Return the size of a BAR in bytes, 0 if it is absent.  This overwrites the
 * BAR's address.
 */
static uint64_t bar_size(QPCIDevice *d, int bar, bool *is64, bool *prefetch)
{
    uint8_t reg = PCI_BASE_ADDRESS_0 + 4 * bar;
    uint64_t mask;
    uint32_t low;

    qpci_config_writel(d, reg, 0xffffffff);
    low = qpci_config_readl(d, reg);
    g_assert_cmphex(low & PCI_BASE_ADDRESS_SPACE, ==, 0);
    mask = low & (uint32_t)PCI_BASE_ADDRESS_MEM_MASK;
    *is64 = low & PCI_BASE_ADDRESS_MEM_TYPE_64;
    *prefetch = low & PCI_BASE_ADDRESS_MEM_PREFETCH;
    if (*is64) {
        qpci_config_writel(d, reg + 4, 0xffffffff);
        mask |= (uint64_t)qpci_config_readl(d, reg + 4) << 32;
    } else if (mask) {
        mask |= UINT64_C(0xffffffff) << 32;
    }
    return mask ? ~mask + 1 : 0;
}

static void check_identity(QPCIDevice *d)
{
    g_assert_cmphex(qpci_config_readw(d, PCI_VENDOR_ID), ==, HT_PCI_VENDOR_ID);
    g_assert_cmphex(qpci_config_readw(d, PCI_DEVICE_ID), ==, HT_PCI_DEVICE_ID);
    /* no legacy interface: revision 1 and up, as the VIRTIO spec says */
    g_assert_cmphex(qpci_config_readb(d, PCI_REVISION_ID), >=, 1);
    g_assert_cmphex(qpci_config_readw(d, PCI_CLASS_DEVICE), ==, 0x00ff);
}

static void check_layout(const char *machine, const char *channel, bool ring)
{
    g_autofree char *props = g_strdup_printf("channel=%s,streams=3,"
                                             "packet-size=8192,packets=4",
                                             channel);
    QHt *h = qht_boot(machine, "null", props, NULL);
    QPCIDevice *d = h->pci->pdev;
    bool is64, prefetch;

    check_identity(d);
    g_assert_cmpint(h->pci->bar_idx, ==, ring ? 2 : 4);
    qpci_config_writew(d, PCI_COMMAND, 0);
    if (ring) {
        g_assert_cmphex(bar_size(d, 0, &is64, &prefetch), ==, 0x40000 >>
                        (h->caps.channel == HT_CHANNEL_SHM));
        g_assert_false(prefetch);
        g_assert_cmphex(bar_size(d, 2, &is64, &prefetch), >, 0);
        /*
         * BAR4 has page 0, the enable bytes, the mailbox, the reply area and
         * the directory, then 3 rings of 4 KiB + 4 x 8 KiB; each of these parts
         * begins at a multiple of 64 KiB
         */
        g_assert_cmphex(h->caps.ring_stride, ==, 0x10000);
        g_assert_cmphex(h->caps.enable_offset, ==, 0x10000);
        g_assert_cmphex(h->caps.mailbox_offset, ==, 0x20000);
        g_assert_cmphex(h->caps.ring_offset, ==, QHT_RING_OFFSET);
        g_assert_cmphex(bar_size(d, 4, &is64, &prefetch), ==, 0x200000);
        g_assert_true(is64);
        g_assert_true(prefetch);
    } else {
        g_assert_cmphex(bar_size(d, 0, &is64, &prefetch), ==, 0);
        g_assert_cmphex(bar_size(d, 4, &is64, &prefetch), >, 0);
    }
    g_assert_cmpuint(qpci_msix_table_size(d), ==, ring ? 1 : 2);
    qht_quit(h);
}

static void test_layout(const void *machine)
{
    check_layout(machine, "hypercall", true);
    check_layout(machine, "shm", true);
    check_layout(machine, "virtio", false);
}

static void test_caps(const void *machine)
{
    QHt *h = qht_boot(machine, "null", "channel=hypercall,mode=overwrite,"
                      "streams=5,packet-size=16k,packets=8,batch=32,"
                      "flush-ms=7", NULL);

    g_assert_cmpuint(h->caps.version, ==, HT_VERSION);
    g_assert_cmpuint(h->caps.channel, ==, HT_CHANNEL_HYPERCALL);
    g_assert_cmpuint(h->caps.mode, ==, HT_MODE_OVERWRITE);
    g_assert_cmphex(h->caps.ring_offset, ==, QHT_RING_OFFSET);
    g_assert_cmpuint(h->caps.streams, ==, 5);
    g_assert_cmpuint(h->caps.packet_size, ==, 16384);
    g_assert_cmpuint(h->caps.packets, ==, 8);
    g_assert_cmpuint(h->caps.batch, ==, 32);
    g_assert_cmpuint(h->caps.flush_ms, ==, 7);
    g_assert_cmpuint(h->caps.clock_hz, >, 1000000);
    g_assert_cmpuint(h->caps.max_gap, >, 0);
    g_assert_cmpuint(h->caps.max_gap, <=, (HT_CLOCK_MASK + 1) / 2);
    g_assert_cmpuint(h->caps.ring_stride, ==, HT_MAP_ALIGN + 8 * 16384);
    g_assert_cmpuint(h->caps.doorbell_offset, ==, HT_MAP_ALIGN);
    g_assert_cmpuint(h->caps.doorbell_stride, ==, HT_MAP_ALIGN);
    g_assert_cmpuint(h->caps.mailbox_size, ==, HT_MAILBOX_SIZE);
    g_assert_cmpuint(h->caps.counter, ==,
                     g_str_equal(qtest_get_arch(), "aarch64") ?
                     HT_COUNTER_CNTVCT : HT_COUNTER_TSC);
    g_assert_cmpuint(h->caps.max_classes, ==, HT_CLASSES_MAX);
    g_assert_cmpuint(h->caps.max_message, ==, HT_MESSAGE_MAX);
    qht_quit(h);
}

/*
 * Reads of 2, 4 and 8 bytes at each offset below HT_REG_MAILBOX_GO give the
 * same bytes as reads of single bytes.
 */
static void test_read_sizes(const void *machine)
{
    QHt *h = qht_boot(machine, "null", "channel=shm,streams=2", NULL);
    QPCIDevice *d = h->pci->pdev;
    uint8_t bytes[HT_REG_MAILBOX_GO + 8];
    uint64_t off;

    for (off = 0; off < sizeof(bytes); off++) {
        bytes[off] = qpci_io_readb(d, h->regs, off);
    }
    g_assert_cmphex(ldl_le_p(bytes), ==, HT_MAGIC);
    for (off = 0; off < HT_REG_MAILBOX_GO; off++) {
        g_assert_cmphex(qpci_io_readw(d, h->regs, off), ==,
                        lduw_le_p(bytes + off));
        g_assert_cmphex(qpci_io_readl(d, h->regs, off), ==,
                        (uint32_t)ldl_le_p(bytes + off));
        g_assert_cmphex(qpci_io_readq(d, h->regs, off), ==,
                        ldq_le_p(bytes + off));
    }
    qht_quit(h);
}

/*
 * Return the offset of BAR0 to access after @off. Use only the first page and
 * the last 16 bytes of each area of HT_MAP_ALIGN bytes. In these, use each
 * offset below 256, where the registers are, and then every seventh, which
 * gives each alignment; with -m slow, use each offset.
 */
static uint64_t next_offset(uint64_t off)
{
    uint64_t next = off + (off < 0x100 || g_test_slow() ? 1 : 7);
    uint64_t in = next % HT_MAP_ALIGN;

    return in < HT_PAGE || in >= HT_MAP_ALIGN - 16 ? next :
           next - in + HT_MAP_ALIGN - 16;
}

/* After accesses of each size at many offsets of BAR0, the device works. */
static void test_write_everywhere(const void *channel)
{
    g_autofree char *props = g_strdup_printf("channel=%s,streams=2",
                                             (const char *)channel);
    QHt *h = qht_boot("pc", "null", props, NULL);
    QPCIDevice *d = h->pci->pdev;
    uint64_t size = h->caps.doorbell_offset +
                    MAX(HT_MAP_ALIGN, 2 * h->caps.doorbell_stride), off;
    uint32_t id;
    QHtStream s;

    for (off = 0; off < size; off = next_offset(off)) {
        uint64_t v = off * UINT64_C(0x9e3779b97f4a7c15);

        qpci_io_writeb(d, h->regs, off, v);
        qpci_io_writew(d, h->regs, off, v);
        qpci_io_writel(d, h->regs, off, v);
        qpci_io_writeq(d, h->regs, off, v);
        qpci_io_readb(d, h->regs, off);
        qpci_io_readw(d, h->regs, off);
        qpci_io_readl(d, h->regs, off);
        qpci_io_readq(d, h->regs, off);
    }
    /* The device counts a write that it refuses as an error. */
    g_assert_cmpuint(qht_stat(h, "errors"), >, 0);
    qpci_memread(d, h->regs, 0, &id, sizeof(id));
    g_assert_cmphex(le32_to_cpu(id), ==, HT_MAGIC);
    id = qht_register_number(h, "number");
    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    qht_commit(&s);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 1);
    qht_quit(h);
}

typedef struct Refused {
    const char *props;
    const char *message;
} Refused;

static const Refused refused[] = {
    { "'channel': 'carrier-pigeon'", "not one of hypercall, shm or virtio" },
    { "'mode': 'maybe'", "not one of discard or overwrite" },
    { "'streams': 0", "streams=0 is out of range: 1 to 512" },
    { "'streams': 513", "streams=513 is out of range: 1 to 512" },
    { "'packet-size': 2048", "a power of two, 4096 to 1048576" },
    { "'packet-size': 12288", "a power of two, 4096 to 1048576" },
    { "'packet-size': 2097152", "a power of two, 4096 to 1048576" },
    { "'packets': 1", "packets=1 is out of range: a power of two, 2 to 1024" },
    { "'packets': 3", "packets=3 is out of range" },
    { "'packets': 2048", "packets=2048 is out of range" },
    { "'batch': 0", "batch=0 is out of range: 1 to 65536" },
    { "'channel': 'hypercall', 'batch': 65537", "batch=65537 is out of" },
    { "'channel': 'shm', 'batch': 2", "batch=2 needs channel=hypercall" },
    { "'channel': 'virtio', 'batch': 2", "batch=2 needs channel=hypercall" },
    { "'flush-ms': 0", "flush-ms=0 is out of range: 1 to 1000" },
    { "'flush-ms': 1001", "flush-ms=1001 is out of range: 1 to 1000" },
    { "'channel': 'virtio', 'mode': 'overwrite'",
      "mode=overwrite needs channel=hypercall or channel=shm" },
    { "'channel': 'virtio', 'memdev': 'small'",
      "memdev needs channel=hypercall or channel=shm" },
    { "'channel': 'shm', 'memdev': 'small'",
      "the streams need exactly 16777216" },
    { "'channel': 'shm', 'memdev': 'nowhere'", "nowhere" },
    { "'streams': 64, 'packets': 1024, 'packet-size': 1048576",
      "at most 1024 MiB" },
    { "'backend': 'nowhere'", "nowhere" },
    { "'backend': 'small'", "there is no hypertrace backend 'small'" },
    { "'backend': 'be:nowhere'", "there is no hypertrace backend 'nowhere'" },
    { "'backend': 'be:be'", "'be' is there twice" },
    { "'backend': ''", "names 0 backends; 1 to 8 are possible" },
    { "'backlog': 1024", "backlog=1024 is out of range: 1048576 to" },
    { "'iothread': 'nowhere'", "nowhere" },
    { "'channel': 'virtio', 'iothread': 'io0'",
      "iothread needs channel=hypercall or channel=shm" },
    { "'name': 'ht'", "another hypertrace device is named 'ht'" },
    { "'name': ''", "is not valid" },
    { "'name': 'a/b'", "is not valid" },
    { "'name': '..'", "is not valid" },
    { "'modern-pio-notify': true", "modern-pio-notify=on is not possible" },
    { "'disable-modern': true", "disable-modern" },
    { "'disable-legacy': 'off'", "disable-legacy" },
    { "'addr': '4.0'", "not available for" },
    { "'romfile': '/nowhere/to/be/found'", "romfile" },
    { "'failover_pair_id': 'x'", "failover primary device" },
    { "'wombat': 1", "wombat" },
};

static QHt *boot_for_plugging(const char *props)
{
    return qht_boot("pc", "null", props,
                    "-object memory-backend-ram,id=small,size=2M "
                    "-object iothread,id=io0");
}

static void plug_refused(QHt *h, const Refused *r)
{
    g_autofree char *args = g_strdup_printf(
        "{'driver': 'hypertrace', 'id': 'x', %s%s}",
        strstr(r->props, "'backend'") ? "" : "'backend': 'be', ", r->props);
    QDict *error, *rsp;

    rsp = qtest_qmp(h->qts, "{'execute': 'device_add', 'arguments': %p}",
                    qobject_from_json(args, &error_abort));
    error = qdict_get_qdict(rsp, "error");
    if (!error || !strstr(qdict_get_str(error, "desc"), r->message)) {
        g_error("%s: %s", r->props,
                error ? qdict_get_str(error, "desc") : "accepted");
    }
    qobject_unref(rsp);
}

/* After a device was refused, another device can have its id and name. */
static void test_refused(void)
{
    QHt *h = boot_for_plugging("channel=shm,streams=1");
    unsigned round, i;

    for (round = 0; round < 2; round++) {
        for (i = 0; i < G_N_ELEMENTS(refused); i++) {
            plug_refused(h, &refused[i]);
        }
    }
    qtest_qmp_device_add(h->qts, "hypertrace", "x",
                         "{'backend': 'be', 'addr': '5', 'streams': 2}");
    qht_quit(h);
}

static void unplug(QHt *h, const char *id, uint8_t slot)
{
    qtest_qmp_device_del_send(h->qts, id);
    /*
     * Confirm the unplug as the guest does with ACPI PCI hot-unplug: eject the
     * slot.
     */
    qtest_outl(h->qts, 0xae08, 1u << slot);
    qht_wait_deleted(h);
}

static void use(QHt *h, unsigned events)
{
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned n;

    g_assert_cmpuint(id, ==, 1);
    qht_stream_open(&s, h, 0);
    for (n = 0; n < events; n++) {
        qht_write_number(&s, id, n);
        qht_commit(&s);
    }
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, events);
    /* leave the stream open: the caller may unplug the device next */
    qht_stream_forget(&s);
}

/* Register classes without waiting until the backends have them */
static void register_unfinished(QHt *h)
{
    g_autofree void *m = g_malloc0(HT_MESSAGE_MAX);
    unsigned i;

    for (i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("class%u", i);
        size_t size = qht_class_message(m, name);

        qht_exchange(h, m, size);
    }
}

/*
 * Plug in, use and unplug a device repeatedly, and in between try to plug in
 * devices that are refused. A QEMU that is built with sanitizers reports leaks
 * when it exits.
 */
static void test_plug(const void *channel)
{
    QHt *h = boot_for_plugging("channel=hypercall,streams=1");
    unsigned cycles = g_test_slow() ? 67 : qht_long() ? 30 : 10;
    unsigned i;

    for (i = 0; i < cycles; i++) {
        QHt *x;

        plug_refused(h, &refused[i % G_N_ELEMENTS(refused)]);
        qtest_qmp_device_add(h->qts, "hypertrace", "x",
                             "{'backend': 'be', 'addr': '5', 'channel': %s,"
                             " 'streams': 2}", (const char *)channel);
        x = qht_attach(h, "x", 5);
        use(x, 10);
        register_unfinished(x);
        qht_quit(x);
        unplug(h, "x", 5);
    }
    use(h, 3);
    qht_quit(h);
}

/*
 * If the LTTng backend's module is missing, a device that is plugged in without
 * backend= counts events, and the running VM does not end.
 */
static void test_no_module(void)
{
    static const char accel[] = "accel-qtest-x86_64.so";
    g_autofree char *old = g_strdup(g_getenv("QEMU_MODULE_DIR"));
    g_autofree char *dir = g_dir_make_tmp("hypertrace-test-XXXXXX", NULL);
    g_autofree char *bin = g_path_get_dirname(g_getenv("QTEST_QEMU_BINARY"));
    g_autofree char *bin_abs = g_canonicalize_filename(bin, NULL);
    g_autofree char *from = g_build_filename(old ?: bin_abs, accel, NULL);
    g_autofree char *to = g_build_filename(dir, accel, NULL);
    unsigned i;
    QHt *h;

    /*
     * QEMU_MODULE_DIR is a new folder, which needs a link to the accelerator
     * qtest if that is a module: the test itself uses it.
     */
    if (access(from, R_OK) == 0) {
        g_assert_cmpint(symlink(from, to), ==, 0);
    }
    g_setenv("QEMU_MODULE_DIR", dir, true);
    h = boot_for_plugging("channel=shm,streams=1");
    if (old) {
        g_setenv("QEMU_MODULE_DIR", old, true);
    } else {
        g_unsetenv("QEMU_MODULE_DIR");
    }
    for (i = 0; i < 3; i++) {
        QHt *x;

        qtest_qmp_device_add(h->qts, "hypertrace", "x",
                             "{'addr': '5', 'channel': 'hypercall'}");
        x = qht_attach(h, "x", 5);
        use(x, 10);
        qht_quit(x);
        unplug(h, "x", 5);
    }
    qht_quit(h);
    unlink(to);
    rmdir(dir);
}

/*
 * Promise: a device that is plugged in after QEMU changed its root directory
 * writes to the directory that the ctf backend opened at the start.
 */
static void test_chroot(void)
{
    g_autofree char *root = g_dir_make_tmp("hypertrace-root-XXXXXX", NULL);
    g_autofree char *out = g_dir_make_tmp("hypertrace-out-XXXXXX", NULL);
    g_autofree char *extra =
        g_strdup_printf("-run-with chroot=%s"
                        " -object hypertrace-backend-ctf,id=ctf,dir=%s/trace",
                        root, out);
    g_autofree char *stream = g_strdup_printf("%s/trace/x/metadata", out);
    g_autofree char *rm = g_strdup_printf("rm -r %s %s", root, out);
    QHt *h, *x;

    if (geteuid()) {
        g_test_skip("only root may change the root directory");
    } else {
        h = qht_boot("pc", "null", "streams=1", extra);
        qtest_qmp_device_add(h->qts, "hypertrace", "x",
                             "{'backend': 'ctf', 'addr': '5',"
                             " 'channel': 'shm', 'streams': 1}");
        x = qht_attach(h, "x", 5);
        use(x, 10);
        qht_quit(x);
        g_assert_true(g_file_test(stream, G_FILE_TEST_IS_REGULAR));
        qht_quit(h);
    }
    g_assert_cmpint(system(rm), ==, 0);
}

/*
 * A device with the name of an unplugged device continues its trace: classes
 * keep their ids, and instance numbers are not reused.
 */
static void test_replug(void)
{
    QHt *h = boot_for_plugging("channel=shm,streams=1");
    uint64_t instance = 0;
    unsigned i;

    for (i = 0; i < 5; i++) {
        QHtStream s;
        QHt *x;

        qtest_qmp_device_add(h->qts, "hypertrace", "x",
                             "{'backend': 'be', 'addr': '5', 'name': 'n',"
                             " 'channel': 'shm', 'streams': 2}");
        x = qht_attach(h, "x", 5);
        if (i & 1) {
            g_assert_cmpuint(qht_register_number(x, "b"), ==, 2);
            g_assert_cmpuint(qht_register_number(x, "a"), ==, 1);
        } else {
            g_assert_cmpuint(qht_register_number(x, "a"), ==, 1);
            g_assert_cmpuint(qht_register_number(x, "b"), ==, 2);
        }
        qht_stream_open(&s, x, 0);
        g_assert_cmpuint(s.instance, >, instance);
        instance = s.instance;
        qht_write_number(&s, 1, i);
        qht_stream_close(&s);
        g_assert_cmpuint(qht_stat(x, "events"), ==, 1);
        qht_quit(x);
        unplug(h, "x", 5);
    }
    qht_quit(h);
}

/*
 * A backend in use cannot be deleted; a device survives the deletion of its
 * iothread.
 */
static void test_objects_in_use(void)
{
    QHt *h = boot_for_plugging("channel=shm,streams=1,iothread=io0");
    QDict *rsp;

    rsp = qtest_qmp(h->qts, "{'execute': 'object-del',"
                    " 'arguments': {'id': 'be'}}");
    g_assert_nonnull(strstr(qdict_get_str(qdict_get_qdict(rsp, "error"),
                                          "desc"), "in use"));
    qobject_unref(rsp);
    /* QEMU forgets the iothread's id, but the device keeps a reference */
    rsp = qtest_qmp(h->qts, "{'execute': 'object-del',"
                    " 'arguments': {'id': 'io0'}}");
    qobject_unref(rsp);
    use(h, 100);
    qht_quit(h);
}

static void test_memdev(void)
{
    QHt *h = boot_for_plugging("channel=shm,streams=1");
    static const Refused in_use = {
        "'channel': 'shm', 'streams': 1, 'packets': 16, "
        "'packet-size': 32768, 'memdev': 'small'", "'small' is in use",
    };
    QDict *rsp;
    unsigned i;

    for (i = 0; i < 3; i++) {
        QHt *x;

        /* a ring of 516 KiB, for which the memdev must have 2 MiB */
        qtest_qmp_device_add(h->qts, "hypertrace", "m",
                             "{'backend': 'be', 'addr': '5',"
                             " 'channel': 'shm', 'streams': 1, 'packets': 16,"
                             " 'packet-size': 32768, 'memdev': 'small'}");
        plug_refused(h, &in_use);
        rsp = qtest_qmp(h->qts, "{'execute': 'object-del',"
                        " 'arguments': {'id': 'small'}}");
        g_assert_true(qdict_haskey(rsp, "error"));
        qobject_unref(rsp);
        x = qht_attach(h, "m", 5);
        use(x, 100);
        qht_quit(x);
        unplug(h, "m", 5);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'object-del',"
                             " 'arguments': {'id': 'small'}}");
    qht_quit(h);
}

/* Four devices in one machine, at least one of each channel */
static void test_several(const void *machine)
{
    QHt *h[4];
    unsigned i;

    h[0] = qht_boot(machine, "log", "channel=shm,streams=2",
                    "-object iothread,id=io0 "
                    "-device hypertrace,id=b,addr=5,channel=hypercall,"
                    "backend=be,iothread=io0 "
                    "-device hypertrace,id=c,addr=6,channel=virtio,backend=be,"
                    "name=see "
                    "-device hypertrace,addr=7,channel=hypercall,batch=4,"
                    "backend=be,streams=1");
    h[1] = qht_attach(h[0], "b", 5);
    h[2] = qht_attach(h[0], "c", 6);
    h[3] = qht_attach(h[0], "none", 7);
    for (i = 0; i < 3; i++) {
        use(h[i], 100 + i);
    }
    for (i = 0; i < 3; i++) {
        g_assert_cmpuint(qht_stat(h[i], "events"), ==, 100 + i);
    }
    qht_settle(h[1]);
    qht_settle(h[2]);
    g_assert_cmpuint(qht_log_count(h[0], " ht stream 0"), ==, 100);
    g_assert_cmpuint(qht_log_count(h[0], " b stream 0"), ==, 101);
    g_assert_cmpuint(qht_log_count(h[0], " see stream 0"), ==, 102);
    /* a device without id and name works, too */
    qht_register_number(h[3], "number");
    for (i = 4; i--; ) {
        qht_quit(h[i]);
    }
}

/* x-query-virtio-status and `info qtree` show the device. */
static void test_monitor(const void *channel)
{
    g_autofree char *props = g_strdup_printf("channel=%s,streams=1",
                                             (const char *)channel);
    g_autofree char *want = g_strdup_printf("channel = \"%s\"",
                                            (const char *)channel);
    g_autofree char *qtree = NULL;
    QHt *h = qht_boot("q35", "null", props, NULL);
    QDict *rsp;

    rsp = qtest_qmp_assert_success_ref(
        h->qts, "{'execute': 'x-query-virtio-status',"
        " 'arguments': {'path': '/machine/peripheral/ht/virtio-backend'}}");
    g_assert_cmpstr(qdict_get_str(rsp, "name"), ==, "hypertrace");
    g_assert_cmpint(qlist_empty(qdict_get_qlist(
                        qdict_get_qdict(rsp, "host-features"),
                        "dev-features")), ==,
                    h->caps.channel != HT_CHANNEL_VIRTIO);
    qobject_unref(rsp);
    qtree = qtest_hmp(h->qts, "info qtree");
    g_assert_nonnull(strstr(qtree, want));
    use(h, 10);
    qht_quit(h);
}

int main(int argc, char **argv)
{
    static const char *const machines[] = { "pc", "q35" };
    static const QHtTest tests[] = {
        { "write-everywhere", test_write_everywhere, QHT_RINGS },
        { "plug", test_plug, QHT_CHANNELS },
        { "monitor", test_monitor, QHT_CHANNELS },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(machines); i++) {
        g_autofree char *layout = g_strdup_printf("hypertrace/pci/%s/layout",
                                                  machines[i]);
        g_autofree char *caps = g_strdup_printf("hypertrace/pci/%s/caps",
                                                machines[i]);
        g_autofree char *sizes = g_strdup_printf("hypertrace/pci/%s/reads",
                                                 machines[i]);
        g_autofree char *several = g_strdup_printf("hypertrace/pci/%s/several",
                                                   machines[i]);

        if (qtest_has_machine(machines[i])) {
            qtest_add_data_func(layout, machines[i], test_layout);
            qtest_add_data_func(caps, machines[i], test_caps);
            qtest_add_data_func(sizes, machines[i], test_read_sizes);
            qtest_add_data_func(several, machines[i], test_several);
        }
    }
    qht_add_tests("pci", tests, G_N_ELEMENTS(tests));
    qtest_add_func("hypertrace/pci/refused", test_refused);
    qtest_add_func("hypertrace/pci/no-module", test_no_module);
    qtest_add_func("hypertrace/pci/chroot", test_chroot);
    qtest_add_func("hypertrace/pci/replug", test_replug);
    qtest_add_func("hypertrace/pci/objects-in-use", test_objects_in_use);
    qtest_add_func("hypertrace/pci/memdev", test_memdev);
    return g_test_run();
}
