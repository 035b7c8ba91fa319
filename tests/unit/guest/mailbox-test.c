/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest exchanges messages with a host that writes to the mailbox while the
 * guest reads it.
 *
 * Promise: the guest checks a copy of the reply's size, and uses and returns
 * this copy only.
 */
#include <glib.h>
#include <string.h>

#include "hypertrace/abi.h"
#include "hypertrace/port.h"

#define ROOM sizeof(struct ht_msg_stats)

static union {
    struct ht_msg h;
    uint8_t bytes[HT_MAILBOX_SIZE];
} box;
static int over;

/* A hostile host that changes the size of its reply all the time */
static gpointer flip(gpointer opaque)
{
    volatile uint32_t *size = opaque;

    while (!g_atomic_int_get(&over)) {
        *size = ROOM;
        *size = HT_MAILBOX_SIZE;
        *size = UINT32_MAX;
        *size = sizeof(struct ht_msg);
    }
    return NULL;
}

static void go(struct ht_device *dev, uint32_t bytes)
{
    g_assert_cmpuint(bytes, <=, dev->caps.mailbox_size);
    memset(box.bytes + sizeof(box.h), 0x5a, ROOM - sizeof(box.h));
}

static void test_size(void)
{
    struct ht_device *dev = g_new0(struct ht_device, 1);
    GThread *thread = g_thread_new("host", flip, &box.h.size);
    unsigned i, good = 0, bad = 0;

    dev->caps.mailbox_size = HT_MAILBOX_SIZE;
    /* until enough exchanges have succeeded and failed, at most 20,000,000 */
    for (i = 0; (good < 100000 || bad < 1000) && i < 20000000; i++) {
        struct {
            struct ht_msg_stats m;
            uint8_t after[64];
        } msg = { .m.h = { .type = HT_MSG_STATS, .size = ROOM } };
        unsigned k;
        int r;

        memset(msg.after, 0xa5, sizeof(msg.after));
        r = ht_mailbox_exchange(dev, &box, &msg.m.h, ROOM, go);
        for (k = 0; k < sizeof(msg.after); k++) {
            g_assert_cmphex(msg.after[k], ==, 0xa5);
        }
        if (r) {
            g_assert_cmpint(r, ==, -EIO);
            bad++;
            continue;
        }
        good++;
        g_assert_cmpuint(msg.m.h.size, >=, sizeof(struct ht_msg));
        g_assert_cmpuint(msg.m.h.size, <=, ROOM);
    }
    g_atomic_int_set(&over, 1);
    g_thread_join(thread);
    g_test_message("%u replies, %u refused", good, bad);
    g_assert_cmpuint(good, >, 0);
    g_assert_cmpuint(bad, >, 0);
    g_free(dev);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mailbox/size-changes", test_size);
    return g_test_run();
}
