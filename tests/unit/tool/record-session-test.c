/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: rings that appear in a guest's memory and vanish, and the
 * parts of them that are recorded
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>

#include "ftrace-guest.h"
#include "hypertrace/recording.h"
#include "kernel-make.h"
#include "record/record-session.h"

#define MIB     (UINT64_C(1) << 20)
#define SECOND  UINT64_C(1000000000)
#define RINGS   40
#define NR      8

/* A guest whose memory holds each of its rings in a separate part */
typedef struct Test {
    FtGuest g[RINGS];
    HtFtMem mem;
    HtSession *session;
    HtSessionInfo info;
    char *dir;
    uint64_t ns;                /* value of the guest's clock in ns */
    /* offset in memory of a ring that appears later; 0: none */
    uint64_t appears;
    /* ns that each test of a place for a ring takes; sum over all tests */
    uint64_t cost, spent;
} Test;

static uint64_t clock_ns;

static uint64_t host_clock(void)
{
    return clock_ns;
}

static int read_mem(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Test *t = opaque;
    unsigned i;

    memset(buf, 0, len);
    if (t->cost && offset % (2 * MIB) == 0 && offset != t->g[0].offset) {
        clock_ns += t->cost;
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

static void make_ring(Test *t, unsigned i, uint64_t offset, uint32_t nr)
{
    t->g[i] = (FtGuest) { .layout = HT_FT_LAYOUT_6_11, .cpus = 1, .nr = nr,
                          .subbuf = 4096, .offset = offset };
    fg_init(&t->g[i]);
}

static void setup(Test *t, uint64_t size)
{
    *t = (Test) { .ns = SECOND };
    clock_ns = 5 * SECOND;
    t->mem = (HtFtMem) { .size = size, .read = read_mem, .opaque = t };
    t->dir = g_dir_make_tmp("ht-session-XXXXXX", NULL);
    g_assert_nonnull(t->dir);
    t->info.dir = t->dir;
    t->info.now = host_clock;
}

static void begin(Test *t)
{
    g_autoptr(GError) error = NULL;

    t->session = ht_session_new(&t->info, &error);
    g_assert_no_error(error);
    ht_session_add(t->session, &t->mem, HT_SESSION_ALL);
}

static void teardown(Test *t)
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

static void look(Test *t)
{
    g_autoptr(GError) error = NULL;

    clock_ns += 10000000;
    ht_session_look(t->session, &error);
    g_assert_no_error(error);
}

static void events(Test *t, unsigned ring, unsigned n)
{
    while (n--) {
        fg_event(&t->g[ring], 0, t->ns += 1000, 3);
    }
}

/* Count a recording's events by boot; return the number of all events. */
static unsigned recorded(const Test *t, unsigned *boots, unsigned max)
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

/* Write an event before each poll until the session records the ring. */
static void find(Test *t, unsigned ring, unsigned *written)
{
    unsigned i;
    uint64_t before = ht_session_stats(t->session).events;

    for (i = 0; i < 1000; i++) {
        events(t, ring, 1);
        ++*written;
        look(t);
        if (ht_session_stats(t->session).events != before) {
            return;
        }
    }
    g_assert_not_reached();
}

/* If a ring's memory is used for other data, the session drops the ring. */
static void test_gone(void)
{
    unsigned boots[4], first = 0, second = 0;
    Test t;

    setup(&t, 8 * MIB);
    begin(&t);
    make_ring(&t, 0, 2 * MIB, NR);
    find(&t, 0, &first);
    fg_put32(&t.g[0], 2 * MIB, 0);
    events(&t, 0, 10);
    look(&t);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, first);
    make_ring(&t, 1, 4 * MIB, NR);
    t.ns = 1000;
    find(&t, 1, &second);
    events(&t, 0, 10);
    look(&t);
    g_assert_cmpuint(recorded(&t, boots, 4), ==, first + second);
    g_assert_cmpuint(boots[0], ==, first);
    g_assert_cmpuint(boots[1], ==, second);
    /*
     * the next boot makes a ring of another size at the place of the first one
     */
    fg_clear(&t.g[0]);
    make_ring(&t, 0, 2 * MIB, NR / 2);
    t.ns = 1000;
    first = 0;
    find(&t, 0, &first);
    recorded(&t, boots, 4);
    g_assert_cmpuint(boots[2], ==, first);
    teardown(&t);
}

/*
 * Each boot makes its ring at a new place and leaves the old ring in memory:
 * the events of all boots are recorded.
 */
static void test_many(void)
{
    unsigned boots[RINGS + 1], written[RINGS] = { 0 }, i;
    Test t;

    setup(&t, (RINGS + 1) * 2 * MIB);
    begin(&t);
    for (i = 0; i < RINGS; i++) {
        make_ring(&t, i, (i + 1) * 2 * MIB, NR);
        t.ns = 1000;
        find(&t, i, &written[i]);
        t.ns += SECOND;
        events(&t, i, 1);
        written[i]++;
        look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, RINGS);
    recorded(&t, boots, RINGS + 1);
    for (i = 0; i < RINGS; i++) {
        g_assert_cmpuint(boots[i], ==, written[i]);
    }
    teardown(&t);
}

/*
 * Make a ring of two processors; each one's part begins at a multiple of 2
 * MiB.
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

/* Assert that events of both processors belong to one ring and one boot. */
static void follow_parts(Test *t)
{
    unsigned boots[2], i;

    for (i = 0; i < 10; i++) {
        fg_event(&t->g[0], 0, t->ns += 1000, 3);
        fg_event(&t->g[0], 1, t->ns += 1000, 3);
        look(t);
        /* advance the clock, so that a later poll searches again */
        clock_ns += SECOND;
    }
    g_assert_cmpuint(ht_session_stats(t->session).events, ==, 20);
    g_assert_cmpuint(ht_session_stats(t->session).boots, ==, 1);
    g_assert_cmpuint(recorded(t, boots, 2), ==, 20);
}

/*
 * The first poll finds a ring under construction: one of its two parts is
 * missing.
 */
static void test_half_made(gconstpointer part)
{
    uint64_t hidden = 6 * MIB - GPOINTER_TO_SIZE(part);
    Test t;

    setup(&t, 8 * MIB);
    begin(&t);
    fg_put32(make_parts(&t), hidden, 0);
    look(&t);
    fg_put32(&t.g[0], hidden, FG_MAGIC);
    follow_parts(&t);
    teardown(&t);
}

/*
 * The second part of a ring appears just after the search has found the first.
 * A search of all places may find the second part alone: it must still join
 * the first.
 */
static void test_made_meanwhile(void)
{
    unsigned looks, i;
    Test t;

    for (looks = 0; looks < 20; looks++) {
        setup(&t, 8 * MIB);
        begin(&t);
        clock_ns += 10 * SECOND;
        for (i = 0; i < looks; i++) {
            look(&t);
        }
        fg_put32(make_parts(&t), 4 * MIB, 0);
        t.appears = 4 * MIB;
        look(&t);
        g_assert_cmpuint(t.appears, ==, 0);
        follow_parts(&t);
        teardown(&t);
    }
}

/*
 * While a guest boots again, the header of the ring that is recorded is invalid
 * for some time, so that a search finds the second part alone.  When the header
 * is back, the part still belongs to the ring: its events are recorded once.
 */
static void test_header_rewritten(void)
{
    unsigned boots[2], i;
    Test t;

    setup(&t, 8 * MIB);
    begin(&t);
    make_parts(&t);
    look(&t);
    follow_parts(&t);
    fg_put32(&t.g[0], 2 * MIB, 0);
    for (i = 0; i < 3; i++) {
        clock_ns += SECOND;
        look(&t);
    }
    fg_put32(&t.g[0], 2 * MIB, FG_MAGIC);
    for (i = 0; i < 10; i++) {
        fg_event(&t.g[0], 1, t.ns += 1000, 3);
        look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 30);
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    g_assert_cmpuint(recorded(&t, boots, 2), ==, 30);
    teardown(&t);
}

static uint64_t slow_clock(void)
{
    return clock_ns += 2000000;
}

/*
 * A search whose steps test one place each finds the second part of a ring in an
 * earlier step than the ring: the part is not taken for a ring.
 */
static void test_short_steps(void)
{
    unsigned boots[2], i;
    Test t;

    setup(&t, 8 * MIB);
    t.info.now = slow_clock;
    begin(&t);
    make_parts(&t);
    for (i = 0; i < 100; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 3);
        fg_event(&t.g[0], 1, t.ns += 1000, 3);
        look(&t);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    g_assert_cmpuint(recorded(&t, boots, 2), ==,
                     ht_session_stats(t.session).events);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==,
                     t.g[0].cpu[0].seq + t.g[0].cpu[1].seq);
    teardown(&t);
}

/*
 * A ring is recorded even if copies of rings, as in a page cache, fill all the
 * session's slots first.
 */
static void test_copies(void)
{
    unsigned written = 0, i;
    Test t;

    setup(&t, (RINGS + 1) * 2 * MIB);
    for (i = 0; i < RINGS; i++) {
        make_ring(&t, i, (i + 1) * 2 * MIB, NR);
        events(&t, i, 5);
    }
    begin(&t);
    find(&t, 0, &written);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 5 + written);
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 1);
    teardown(&t);
}

static char *info_text(const Test *t)
{
    g_autofree char *path = g_build_filename(t->dir, "info", NULL);
    char *text;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

/*
 * If each poll finds a new boot, the file info has a bounded size and is
 * written rarely.
 */
static void test_boots(void)
{
    g_autofree char *text = NULL, *later = NULL;
    g_autofree unsigned *boots = g_new(unsigned, 5000);
    unsigned i, written = 0;
    Test t;

    setup(&t, 4 * MIB);
    begin(&t);
    make_ring(&t, 0, 2 * MIB, NR);
    find(&t, 0, &written);
    for (i = 0; i < 6000; i++) {
        fg_boot(&t.g[0], 0, false, UINT64_C(0xffff900000000000) + i * 4096);
        t.ns = (1 + i % 2) * SECOND + (i + 1) * 10007;
        /*
         * poll twice in each boot: at the first poll, a ring with fewer events
         * than before proves that the guest has booted again
         */
        events(&t, 0, 1);
        if (i == 500) {
            g_free(text);
            text = info_text(&t);
        }
        look(&t);
        events(&t, 0, 1);
        look(&t);
        if (i == 520) {
            later = info_text(&t);
            /* info is written at most once in 100 polls of 10 ms */
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
    g_assert_cmpuint(recorded(&t, boots, 4096), ==, 12000 + written);
    g_assert_cmpuint(boots[4094], ==, 2);
    teardown(&t);
}

/*
 * A poll reads a bounded number of bytes even if more events wait;
 * ht_session_finish() reads them all.
 */
static void test_more(void)
{
    unsigned i, n = HT_FT_LOOK_MAX / 4016 * 5 / 4;
    Test t;

    setup(&t, 256 * MIB);
    begin(&t);
    make_ring(&t, 0, 2 * MIB, 2 * n + 10);
    look(&t);
    events(&t, 0, 1);
    look(&t);
    for (i = 0; i < n; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 1000);
    }
    look(&t);
    g_assert_true(ht_session_more(t.session));
    look(&t);
    g_assert_false(ht_session_more(t.session));
    for (i = 0; i < n; i++) {
        fg_event(&t.g[0], 0, t.ns += 1000, 1000);
    }
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 2 * n + 1);
    g_assert_cmpuint(ht_session_stats(t.session).gaps, ==, 0);
    teardown(&t);
}

static goffset size_of(const Test *t, const char *name)
{
    g_autofree char *path = g_build_filename(t->dir, name, NULL);
    GStatBuf st;

    return g_stat(path, &st) ? 0 : st.st_size;
}

/*
 * If a ring uses up a poll's limit of bytes, the next poll begins with the next
 * ring.  @full: "0" or "1", the number of the ring that has many events
 */
static void test_turns(gconstpointer full)
{
    unsigned i, n = HT_FT_LOOK_MAX / 4016;
    FtGuest *large, *small;
    goffset before;
    Test t;

    setup(&t, 256 * MIB);
    begin(&t);
    large = &t.g[atoi(full)];
    small = &t.g[!atoi(full)];
    for (i = 0; i < 2; i++) {
        t.g[i] = (FtGuest) { .layout = HT_FT_LAYOUT_6_11, .cpus = 2,
                             .nr = &t.g[i] == large ? 3 * n : 16,
                             .subbuf = 4096, .offset = (2 + 120 * i) * MIB };
        fg_init(&t.g[i]);
    }
    for (i = 0; i < 3; i++) {
        look(&t);
        fg_event(large, 0, t.ns += 1000, 3);
        fg_event(small, 1, t.ns += 1000, 3);
    }
    look(&t);
    before = size_of(&t, "cpu1");
    for (i = 0; i < 5 * n / 2; i++) {
        fg_event(large, 0, t.ns += 1000, 1000);
    }
    look(&t);
    fg_event(small, 1, t.ns += 1000, 3);
    look(&t);
    g_assert_true(ht_session_more(t.session));
    g_assert_cmpint(size_of(&t, "cpu1"), >, before);
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 7 + 5 * n / 2);
    g_assert_cmpuint(ht_session_stats(t.session).gaps, ==, 0);
    teardown(&t);
}

/*
 * Promise: of a long line, as only a hostile guest's log has, the first 2 KiB
 * are compared.
 */
static void test_match_long(void)
{
    g_autofree char *text = g_strnfill(60000, 'a');
    HtLogRecord r = { .text = text, .len = 60000 };
    HtMatch *m = ht_match_new("--until", "log:needle", NULL);

    memcpy(text + 2500, "needle", 6);
    ht_match_line(m, &r);
    g_assert_cmpuint(ht_match_count(m), ==, 0);
    memcpy(text + 2000, "needle", 6);
    ht_match_line(m, &r);
    g_assert_cmpuint(ht_match_count(m), ==, 1);
    ht_match_free(m);
}

/*
 * Promise: while a ring has events, the searches for other rings take less than
 * 0.1 % of a processor in a guest of any size. After the last event, a ring
 * elsewhere is still found within 30 s.
 */
static void test_pace(void)
{
    unsigned n = 0, i;
    uint64_t begun;
    Test t;

    for (i = 1; i <= 64; i *= 8) {
        setup(&t, i * 256 * MIB);
        begin(&t);
        make_ring(&t, 0, 2 * MIB, NR);
        find(&t, 0, &n);
        t.cost = 20000;
        begun = clock_ns;
        while (clock_ns - begun < 600 * SECOND) {
            events(&t, 0, 1);
            look(&t);
            clock_ns += SECOND / 4;
        }
        g_test_message("%u MiB: %.3f %%", i * 256,
                       100.0 * t.spent / (clock_ns - begun));
        /* The first search has no pause before it. */
        g_assert_cmpuint(t.spent, <, (clock_ns - begun) / 1000 +
                         4096 * t.cost);
        make_ring(&t, 1, 64 * MIB, NR);
        begun = clock_ns;
        while (!ht_session_stats(t.session).boots ||
               ht_session_stats(t.session).boots == 1) {
            g_assert_cmpuint(clock_ns - begun, <, 30 * SECOND);
            fg_event(&t.g[1], 0, t.ns += 1000, 3);
            look(&t);
            clock_ns += SECOND / 4;
        }
        teardown(&t);
    }
}

/* A recording stops at the size of --max-size and reports it. */
static void test_max(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    unsigned boots[1], n = 0;
    Test t;

    setup(&t, 4 * MIB);
    t.info.max_bytes = MIB;
    begin(&t);
    make_ring(&t, 0, 2 * MIB, NR);
    find(&t, 0, &n);
    while (ht_session_look(t.session, &error)) {
        events(&t, 0, 100);
        g_assert_cmpuint(n++, <, 10000);
    }
    g_assert_nonnull(strstr(error->message, "--max-size, 1 MiB"));
    g_assert_cmpuint(ht_session_stats(t.session).bytes, <=, MIB);
    g_assert_cmpuint(ht_session_stats(t.session).bytes, >, MIB - 8192);
    ht_session_stop(t.session, error->message);
    text = info_text(&t);
    g_assert_nonnull(strstr(text, "\ncut=the recording has the size"));
    g_assert_cmpuint(recorded(&t, boots, 1), >, 10000);
    teardown(&t);
}

/* The format of the events of fg_event(), and that of another event */
#define FORMATS                                                              \
    "system: test\nname: probe\nID: 17\nformat:\n" FG_COMMON_FIELDS          \
    "\tfield:u64 seq;\toffset:8;\tsize:8;\tsigned:0;\n\n"                    \
    "system: test\nname: other\nID: 18\nformat:\n" FG_COMMON_FIELDS          \
    "\tfield:u64 text;\toffset:8;\tsize:8;\tsigned:0;\n\n"

/*
 * Matches of a session with 20 events, numbered from 0; the first poll finds 9
 * in the ring. @count: number of events that match in a guest that was started,
 * and in one that ran before; -1: refused
 */
static const struct {
    const char *text;
    int count, running;
    const char *message;
} matches[] = {
    { "probe", 20, 11, NULL },
    { "test:probe", 20, 11, NULL },
    { "test:*", 20, 11, NULL },
    { "other,probe", 20, 11, NULL },
    { "other", 0, 0, NULL },
    { "probe where seq == 7", 1, 0, NULL },
    { "probe  where\tseq == 13 || seq == 14", 2, 2, NULL },
    { "probe where seq >= 5 && pid == 1000", 15, 11, NULL },
    { "probe where cpu == 1", 0, 0, NULL },
    { "probe where comm ~ \"<*>\"", 20, 11, NULL },
    { "probes", -1, -1, "--until: there is no event or group 'probes'; "
      "did you mean probe?" },
    { "test", 20, 11, NULL },
    { "probe where sek == 7", -1, -1, "--until: none of these events has a "
      "field 'sek'; did you mean seq?" },
    { "probe where text == 7", -1, -1, "none of these events" },
    { "probe when seq == 7", -1, -1, "--until: expected 'where CONDITION' at "
      "'when seq == 7'" },
    { "probe where", -1, -1, "expected 'where CONDITION'" },
    { "probe where ", -1, -1, "expected the name of a field" },
    { "probe where seq ==", -1, -1, "expected a number or a text" },
    { "probe,!other", 20, 11, NULL },
    { "", -1, -1, "--until: give the name of an event" },
    { ",", -1, -1, "--until: give the name of an event" },
    { "!other where seq == 7", -1, -1, "--until: give the name of an event" },
    { "log:probe", 0, 0, NULL },
    { "log:", -1, -1, "--until: give a regular expression after 'log:'" },
    { "log:(", -1, -1, "--until: Error while compiling" },
};

static HtMatch *new_match(const char *text, GError **error)
{
    g_autoptr(HtMatch) m = ht_match_new("--until", text, error);
    HtFtFormats *formats = ht_ft_formats_parse(FORMATS, strlen(FORMATS), NULL);

    g_assert_nonnull(formats);
    if (m && !ht_match_check(m, formats, error)) {
        g_clear_pointer(&m, ht_match_free);
    }
    ht_ft_formats_free(formats);
    return g_steal_pointer(&m);
}

/*
 * An event that matches is counted once.  In a guest that ran before, the
 * events that its ring had before the first poll do not count.
 */
static void test_match(void)
{
    HtKernel kernel = { .formats = (char *)FORMATS,
                        .formats_size = strlen(FORMATS),
                        .kallsyms = (char *)"", .release = (char *)"6.12" };
    unsigned i;

    for (i = 0; i < 2 * G_N_ELEMENTS(matches); i++) {
        g_autoptr(GError) error = NULL;
        HtMatch *m = new_match(matches[i / 2].text, &error);
        Test t;

        g_test_message("%s", matches[i / 2].text);
        if (matches[i / 2].message) {
            g_assert_null(m);
            g_assert_nonnull(strstr(error->message, matches[i / 2].message));
            continue;
        }
        g_assert_no_error(error);
        setup(&t, 4 * MIB);
        t.info.kernel = &kernel;
        t.info.matches[0] = m;
        t.info.running = i % 2;
        begin(&t);
        make_ring(&t, 0, 2 * MIB, 64);
        events(&t, 0, 9);
        look(&t);
        events(&t, 0, 1);
        look(&t);
        events(&t, 0, 10);
        look(&t);
        g_assert_cmpuint(ht_session_stats(t.session).events, ==, 20);
        g_assert_cmpint(ht_match_count(m), ==, i % 2 ? matches[i / 2].running :
                        matches[i / 2].count);
        g_assert_true(!ht_match_count(m) == !ht_match_text(m));
        teardown(&t);
        ht_match_free(m);
    }
}

static HtMatch *begin_running(Test *t)
{
    g_autoptr(GError) error = NULL;
    HtMatch *m = new_match("probe", &error);

    g_assert_no_error(error);
    ht_match_formats(m, FORMATS, strlen(FORMATS));
    setup(t, 8 * MIB);
    t->info.matches[0] = m;
    t->info.running = true;
    begin(t);
    return m;
}

/*
 * In a guest that ran before, the event that shows that a ring is in use
 * matches. The earlier events of its ring do not match, and neither do those of
 * another ring in the memory.
 */
static void test_match_first(void)
{
    HtMatch *m;
    unsigned i;
    Test t;

    m = begin_running(&t);
    for (i = 0; i < 2; i++) {
        make_ring(&t, i, (i + 1) * 2 * MIB, 64);
        events(&t, i, 9);
    }
    look(&t);
    for (i = 0; i < 2; i++) {
        events(&t, i, 1);
        look(&t);
        g_assert_cmpuint(ht_session_stats(t.session).events, ==, 10 * (i + 1));
        g_assert_cmpuint(ht_match_count(m), ==, i + 1);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 2);
    teardown(&t);
    ht_match_free(m);
}

/* After a reset, all events of the next boot's ring match. */
static void test_match_boot(void)
{
    unsigned n = 0;
    HtMatch *m;
    Test t;

    m = begin_running(&t);
    make_ring(&t, 0, 2 * MIB, 64);
    events(&t, 0, 1);
    look(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 0);
    t.ns += 2 * SECOND;
    events(&t, 0, 1);
    look(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 1);
    fg_put32(&t.g[0], 2 * MIB, 0);
    make_ring(&t, 1, 4 * MIB, 64);
    t.ns = 1000;
    find(&t, 1, &n);
    g_assert_cmpuint(ht_match_count(m), ==, 1 + n);
    teardown(&t);
    ht_match_free(m);
}

/* Events that come before the formats of events are counted as skipped. */
static void test_match_skipped(void)
{
    HtMatch *m = new_match("probe", NULL);
    unsigned n = 0;
    Test t;

    setup(&t, 4 * MIB);
    t.info.matches[0] = m;
    begin(&t);
    make_ring(&t, 0, 2 * MIB, 64);
    find(&t, 0, &n);
    ht_match_formats(m, FORMATS, strlen(FORMATS));
    events(&t, 0, 3);
    look(&t);
    g_assert_cmpuint(ht_match_skipped(m), ==, n);
    g_assert_cmpuint(ht_match_count(m), ==, 3);
    teardown(&t);
    ht_match_free(m);
}

/* A ring that is not at a multiple of 2 MiB is found by a slower search. */
static void test_anywhere(void)
{
    unsigned written = 0;
    Test t;

    setup(&t, 64 * MIB);
    begin(&t);
    make_ring(&t, 0, 33 * MIB + 4096, 64);
    find(&t, 0, &written);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, written);
    teardown(&t);
}

/*
 * A ring that is not at a multiple of 2 MiB is found by the last poll if no
 * earlier poll has found it.
 */
static void test_anywhere_last(void)
{
    Test t;

    setup(&t, 64 * MIB);
    begin(&t);
    make_ring(&t, 0, 33 * MIB + 4096, NR);
    events(&t, 0, 7);
    look(&t);
    g_assert_false(ht_session_stats(t.session).found);
    g_assert_true(ht_session_finish(t.session, "the end", NULL));
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 7);
    teardown(&t);
}

/*
 * A ring at any address is found at once if the user gave its physical
 * address. The ring's offset in the memory is @less GiB below that address.
 */
static void test_where_said(gconstpointer less)
{
    Test t;

    setup(&t, 64 * MIB);
    t.info.ring_at = 33 * MIB + 4096 + (GPOINTER_TO_SIZE(less) << 30);
    begin(&t);
    make_ring(&t, 0, 33 * MIB + 4096, NR);
    look(&t);
    events(&t, 0, 1);
    look(&t);
    g_assert_cmpuint(ht_session_stats(t.session).events, ==, 1);
    teardown(&t);
}

/*
 * Poll until the session reads a kernel's log; if !@there, until it reads none.
 */
static void look_for_kernel(Test *t, bool there)
{
    unsigned i;

    for (i = 0; i < 1000; i++) {
        look(t);
        if (!ht_session_stats(t->session).kernel_boot == !there) {
            return;
        }
    }
    g_assert_not_reached();
}

/* Set up a session for 64 MiB of RAM with a kernel at @phys. */
static void setup_kernel(Test *t, KmKernel *kernel, uint8_t *ram,
                         uint64_t phys)
{
    setup(t, 64 * MIB);
    t->mem = (HtFtMem) { .size = 64 * MIB, .map = ram };
    km_kernel(kernel, 24, true);
    km_place(kernel, ram, 64 * MIB, phys, 0, 1000);
    km_print(ram + phys, 1, "Linux version 6.12.0-test");
    t->info.image = kernel->image;
}

/*
 * A guest reboots at once after a panic, so that no poll comes between them.
 * The rest of the dead kernel's log still shows the panic, also after the
 * search found the next kernel.
 */
static void test_panic_between_polls(void)
{
    const uint64_t first = 8 * MIB, second = 24 * MIB;
    g_autofree uint8_t *ram = g_malloc0(64 * MIB);
    HtKernelLogHint hint;
    KmKernel kernel;
    unsigned i;
    Test t;

    setup_kernel(&t, &kernel, ram, first);
    begin(&t);
    look_for_kernel(&t, true);
    g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 1);

    /* A recorder that waits between polls notices a new line. */
    g_assert_true(ht_session_log_hint(t.session, &hint));
    g_assert_false(ht_kernel_log_grew(&hint));
    km_print(ram + first, 2, "sysrq: Trigger a crash");
    g_assert_true(ht_kernel_log_grew(&hint));
    look(&t);
    g_assert_true(ht_session_log_hint(t.session, &hint));
    g_assert_false(ht_kernel_log_grew(&hint));
    for (i = 0; i < 12; i++) {
        km_print(ram + first, 2 + i, "RIP: 0010:sysrq_handle_crash+0x16/0x20");
    }
    km_print(ram + first, 77, "Kernel panic - not syncing: sysrq");
    km_place(&kernel, ram, 64 * MIB, second, 2 * MIB, 1010);
    km_print(ram + second, 1, "Linux version 6.12.0-test");
    memset(ram + first + KM_SYSCALLS, 0, 8);
    look_for_kernel(&t, false);
    g_assert_cmpuint(ht_session_stats(t.session).panic_boot, ==, 1);
    look_for_kernel(&t, true);
    g_assert_cmpuint(ht_session_stats(t.session).panic_boot, ==, 1);
    g_assert_cmpuint(ht_session_stats(t.session).kernel_boot, ==, 2);
    g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 16);
    teardown(&t);
    km_kernel_free(&kernel);
}

/*
 * Matches in a kernel's log. @count: number of lines that match in a guest that
 * was started; @running: in one that ran before the first poll, whose earlier
 * lines do not count
 */
static const struct {
    const char *text;
    unsigned count, running;
    const char *found;
} lines[] = {
    { "log:^Linux version", 2, 1, "'Linux version 6.12.0-test' at " },
    { "log:crash$", 1, 1, "'sysrq:\\x1b crash' at " },
    { "log:^crash", 0, 0, NULL },
    { "log:sysrq|version", 3, 2, NULL },
    { "log:\x1b", 1, 1, "'sysrq:\\x1b crash' at " },
    { "probe", 0, 0, NULL },
};

/* A line of the log that matches is counted once, in each boot. */
static void test_match_line(void)
{
    const uint64_t first = 8 * MIB, second = 24 * MIB;
    unsigned i;

    for (i = 0; i < 2 * G_N_ELEMENTS(lines); i++) {
        g_autofree uint8_t *ram = g_malloc0(64 * MIB);
        HtMatch *m = new_match(lines[i / 2].text, NULL);
        unsigned n = i % 2 ? lines[i / 2].running : lines[i / 2].count;
        KmKernel kernel;
        Test t;

        g_test_message("%s, running: %u", lines[i / 2].text, i % 2);
        g_assert_nonnull(m);
        setup_kernel(&t, &kernel, ram, first);
        t.info.matches[1] = m;
        t.info.running = i % 2;
        begin(&t);
        look_for_kernel(&t, true);
        km_print(ram + first, 2, "sysrq:\033 crash");
        look(&t);
        km_place(&kernel, ram, 64 * MIB, second, 2 * MIB, 1010);
        km_print(ram + second, 1, "Linux version 6.12.0-test");
        memset(ram + first + KM_SYSCALLS, 0, 8);
        look_for_kernel(&t, false);
        look_for_kernel(&t, true);
        g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 3);
        g_assert_cmpuint(ht_match_count(m), ==, n);
        g_assert_true(!n == !ht_match_text(m));
        if (n && lines[i / 2].found) {
            g_assert_true(g_str_has_prefix(ht_match_text(m),
                                           lines[i / 2].found));
        }
        teardown(&t);
        km_kernel_free(&kernel);
        ht_match_free(m);
    }
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
    g_test_add_func("/session/match", test_match);
    g_test_add_func("/session/match-first", test_match_first);
    g_test_add_func("/session/match-boot", test_match_boot);
    g_test_add_func("/session/match-skipped", test_match_skipped);
    g_test_add_func("/session/match-line", test_match_line);
    g_test_add_func("/session/match-long", test_match_long);
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
