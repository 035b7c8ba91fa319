/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follow the ftrace ring in a guest's memory until standard input ends or a
 * line arrives there, or the guest's process has ended; then print the counts
 * as one line of JSON. The line "look" does not end the program: it requests a
 * poll at once. After this poll the program prints "looked".
 *
 *   ring-follow FILE|pid:N POLL-MICROSECONDS [DIRECTORY [core]]
 *
 * Prints "found" when it has found a ring. Each text "HT n" that the guest
 * wrote to its trace_marker is checked: "disorder" counts numbers that are not
 * larger than the previous number on the same processor. "doubled" counts
 * numbers that were read before. "mixed" counts markers in a wrong epoch:
 * n / 1000000 must be the same for all markers of an epoch, and larger than in
 * the epoch before. With DIRECTORY the program also writes a recording there.
 * With "core" it searches for the ring once, reads it to its end, and waits for
 * no further events.
 */
#include "hypertrace/base.h"
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include "hypertrace/recording.h"
#include "memory/source.h"

/* id of ftrace's own event "print", the same in all kernels */
#define TRACE_PRINT 5

typedef struct Follow {
    HtFtFollow *f;
    HtRecWriter *w;
    uint64_t events[HT_FT_CPUS_MAX];
    /* by processor: number of the last marker written on that processor */
    uint64_t last[HT_FT_CPUS_MAX];
    uint64_t last_marker;
    uint64_t markers, disorder, doubled, mixed;
    /*
     * number of the boot that wrote the markers of @boot_epoch: that of marker
     * n is n / 1000000
     */
    uint64_t boot;
    uint32_t boot_epoch;
    bool boot_known;
    GHashTable *seen;
    uint32_t epochs, segments;
    /* time in ns of the newest event of each earlier epoch, as text */
    GString *boots;
    GString *texts;
    /* number of epochs that have an address, or 0, in @texts */
    uint32_t texts_of;
    uint64_t newest, newest_epoch;
} Follow;

static uint64_t now(void *opaque G_GNUC_UNUSED)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void marker(Follow *w, const HtFtPiece *p, const HtFtRecord *r)
{
    char text[32] = "";
    uint64_t n;

    if (ht_ft_event_type(r->data) != TRACE_PRINT || r->size < 20) {
        return;
    }
    memcpy(text, r->data + 16, MIN(r->size - 16, sizeof(text) - 1));
    if (sscanf(text, "HT %" SCNu64, &n) != 1) {
        return;
    }
    w->markers++;
    w->doubled += !g_hash_table_add(w->seen, g_memdup2(&n, sizeof(n)));
    w->disorder += n <= w->last[p->cpu];
    w->last[p->cpu] = n;
    if (!w->boot_known || p->epoch != w->boot_epoch) {
        w->mixed += w->boot_known && n / 1000000 <= w->boot;
        w->boot = n / 1000000;
        w->boot_epoch = p->epoch;
        w->boot_known = true;
    }
    w->mixed += n / 1000000 != w->boot;
    w->last_marker = MAX(w->last_marker, n);
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Follow *w = opaque;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        marker(w, p, &r);
    }
    w->events[p->cpu] += p->events;
    w->epochs = MAX(w->epochs, p->epoch + 1);
    w->segments = MAX(w->segments, p->segment + 1);
    if (p->epoch != w->newest_epoch) {
        g_string_append_printf(w->boots, "%" PRIu64 ", ", w->newest);
        w->newest_epoch = p->epoch;
        w->newest = 0;
    }
    w->newest = MAX(w->newest, p->end_ns);
    if (w->w && !ht_rec_writer_piece(w->w, p, NULL)) {
        abort();
    }
}

static const HtFtFollowOps ops = { .piece = piece, .now = now };

/*
 * Wait up to @timeout_us for standard input. A line that begins with 'l', such
 * as "look", sets @asked; any other line, or the end of the input, ends the
 * program.
 *
 * Returns: true if the program must end
 */
static bool told_to_stop(int timeout_us, bool *asked)
{
    struct pollfd p = { .fd = 0, .events = POLLIN };
    struct timespec t = { timeout_us / 1000000, timeout_us % 1000000 * 1000 };
    char line[16];

    if (ppoll(&p, 1, &t, NULL) <= 0) {
        return false;
    }
    *asked = read(0, line, sizeof(line)) > 0 && line[0] == 'l';
    return !*asked;
}

static void answer(bool *asked)
{
    if (*asked) {
        printf("looked\n");
        fflush(stdout);
        *asked = false;
    }
}

/*
 * Append the address of the kernel's text in each new epoch to @w->texts. If
 * several epochs have begun since the last call, only the address in the newest
 * epoch is known: append 0 for the other epochs.
 */
static void note_text(Follow *w)
{
    while (w->texts_of <= ht_ft_follow_epoch(w->f)) {
        bool last = w->texts_of++ == ht_ft_follow_epoch(w->f);

        g_string_append_printf(w->texts, "%s%" PRIu64,
                               w->texts->len ? ", " : "",
                               last ? ht_ft_follow_text(w->f) : 0);
    }
}

static HtFtRing *search(HtSource *s)
{
    HtFtSearch search;
    HtFtRing *ring = NULL;

    ht_ft_search_init(&search, &s->mem, HT_FT_SEARCH_FAST);
    ht_ft_search_go(&search, UINT64_MAX, NULL);
    if (search.rings->len) {
        const HtFtRing *found = search.rings->pdata[0];

        ring = ht_ft_ring_at(&s->mem, found->offset, NULL);
    }
    ht_ft_search_clear(&search);
    return ring;
}

static void report(Follow *w, uint64_t looks, double seconds)
{
    const HtFtRing *ring = ht_ft_follow_ring(w->f);
    HtFtStats s = ht_ft_follow_stats(w->f, -1);
    uint32_t i;

    printf("{\"layout\": \"%s\", \"subbufs\": %u, \"cpus\": [",
           ht_ft_layout_name(ring->layout), ring->subbufs);
    for (i = 0; i < ring->cpus; i++) {
        HtFtStats c = ht_ft_follow_stats(w->f, i);

        printf("%s{\"events\": %" PRIu64 ", \"lost\": %" PRIu64
               ", \"gaps\": %" PRIu64 "}", i ? ", " : "", c.events, c.lost,
               c.gaps);
    }
    printf("], \"events\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"gaps\": %"
           PRIu64 ", \"retries\": %" PRIu64 ", \"bad\": %" PRIu64
           ", \"discarded\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ",
           s.events, s.lost, s.gaps, s.retries, s.bad, s.discarded, s.bytes);
    printf("\"markers\": %" PRIu64 ", \"mixed\": %" PRIu64 ", ", w->markers,
           w->mixed);
    printf("\"doubled\": %" PRIu64 ", \"disorder\": %" PRIu64
           ", \"last\": %" PRIu64 ", \"epochs\": %u, \"segments\": %u, ",
           w->doubled, w->disorder, w->last_marker, w->epochs, w->segments);
    printf("\"late\": %" PRIu64 ", \"errors\": %" PRIu64
           ", \"texts\": [%s], ", s.late, s.errors, w->texts->str);
    printf("\"boots\": [%s%" PRIu64 "], \"text\": %" PRIu64
           ", \"alive\": %s, \"looks\": %" PRIu64 ", \"seconds\": %.3f}\n",
           w->boots->str, w->newest, ht_ft_follow_text(w->f),
           ht_ft_follow_alive(w->f) ? "true" : "false", looks, seconds);
}

static HtSource *open_process(pid_t pid, GError **error)
{
    g_autoptr(HtProcess) p = ht_process_new(pid, error);

    return p ? ht_source_process(p, NULL, error) : NULL;
}

static HtSource *open_source(const char *name)
{
    GError *error = NULL;
    HtSource *s = g_str_has_prefix(name, "pid:") ?
        open_process(atoi(name + 4), &error) :
        ht_source_open(name, &error);

    if (!s) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    return s;
}

int main(int argc, char **argv)
{
    int poll_us = argc > 2 ? atoi(argv[2]) : 1000;
    bool once = argc > 4, asked = false;
    HtSource *s = argc > 1 ? open_source(argv[1]) : NULL;
    Follow w = {
        .seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                      NULL),
        .boots = g_string_new(NULL),
        .texts = g_string_new(NULL),
    };
    HtFtRing *ring = NULL;
    uint64_t looks = 0;
    struct rusage before, after;

    if (!s) {
        fprintf(stderr, "usage: ring-follow FILE|pid:N US [DIR [core]]\n");
        return 2;
    }
    while (!(ring = search(s)) && !once) {
        if (told_to_stop(20000, &asked)) {
            break;
        }
    }
    if (!ring) {
        fprintf(stderr, "no ring\n");
        return 1;
    }
    if (argc > 3) {
        GError *error = NULL;

        w.w = ht_rec_writer_new(argv[3], &error);
        if (!w.w || !ht_rec_writer_file(w.w, "info",
                                        "[recording]\nversion=1\n", -1,
                                        &error)) {
            fprintf(stderr, "%s\n", error->message);
            return 1;
        }
    }
    w.f = ht_ft_follow_new(&s->mem, ring, &ops, &w);
    printf("found\n");
    fflush(stdout);
    getrusage(RUSAGE_SELF, &before);
    do {
        /*
         * Do not poll while the ring's place in memory has other content, such
         * as during a boot of the guest.
         */
        if (ht_ft_ring_is_there(&s->mem, ht_ft_follow_ring(w.f)) &&
            ht_ft_follow_look(w.f) < 0) {
            /* the process whose memory is read has ended */
            break;
        }
        if (w.w) {
            ht_rec_writer_flush(w.w, NULL);
        }
        looks++;
        note_text(&w);
        answer(&asked);
    } while (!once && !told_to_stop(poll_us, &asked));
    getrusage(RUSAGE_SELF, &after);
    while (ht_ft_follow_look(w.f) > 0) {
        looks++;
    }
    note_text(&w);
    ht_rec_writer_free(w.w);
    report(&w, looks, after.ru_utime.tv_sec + after.ru_stime.tv_sec -
           before.ru_utime.tv_sec - before.ru_stime.tv_sec +
           (after.ru_utime.tv_usec + after.ru_stime.tv_usec -
            before.ru_utime.tv_usec - before.ru_stime.tv_usec) / 1e6);
    ht_ft_follow_free(w.f);
    ht_source_free(s);
    return 0;
}
