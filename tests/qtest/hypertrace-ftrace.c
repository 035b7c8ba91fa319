/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a VM with an ftrace ring in its memory, for tests
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/mman.h>
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "hypertrace-ftrace.h"

/* Format of the events that fg_event() writes */
static const char formats[] =
    "system: test\n"
    "name: counted\n"
    "ID: 17\n"
    "format:\n"
    FG_COMMON_FIELDS
    "\tfield:u64 seq;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"%llu\", REC->seq\n";

static void map_ram(QFt *vm)
{
    int fd;

    vm->ram = qht_temporary();
    fd = open(vm->ram, O_RDWR);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, QFT_RAM), ==, 0);
    vm->map = mmap(NULL, QFT_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(vm->map != MAP_FAILED);
    close(fd);
}

void qft_start(QFt *vm, bool with_formats, const char *extra)
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
        "-machine pc,memory-backend=ram -nodefaults %s "
        "-object memory-backend-file,id=ram,share=on,size=%u,mem-path=%s "
        "-object hypertrace-backend-log,id=be,file=%s "
        "-object hypertrace-ftrace,id=ft,%s%s",
        extra ?: "", (unsigned)QFT_RAM, vm->ram, vm->h.log,
        vm->options ?: "backend=be,poll-ms=1", option ?: "");
}

void qft_end(QFt *vm)
{
    if (vm->h.qts) {
        qtest_quit(vm->h.qts);
    }
    if (vm->guest.mem) {
        fg_clear(&vm->guest);
    }
    munmap(vm->map, QFT_RAM);
    qht_unlink(vm->ram);
    qht_unlink(vm->h.log);
    if (vm->formats) {
        qht_unlink(vm->formats);
    }
    g_free(vm->h.path);
}

char *qft_wait_recording(QFt *vm, const char *trigger)
{
    QDict *rsp = qtest_qmp_eventwait_ref(vm->h.qts, "HYPERTRACE_SNAPSHOT");
    QDict *data = qdict_get_qdict(rsp, "data");
    QDict *s = qdict_get_qdict(data, "snapshot");
    char *dir;

    g_assert_cmpstr(qdict_get_str(data, "object"), ==, "/objects/ft");
    g_assert_cmpstr(qdict_get_str(s, "trigger"), ==, trigger);
    g_assert_false(qdict_haskey(s, "error"));
    dir = g_strdup(qdict_get_str(s, "directory"));
    qobject_unref(rsp);
    return dir;
}

void qft_remove_dir(const char *path)
{
    GDir *d = g_dir_open(path, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *inner = g_build_filename(path, name, NULL);

        if (g_file_test(inner, G_FILE_TEST_IS_DIR)) {
            qft_remove_dir(inner);
        } else {
            g_assert_cmpint(g_unlink(inner), ==, 0);
        }
    }
    if (d) {
        g_dir_close(d);
        g_assert_cmpint(g_rmdir(path), ==, 0);
    }
}

void qft_boot(QFt *vm, HtFtLayout layout)
{
    vm->guest = (FtGuest) {
        .mem = vm->map,
        .size = QFT_RAM,
        .offset = QFT_AT,
        .layout = layout,
        .subbuf = 4096,
        .nr = 8,
        .cpus = QFT_CPUS,
    };
    fg_init(&vm->guest);
    vm->ns = 1000000;
}

void qft_write(QFt *vm, unsigned n)
{
    unsigned i, cpu;

    for (i = 0; i < n; i++) {
        for (cpu = 0; cpu < QFT_CPUS; cpu++) {
            vm->ns += 1000;
            fg_event(&vm->guest, cpu, vm->ns, i % 5);
        }
    }
}

static QDict *stats(QFt *vm)
{
    return qht_query(vm->h.qts, vm->h.path);
}

uint64_t qft_nr_rings(QFt *vm, bool changing)
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

bool qft_has_ring(QFt *vm, uint64_t number)
{
    QDict *s = stats(vm);
    bool has = false;
    QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(s, "rings"), e) {
        QDict *ring = qobject_to(QDict, qlist_entry_obj(e));

        has |= qnum_get_uint(qobject_to(QNum, qdict_get(ring, "ring"))) ==
               number;
    }
    qobject_unref(s);
    return has;
}

uint64_t qft_ring_stat(QFt *vm, const char *name)
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

void qft_wait_found(QFt *vm)
{
    QHT_WAIT(qft_nr_rings(vm, false) == 1);
    qft_write(vm, 1);
    QHT_WAIT(qft_nr_rings(vm, true) == 1);
}

char *qft_read_log(QFt *vm)
{
    char *text;

    qht_settle(&vm->h);
    g_assert_true(g_file_get_contents(vm->h.log, &text, NULL, NULL));
    return text;
}

unsigned qft_count(QFt *vm, uint64_t number)
{
    g_autofree char *what = g_strdup_printf(" seq=%" PRIu64, number);
    g_autofree char *log = qft_read_log(vm);
    g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
    unsigned i, n = 0;

    for (i = 0; lines[i]; i++) {
        n += g_str_has_suffix(lines[i], what);
    }
    return n;
}

bool qft_is_erased(QFt *vm)
{
    return ht_get_le32((uint8_t *)vm->map + QFT_AT) == 0;
}
