/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory from a file; functions for all sources
 *
 * The file is read, not mapped: to read a hole through a mapping could allocate
 * it, and if the file is truncated meanwhile, SIGBUS would end the program.
 */
#include "hypertrace/base.h"
#include <elf.h>
#include "memory/source.h"

/*
 * The fast search looks for rings only at guest addresses that are multiples of
 * this number of bytes.
 */
#define ALIGN HT_FT_SEARCH_FAST

HtSource *ht_source_new(int fd)
{
    HtSource *s = g_new0(HtSource, 1);

    s->fd = fd;
    s->pagemap = -1;
    s->ranges = g_array_new(false, false, sizeof(HtSourceRange));
    s->inner = g_array_new(false, false, sizeof(HtSourceRange));
    s->mem.opaque = s;
    return s;
}

void ht_source_free(HtSource *s)
{
    if (s) {
        close(s->fd);
        if (s->pagemap >= 0) {
            close(s->pagemap);
        }
        g_array_unref(s->ranges);
        g_array_unref(s->inner);
        g_free(s);
    }
}

void ht_source_add(HtSource *s, uint64_t from, uint64_t size, uint64_t file,
                   uint64_t place)
{
    HtSourceRange r = { .from = from, .size = size, .file = file };

    r.at = HT_ROUND_UP(s->mem.size, ALIGN) + place % ALIGN;
    g_array_append_val(s->ranges, r);
    s->mem.size = r.at + size;
}

void ht_source_begin(HtSource *s, uint64_t from)
{
    HtSourceRange r = g_array_index(s->ranges, HtSourceRange,
                                    s->ranges->len - 1);
    uint64_t by = from - r.from;

    r.from += by;
    r.file += by;
    r.at += by;
    r.size -= by;
    g_array_append_val(s->inner, r);
}

const HtSourceRange *ht_source_find(const HtSource *s, uint64_t offset)
{
    guint low = 0, high = s->ranges->len;

    while (low < high) {
        guint mid = (low + high) / 2;
        const HtSourceRange *r = &g_array_index(s->ranges, HtSourceRange, mid);

        if (offset < r->at + r->size) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low < s->ranges->len ?
        &g_array_index(s->ranges, HtSourceRange, low) : NULL;
}

bool ht_source_piece(void *opaque, unsigned index, uint64_t *offset,
                     uint64_t *size, uint64_t *phys)
{
    const HtSource *s = opaque;
    const GArray *from = index < s->ranges->len ? s->ranges : s->inner;

    index -= from == s->inner ? s->ranges->len : 0;
    if (index >= from->len) {
        return false;
    }
    *offset = g_array_index(from, HtSourceRange, index).at;
    *size = g_array_index(from, HtSourceRange, index).size;
    *phys = HT_FT_PHYS_UNKNOWN;
    return true;
}

static int file_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    HtSource *s = opaque;
    uint8_t *p = buf;

    while (len) {
        ssize_t n = pread(s->fd, p, len, offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            /* if @n is 0, @offset is at or after the end of the file */
            return n < 0 ? -errno : -ENXIO;
        }
        p += n;
        offset += n;
        len -= n;
    }
    return 0;
}

static bool file_next(void *opaque, uint64_t offset, uint64_t *out)
{
    HtSource *s = opaque;
    off_t next = lseek(s->fd, offset, SEEK_DATA);

    if (next < 0 && errno != ENXIO) {
        /* the file does not support SEEK_DATA: assume that it has no holes */
        next = offset;
    }
    if (next < 0) {
        return false;
    }
    *out = next;
    return true;
}

HtSource *ht_source_file(int fd, const char *name, GError **error)
{
    g_autoptr(HtSource) s = ht_source_new(fd);
    char magic[SELFMAG];
    struct stat st;
    bool known = !fstat(fd, &st);
    bool usable = known && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
    off_t size = usable ? lseek(fd, 0, SEEK_END) : -1;

    if (size <= 0) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s cannot be a guest's memory: %s", name,
                    known && !usable ?
                    "it is neither a file nor a block device" :
                    size < 0 ? g_strerror(errno) : "it is empty");
        return NULL;
    }
    if (pread(fd, magic, sizeof(magic), 0) == SELFMAG &&
        memcmp(magic, ELFMAG, SELFMAG) == 0) {
        return ht_source_core(s, name, error) ? g_steal_pointer(&s) : NULL;
    }
    s->mem.size = size;
    s->mem.read = file_read;
    s->mem.next = file_next;
    return g_steal_pointer(&s);
}

HtSource *ht_source_open(const char *path, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot open '%s': %s", path, g_strerror(errno));
        return NULL;
    }
    return ht_source_file(fd, path, error);
}
