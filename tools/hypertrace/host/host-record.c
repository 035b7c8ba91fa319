/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --host: record what the host's kernel does
 */
#include <dirent.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "cli/command.h"
#include "host/tracefs.h"
#include "hypertrace/base.h"
#include "hypertrace/guest-clock.h"
#include "hypertrace/recording.h"
#include "host/host-record.h"

/*
 * Period in ns at which the recorder reads the names of the threads of its
 * virtual machine, the clocks, and the TSC offsets of all machines
 */
#define NOTE_NS         UINT64_C(1000000000)
/*
 * Period in ns at which the names of all threads of the host are read, and the
 * files "info", "threads", "clocks" and "offsets" are written
 */
#define WRITE_NS        UINT64_C(10000000000)
/*
 * Size of the rings in KiB: RING_KB for all processors together, but at least
 * RING_MIN_KB and at most RING_CPU_KB for each processor
 */
#define RING_KB         (256u << 10)
#define RING_CPU_KB     4096u
#define RING_MIN_KB     256u
/*
 * Period in ns at which the rings are read: POLL_NS for each KiB of a
 * processor's ring, but at least POLL_MIN_NS. A ring of 1.6 MiB or more is full
 * after one period if the kernel writes 84 MB/s into it; for a smaller ring, a
 * lower rate suffices. A longer period costs less, because the kernel copies a
 * page that is not full event by event.
 */
#define POLL_NS         (UINT64_C(50000000) / RING_CPU_KB)
#define POLL_MIN_NS     UINT64_C(20000000)
/*
 * Size of a page of the rings in KiB, on kernels from 6.8 on that can change
 * it: larger pages need fewer reads.  A poll also reads a page that is not
 * full.
 */
#define PAGE_KB         "16"
/*
 * Maximum number of threads and of lines in the file "clocks"; size in bytes at
 * which no further line is added to the file "offsets"
 */
#define THREADS_MAX     65536u
#define CLOCKS_MAX      100000u
#define OFFSETS_MAX     (1u << 20)
/* Maximum number of pages read from a ring in one poll: more than a ring has */
#define PAGES_MAX       8192u

/*
 * sched_switch and sched_waking are recorded for all tasks: a filter for the
 * machine's threads would hide which task took their processor. kvm's events
 * are recorded for all machines, because the recorders of other machines link
 * to this part.
 */
static const struct {
    const char *system;
    const char *name;
} events[] = {
    { "sched", "sched_switch" },
    { "sched", "sched_waking" },
    { "irq", "irq_handler_entry" },
    { "irq", "irq_handler_exit" },
    { "kvm", "kvm_entry" },
    { "kvm", "kvm_exit" },
    { "kvm", "kvm_userspace_exit" },
    { "kvm", "kvm_inj_virq" },
    { "kvm", "kvm_pio" },
    { "kvm", "kvm_mmio" },
    { "kvm", "kvm_msr" },
    { "kvm", "kvm_hypercall" },
    { "kvm", "kvm_page_fault" },
    { "kvm", "kvm_halt_poll_ns" },
    { "kvm", "kvm_vcpu_wakeup" },
    { "kvm", "kvm_write_tsc_offset" },
};

struct HtHostRecord {
    HtTracefs *trace;
    HtRecWriter *writer;
    GKeyFile *keys;
    /* descriptor of the root of debugfs; -1: not available */
    int debugfs;
    /*
     * by processor: descriptor of its ring, an int; -1 if there is no such
     * processor
     */
    GArray *rings;
    uint32_t page_size;
    uint32_t ring_kb;           /* size of a processor's ring in KiB */
    uint64_t poll_ns;           /* period in ns at which the rings are read */
    uint64_t max_bytes;
    pid_t pid;
    /*
     * CLOCK_MONOTONIC in ns of the last read of the rings; before it, of the
     * start
     */
    uint64_t polled;
    uint64_t noted;
    uint64_t written;
    /* table from a thread ID to its line of the file "threads" */
    GHashTable *threads;
    /* table from "PID VCPU" to the vCPU's last TSC offset */
    GHashTable *offsets;
    GString *offset_lines;
    GString *clocks;
    unsigned nr_clocks;
    HtHostStats stats;
    GError *error;
    bool full;
};

static void add_page(HtHostRecord *h, uint32_t cpu, const uint8_t *data,
                     uint64_t now)
{
    HtFtPage page;
    HtFtPiece p;

    if (!ht_ft_page_parse(data, h->page_size, &page) || !page.size) {
        return;
    }
    p = (HtFtPiece) {
        .cpu = cpu,
        .size = page.size,
        .data = data + HT_FT_PAGE_HEADER,
        .stamp = page.stamp,
        .base_ns = page.stamp,
        .flags = HT_FT_PIECE_BEGIN | (page.missed ? HT_FT_PIECE_LOST : 0),
        .lost_estimate = page.missed_count,
        .host_before = h->polled,
        .host_after = now,
    };
    h->stats.gaps += page.missed;
    h->stats.lost += page.missed_count;
    if (!h->error) {
        ht_rec_writer_piece(h->writer, &p, &h->error);
    }
}

/* Copy the pages that the rings have now, at most PAGES_MAX of each ring. */
static void read_rings(HtHostRecord *h, uint64_t now)
{
    unsigned cpu, n;

    for (cpu = 0; cpu < h->rings->len; cpu++) {
        int fd = g_array_index(h->rings, int, cpu);

        for (n = 0; fd >= 0 && n < PAGES_MAX; n++) {
            /* Read into the writer's memory, which saves a copy of the page. */
            uint8_t *page = ht_rec_writer_room(h->writer, cpu, h->page_size) -
                            HT_REC_ROOM_BEFORE;
            ssize_t size = read(fd, page, h->page_size);

            if (size < (ssize_t)HT_FT_PAGE_HEADER) {
                break;
            }
            memset(page + size, 0, h->page_size - size);
            add_page(h, cpu, page, now);
        }
    }
    if (!h->error) {
        ht_rec_writer_flush(h->writer, &h->error);
    }
    h->stats.bytes = ht_rec_writer_bytes(h->writer);
    h->polled = now;
}

/*
 * Read the first line of the file @name of the folder @dir into @text; at most
 * @size - 1 bytes.
 */
static bool read_line(int dir, const char *name, char *text, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0) {
        close(fd);
    }
    if (n < 0) {
        return false;
    }
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return true;
}

/*
 * Call @one for each entry of the folder @dir that has a number as its name.
 * Close @dir; do nothing if it is -1.
 */
static void each_number(int dir, void (*one)(HtHostRecord *h, int dir,
                                             unsigned outer, unsigned n),
                        HtHostRecord *h, unsigned outer)
{
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *e;
    guint64 n;

    if (!d && dir >= 0) {
        close(dir);
    }
    while (d && (e = readdir(d))) {
        if (g_ascii_string_to_unsigned(e->d_name, 10, 1, INT32_MAX, &n,
                                       NULL)) {
            one(h, dirfd(d), outer, n);
        }
    }
    if (d) {
        closedir(d);
    }
}

static void note_thread(HtHostRecord *h, int dir, unsigned pid, unsigned tid)
{
    g_autofree char *path = g_strdup_printf("%u/comm", tid);
    char name[64];

    if (g_hash_table_size(h->threads) < THREADS_MAX &&
        read_line(dir, path, name, sizeof(name))) {
        g_hash_table_insert(h->threads, GUINT_TO_POINTER(tid),
                            g_strdup_printf("%u %u %s\n", tid, pid, name));
    }
}

static void note_process(HtHostRecord *h, int proc, unsigned outer,
                         unsigned pid)
{
    g_autofree char *path = g_strdup_printf("%u/task", pid);

    each_number(openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                note_thread, h, pid);
}

static void note_all_threads(HtHostRecord *h)
{
    each_number(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                note_process, h, 0);
}

static void note_threads_of(HtHostRecord *h, unsigned pid)
{
    int proc = pid ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (proc >= 0) {
        note_process(h, proc, 0, pid);
        close(proc);
    }
}

#if defined(__x86_64__)
/*
 * Read the TSC, for ht_bracket(). The fences keep this reading between the two
 * readings of the host's clock.
 */
static uint64_t read_tsc(void *opaque)
{
    uint64_t tsc;

    _mm_lfence();
    tsc = __rdtsc();
    _mm_lfence();
    return tsc;
}
#endif

static void note_clock(HtHostRecord *h)
{
#if defined(__x86_64__)
    HtBracket b = ht_bracket(read_tsc, NULL);
    uint64_t before = b.ns - b.width / 2;

    if (h->nr_clocks++ < CLOCKS_MAX) {
        g_string_append_printf(h->clocks, "%" PRIu64 " %" PRIu64 " %" PRIu64
                               "\n", b.counter, before, before + b.width);
    }
#endif
}

static void note_offset(HtHostRecord *h, unsigned pid, unsigned vcpu,
                        const char *offset)
{
    g_autofree char *key = g_strdup_printf("%u %u", pid, vcpu);

    if (h->offset_lines->len < OFFSETS_MAX &&
        g_strcmp0(g_hash_table_lookup(h->offsets, key), offset)) {
        g_string_append_printf(h->offset_lines, "%s %s %" PRIu64 "\n", key,
                               offset, ht_now_ns());
        g_hash_table_insert(h->offsets, g_steal_pointer(&key),
                            g_strdup(offset));
        /* The vCPU may be new: note the names of its process's threads. */
        note_threads_of(h, pid);
    }
}

/*
 * Note the TSC offsets of a machine's vCPUs; @vm: descriptor of the folder
 * kvm/PID-FD in debugfs, which this function closes
 */
static void note_vcpus(HtHostRecord *h, int vm, unsigned pid)
{
    DIR *d = fdopendir(vm);
    struct dirent *e;

    if (!d) {
        close(vm);
        return;
    }
    while ((e = readdir(d))) {
        g_autofree char *path = g_strdup_printf("%s/tsc-offset", e->d_name);
        char offset[64];
        guint64 n;

        if (g_str_has_prefix(e->d_name, "vcpu") &&
            g_ascii_string_to_unsigned(e->d_name + 4, 10, 0, UINT16_MAX, &n,
                                       NULL) &&
            read_line(vm, path, offset, sizeof(offset))) {
            note_offset(h, pid, n, offset);
        }
    }
    closedir(d);
}

/*
 * Note the TSC offsets of all machines: each has a folder kvm/PID-FD in
 * debugfs.
 */
static void note_offsets(HtHostRecord *h)
{
    int kvm = h->debugfs < 0 ? -1 : openat(h->debugfs, "kvm", O_RDONLY |
                                           O_DIRECTORY | O_CLOEXEC);
    DIR *d = kvm < 0 ? NULL : fdopendir(kvm);
    struct dirent *e;
    unsigned pid;

    while (d && (e = readdir(d))) {
        int vm = sscanf(e->d_name, "%u-", &pid) != 1 ? -1 :
                 openat(kvm, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (vm >= 0) {
            note_vcpus(h, vm, pid);
        }
    }
    if (d) {
        closedir(d);
    } else if (kvm >= 0) {
        close(kvm);
    }
}

static void put_line(gpointer key, gpointer line, gpointer out)
{
    g_string_append(out, line);
}

static void write_text(HtHostRecord *h, const char *name, const GString *text)
{
    ht_rec_writer_file(h->writer, name, text->str, text->len,
                       h->error ? NULL : &h->error);
}

static void write_notes(HtHostRecord *h)
{
    g_autoptr(GString) threads = g_string_new(NULL);
    g_autofree char *info = NULL;
    gsize size;

    g_key_file_set_integer(h->keys, "host", "pid", h->pid);
    info = g_key_file_to_data(h->keys, &size, NULL);
    ht_rec_writer_file(h->writer, "info", info, size,
                       h->error ? NULL : &h->error);
    g_hash_table_foreach(h->threads, put_line, threads);
    write_text(h, "threads", threads);
    write_text(h, "offsets", h->offset_lines);
    write_text(h, "clocks", h->clocks);
}

static void take_notes(HtHostRecord *h, uint64_t now, bool write)
{
    /*
     * The threads of other machines than this recorder's are noted only when
     * the files are written, or if note_offset() finds a new TSC offset.
     */
    if (write) {
        note_all_threads(h);
    } else {
        note_threads_of(h, h->pid);
    }
    note_clock(h);
    note_offsets(h);
    h->noted = now;
    if (write) {
        write_notes(h);
        h->written = now;
    }
}

/*
 * Set the clock and the size of the rings, and open them. The caller enables no
 * event before.
 */
static bool open_rings(HtHostRecord *h, GError **error)
{
    g_autofree char *size = g_strdup_printf("%" PRIu32, h->ring_kb);
    uint32_t cpus = sysconf(_SC_NPROCESSORS_CONF), cpu, open = 0;

    if (!ht_tracefs_write(h->trace, "trace_clock", "mono", error) ||
        !ht_tracefs_write(h->trace, "buffer_size_kb", size, error)) {
        return false;
    }
    if (cpus > HT_FT_CPUS_MAX) {
        ht_notice("--host: the host's processors from number %u on are not "
                  "recorded", HT_FT_CPUS_MAX);
    }
    for (cpu = 0; cpu < MIN(cpus, HT_FT_CPUS_MAX); cpu++) {
        int fd = ht_tracefs_ring(h->trace, cpu);

        open += fd >= 0;
        g_array_append_val(h->rings, fd);
    }
    if (!open) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "the host's tracefs has no rings");
        return false;
    }
    g_key_file_set_integer(h->keys, "host", "ring-kb", h->ring_kb);
    g_key_file_set_integer(h->keys, "host", "cpus",
                           sysconf(_SC_NPROCESSORS_ONLN));
    return true;
}

static bool start(HtHostRecord *h, GError **error)
{
    g_autoptr(GString) formats = g_string_new(NULL);
    struct utsname host;
    bool sched = true;
    unsigned i;

    uname(&host);
    g_key_file_set_string(h->keys, "guest", "release", host.release);
    g_key_file_set_string(h->keys, "guest", "machine", host.machine);
    g_key_file_set_string(h->keys, "host", "clock", "mono");
    ht_tracefs_write(h->trace, "buffer_subbuf_size_kb", PAGE_KB, NULL);
    if (!ht_tracefs_headers(h->trace, formats, &h->page_size, error) ||
        !open_rings(h, error)) {
        return false;
    }
    g_key_file_set_integer(h->keys, "guest", "page-size", h->page_size);
    h->polled = ht_now_ns();
    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        bool ok = ht_tracefs_enable(h->trace, events[i].system,
                                    events[i].name, formats);

        sched &= ok || strcmp(events[i].system, "sched");
    }
    if (!sched) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "the host's kernel does not allow to enable sched_switch "
                    "and sched_waking");
        return false;
    }
    return ht_rec_writer_file(h->writer, "formats", formats->str, formats->len,
                              error);
}

/*
 * Get the number of events that were read.  The kernel counts them: it would
 * cost more to find them in the pages.
 */
static uint64_t count_events(const HtHostRecord *h)
{
    uint64_t events = 0, n;
    uint32_t cpu;

    for (cpu = 0; cpu < h->rings->len; cpu++) {
        if (g_array_index(h->rings, int, cpu) >= 0 &&
            ht_tracefs_count(h->trace, cpu, "read events", &n)) {
            events += n;
        }
    }
    return events;
}

static void free_record(HtHostRecord *h)
{
    unsigned i;

    for (i = 0; i < h->rings->len; i++) {
        int fd = g_array_index(h->rings, int, i);

        if (fd >= 0) {
            close(fd);
        }
    }
    g_array_unref(h->rings);
    if (h->debugfs >= 0) {
        close(h->debugfs);
    }
    /* The kernel removes the instance only after its rings are closed. */
    ht_tracefs_free(h->trace);
    ht_rec_writer_free(h->writer);
    g_key_file_unref(h->keys);
    g_hash_table_destroy(h->threads);
    g_hash_table_destroy(h->offsets);
    g_string_free(h->offset_lines, true);
    g_string_free(h->clocks, true);
    g_clear_error(&h->error);
    g_free(h);
}

/*
 * Make the folder "host" a link to the part of the recorder that already
 * records the host.
 */
static bool link_part(const char *path, const char *other, GError **error)
{
    if (!g_path_is_absolute(other) || symlink(other, path)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "another recorder records the host, and %s cannot refer "
                    "to it: %s", path, g_path_is_absolute(other) ?
                    g_strerror(errno) : "its folder is not known");
        return false;
    }
    ht_notice("another recorder records the host: %s refers to %s", path,
              other);
    return true;
}

HtHostRecord *ht_host_record_new(const char *dir, const char *command,
                                 uint64_t max_bytes, GError **error)
{
    g_autofree char *path = g_build_filename(dir, HT_HOST_FOLDER, NULL);
    g_autofree char *full = g_canonicalize_filename(path, NULL);
    g_autofree char *other = NULL;
    HtTracefs *trace = ht_tracefs_new(full, &other, error);
    HtHostRecord *h;

    if (!trace) {
        if (other) {
            g_clear_error(error);
            link_part(path, other, error);
        }
        return NULL;
    }
    h = g_new0(HtHostRecord, 1);
    h->trace = trace;
    h->debugfs = ht_mount_open("debugfs");
    h->keys = g_key_file_new();
    h->rings = g_array_new(false, false, sizeof(int));
    h->threads = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    h->offsets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    h->offset_lines = g_string_new(NULL);
    h->clocks = g_string_new(NULL);
    h->max_bytes = max_bytes;
    h->ring_kb = CLAMP(RING_KB / MAX(sysconf(_SC_NPROCESSORS_CONF), 1),
                       RING_MIN_KB, RING_CPU_KB);
    h->poll_ns = MAX(h->ring_kb * POLL_NS, POLL_MIN_NS);
    ht_rec_info_begin(h->keys, command, "the host's tracefs",
                      h->poll_ns / 1000);
    h->writer = ht_rec_writer_new(path, error);
    if (!h->writer || !start(h, error)) {
        if (h->writer) {
            ht_rec_writer_discard(h->writer);
        }
        free_record(h);
        return NULL;
    }
    take_notes(h, h->polled, true);
    return h;
}

void ht_host_record_poll(HtHostRecord *h, pid_t pid)
{
    uint64_t now = ht_now_ns();

    if (!h) {
        return;
    }
    h->pid = pid;
    if (h->full || h->error || now - h->polled < h->poll_ns) {
        return;
    }
    read_rings(h, now);
    if (now - h->noted >= NOTE_NS) {
        take_notes(h, now, now - h->written >= WRITE_NS);
    }
    h->full = h->max_bytes && h->stats.bytes >= h->max_bytes;
}

bool ht_host_record_end(HtHostRecord *h, const char *end, HtHostStats *stats,
                        GError **error)
{
    uint64_t now = ht_now_ns();
    bool ok;

    *stats = (HtHostStats) { 0 };
    if (!h) {
        return true;
    }
    if (ht_tracefs_write(h->trace, "tracing_on", "0", NULL) && !h->full &&
        !h->error) {
        read_rings(h, now);
    }
    ht_rec_info_end(h->keys, h->full ? "the size of --max-size was reached" :
                    end, now);
    take_notes(h, now, true);
    h->stats.events = count_events(h);
    *stats = h->stats;
    ok = !h->error;
    if (!ok) {
        g_propagate_error(error, g_steal_pointer(&h->error));
    }
    free_record(h);
    return ok;
}
