/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * poll-cost IMAGE pid:N|FILE SECONDS [US]: record a guest's main buffer, and
 * print the processor time of the polls
 *
 * Pauses of US (default: 1000) microseconds are between the polls, but not
 * after a poll that left something to read. Polls are printed in three groups:
 * "first" has the polls before the first event was found, and the polls that
 * left something to read. Of the other polls, "busy" has those that found
 * events, and "quiet" those that found none.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <time.h>

#include "hypertrace/guest-kernel.h"
#include "memory/source.h"
#include "record/record-session.h"

static uint64_t clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static HtSource *open_source(const char *name, GError **error)
{
    g_autoptr(HtProcess) p = NULL;

    if (!g_str_has_prefix(name, "pid:")) {
        return ht_source_open(name, error);
    }
    p = ht_process_new(atoi(name + 4), error);
    return p ? ht_source_process(p, NULL, error) : NULL;
}

static int by_time(gconstpointer a, gconstpointer b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void print(const char *name, GArray *times)
{
    const uint64_t *t = (const uint64_t *)times->data;
    double sum = 0;
    guint i;

    for (i = 0; i < times->len; i++) {
        sum += t[i];
    }
    g_array_sort(times, by_time);
    if (times->len) {
        printf("%s: %u polls, median %.2f us, mean %.2f us, longest %.2f ms\n",
               name, times->len, t[times->len / 2] / 1e3,
               sum / 1e3 / times->len, t[times->len - 1] / 1e6);
    }
}

static bool run(HtSession *s, double seconds, uint32_t poll_us,
                GError **error)
{
    g_autoptr(GArray) quiet = g_array_new(false, false, sizeof(uint64_t));
    g_autoptr(GArray) busy = g_array_new(false, false, sizeof(uint64_t));
    g_autoptr(GArray) first = g_array_new(false, false, sizeof(uint64_t));
    uint64_t end = clock_of(CLOCK_MONOTONIC) + seconds * 1e9, events = 0;

    while (clock_of(CLOCK_MONOTONIC) < end) {
        uint64_t begin = clock_of(CLOCK_THREAD_CPUTIME_ID), took;
        HtSessionStats stats;

        if (!ht_session_look(s, error)) {
            return false;
        }
        took = clock_of(CLOCK_THREAD_CPUTIME_ID) - begin;
        stats = ht_session_stats(s);
        g_array_append_val(!stats.events || ht_session_more(s) ? first :
                           stats.events == events ? quiet : busy, took);
        events = stats.events;
        if (!ht_session_more(s)) {
            g_usleep(poll_us);
        }
    }
    print("first", first);
    print("busy", busy);
    print("quiet", quiet);
    printf("%" PRIu64 " events\n", events);
    return true;
}

int main(int argc, char **argv)
{
    g_autofree char *dir = g_dir_make_tmp("poll-cost-XXXXXX", NULL);
    HtSessionInfo info = { .dir = dir,
                           .poll_us = argc > 4 ? atoi(argv[4]) : 1000,
                           .main_buffer = true };
    g_autoptr(HtKernelImage) image = NULL;
    g_autoptr(HtSource) source = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(HtSession) s = NULL;
    bool ok = false;

    if (argc < 4 || !dir) {
        fprintf(stderr, "usage: poll-cost IMAGE pid:N|FILE SECONDS [US]\n");
        return 2;
    }
    source = open_source(argv[2], &error);
    image = source ? ht_kernel_image_open(argv[1], &error) : NULL;
    info.image = image;
    s = image ? ht_session_new(&info, &error) : NULL;
    if (s) {
        ht_session_add(s, &source->mem, HT_SESSION_KERNEL);
        ok = run(s, atof(argv[3]), info.poll_us, &error);
        ht_session_discard(s);
    }
    if (!ok) {
        fprintf(stderr, "poll-cost: %s\n", error->message);
    }
    g_rmdir(dir);
    return ok ? 0 : 1;
}
