/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find a kernel in RAM, choose among several, and read memory by the kernel's
 * own addresses
 */
#include "kernel-make.h"
#include "guest-kernel.h"
#include "hypertrace/kernel-scan.h"
#include "hypertrace/kernel-space.h"

#define MIB         (UINT64_C(1) << 20)
#define SIZE        (64 * MIB)
/* A wall clock in s that no running kernel has */
#define OVERWRITTEN UINT64_C(0x2f0f3e5c48894c65)
#define PAGE        4096u
#define VMALLOC     UINT64_C(0xffffc90000000000)

typedef struct Ram {
    uint8_t *bytes;
    uint64_t size;
    /* by page: HtFtMem.next reports it as written; NULL: no HtFtMem.next */
    bool *written;
    unsigned reads;
    /* number of the next reads of 8 bytes that return a torn value */
    unsigned torn;
    HtFtMem mem;
    HtGuestMem guest;
} Ram;

static int64_t no_clock(void)
{
    return 1;
}

/* A budget that is always used up: each step of a search does the least work */
static const HtBudget none = { .clock = no_clock };

static int ram_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Ram *r = opaque;
    uint64_t at;

    g_assert_cmpuint(len, <=, r->size);
    g_assert_cmpuint(offset, <=, r->size - len);
    for (at = offset / PAGE; r->written && at * PAGE < offset + len; at++) {
        /*
         * assert that a page was written: to read an untouched one would
         * allocate it
         */
        g_assert_true(r->written[at]);
    }
    r->reads++;
    memcpy(buf, r->bytes + offset, len);
    if (r->torn && len == 8) {
        r->torn--;
        ((uint8_t *)buf)[7] ^= r->torn + 1;
    }
    return 0;
}

static bool ram_next(void *opaque, uint64_t offset, uint64_t *out)
{
    Ram *r = opaque;
    uint64_t page;

    for (page = offset / PAGE; page < r->size / PAGE; page++) {
        if (r->written[page]) {
            *out = MAX(offset, page * PAGE);
            return true;
        }
    }
    return false;
}

static void ram_init(Ram *r, uint64_t size)
{
    *r = (Ram) { .size = size };
    r->bytes = g_malloc0(size);
    r->mem = (HtFtMem) { .size = size, .read = ram_read, .opaque = r };
    ht_guest_mem_init(&r->guest, &r->mem);
}

static void ram_free(Ram *r)
{
    g_free(r->bytes);
    g_free(r->written);
}

static HtGuestKernel *find(Ram *r, const KmKernel *kernel)
{
    g_autoptr(GError) error = NULL;
    HtGuestKernel *k = ht_guest_kernel_find(&r->guest, kernel->image, &error);

    g_assert_no_error(error);
    return k;
}

static void not_found(Ram *r, const KmKernel *kernel, int code)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ht_guest_kernel_find(&r->guest, kernel->image, &error));
    g_assert_error(error, G_FILE_ERROR, code);
}

/*
 * Promise: wherever the kernel lies in RAM, its physical address, slide and
 * clock are found, and its variables can be read.
 */
static void test_place(void)
{
    static const uint64_t places[][2] = {
        { 2 * MIB, 0 }, { 16 * MIB, 0x1000000 }, { 62 * MIB, 0x2fe00000 },
    };
    KmKernel kernel;
    unsigned i;

    km_kernel(&kernel, 24, true);
    for (i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autoptr(HtGuestKernel) k = NULL;
        HtKernelClock clock;
        uint64_t addr, value;
        Ram ram;

        ram_init(&ram, SIZE);
        km_place(&kernel, ram.bytes, SIZE, places[i][0], places[i][1], 1000);
        k = find(&ram, &kernel);
        g_assert_cmphex(ht_guest_kernel_phys(k), ==, places[i][0]);
        g_assert_cmphex(ht_guest_kernel_slide(k), ==, places[i][1]);
        g_assert_cmpuint(ht_guest_kernel_levels(k), ==, 4);
        g_assert_cmpint(ht_guest_kernel_clock(k, &clock), ==, 0);
        g_assert_cmpuint(clock.seconds, ==, 1000);
        g_assert_cmpuint(clock.jiffies, ==, 250000);
        g_assert_cmpuint(ht_guest_kernel_cpus(k), ==, 2);
        g_assert_cmpint(ht_guest_kernel_symbol(k, "init_task", &addr), ==, 0);
        g_assert_cmpint(ht_guest_kernel_value(k, addr, 8, &value), ==, 0);
        /* a per-CPU symbol is an offset that does not slide */
        g_assert_cmpint(ht_guest_kernel_symbol(k, "a_percpu_variable", &addr),
                        ==, 0);
        g_assert_cmphex(addr, ==, 0x1000);
        g_assert_cmpint(ht_guest_kernel_check(k), ==, 0);
        memset(ram.bytes + places[i][0], 0, KM_SIZE);
        g_assert_cmpint(ht_guest_kernel_check(k), ==, -ESTALE);
        ram_free(&ram);
    }
    km_kernel_free(&kernel);
}

/*
 * Promise: a kernel is found even if other memory lies before RAM in the same
 * file. It is refused unless a call of ht_guest_mem_piece() gave the offset at
 * which its RAM begins: it could be the kernel of a guest within the guest.
 */
static void test_inner(void)
{
    g_autoptr(HtGuestKernel) k = NULL;
    KmKernel kernel;
    Ram ram;

    km_kernel(&kernel, 24, true);
    ram_init(&ram, SIZE);
    km_place(&kernel, ram.bytes + 6 * MIB, SIZE - 6 * MIB, 8 * MIB, 0, 1000);
    g_assert_cmpint(ht_guest_mem_piece(&ram.guest, PAGE, SIZE - PAGE), ==, 0);
    not_found(&ram, &kernel, G_FILE_ERROR_NOENT);
    g_assert_cmpint(ht_guest_mem_piece(&ram.guest, 4 * MIB, SIZE - 4 * MIB),
                    ==, 0);
    not_found(&ram, &kernel, G_FILE_ERROR_AGAIN);
    g_assert_cmpint(ht_guest_mem_piece(&ram.guest, 6 * MIB, SIZE - 6 * MIB),
                    ==, 0);
    k = find(&ram, &kernel);
    g_assert_cmphex(ht_guest_kernel_phys(k), ==, 8 * MIB);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: of several kernels in RAM, the kernel with the latest plausible
 * clock is used, in whatever order they lie. The clock's offset in struct
 * timekeeper comes from the kernel's types (BTF).
 */
static void test_several(void)
{
    unsigned i;

    for (i = 0; i < 8; i++) {
        static const uint64_t seconds[][3] = {
            { 3, 2, 1 }, { 1, 3, 2 }, { 2, 1, 3 },
            { 0, 3, 0 }, { 3, 1, 3 - 1 }, { 0, 0, 3 },
            /* rows in which a later kernel has overwritten clocks */
            { 3, 1, OVERWRITTEN }, { OVERWRITTEN, 3, OVERWRITTEN },
        };
        g_autoptr(HtGuestKernel) k = NULL;
        HtKernelClock clock;
        KmKernel kernel;
        unsigned j;
        Ram ram;

        km_kernel(&kernel, 8 * i, true);
        ram_init(&ram, SIZE);
        for (j = 0; j < 3; j++) {
            km_place(&kernel, ram.bytes, SIZE, (j + 1) * 8 * MIB,
                     j * 0x400000, seconds[i][j]);
        }
        k = find(&ram, &kernel);
        g_assert_cmpint(ht_guest_kernel_clock(k, &clock), ==, 0);
        g_assert_cmpuint(clock.seconds, ==, 3);
        ram_free(&ram);
        km_kernel_free(&kernel);
    }
}

/*
 * Promise: a kernel is not used if its clock is later than possible, because a
 * later kernel has overwritten it, even if it is the only kernel in RAM.
 */
static void test_overwritten(void)
{
    KmKernel kernel;
    Ram ram;

    km_kernel(&kernel, 0, true);
    ram_init(&ram, SIZE);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0, OVERWRITTEN);
    not_found(&ram, &kernel, G_FILE_ERROR_AGAIN);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: the clock of a kernel without types (BTF) cannot be read. If such a
 * kernel is the only one in RAM, it is used; if there are several, they are
 * refused with a message that names CONFIG_DEBUG_INFO_BTF.
 */
static void test_no_types(void)
{
    g_autoptr(HtGuestKernel) k = NULL;
    g_autoptr(GError) error = NULL;
    HtKernelClock clock;
    KmKernel kernel;
    Ram ram;

    km_kernel(&kernel, 0, false);
    ram_init(&ram, SIZE);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0, 1);
    k = find(&ram, &kernel);
    g_assert_cmpint(ht_guest_kernel_clock(k, &clock), ==, -ENOENT);
    km_place(&kernel, ram.bytes, SIZE, 16 * MIB, 0, 2);
    g_assert_null(ht_guest_kernel_find(&ram.guest, kernel.image, &error));
    g_assert_nonnull(strstr(error->message, "CONFIG_DEBUG_INFO_BTF"));
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: none of these counts as a running kernel: an image that was
 * unpacked but not relocated, a kernel with incomplete page tables, and a copy
 * at another address than the page tables say, as in the page cache. The error
 * asks to try again. It does not for another build of the kernel's release.
 */
static void test_early(void)
{
    KmKernel kernel;
    Ram ram;

    km_kernel(&kernel, 0, true);
    ram_init(&ram, SIZE);
    not_found(&ram, &kernel, G_FILE_ERROR_NOENT);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0x200000, 1);
    ram.bytes[8 * MIB + KM_BANNER + KM_BUILD] = '2';
    not_found(&ram, &kernel, G_FILE_ERROR_NOENT);
    memset(ram.bytes + 8 * MIB, 0, KM_SIZE);
    memcpy(ram.bytes + 8 * MIB, kernel.bytes->data, kernel.bytes->len);
    not_found(&ram, &kernel, G_FILE_ERROR_AGAIN);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0x200000, 1);
    memset(ram.bytes + 8 * MIB + 0x4000 + 511 * 8, 0, 8);
    not_found(&ram, &kernel, G_FILE_ERROR_AGAIN);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0x200000, 1);
    memcpy(ram.bytes + 12 * MIB, ram.bytes + 8 * MIB, KM_SIZE);
    memset(ram.bytes + 8 * MIB, 0, KM_SIZE);
    not_found(&ram, &kernel, G_FILE_ERROR_AGAIN);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: a search does not read pages that HtFtMem.next leaves out. It also
 * finds the kernel if the budget of each step is used up at once.
 */
static void test_untouched(void)
{
    g_autoptr(HtKernelSearch) s = NULL;
    g_autoptr(HtGuestKernel) k = NULL;
    KmKernel kernel;
    unsigned i, steps = 0;
    int ret;
    Ram ram;

    km_kernel(&kernel, 0, true);
    ram_init(&ram, SIZE);
    ram.written = g_new0(bool, SIZE / PAGE);
    ram.mem.next = ram_next;
    km_place(&kernel, ram.bytes, SIZE, 40 * MIB, 0x200000, 1);
    for (i = 0; i < KM_SIZE / PAGE; i++) {
        ram.written[40 * MIB / PAGE + i] = true;
    }
    s = ht_kernel_search_new(&ram.guest, kernel.image);
    while ((ret = ht_kernel_search_step(s, &none)) == 0) {
        g_assert_cmpuint(++steps, <, 1000);
    }
    g_assert_cmpint(ret, ==, 1);
    g_assert_cmpuint(ht_kernel_search_found(s), ==, 1);
    k = ht_kernel_search_take(s, NULL);
    g_assert_nonnull(k);
    g_assert_cmpuint(ram.reads, <, 100);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: physical addresses and offsets in memory are converted to each
 * other, below and above the hole that the RAM of a PC has below 4 GiB. Ranges
 * that overlap, exceed the memory, or are not aligned are refused.
 */
static void test_hole(void)
{
    uint64_t offset, phys, left;
    HtFtMem mem = { .size = 5ull << 30, .read = ram_read };
    HtGuestMem g;

    ht_guest_mem_init(&g, &mem);
    g_assert_cmpint(ht_guest_mem_add(&g, 0, 3ull << 30, 0), ==, 0);
    g_assert_cmpint(ht_guest_mem_add(&g, 4ull << 30, 2ull << 30, 3ull << 30),
                    ==, 0);
    g_assert_cmpint(ht_guest_mem_add(&g, 5ull << 30, 4096, 0), ==, -EINVAL);
    g_assert_cmpint(ht_guest_mem_add(&g, 8ull << 30, 4096, 4096), ==, -EINVAL);
    g_assert_cmpint(ht_guest_mem_add(&g, 8ull << 30, 8ull << 30, 0), ==,
                    -ERANGE);
    g_assert_cmpint(ht_guest_mem_add(&g, 1, 4096, 0), ==, -EINVAL);
    g_assert_cmpint(ht_guest_mem_offset(&g, (4ull << 30) + 5, &offset, &left),
                    ==, 0);
    g_assert_cmphex(offset, ==, (3ull << 30) + 5);
    g_assert_cmphex(left, ==, (2ull << 30) - 5);
    g_assert_cmpint(ht_guest_mem_offset(&g, 3ull << 30, &offset, NULL), ==,
                    -ENXIO);
    g_assert_cmpint(ht_guest_mem_phys(&g, 3ull << 30, &phys), ==, 0);
    g_assert_cmphex(phys, ==, 4ull << 30);
    g_assert_cmpint(ht_guest_mem_phys(&g, 5ull << 30, &phys), ==, -ENXIO);
}

/*
 * Promise: mapped pages are read, also across page borders. Reads of unmapped
 * addresses and of memory beyond RAM fail. If page tables are circular, a
 * read still takes at most about 6 reads of RAM.
 */
static void test_pages(void)
{
    g_autoptr(GString) string = g_string_new(NULL);
    uint64_t free_pages = 32 * MIB, addr;
    g_autoptr(HtGuestKernel) k = NULL;
    char text[8], both[200];
    HtKernelSpace space;
    KmKernel kernel;
    uint8_t *top;
    unsigned i;
    Ram ram;

    km_kernel(&kernel, 0, true);
    ram_init(&ram, SIZE);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0, 1);
    k = find(&ram, &kernel);
    /*
     * two consecutive pages that lie in RAM in reverse order, and one beyond
     * RAM
     */
    km_map(ram.bytes, 8 * MIB, &free_pages, VMALLOC, 50 * MIB + PAGE);
    km_map(ram.bytes, 8 * MIB, &free_pages, VMALLOC + PAGE, 50 * MIB);
    km_map(ram.bytes, 8 * MIB, &free_pages, VMALLOC + 3 * PAGE, SIZE);
    for (i = 0; i < sizeof(both); i++) {
        both[i] = 'a' + i % 26;
    }
    memcpy(ram.bytes + 50 * MIB + 2 * PAGE - 100, both, 100);
    memcpy(ram.bytes + 50 * MIB, both + 100, 99);
    addr = VMALLOC + PAGE - 100;
    memset(both, 0, sizeof(both));
    g_assert_cmpint(ht_guest_kernel_read(k, addr, both, 200), ==, 0);
    for (i = 0; i < 199; i++) {
        g_assert_cmpint(both[i], ==, 'a' + i % 26);
    }
    space = ht_kernel_space_of(k);
    g_assert_cmpint(ht_kernel_space_string(&space, addr, 150, string), ==, 0);
    g_assert_cmpuint(string->len, ==, 150);
    g_string_truncate(string, 0);
    g_assert_cmpint(ht_kernel_space_string(&space, addr, 400, string), ==, 0);
    g_assert_cmpstr(string->str, ==, both);
    g_assert_cmpint(ht_guest_kernel_read(k, VMALLOC + 2 * PAGE, text, 1), ==,
                    -EFAULT);
    g_assert_cmpint(ht_guest_kernel_read(k, VMALLOC + 3 * PAGE, text, 1), ==,
                    -ENXIO);
    g_assert_cmpint(ht_guest_kernel_read(k, 0x1000, text, 1), ==, -EFAULT);
    g_assert_cmpint(ht_guest_kernel_read(k, UINT64_MAX - 3, text, 8), ==,
                    -EFAULT);
    /* an address of the direct map that is beyond the RAM */
    g_assert_cmpint(ht_guest_kernel_read(k, UINT64_C(0xffff900000000000) +
                                         SIZE, text, 1), ==, -ENXIO);
    /* entries of the top table that point to the table itself */
    top = ram.bytes + 8 * MIB + 0x4000;
    for (i = 256; i < 510; i++) {
        ht_put_le64(top + i * 8, (8 * MIB + 0x4000) | 0x63);
    }
    ram.reads = 0;
    g_assert_cmpint(ht_guest_kernel_check(k), ==, 0);
    for (i = 256; i < 510; i++) {
        addr = UINT64_C(0xffff000000000000) | (uint64_t)i << 39 |
               (uint64_t)i << 30 | i << 21 | i << 12;
        ht_guest_kernel_read(k, addr, text, 8);
    }
    g_assert_cmpuint(ram.reads, <, 254 * 6 + 20);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: without an image, the kernel is found by its VMCOREINFO, and its
 * symbols and types are read from RAM. Pages with text that resembles
 * VMCOREINFO are skipped.
 */
static void test_scan(void)
{
    g_autoptr(HtKernelScan) s = NULL, t = NULL;
    g_autoptr(HtGuestKernel) k = NULL;
    g_autoptr(GError) error = NULL;
    HtKernelClock clock;
    KmKernel kernel;
    unsigned i;
    int ret;
    Ram ram;

    km_kernel(&kernel, 40, true);
    ram_init(&ram, SIZE);
    ram.written = g_new0(bool, SIZE / PAGE);
    ram.mem.next = ram_next;
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0, 77);
    for (i = 0; i < KM_SIZE / PAGE; i++) {
        ram.written[8 * MIB / PAGE + i] = true;
    }
    ram.written[1] = ram.written[2] = ram.written[20 * MIB / PAGE] = true;
    s = ht_kernel_scan_new(&ram.guest);
    g_assert_cmpint(ht_kernel_scan_step(s, NULL), ==, 1);
    g_assert_null(ht_kernel_scan_take(s, &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);

    strcpy((char *)ram.bytes + PAGE, "OSRELEASE=1\nSYMBOL(_stext)=0\n");
    strcpy((char *)ram.bytes + 2 * PAGE, "OSRELEASE=1\nSYMBOL(_stext)="
           "ffffffff81000000\nNUMBER(phys_base)=-99999999\n");
    /* _text is at 16 MiB from the link base: phys_base moves it to 8 MiB */
    strcpy((char *)ram.bytes + 20 * MIB, "OSRELEASE=6.12.0-test\n"
           "SYMBOL(_stext)=ffffffff81000100\nNUMBER(phys_base)=-8388608\n");
    t = ht_kernel_scan_new(&ram.guest);
    while ((ret = ht_kernel_scan_step(t, &none)) == 0) {
        g_assert_true(ht_kernel_scan_progress(t) < 1);
    }
    g_assert_cmpint(ret, ==, 1);
    g_clear_error(&error);
    k = ht_kernel_scan_take(t, &error);
    g_assert_no_error(error);
    g_assert_cmphex(ht_guest_kernel_phys(k), ==, 8 * MIB);
    g_assert_cmpint(ht_guest_kernel_clock(k, &clock), ==, 0);
    g_assert_cmpuint(clock.seconds, ==, 77);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: the scan makes few reads, even if RAM has many pages with text like
 * VMCOREINFO that names addresses without a kernel.
 */
static void test_scan_cost(void)
{
    g_autoptr(HtKernelScan) s = NULL;
    unsigned i;
    Ram ram;

    ram_init(&ram, SIZE);
    for (i = 0; i < 40; i++) {
        g_snprintf((char *)ram.bytes + (1 + i) * PAGE, PAGE,
                   "OSRELEASE=1\nSYMBOL(_stext)=ffffffff81000000\n"
                   "NUMBER(phys_base)=%d\n", (int)(i * MIB) - (8 << 20));
    }
    ram.reads = 0;
    s = ht_kernel_scan_new(&ram.guest);
    g_assert_cmpint(ht_kernel_scan_step(s, NULL), ==, 1);
    g_assert_cmpuint(ram.reads, <, 2 * SIZE / MIB + 100);
    ram_free(&ram);
}

/*
 * Promise: in the version of a guest's kernel, control and non-ASCII characters
 * are replaced by "?", so it can be printed on a terminal.
 */
static void test_banner(void)
{
    static const char escape[] = "\x1b]0;x\a\xc3\xa4";
    g_autoptr(HtKernelImage) image = NULL;
    g_autoptr(GBytes) bytes = NULL;
    KmKernel kernel;

    km_kernel(&kernel, 0, true);
    memcpy(kernel.bytes->data + KM_BANNER + 16, escape, strlen(escape));
    bytes = g_bytes_new(kernel.bytes->data, kernel.bytes->len);
    image = ht_kernel_image_from_memory(bytes, HT_MACHINE_X86_64, KM_TEXT,
                                        NULL);
    g_assert_true(g_str_has_prefix(ht_kernel_image_version(image),
                                   "Linux version 6.?]0;x???"));
    km_kernel_free(&kernel);
}

/*
 * Promise: ht_kernel_space_u64() returns no torn value: it reads until two
 * consecutive reads agree, and fails after HT_POINTER_TRIES reads.
 */
static void test_torn(void)
{
    g_autoptr(HtGuestKernel) k = NULL;
    HtKernelSpace space;
    uint64_t addr, value;
    KmKernel kernel;
    Ram ram;

    km_kernel(&kernel, 0, true);
    ram_init(&ram, SIZE);
    km_place(&kernel, ram.bytes, SIZE, 8 * MIB, 0, 1);
    k = find(&ram, &kernel);
    space = ht_kernel_space_of(k);
    g_assert_cmpint(ht_guest_kernel_symbol(k, "init_task", &addr), ==, 0);
    ht_put_le64(ram.bytes + 8 * MIB + 0xa000, 0x1122334455667788);
    ram.torn = 2;
    g_assert_cmpint(ht_kernel_space_u64(&space, addr, &value), ==, 0);
    g_assert_cmphex(value, ==, 0x1122334455667788);
    g_assert_cmpuint(ram.torn, ==, 0);
    ram.torn = HT_POINTER_TRIES;
    g_assert_cmpint(ht_kernel_space_u64(&space, addr, &value), ==, -EAGAIN);
    ram_free(&ram);
    km_kernel_free(&kernel);
}

/*
 * Promise: ht_ft_mem_copy() copies the right bytes of mapped memory, for each
 * offset and length up to its end, and refuses to copy beyond the end.
 */
static void test_copy(void)
{
    static const uint64_t sizes[] = { 64, 61 };
    uint8_t bytes[64], is[64];
    unsigned i, s, from, len;

    for (i = 0; i < sizeof(bytes); i++) {
        bytes[i] = i * 7 + 1;
    }
    for (s = 0; s < G_N_ELEMENTS(sizes); s++) {
        HtFtMem mapped = { .size = sizes[s], .map = bytes };

        for (from = 0; from <= sizes[s]; from++) {
            for (len = 0; len <= sizes[s] - from; len++) {
                memset(is, 0, sizeof(is));
                g_assert_cmpint(ht_ft_mem_copy(&mapped, from, is, len), ==, 0);
                g_assert_cmpmem(is, len, bytes + from, len);
            }
            g_assert_cmpint(ht_ft_mem_copy(&mapped, from, is,
                                           sizes[s] - from + 1), ==, -ERANGE);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/find/place", test_place);
    g_test_add_func("/find/inner", test_inner);
    g_test_add_func("/find/several", test_several);
    g_test_add_func("/find/overwritten", test_overwritten);
    g_test_add_func("/find/no-types", test_no_types);
    g_test_add_func("/find/early", test_early);
    g_test_add_func("/find/untouched", test_untouched);
    g_test_add_func("/find/hole", test_hole);
    g_test_add_func("/find/pages", test_pages);
    g_test_add_func("/find/scan", test_scan);
    g_test_add_func("/find/scan-cost", test_scan_cost);
    g_test_add_func("/find/banner", test_banner);
    g_test_add_func("/find/torn", test_torn);
    g_test_add_func("/find/copy", test_copy);
    return g_test_run();
}
