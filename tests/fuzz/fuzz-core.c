/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target core: open any file as a guest's memory, or as a core dump of a
 * guest. Reads stay within the file, and each guest address has at most one
 * place in it.
 */
#include "hypertrace/base.h"
#include <sys/mman.h>
#include "memory/source.h"
#include "fuzz.h"

#define STEPS 64

static void check_ranges(const HtSource *s, size_t size)
{
    uint64_t end = 0;
    guint i;

    for (i = 0; i < s->ranges->len; i++) {
        const HtSourceRange *r = &g_array_index(s->ranges, HtSourceRange, i);

        g_assert_cmpuint(r->at, >=, end);
        g_assert_cmpuint(r->size, <=, size);
        g_assert_cmpuint(r->file, <=, size - r->size);
        end = r->at + r->size;
        g_assert_cmpuint(end, >, r->at);
    }
    g_assert_cmpuint(s->mem.size, >=, end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtSource) s = NULL;
    uint64_t at = 0, next;
    uint8_t buf[16];
    unsigned i;
    int fd = memfd_create("core", MFD_CLOEXEC);

    g_assert_cmpint(write(fd, data, size), ==, size);
    s = ht_source_file(fd, "core", &error);
    g_assert_true(!s == !!error);
    if (!s) {
        return 0;
    }
    check_ranges(s, size);
    for (i = 0; i < STEPS && s->mem.next(s, at, &next); i++) {
        g_assert_cmpuint(next, >=, at);
        if (s->mem.read(s, next, buf, 4) == 0 && s->ranges->len) {
            const HtSourceRange *r = ht_source_find(s, next);

            g_assert_cmpmem(buf, 4, data + r->file + (next - r->at), 4);
        }
        s->mem.read(s, next, buf, sizeof(buf));
        /*
         * Continue the search @size bytes after the address that was found, or,
         * in every second step, 4 bytes after it.
         */
        at = next + (i & 1 ? 4 : size);
    }
    s->mem.read(s, UINT64_MAX - 7, buf, 8);
    return 0;
}
