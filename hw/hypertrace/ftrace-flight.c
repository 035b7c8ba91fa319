/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a flight recorder, of the ring that a guest keeps anyway
 *
 * Its thread writes, and waits for nobody but the disk: the ring is followed
 * meanwhile.  It uses nothing of the object, which may go before it does.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-events-hypertrace.h"
#include "qapi/qapi-visit-hypertrace.h"
#include "qapi/util.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/lockable.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "system/runstate.h"
#include "ftrace.h"
#include "ftrace-recording.h"

#define TRIGGERS "panic:reset:watchdog:error"

/*
 * Limits of what is copied of all rings together: bytes, and CPU time while the
 * BQL is held
 */
#define COPY_BYTES  (256 * MiB)
#define COPY_NS     (2 * (uint64_t)NANOSECONDS_PER_SECOND)
/* Copies that wait for the thread; each is as large as a ring. */
#define WAITING_MAX 4
/* How long object-del and the end of QEMU wait for a disk */
#define END_MS      5000

struct HtFlights {
    /* constant */
    HypertraceFtrace *ft;       /* not for the thread */
    char *path;                 /* of the object */
    HtFlightPlace place;
    uint32_t silence;
    unsigned most;              /* recordings that nobody asked for */
    unsigned long triggers;     /* bitmap of HypertraceTrigger */
    Notifier shutdown;
    QemuThread thread;

    /* of the object's lock */
    HypertraceTrigger cause;    /* of the shutdown that has begun */
    bool rested;                /* made one since the VM stopped */
    unsigned unasked;
    uint64_t skipped;
    uint64_t heard_events;      /* of all rings, up to now */
    int64_t heard_ns;           /* when there was the last one */
    bool silent;

    QemuMutex lock;             /* all below; inside of the object's */
    QemuCond wake;
    QemuCond ended;
    GQueue waiting;             /* HtFlight, to be written */
    bool quit;
    bool done;                  /* the thread has ended */
    bool detached;              /* the object did not wait for the thread */
    uint64_t made;
};

/* The thread -------------------------------------------------------------- */

/* Write a recording and tell the user; frees @f */
static void write_flight(HtFlights *fl, HtFlight *f)
{
    HypertraceSnapshot *s;

    ht_flight_read(f, COPY_BYTES, 0);
    s = ht_flight_write(f, &fl->place);
    ht_flight_free(f);
    WITH_QEMU_LOCK_GUARD(&fl->lock) {
        fl->made += !s->error;
    }
    qapi_event_send_hypertrace_snapshot(fl->path, s);
    qapi_free_HypertraceSnapshot(s);
}

static void free_flights(HtFlights *fl)
{
    qemu_thread_join(&fl->thread);
    qemu_cond_destroy(&fl->ended);
    qemu_cond_destroy(&fl->wake);
    qemu_mutex_destroy(&fl->lock);
    close(fl->place.fd);
    g_free(fl->place.dir);
    g_free(fl->place.name);
    g_free(fl->place.formats);
    g_free(fl->path);
    g_free(fl);
}

/* Context: BH in main loop */
static void free_detached(void *opaque)
{
    free_flights(opaque);
}

static void *flights_thread(void *opaque)
{
    HtFlights *fl = opaque;

    rcu_register_thread();
    qemu_mutex_lock(&fl->lock);
    while (fl->waiting.length || !fl->quit) {
        HtFlight *f = g_queue_pop_head(&fl->waiting);

        if (!f) {
            qemu_cond_wait(&fl->wake, &fl->lock);
            continue;
        }
        qemu_mutex_unlock(&fl->lock);
        write_flight(fl, f);
        qemu_mutex_lock(&fl->lock);
    }
    fl->done = true;
    qemu_cond_signal(&fl->ended);
    if (fl->detached) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), free_detached, fl);
    }
    qemu_mutex_unlock(&fl->lock);
    rcu_unregister_thread();
    return NULL;
}

/* Have the thread write these; empties @flights.  Context: any */
static void put(HtFlights *fl, GQueue *flights)
{
    HtFlight *f;

    QEMU_LOCK_GUARD(&fl->lock);
    while ((f = g_queue_pop_head(flights))) {
        g_queue_push_tail(&fl->waiting, f);
    }
    qemu_cond_signal(&fl->wake);
}

/* How many more may wait.  Context: any */
static unsigned waiting_room(HtFlights *fl)
{
    QEMU_LOCK_GUARD(&fl->lock);
    return WAITING_MAX - MIN(WAITING_MAX, fl->waiting.length);
}

/* When ------------------------------------------------------------------- */

/*
 * Prepare a recording of the ring of each kernel that runs, in @flights.
 * Context: lock of the object held
 */
static void begin(HtFlights *fl, HypertraceTrigger why, GQueue *flights)
{
    const GPtrArray *rings = fl->ft->rings;
    guint i;

    g_queue_init(flights);
    for (i = 0; i < rings->len; i++) {
        HtFtWatched *w = rings->pdata[i];
        HtFlight *f = w->feed.taken ? ht_flight_new(w, why) : NULL;

        if (f) {
            g_queue_push_tail(flights, f);
        }
    }
}

/* Leave as many as may still be made.  Context: lock of the object held */
static void limit(HtFlights *fl, GQueue *flights)
{
    unsigned left = fl->most - fl->unasked, room = waiting_room(fl);

    if (flights->length > left) {
        warn_report_once("hypertrace: %s makes no more recordings by itself:"
                         " recordings=%u", fl->place.name, fl->most);
    } else if (flights->length > room) {
        warn_report_once("hypertrace: %s makes fewer recordings: %u wait to be"
                         " written to '%s'", fl->place.name, WAITING_MAX - room,
                         fl->place.dir);
    }
    while (flights->length > MIN(left, room)) {
        ht_flight_free(g_queue_pop_tail(flights));
        fl->skipped++;
    }
    fl->unasked += flights->length;
}

/*
 * Copy now, for the memory is about to go: of all rings no more than of one.
 * Context: lock of the object held
 */
static void copy_now(HtFlights *fl, GQueue *flights)
{
    uint64_t left = COPY_BYTES, end = ht_ftrace_cpu_ns() + COPY_NS;
    GList *link = flights->head, *next;

    for (; link; link = next) {
        HtFlight *f = link->data;

        next = link->next;
        if (link->prev && ht_flight_size(f) > left) {
            warn_report_once("hypertrace: %s makes fewer recordings: the rings"
                             " are too large together", fl->place.name);
            ht_flight_free(f);
            g_queue_delete_link(flights, link);
            fl->skipped++;
            continue;
        }
        left -= MIN(left, ht_flight_read(f, left, end));
    }
}

/* Record without a command.  Context: lock of the object held */
static void trigger(HtFlights *fl, HypertraceTrigger why, bool at_once)
{
    GQueue flights;

    begin(fl, why, &flights);
    limit(fl, &flights);
    if (at_once) {
        copy_now(fl, &flights);
    }
    put(fl, &flights);
}

/* Context: BQL, lock of the object held; the VM does not run */
static void stopped(HtFlights *fl, HypertraceTrigger why)
{
    if (fl->triggers & BIT(why)) {
        trigger(fl, why, true);
        fl->rested = true;
    }
}

void ht_flights_stopped(HtFlights *fl, RunState state)
{
    if (!fl) {
        return;
    }
    fl->rested = false;
    switch (state) {
    case RUN_STATE_GUEST_PANICKED:
        stopped(fl, HYPERTRACE_TRIGGER_PANIC);
        break;
    case RUN_STATE_WATCHDOG:
        stopped(fl, HYPERTRACE_TRIGGER_WATCHDOG);
        break;
    case RUN_STATE_INTERNAL_ERROR:
        stopped(fl, HYPERTRACE_TRIGGER_ERROR);
        break;
    case RUN_STATE_SHUTDOWN:
        stopped(fl, fl->cause);
        break;
    default:
        break;
    }
}

void ht_flights_reset(HtFlights *fl, bool was_stopped)
{
    if (fl && !(was_stopped && fl->rested)) {
        stopped(fl, HYPERTRACE_TRIGGER_RESET);
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

/* Context: lock of the object held */
static bool became_silent(HtFlights *fl)
{
    const HypertraceFtrace *ft = fl->ft;
    int64_t ns = get_clock();
    uint64_t events = 0;
    guint i;

    for (i = 0; i < ft->rings->len; i++) {
        HtFtWatched *w = ft->rings->pdata[i];

        if (w->feed.taken) {
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
    if (fl->silent || !fl->silence ||
        ns - fl->heard_ns < fl->silence * NANOSECONDS_PER_SECOND) {
        return false;
    }
    fl->silent = true;
    return true;
}

void ht_flights_looked(HtFlights *fl, bool all)
{
    if (fl && !all) {
        fl->heard_ns = get_clock();     /* who does not listen hears nothing */
    } else if (fl && became_silent(fl)) {
        trigger(fl, HYPERTRACE_TRIGGER_SILENCE, false);
    }
}

unsigned ht_flights_ask(HtFlights *fl, Error **errp)
{
    unsigned room = waiting_room(fl), count;
    GQueue flights;

    begin(fl, HYPERTRACE_TRIGGER_COMMAND, &flights);
    count = flights.length;
    if (!count) {
        error_setg(errp, "%s: no ring that changes was found in the guest's"
                   " memory", fl->place.name);
    } else if (count > room) {
        error_setg(errp, "%s: %u recordings wait to be written to '%s'; wait"
                   " for the event HYPERTRACE_SNAPSHOT and try again",
                   fl->place.name, WAITING_MAX - room, fl->place.dir);
        g_queue_clear_full(&flights, (GDestroyNotify)ht_flight_free);
        return 0;
    }
    put(fl, &flights);
    return count;
}

void ht_flights_count(HtFlights *fl, uint64_t *made, uint64_t *skipped)
{
    *made = *skipped = 0;
    if (fl) {
        QEMU_LOCK_GUARD(&fl->lock);
        *made = fl->made;
        *skipped = fl->skipped;
    }
}

/* The recorder ------------------------------------------------------------ */

static bool parse_triggers(HtFlights *fl, const char *text, Error **errp)
{
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

HtFlights *ht_flights_new(HypertraceFtrace *ft, Error **errp)
{
    const HtFlightOptions *o = &ft->flight_options;
    HtFlights *fl = g_new0(HtFlights, 1);
    int fd = -1;

    if (!parse_triggers(fl, o->triggers ?: TRIGGERS, errp)) {
        g_free(fl);
        return NULL;
    }
    if (g_mkdir_with_parents(o->dir, 0700)) {
        error_setg_errno(errp, errno, "flight=%s cannot be made", o->dir);
    } else {
        fd = qemu_open(o->dir, O_RDONLY | O_DIRECTORY, errp);
    }
    if (fd < 0) {
        g_free(fl);
        return NULL;
    }
    fl->ft = ft;
    fl->path = object_get_canonical_path(OBJECT(ft));
    fl->place = (HtFlightPlace) {
        .dir = g_strdup(o->dir),
        .fd = fd,
        .name = g_strdup(ft->trace->name),
        .formats = g_strdup(ft->formats_text),
        .poll_ms = ft->poll_ms,
    };
    fl->silence = o->silence;
    fl->most = o->limit;
    fl->cause = HYPERTRACE_TRIGGER_SHUTDOWN;
    g_queue_init(&fl->waiting);
    qemu_mutex_init(&fl->lock);
    qemu_cond_init(&fl->wake);
    qemu_cond_init(&fl->ended);
    fl->shutdown.notify = shutdown_begins;
    qemu_register_shutdown_notifier(&fl->shutdown);
    qemu_thread_create(&fl->thread, "ht-flight", flights_thread, fl,
                       QEMU_THREAD_JOINABLE);
    return fl;
}

/*
 * End the thread once it has written what waits.
 *
 * Returns: false if a disk hangs; then the thread frees @fl later
 */
static bool end_thread(HtFlights *fl)
{
    int64_t end = get_clock() + END_MS * (int64_t)SCALE_MS, left;

    QEMU_LOCK_GUARD(&fl->lock);
    fl->quit = true;
    qemu_cond_signal(&fl->wake);
    while (!fl->done) {
        left = end - get_clock();
        if (left <= 0) {
            fl->detached = true;
            return false;
        }
        qemu_cond_timedwait(&fl->ended, &fl->lock, left / SCALE_MS + 1);
    }
    return true;
}

void ht_flights_free(HtFlights *fl)
{
    g_autofree char *name = NULL;

    if (!fl) {
        return;
    }
    notifier_remove(&fl->shutdown);
    name = g_strdup(fl->place.name);
    if (!end_thread(fl)) {
        warn_report("hypertrace: recordings of '%s' are not written yet. They"
                    " will be unless QEMU ends before", name);
        return;
    }
    free_flights(fl);
}
