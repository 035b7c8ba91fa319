/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: rings that appear in a guest's memory and vanish, and the
 * events of them that are recorded
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>

#include "session-fixture.h"

/*
 * If a ring's memory is used for other data, the session records no more of the
 * ring. It records the rings of the next boots.
 */
static void test_gone(void)
{
    unsigned boots[4], first = 0, second = 0;
    Test t;

    st_setup(&t, 8 * MIB);
    st_begin(&t);
    st_make_ring(&t, 0, 2 * MIB, NR);
    st_find(&t, 0, &first);
    fg_put32(&t.g[0], 2 * MIB, 0);
    st_events(&t, 0, 10);
    st_look(&t);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, first);
    st_make_ring(&t, 1, 4 * MIB, NR);
    t.ns = 1000;
    st_find(&t, 1, &second);
    st_events(&t, 0, 10);
    st_look(&t);
    g_assert_cmpuint(st_recorded(&t, boots, 4), ==, first + second);
    g_assert_cmpuint(boots[0], ==, first);
    g_assert_cmpuint(boots[1], ==, second);
    /*
     * the next boot makes a ring of another size at the place of the first ring
     */
    fg_clear(&t.g[0]);
    st_make_ring(&t, 0, 2 * MIB, NR / 2);
    t.ns = 1000;
    first = 0;
    st_find(&t, 0, &first);
    st_recorded(&t, boots, 4);
    g_assert_cmpuint(boots[2], ==, first);
    st_teardown(&t);
}

/*
 * Each boot makes its ring at a new place and leaves the old ring in memory:
 * the events of all boots are recorded.
 */
static void test_many(void)
{
    unsigned boots[RINGS + 1], written[RINGS] = { 0 }, i;
    Test t;

    st_setup(&t, (RINGS + 1) * 2 * MIB);
    st_begin(&t);
    for (i = 0; i < RINGS; i++) {
        st_make_ring(&t, i, (i + 1) * 2 * MIB, NR);
        t.ns = 1000;
        st_find(&t, i, &written[i]);
        t.ns += SECOND;
        st_events(&t, i, 1);
        written[i]++;
        st_look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, RINGS);
    st_recorded(&t, boots, RINGS + 1);
    for (i = 0; i < RINGS; i++) {
        g_assert_cmpuint(boots[i], ==, written[i]);
    }
    st_teardown(&t);
}

/*
 * Make a ring of two processors: the part of processor 0 begins at 2 MiB, and
 * that of processor 1 at 4 MiB.
 */
static FtGuest *make_parts(Test *t)
{
    FtGuest *g = &t->g[0];

    *g = (FtGuest) { .layout = HT_FT_LAYOUT_6_11, .cpus = 2, .nr = 511,
                     .subbuf = 4096, .offset = 2 * MIB };
    fg_init(g);
    g_assert_cmphex(g->cpu[1].line - 24, ==, 4 * MIB);
    return g;
}

/* Write events on both processors; assert that all are recorded in one boot. */
static void follow_parts(Test *t)
{
    unsigned boots[2], i;

    for (i = 0; i < 10; i++) {
        fg_event(&t->g[0], 0, t->ns += 1000, 3);
        fg_event(&t->g[0], 1, t->ns += 1000, 3);
        st_look(t);
        /* advance the clock, so that a later poll searches again */
        st_clock_ns += SECOND;
    }
    g_assert_cmpuint(ht_session_stats(t->session).events, ==, 20);
    g_assert_cmpuint(ht_session_stats(t->session).boots, ==, 1);
    g_assert_cmpuint(st_recorded(t, boots, 2), ==, 20);
}

/*
 * At the first poll, the kernel is still making a ring: @part is 2 MiB if only
 * the first of its two parts is there, 4 MiB if only the second is. Later polls
 * follow both parts as one ring.
 */
static void test_half_made(gconstpointer part)
{
    uint64_t hidden = 6 * MIB - GPOINTER_TO_SIZE(part);
    Test t;

    st_setup(&t, 8 * MIB);
    st_begin(&t);
    fg_put32(make_parts(&t), hidden, 0);
    st_look(&t);
    fg_put32(&t.g[0], hidden, FG_MAGIC);
    follow_parts(&t);
    st_teardown(&t);
}

/*
 * The second part of a ring appears just after the search has read its place
 * and found nothing. A later search may find the second part alone: the session
 * must still follow both parts as one ring.
 */
static void test_made_meanwhile(void)
{
    unsigned looks, i;
    Test t;

    for (looks = 0; looks < 20; looks++) {
        st_setup(&t, 8 * MIB);
        st_begin(&t);
        st_clock_ns += 10 * SECOND;
        for (i = 0; i < looks; i++) {
            st_look(&t);
        }
        fg_put32(make_parts(&t), 4 * MIB, 0);
        t.appears = 4 * MIB;
        st_look(&t);
        g_assert_cmpuint(t.appears, ==, 0);
        follow_parts(&t);
        st_teardown(&t);
    }
}

/*
 * The header of the recorded ring is invalid for some time, as early in a boot,
 * so that a search finds the second part alone.  When the header is back, the
 * part still belongs to the ring: the events of the part are recorded once.
 */
static void test_header_rewritten(void)
{
    unsigned boots[2], i;
    Test t;

    st_setup(&t, 8 * MIB);
    st_begin(&t);
    make_parts(&t);
    st_look(&t);
    follow_parts(&t);
    fg_put32(&t.g[0], 2 * MIB, 0);
    for (i = 0; i < 3; i++) {
        st_clock_ns += SECOND;
        st_look(&t);
    }
    fg_put32(&t.g[0], 2 * MIB, FG_MAGIC);
    for (i = 0; i < 10; i++) {
        fg_event(&t.g[0], 1, t.ns += 1000, 3);
        st_look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 30);
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    g_assert_cmpuint(st_recorded(&t, boots, 2), ==, 30);
    st_teardown(&t);
}

static int64_t slow_clock(void)
{
    return st_clock_ns += 2000000;
}

/*
 * Each step of the search tests only one place, and lower offsets come later: a
 * step finds the second part of a ring, and a later step the first.
 * Promise: the session follows the whole ring, as one boot.
 */
static void test_short_steps(void)
{
    unsigned boots[2], i;
    Test t;

    st_setup(&t, 8 * MIB);
    t.info.now = slow_clock;
    st_begin(&t);
    make_parts(&t);
    for (i = 0; i < 100; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 3);
        fg_event(&t.g[0], 1, t.ns += 1000, 3);
        st_look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    g_assert_cmpuint(st_recorded(&t, boots, 2), ==,
                     ht_session_stats(t.session).events);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==,
                     t.g[0].cpu[0].seq + t.g[0].cpu[1].seq);
    st_teardown(&t);
}

/*
 * A ring is recorded even if the search first finds as many copies of rings, as
 * in a page cache, as a session follows at the same time.
 */
static void test_copies(void)
{
    unsigned written = 0, i;
    Test t;

    st_setup(&t, (RINGS + 1) * 2 * MIB);
    for (i = 0; i < RINGS; i++) {
        st_make_ring(&t, i, (i + 1) * 2 * MIB, NR);
        st_events(&t, i, 5);
    }
    st_begin(&t);
    st_find(&t, 0, &written);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 5 + written);
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    st_teardown(&t);
}

static char *info_text(const Test *t)
{
    g_autofree char *path = g_build_filename(t->dir, "info", NULL);
    char *text;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

/*
 * If every second poll finds a new boot, the file info has a bounded size and
 * is written at most once a second.
 */
static void test_boots(void)
{
    g_autofree char *text = NULL, *later = NULL;
    g_autofree unsigned *boots = g_new(unsigned, 5000);
    unsigned i, written = 0;
    Test t;

    st_setup(&t, 4 * MIB);
    st_begin(&t);
    st_make_ring(&t, 0, 2 * MIB, NR);
    st_find(&t, 0, &written);
    for (i = 0; i < 6000; i++) {
        fg_boot(&t.g[0], 0, false, UINT64_C(0xffff900000000000) + i * 4096);
        t.ns = (1 + i % 2) * SECOND + (i + 1) * 10007;
        /*
         * write two events in each boot: the first poll of the next boot then
         * finds fewer events than before, which shows the new boot
         */
        st_events(&t, 0, 1);
        if (i == 500) {
            g_free(text);
            text = info_text(&t);
        }
        st_look(&t);
        st_events(&t, 0, 1);
        st_look(&t);
        if (i == 520) {
            later = info_text(&t);
            /* at most one of the 42 polls since @text has written info */
            g_assert_true(!strcmp(text, later) ||
                          !strstr(later, "text-521="));
        }
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 6001);
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_free(text);
    text = info_text(&t);
    g_assert_nonnull(strstr(text, "\ntext-4094="));
    g_assert_null(strstr(text, "\ntext-4095="));
    g_assert_nonnull(strstr(text, "\nend=the end\n"));
    g_assert_cmpuint(st_recorded(&t, boots, 4096), ==, 12000 + written);
    g_assert_cmpuint(boots[4094], ==, 2);
    st_teardown(&t);
}

/*
 * A poll reads a bounded number of bytes even if more events wait.
 * ht_session_finish() reads all events.
 */
static void test_more(void)
{
    unsigned i, n = HT_FT_LOOK_MAX / 4016 * 5 / 4;
    Test t;

    st_setup(&t, 256 * MIB);
    st_begin(&t);
    st_make_ring(&t, 0, 2 * MIB, 2 * n + 10);
    st_look(&t);
    st_events(&t, 0, 1);
    st_look(&t);
    for (i = 0; i < n; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 1000);
    }
    st_look(&t);
    g_assert_true(ht_session_more(t.session));
    st_look(&t);
    g_assert_false(ht_session_more(t.session));
    for (i = 0; i < n; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 1000);
    }
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 2 * n + 1);
    g_assert_cmpuint(ht_session_stats(t.session).gaps, ==, 0);
    st_teardown(&t);
}

static goffset size_of(const Test *t, const char *name)
{
    g_autofree char *path = g_build_filename(t->dir, name, NULL);
    GStatBuf st;

    return g_stat(path, &st) ? 0 : st.st_size;
}

/*
 * There are two rings. If one of them uses up a poll's limit of bytes, the next
 * poll begins with the other. @full: "0" or "1", the number of the ring that
 * has many events
 */
static void test_turns(gconstpointer full)
{
    unsigned i, n = HT_FT_LOOK_MAX / 4016;
    FtGuest *large, *small;
    goffset before;
    Test t;

    st_setup(&t, 256 * MIB);
    st_begin(&t);
    large = &t.g[atoi(full)];
    small = &t.g[!atoi(full)];
    for (i = 0; i < 2; i++) {
        t.g[i] = (FtGuest) { .layout = HT_FT_LAYOUT_6_11, .cpus = 2,
                             .nr = &t.g[i] == large ? 3 * n : 16,
                             .subbuf = 4096, .offset = (2 + 120 * i) * MIB };
        fg_init(&t.g[i]);
    }
    for (i = 0; i < 3; i++) {
        st_look(&t);
        fg_event(large, 0, t.ns += 1000, 3);
        fg_event(small, 1, t.ns += 1000, 3);
    }
    st_look(&t);
    before = size_of(&t, "cpu1");
    for (i = 0; i < 5 * n / 2; i++) {
        fg_event(large, 0, t.ns += 1000, 1000);
    }
    st_look(&t);
    fg_event(small, 1, t.ns += 1000, 3);
    st_look(&t);
    g_assert_true(ht_session_more(t.session));
    g_assert_cmpint(size_of(&t, "cpu1"), >, before);
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 7 + 5 * n / 2);
    g_assert_cmpuint(ht_session_stats(t.session).gaps, ==, 0);
    st_teardown(&t);
}

/*
 * Promise: while a ring has events, the searches for other rings take less than
 * 0.1 % of a processor in guests of 256 MiB to 16 GiB. When this ring gets no
 * more events, a ring elsewhere is found within 30 s.
 */
static void test_pace(void)
{
    unsigned n = 0, i;
    uint64_t begun;
    Test t;

    for (i = 1; i <= 64; i *= 8) {
        st_setup(&t, i * 256 * MIB);
        st_begin(&t);
        st_make_ring(&t, 0, 2 * MIB, NR);
        st_find(&t, 0, &n);
        t.cost = 20000;
        begun = st_clock_ns;
        while (st_clock_ns - begun < 600 * SECOND) {
            st_events(&t, 0, 1);
            st_look(&t);
            st_clock_ns += SECOND / 4;
        }
        g_test_message("%u MiB: %.3f %%", i * 256,
                       100.0 * t.spent / (st_clock_ns - begun));
        /* Besides, allow for one more search, of at most 4096 places. */
        g_assert_cmpuint(t.spent, <, (st_clock_ns - begun) / 1000 +
                         4096 * t.cost);
        st_make_ring(&t, 1, 64 * MIB, NR);
        begun = st_clock_ns;
        while (!ht_session_stats(t.session).boots ||
               ht_session_stats(t.session).boots == 1) {
            g_assert_cmpuint(st_clock_ns - begun, <, 30 * SECOND);
            fg_event(&t.g[1], 0, t.ns += 1000, 3);
            st_look(&t);
            st_clock_ns += SECOND / 4;
        }
        st_teardown(&t);
    }
}

/* A recording stops at the size of --max-size and reports it. */
static void test_max(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    unsigned boots[1], n = 0;
    Test t;

    st_setup(&t, 4 * MIB);
    t.info.max_bytes = MIB;
    st_begin(&t);
    st_make_ring(&t, 0, 2 * MIB, NR);
    st_find(&t, 0, &n);
    while (ht_session_look(t.session, &error)) {
        st_events(&t, 0, 100);
        g_assert_cmpuint(n++, <, 10000);
    }
    g_assert_nonnull(strstr(error->message, "--max-size, 1 MiB"));
    g_assert_cmpuint(ht_session_stats(t.session).bytes, <=, MIB);
    g_assert_cmpuint(ht_session_stats(t.session).bytes, >, MIB - 8192);
    ht_session_stop(t.session, error->message);
    text = info_text(&t);
    g_assert_nonnull(strstr(text, "\ncut=the recording has the size"));
    g_assert_cmpuint(st_recorded(&t, boots, 1), >, 10000);
    st_teardown(&t);
}

/* A ring that is not at a multiple of 2 MiB is found by a slower search. */
static void test_anywhere(void)
{
    unsigned written = 0;
    Test t;

    st_setup(&t, 64 * MIB);
    st_begin(&t);
    st_make_ring(&t, 0, 33 * MIB + 4096, 64);
    st_find(&t, 0, &written);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, written);
    st_teardown(&t);
}

/*
 * If no earlier poll has found a ring that is not at a multiple of 2 MiB,
 * ht_session_finish() finds it.
 */
static void test_anywhere_last(void)
{
    Test t;

    st_setup(&t, 64 * MIB);
    st_begin(&t);
    st_make_ring(&t, 0, 33 * MIB + 4096, NR);
    st_events(&t, 0, 7);
    st_look(&t);
    g_assert_false(ht_session_stats(t.session).found);
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 7);
    st_teardown(&t);
}

/*
 * If the user gave a ring's physical address, the first poll finds the ring,
 * here at no multiple of 2 MiB. The ring's offset in the memory is @less GiB
 * below the given address.
 */
static void test_where_said(gconstpointer less)
{
    Test t;

    st_setup(&t, 64 * MIB);
    t.info.ring_at = 33 * MIB + 4096 + (GPOINTER_TO_SIZE(less) << 30);
    st_begin(&t);
    st_make_ring(&t, 0, 33 * MIB + 4096, NR);
    st_look(&t);
    st_events(&t, 0, 1);
    st_look(&t);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 1);
    st_teardown(&t);
}

/*
 * A guest reboots at once after a panic, so that no poll comes between panic
 * and reboot. The session finds the panic in what is left of the dead kernel's
 * log, and still reports it after the search has found the next kernel.
 */
static void test_panic_between_polls(void)
{
    const uint64_t first = 8 * MIB, second = 24 * MIB;
    g_autofree uint8_t *ram = g_malloc0(64 * MIB);
    HtKernelLogHint hint;
    KmKernel kernel;
    unsigned i;
    Test t;

    st_setup_kernel(&t, &kernel, ram, first);
    st_begin(&t);
    st_look_for_kernel(&t, true);
    g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 1);

    /* A recorder that waits between polls notices a new line. */
    g_assert_true(ht_session_log_hint(t.session, &hint));
    g_assert_false(ht_kernel_log_grew(&hint));
    km_print(ram + first, 2, "sysrq: Trigger a crash");
    g_assert_true(ht_kernel_log_grew(&hint));
    st_look(&t);
    g_assert_true(ht_session_log_hint(t.session, &hint));
    g_assert_false(ht_kernel_log_grew(&hint));
    for (i = 0; i < 12; i++) {
        km_print(ram + first, 2 + i, "RIP: 0010:sysrq_handle_crash+0x16/0x20");
    }
    km_print(ram + first, 77, "Kernel panic - not syncing: sysrq");
    km_place(&kernel, ram, 64 * MIB, second, 2 * MIB, 1010);
    km_print(ram + second, 1, "Linux version 6.12.0-test");
    memset(ram + first + KM_SYSCALLS, 0, 8);
    st_look_for_kernel(&t, false);
    g_assert_cmpuint(ht_session_stats(t.session).panic_boot, ==, 1);
    st_look_for_kernel(&t, true);
    g_assert_cmpuint(ht_session_stats(t.session).panic_boot, ==, 1);
    g_assert_cmpuint(ht_session_stats(t.session).kernel_boot, ==, 2);
    g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 16);
    st_teardown(&t);
    km_kernel_free(&kernel);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/session/gone", test_gone);
    g_test_add_func("/session/many", test_many);
    g_test_add_func("/session/copies", test_copies);
    g_test_add_data_func("/session/half-made/first",
                         GSIZE_TO_POINTER(2 * MIB), test_half_made);
    g_test_add_data_func("/session/half-made/second",
                         GSIZE_TO_POINTER(4 * MIB), test_half_made);
    g_test_add_func("/session/made-meanwhile", test_made_meanwhile);
    g_test_add_func("/session/header-rewritten", test_header_rewritten);
    g_test_add_func("/session/boots", test_boots);
    g_test_add_func("/session/short-steps", test_short_steps);
    g_test_add_func("/session/more", test_more);
    g_test_add_data_func("/session/turns/0", "0", test_turns);
    g_test_add_data_func("/session/turns/1", "1", test_turns);
    g_test_add_func("/session/pace", test_pace);
    g_test_add_func("/session/max", test_max);
    g_test_add_func("/session/panic-between-polls", test_panic_between_polls);
    g_test_add_func("/session/anywhere", test_anywhere);
    g_test_add_func("/session/anywhere-last", test_anywhere_last);
    g_test_add_data_func("/session/where-said/0", NULL, test_where_said);
    g_test_add_data_func("/session/where-said/1", GSIZE_TO_POINTER(1),
                         test_where_said);
    g_test_add_data_func("/session/where-said/2", GSIZE_TO_POINTER(2),
                         test_where_said);
    return g_test_run();
}
