/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check the numbered markers of tests/stock/marks in a recording; print the
 * counts of each processor in one line, an array of JSON.
 *
 *   marks-check DIRECTORY
 *
 * Of each processor, events before its first event "print" are not counted.
 * "torn" counts the events "print" without the text of a marker of their
 * processor. "doubled" counts markers with a number that is not larger than
 * that of an earlier marker. "missing" counts the numbers, from 1 on, that
 * markers skip. "silent" counts those skipped numbers for which the recording
 * has no gap between the markers before and after them.
 */
#include "hypertrace/base.h"
#include "hypertrace/recording.h"

/* id of ftrace's own event "print", the same in all kernels */
#define TRACE_PRINT 5
/* Offset in bytes of the text in this event, after the caller's address */
#define TEXT_AT     16u
/* Size of a marker's text in bytes, without its newline */
#define TEXT        15u

typedef struct Seen {
    uint64_t events, marks, last;
    uint64_t torn, doubled, missing, silent;
    uint64_t gaps, lost;
    /* the recording has a gap after marker @last */
    bool gap;
} Seen;

static uint32_t checksum(uint32_t cpu, uint32_t n)
{
    uint32_t x = (n + 1) * 2654435761u + cpu * 40503u;

    return (x ^ x >> 16) & 0xffff;
}

static bool parse(const HtRecEvent *ev, uint32_t *n)
{
    char is[TEXT + 1] = "", want[TEXT + 2];

    memcpy(is, ev->data + TEXT_AT, MIN(ev->size - TEXT_AT, TEXT));
    if (sscanf(is + 1, " %8x", n) != 1) {
        return false;
    }
    g_snprintf(want, sizeof(want), "%x %08x %04x", ev->cpu, *n,
               checksum(ev->cpu, *n));
    return !strcmp(is, want);
}

static bool is_marker(const HtRecEvent *ev)
{
    return ev->type == TRACE_PRINT && ev->size > TEXT_AT;
}

static void event(Seen *s, const HtRecEvent *ev)
{
    uint32_t n;

    if (!s->events && !is_marker(ev)) {
        return;
    }
    s->events++;
    s->gaps += ev->lost_before;
    s->lost += ev->lost_estimate;
    s->gap |= ev->lost_before;
    if (!is_marker(ev)) {
        return;
    }
    if (!parse(ev, &n)) {
        s->torn++;
        return;
    }
    s->marks++;
    if (n <= s->last) {
        s->doubled++;
        return;
    }
    s->missing += n - s->last - 1;
    if (!s->gap && n > s->last + 1) {
        s->silent += n - s->last - 1;
        fprintf(stderr, "CPU %u: marker %u follows %" PRIu64
                " without a gap\n", ev->cpu, n, s->last);
    }
    s->last = n;
    s->gap = false;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = argc == 2 ? ht_rec_open(argv[1], &error) : NULL;
    g_autofree Seen *seen = g_new0(Seen, HT_FT_CPUS_MAX);
    uint32_t cpu, cpus;
    HtRecEvent ev;

    if (!r) {
        fprintf(stderr, "%s\n", error ? error->message :
                "usage: marks-check DIRECTORY");
        return 1;
    }
    cpus = ht_rec_info(r)->cpus;
    while (ht_rec_next(r, &ev)) {
        event(&seen[ev.cpu], &ev);
    }
    printf("[");
    for (cpu = 0; cpu < cpus; cpu++) {
        const Seen *s = &seen[cpu];

        printf("%s{\"events\": %" PRIu64 ", \"marks\": %" PRIu64
               ", \"last\": %" PRIu64 ", \"torn\": %" PRIu64
               ", \"doubled\": %" PRIu64 ", \"missing\": %" PRIu64
               ", \"silent\": %" PRIu64 ", \"gaps\": %" PRIu64
               ", \"lost\": %" PRIu64 "}", cpu ? ", " : "", s->events,
               s->marks, s->last, s->torn, s->doubled, s->missing, s->silent,
               s->gaps, s->lost);
    }
    printf("]\n");
    return 0;
}
