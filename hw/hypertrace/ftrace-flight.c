/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a flight recorder, of the ring that a guest keeps anyway
 */
#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-events-hypertrace.h"
#include "qapi/qapi-visit-hypertrace.h"
#include "qapi/util.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "system/runstate.h"
#include "system/system.h"
#include "hypertrace/recording.h"
#include "ftrace.h"

#define TRIGGERS "panic:reset:watchdog:error"

/* What a recording copies at most */
#define COPY_BYTES  (256 * MiB)
/* Copies that wait for the thread; each is as large as a ring. */
#define WAITING_MAX 4
/* How long the end of QEMU waits for a disk */
#define END_MS      5000

/* Where a piece's records are in HtFlight.bytes */
typedef struct Kept {
    HtFtPiece p;
    size_t at;
} Kept;

/**
 * HtFlight: a recording that is being made
 * @mem: as HtFtWatched has it; the follower reads there
 * @time: of the newest segment, when all was still followed
 */
typedef struct HtFlight {
    HypertraceTrigger why;
    HtFtMem mem;
    HtFtTime time;
    HtFtFollow *follow;
    GArray *pieces;             /* Kept */
    GByteArray *bytes;
    uint64_t events;
    uint64_t end_ns;
} HtFlight;

/* Of the object's lock: all but what the options say */
struct HtFlights {
    HypertraceFtrace *ft;
    char *path;                 /* of the object, constant */
    HtFlightOptions options;
    unsigned long triggers;     /* bitmap of HypertraceTrigger */
    Notifier shutdown;
    Notifier exit;
    HypertraceTrigger cause;    /* of the shutdown that has begun */
    bool rested;                /* made one since the VM stopped */
    GQueue waiting;             /* HtFlight, copied */
    bool writing;
    QemuCond written;
    unsigned number;            /* of the next directory */
    uint64_t made;
    uint64_t unasked;
    uint64_t skipped;
    uint64_t asked;
    uint64_t answered;
    HypertraceSnapshotList *answer;
    uint64_t heard_events;      /* of all rings, up to now */
    int64_t heard_ns;           /* when there was the last one */
    bool silent;
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

/* Copy -------------------------------------------------------------------- */

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

/* NULL if the ring is not there any more.  Context: lock held */
static HtFlight *flight_new(HtFtWatched *w, HypertraceTrigger why)
{
    HtFtRing *ring = w->gone ? NULL : ht_ft_ring_at(&w->mem, w->address, NULL);
    HtFlight *f;

    if (!ring) {
        return NULL;
    }
    f = g_new0(HtFlight, 1);
    f->why = why;
    f->mem = w->mem;
    f->time = w->time[0];
    f->pieces = g_array_new(false, false, sizeof(Kept));
    f->bytes = g_byte_array_new();
    f->follow = ht_ft_follow_new(&f->mem, ring, &flight_ops, f);
    return f;
}

static void flight_free(HtFlight *f)
{
    ht_ft_follow_free(f->follow);
    g_array_unref(f->pieces);
    g_byte_array_unref(f->bytes);
    g_free(f);
}

/*
 * The look found all at once; who followed the ring knows better when that was
 * written, of the segment that it was in.  What is older was written before all
 * of that.
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

/* Copy all that is there.  Context: no lock is needed */
static void flight_read(HtFlight *f)
{
    unsigned times = HT_FTRACE_LAST_LOOKS;
    uint64_t copied = 0;

    while (times && copied < COPY_BYTES &&
           ht_ft_follow_look(f->follow) >= 0) {
        copied += ht_ft_follow_copied(f->follow);
        times -= !ht_ft_follow_more(f->follow);
    }
    f->end_ns = get_clock();
    narrow(f);
}

/* The ring of each kernel that runs.  Context: lock held */
static void flights_of(HtFlights *fl, HypertraceTrigger why, GQueue *out)
{
    const GPtrArray *rings = fl->ft->rings;
    guint i;

    for (i = 0; i < rings->len; i++) {
        HtFtWatched *w = rings->pdata[i];
        HtFlight *f = w->taken ? flight_new(w, why) : NULL;

        if (f) {
            g_queue_push_tail(out, f);
        }
    }
}

/* Write ------------------------------------------------------------------- */

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

static bool write_info(const HtFlights *fl, const HtFlight *f, HtRecWriter *w,
                       GError **err)
{
    g_autoptr(GKeyFile) keys = g_key_file_new();
    const HtFtRing *ring = ht_ft_follow_ring(f->follow);
    g_autofree char *text = NULL;
    gsize size;

    ht_rec_info_begin(keys, qemu_name, "a QEMU that followed its guest's ring",
                      fl->ft->poll_ms * 1000);
    ht_rec_info_ring(keys, ring);
    g_key_file_set_integer(keys, "guest", "cpus", ring->cpus);
    ht_rec_info_text(keys, ht_ft_follow_epoch(f->follow),
                     ht_ft_follow_text(f->follow));
    ht_rec_info_end(keys, ends[f->why], f->end_ns);
    text = g_key_file_to_data(keys, &size, NULL);
    return ht_rec_writer_file(w, "info", text, size, err);
}

static bool write_all(const HtFlights *fl, const HtFlight *f, const char *dir,
                      GError **err)
{
    g_autoptr(HtRecWriter) w = ht_rec_writer_new(dir, err);
    const char *formats = fl->ft->formats_text;

    return w && write_info(fl, f, w, err) &&
           (!formats || ht_rec_writer_file(w, "formats", formats, -1, err)) &&
           write_pieces(f, w, err);
}

/* Earlier runs of QEMU may have made some. */
static char *next_dir(HtFlights *fl)
{
    char *dir;

    do {
        dir = g_strdup_printf("%s/%s-%u", fl->options.dir,
                              fl->ft->trace->name, fl->number++);
    } while (g_file_test(dir, G_FILE_TEST_EXISTS) && (g_free(dir), true));
    return dir;
}

/*
 * Write and tell; frees @f.  What is returned is the caller's.
 * Context: thread; lock held, but not meanwhile
 */
static HypertraceSnapshot *flight_write(HtFlights *fl, HtFlight *f)
{
    HypertraceSnapshot *s = g_new0(HypertraceSnapshot, 1);
    g_autoptr(GError) err = NULL;

    fl->writing = true;
    qemu_mutex_unlock(&fl->ft->lock);
    if (!f->end_ns) {
        flight_read(f);
    }
    s->trigger = f->why;
    s->events = f->events;
    s->directory = next_dir(fl);
    if (!write_all(fl, f, s->directory, &err)) {
        s->error = g_strdup(err->message);
        error_report("hypertrace: no recording of '%s': %s",
                     fl->ft->trace->name, s->error);
    }
    flight_free(f);
    WITH_QEMU_LOCK_GUARD(&fl->ft->lock) {
        fl->made += !s->error;
    }
    qapi_event_send_hypertrace_snapshot(fl->path, s);
    qemu_mutex_lock(&fl->ft->lock);
    fl->writing = false;
    qemu_cond_broadcast(&fl->written);
    return s;
}

/* When ------------------------------------------------------------------- */

/* Leave as many as may still be made.  Context: lock held */
static void limit(HtFlights *fl, GQueue *found)
{
    unsigned left = fl->options.limit - fl->unasked;
    unsigned room = WAITING_MAX - MIN(WAITING_MAX, fl->waiting.length);

    if (found->length > left) {
        warn_report_once("hypertrace: %s makes no more recordings by itself:"
                         " recordings=%" PRIu32, fl->ft->trace->name,
                         fl->options.limit);
    } else if (found->length > room) {
        warn_report_once("hypertrace: %s makes fewer recordings: %u wait to be"
                         " written to '%s'", fl->ft->trace->name,
                         fl->waiting.length, fl->options.dir);
    }
    while (found->length > MIN(left, room)) {
        flight_free(g_queue_pop_tail(found));
        fl->skipped++;
    }
    fl->unasked += found->length;
}

void ht_flights_trigger(HtFlights *fl, HypertraceTrigger why)
{
    g_auto(GQueue) found = G_QUEUE_INIT;
    HtFlight *f;

    if (!fl || !(fl->triggers & BIT(why))) {
        return;
    }
    flights_of(fl, why, &found);
    limit(fl, &found);
    while ((f = g_queue_pop_head(&found))) {
        flight_read(f);
        g_queue_push_tail(&fl->waiting, f);
    }
    fl->rested = true;
    qemu_cond_signal(&fl->ft->wake);
}

void ht_flights_stopped(HtFlights *fl, RunState state)
{
    if (!fl) {
        return;
    }
    fl->rested = false;
    switch (state) {
    case RUN_STATE_GUEST_PANICKED:
        ht_flights_trigger(fl, HYPERTRACE_TRIGGER_PANIC);
        break;
    case RUN_STATE_WATCHDOG:
        ht_flights_trigger(fl, HYPERTRACE_TRIGGER_WATCHDOG);
        break;
    case RUN_STATE_INTERNAL_ERROR:
        ht_flights_trigger(fl, HYPERTRACE_TRIGGER_ERROR);
        break;
    case RUN_STATE_SHUTDOWN:
        ht_flights_trigger(fl, fl->cause);
        break;
    default:
        break;
    }
}

void ht_flights_reset(HtFlights *fl, bool stopped)
{
    if (fl && !(stopped && fl->rested)) {
        ht_flights_trigger(fl, HYPERTRACE_TRIGGER_RESET);
    }
}

/*
 * Why QEMU stops the VM; it does so next.  A panic that ends QEMU is seen here
 * only.
 */
static void shutdown_begins(Notifier *n, void *data)
{
    HtFlights *fl = container_of(n, HtFlights, shutdown);

    switch (*(ShutdownCause *)data) {
    case SHUTDOWN_CAUSE_GUEST_PANIC:
        fl->cause = HYPERTRACE_TRIGGER_PANIC;
        break;
    case SHUTDOWN_CAUSE_GUEST_RESET:
    case SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET:
        fl->cause = HYPERTRACE_TRIGGER_RESET;
        break;
    default:
        fl->cause = HYPERTRACE_TRIGGER_SHUTDOWN;
        break;
    }
}

/* Context: lock held */
static bool became_silent(HtFlights *fl)
{
    const HypertraceFtrace *ft = fl->ft;
    int64_t ns = get_clock();
    uint64_t events = 0;
    guint i;

    for (i = 0; i < ft->rings->len; i++) {
        HtFtWatched *w = ft->rings->pdata[i];

        if (w->taken) {
            events += ht_ft_follow_stats(w->follow, -1).events;
        }
    }
    if (events != fl->heard_events || !events || ft->paused ||
        runstate_check(RUN_STATE_SUSPENDED)) {
        fl->heard_events = events;
        fl->heard_ns = ns;
        fl->silent = false;
        return false;
    }
    if (fl->silent || !fl->options.silence ||
        ns - fl->heard_ns < fl->options.silence * NANOSECONDS_PER_SECOND) {
        return false;
    }
    fl->silent = true;
    return true;
}

/* Context: thread; lock held, but not all the time */
static void write_waiting(HtFlights *fl)
{
    HtFlight *f;

    while ((f = g_queue_pop_head(&fl->waiting))) {
        qapi_free_HypertraceSnapshot(flight_write(fl, f));
    }
}

/* Context: thread; lock held, but not all the time */
static void answer(HtFlights *fl)
{
    HypertraceSnapshotList *list = NULL, **tail = &list;
    g_auto(GQueue) found = G_QUEUE_INIT;
    uint64_t number = fl->asked;
    HtFlight *f;

    flights_of(fl, HYPERTRACE_TRIGGER_COMMAND, &found);
    while ((f = g_queue_pop_head(&found))) {
        HypertraceSnapshot *s = flight_write(fl, f);

        QAPI_LIST_APPEND(tail, s);
    }
    /* Until now an earlier question may have had its answer fetched. */
    qapi_free_HypertraceSnapshotList(fl->answer);
    fl->answer = list;
    fl->answered = number;
}

void ht_flights_serve(HtFlights *fl, bool looked)
{
    if (!fl) {
        return;
    }
    write_waiting(fl);
    if (fl->asked != fl->answered) {
        answer(fl);
    }
    if (!looked) {
        fl->heard_ns = get_clock();     /* who does not listen hears nothing */
    } else if (became_silent(fl)) {
        g_auto(GQueue) found = G_QUEUE_INIT;

        flights_of(fl, HYPERTRACE_TRIGGER_SILENCE, &found);
        limit(fl, &found);
        while (found.length) {
            g_queue_push_tail(&fl->waiting, g_queue_pop_head(&found));
        }
        write_waiting(fl);
    }
}

uint64_t ht_flights_ask(HtFlights *fl)
{
    qemu_cond_signal(&fl->ft->wake);
    return ++fl->asked;
}

bool ht_flights_answer(HtFlights *fl, uint64_t number,
                       HypertraceSnapshotList **list)
{
    if (fl->answered < number) {
        return false;
    }
    *list = QAPI_CLONE(HypertraceSnapshotList, fl->answer);
    return true;
}

void ht_flights_count(const HtFlights *fl, uint64_t *made, uint64_t *skipped)
{
    *made = fl ? fl->made : 0;
    *skipped = fl ? fl->skipped : 0;
}

/* The recorder ------------------------------------------------------------ */

static bool parse_triggers(HtFlights *fl, Error **errp)
{
    const char *text = fl->options.triggers ?: TRIGGERS;
    g_auto(GStrv) names = g_strsplit(text, ":", -1);
    unsigned i;

    for (i = 0; names[i]; i++) {
        int t = qapi_enum_parse(&HypertraceTrigger_lookup, names[i], -1, NULL);

        if (t <= HYPERTRACE_TRIGGER_COMMAND ||
            t == HYPERTRACE_TRIGGER_SILENCE) {
            error_setg(errp, "triggers=%s: there is no '%s'; possible are"
                       " panic, reset, watchdog, error and shutdown", text,
                       names[i]);
            return false;
        }
        fl->triggers |= BIT(t);
    }
    return true;
}

/* Context: BQL; what waits is written as long as the disk lets us */
static void exit_begins(Notifier *n, void *data)
{
    HtFlights *fl = container_of(n, HtFlights, exit);
    int64_t end = get_clock() + END_MS * (int64_t)SCALE_MS, left;

    ht_ftrace_lock(fl->ft);
    while ((fl->writing || fl->waiting.length) &&
           (left = end - get_clock()) > 0) {
        qemu_cond_timedwait(&fl->written, &fl->ft->lock, left / SCALE_MS + 1);
    }
    qemu_mutex_unlock(&fl->ft->lock);
}

HtFlights *ht_flights_new(HypertraceFtrace *ft, Error **errp)
{
    HtFlights *fl = g_new0(HtFlights, 1);

    fl->ft = ft;
    fl->path = object_get_canonical_path(OBJECT(ft));
    fl->options = ft->flight_options;
    fl->cause = HYPERTRACE_TRIGGER_SHUTDOWN;
    g_queue_init(&fl->waiting);
    if (!parse_triggers(fl, errp)) {
        goto fail;
    }
    if (g_mkdir_with_parents(fl->options.dir, 0700)) {
        error_setg_errno(errp, errno, "flight=%s cannot be made",
                         fl->options.dir);
        goto fail;
    }
    qemu_cond_init(&fl->written);
    fl->shutdown.notify = shutdown_begins;
    qemu_register_shutdown_notifier(&fl->shutdown);
    fl->exit.notify = exit_begins;
    qemu_add_exit_notifier(&fl->exit);
    return fl;

fail:
    g_free(fl->path);
    g_free(fl);
    return NULL;
}

void ht_flights_free(HtFlights *fl)
{
    if (fl) {
        notifier_remove(&fl->shutdown);
        qemu_remove_exit_notifier(&fl->exit);
        g_queue_clear_full(&fl->waiting, (GDestroyNotify)flight_free);
        qapi_free_HypertraceSnapshotList(fl->answer);
        qemu_cond_destroy(&fl->written);
        g_free(fl->path);
        g_free(fl);
    }
}
