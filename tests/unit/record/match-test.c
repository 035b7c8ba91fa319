/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: events and lines of the log that match --until, --match
 */
#include "hypertrace/base.h"
#include "session-fixture.h"

#define FORMATS                                                              \
    "system: test\nname: probe\nID: 17\nformat:\n" FG_COMMON_FIELDS          \
    "\tfield:u64 seq;\toffset:8;\tsize:8;\tsigned:0;\n\n"                    \
    "system: test\nname: other\nID: 18\nformat:\n" FG_COMMON_FIELDS          \
    "\tfield:u64 text;\toffset:8;\tsize:8;\tsigned:0;\n\n"

/*
 * A session has 20 events, numbered from 0; the first poll finds 9 of them in
 * the ring. @count: number of events that match if the recorder started the
 * guest; @running: if the guest ran before the recorder; -1 in both: the text
 * is refused with @message
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
 * An event that matches is counted once.  In a guest that ran before the
 * recorder, the events that the first poll finds in the ring do not count.
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
        st_setup(&t, 4 * MIB);
        t.info.kernel = &kernel;
        t.info.matches[0] = m;
        t.info.running = i % 2;
        st_begin(&t);
        st_make_ring(&t, 0, 2 * MIB, 64);
        st_events(&t, 0, 9);
        st_look(&t);
        st_events(&t, 0, 1);
        st_look(&t);
        st_events(&t, 0, 10);
        st_look(&t);
        g_assert_cmpuint(ht_session_stats(t.session).events, ==, 20);
        g_assert_cmpint(ht_match_count(m), ==, i % 2 ? matches[i / 2].running :
                        matches[i / 2].count);
        g_assert_true(!ht_match_count(m) == !ht_match_text(m));
        st_teardown(&t);
        ht_match_free(m);
    }
}

static HtMatch *begin_running(Test *t)
{
    g_autoptr(GError) error = NULL;
    HtMatch *m = new_match("probe", &error);

    g_assert_no_error(error);
    ht_match_formats(m, FORMATS, strlen(FORMATS));
    st_setup(t, 8 * MIB);
    t->info.matches[0] = m;
    t->info.running = true;
    st_begin(t);
    return m;
}

/*
 * In a guest that ran before the recorder, the first new event in a ring shows
 * that the ring is in use. This event counts as a match; the events that the
 * first poll found in this ring, and in another ring, do not count.
 */
static void test_match_first(void)
{
    HtMatch *m;
    unsigned i;
    Test t;

    m = begin_running(&t);
    for (i = 0; i < 2; i++) {
        st_make_ring(&t, i, (i + 1) * 2 * MIB, 64);
        st_events(&t, i, 9);
    }
    st_look(&t);
    for (i = 0; i < 2; i++) {
        st_events(&t, i, 1);
        st_look(&t);
        g_assert_cmpuint(ht_session_stats(t.session).events, ==, 10 * (i + 1));
        g_assert_cmpuint(ht_match_count(m), ==, i + 1);
    }
    g_assert_cmpuint(ht_session_stats(t.session).boots, ==, 2);
    st_teardown(&t);
    ht_match_free(m);
}

/* After a reset, all events of the next boot's ring are compared. */
static void test_match_boot(void)
{
    unsigned n = 0;
    HtMatch *m;
    Test t;

    m = begin_running(&t);
    st_make_ring(&t, 0, 2 * MIB, 64);
    st_events(&t, 0, 1);
    st_look(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 0);
    t.ns += 2 * SECOND;
    st_events(&t, 0, 1);
    st_look(&t);
    g_assert_cmpuint(ht_match_count(m), ==, 1);
    fg_put32(&t.g[0], 2 * MIB, 0);
    st_make_ring(&t, 1, 4 * MIB, 64);
    t.ns = 1000;
    st_find(&t, 1, &n);
    g_assert_cmpuint(ht_match_count(m), ==, 1 + n);
    st_teardown(&t);
    ht_match_free(m);
}

/* Events that a session reads before it has their formats count as skipped. */
static void test_match_skipped(void)
{
    HtMatch *m = new_match("probe", NULL);
    unsigned n = 0;
    Test t;

    st_setup(&t, 4 * MIB);
    t.info.matches[0] = m;
    st_begin(&t);
    st_make_ring(&t, 0, 2 * MIB, 64);
    st_find(&t, 0, &n);
    ht_match_formats(m, FORMATS, strlen(FORMATS));
    st_events(&t, 0, 3);
    st_look(&t);
    g_assert_cmpuint(ht_match_skipped(m), ==, n);
    g_assert_cmpuint(ht_match_count(m), ==, 3);
    st_teardown(&t);
    ht_match_free(m);
}

/*
 * Lines of a kernel's log that match. @count: their number if the recorder
 * started the guest; @running: if the guest ran before the recorder, so that
 * the lines that the first poll finds do not count
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

/* Lines of two boots that match are counted as the table says. */
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
        st_setup_kernel(&t, &kernel, ram, first);
        t.info.matches[1] = m;
        t.info.running = i % 2;
        st_begin(&t);
        st_look_for_kernel(&t, true);
        km_print(ram + first, 2, "sysrq:\033 crash");
        st_look(&t);
        km_place(&kernel, ram, 64 * MIB, second, 2 * MIB, 1010);
        km_print(ram + second, 1, "Linux version 6.12.0-test");
        memset(ram + first + KM_SYSCALLS, 0, 8);
        st_look_for_kernel(&t, false);
        st_look_for_kernel(&t, true);
        g_assert_cmpuint(ht_session_stats(t.session).logged, ==, 3);
        g_assert_cmpuint(ht_match_count(m), ==, n);
        g_assert_true(!n == !ht_match_text(m));
        if (n && lines[i / 2].found) {
            g_assert_true(g_str_has_prefix(ht_match_text(m),
                                           lines[i / 2].found));
        }
        st_teardown(&t);
        km_kernel_free(&kernel);
        ht_match_free(m);
    }
}

/*
 * Promise: of a longer line, as a hostile guest's log may have, only the first
 * 2 KiB are compared.
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/match/events", test_match);
    g_test_add_func("/match/first", test_match_first);
    g_test_add_func("/match/boot", test_match_boot);
    g_test_add_func("/match/skipped", test_match_skipped);
    g_test_add_func("/match/line", test_match_line);
    g_test_add_func("/match/long", test_match_long);
    return g_test_run();
}
