/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: flight recorder of a guest's ftrace ring
 *
 * Its thread writes the files and waits only for the disk; the ring is polled
 * meanwhile.  It does not use the object, which may be freed first.
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
 * Limits of copying all rings: bytes, and CPU time while the BQL is held
 */
#define COPY_BYTES  (256 * MiB)
#define COPY_NS     (2 * (uint64_t)NANOSECONDS_PER_SECOND)
/* Maximum number of copies that wait for the thread, each as large as a ring */
#define WAITING_MAX 4
/* Maximum wait of object-del and of QEMU's exit for a disk, in ms */
#define END_MS      5000

struct HtFlights {
    /* constant */
    HypertraceFtrace *ft;       /* the thread must not use it */
    char *path;                 /* QOM path of the object */
    HtFlightPlace place;
    uint32_t silence;
    unsigned most;              /* maximum number of recordings by triggers */
    unsigned long triggers;     /* bitmap of HypertraceTrigger */
    Notifier shutdown;
    QemuThread thread;

    /* protected by the object's lock */
    HypertraceTrigger cause;    /* reason of the shutdown that has begun */
    bool rested;                /* a recording was made since the VM stopped */
    unsigned unasked;           /* recordings by triggers so far */
    uint64_t skipped;
    uint64_t heard_events;      /* events of all rings so far */
    int64_t heard_ns;           /* time of the last event */
    bool silent;

    QemuMutex lock;             /* for all below; taken inside the object's */
    QemuCond wake;
    QemuCond ended;
    GQueue waiting;             /* HtFlight to write */
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

/* Queue recordings for the thread; empties @flights.  Context: any */
static void put(HtFlights *fl, GQueue *flights)
{
    HtFlight *f;

    QEMU_LOCK_GUARD(&fl->lock);
    while ((f = g_queue_pop_head(flights))) {
        g_queue_push_tail(&fl->waiting, f);
    }
    qemu_cond_signal(&fl->wake);
}

/* Number of recordings that may be queued.  Context: any */
static unsigned waiting_room(HtFlights *fl)
{
    QEMU_LOCK_GUARD(&fl->lock);
    return WAITING_MAX - MIN(WAITING_MAX, fl->waiting.length);
}

/* Triggers ---------------------------------------------------------------- */

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

/* Drop recordings beyond the limits.  Context: lock of the object held */
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
 * Copy now, because the memory is about to go.  The limits are those of one
 * ring for all rings.  Context: lock of the object held
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
 * Note why QEMU stops the VM, which it does next.  This is the only place that
 * sees a panic that ends QEMU.
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
        fl->heard_ns = get_clock();     /* not polled: no silence */
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
 * End the thread after it has written all queued recordings.
 *
 * Returns: false if a disk hangs; the thread frees @fl later then
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
