/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the object that follows a guest's ftrace ring
 *
 * This program writes the ring, as the guest's kernel would; see
 * hypertrace-ftrace.h.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/timer.h"
#include "qemu/units.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/pci-pc.h"
#include "hypertrace-ftrace.h"

/*
 * Check that the log has events @from to @to - 1 of a stream, in order, with
 * dates that do not decrease.  Returns the rest of the log.
 */
static const char *check_numbers(const char *log, unsigned stream,
                                 uint64_t from, uint64_t to)
{
    g_autofree char *prefix = g_strdup_printf("ft stream %u vcpu %u ", stream,
                                              stream);
    uint64_t ns, last = 0;

    while (from < to) {
        const char *line = strstr(log, prefix), *begin, *n;

        g_assert_nonnull(line);
        begin = g_strrstr_len(log, line - log, "\n");
        begin = begin ? begin + 1 : log;
        ns = g_ascii_strtoull(begin, NULL, 10) * NANOSECONDS_PER_SECOND +
             g_ascii_strtoull(strchr(begin, '.') + 1, NULL, 10);
        g_assert_cmpuint(ns, >=, last);
        g_assert_cmpuint(ns, <, g_get_monotonic_time() * 1000 + 1000);
        last = ns;
        g_assert_true(g_str_has_prefix(line + strlen(prefix), "counted "));
        n = strstr(line, "seq=");
        g_assert_nonnull(n);
        g_assert_cmpuint(g_ascii_strtoull(n + 4, NULL, 10), ==, from);
        from++;
        log = n;
    }
    return log;
}

/* A ring is found with all its events, and followed while it wraps. */
static void test_follow(const void *layout)
{
    g_autofree char *log = NULL;
    QFt vm = { };
    unsigned i, written = 21;

    qft_start(&vm, true, NULL);
    qft_boot(&vm, GPOINTER_TO_INT(layout));
    qft_write(&vm, 20);
    qft_wait_found(&vm);
    g_assert_cmphex(qft_ring_stat(&vm, "address"), ==, QFT_AT);
    g_assert_cmpuint(qft_ring_stat(&vm, "cpus"), ==, QFT_CPUS);
    QHT_WAIT(qht_stat(&vm.h, "events") == written * QFT_CPUS);
    for (i = 0; i < 20; i++) {
        qft_write(&vm, 100);
        written += 100;
        QHT_WAIT(qht_stat(&vm.h, "events") == written * QFT_CPUS);
    }
    g_assert_cmpuint(qht_stat(&vm.h, "gaps"), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "no-format"), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, 1);
    log = qft_read_log(&vm);
    for (i = 0; i < QFT_CPUS; i++) {
        check_numbers(log, i, 0, written);
    }
    qft_end(&vm);
}

/* A ring is followed although memory has many copies that do not change. */
static void test_copies(void)
{
    const size_t step = 2 * MiB;
    QFt vm = { };
    unsigned written = 20;
    size_t at;

    qft_start(&vm, true, NULL);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_write(&vm, written);
    for (at = QFT_AT + step; at < QFT_RAM; at += step) {
        memcpy((uint8_t *)vm.map + at, (uint8_t *)vm.map + QFT_AT, step);
    }
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
    QHT_WAIT((qft_write(&vm, 1), written++, qft_nr_rings(&vm, true) == 1));
    QHT_WAIT(qht_stat(&vm.h, "events") == written * QFT_CPUS);
    qft_end(&vm);
}

/*
 * While a kernel creates a ring, only the second processor's part may be
 * visible, which is a valid ring by itself.  It is replaced by the whole ring.
 */
static void test_part(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    vm.guest = (FtGuest) { .mem = vm.map, .size = QFT_RAM, .offset = QFT_AT,
                           .layout = HT_FT_LAYOUT_6_11, .cpus = QFT_CPUS,
                           .nr = 511, .subbuf = 4096 };
    fg_init(&vm.guest);
    /* each part has 2 MiB, so a ring may start at either */
    g_assert_cmphex(vm.guest.cpu[1].line - 24, ==, QFT_AT + 2 * MiB);
    fg_put32(&vm.guest, QFT_AT, 0);
    QHT_WAIT((fg_event(&vm.guest, 1, vm.ns += 1000, 0),
              qft_nr_rings(&vm, true) == 1));
    g_assert_cmphex(qft_ring_stat(&vm, "address"), ==, QFT_AT + 2 * MiB);
    fg_put32(&vm.guest, QFT_AT, FG_MAGIC);
    QHT_WAIT((qft_write(&vm, 1), qft_ring_stat(&vm, "address") == QFT_AT));
    QHT_WAIT((qft_write(&vm, 1), qft_nr_rings(&vm, true) == 1));
    g_assert_cmpuint(qft_nr_rings(&vm, false), ==, 1);
    qft_end(&vm);
}

/* Events that are overwritten before they are read are counted as a gap. */
static void test_gap(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_wait_found(&vm);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
    qft_write(&vm, 5000);
    g_assert_cmpuint(qht_stat(&vm.h, "gaps"), ==, 0);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
    QHT_WAIT(qht_stat(&vm.h, "gaps") == QFT_CPUS);
    QHT_WAIT(qht_stat(&vm.h, "events") > 2 * QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 0), ==, QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 2000), ==, 0);
    g_assert_cmpuint(qft_count(&vm, 5000), ==, QFT_CPUS);
    qft_end(&vm);
}

static void test_no_formats(void)
{
    QFt vm = { };

    qft_start(&vm, false, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_15);
    qft_wait_found(&vm);
    qft_write(&vm, 3);
    QHT_WAIT(qht_stat(&vm.h, "events") == 4 * QFT_CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "no-format"), ==, 4 * QFT_CPUS);
    g_assert_cmpuint(qht_log_count(&vm.h, " ftrace.raw common_pid=1001"
                                   " common_flags=0x0 common_type=17"
                                   " bytes=[0x3 0x0 "), ==, 1);
    qft_end(&vm);
}

/* When the command stop returns, all events of the ring are consumed. */
static void test_stop(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_wait_found(&vm);
    qft_write(&vm, 50);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 51 * QFT_CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
    qft_write(&vm, 1);
    QHT_WAIT(qht_stat(&vm.h, "events") == 52 * QFT_CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'object-del',"
                             " 'arguments': {'id': 'ft'}}");
    g_assert_cmpuint(qht_file_count(vm.h.log, "\" closed, 0 events"), ==,
                     QFT_CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'object-add',"
                             " 'arguments': {'qom-type': 'hypertrace-ftrace',"
                             " 'id': 'ft', 'backend': 'be', 'poll-ms': 1,"
                             " 'formats': %s}}", vm.formats);
    qft_wait_found(&vm);
    QHT_WAIT(qht_stat(&vm.h, "events") == 53 * QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 0), ==, 2 * QFT_CPUS);
    qft_end(&vm);
}

/*
 * A reset consumes all events and then erases the ring, so that the rest of it
 * is not taken for the next kernel's ring.
 */
static void test_reset(const void *layout)
{
    g_autofree char *log = NULL;
    const char *rest;
    unsigned i;
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, GPOINTER_TO_INT(layout));
    qft_wait_found(&vm);
    qft_write(&vm, 50);
    qtest_system_reset(vm.h.qts);
    g_assert_true(qft_is_erased(&vm));
    for (i = 0; i < QFT_CPUS; i++) {
        uint64_t magic = layout ? QFT_AT : vm.guest.cpu[i].line - 24;

        g_assert_cmphex(ht_get_le32((uint8_t *)vm.map + magic), ==, 0);
    }
    g_assert_cmpuint(qft_nr_rings(&vm, false), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 51 * QFT_CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "resets"), ==, 1);

    qft_boot(&vm, GPOINTER_TO_INT(layout));
    qft_wait_found(&vm);
    qft_write(&vm, 20);
    QHT_WAIT(qht_stat(&vm.h, "events") == (51 + 21) * QFT_CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, 2);
    log = qft_read_log(&vm);
    for (i = 0; i < QFT_CPUS; i++) {
        rest = check_numbers(log, i, 0, 51);
        check_numbers(rest, i, 0, 21);
    }
    qft_end(&vm);
}

/* After S3 the same kernel continues, so a wakeup does not erase the ring. */
static void test_suspend(void)
{
    const uint16_t pm = 0x600;
    QPCIDevice *dev;
    QPCIBus *bus;
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_wait_found(&vm);
    bus = qpci_new_pc(vm.h.qts, NULL);
    dev = qpci_device_find(bus, QPCI_DEVFN(1, 3));
    g_assert_nonnull(dev);
    qpci_config_writel(dev, 0x40, pm);
    qpci_config_writeb(dev, 0x80, 1);
    /* PM1_CNT: SLP_TYP of S3, SLP_EN */
    qtest_outw(vm.h.qts, pm + 4, 1 << 10 | 1 << 13);
    qtest_qmp_eventwait(vm.h.qts, "SUSPEND");
    qft_write(&vm, 1);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'system_wakeup'}");
    qtest_qmp_eventwait(vm.h.qts, "WAKEUP");
    g_assert_false(qft_is_erased(&vm));
    g_assert_cmpuint(qft_nr_rings(&vm, true), ==, 1);
    qft_write(&vm, 1);
    QHT_WAIT(qht_stat(&vm.h, "events") == 3 * QFT_CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, 1);
    g_assert_cmpuint(qht_stat(&vm.h, "resets"), ==, 0);
    g_free(dev);
    qpci_free_pc(bus);
    qft_end(&vm);
}

/* A reset also consumes a ring that was not yet seen to change. */
static void test_reset_early(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_write(&vm, 3);
    QHT_WAIT(qft_nr_rings(&vm, false) == 1);
    qtest_system_reset(vm.h.qts);
    g_assert_true(qft_is_erased(&vm));
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 3 * QFT_CPUS);
    qft_end(&vm);
}

/* After kexec, a ring of another size at the same address is followed. */
static void test_other_size(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    qft_boot(&vm, HT_FT_LAYOUT_6_15);
    qft_wait_found(&vm);
    fg_clear(&vm.guest);
    vm.guest.nr = 16;
    fg_init(&vm.guest);
    QHT_WAIT(qft_has_ring(&vm, 1));
    g_assert_false(qft_has_ring(&vm, 0));
    qft_write(&vm, 1);
    QHT_WAIT(qft_nr_rings(&vm, true) == 1);
    qft_write(&vm, 300);
    QHT_WAIT(qft_count(&vm, 300) == QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 150), ==, QFT_CPUS);
    qft_end(&vm);
}

static void test_snapshot(void)
{
    QFt vm = { };
    FtGuest saved;
    char *disk;

    qft_start(&vm, true, NULL);
    disk = qht_add_disk(vm.h.qts);
    qft_boot(&vm, HT_FT_LAYOUT_6_11);
    qft_wait_found(&vm);
    qft_write(&vm, 10);
    qht_snapshot(vm.h.qts, false, "a");
    saved = vm.guest;
    qft_write(&vm, 10);
    qht_snapshot(vm.h.qts, true, "a");
    /* loadvm consumes events after savevm, which then never happened */
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 21 * QFT_CPUS);
    memcpy(vm.guest.cpu, saved.cpu, sizeof(saved.cpu));
    qft_wait_found(&vm);
    /* the restored ring has 12 events for each CPU, in new streams */
    QHT_WAIT(qht_stat(&vm.h, "events") == (21 + 12) * QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 11), ==, 2 * QFT_CPUS);
    g_assert_cmpuint(qft_count(&vm, 20), ==, QFT_CPUS);
    qft_end(&vm);
    qht_unlink(disk);
}

static void test_migrate(void)
{
    QFt from = { }, to = { };
    QHtTarget target = { };

    qft_start(&from, true, NULL);
    qft_start(&to, true, "-incoming defer");
    qft_boot(&from, HT_FT_LAYOUT_6_15);
    qft_wait_found(&from);
    qft_write(&from, 10);
    target.qts = to.h.qts;
    target.messages = qht_temporary();
    qht_migrate(&from.h, &target);
    g_assert_cmpuint(qht_stat(&from.h, "events"), ==, 11 * QFT_CPUS);
    /* a reset of the source must not erase RAM that the target may share */
    qtest_system_reset_nowait(from.h.qts);
    qtest_qmp_eventwait(from.h.qts, "RESET");
    g_assert_false(qft_is_erased(&from));

    to.guest = from.guest;
    to.guest.mem = to.map;
    to.ns = from.ns;
    from.guest.mem = NULL;
    qft_wait_found(&to);
    QHT_WAIT(qht_stat(&to.h, "events") == 12 * QFT_CPUS);
    g_assert_cmpuint(qht_stat(&from.h, "events"), ==, 11 * QFT_CPUS);
    qft_end(&from);
    qft_end(&to);
    qht_unlink(target.messages);
}

/* Overwrite one word of the ring by a random or a plausible value */
static void lie(QFt *vm)
{
    uint64_t at = (uint32_t)g_test_rand_int(), v = (uint32_t)g_test_rand_int();

    /* most of them in the header of a part */
    at = v % 4 ? at % 256 :
         at % (vm->guest.cpu[QFT_CPUS - 1].pages + 8 * 4096 - QFT_AT);
    if (v % 3) {
        v |= (uint64_t)g_test_rand_int() << 32;
    } else {
        v %= 5000;
    }
    fg_put(&vm->guest, QFT_AT + (at & ~7ull), v);
}

/* Rings with wrong contents, which change while QEMU reads them */
static void test_hostile(void)
{
    unsigned round, i;
    QFt vm = { };

    qft_start(&vm, true, NULL);
    for (round = 0; round < 6; round++) {
        qft_boot(&vm, round % 2 ? HT_FT_LAYOUT_6_15 : HT_FT_LAYOUT_6_11);
        qft_wait_found(&vm);
        qft_write(&vm, 100);
        for (i = 0; i < 100; i++) {
            lie(&vm);
            g_assert_cmpuint(qft_nr_rings(&vm, false), <=, 8);
        }
        /* without its magic number the ring is dropped */
        memset((uint8_t *)vm.map + QFT_AT, 0, 1 * MiB);
        fg_clear(&vm.guest);
        vm.guest.mem = NULL;
        QHT_WAIT(qft_nr_rings(&vm, false) == 0);
    }
    qft_end(&vm);
}

/* If the guest boots before each poll, the number of streams is bounded. */
static void test_many_boots(void)
{
    const unsigned cpus = 8, boots = 150, at_once = 1024;
    int64_t begin = g_get_monotonic_time(), seconds;
    unsigned boot, cpu, opened;
    QFt vm = { };

    qft_start(&vm, true, NULL);
    for (boot = 0; boot < boots; boot++) {
        qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
        if (boot) {
            fg_clear(&vm.guest);
        }
        qft_boot(&vm, HT_FT_LAYOUT_6_11);
        fg_clear(&vm.guest);
        vm.guest.cpus = cpus;
        fg_init(&vm.guest);
        vm.ns += boot;
        for (cpu = 0; cpu < cpus; cpu++) {
            fg_event(&vm.guest, cpu, vm.ns, 0);
        }
        if (!boot) {
            qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
            QHT_WAIT(qft_nr_rings(&vm, false) == 1);
            qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
        }
        /* the clock of the next boot starts again at an earlier time */
        vm.ns += 5 * NANOSECONDS_PER_SECOND;
        for (cpu = 0; cpu < cpus; cpu++) {
            fg_event(&vm.guest, cpu, vm.ns, 0);
        }
        qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
        QHT_WAIT(qht_file_count(vm.h.log, " seq=1") == cpus * (boot + 1));
    }
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 2 * cpus * boots);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, boots);
    opened = qht_log_count(&vm.h, "\" opened");
    seconds = (g_get_monotonic_time() - begin) / G_USEC_PER_SEC + 1;
    g_assert_cmpuint(opened, >=, at_once);
    g_assert_cmpuint(opened, <=, at_once + seconds * at_once / 60);
    qft_end(&vm);
}

/* A ring in the RAM of a PCI device is dropped if its BAR is unmapped. */
static void test_unplug(void)
{
    QFt vm = { };
    QPCIDevice *dev;
    QPCIBus *bus;
    QPCIBar bar;
    char *file = qht_temporary(), *device;
    uint8_t *own;
    uint32_t at;
    int fd = open(file, O_RDWR);

    g_assert_cmpint(ftruncate(fd, 4 * MiB), ==, 0);
    own = mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(own != MAP_FAILED);
    device = g_strdup_printf("-object memory-backend-file,id=more,share=on,"
                             "size=4M,mem-path=%s "
                             "-device ivshmem-plain,memdev=more,addr=6", file);
    qft_start(&vm, true, device);
    bus = qpci_new_pc(vm.h.qts, NULL);
    dev = qpci_device_find(bus, QPCI_DEVFN(6, 0));
    g_assert_nonnull(dev);
    bar = qpci_iomap(dev, 2, NULL);
    at = bar.addr;
    g_assert_cmpuint(at % (2 * MiB), ==, 0);
    qpci_device_enable(dev);

    vm.guest = (FtGuest) {
        .mem = own, .size = 4 * MiB, .subbuf = 4096, .nr = 8, .cpus = QFT_CPUS,
    };
    fg_init(&vm.guest);
    vm.ns = 1000;
    qft_wait_found(&vm);
    g_assert_cmphex(qft_ring_stat(&vm, "address"), ==, at);
    QHT_WAIT(qht_stat(&vm.h, "events") == QFT_CPUS);
    qpci_config_writew(dev, PCI_COMMAND, 0);
    QHT_WAIT(qft_nr_rings(&vm, false) == 0);
    g_assert_cmpuint(qht_log_count(&vm.h, "closed"), ==, QFT_CPUS);
    qpci_device_enable(dev);
    qft_wait_found(&vm);
    QHT_WAIT(qht_stat(&vm.h, "events") == 3 * QFT_CPUS);

    qpci_iounmap(dev, bar);
    g_free(dev);
    qpci_free_pc(bus);
    qft_end(&vm);
    munmap(own, 4 * MiB);
    close(fd);
    qht_unlink(file);
    g_free(device);
}

static void refused(QFt *vm, const char *property, const char *value,
                    uint64_t number, const char *why)
{
    QDict *args = qdict_new(), *rsp;

    qdict_put_str(args, "qom-type", "hypertrace-ftrace");
    qdict_put_str(args, "id", "other");
    qdict_put_str(args, "backend", "be");
    qdict_del(args, property);
    if (value) {
        qdict_put_str(args, property, value);
    } else {
        qdict_put_int(args, property, number);
    }
    rsp = qtest_qmp(vm->h.qts, "{'execute': 'object-add', 'arguments': %p}",
                    args);
    g_assert_true(qdict_haskey(rsp, "error"));
    g_assert_cmpstr(qdict_get_str(qdict_get_qdict(rsp, "error"), "desc"), ==,
                    why);
    qobject_unref(rsp);
}

static void test_refused(void)
{
    QFt vm = { };

    qft_start(&vm, true, NULL);
    refused(&vm, "poll-ms", NULL, 0, "poll-ms=0 is out of range: 1 to 1000");
    refused(&vm, "poll-ms", NULL, 1001,
            "poll-ms=1001 is out of range: 1 to 1000");
    refused(&vm, "backlog", NULL, 1000,
            "backlog=1000 is out of range: 1048576 to 17179869184");
    refused(&vm, "backend", "ft", 0,
            "backend=ft: there is no hypertrace backend 'ft'");
    refused(&vm, "formats", "/nonexistent", 0, "formats=/nonexistent cannot be"
            " used: Failed to open file \u201c/nonexistent\u201d: No such file"
            " or directory");
    qft_end(&vm);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        HtFtLayout layout;
    } layouts[] = {
        { "6.12", HT_FT_LAYOUT_6_11 },
        { "7", HT_FT_LAYOUT_6_15 },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree char *follow = g_strdup_printf("hypertrace/ftrace/follow/%s",
                                                  layouts[i].name);
        g_autofree char *reset = g_strdup_printf("hypertrace/ftrace/reset/%s",
                                                 layouts[i].name);

        qtest_add_data_func(follow, GINT_TO_POINTER(layouts[i].layout),
                            test_follow);
        qtest_add_data_func(reset, GINT_TO_POINTER(layouts[i].layout),
                            test_reset);
    }
    qtest_add_func("hypertrace/ftrace/copies", test_copies);
    qtest_add_func("hypertrace/ftrace/part", test_part);
    qtest_add_func("hypertrace/ftrace/gap", test_gap);
    qtest_add_func("hypertrace/ftrace/no-formats", test_no_formats);
    qtest_add_func("hypertrace/ftrace/stop", test_stop);
    qtest_add_func("hypertrace/ftrace/suspend", test_suspend);
    qtest_add_func("hypertrace/ftrace/reset-early", test_reset_early);
    qtest_add_func("hypertrace/ftrace/other-size", test_other_size);
    qtest_add_func("hypertrace/ftrace/snapshot", test_snapshot);
    qtest_add_func("hypertrace/ftrace/migrate", test_migrate);
    qtest_add_func("hypertrace/ftrace/hostile", test_hostile);
    qtest_add_func("hypertrace/ftrace/many-boots", test_many_boots);
    qtest_add_func("hypertrace/ftrace/unplug", test_unplug);
    qtest_add_func("hypertrace/ftrace/refused", test_refused);
    return g_test_run();
}
