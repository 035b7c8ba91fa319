/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a flight recorder, of the ring that a guest keeps anyway
 *
 * Its thread writes, and waits for nobody but the disk: the ring is followed
 * meanwhile.  It uses nothing of the object, which may go before it does.
 */
#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-events-hypertrace.h"
#include "qapi/qapi-visit-hypertrace.h"
#include "qapi/util.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "system/runstate.h"
#include "hypertrace/trigger.h"
#include "ending.h"
#include "ftrace.h"
#include "ftrace-recording.h"

#define TRIGGERS "panic:reset:watchdog:error:event"

/* What is copied at most, of all rings together */
#define COPY_BYTES  (256 * MiB)
/* Copies that wait for the thread; each is as large as a ring. */
#define WAITING_MAX 4
/* How long the end of QEMU waits for a disk */
#define END_MS      5000

/* Recordings that are to be made together */
typedef struct Job {
    GQueue flights;             /* HtFlight */
    uint64_t asked;             /* number of who asked, or 0 */
} Job;

struct HtFlights {
    /* constant */
    HypertraceFtrace *ft;       /* not for the thread */
    char *path;                 /* of the object */
    HtFlightPlace place;
    uint32_t silence;
    unsigned most;              /* recordings that nobody asked for */
    unsigned long triggers;     /* bitmap of HypertraceTrigger */
    Notifier shutdown;
    Notifier event;
    QemuThread thread;

    /* of the object's lock */
    HypertraceTrigger cause;    /* of the shutdown that has begun */
    bool rested;                /* made one since the VM stopped */
    unsigned unasked;
    uint64_t skipped;
    uint64_t asked;
    uint64_t heard_events;      /* of all rings, up to now */
    int64_t heard_ns;           /* when there was the last one */
    bool silent;

    QemuMutex lock;             /* all below; inside of the object's */
    QemuCond wake;
    QemuCond ended;
    GQueue jobs;                /* Job */
    unsigned waiting;           /* recordings in them that nobody asked for */
    bool quit;
    bool done;                  /* the thread is */
    uint64_t made;
    uint64_t answered;
    HypertraceSnapshotList *answer;
};

/* The thread -------------------------------------------------------------- */

static void free_job(Job *job)
{
    HtFlight *f;

    while ((f = g_queue_pop_head(&job->flights))) {
        ht_flight_free(f);
    }
    g_free(job);
}

/* Make one and tell; frees @f */
static HypertraceSnapshot *write_flight(HtFlights *fl, HtFlight *f)
{
    HypertraceSnapshot *s;

    ht_flight_read(f, COPY_BYTES);
    s = ht_flight_write(f, &fl->place);
    ht_flight_free(f);
    WITH_QEMU_LOCK_GUARD(&fl->lock) {
        fl->made += !s->error;
    }
    qapi_event_send_hypertrace_snapshot(fl->path, s);
    return s;
}

/* Frees @job.  What is returned is the caller's. */
static HypertraceSnapshotList *write_job(HtFlights *fl, Job *job)
{
    HypertraceSnapshotList *list = NULL, **tail = &list;
    HtFlight *f;

    while ((f = g_queue_pop_head(&job->flights))) {
        HypertraceSnapshot *s = write_flight(fl, f);

        QAPI_LIST_APPEND(tail, s);
    }
    free_job(job);
    return list;
}

static void *flights_thread(void *opaque)
{
    HtFlights *fl = opaque;

    rcu_register_thread();
    qemu_mutex_lock(&fl->lock);
    while (fl->jobs.length || !fl->quit) {
        Job *job = g_queue_pop_head(&fl->jobs);
        HypertraceSnapshotList *list;
        uint64_t asked;

        if (!job) {
            qemu_cond_wait(&fl->wake, &fl->lock);
            continue;
        }
        asked = job->asked;
        fl->waiting -= asked ? 0 : job->flights.length;
        qemu_mutex_unlock(&fl->lock);
        list = write_job(fl, job);
        qemu_mutex_lock(&fl->lock);
        if (asked) {
            /* Until now an earlier one may have had its answer fetched. */
            qapi_free_HypertraceSnapshotList(fl->answer);
            fl->answer = list;
            fl->answered = asked;
        } else {
            qapi_free_HypertraceSnapshotList(list);
        }
    }
    fl->done = true;
    qemu_cond_signal(&fl->ended);
    qemu_mutex_unlock(&fl->lock);
    rcu_unregister_thread();
    return NULL;
}

/* Context: any */
static void put_job(HtFlights *fl, Job *job)
{
    QEMU_LOCK_GUARD(&fl->lock);
    fl->waiting += job->asked ? 0 : job->flights.length;
    g_queue_push_tail(&fl->jobs, job);
    qemu_cond_signal(&fl->wake);
}

/* When ------------------------------------------------------------------- */

/* The ring of each kernel that runs.  Context: lock of the object held */
static Job *new_job(HtFlights *fl, HypertraceTrigger why, const char *event)
{
    const GPtrArray *rings = fl->ft->rings;
    Job *job = g_new0(Job, 1);
    guint i;

    for (i = 0; i < rings->len; i++) {
        HtFtWatched *w = rings->pdata[i];
        HtFlight *f = w->feed.taken ? ht_flight_new(w, why, event) : NULL;

        if (f) {
            g_queue_push_tail(&job->flights, f);
        }
    }
    if (why != HYPERTRACE_TRIGGER_EVENT) {
        /* who listens has heard of an event */
        ht_trigger_other();
    }
    return job;
}

/* Leave as many as may still be made.  Context: lock of the object held */
static void limit(HtFlights *fl, Job *job)
{
    unsigned left = fl->most - fl->unasked, waiting, room;

    WITH_QEMU_LOCK_GUARD(&fl->lock) {
        waiting = fl->waiting;
    }
    room = WAITING_MAX - MIN(WAITING_MAX, waiting);
    if (job->flights.length > left) {
        warn_report_once("hypertrace: %s makes no more recordings by itself:"
                         " recordings=%u", fl->place.name, fl->most);
    } else if (job->flights.length > room) {
        warn_report_once("hypertrace: %s makes fewer recordings: %u wait to be"
                         " written to '%s'", fl->place.name, waiting,
                         fl->place.dir);
    }
    while (job->flights.length > MIN(left, room)) {
        ht_flight_free(g_queue_pop_tail(&job->flights));
        fl->skipped++;
    }
    fl->unasked += job->flights.length;
}

/*
 * Copy now, for the memory is about to go: of all rings no more than of one.
 * Context: lock of the object held
 */
static void copy_now(HtFlights *fl, Job *job)
{
    uint64_t left = COPY_BYTES;
    GList *link = job->flights.head, *next;

    for (; link; link = next) {
        HtFlight *f = link->data;

        next = link->next;
        if (link->prev && ht_flight_size(f) > left) {
            warn_report_once("hypertrace: %s makes fewer recordings: the rings"
                             " are too large together", fl->place.name);
            ht_flight_free(f);
            g_queue_delete_link(&job->flights, link);
            fl->skipped++;
            continue;
        }
        left -= MIN(left, ht_flight_read(f, left));
    }
}

/* Nobody asked for these.  Context: lock of the object held */
static void trigger(HtFlights *fl, HypertraceTrigger why, const char *event,
                    bool at_once)
{
    Job *job = new_job(fl, why, event);

    limit(fl, job);
    if (at_once) {
        copy_now(fl, job);
    }
    put_job(fl, job);
}

/* Context: BQL, lock of the object held; the VM does not run */
static void stopped(HtFlights *fl, HypertraceTrigger why)
{
    if (fl->triggers & BIT(why)) {
        trigger(fl, why, NULL, true);
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
        trigger(fl, HYPERTRACE_TRIGGER_SILENCE, NULL, false);
    }
}

/* Context: BQL */
static void event_seen(Notifier *n, void *data)
{
    HtFlights *fl = container_of(n, HtFlights, event);
    const HtTriggerEvent *ev = data;

    if (ev && fl->triggers & BIT(HYPERTRACE_TRIGGER_EVENT) &&
        !ht_ftrace_is_elsewhere()) {
        g_autofree char *event = g_strdup_printf("%s of %s", ev->class,
                                                 ev->device);

        ht_ftrace_lock(fl->ft);
        trigger(fl, HYPERTRACE_TRIGGER_EVENT, event, false);
        qemu_mutex_unlock(&fl->ft->lock);
    }
}

uint64_t ht_flights_ask(HtFlights *fl)
{
    Job *job = new_job(fl, HYPERTRACE_TRIGGER_COMMAND, NULL);

    job->asked = ++fl->asked;
    put_job(fl, job);
    return fl->asked;
}

bool ht_flights_answer(HtFlights *fl, uint64_t number,
                       HypertraceSnapshotList **list)
{
    QEMU_LOCK_GUARD(&fl->lock);
    if (fl->answered < number) {
        return false;
    }
    *list = QAPI_CLONE(HypertraceSnapshotList, fl->answer);
    return true;
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
                       " panic, reset, watchdog, error, shutdown and event",
                       text,
                       names[i]);
            return false;
        }
        fl->triggers |= BIT(t);
    }
    return true;
}

static void free_flights(HtFlights *fl)
{
    qapi_free_HypertraceSnapshotList(fl->answer);
    g_free(fl->place.dir);
    g_free(fl->place.name);
    g_free(fl->place.formats);
    g_free(fl->path);
    g_free(fl);
}

HtFlights *ht_flights_new(HypertraceFtrace *ft, Error **errp)
{
    const HtFlightOptions *o = &ft->flight_options;
    HtFlights *fl = g_new0(HtFlights, 1);

    if (!parse_triggers(fl, o->triggers ?: TRIGGERS, errp)) {
        g_free(fl);
        return NULL;
    }
    if (g_mkdir_with_parents(o->dir, 0700)) {
        error_setg_errno(errp, errno, "flight=%s cannot be made", o->dir);
        g_free(fl);
        return NULL;
    }
    fl->ft = ft;
    fl->path = object_get_canonical_path(OBJECT(ft));
    fl->place = (HtFlightPlace) {
        .dir = g_strdup(o->dir),
        .name = g_strdup(ft->trace->name),
        .formats = g_strdup(ft->formats_text),
        .poll_ms = ft->poll_ms,
    };
    fl->silence = o->silence;
    fl->most = o->limit;
    fl->cause = HYPERTRACE_TRIGGER_SHUTDOWN;
    g_queue_init(&fl->jobs);
    qemu_mutex_init(&fl->lock);
    qemu_cond_init(&fl->wake);
    qemu_cond_init(&fl->ended);
    fl->shutdown.notify = shutdown_begins;
    qemu_register_shutdown_notifier(&fl->shutdown);
    fl->event.notify = event_seen;
    ht_trigger_listen(&fl->event);
    qemu_thread_create(&fl->thread, "ht-flight", flights_thread, fl,
                       QEMU_THREAD_JOINABLE);
    return fl;
}

/* Whether the thread ended; in the end of QEMU not for ever */
static bool end_thread(HtFlights *fl)
{
    int64_t end = get_clock() + END_MS * (int64_t)SCALE_MS, left;

    QEMU_LOCK_GUARD(&fl->lock);
    fl->quit = true;
    qemu_cond_signal(&fl->wake);
    while (!fl->done) {
        left = end - get_clock();
        if (!ht_qemu_ends()) {
            qemu_cond_wait(&fl->ended, &fl->lock);
        } else if (left > 0) {
            qemu_cond_timedwait(&fl->ended, &fl->lock, left / SCALE_MS + 1);
        } else {
            return false;
        }
    }
    return true;
}

void ht_flights_free(HtFlights *fl)
{
    if (!fl) {
        return;
    }
    notifier_remove(&fl->shutdown);
    notifier_remove(&fl->event);
    if (!end_thread(fl)) {
        /* it goes on with what is its own, until there is no QEMU */
        error_report("hypertrace: QEMU ends before all recordings of '%s' are"
                     " written", fl->place.name);
        return;
    }
    qemu_thread_join(&fl->thread);
    qemu_cond_destroy(&fl->ended);
    qemu_cond_destroy(&fl->wake);
    qemu_mutex_destroy(&fl->lock);
    free_flights(fl);
}
