/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <gio/gio.h>
#include <string.h>

#include "hypertrace/ftrace-dates.h"
#include "model/host-clock.h"

/*
 * Maximum number of segments of the guest's clock, in all boots together. A
 * recording with more segments is refused.
 */
#define SEGMENTS_MAX 1000

struct HtHostClock {
    /* the recording's times are already the host's: nothing is converted */
    bool same;
    /* table from number_of(boot, segment) to HtFtDates */
    GHashTable *segments;
    /* number_of() of the segment that was used last */
    uint64_t number;
    HtFtDates *dates;           /* dates of that segment; NULL: not known */
    uint64_t last_ns;
};

static uint64_t number_of(unsigned boot, uint32_t segment)
{
    return (uint64_t)boot << 32 | segment;
}

static HtFtDates *find(HtHostClock *c, uint64_t number)
{
    if (c->number != number) {
        c->number = number;
        c->last_ns = 0;
        c->dates = g_hash_table_lookup(c->segments, &number);
    }
    return c->dates;
}

static bool add_piece(HtHostClock *c, const HtFtPiece *p)
{
    uint64_t number = number_of(p->epoch + 1, p->segment);

    if (!find(c, number)) {
        if (g_hash_table_size(c->segments) == SEGMENTS_MAX) {
            return false;
        }
        c->dates = ht_ft_dates_new();
        g_hash_table_insert(c->segments, g_memdup2(&number, sizeof(number)),
                            c->dates);
    }
    ht_ft_dates_add(c->dates, p);
    return true;
}

static void free_dates(gpointer dates)
{
    ht_ft_dates_free(dates);
}

HtHostClock *ht_host_clock_new(HtModel *m, GError **errp)
{
    g_autoptr(HtHostClock) c = g_new0(HtHostClock, 1);
    HtRecording *rec = ht_model_recording(m);
    uint32_t cpu, cpus = ht_rec_info(rec)->cpus;
    bool ok = true, polled = false;
    GHashTableIter iter;
    gpointer dates;
    HtFtPiece p;

    c->segments = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                        free_dates);
    c->same = !strcmp(ht_model_info(m, "host", "clock"), "mono");
    if (c->same) {
        return g_steal_pointer(&c);
    }
    ht_model_rewind(m);
    for (cpu = 0; cpu < cpus; cpu++) {
        while (ok && ht_rec_next_piece(rec, cpu, &p)) {
            polled |= p.host_before != 0;
            ok = add_piece(c, &p);
        }
    }
    ht_model_rewind(m);
    if (!ok) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the guest's clock went back, or the guest booted, more"
                    " than %d times",
                    SEGMENTS_MAX - 1);
        return NULL;
    }
    if (!polled) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "the host time is not known, because the recorder did not"
                    " poll this guest twice while it ran; use --clock=guest");
        return NULL;
    }
    g_hash_table_iter_init(&iter, c->segments);
    while (g_hash_table_iter_next(&iter, NULL, &dates)) {
        ht_ft_dates_fit(dates);
    }
    return g_steal_pointer(&c);
}

void ht_host_clock_free(HtHostClock *c)
{
    if (c) {
        g_hash_table_destroy(c->segments);
        g_free(c);
    }
}

bool ht_host_clock_at(HtHostClock *c, unsigned boot, uint32_t segment,
                      uint64_t ns, uint64_t *host_ns, uint64_t *bound_ns)
{
    HtFtDates *dates;

    if (c->same) {
        *host_ns = ns;
        *bound_ns = 0;
        return true;
    }
    dates = find(c, number_of(boot, segment));
    return dates && ht_ft_dates_get(dates, ns, host_ns, bound_ns);
}

bool ht_host_clock_date(HtHostClock *c, HtModelEvent *ev)
{
    uint64_t ns, bound;

    if (!ht_host_clock_at(c, ev->boot, ev->rec.segment, ev->rec.ns, &ns,
                          &ev->bound_ns)) {
        return false;
    }
    c->last_ns = MAX(c->last_ns, ns);
    ev->rec.ns = c->last_ns;
    if (ev->rec.lost_before &&
        ht_host_clock_at(c, ev->boot, ev->rec.segment, ev->rec.lost_from_ns,
                         &ns, &bound)) {
        ev->rec.lost_from_ns = MIN(ns, c->last_ns);
    }
    return true;
}

uint64_t ht_host_clock_worst(HtHostClock *c, unsigned boot, uint32_t segment,
                             uint64_t from_ns)
{
    HtFtDates *dates = find(c, number_of(boot, segment));

    return c->same ? 0 : dates ? ht_ft_dates_worst(dates, from_ns) : UINT64_MAX;
}

static bool started(HtModel *m, const char *clock, gint64 *ns)
{
    g_autofree char *key = g_strdup_printf("started-%s", clock);

    return g_ascii_string_to_signed(ht_model_info(m, "recording", key), 10, 0,
                                    INT64_MAX / 4, ns, NULL);
}

bool ht_host_clock_wall(HtModel *m, int64_t *offset_ns)
{
    gint64 real, mono;

    if (!started(m, "realtime", &real) || !started(m, "monotonic", &mono) ||
        !real) {
        return false;
    }
    *offset_ns = real - mono;
    return true;
}

bool ht_host_clock_shift(HtModel *m, HtModel *first, int64_t *shift_ns,
                         GError **errp)
{
    const char *boot = ht_model_info(m, "recording", "host-boot");
    int64_t a, b;
    gint64 begin;

    *shift_ns = 0;
    if (m == first || (*boot && !strcmp(boot, ht_model_info(first, "recording",
                                                            "host-boot")))) {
        return true;
    }
    if (ht_host_clock_wall(m, &a) && ht_host_clock_wall(first, &b)) {
        *shift_ns = a - b;
    }
    if (started(m, "monotonic", &begin) && begin + *shift_ns < 0) {
        g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "it was recorded before the host of the first recording"
                    " booted; name the oldest recording first");
    }
    return false;
}
