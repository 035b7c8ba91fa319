/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find sections and segments of a 64-bit little-endian ELF file
 *
 * The file is not trusted.  Its fields need not be aligned.
 */
#include <elf.h>
#include "image-elf.h"

#define EHDR(field) G_STRUCT_OFFSET(Elf64_Ehdr, field)
#define SHDR(field) G_STRUCT_OFFSET(Elf64_Shdr, field)
#define PHDR(field) G_STRUCT_OFFSET(Elf64_Phdr, field)

bool ht_elf_is(const void *data, size_t size)
{
    return size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG);
}

unsigned ht_elf_machine(const void *data, size_t size)
{
    const uint8_t *p = data;

    if (!ht_elf_is(data, size) || p[EI_CLASS] != ELFCLASS64 ||
        p[EI_DATA] != ELFDATA2LSB) {
        return 0;
    }
    return ht_get_le16(p + EHDR(e_machine));
}

static bool within(uint64_t offset, uint64_t bytes, size_t size)
{
    return offset <= size && bytes <= size - offset;
}

/*
 * Return a table of @n entries; NULL if @n is 0, if the table exceeds the file,
 * or if @entry, the size of an entry, is not the @wanted size
 */
static const uint8_t *table(const uint8_t *p, size_t size, uint64_t offset,
                            unsigned n, unsigned entry, unsigned wanted)
{
    return n && entry == wanted && within(offset, (uint64_t)n * entry, size) ?
        p + offset : NULL;
}

bool ht_elf_section(const void *data, size_t size, const char *name,
                    uint64_t *offset, uint64_t *bytes)
{
    const uint8_t *p = data, *headers, *s;
    uint64_t names, names_size;
    size_t len = strlen(name) + 1;
    unsigned n, of_names, i;

    if (!ht_elf_machine(data, size)) {
        return false;
    }
    n = ht_get_le16(p + EHDR(e_shnum));
    of_names = ht_get_le16(p + EHDR(e_shstrndx));
    headers = table(p, size, ht_get_le64(p + EHDR(e_shoff)), n,
                    ht_get_le16(p + EHDR(e_shentsize)), sizeof(Elf64_Shdr));
    if (!headers || of_names >= n) {
        return false;
    }
    s = headers + of_names * sizeof(Elf64_Shdr);
    names = ht_get_le64(s + SHDR(sh_offset));
    names_size = ht_get_le64(s + SHDR(sh_size));
    if (!within(names, names_size, size)) {
        return false;
    }
    for (i = 0; i < n; i++) {
        uint32_t at;

        s = headers + i * sizeof(Elf64_Shdr);
        at = ht_get_le32(s + SHDR(sh_name));
        if (!within(at, len, names_size) ||
            memcmp(p + names + at, name, len)) {
            continue;
        }
        *offset = ht_get_le64(s + SHDR(sh_offset));
        *bytes = ht_get_le64(s + SHDR(sh_size));
        return ht_get_le32(s + SHDR(sh_type)) != SHT_NOBITS &&
               within(*offset, *bytes, size);
    }
    return false;
}

static int by_address(const void *a, const void *b)
{
    const HtKernelSegment *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

unsigned ht_elf_segments(const void *data, size_t size,
                         HtKernelSegment segments[HT_ELF_SEGMENTS_MAX])
{
    const uint8_t *p = data, *headers, *h;
    unsigned n, i, used = 0;

    if (!ht_elf_machine(data, size)) {
        return 0;
    }
    n = ht_get_le16(p + EHDR(e_phnum));
    headers = table(p, size, ht_get_le64(p + EHDR(e_phoff)), n,
                    ht_get_le16(p + EHDR(e_phentsize)), sizeof(Elf64_Phdr));
    for (i = 0; headers && i < n && used < HT_ELF_SEGMENTS_MAX; i++) {
        HtKernelSegment s;

        h = headers + i * sizeof(Elf64_Phdr);
        s.addr = ht_get_le64(h + PHDR(p_vaddr));
        s.offset = ht_get_le64(h + PHDR(p_offset));
        s.size = ht_get_le64(h + PHDR(p_filesz));
        if (ht_get_le32(h + PHDR(p_type)) == PT_LOAD && s.addr && s.size &&
            s.size <= UINT64_MAX - s.addr && within(s.offset, s.size, size)) {
            segments[used++] = s;
        }
    }
    qsort(segments, used, sizeof(*segments), by_address);
    return used;
}
