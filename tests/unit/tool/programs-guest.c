/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest for `hypertrace record --programs` without a processor: a process
 * whose device is the memory that QEMU would map
 *
 * usage: programs-guest ... -object memory-backend-file,...,mem-path=FILE,...
 *
 * The program reads commands from standard input, and ends at the input's end:
 *
 *   N         emit N events in each of two streams, every third one of class
 *             "app.text", the others of "app.step".  Wait while a ring is full.
 *             Leave out events of a class that is off.  Then flush the streams,
 *             and print the number of the first stream's events so far, with
 *             those that were left out.
 *   full N    the same for N events of "app.step" in the first stream only,
 *             but do not wait: the ring discards events that do not fit
 *   on ID     wait until the host has switched the class on, and print the time
 *             by CLOCK_MONOTONIC in ns; ID 1 is "app.step"
 *   off ID    the same for switching the class off
 *   host N    print what the host tells about vCPU N, as JSON
 *   name TEXT give the program's thread this name
 */
#include "hypertrace/base.h"
#include <fcntl.h>
#include <sys/prctl.h>

#include "hypertrace/event.h"
#include "memory-guest.h"

#define STREAMS 2

HT_EVENT_NAMED(step, "app.step", (u64, n), (u32, source));
HT_EVENT_NAMED(text, "app.text", (u64, n), (text, what));

static int fail(const char *what, int error)
{
    g_printerr("programs-guest: %s: %s\n", what, g_strerror(-error));
    return 1;
}

static int open_memory(int argc, char **argv)
{
    g_autofree char *path = NULL;
    const char *at = NULL;
    bool device = false;
    int i;

    for (i = 1; i < argc; i++) {
        if (strstr(argv[i], "id=ht-programs")) {
            at = strstr(argv[i], "mem-path=");
        }
        device |= g_str_has_prefix(argv[i], "ivshmem-plain,memdev=ht-programs");
    }
    if (!at || !device) {
        g_printerr("no device\n");
        return -1;
    }
    at += strlen("mem-path=");
    path = g_strndup(at, strcspn(at, ","));
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool is_on(const MgGuest *g, const struct ht_class *c)
{
    return __atomic_load_n(g->dev.enable + c->id, __ATOMIC_RELAXED) ==
           HT_ENABLE_ON;
}

/*
 * Wait until the host has switched a class on or off; poll every 50 us. Returns
 * the time by CLOCK_MONOTONIC in ns.
 */
static uint64_t wait_for(const MgGuest *g, const char *id, bool on)
{
    struct timespec t;

    while (is_on(g, atoi(id) == 1 ? &ht_class_step : &ht_class_text) != on) {
        g_usleep(50);
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* Print the answer of ht_host_stats() for @vcpu, or its error, as JSON. */
static void print_host(const MgGuest *g, unsigned vcpu)
{
    struct ht_host_stats s;
    int r = ht_host_stats(&g->dev, vcpu, &s);
    unsigned i;

    printf("{ \"error\": %d", -r);
#define P(m) printf(", \"" #m "\": %" PRIu64, s.m)
    if (!r) {
        P(from_ns), P(to_ns), P(guest_ns), P(exits_ns), P(vmm_ns);
        P(preempted_ns), P(woken_ns), P(halted_ns), P(waiting_ns);
        P(unknown_ns), P(machines_ns), P(tasks_ns), P(own_ns), P(idle_ns);
        P(other_exits), P(other_exits_ns);
        printf(", \"vcpu\": %d, \"exits\": [", s.vcpu);
        for (i = 0; i < s.nr_exits; i++) {
            const struct ht_host_exit *e = &s.exits[i];

            printf("%s[%u, \"%s\", %" PRIu64 ", %" PRIu64 "]", i ? "," : "",
                   e->reason, e->name, e->count, e->ns);
        }
        printf("]");
    }
#undef P
    puts(" }");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int fd = open_memory(argc, argv);
    struct ht_stream s[STREAMS];
    uint64_t n[STREAMS] = { };
    char line[32];
    MgGuest g;
    unsigned i;
    int r;

    if (fd < 0) {
        return fail("device", -errno);
    }
    mg_new(&g, fd);
    mg_connect(&g);
    r = ht_time_sync(&g.dev, 20);
    if (r >= 0) {
        r = ht_register(&g.dev, &ht_class_step);
    }
    if (r >= 0) {
        r = ht_register(&g.dev, &ht_class_text);
    }
    if (r < 0) {
        return fail("register", r);
    }
    for (i = 0; i < STREAMS; i++) {
        char name[] = "app/0";
        struct ht_stream_params params = { HT_STREAM_ANY, i, name, 0 };

        name[4] += i;
        r = ht_stream_open(&g.dev, &s[i], &params);
        if (r) {
            return fail("open", r);
        }
    }
    puts("0");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t count = g_ascii_strtoull(line, NULL, 10);

        if (line[0] == 'h') {
            print_host(&g, atoi(line + 5));
            continue;
        }
        if (line[0] == 'n') {
            prctl(PR_SET_NAME, g_strchomp(line) + 5);
            puts("named");
            fflush(stdout);
            continue;
        }
        if (line[0] == 'o') {
            printf("%" PRIu64 "\n",
                   wait_for(&g, strchr(line, ' ') + 1, line[1] == 'n'));
            fflush(stdout);
            continue;
        }
        if (line[0] == 'f') {
            count = g_ascii_strtoull(line + strlen("full "), NULL, 10);
            for (; count; count--) {
                ht_emit_step(&s[0], n[0]++, 0);
            }
        }
        for (; count; count--) {
            for (i = 0; i < STREAMS; i++) {
                while (!ht_stream_room(&s[i], 64)) {
                    g_usleep(100);
                }
                if (n[i] % 3 && is_on(&g, &ht_class_step)) {
                    ht_emit_step(&s[i], n[i], i);
                } else if (n[i] % 3 == 0 && is_on(&g, &ht_class_text)) {
                    ht_emit_text(&s[i], n[i], "third");
                }
                n[i]++;
            }
        }
        for (i = 0; i < STREAMS; i++) {
            r = ht_stream_flush(&s[i]);
            if (r) {
                return fail("flush", r);
            }
        }
        printf("%" PRIu64 "\n", n[0]);
        fflush(stdout);
    }
    /* End without closing the streams, as a guest that is reset. */
    return 0;
}
