/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Make recording sessions of artificial guests
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>

#include "hypertrace/recording.h"
#include "session-fixture.h"

uint64_t st_clock_ns;

static int64_t host_clock(void)
{
    return st_clock_ns;
}

static int read_mem(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Test *t = opaque;
    unsigned i;

    memset(buf, 0, len);
    if (t->cost && offset % (2 * MIB) == 0 && offset != t->g[0].offset) {
        st_clock_ns += t->cost;
        t->spent += t->cost;
    }
    for (i = 0; i < RINGS; i++) {
        const FtGuest *g = &t->g[i];

        if (g->mem && offset >= g->offset && offset + len <= g->size) {
            memcpy(buf, g->mem + offset, len);
        }
    }
    /*
     * The session has just read the place of the part at @appears, and found
     * nothing.  Let the part appear now, for the next read.
     */
    if (offset == t->appears && len > 8) {
        fg_put32(&t->g[0], t->appears, FG_MAGIC);
        t->appears = 0;
    }
    return 0;
}

void st_make_ring(Test *t, unsigned i, uint64_t offset, uint32_t nr)
{
    t->g[i] = (FtGuest) { .layout = HT_FT_LAYOUT_6_11, .cpus = 1, .nr = nr,
                          .subbuf = 4096, .offset = offset };
    fg_init(&t->g[i]);
}

void st_setup(Test *t, uint64_t size)
{
    *t = (Test) { .ns = SECOND };
    st_clock_ns = 5 * SECOND;
    t->mem = (HtFtMem) { .size = size, .read = read_mem, .opaque = t };
    t->dir = g_dir_make_tmp("ht-session-XXXXXX", NULL);
    g_assert_nonnull(t->dir);
    t->info.dir = t->dir;
    t->info.now = host_clock;
}

void st_begin(Test *t)
{
    g_autoptr(GError) error = NULL;

    t->session = ht_session_new(&t->info, &error);
    g_assert_no_error(error);
    ht_session_add(t->session, &t->mem, HT_SESSION_ALL);
}

void st_teardown(Test *t)
{
    g_autoptr(GDir) d = g_dir_open(t->dir, 0, NULL);
    const char *name;
    unsigned i;

    ht_session_free(t->session);
    for (i = 0; i < RINGS; i++) {
        fg_clear(&t->g[i]);
    }
    while ((name = g_dir_read_name(d)) != NULL) {
        g_autofree char *path = g_build_filename(t->dir, name, NULL);

        g_remove(path);
    }
    g_assert_cmpint(g_rmdir(t->dir), ==, 0);
    g_free(t->dir);
}

void st_look(Test *t)
{
    g_autoptr(GError) error = NULL;

    st_clock_ns += 10000000;
    ht_session_look(t->session, &error);
    g_assert_no_error(error);
}

void st_events(Test *t, unsigned ring, unsigned n)
{
    while (n--) {
        fg_event(&t->g[ring], 0, t->ns += 1000, 3);
    }
}

unsigned st_recorded(const Test *t, unsigned *boots, unsigned max)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = ht_rec_open(t->dir, &error);
    unsigned all = 0;
    HtRecEvent ev;

    g_assert_no_error(error);
    memset(boots, 0, max * sizeof(*boots));
    while (ht_rec_next(r, &ev)) {
        uint64_t seq;

        g_assert_true(fg_check(ev.data, ev.size, &seq));
        g_assert_cmpuint(ev.epoch, <, max);
        boots[ev.epoch]++;
        all++;
    }
    return all;
}

void st_find(Test *t, unsigned ring, unsigned *written)
{
    unsigned i;
    uint64_t before = ht_session_stats(t->session).events;

    for (i = 0; i < 1000; i++) {
        st_events(t, ring, 1);
        ++*written;
        st_look(t);
        if (ht_session_stats(t->session).events != before) {
            return;
        }
    }
    g_assert_not_reached();
}

void st_look_for_kernel(Test *t, bool there)
{
    unsigned i;

    for (i = 0; i < 1000; i++) {
        st_look(t);
        if (!ht_session_stats(t->session).kernel_boot == !there) {
            return;
        }
    }
    g_assert_not_reached();
}

void st_setup_kernel(Test *t, KmKernel *kernel, uint8_t *ram,
                         uint64_t phys)
{
    st_setup(t, 64 * MIB);
    t->mem = (HtFtMem) { .size = 64 * MIB, .map = ram };
    km_kernel(kernel, 24, true);
    km_place(kernel, ram, 64 * MIB, phys, 0, 1000);
    km_print(ram + phys, 1, "Linux version 6.12.0-test");
    t->info.image = kernel->image;
}
