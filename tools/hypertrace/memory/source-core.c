/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory from an ELF core
 *
 * QEMU's command dump-guest-memory writes such a core. Each segment has a part
 * of RAM and the physical address of this part.
 */
#include "hypertrace/base.h"
#include <elf.h>
#include "memory/source.h"

static int read_file(const HtSource *s, uint64_t offset, void *buf, size_t len)
{
    ssize_t n;

    do {
        n = pread(s->fd, buf, len, offset);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)len ? 0 : n < 0 ? -errno : -ENXIO;
}

static int core_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    HtSource *s = opaque;
    const HtSourceRange *r = ht_source_find(s, offset);

    if (!r || offset < r->at || len > r->size ||
        offset - r->at > r->size - len) {
        return -ENXIO;          /* no single segment has all of the bytes */
    }
    return read_file(s, r->file + offset - r->at, buf, len);
}

static bool core_next(void *opaque, uint64_t offset, uint64_t *out)
{
    const HtSourceRange *r = ht_source_find(opaque, offset);

    if (!r) {
        return false;
    }
    *out = MAX(offset, r->at);
    return true;
}

/* Like ht_source_piece(), but also get the physical address of the piece */
static bool core_piece(void *opaque, unsigned index, uint64_t *offset,
                       uint64_t *size, uint64_t *phys)
{
    const HtSource *s = opaque;

    if (!ht_source_piece(opaque, index, offset, size, phys)) {
        return false;
    }
    *phys = g_array_index(s->ranges, HtSourceRange, index).from;
    return true;
}

static bool refuse(GError **error, const char *name, const char *why)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "%s is not a core of a guest: %s", name, why);
    return false;
}

bool ht_source_core(HtSource *s, const char *name, GError **error)
{
    Elf64_Ehdr h;
    Elf64_Phdr p;
    unsigned i;
    off_t end = lseek(s->fd, 0, SEEK_END);

    if (read_file(s, 0, &h, sizeof(h)) || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || ht_le16(h.e_type) != ET_CORE) {
        return refuse(error, name, "it must be an ELF core of 64 bits, little-"
                      "endian, as dump-guest-memory writes without options");
    }
    if (ht_le16(h.e_phentsize) != sizeof(p)) {
        return refuse(error, name, "its program headers have another size");
    }
    for (i = 0; i < ht_le16(h.e_phnum); i++) {
        uint64_t size, offset;

        if (read_file(s, ht_le64(h.e_phoff) + i * sizeof(p), &p, sizeof(p))) {
            return refuse(error, name, "it ends within its program headers");
        }
        size = ht_le64(p.p_filesz);
        offset = ht_le64(p.p_offset);
        if (ht_le32(p.p_type) != PT_LOAD || size == 0) {
            continue;
        }
        if (end < 0 || size > (uint64_t)end || offset > end - size) {
            return refuse(error, name, "it is truncated: a segment lies after "
                          "its end");
        }
        if (s->mem.size > UINT64_C(1) << 52) {
            return refuse(error, name, "the sum of its segments is more than "
                          "4 PiB");
        }
        ht_source_add(s, ht_le64(p.p_paddr), size, offset,
                      ht_le64(p.p_paddr));
    }
    if (s->ranges->len == 0) {
        return refuse(error, name, "it has no segments of memory");
    }
    s->mem.read = core_read;
    s->mem.next = core_next;
    s->mem.piece = core_piece;
    return true;
}
