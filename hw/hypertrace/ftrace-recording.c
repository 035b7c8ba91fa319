/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: one recording of a flight recorder
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/system.h"
#include "hypertrace/recording.h"
#include "ftrace.h"
#include "ftrace-recording.h"

/* A piece, and the offset of its records in HtFlight.bytes */
typedef struct Kept {
    HtFtPiece p;
    size_t at;
} Kept;

/**
 * HtFlight: a recording that is being made
 * @mem: see HtFtWatched; the follower reads it
 * @time: clock of the newest segment, from the ring's earlier polls
 */
struct HtFlight {
    HypertraceTrigger why;
    HtFtMem mem;
    HtFtTime time;
    HtFtFollow *follow;
    GArray *pieces;             /* Kept */
    GByteArray *bytes;
    uint64_t events;
    uint64_t end_ns;            /* 0: nothing was copied yet */
};

static const char * const ends[HYPERTRACE_TRIGGER__MAX] = {
    [HYPERTRACE_TRIGGER_COMMAND] = "recorded when hypertrace-snapshot asked",
    [HYPERTRACE_TRIGGER_PANIC] = "recorded when the guest panicked",
    [HYPERTRACE_TRIGGER_RESET] = "recorded when the VM was reset",
    [HYPERTRACE_TRIGGER_WATCHDOG] = "recorded when the watchdog fired",
    [HYPERTRACE_TRIGGER_ERROR] = "recorded when QEMU stopped the VM by an"
                                 " internal error",
    [HYPERTRACE_TRIGGER_SHUTDOWN] = "recorded when QEMU ended",
    [HYPERTRACE_TRIGGER_SILENCE] = "recorded when there were no events",
};

/* HtFtFollowOps.piece */
static void keep_piece(void *opaque, const HtFtPiece *p)
{
    HtFlight *f = opaque;
    Kept kept = { *p, f->bytes->len };

    g_byte_array_append(f->bytes, p->data, p->size);
    g_array_append_val(f->pieces, kept);
    f->events += p->events;
}

/* HtFtFollowOps.now */
static uint64_t now(void *opaque)
{
    return get_clock();
}

static const HtFtFollowOps flight_ops = { .piece = keep_piece, .now = now };

HtFlight *ht_flight_new(HtFtWatched *w, HypertraceTrigger why)
{
    HtFtRing *ring = w->gone ? NULL : ht_ft_ring_at(&w->mem, w->address, NULL);
    HtFlight *f;

    if (!ring) {
        return NULL;
    }
    f = g_new0(HtFlight, 1);
    f->why = why;
    f->mem = w->mem;
    f->time = w->feed.time[0];
    f->pieces = g_array_new(false, false, sizeof(Kept));
    f->bytes = g_byte_array_new();
    f->follow = ht_ft_follow_new(&f->mem, ring, &flight_ops, f);
    return f;
}

void ht_flight_free(HtFlight *f)
{
    ht_ft_follow_free(f->follow);
    g_array_unref(f->pieces);
    g_byte_array_unref(f->bytes);
    g_free(f);
}

/*
 * The recording found all events in one poll.  The ring's earlier polls bound
 * the times of its newest segment more tightly.  Older segments were written
 * before that.
 */
static void narrow(HtFlight *f)
{
    uint32_t epoch = ht_ft_follow_epoch(f->follow), segment = 0;
    uint64_t after = UINT64_MAX;
    guint i;

    for (i = 0; i < f->pieces->len; i++) {
        const HtFtPiece *p = &g_array_index(f->pieces, Kept, i).p;

        segment = p->epoch == epoch ? MAX(segment, p->segment) : segment;
    }
    for (i = 0; i < f->pieces->len; i++) {
        HtFtPiece *p = &g_array_index(f->pieces, Kept, i).p;

        if (p->epoch == epoch && p->segment == segment) {
            ht_ft_time_bracket(&f->time, p);
            after = MIN(after, p->host_after);
        }
    }
    for (i = 0; i < f->pieces->len; i++) {
        HtFtPiece *p = &g_array_index(f->pieces, Kept, i).p;
        bool older = p->epoch != epoch || p->segment != segment;

        if (older && p->host_before <= after) {
            p->host_after = MIN(after, p->host_after);
        }
    }
}

uint64_t ht_flight_size(const HtFlight *f)
{
    return ht_ft_follow_ring(f->follow)->size;
}

uint64_t ht_flight_read(HtFlight *f, uint64_t most, uint64_t end)
{
    unsigned times = f->end_ns ? 0 : HT_FTRACE_LAST_LOOKS;
    uint64_t copied = 0;

    ht_ft_follow_limit(f->follow, end ? ht_ftrace_cpu_ns : NULL, end);
    while (times && copied < most && (!end || ht_ftrace_cpu_ns() < end) &&
           ht_ft_follow_look(f->follow) >= 0) {
        copied += ht_ft_follow_copied(f->follow);
        times -= !ht_ft_follow_more(f->follow);
    }
    if (!f->end_ns) {
        f->end_ns = get_clock();
        narrow(f);
    }
    return copied;
}

static bool write_pieces(const HtFlight *f, HtRecWriter *w, GError **err)
{
    guint i;

    for (i = 0; i < f->pieces->len; i++) {
        const Kept *kept = &g_array_index(f->pieces, Kept, i);
        HtFtPiece p = kept->p;

        p.data = f->bytes->data + kept->at;
        if (!ht_rec_writer_piece(w, &p, err)) {
            return false;
        }
    }
    return ht_rec_writer_flush(w, err);
}

static bool write_info(const HtFlight *f, const HtFlightPlace *place,
                       HtRecWriter *w, GError **err)
{
    g_autoptr(GKeyFile) keys = g_key_file_new();
    const HtFtRing *ring = ht_ft_follow_ring(f->follow);
    g_autofree char *text = NULL;
    gsize size;

    ht_rec_info_begin(keys, qemu_name, "a QEMU that followed its guest's ring",
                      place->poll_ms * 1000);
    ht_rec_info_ring(keys, ring);
    g_key_file_set_integer(keys, "guest", "cpus", ring->cpus);
    ht_rec_info_text(keys, ht_ft_follow_epoch(f->follow),
                     ht_ft_follow_text(f->follow));
    ht_rec_info_end(keys, ends[f->why], f->end_ns);
    text = g_key_file_to_data(keys, &size, NULL);
    return ht_rec_writer_file(w, "info", text, size, err);
}

static bool write_all(const HtFlight *f, const HtFlightPlace *place, int fd,
                      const char *dir, GError **err)
{
    g_autoptr(HtRecWriter) w = ht_rec_writer_new_fd(fd, dir, err);

    return w && write_info(f, place, w, err) &&
           (!place->formats ||
            ht_rec_writer_file(w, "formats", place->formats, -1, err)) &&
           write_pieces(f, w, err);
}

/*
 * Open the directory again if it was removed.  Otherwise use the descriptor,
 * which stays valid after -run-with chroot or user took effect.
 */
static bool reopen_dir(HtFlightPlace *place)
{
    int fd;

    if (g_mkdir_with_parents(place->dir, 0700)) {
        return false;
    }
    fd = qemu_open(place->dir, O_RDONLY | O_DIRECTORY, NULL);
    if (fd < 0) {
        return false;
    }
    close(place->fd);
    place->fd = fd;
    return true;
}

/*
 * Make a new directory.  Earlier runs of QEMU may have made some, and others
 * may be making theirs now.
 *
 * Returns: its name in place->dir; NULL with @err set on failure
 */
static char *make_dir(HtFlightPlace *place, GError **err)
{
    bool reopened = false;
    int error;

    for (;;) {
        g_autofree char *name = g_strdup_printf("%s-%u", place->name,
                                                place->number++);

        if (!mkdirat(place->fd, name, 0700)) {
            return g_steal_pointer(&name);
        }
        if (errno == ENOENT && !reopened && reopen_dir(place)) {
            reopened = true;
            place->number--;
            continue;
        }
        error = errno;
        if (error != EEXIST) {
            break;
        }
    }
    g_set_error(err, G_FILE_ERROR, g_file_error_from_errno(error),
                "cannot make a directory in %s: %s", place->dir,
                g_strerror(error));
    return NULL;
}

HypertraceSnapshot *ht_flight_write(const HtFlight *f, HtFlightPlace *place)
{
    HypertraceSnapshot *s = g_new0(HypertraceSnapshot, 1);
    g_autoptr(GError) err = NULL;
    g_autofree char *name = make_dir(place, &err);

    s->trigger = f->why;
    s->events = f->events;
    s->directory = g_build_filename(place->dir, name, NULL);
    if (name && !write_all(f, place, openat(place->fd, name, O_RDONLY |
                                            O_DIRECTORY | O_CLOEXEC),
                           s->directory, &err)) {
        /* This fails unless the directory is empty. */
        unlinkat(place->fd, name, AT_REMOVEDIR);
    }
    if (err) {
        s->error = g_strdup(err->message);
        error_report("hypertrace: no recording of '%s': %s", place->name,
                     s->error);
    }
    return s;
}
