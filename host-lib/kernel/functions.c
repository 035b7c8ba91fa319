/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the traceable functions of a kernel in its image
 */
#include "hypertrace/base.h"
#include "hypertrace/kernel-functions.h"
#include "hypertrace/name-hash.h"
#include "hypertrace/pattern.h"

/*
 * Largest accepted distance of the tracer's call after the function's start, in
 * bytes, on every architecture.  x86 kernels with IBT have the call 4 bytes
 * after the start.
 */
#define CALL_AFTER      8u
/*
 * Largest accepted distance of the tracer's call before the function's start,
 * in bytes, on every architecture.  The table of arm64 kernels with CALL_OPS
 * has addresses before the start.
 */
#define CALL_BEFORE     16u

struct HtKernelFunctions {
    const HtSymbols *symbols;
    /*
     * set of names of the traceable functions, owned by @symbols; NULL: the
     * table gave none
     */
    GHashTable *traceable;
};

/*
 * Find the function that calls the tracer at address @addr.  Returns NULL if no
 * function starts near @addr.
 */
static const char *function_of(const HtSymbols *s, uint64_t addr)
{
    const char *name;
    uint64_t offset;

    name = ht_symbols_find(s, addr, &offset);
    if (name && offset <= CALL_AFTER) {
        return name;
    }
    name = ht_symbols_find(s, addr + CALL_BEFORE, &offset);
    return name && offset < CALL_BEFORE ? name : NULL;
}

static GHashTable *read_table(const HtKernelImage *image)
{
    const HtSymbols *s = ht_kernel_image_symbols(image);
    g_autoptr(GHashTable) names = g_hash_table_new(ht_name_hash, g_str_equal);
    uint64_t from, to, n, i;
    const uint8_t *table;

    if (!ht_symbols_address(s, "__start_mcount_loc", &from) ||
        !ht_symbols_address(s, "__stop_mcount_loc", &to) || to <= from) {
        return NULL;
    }
    n = (to - from) / 8;
    table = n <= HT_KERNEL_FUNCTIONS_MAX ?
            ht_kernel_image_bytes(image, from, n * 8) : NULL;
    for (i = 0; table && i < n; i++) {
        /* The entry of a weak function that the linker replaced may be 0. */
        uint64_t addr = ht_get_le64(table + i * 8);
        const char *name = addr ? function_of(s, addr) : NULL;

        if (name) {
            g_hash_table_add(names, (char *)name);
        }
    }
    return g_hash_table_size(names) ? g_steal_pointer(&names) : NULL;
}

HtKernelFunctions *ht_kernel_functions_new(const HtKernelImage *image)
{
    HtKernelFunctions *f = g_new0(HtKernelFunctions, 1);

    f->symbols = ht_kernel_image_symbols(image);
    f->traceable = read_table(image);
    return f;
}

void ht_kernel_functions_free(HtKernelFunctions *f)
{
    if (f) {
        g_clear_pointer(&f->traceable, g_hash_table_unref);
        g_free(f);
    }
}

bool ht_kernel_functions_certain(const HtKernelFunctions *f)
{
    return f->traceable != NULL;
}

unsigned ht_kernel_functions_match(const HtKernelFunctions *f,
                                   const char *glob, unsigned *named)
{
    unsigned i, found = 0;
    const char *name;
    uint64_t addr;
    char type;

    *named = 0;
    for (i = 0; (name = ht_symbols_get(f->symbols, i, &addr, &type)); i++) {
        if (!strchr("tTwW", type) ||
            !ht_pattern_match(glob, name)) {
            continue;
        }
        ++*named;
        found += !f->traceable || g_hash_table_contains(f->traceable, name);
    }
    return found;
}
