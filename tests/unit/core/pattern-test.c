/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the selection of events by patterns of their names
 */
#include "hypertrace/pattern.h"

static void check(const char *list, const char *name, bool wanted)
{
    g_autofree char *why = NULL;
    HtPatterns *p = ht_patterns_new(list, &why);

    g_assert_null(why);
    g_assert_nonnull(p);
    if (ht_patterns_match(p, name) != wanted) {
        g_error("'%s' %s '%s'", list, wanted ? "leaves out" : "has", name);
    }
    ht_patterns_free(p);
}

static void test_match(void)
{
    check("*", "a", true);
    check("a", "a", true);
    check("a", "ab", false);
    check("ab", "a", false);
    check("a*", "a", true);
    check("?", "a", true);
    check("?", "ab", false);
    check("a?c", "abc", true);
    check("*.v2", "open.v2", true);
    check("*.v2", "open.v2.v3", false);
    check("*a*b", "xaxbxab", true);
    check("*a*b", "xaxbxabc", false);
    check("**", "x", true);
    check("sched_*", "sched_switch", true);
    check("sched_*", "sched", false);
    g_assert_true(ht_patterns_match(NULL, "any"));
}

/*
 * The last pattern that matches decides. If none matches, the name is selected
 * only if the first pattern begins with '!'.
 */
static void test_lists(void)
{
    check("sched_*,!sched_wakeup", "sched_switch", true);
    check("sched_*,!sched_wakeup", "sched_wakeup", false);
    check("sched_*,!sched_wakeup", "irq", false);
    check("sched_*:irq", "irq", true);
    check("!sched_*", "irq", true);
    check("!sched_*", "sched_switch", false);
    check("!*,irq", "irq", true);
    check("!*,irq", "sched_switch", false);
    check("!a,a", "a", true);
    check("!*", "a", false);
}

static void test_refused(void)
{
    static const char *const lists[] = {
        "", ",", "a,", ",a", "a,,b", "!", "a,!", "!!a", "a b", "a/b", "[a]",
        "a\n", "\xc3\xa4", "a!b",
    };
    g_autofree char *text = g_strnfill(HT_PATTERNS_MAX + 1, 'a');
    unsigned i;
    char *why;

    for (i = 0; i < G_N_ELEMENTS(lists); i++) {
        why = NULL;
        g_assert_null(ht_patterns_new(lists[i], &why));
        g_assert_nonnull(why);
        g_free(why);
    }
    why = NULL;
    g_assert_null(ht_patterns_new(text, &why));
    g_assert_nonnull(strstr(why, "65536"));
    g_free(why);
    text[HT_PATTERNS_MAX] = '\0';
    check(text, "a", false);
}

/*
 * Promise: the time of a match is at most proportional to the product of the
 * lengths of pattern and name. The test does not measure the time: a search in
 * exponential time would not end before the test's timeout.
 */
static void test_hostile(void)
{
    g_autofree char *name = g_strnfill(127, 'a');
    GString *list = g_string_new(NULL);
    unsigned i;

    for (i = 0; i < 64; i++) {
        g_string_append(list, "*a");
    }
    g_string_append(list, "*b");
    check(list->str, name, false);
    g_string_free(list, true);
}

/*
 * Promise: '?' stands for a character in UTF-8, not for a byte, and a name that
 * is not valid UTF-8 is not read beyond its end. Each name has an allocation of
 * its exact size, so that a sanitizer detects a read beyond the name.
 */
static void test_bytes(void)
{
    static const struct {
        const char *pattern, *name;
        bool match;
    } rows[] = {
        { "na?ve", "na\xc3\xafve", true },
        { "na??ve", "na\xc3\xafve", false },
        { "*\xaf*", "na\xc3\xafve", true },
        { "?", "\xf0", true },
        { "?", "\xf0\x90", true },
        { "??", "\xff\xfe", true },
        { "*?z", "\xf0", false },
        { "*?a?b*zz", "a\xf0", false },
        { "*?", "", false },
        { "a?", "a\x80", true },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup(rows[i].name);

        g_assert_cmpint(ht_pattern_match(rows[i].pattern, name), ==,
                        rows[i].match);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/core/pattern/match", test_match);
    g_test_add_func("/core/pattern/lists", test_lists);
    g_test_add_func("/core/pattern/refused", test_refused);
    g_test_add_func("/core/pattern/hostile", test_hostile);
    g_test_add_func("/core/pattern/bytes", test_bytes);
    return g_test_run();
}
