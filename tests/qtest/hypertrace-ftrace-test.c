/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the object that follows a guest's ftrace ring
 *
 * The kernel is this program, which writes the ring into the guest's memory,
 * a file that both have mapped.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/timer.h"
#include "qemu/units.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "libqos/pci-pc.h"
#include "../unit/ftrace-guest.h"

#define RAM_SIZE    (64 * MiB)
#define RING_AT     (32 * MiB)
#define CPUS        2

/* Of events as fg_event() writes them */
static const char formats[] =
    "system: test\n"
    "name: counted\n"
    "ID: 17\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
    "\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:u64 seq;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"%llu\", REC->seq\n";

/* A VM, whose path and log are those of the object "ft" */
typedef struct Vm {
    QHt h;
    char *ram;
    char *formats;
    void *map;
    FtGuest guest;
    uint64_t ns;                /* of the guest's clock */
} Vm;

static void map_ram(Vm *vm)
{
    int fd;

    vm->ram = qht_temporary();
    fd = open(vm->ram, O_RDWR);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, RAM_SIZE), ==, 0);
    vm->map = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(vm->map != MAP_FAILED);
    close(fd);
}

/* Start QEMU; without @with_formats events are bytes */
static void start(Vm *vm, bool with_formats, const char *extra)
{
    g_autofree char *option = NULL;

    map_ram(vm);
    vm->h.log = qht_temporary();
    vm->h.path = g_strdup("/objects/ft");
    if (with_formats) {
        vm->formats = qht_temporary();
        g_assert_true(g_file_set_contents(vm->formats, formats, -1, NULL));
        option = g_strdup_printf(",formats=%s", vm->formats);
    }
    vm->h.qts = qtest_initf(
        "-machine pc,memory-backend=ram -nodefaults "
        "-object memory-backend-file,id=ram,share=on,size=%u,mem-path=%s "
        "-object hypertrace-backend-log,id=be,file=%s "
        "-object hypertrace-ftrace,id=ft,backend=be,poll-ms=1%s %s",
        (unsigned)RAM_SIZE, vm->ram, vm->h.log, option ?: "", extra ?: "");
}

static void end(Vm *vm)
{
    if (vm->h.qts) {
        qtest_quit(vm->h.qts);
    }
    if (vm->guest.mem) {
        fg_clear(&vm->guest);
    }
    munmap(vm->map, RAM_SIZE);
    qht_unlink(vm->ram);
    qht_unlink(vm->h.log);
    if (vm->formats) {
        qht_unlink(vm->formats);
    }
    g_free(vm->h.path);
}

/* The kernel makes its ring. */
static void boot(Vm *vm, HtFtLayout layout)
{
    vm->guest = (FtGuest) {
        .mem = vm->map,
        .size = RAM_SIZE,
        .offset = RING_AT,
        .layout = layout,
        .subbuf = 4096,
        .nr = 8,
        .cpus = CPUS,
    };
    fg_init(&vm->guest);
    vm->ns = 1000000;
}

static void write_events(Vm *vm, unsigned n)
{
    unsigned i, cpu;

    for (i = 0; i < n; i++) {
        for (cpu = 0; cpu < CPUS; cpu++) {
            vm->ns += 1000;
            fg_event(&vm->guest, cpu, vm->ns, i % 5);
        }
    }
}

static QDict *stats(Vm *vm)
{
    return qtest_qmp_assert_success_ref(
        vm->h.qts, "{'execute': 'qom-get', 'arguments': {'path': %s,"
        " 'property': 'stats'}}", vm->h.path);
}

static uint64_t nr_rings(Vm *vm, bool changing)
{
    QDict *s = stats(vm);
    uint64_t n = 0;
    QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(s, "rings"), e) {
        QDict *ring = qobject_to(QDict, qlist_entry_obj(e));

        n += !changing || qdict_get_bool(ring, "changes");
    }
    qobject_unref(s);
    return n;
}

static uint64_t ring_stat(Vm *vm, const char *name)
{
    QDict *s = stats(vm);
    const QListEntry *e = qlist_first(qdict_get_qlist(s, "rings"));
    uint64_t value;

    g_assert_nonnull(e);
    value = qnum_get_uint(qobject_to(QNum, qdict_get(
        qobject_to(QDict, qlist_entry_obj(e)), name)));
    qobject_unref(s);
    return value;
}

/* One more event of each processor shows that the ring is alive. */
static void wait_found(Vm *vm)
{
    QHT_WAIT(nr_rings(vm, false) == 1);
    write_events(vm, 1);
    QHT_WAIT(nr_rings(vm, true) == 1);
}

/*
 * The events of a stream in the log: numbers @from to @to - 1, in this order.
 * Returns what follows.
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

static char *read_log(Vm *vm)
{
    char *text;

    qht_settle(&vm->h);
    g_assert_true(g_file_get_contents(vm->h.log, &text, NULL, NULL));
    return text;
}

/* How many events of that number are in the log */
static unsigned count_number(Vm *vm, uint64_t number)
{
    g_autofree char *what = g_strdup_printf(" seq=%" PRIu64, number);
    g_autofree char *log = read_log(vm);
    g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
    unsigned i, n = 0;

    for (i = 0; lines[i]; i++) {
        n += g_str_has_suffix(lines[i], what);
    }
    return n;
}

/* Found, from its first event on; then followed while it wraps */
static void test_follow(const void *layout)
{
    g_autofree char *log = NULL;
    Vm vm = { };
    unsigned i, written = 21;

    start(&vm, true, NULL);
    boot(&vm, GPOINTER_TO_INT(layout));
    write_events(&vm, 20);
    wait_found(&vm);
    g_assert_cmphex(ring_stat(&vm, "address"), ==, RING_AT);
    g_assert_cmpuint(ring_stat(&vm, "cpus"), ==, CPUS);
    QHT_WAIT(qht_stat(&vm.h, "events") == written * CPUS);
    for (i = 0; i < 20; i++) {
        write_events(&vm, 100);
        written += 100;
        QHT_WAIT(qht_stat(&vm.h, "events") == written * CPUS);
    }
    g_assert_cmpuint(qht_stat(&vm.h, "gaps"), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "no-format"), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, 1);
    log = read_log(&vm);
    for (i = 0; i < CPUS; i++) {
        check_numbers(log, i, 0, written);
    }
    end(&vm);
}

/* What is overwritten before it is read is a gap. */
static void test_gap(void)
{
    Vm vm = { };

    start(&vm, true, NULL);
    boot(&vm, HT_FT_LAYOUT_6_11);
    wait_found(&vm);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
    write_events(&vm, 5000);
    g_assert_cmpuint(qht_stat(&vm.h, "gaps"), ==, 0);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
    QHT_WAIT(qht_stat(&vm.h, "gaps") == CPUS);
    QHT_WAIT(qht_stat(&vm.h, "events") > 2 * CPUS);
    g_assert_cmpuint(count_number(&vm, 0), ==, CPUS);
    g_assert_cmpuint(count_number(&vm, 2000), ==, 0);
    g_assert_cmpuint(count_number(&vm, 5000), ==, CPUS);
    end(&vm);
}

static void test_no_formats(void)
{
    Vm vm = { };

    start(&vm, false, NULL);
    boot(&vm, HT_FT_LAYOUT_6_15);
    wait_found(&vm);
    write_events(&vm, 3);
    QHT_WAIT(qht_stat(&vm.h, "events") == 4 * CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "no-format"), ==, 4 * CPUS);
    g_assert_cmpuint(qht_log_count(&vm.h, " ftrace.raw common_pid=1001"
                                   " common_flags=0x0 common_type=17"
                                   " bytes=[0x3 0x0 "), ==, 1);
    end(&vm);
}

/* When a command returns that stops the VM, all was taken. */
static void test_stop(void)
{
    Vm vm = { };

    start(&vm, true, NULL);
    boot(&vm, HT_FT_LAYOUT_6_11);
    wait_found(&vm);
    write_events(&vm, 50);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'stop'}");
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 51 * CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'cont'}");
    write_events(&vm, 1);
    QHT_WAIT(qht_stat(&vm.h, "events") == 52 * CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'object-del',"
                             " 'arguments': {'id': 'ft'}}");
    g_assert_cmpuint(qht_file_count(vm.h.log, "\" closed, 0 events"), ==, CPUS);
    qtest_qmp_assert_success(vm.h.qts, "{'execute': 'object-add',"
                             " 'arguments': {'qom-type': 'hypertrace-ftrace',"
                             " 'id': 'ft', 'backend': 'be', 'poll-ms': 1,"
                             " 'formats': %s}}", vm.formats);
    wait_found(&vm);
    QHT_WAIT(qht_stat(&vm.h, "events") == 53 * CPUS);
    g_assert_cmpuint(count_number(&vm, 0), ==, 2 * CPUS);
    end(&vm);
}

static bool is_erased(Vm *vm)
{
    return ht_get_le32((uint8_t *)vm->map + RING_AT) == 0;
}

/* The next kernel finds no ring; what the one before wrote was taken. */
static void test_reset(const void *layout)
{
    g_autofree char *log = NULL;
    const char *rest;
    unsigned i;
    Vm vm = { };

    start(&vm, true, NULL);
    boot(&vm, GPOINTER_TO_INT(layout));
    wait_found(&vm);
    write_events(&vm, 50);
    qtest_system_reset(vm.h.qts);
    g_assert_true(is_erased(&vm));
    for (i = 0; i < CPUS; i++) {
        uint64_t magic = layout ? RING_AT : vm.guest.cpu[i].line - 24;

        g_assert_cmphex(ht_get_le32((uint8_t *)vm.map + magic), ==, 0);
    }
    g_assert_cmpuint(nr_rings(&vm, false), ==, 0);
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 51 * CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "resets"), ==, 1);

    boot(&vm, GPOINTER_TO_INT(layout));
    wait_found(&vm);
    write_events(&vm, 20);
    QHT_WAIT(qht_stat(&vm.h, "events") == (51 + 21) * CPUS);
    g_assert_cmpuint(qht_stat(&vm.h, "boots"), ==, 2);
    log = read_log(&vm);
    for (i = 0; i < CPUS; i++) {
        rest = check_numbers(log, i, 0, 51);
        check_numbers(rest, i, 0, 21);
    }
    end(&vm);
}

/* A kernel that died before its ring was seen to change */
static void test_reset_early(void)
{
    Vm vm = { };

    start(&vm, true, NULL);
    boot(&vm, HT_FT_LAYOUT_6_11);
    write_events(&vm, 3);
    QHT_WAIT(nr_rings(&vm, false) == 1);
    qtest_system_reset(vm.h.qts);
    g_assert_true(is_erased(&vm));
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 3 * CPUS);
    end(&vm);
}

static void test_snapshot(void)
{
    Vm vm = { };
    FtGuest saved;
    char *disk;

    start(&vm, true, NULL);
    disk = qht_add_disk(vm.h.qts);
    boot(&vm, HT_FT_LAYOUT_6_11);
    wait_found(&vm);
    write_events(&vm, 10);
    qht_snapshot(vm.h.qts, false, "a");
    saved = vm.guest;
    write_events(&vm, 10);
    qht_snapshot(vm.h.qts, true, "a");
    /* what it wrote meanwhile, but also that never happened */
    g_assert_cmpuint(qht_stat(&vm.h, "events"), ==, 21 * CPUS);
    memcpy(vm.guest.cpu, saved.cpu, sizeof(saved.cpu));
    wait_found(&vm);
    /* 12 of each again, in other streams */
    QHT_WAIT(qht_stat(&vm.h, "events") == (21 + 12) * CPUS);
    g_assert_cmpuint(count_number(&vm, 11), ==, 2 * CPUS);
    g_assert_cmpuint(count_number(&vm, 20), ==, CPUS);
    end(&vm);
    qht_unlink(disk);
}

static void test_migrate(void)
{
    Vm from = { }, to = { };
    QHtTarget target = { };

    start(&from, true, NULL);
    start(&to, true, "-incoming defer");
    boot(&from, HT_FT_LAYOUT_6_15);
    wait_found(&from);
    write_events(&from, 10);
    target.qts = to.h.qts;
    target.messages = qht_temporary();
    qht_migrate(&from.h, &target);
    g_assert_cmpuint(qht_stat(&from.h, "events"), ==, 11 * CPUS);
    /* a reset of what is left must not touch what may be shared */
    qtest_system_reset_nowait(from.h.qts);
    qtest_qmp_eventwait(from.h.qts, "RESET");
    g_assert_false(is_erased(&from));

    to.guest = from.guest;
    to.guest.mem = to.map;
    to.ns = from.ns;
    from.guest.mem = NULL;
    wait_found(&to);
    QHT_WAIT(qht_stat(&to.h, "events") == 12 * CPUS);
    g_assert_cmpuint(qht_stat(&from.h, "events"), ==, 11 * CPUS);
    end(&from);
    end(&to);
    qht_unlink(target.messages);
}

/* One word of the ring becomes anything, or something that could be. */
static void lie(Vm *vm)
{
    uint64_t at = (uint32_t)g_test_rand_int(), v = (uint32_t)g_test_rand_int();

    /* most are headers */
    at = v % 4 ? at % 256 :
         at % (vm->guest.cpu[CPUS - 1].pages + 8 * 4096 - RING_AT);
    if (v % 3) {
        v |= (uint64_t)g_test_rand_int() << 32;
    } else {
        v %= 5000;
    }
    fg_put(&vm->guest, RING_AT + (at & ~7ull), v);
}

/* Rings that lie, and change while they are looked at */
static void test_hostile(void)
{
    unsigned round, i;
    Vm vm = { };

    start(&vm, true, NULL);
    for (round = 0; round < 6; round++) {
        boot(&vm, round % 2 ? HT_FT_LAYOUT_6_15 : HT_FT_LAYOUT_6_11);
        wait_found(&vm);
        write_events(&vm, 100);
        for (i = 0; i < 100; i++) {
            lie(&vm);
            g_assert_cmpuint(nr_rings(&vm, false), <=, 8);
        }
        /* with the magic number the ring goes */
        memset((uint8_t *)vm.map + RING_AT, 0, 1 * MiB);
        fg_clear(&vm.guest);
        vm.guest.mem = NULL;
        QHT_WAIT(nr_rings(&vm, false) == 0);
    }
    end(&vm);
}

/* The ring is in memory that goes away: of a PCI device, which is RAM, too. */
static void test_unplug(void)
{
    Vm vm = { };
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
    start(&vm, true, device);
    bus = qpci_new_pc(vm.h.qts, NULL);
    dev = qpci_device_find(bus, QPCI_DEVFN(6, 0));
    g_assert_nonnull(dev);
    bar = qpci_iomap(dev, 2, NULL);
    at = bar.addr;
    g_assert_cmpuint(at % (2 * MiB), ==, 0);
    qpci_device_enable(dev);

    vm.guest = (FtGuest) {
        .mem = own, .size = 4 * MiB, .subbuf = 4096, .nr = 8, .cpus = CPUS,
    };
    fg_init(&vm.guest);
    vm.ns = 1000;
    wait_found(&vm);
    g_assert_cmphex(ring_stat(&vm, "address"), ==, at);
    QHT_WAIT(qht_stat(&vm.h, "events") == CPUS);
    qpci_config_writew(dev, PCI_COMMAND, 0);
    QHT_WAIT(nr_rings(&vm, false) == 0);
    g_assert_cmpuint(qht_log_count(&vm.h, "closed"), ==, CPUS);
    qpci_device_enable(dev);
    wait_found(&vm);
    QHT_WAIT(qht_stat(&vm.h, "events") == 3 * CPUS);

    qpci_iounmap(dev, bar);
    g_free(dev);
    qpci_free_pc(bus);
    end(&vm);
    munmap(own, 4 * MiB);
    close(fd);
    qht_unlink(file);
    g_free(device);
}

static void refused(Vm *vm, const char *property, const char *value,
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
    Vm vm = { };

    start(&vm, true, NULL);
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
    end(&vm);
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
    qtest_add_func("hypertrace/ftrace/gap", test_gap);
    qtest_add_func("hypertrace/ftrace/no-formats", test_no_formats);
    qtest_add_func("hypertrace/ftrace/stop", test_stop);
    qtest_add_func("hypertrace/ftrace/reset-early", test_reset_early);
    qtest_add_func("hypertrace/ftrace/snapshot", test_snapshot);
    qtest_add_func("hypertrace/ftrace/migrate", test_migrate);
    qtest_add_func("hypertrace/ftrace/hostile", test_hostile);
    qtest_add_func("hypertrace/ftrace/unplug", test_unplug);
    qtest_add_func("hypertrace/ftrace/refused", test_refused);
    return g_test_run();
}
