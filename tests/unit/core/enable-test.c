/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test when HtEnable asks the sinks which classes they want, in virtual time
 */
#include "hypertrace/base.h"
#include "hypertrace/enable.h"
#include "core-testlib.h"

typedef struct Fixture {
    HtClassTable *classes;
    HtEnable *e;
    /* the sink wants all classes except this id */
    uint32_t unwanted;
    bool byte[4];               /* enable bytes by class id */
    uint32_t seq;
    int64_t now_ms;
    int64_t next_ms;
} Fixture;

static bool wants(void *opaque, const HtClass *c)
{
    return c->id != ((Fixture *)opaque)->unwanted;
}

static void write_byte(void *opaque, const HtClass *c, bool on)
{
    ((Fixture *)opaque)->byte[c->id] = on;
}

static void changed(void *opaque, uint32_t seq)
{
    Fixture *f = opaque;

    g_assert_cmpuint(seq, ==, f->seq + 1);
    f->seq = seq;
}

static void add(Fixture *f, const char *name)
{
    CtMessage m;

    ct_class(&m, name);
    /* The next poll is at most HT_ENABLE_OFF_MS after a class was added. */
    ht_enable_register(f->e, ht_class_table_get(f->classes,
                                                ct_register(f->classes, &m)));
    f->next_ms = MIN(f->next_ms, f->now_ms + HT_ENABLE_OFF_MS);
}

/* Let @ms pass, and return the number of polls in this time. */
static unsigned pass(Fixture *f, int64_t ms)
{
    int64_t end = f->now_ms + ms;
    unsigned n = 0;

    for (; f->next_ms <= end; n++) {
        f->now_ms = f->next_ms;
        f->next_ms = ht_enable_poll(f->e, f->now_ms);
        g_assert_cmpint(f->next_ms, >, f->now_ms);
    }
    f->now_ms = end;
    return n;
}

static void setup(Fixture *f)
{
    const HtEnableConfig cfg = {
        .classes = f->classes = ht_class_table_new(),
        .wants = wants,
        .write = write_byte,
        .changed = changed,
        .opaque = f,
    };

    f->e = g_new0(HtEnable, 1);
    f->next_ms = INT64_MAX;
    ht_enable_init(f->e, &cfg);
    add(f, "a");
    add(f, "b");
}

static void teardown(Fixture *f)
{
    ht_enable_destroy(f->e);
    g_free(f->e);
    ht_class_table_free(f->classes);
}

/*
 * Promise: a class that the patterns select is switched on within
 * HT_ENABLE_OFF_MS after a sink wants the class. Polls are HT_ENABLE_ON_MS
 * apart while all selected classes are on and nothing has changed for
 * HT_ENABLE_QUICK_MS. A class that the patterns leave out does not make polls
 * more frequent.
 */
static void test_poll(void)
{
    Fixture f = { 0 };

    setup(&f);
    pass(&f, HT_ENABLE_QUICK_MS + HT_ENABLE_ON_MS);
    g_assert_cmpuint(pass(&f, 60000), <=, 60000 / HT_ENABLE_ON_MS);

    f.unwanted = 2;
    pass(&f, HT_ENABLE_ON_MS);
    g_assert_false(f.byte[2]);
    g_assert_cmpuint(pass(&f, 60000), ==, 60000 / HT_ENABLE_OFF_MS);
    f.unwanted = 0;
    pass(&f, HT_ENABLE_OFF_MS);
    g_assert_true(f.byte[2]);

    /*
     * a class was just switched on: the next change is also seen within
     * HT_ENABLE_OFF_MS
     */
    f.unwanted = 1;
    pass(&f, HT_ENABLE_OFF_MS);
    g_assert_false(f.byte[1]);
    f.unwanted = 0;
    pass(&f, HT_ENABLE_QUICK_MS + HT_ENABLE_ON_MS);

    /*
     * a class was just added: the next change is also seen within
     * HT_ENABLE_OFF_MS
     */
    add(&f, "c");
    pass(&f, 2 * HT_ENABLE_OFF_MS);
    f.unwanted = 3;
    pass(&f, HT_ENABLE_OFF_MS);
    g_assert_false(f.byte[3]);

    g_assert_true(ht_enable_set_events(f.e, "a,b", NULL));
    pass(&f, HT_ENABLE_QUICK_MS + HT_ENABLE_ON_MS);
    g_assert_cmpuint(pass(&f, 60000), <=, 60000 / HT_ENABLE_ON_MS);
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/enable/poll", test_poll);
    return g_test_run();
}
