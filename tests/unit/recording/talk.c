/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two guests that exchange messages, for test_merge.py
 *
 * The clock of the guest "ping" is fast, that of "pong" is slow; each was 0 at
 * the guest's boot.  The host polls a guest every 1 ms, but sometimes only
 * after 25 ms.  ping sends a message, which pong receives and answers some
 * microseconds later; in between, pong's device emits an event.  Each console
 * line and each event "think" of the device contains the true host time.
 */
#include <glib/gstdio.h>

#include "recording-make.h"

#define US          UINT64_C(1000)
#define MS          (1000 * US)
#define SECOND      (1000 * MS)

typedef struct Guest {
    Make *m;
    /* value of the host's clock in ns when the guest's clock was 0 */
    uint64_t zero;
    double rate;
    /* value of the host's clock in ns at the next poll */
    uint64_t next;
} Guest;

static GRand *dice;

static Guest begin(const char *dir, const char *name, uint64_t zero,
                   double rate)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return (Guest) {
        .m = make_new(path), .zero = zero, .rate = rate, .next = 20 * SECOND,
    };
}

/* Poll the guest. The next poll is 1 ms later, or 25 ms if the host is busy. */
static void look(Guest *g)
{
    uint64_t now = g->next;

    g->next += (g_rand_int_range(dice, 0, 50) ? 1 : 25) * MS;
    make_look(g->m, now - 5 * US, g->next);
}

static void write_event(Guest *g, uint64_t host, const char *what, unsigned n)
{
    g_autofree char *text = g_strdup_printf("%s %u %" PRIu64, what, n, host);

    while (host >= g->next) {
        look(g);
    }
    make_console(g->m, n % 2, (host - g->zero) * g->rate, 1, text,
                 strlen(text));
}

void make_talk(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "device", NULL);
    uint64_t host = 20 * SECOND;
    Guest ping, pong;
    Device *device;
    unsigned n;

    dice = g_rand_new_with_seed(17);
    g_mkdir(dir, 0700);
    ping = begin(dir, "ping", 3 * SECOND, 1.00012);
    pong = begin(dir, "pong", 15 * SECOND, 0.99992);
    device = device_new(path, host);
    for (n = 0; n < 10000; n++) {
        write_event(&ping, host, "send", n);
        host += g_rand_int_range(dice, 2, 6) * US;
        write_event(&pong, host, "receive", n);
        device_think(device, host + US, n);
        host += g_rand_int_range(dice, 2, 6) * US;
        write_event(&pong, host, "reply", n);
        host += g_rand_int_range(dice, 2, 6) * US;
        write_event(&ping, host, "done", n);
        host += g_rand_int_range(dice, 10, 60) * US;
    }
    device_end(device);
    make_end(ping.m);
    make_end(pong.m);
    g_rand_free(dice);
}
