/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory from a running QEMU
 *
 * /proc does not tell which mapping is the guest's RAM, so the reader searches
 * all mappings that are large enough. QEMU aligns anonymous RAM to 2 MiB, and
 * RAM in a file usually begins at the file's start. Therefore the offsets in
 * the source are chosen so that they equal guest addresses modulo 2 MiB. A fast
 * search then looks only at multiples of 2 MiB.
 *
 * To read a page of shared memory that was never written would allocate it. So
 * a search reads a page only if /proc/PID/pagemap shows that it exists, or if
 * pagemap cannot be read.
 */
#include "hypertrace/base.h"
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "memory/source.h"

/* Minimum size in bytes of a mapping that may be a guest's RAM */
#define LEAST (UINT64_C(8) << 20)
/* QEMU's anonymous RAM begins at a multiple of this, in bytes. */
#define ALIGN (UINT64_C(2) << 20)
/*
 * Maximum number of entries of pagemap read at once. first_present() reads a
 * single entry at first, because the first page is often present.
 */
#define ENTRIES 512
/* Bits of a pagemap entry: one is set if the page is present or swapped out. */
#define PRESENT (UINT64_C(3) << 62)
/*
 * Time in us for which a hole stays cached. While a hole is cached, a search
 * does not read the hole's pagemap again for each 2 MiB. On a busy host, this
 * program may not run for a while; the time should be longer than that.
 */
#define HOLE_TIME 500000

static int process_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    HtSource *s = opaque;
    uint8_t *to = buf;

    while (len) {
        const HtSourceRange *r = ht_source_find(s, offset);
        size_t part;
        ssize_t n;

        if (!r || offset < r->at) {
            return -ENXIO;
        }
        part = MIN(len, r->at + r->size - offset);
        /*
         * A read must not continue in the next range, because that is another
         * piece of RAM. Only in a source of ht_source_process_nodes(), which
         * has no s->mem.piece, the ranges are one piece.
         */
        if (part < len && s->mem.piece) {
            return -ENXIO;
        }
        do {
            n = pread(s->fd, to, part, r->from + offset - r->at);
        } while (n < 0 && errno == EINTR);
        if (n <= 0) {
            s->ended |= !n;
            return n < 0 ? -errno : -ESRCH;
        }
        /*
         * if a page cannot be read, pread() returns the bytes before it, and
         * fails in the next turn of the loop
         */
        to += n;
        offset += n;
        len -= n;
    }
    return 0;
}

/*
 * Find the first page of @r that is present or swapped out, beginning with the
 * page that has @offset. Returns the page's offset, or the end of @r if there
 * is no such page. If the pagemap entry of a page cannot be read, returns the
 * offset of that page. From a place in the cached hole, returns the hole's end.
 */
static uint64_t first_present(HtSource *s, const HtSourceRange *r,
                              uint64_t offset)
{
    uint64_t page = getauxval(AT_PAGESZ), end = r->at + r->size;
    uint64_t entries[ENTRIES], most = 1;
    ssize_t bytes;

    offset -= (offset - r->at) % page;
    while (offset < end) {
        uint64_t n = MIN((end - offset + page - 1) / page, most), i;

        if (offset >= s->hole_from && offset < s->hole_to &&
            s->hole_to <= end &&
            g_get_monotonic_time() - s->hole_time < HOLE_TIME) {
            return s->hole_to;
        }
        bytes = pread(s->pagemap, entries, n * 8,
                      (r->from + offset - r->at) / page * 8);
        if (bytes != (ssize_t)n * 8) {
            s->ended |= !bytes;
            return offset;
        }
        for (i = 0; i < n; i++) {
            if (entries[i] & PRESENT) {
                return offset + i * page;
            }
        }
        offset += n * page;
        most = ENTRIES;
    }
    return end;
}

static void cache_hole(HtSource *s, uint64_t from, uint64_t to)
{
    if (to > from) {
        s->hole_from = from;
        s->hole_to = to;
        s->hole_time = g_get_monotonic_time();
    }
}

static bool process_next(void *opaque, uint64_t offset, uint64_t *out)
{
    HtSource *s = opaque;
    const HtSourceRange *r;

    while (!s->ended && (r = ht_source_find(s, offset))) {
        uint64_t begin = MAX(offset, r->at);
        uint64_t next = s->pagemap < 0 ? begin : first_present(s, r, begin);

        if (s->ended) {
            break;
        }
        if (next < r->at + r->size) {
            *out = MAX(next, begin);
            cache_hole(s, begin, next);
            return true;
        }
        cache_hole(s, begin, next);
        offset = next;
    }
    return false;
}

/* A mapping: one line of /proc/PID/maps, or several adjacent ones */
typedef struct Mapping {
    uint64_t from, to;
    uint64_t offset;
    uint64_t inode;
    dev_t dev;
    char mode[5];
    const char *path;
} Mapping;

static bool parse_mapping(const char *line, Mapping *m)
{
    unsigned major, minor;
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64
               " %n", &m->from, &m->to, m->mode, &m->offset, &major, &minor,
               &m->inode, &path) != 7 || !path || m->to <= m->from) {
        return false;
    }
    m->dev = makedev(major, minor);
    m->path = line + path;
    return true;
}

/*
 * Check whether two adjacent lines of /proc/PID/maps may belong to one mapping:
 * QEMU's madvise() on a part of a mapping splits the line.
 */
static bool joins(const Mapping *m, const Mapping *next)
{
    return m->to == next->from && !strcmp(m->mode, next->mode) &&
           m->dev == next->dev && m->inode == next->inode &&
           !strcmp(m->path, next->path) &&
           (!m->inode || next->offset - m->offset == m->to - m->from);
}

static bool is_ram(const Mapping *m)
{
    static const char *const names[] = {
        "/memfd:", "/dev/shm/", "/dev/zero", "/dev/hugepages/", "/anon_huge",
    };
    guint i;

    if (m->to - m->from < LEAST || !g_str_has_prefix(m->mode, "rw-") ||
        g_str_has_prefix(m->path, "[stack") ||
        g_str_has_prefix(m->path, "[v")) {
        return false;
    }
    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_has_prefix(m->path, names[i])) {
            return true;
        }
    }
    return !g_str_has_prefix(m->path, "/dev/") &&
           !g_str_has_prefix(m->path, "anon_inode:");
}

static bool is_other(const Mapping *m, const GPtrArray *others)
{
    struct stat st;
    guint i;

    for (i = 0; m->inode && others && i < others->len; i++) {
        const HtSource *s = others->pdata[i];

        if (s && !fstat(s->fd, &st) && st.st_dev == m->dev &&
            st.st_ino == m->inode) {
            return true;
        }
    }
    return false;
}

/*
 * Add a mapping as a range, if it may be RAM and is not that of a source in
 * @others. @begins has the addresses of the mapping's lines in "maps" except
 * the first line, and is emptied. Other anonymous memory may lie directly
 * before RAM and be joined with it. Then RAM begins at one of these addresses.
 */
static void add_mapping(HtSource *s, const Mapping *m, GArray *begins,
                        const GPtrArray *others)
{
    guint i;

    if (is_ram(m) && !is_other(m, others)) {
        ht_source_add(s, m->from, m->to - m->from, 0,
                      m->inode ? m->offset : m->from);
        for (i = 0; i < begins->len; i++) {
            uint64_t from = g_array_index(begins, uint64_t, i);

            if (!m->inode && from % ALIGN == 0 && m->to - from >= LEAST) {
                ht_source_begin(s, from);
            }
        }
    }
    g_array_set_size(begins, 0);
}

static void add_mappings(HtSource *s, const char *maps,
                         const GPtrArray *others)
{
    g_autoptr(GArray) begins = g_array_new(false, false, sizeof(uint64_t));
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    Mapping m = { 0 }, next;
    guint i;

    for (i = 0; lines[i]; i++) {
        if (!parse_mapping(lines[i], &next)) {
            continue;
        }
        if (m.to && joins(&m, &next)) {
            m.to = next.to;
            g_array_append_val(begins, next.from);
            continue;
        }
        if (m.to) {
            add_mapping(s, &m, begins, others);
        }
        m = next;
    }
    if (m.to) {
        add_mapping(s, &m, begins, others);
    }
}

/*
 * Open the memory of a process, as a source without ranges. Set @maps to the
 * text of /proc/PID/maps.
 */
static HtSource *open_process(const HtProcess *process, char **maps,
                              GError **error)
{
    g_autoptr(HtSource) s = NULL;
    int pid = process->pid, fd = ht_process_open(process, "mem");

    if (fd < 0) {
        const char *hint = "";

        if (errno == EACCES || errno == EPERM) {
            hint = "; run it as the same user, and as root where "
                   "kernel.yama.ptrace_scope forbids it";
        }
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot read the memory of process %d: %s%s", pid,
                    errno == ESRCH ? "it has ended" : g_strerror(errno), hint);
        return NULL;
    }
    s = ht_source_new(fd);
    *maps = ht_process_read(process, "maps", NULL, error);
    if (!*maps) {
        return NULL;
    }
    s->pagemap = ht_process_open(process, "pagemap");
    /*
     * The process may have run another program before these files of /proc were
     * opened: the descriptors would then belong to that program's memory.
     */
    if (process->owner && !ht_process_is_owner(process, process->owner)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PERM,
                    "process %d has another user or runs another program now",
                    pid);
        return NULL;
    }
    s->mem.read = process_read;
    s->mem.next = process_next;
    s->mem.piece = ht_source_piece;
    return g_steal_pointer(&s);
}

HtSource *ht_source_process(const HtProcess *process, const GPtrArray *others,
                            GError **error)
{
    g_autofree char *maps = NULL;
    g_autoptr(HtSource) s = open_process(process, &maps, error);

    if (!s) {
        return NULL;
    }
    add_mappings(s, maps, others);
    if (s->ranges->len == 0) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "process %d has no mapping that could be a guest's RAM: "
                    "a writable one of at least %d MiB", process->pid,
                    (int)(LEAST >> 20));
        return NULL;
    }
    return g_steal_pointer(&s);
}

/*
 * Find the range of @size bytes in @ranges. Returns NULL if no range or several
 * ranges have this size. RAM ends where its mapping ends, because QEMU puts a
 * guard page after RAM. So this also finds RAM in HtSource.inner: each range
 * there ends where a mapping ends.
 */
static const HtSourceRange *range_of_size(const GArray *ranges, uint64_t size)
{
    const HtSourceRange *found = NULL;
    guint i;

    for (i = 0; i < ranges->len; i++) {
        const HtSourceRange *r = &g_array_index(ranges, HtSourceRange, i);

        if (r->size == size) {
            if (found) {
                return NULL;
            }
            found = r;
        }
    }
    return found;
}

static bool find_file(const char *maps, int fd, Mapping *m)
{
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    struct stat st;
    guint i;

    for (i = 0; !fstat(fd, &st) && lines[i]; i++) {
        if (parse_mapping(lines[i], m) && m->dev == st.st_dev &&
            m->inode == st.st_ino && m->offset == 0 &&
            m->to - m->from == (uint64_t)st.st_size) {
            return true;
        }
    }
    return false;
}

HtSource *ht_source_process_nodes(const HtProcess *process, uint64_t low,
                                  const HtSource *top, GError **error)
{
    g_autofree char *maps = NULL;
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    g_autoptr(HtSource) all = NULL, s = open_process(process, &maps, error);
    const HtSourceRange *r;
    Mapping m;

    if (!s) {
        return NULL;
    }
    g_ptr_array_add(others, (gpointer)top);
    all = ht_source_new(-1);
    add_mappings(all, maps, others);
    r = range_of_size(all->ranges, low) ?: range_of_size(all->inner, low);
    if (!r || !find_file(maps, top->fd, &m)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "process %d has not mapped its RAM yet", process->pid);
        return NULL;
    }
    ht_source_add(s, r->from, low, 0, 0);
    ht_source_add(s, m.from, m.to - m.from, 0, 0);
    s->mem.piece = NULL;
    return g_steal_pointer(&s);
}

bool ht_source_same(const HtSource *a, const HtSource *b)
{
    guint i;

    for (i = 0; i < a->ranges->len && i < b->ranges->len; i++) {
        const HtSourceRange *x = &g_array_index(a->ranges, HtSourceRange, i);
        const HtSourceRange *y = &g_array_index(b->ranges, HtSourceRange, i);

        if (x->from != y->from || x->size != y->size || x->at != y->at) {
            return false;
        }
    }
    return a->ranges->len == b->ranges->len;
}

uint64_t ht_source_process_size(const HtProcess *process)
{
    g_autoptr(HtSource) s = ht_source_process(process, NULL, NULL);
    uint64_t size = 0;
    guint i;

    for (i = 0; s && i < s->ranges->len; i++) {
        size += g_array_index(s->ranges, HtSourceRange, i).size;
    }
    return size;
}
