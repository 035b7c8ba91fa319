/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * poll-hostile: record the memory of hostile guests, and print the longest
 * processor time of a poll of each
 *
 * Each guest makes one part of a poll long (docs/security.md). The last case
 * has no polls: it measures the steps that read the formats of events.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <sys/mman.h>
#include <time.h>

#include "formats-make.h"
#include "ftrace-guest.h"
#include "kernel-make.h"
#include "record/record-session.h"

#define MIB     (UINT64_C(1) << 20)
#define SECOND  UINT64_C(1000000000)
#define AT      (2 * MIB)
/* Minimum number of polls of a guest */
#define POLLS   300

static double thread_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

typedef struct Guest {
    FtGuest g;
    HtFtMem mem;
    HtSession *session;
    char *dir;
} Guest;

static uint8_t *map(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
                   MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    g_assert_true(p != MAP_FAILED);
    return p;
}

static void begin(Guest *t, uint8_t *ram, uint64_t size, HtKernelImage *image)
{
    HtSessionInfo info = { .image = image };

    t->mem = (HtFtMem) { .size = size, .map = ram };
    t->dir = g_dir_make_tmp("poll-hostile-XXXXXX", NULL);
    info.dir = t->dir;
    t->session = ht_session_new(&info, NULL);
    g_assert_nonnull(t->session);
    ht_session_add(t->session, &t->mem, HT_SESSION_ALL);
}

/*
 * Poll at least POLLS times, and until nothing is left to read, but at most
 * 100000 times. @change, if not NULL, is called after each of the first POLLS
 * polls.
 */
static void poll(Guest *t, const char *what, void (*change)(Guest *t))
{
    double longest = 0, sum = 0;
    unsigned n = 0;

    do {
        double begun = thread_ms(), took;

        g_assert_true(ht_session_look(t->session, NULL));
        took = thread_ms() - begun;
        longest = MAX(longest, took);
        sum += took;
        if (change && n < POLLS) {
            change(t);
        }
        if (!ht_session_more(t->session)) {
            g_usleep(1000);
        }
    } while (++n < POLLS || (ht_session_more(t->session) && n < 100000));
    printf("%s: %u polls, longest %.2f ms, all %.0f ms, %" PRIu64 " events\n",
           what, n, longest, sum, ht_session_stats(t->session).events);
    fflush(stdout);
}

static void end(Guest *t)
{
    g_autofree char *file = g_build_filename(t->dir, "cpu0", NULL);

    ht_session_discard(t->session);
    ht_session_free(t->session);
    g_remove(file);
    g_rmdir(t->dir);
    g_free(t->dir);
}

static uint64_t ns = SECOND;

static void write_event(Guest *t)
{
    fg_event(&t->g, 0, ns += 1000, 3);
}

static void init_ring(Guest *t, uint32_t pages, uint64_t size)
{
    *t = (Guest) { .g = { .layout = HT_FT_LAYOUT_6_11, .cpus = 1, .nr = pages,
                          .subbuf = 4096, .offset = AT, .mem = map(size),
                          .size = size } };
    fg_init(&t->g);
    begin(t, t->g.mem, size, NULL);
}

/*
 * Poll a ring with 80 MiB of pages. If @steps, the time of every second event
 * is before that of the event before it; else the pages are full of events of 8
 * bytes.
 */
static void full(const char *what, bool steps)
{
    uint32_t pages = 80 * MIB / 4096, i, at;
    Guest t;

    init_ring(&t, pages, 256 * MIB);
    ht_session_look(t.session, NULL);
    for (i = 0; i < pages * 125; i++) {
        ns = i % 2 && steps ? ns - 1000 : ns + 2000;
        fg_event(&t.g, 0, ns, 0);
    }
    for (i = 0; i < pages && !steps; i++) {
        uint64_t page = fg_page(&t.g, 0, i);

        for (at = HT_FT_PAGE_HEADER; at < 4096 - 64; at += 8) {
            /* an event with 4 bytes of data, 1 ns after the one before it */
            fg_put(&t.g, page + at, UINT64_C(5) << 32 | 1 << 5 | 1);
        }
    }
    ns += SECOND;
    poll(&t, what, NULL);
    end(&t);
    munmap(t.g.mem, t.g.size);
    g_free(t.g.cpu[0].entries);
}

/*
 * Poll a ring of @pages sub-buffers, which are in a random order, while events
 * are written
 */
static void large_order(uint32_t pages)
{
    g_autofree char *what = g_strdup_printf("a boot-mapped ring of %u MiB",
                                            pages / 256);
    uint64_t size = pages * UINT64_C(4096) + 64 * MIB;
    GRand *rand = g_rand_new_with_seed(1);
    uint32_t i;
    Guest t;

    init_ring(&t, pages, size);
    for (i = pages - 1; i > 2; i--) {
        uint32_t j = g_rand_int_range(rand, 2, i);
        uint32_t a = fg_order(&t.g, 0, i), b = fg_order(&t.g, 0, j);

        fg_put32(&t.g, t.g.cpu[0].order + 4 * i, b);
        fg_put32(&t.g, t.g.cpu[0].order + 4 * j, a);
    }
    poll(&t, what, write_event);
    end(&t);
    munmap(t.g.mem, size);
    g_free(t.g.cpu[0].entries);
    g_rand_free(rand);
}

/*
 * Poll a ring of 64 MiB of one processor. At the 15 places below it where parts
 * of other processors could be, there are copies of its header and page order,
 * in which the last number of the order is wrong.
 */
static void false_parts(void)
{
    const uint32_t pages = 16383, header = 56 + 4 * pages;
    const uint64_t size = 1152 * MIB, offset = 1024 * MIB;
    uint64_t part;
    unsigned i;
    Guest t = { .g = { .layout = HT_FT_LAYOUT_6_11, .cpus = 1, .nr = pages,
                       .subbuf = 4096, .offset = offset, .mem = map(size),
                       .size = size } };

    fg_init(&t.g);
    part = t.g.cpu[0].pages + pages * UINT64_C(4096) - offset;
    for (i = 1; i < 16; i++) {
        uint8_t *to = t.g.mem + offset - i * part;

        memcpy(to, t.g.mem + offset, header);
        memset(to + header - 4, 0, 4);
    }
    begin(&t, t.g.mem, size, NULL);
    poll(&t, "a boot-mapped ring above 15 false parts", NULL);
    end(&t);
    munmap(t.g.mem, size);
    g_free(t.g.cpu[0].entries);
}

/* Poll 1 GiB with a copy of a kernel at each multiple of 2 MiB from 8 MiB on */
static void kernels(void)
{
    const uint64_t size = 1024 * MIB;
    uint8_t *ram = map(size);
    KmKernel kernel;
    Guest t = { 0 };
    uint64_t at;

    km_kernel(&kernel, 24, true);
    for (at = 8 * MIB; at + KM_SIZE <= size; at += 2 * MIB) {
        km_place(&kernel, ram, size, at, at / 4 & ~(2 * MIB - 1), 1000 + at);
    }
    begin(&t, ram, size, kernel.image);
    poll(&t, "508 kernels", NULL);
    end(&t);
    km_kernel_free(&kernel);
    munmap(ram, size);
}

/*
 * Measure the steps that read the formats of HT_KERNEL_EVENTS_MAX - 1 events
 * with 10 fields each, and the work with the formats that follows
 */
static void formats(void)
{
    double longest = 0, begun, took;
    HtKernelFormatsList *list;
    g_autoptr(HtBtf) btf = fm_btf();
    HtKernelFormats *f;
    g_autoptr(HtFtFormats) parsed = NULL;
    GString *text;
    FormatsGuest g;
    unsigned i, steps = 0;
    int ret;

    fm_init(&g, 32 * MIB);
    fm_field(&g, FM_COMMON, "unsigned short", "common_type", 0, 2);
    for (i = 0; i < HT_KERNEL_EVENTS_MAX - 1; i++) {
        g_autofree char *name = g_strdup_printf("event_%u", i * 40503 % 65536);
        uint64_t fields = fm_event(&g, i + 1, "system", name, "\"%d\"");
        unsigned j;

        for (j = 0; j < 10; j++) {
            fm_field(&g, fields, "unsigned long", "a", 8 + 8 * j, 8);
        }
    }
    f = ht_kernel_formats_new(&g.space, btf, &g.at, 4096, NULL);
    do {
        begun = thread_ms();
        ret = ht_kernel_formats_step(f, 1024);
        took = thread_ms() - begun;
        longest = MAX(longest, took);
        steps++;
    } while (ret == 0);
    printf("16 MiB of formats: %u events, %" PRIu64 " KiB; %u steps, longest "
           "%.2f ms\n", ht_kernel_formats_count(f),
           ht_kernel_formats_bytes(f) >> 10, steps, longest);
    begun = thread_ms();
    list = ht_kernel_formats_list(f);
    printf("  list %.2f ms\n", thread_ms() - begun);
    begun = thread_ms();
    text = ht_kernel_formats_list_text(list);
    took = thread_ms() - begun;
    begun = thread_ms();
    parsed = ht_ft_formats_parse(text->str, text->len, NULL);
    printf("  job: text of %zu KiB %.2f ms, parse %.2f ms\n", text->len >> 10,
           took, thread_ms() - begun);
    ht_kernel_formats_list_free(list);
    begun = thread_ms();
    ht_kernel_formats_free(f);
    printf("  free %.2f ms\n", thread_ms() - begun);
    g_string_free(text, true);
    fm_clear(&g);
}

int main(void)
{
    full("a boot-mapped ring whose clock steps back", true);
    full("a boot-mapped ring of events of 8 bytes", false);
    large_order(1 << 18);
    large_order(1 << 20);
    false_parts();
    kernels();
    formats();
    return 0;
}
