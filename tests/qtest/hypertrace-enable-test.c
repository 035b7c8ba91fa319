/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the enable bytes of classes, and the settings, as a guest
 * reads them
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define PROPS "packet-size=4096,packets=4,streams=3"

static QHt *boot(const void *channel, const char *more)
{
    g_autofree char *all = g_strdup_printf("channel=%s," PROPS "%s",
                                           (const char *)channel, more);

    return qht_boot("pc", "log", all, NULL);
}

static bool try_set(QHt *h, const char *property, const char *value)
{
    QDict *rsp = qtest_qmp(h->qts, "{'execute': 'qom-set', 'arguments':"
                           " {'path': %s, 'property': %s, 'value': %s}}",
                           h->path, property, value);
    bool ok = qdict_haskey(rsp, "return");

    qobject_unref(rsp);
    return ok;
}

static bool try_set_events(QHt *h, const char *events)
{
    return try_set(h, "events", events);
}

static void set_events(QHt *h, const char *events)
{
    g_assert_true(try_set_events(h, events));
}

static void assert_events(QHt *h, const char *events)
{
    QDict *rsp = qtest_qmp(h->qts, "{'execute': 'qom-get', 'arguments':"
                           " {'path': %s, 'property': 'events'}}", h->path);

    g_assert_cmpstr(qdict_get_str(rsp, "return"), ==, events);
    qobject_unref(rsp);
}

/*
 * Register a class, and check that the byte `on` in the reply and the class's
 * enable byte are @on; returns the class's id
 */
static uint32_t add(QHt *h, const char *name, uint8_t on)
{
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    size_t size = qht_class_message(m, name);

    g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m, size), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(m->on, ==, on);
    g_assert_cmpuint(qht_enabled(h, ldl_le_p(&m->id)), ==, on);
    return ldl_le_p(&m->id);
}

/* A class is on from its registration if the property events matches it. */
static void test_register(const void *channel)
{
    QHt *h = boot(channel, ",events=a*:!ab");
    uint32_t generation = qht_enable_seq(h);

    assert_events(h, "a*:!ab");
    g_assert_cmpuint(qht_enabled(h, 1), ==, 0);
    g_assert_cmpuint(add(h, "a", 1), ==, 1);
    add(h, "ab", 0);
    add(h, "b", 0);
    add(h, "abc", 1);
    add(h, "ab", 0);
    /*
     * A registration does not change enable_seq, because the reply has the
     * class's enable byte.
     */
    g_assert_cmpuint(qht_enable_seq(h), ==, generation);
    if (!h->control) {
        g_assert_cmpuint(h->caps.enable_offset % HT_ENABLE_SIZE, ==, 0);
        g_assert_cmpuint(h->caps.enable_offset + HT_ENABLE_SIZE, <=,
                         h->caps.ring_offset);
    } else {
        g_assert_cmpuint(h->caps.enable_offset, ==, 0);
    }
    qht_quit(h);
}

/*
 * The property "events" can be set while the guest runs; a list with a syntax
 * error is refused and has no effect.
 */
static void test_property(const void *channel)
{
    QHt *h = boot(channel, "");
    uint32_t a = add(h, "a", 1), b = add(h, "b", 1), generation;

    assert_events(h, "*");
    generation = qht_enable_seq(h);
    set_events(h, "!a");
    g_assert_cmpuint(qht_enabled(h, a), ==, 0);
    g_assert_cmpuint(qht_enabled(h, b), ==, 1);
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);

    generation = qht_enable_seq(h);
    g_assert_false(try_set_events(h, "a b"));
    g_assert_false(try_set_events(h, ""));
    assert_events(h, "!a");
    set_events(h, "!a,a,!a");
    g_assert_cmpuint(qht_enabled(h, a), ==, 0);
    g_assert_cmpuint(qht_enable_seq(h), ==, generation);

    set_events(h, "!*");
    g_assert_cmpuint(qht_enabled(h, b), ==, 0);
    add(h, "c", 0);
    set_events(h, "*");
    g_assert_cmpuint(qht_enabled(h, a), ==, 1);
    g_assert_cmpuint(qht_enabled(h, b), ==, 1);
    add(h, "c", 1);
    qht_quit(h);
}

/* The host does not filter: it consumes events of a class that is off. */
static void test_emit(const void *channel)
{
    QHt *h = boot(channel, ",events=!*");
    uint32_t id = add(h, "number", 0);
    QHtStream s;

    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    qht_commit(&s);
    qht_stream_close(&s);
    qht_settle(h);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 1);
    qht_quit(h);
}

static void test_message(const void *channel)
{
    QHt *h = boot(channel, ",events=!b");
    g_autofree struct ht_msg_enabled *m = g_malloc0(HT_MESSAGE_MAX);
    const uint32_t most = HT_MESSAGE_MAX - sizeof(*m);
    uint8_t on[HT_MESSAGE_MAX];

    g_assert_cmpuint(qht_read_enabled(h, 0, 8, on), ==, 1);
    g_assert_cmpuint(on[0], ==, 0);
    add(h, "a", 1);
    add(h, "b", 0);
    add(h, "c", 1);
    g_assert_cmpuint(qht_read_enabled(h, 0, most, on), ==, 4);
    g_assert_cmpmem(on, 4, "\0\1\0\1", 4);
    g_assert_cmpuint(qht_read_enabled(h, 2, 2, on), ==, 2);
    g_assert_cmpmem(on, 2, "\0\1", 2);
    g_assert_cmpuint(qht_read_enabled(h, 3, 0, on), ==, 0);
    g_assert_cmpuint(qht_read_enabled(h, 4, 1, on), ==, 0);
    g_assert_cmpuint(qht_read_enabled(h, UINT32_MAX, 1, on), ==, 0);

    stl_le_p(&m->count, 2);
    g_assert_cmpuint(qht_call(h, HT_MSG_ENABLED, m, sizeof(*m) + 1), ==,
                     HT_STATUS_INVAL);
    stl_le_p(&m->count, UINT32_MAX);
    g_assert_cmpuint(qht_call(h, HT_MSG_ENABLED, m, sizeof(*m) - 1), ==,
                     HT_STATUS_INVAL);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 2);
    qht_quit(h);
}

/* Check that a SETTINGS message gets @text as the reply */
static void assert_settings(QHt *h, const char *text)
{
    g_autofree struct ht_msg_settings *m = g_malloc0(HT_MESSAGE_MAX);

    stl_le_p(&m->count, HT_SETTINGS_MAX);
    g_assert_cmpuint(qht_call(h, HT_MSG_SETTINGS, m,
                              sizeof(*m) + HT_SETTINGS_MAX), ==,
                     HT_STATUS_OK);
    g_assert_cmpmem(m->text, ldl_le_p(&m->count), text, strlen(text));
    g_assert_cmpuint(ldl_le_p(&m->h.size), ==, sizeof(*m) + strlen(text));
    g_assert_cmpuint(ldl_le_p(&m->seq), ==, qht_enable_seq(h));
}

static void test_settings(const void *channel)
{
    QHt *h = boot(channel, ",settings=a.b=x,,y");
    g_autofree char *longest = g_strnfill(HT_SETTINGS_MAX, 'x');
    g_autofree char *longer = g_strnfill(HT_SETTINGS_MAX + 1, 'x');
    g_autofree struct ht_msg_settings *m = g_malloc0(HT_MESSAGE_MAX);
    uint32_t generation = qht_enable_seq(h);

    assert_settings(h, "a.b=x,y");
    g_assert_true(try_set(h, "settings", "a.b=x c="));
    assert_settings(h, "a.b=x c=");
    longest[1] = longer[1] = '=';
    g_assert_true(try_set(h, "settings", longest));
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);
    generation = qht_enable_seq(h);
    g_assert_false(try_set(h, "settings", longer));
    g_assert_false(try_set(h, "settings", "a"));
    g_assert_false(try_set(h, "settings", "=b"));
    g_assert_false(try_set(h, "settings", "a=b "));
    g_assert_false(try_set(h, "settings", "a=b  c=d"));
    g_assert_false(try_set(h, "settings", "a=\n"));
    g_assert_false(try_set(h, "settings", "a=\303\244"));
    g_assert_false(try_set(h, "settings", "a/b=c"));
    g_assert_cmpuint(qht_enable_seq(h), ==, generation);
    assert_settings(h, longest);

    /*
     * The device refuses a SETTINGS message with room for less than
     * HT_SETTINGS_MAX bytes, one with a count that is not the size of its room,
     * and one that is too short.
     */
    stl_le_p(&m->count, HT_SETTINGS_MAX - 1);
    g_assert_cmpuint(qht_call(h, HT_MSG_SETTINGS, m,
                              sizeof(*m) + HT_SETTINGS_MAX - 1), ==,
                     HT_STATUS_INVAL);
    stl_le_p(&m->count, HT_SETTINGS_MAX + 1);
    g_assert_cmpuint(qht_call(h, HT_MSG_SETTINGS, m,
                              sizeof(*m) + HT_SETTINGS_MAX), ==,
                     HT_STATUS_INVAL);
    stl_le_p(&m->count, UINT32_MAX);
    g_assert_cmpuint(qht_call(h, HT_MSG_SETTINGS, m, sizeof(*m) - 1), ==,
                     HT_STATUS_INVAL);

    g_assert_true(try_set(h, "settings", ""));
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);
    assert_settings(h, "");

    /*
     * A reset changes enable_seq, so that the driver reads the settings again.
     */
    generation = qht_enable_seq(h);
    qtest_system_reset(h->qts);
    qht_restart(h);
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);
    assert_settings(h, "");
    qht_quit(h);
}

static void scribble(QHt *h)
{
    uint8_t junk[256];

    memset(junk, 0xa5, sizeof(junk));
    qpci_memwrite(h->pci->pdev, h->ring, h->caps.enable_offset, junk,
                  sizeof(junk));
}

/* hypercall, shm: a guest may overwrite enable bytes; a reset restores them. */
static void test_reset(const void *channel)
{
    QHt *h = boot(channel, ",events=!b");
    uint32_t a = add(h, "a", 1), b = add(h, "b", 0);

    if (!h->control) {
        scribble(h);
        add(h, "c", 1);
        g_assert_cmphex(qht_enabled(h, a), ==, 0xa5);
    }
    qtest_system_reset(h->qts);
    qht_restart(h);
    g_assert_cmpuint(qht_enabled(h, a), ==, 1);
    g_assert_cmpuint(qht_enabled(h, b), ==, 0);
    g_assert_cmpuint(qht_enabled(h, 200), ==, 0);
    add(h, "a", 1);
    qht_quit(h);
}

/*
 * If the property "events" is changed while the VM is stopped, the guest sees
 * the change when the VM continues.
 */
static void test_stop(const void *channel)
{
    QHt *h = boot(channel, "");
    uint32_t a = add(h, "a", 1);
    uint32_t generation = qht_enable_seq(h);

    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    qtest_qmp_eventwait(h->qts, "STOP");
    set_events(h, "!*");
    if (!h->control) {
        /* While the VM is stopped, the device must not write guest memory. */
        g_assert_cmpuint(qht_enabled(h, a), ==, 1);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(h->qts, "RESUME");
    g_assert_cmpuint(qht_enabled(h, a), ==, 0);
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);
    qht_quit(h);
}

/* After a migration, the property "events" of the target applies. */
static void test_migrate(const void *channel)
{
    g_autofree char *there = g_strdup_printf("channel=%s," PROPS ",events=!a",
                                             (const char *)channel);
    QHt *h = boot(channel, ",events=!b");
    uint32_t a = add(h, "a", 1), b = add(h, "b", 0), generation;
    QHtTarget *t = qht_target("pc", "log", there, NULL);

    generation = qht_enable_seq(h);
    if (!h->control) {
        scribble(h);
    }
    qht_migrate(h, t);
    qht_unlink(qht_move(h, t, true));
    qht_target_free(t);
    g_assert_cmpuint(qht_enabled(h, a), ==, 0);
    g_assert_cmpuint(qht_enabled(h, b), ==, 1);
    g_assert_cmpuint(qht_enabled(h, 200), ==, 0);
    g_assert_cmpuint(qht_enable_seq(h), !=, generation);
    qht_quit(h);
}

/* While BAR4 is not decoded, an enable byte does not read as HT_ENABLE_ON. */
static void test_no_bar(const void *channel)
{
    QHt *h = boot(channel, "");
    QPCIDevice *pdev = h->pci->pdev;
    uint32_t a = add(h, "a", 1);
    uint16_t command = qpci_config_readw(pdev, PCI_COMMAND);

    qpci_config_writew(pdev, PCI_COMMAND, command & ~PCI_COMMAND_MEMORY);
    g_assert_cmpuint(qht_enabled(h, a), !=, HT_ENABLE_ON);
    qpci_config_writew(pdev, PCI_COMMAND, command);
    g_assert_cmpuint(qht_enabled(h, a), ==, HT_ENABLE_ON);
    qht_quit(h);
}

static void test_refused(const void *channel)
{
    QHt *h = boot(channel, "");
    QDict *rsp = qtest_qmp(h->qts, "{'execute': 'device_add', 'arguments':"
                           " {'driver': 'hypertrace', 'id': 'x', 'events': '!',"
                           "  'backend': 'be'}}");
    const char *desc = qdict_get_str(qdict_get_qdict(rsp, "error"), "desc");

    g_assert_nonnull(strstr(desc, "is not a pattern"));
    qobject_unref(rsp);
    qht_quit(h);
}

static const QHtTest tests[] = {
    { "register", test_register, QHT_CHANNELS },
    { "property", test_property, QHT_CHANNELS },
    { "emit", test_emit, QHT_SHM },
    { "message", test_message, QHT_CHANNELS },
    { "settings", test_settings, QHT_CHANNELS },
    { "reset", test_reset, QHT_CHANNELS },
    { "stop", test_stop, QHT_CHANNELS },
    { "migrate", test_migrate, QHT_CHANNELS },
    { "no-bar", test_no_bar, QHT_RINGS },
    { "refused", test_refused, QHT_SHM },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qht_add_tests("enable", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
