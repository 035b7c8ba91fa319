/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: ht_wanted() of classes that the host switches on and off
 */
#include "hypertrace/base.h"
#include "loopback.h"

#define CLASSES 300

static void ignore(void *opaque, const HtRun *run)
{
    (void)opaque;
    (void)run;
}

static struct ht_loopback *make(uint32_t channel)
{
    struct ht_loopback_config cfg = {
        .channel = channel,
        .deliver = ignore,
    };

    return ht_loopback_new(&cfg);
}

/*
 * Assert that ht_wanted() of class number i returns on(i).  On channel=virtio,
 * read the enable bytes from the host first.
 */
static void check(struct ht_device *dev, const struct ht_class *c,
                  bool (*on)(unsigned i))
{
    unsigned i;

    if (dev->enable_copy) {
        g_assert_cmpint(ht_enable_read(dev, dev->enable_copy), ==, 0);
    }
    for (i = 0; i < CLASSES; i++) {
        g_assert_cmpint(ht_wanted(dev, &c[i]), ==, on(i));
    }
}

static bool all(unsigned i)
{
    (void)i;
    return true;
}

static bool thirds(unsigned i)
{
    return i % 3 == 0;
}

static bool others(unsigned i)
{
    return i % 3 != 0;
}

/*
 * Classes are switched on and off. On channel=virtio, reading the enable bytes
 * of all classes takes several messages.
 */
static void test_switch(const void *opaque)
{
    struct ht_loopback *lb = make(GPOINTER_TO_UINT(opaque));
    struct ht_device *dev = ht_loopback_device(lb);
    struct ht_class c[CLASSES] = { 0 }, again;
    char name[CLASSES][16];
    unsigned i;

    dev->caps.max_message = 128;
    for (i = 0; i < CLASSES; i++) {
        snprintf(name[i], sizeof(name[i]), "c%u", i);
        c[i].name = name[i];
        g_assert_cmpint(ht_register(dev, &c[i]), ==, i + 1);
        /* a new class is enabled; on virtio, the reply has its enable byte */
        g_assert_true(ht_wanted(dev, &c[i]));
    }
    check(dev, c, all);
    for (i = 0; i < CLASSES; i++) {
        ht_loopback_enable(lb, c[i].id, thirds(i));
    }
    check(dev, c, thirds);

    /* The host switches a class on; the guest registers the class again. */
    again = c[1];
    ht_loopback_enable(lb, again.id, true);
    g_assert_cmpint(ht_register(dev, &again), ==, c[1].id);
    g_assert_true(ht_wanted(dev, &again));

    for (i = 0; i < CLASSES; i++) {
        ht_loopback_enable(lb, c[i].id, others(i));
    }
    check(dev, c, others);
    ht_loopback_free(lb);
}

/*
 * If several classes are registered in one exchange, each accepted class gets
 * the enable byte of its own reply, even if another class is refused.
 */
static void test_batch(void)
{
    struct ht_loopback *lb = make(HT_CHANNEL_VIRTIO);
    struct ht_device *dev = ht_loopback_device(lb);
    struct ht_class c[] = {
        { .name = "a" }, { .name = "not good" }, { .name = "longer" },
        { .name = "c" },
    };
    struct ht_class *const all[] = { &c[0], &c[1], NULL, &c[2], &c[3] };

    g_assert_cmpint(ht_register_all(dev, all, G_N_ELEMENTS(all)), ==, -EINVAL);
    g_assert_true(ht_wanted(dev, &c[0]));
    g_assert_false(ht_wanted(dev, &c[1]));
    g_assert_true(ht_wanted(dev, &c[2]));
    g_assert_true(ht_wanted(dev, &c[3]));
    ht_loopback_enable(lb, c[2].id, false);
    g_assert_true(ht_wanted(dev, &c[2]));
    g_assert_cmpint(ht_register_all(dev, all, G_N_ELEMENTS(all)), ==, -EINVAL);
    g_assert_true(ht_wanted(dev, &c[0]));
    g_assert_false(ht_wanted(dev, &c[2]));
    g_assert_true(ht_wanted(dev, &c[3]));
    ht_loopback_free(lb);
}

/*
 * If a port has enable bytes, only the value 1 enables a class. A class without
 * an id, or with an id out of range, is disabled.
 */
static void test_values(void)
{
    struct ht_loopback *lb = make(HT_CHANNEL_SHM);
    struct ht_device *dev = ht_loopback_device(lb);
    uint8_t page[HT_CLASSES_MAX + 1];
    struct ht_class c = { .name = "c" };
    const uint8_t *before = dev->enable;
    unsigned v;

    memset(page, HT_ENABLE_ON, sizeof(page));
    page[0] = 0;
    dev->enable = page;
    g_assert_false(ht_wanted(dev, &c));
    g_assert_cmpint(ht_register(dev, &c), >, 0);
    for (v = 0; v < 256; v++) {
        page[c.id] = v;
        g_assert_cmpint(ht_wanted(dev, &c), ==, v == 1);
    }
    c.id = HT_CLASSES_MAX + 1;
    g_assert_false(ht_wanted(dev, &c));
    /* If a port has no enable bytes, each class counts as enabled. */
    dev->enable = NULL;
    g_assert_true(ht_wanted(dev, &c));
    dev->enable = before;
    ht_loopback_free(lb);
}

static int lie(struct ht_device *dev, struct ht_msg *msg, uint32_t size)
{
    struct ht_msg_enabled *m = (struct ht_msg_enabled *)msg;

    (void)dev;
    (void)size;
    m->h.status = HT_STATUS_OK;
    m->count = UINT32_MAX;
    return 0;
}

/* A reply that claims more enable bytes than requested is an error. */
static void test_lie(void)
{
    struct ht_loopback *lb = make(HT_CHANNEL_VIRTIO);
    struct ht_device *dev = ht_loopback_device(lb);
    const struct ht_port_ops *ops = dev->ops;
    struct ht_port_ops lying = *ops;
    uint8_t to[HT_CLASSES_MAX + 1];

    lying.control = lie;
    dev->ops = &lying;
    g_assert_cmpint(ht_enable_read(dev, to), ==, -EIO);
    dev->ops = ops;
    ht_loopback_free(lb);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/guest/enable/hypercall",
                         GUINT_TO_POINTER(HT_CHANNEL_HYPERCALL), test_switch);
    g_test_add_data_func("/guest/enable/shm",
                         GUINT_TO_POINTER(HT_CHANNEL_SHM), test_switch);
    g_test_add_data_func("/guest/enable/virtio",
                         GUINT_TO_POINTER(HT_CHANNEL_VIRTIO), test_switch);
    g_test_add_func("/guest/enable/batch", test_batch);
    g_test_add_func("/guest/enable/values", test_values);
    g_test_add_func("/guest/enable/lie", test_lie);
    return g_test_run();
}
