/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: choose the stream for an event of ht_trace()
 *
 * A program may emit an event in a signal handler, inside an allocator, or
 * between a call that fails and its check of errno.  For this reason no
 * function that an event calls waits long for a lock, allocates from a heap, or
 * changes errno.
 *
 * Abandoned events: a signal handler that calls siglongjmp() in the middle of
 * an event leaves the stream busy.  While the handler runs, the library cannot
 * know whether it will return, so that the event is finished.  So a stream that
 * is busy without progress is retired instead of reset.  Private pages replace
 * its ring: the driver delivers the committed events and frees the device's
 * stream.
 * If the event is finished after all, it is written to the private pages and is
 * lost.  So the structure of a retired stream is not reused before its thread
 * ends; may_retire() makes an exception.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "linux-process.h"
#include "linux-sys.h"

#define RETIRED_MAX     64
#define SHARED          (-1)
#define SPINS           2000

/* Limits after which a stream that is busy without progress is retired */
#define STUCK_EVENTS    64
#define STUCK_MS        100

/*
 * Value set by ht_trace_stamps() or HYPERTRACE_STAMPS, for streams opened
 * later; 0 means 1
 */
static uint32_t stamps;
static pthread_key_t thread_end;
static bool thread_end_works;

/*
 * Event in the shared stream: the events after it are of the thread @tid, until
 * the next event of this class
 */
HT_EVENT_NAMED(context, "hypertrace.thread", (s32, tid), (text, comm));

static void get_comm(char comm[17])
{
    unsigned i;

    comm[0] = comm[16] = '\0';
    ht_sys(__NR_prctl, PR_GET_NAME, (long)comm, 0, 0, 0, 0);
    for (i = 0; comm[i]; i++) {
        if (comm[i] < ' ' || comm[i] > '~') {
            comm[i] = '?';      /* a stream's name is printable ASCII */
        }
    }
}

/*
 * Return the time in ms, never 0, by the coarse clock, which is read without a
 * system call
 */
static uint64_t now_ms(void)
{
    struct timespec t = { 0, 0 };

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}

/*
 * Return the time of the next attempt of an operation that has failed.  If a
 * host does not answer, a thread waits for it at most 1/17 of its time.
 */
static uint64_t next_try(uint64_t begun)
{
    const uint64_t now = now_ms(), pause = (now - begun) * 16;

    return now + (pause > HT_TRACE_RETRY_MS ? pause : HT_TRACE_RETRY_MS);
}

static bool may_try(uint64_t at)
{
    return !at || now_ms() >= at;
}

static bool is_of(const struct process *p, const struct thread_stream *t)
{
    return t >= p->threads && t < p->threads + THREADS_MAX;
}

static void missed(struct process *p)
{
    __atomic_fetch_add(&p->missed, 1, __ATOMIC_RELAXED);
}

/* Report p->missed to the host in a message */
static void report_missed(struct process *p)
{
    uint64_t n = __atomic_exchange_n(&p->missed, 0, __ATOMIC_RELAXED);

    if (n && !ht_trace_report(n)) {
        __atomic_fetch_add(&p->missed, n, __ATOMIC_RELAXED);
    }
}

/* Streams ------------------------------------------------------------------ */

/* Check if a thread of @p has ended, also if called in a child of vfork() */
static bool is_gone(const struct process *p, int tid)
{
    return ht_sys_thread_exists(p->pid, tid) == -ESRCH;
}

/*
 * Report the discarded events of @t and of p->missed in the count of @t.  If
 * the stream is not open, add its discarded events to p->missed instead.
 *
 * Context: the stream's producer, @busy set
 */
static void tell_discarded(struct process *p, struct thread_stream *t)
{
    uint64_t lost;

    if (t->s.slow && !ht_is_closed(&t->s)) {
        t->s.lost += __atomic_exchange_n(&p->missed, 0, __ATOMIC_RELAXED);
        ht_publish_lost(&t->s);
    }
    /* The stream may have been closed before the host could get the count. */
    lost = t->s.lost + ht_load_relaxed(&t->s.lost_nested);
    __atomic_fetch_add(&p->missed, lost - t->s.told, __ATOMIC_RELAXED);
    /* Store @told after the count.  Pairs with ht_trace_discarded(). */
    __atomic_store_n(&t->s.told, lost, __ATOMIC_RELEASE);
}

/*
 * Report the discarded events of @t as tell_discarded() does.  If the stream is
 * busy, its event will not be finished: the event was abandoned, or the program
 * is exiting.
 *
 * Context: signals are blocked
 */
static void tell_stream(struct process *p, struct thread_stream *t)
{
    t->s.busy = 1;
    ht_compiler_barrier();
    tell_discarded(p, t);
    ht_compiler_barrier();
    t->s.busy = 0;
}

/*
 * Close a stream: when its last mapping is removed, the driver delivers the
 * committed events.  A signal handler that interrupts this function finds the
 * stream busy.
 */
static void close_stream(struct process *p, struct thread_stream *t)
{
    t->s.busy = 1;
    ht_compiler_barrier();
    tell_discarded(p, t);
    t->s.cur = NULL;
    t->s.end = NULL;
    t->s.slow = NULL;
    ht_node_unmap(&t->map);
    t->retired = 0;
    ht_compiler_barrier();
    t->s.busy = 0;
}

static struct thread_stream *claim(struct process *p, int tid)
{
    unsigned i;

    for (i = 0; i < THREADS_MAX; i++) {
        struct thread_stream *t = &p->threads[i];
        int owner = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

        /*
         * The stream is of an earlier thread with the id @tid, which has ended,
         * or may_retire() has closed this stream of the calling thread.
         */
        if (owner == tid && tid > 0 && !t->retired) {
            close_stream(p, t);
            return t;
        }
        if (owner == 0 &&
            __atomic_compare_exchange_n(&t->owner, &owner, tid, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return t;
        }
    }
    return NULL;
}

/* Close and free the streams of threads that have ended; returns the number */
static unsigned reclaim(struct process *p)
{
    unsigned i, n = 0;

    for (i = 0; i < THREADS_MAX; i++) {
        struct thread_stream *t = &p->threads[i];
        int owner = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

        if (owner > 0 && is_gone(p, owner) &&
            __atomic_compare_exchange_n(&t->owner, &owner, SHARED, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            close_stream(p, t);
            __atomic_store_n(&t->owner, 0, __ATOMIC_RELEASE);
            n++;
        }
    }
    return n;
}

static int open_stream(struct process *p, struct thread_stream *t)
{
    struct ht_stream_params params = {
        .stream = HT_STREAM_ANY,
        .vcpu = -1,
        .stamps = __atomic_load_n(&stamps, __ATOMIC_RELAXED),
    };
    char comm[17], name[HT_STREAM_NAME_MAX + 1];
    int r;

    close_stream(p, t);
    get_comm(comm);
    ht_trace_name(name, comm, t->owner);
    params.name = name;
    r = ht_trace_open(&t->s, &t->map, &params);
    if (r == -EBUSY && reclaim(p)) {
        r = ht_trace_open(&t->s, &t->map, &params);
    }
    if (r == 0) {
        t->s.lost = __atomic_exchange_n(&p->missed, 0, __ATOMIC_RELAXED);
    }
    return r;
}

/*
 * Open the shared stream as soon as two threads had a stream.  Later threads
 * use it if the device has no free stream for them.  If the device has none for
 * the shared stream either, @t becomes the shared one, unless @used is true:
 * then a program may have a pointer to the stream of @t.
 *
 * Return: true if the stream of @t became the shared one.
 */
static bool open_shared(struct process *p, struct thread_stream *t, bool used)
{
    struct thread_stream *shared;

    if (__atomic_load_n(&p->threads_seen, __ATOMIC_RELAXED) < 2 ||
        __atomic_exchange_n(&p->sharing, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
    shared = claim(p, SHARED);
    if (shared && open_stream(p, shared)) {
        __atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
        shared = NULL;
    }
    if (!shared && used) {
        __atomic_store_n(&p->sharing, 0, __ATOMIC_RELEASE);
        return false;
    }
    if (!shared) {
        shared = t;
        t->owner = SHARED;
    }
    __atomic_store_n(&p->shared, shared, __ATOMIC_RELEASE);
    return shared == t;
}

/* Context: between ht_trace_begin_opening() and ht_trace_end_opening() */
static bool open_own(struct process *p)
{
    struct thread_stream *t = ht_self.own;
    bool used;

    if (!t) {
        t = claim(p, ht_self.tid);
        if (!t && reclaim(p)) {
            t = claim(p, ht_self.tid);
        }
        if (!t) {
            return false;
        }
        ht_self.own = t;
        t->used = false;
        if (thread_end_works) {
            pthread_setspecific(thread_end, t);
        }
    }
    if (open_stream(p, t)) {
        return false;
    }
    used = t->used;
    t->used = true;
    if (!used) {
        __atomic_fetch_add(&p->threads_seen, 1, __ATOMIC_RELAXED);
    }
    if (open_shared(p, t, used)) {
        ht_self.own = NULL;
        return false;
    }
    return true;
}

/*
 * Close the streams of the calling thread, which ends; a key destructor.  If a
 * stream is busy, its event was abandoned.  Later destructors may emit events,
 * which are discarded.  The streams keep their @owner until reclaim() or
 * claim().
 */
static void end_thread(void *opaque)
{
    struct process *p = ht_this_process();
    unsigned i;

    (void)opaque;
    if (!p || ht_self.tid <= 0) {
        return;
    }
    ht_self.ended = true;
    for (i = 0; i < THREADS_MAX; i++) {
        if (p->threads[i].owner == ht_self.tid) {
            close_stream(p, &p->threads[i]);
        }
    }
}

/* Abandoned events --------------------------------------------------------- */

static uint64_t progress(const struct thread_stream *t)
{
    return ht_load_relaxed(&t->s.events) + ht_load_relaxed(&t->s.lost);
}

/*
 * Test whether @t has been busy without progress for STUCK_MS, or while this
 * thread has discarded @events events
 */
static bool is_stuck(const struct thread_stream *t, unsigned events)
{
    const uint64_t mark = progress(t);

    if (ht_self.stuck != t || ht_self.stuck_mark != mark) {
        ht_self.stuck = t;
        ht_self.stuck_mark = mark;
        ht_self.stuck_since = now_ms();
        ht_self.stuck_events = 0;
        return false;
    }
    return ++ht_self.stuck_events >= events ||
           now_ms() - ht_self.stuck_since >= STUCK_MS;
}

/*
 * If RETIRED_MAX streams of the process are retired, close the oldest of those
 * whose event is of this thread, so that it can be reused.  Its event was
 * almost certainly abandoned: otherwise signal handlers are nested as deep as
 * the thread has retired streams.
 *
 * Return: true if the caller may retire another stream.
 */
static bool may_retire(struct process *p)
{
    struct thread_stream *oldest = NULL;
    unsigned i, n = 0;

    for (i = 0; i < THREADS_MAX; i++) {
        struct thread_stream *t = &p->threads[i];

        n += t->retired != 0;
        if (t->retired && t->owner == ht_self.tid &&
            (!oldest || t->retired < oldest->retired)) {
            oldest = t;
        }
    }
    if (n < RETIRED_MAX) {
        return true;
    }
    if (oldest) {
        /* the stream is no longer retired, so claim() can return it */
        close_stream(p, oldest);
    }
    return oldest;
}

/*
 * Retire @t.  @mine: its event is of this thread; otherwise the thread of the
 * event reports the discarded events of @t later.
 *
 * Return: true if @t was retired.
 */
static bool retire(struct process *p, struct thread_stream *t, bool mine)
{
    bool done = false;
    uint64_t mask;

    if (!ht_trace_begin_opening(&mask)) {
        return false;
    }
    if (may_retire(p)) {
        if (mine) {
            tell_discarded(p, t);
        }
        done = ht_node_map_private(&t->map);
    }
    if (done) {
        t->retired = __atomic_add_fetch(&p->retirements, 1, __ATOMIC_RELAXED);
        if (ht_self.own == t) {
            ht_self.own = NULL;
        }
        ht_self.retry_at = 0;
        ht_self.stuck = NULL;
    }
    ht_trace_end_opening(&mask);
    return done;
}

/* The shared stream -------------------------------------------------------- */

static void release_shared(struct thread_stream *t)
{
    __atomic_store_n(&t->holder, 0, __ATOMIC_RELEASE);
}

static bool hold_shared(struct process *p, struct thread_stream *t)
{
    /* Spin less often if the stream was busy at the last attempt as well. */
    const unsigned most = ht_self.stuck == t &&
                          ht_self.stuck_mark == progress(t) ? 100 : SPINS;
    unsigned spins;
    int none = 0;

    for (spins = 0; !__atomic_compare_exchange_n(&t->holder, &none, ht_self.tid,
                                                 false, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED); spins++) {
        if (none != ht_self.tid && spins == most && is_gone(p, none)) {
            /* The holder has ended without finishing its event. */
            __atomic_compare_exchange_n(&t->holder, &none, 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        /*
         * This thread holds the stream: a signal handler runs during its event,
         * or has left the event by longjmp().  Do not wait: the event cannot
         * end now.
         */
        if (none == ht_self.tid || spins == most) {
            return false;
        }
        none = 0;
        if (spins % 100 == 99) {
            ht_sys_yield();
        }
    }
    return true;
}

/*
 * Retire the shared stream if its holder seems to have abandoned an event.  If
 * the holder is this thread, test how long the stream has been busy, and how
 * many events this thread has discarded since.  If the holder is another
 * thread, which may be waiting for a processor, test the time only.
 */
static void retire_shared(struct process *p, struct thread_stream *t,
                          int holder)
{
    const bool mine = holder == ht_self.tid;
    struct thread_stream *expected = t;

    if (!holder || !is_stuck(t, mine ? STUCK_EVENTS : UINT_MAX) ||
        !__atomic_compare_exchange_n(&p->shared, &expected, NULL, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return;
    }
    if (!retire(p, t, mine)) {
        __atomic_store_n(&p->shared, t, __ATOMIC_RELEASE);
        return;
    }
    t->owner = holder;
    __atomic_store_n(&p->sharing, 0, __ATOMIC_RELEASE);
}

static struct ht_stream *take_shared(struct process *p)
{
    struct thread_stream *t = __atomic_load_n(&p->shared, __ATOMIC_ACQUIRE);
    uint64_t mask, begun;
    char comm[17];

    if (!t) {
        missed(p);
        return NULL;
    }
    if (!hold_shared(p, t)) {
        missed(p);
        retire_shared(p, t, __atomic_load_n(&t->holder, __ATOMIC_RELAXED));
        return NULL;
    }
    if (!t->s.slow) {
        t->last = 0;
        if (may_try(t->retry_at) && ht_trace_begin_opening(&mask)) {
            begun = now_ms();
            t->retry_at = open_stream(p, t) ? next_try(begun) : 0;
            if (t->retry_at) {
                tell_stream(p, t);
                report_missed(p);
            }
            ht_trace_end_opening(&mask);
        }
        if (!t->s.slow) {
            t->s.lost++;
            release_shared(t);
            return NULL;
        }
    }
    if (t->last != ht_self.tid && ht_class_context.id) {
        get_comm(comm);
        t->last = 0;
        if (!ht_emit_context(&t->s, ht_self.tid, comm)) {
            /*
             * The event "context" was discarded: discard the caller's event as
             * well, because readers would take it for another thread's.  The
             * two events together count as one discarded event.
             */
            release_shared(t);
            return NULL;
        }
        t->last = ht_self.tid;
    }
    return &t->s;
}

/* For ht_trace() ----------------------------------------------------------- */

/*
 * Look for a device again, if it is time, because an earlier search found no
 * device or its host did not answer.
 *
 * Return: true if the classes are registered now.
 */
static bool attach(struct process *p)
{
    uint64_t mask, begun;
    int r;

    if (!may_try(__atomic_load_n(&p->attach_at, __ATOMIC_RELAXED)) ||
        !ht_trace_begin_opening(&mask)) {
        return false;
    }
    begun = now_ms();
    r = ht_trace_attach();
    if (r && r != -EAGAIN) {
        __atomic_store_n(&p->attach_at, next_try(begun), __ATOMIC_RELAXED);
    }
    ht_trace_end_opening(&mask);
    ht_trace_debug();
    return r == 0;
}

static struct ht_stream *begin(struct ht_stream **slot,
                               const struct ht_class *cls)
{
    struct process *p = ht_this_process();
    uint64_t mask, begun;
    bool open, wanted;

    if (!p) {
        return NULL;
    }
    if (ht_unlikely(!ht_trace_attached())) {
        if (!attach(p) && ht_trace_had_device()) {
            /* count the event as discarded: the host may want it */
            missed(p);
            return NULL;
        }
        if (!cls->id || !ht_event_is_on(cls)) {
            return NULL;
        }
    }
    if (ht_self.opening || ht_self.ended) {
        missed(p);
        return NULL;
    }
    open = ht_self.own && ht_self.own->s.slow;
    wanted = !open && may_try(ht_self.retry_at);
    if ((wanted || !ht_self.tid) && ht_sys_getpid() != p->pid) {
        /* This is a child of vfork(), which shares its parent's memory. */
        missed(p);
        return NULL;
    }
    if (!ht_self.tid) {
        ht_self.tid = ht_sys_gettid();
    }
    if (ht_self.tid <= 0) {
        ht_self.tid = 0;
        missed(p);
        return NULL;
    }
    if (wanted && ht_trace_begin_opening(&mask)) {
        begun = now_ms();
        open = open_own(p);
        if (!open && !__atomic_load_n(&p->shared, __ATOMIC_RELAXED)) {
            report_missed(p);
        }
        ht_self.retry_at = open ? 0 : next_try(begun);
        ht_trace_end_opening(&mask);
        if (!open) {
            ht_trace_debug();
        }
    }
    /*
     * Test again: a class without an id is on, and opening the stream may have
     * registered the class with a host that does not want it.
     */
    if (!ht_event_is_on(cls)) {
        return NULL;
    }
    if (!open) {
        return take_shared(p);
    }
    *slot = &ht_self.own->s;
    return &ht_self.own->s;
}

/*
 * Get another stream for an event that was discarded because @t is closed or
 * retired.  A thread replaces a stream of this process at most once in a
 * millisecond: the other stream may be closed as well, and the event would move
 * on without end.
 */
static struct ht_stream *another(struct process *p,
                                 struct ht_stream **slot,
                                 struct thread_stream *t,
                                 const struct ht_class *cls)
{
    const uint64_t now = now_ms();

    *slot = NULL;
    if (ht_self.another_at == now && is_of(p, t)) {
        return NULL;
    }
    ht_self.another_at = now;
    /*
     * Uncount the event, because another stream may take it.  If there is no
     * other stream, begin() counts the event again if the host still wants it.
     */
    if (t->s.busy) {
        __atomic_fetch_sub(&t->s.lost_nested, 1, __ATOMIC_RELAXED);
    } else {
        t->s.lost--;
    }
    return begin(slot, cls);
}

static struct ht_stream *end(struct ht_stream **slot, struct ht_stream *s,
                             const struct ht_class *cls, bool done)
{
    struct thread_stream *t = (struct thread_stream *)s;
    struct process *p = ht_this_process();

    if (!p) {
        return NULL;
    }
    if (!is_of(p, t)) {
        *slot = NULL;           /* the stream belongs to a parent process */
        return done ? NULL : another(p, slot, t, cls);
    }
    if (t->owner == SHARED) {
        *slot = NULL;
        if (t->holder == ht_self.tid) {
            release_shared(t);
        }
        return NULL;
    }
    if (!done && s->busy && !t->retired) {
        /* The stream is busy with another event, perhaps an abandoned one. */
        if (is_stuck(t, STUCK_EVENTS)) {
            retire(p, t, true);
        }
        return NULL;
    }
    if (s->slow && !t->retired) {
        /* The stream is open: only a closed or retired one is replaced. */
        return NULL;
    }
    return done ? NULL : another(p, slot, t, cls);
}

const struct ht_runtime ht_trace_runtime = {
    .begin = begin,
    .end = end,
    .remove = ht_trace_remove,
    .status = ht_trace_status,
};

bool ht_trace_no_stream(void)
{
    struct process *p = ht_this_process();

    return p && ht_self.retry_at &&
           !__atomic_load_n(&p->shared, __ATOMIC_RELAXED);
}

void ht_trace_tell(void)
{
    struct process *p = ht_this_process();
    struct thread_stream *shared;
    uint64_t mask;
    unsigned i;

    if (!p || ht_sys_getpid() != p->pid || !ht_trace_begin_opening(&mask)) {
        return;
    }
    shared = __atomic_load_n(&p->shared, __ATOMIC_ACQUIRE);
    if (!ht_self.tid) {
        ht_self.tid = ht_sys_gettid();
    }
    for (i = 0; ht_self.tid > 0 && i < THREADS_MAX; i++) {
        if (p->threads[i].owner == ht_self.tid) {
            tell_stream(p, &p->threads[i]);
        }
    }
    /*
     * The shared stream also counts discarded events of threads without a
     * stream.
     */
    if (ht_self.tid > 0 && shared && hold_shared(p, shared)) {
        tell_stream(p, shared);
        release_shared(shared);
    }
    report_missed(p);
    ht_trace_end_opening(&mask);
}

uint64_t ht_trace_discarded(void)
{
    struct process *p = ht_this_process();
    struct thread_stream *t;
    uint64_t told, n;

    if (!p) {
        return 0;
    }
    n = __atomic_load_n(&p->missed, __ATOMIC_RELAXED);
    /*
     * While the shared stream cannot be opened, it counts the events of threads
     * without a stream.  Its holder may be counting now: read @told, which is
     * never more than the count, first.  Pairs with tell_discarded().
     */
    t = __atomic_load_n(&p->shared, __ATOMIC_ACQUIRE);
    if (t && !__atomic_load_n(&t->s.slow, __ATOMIC_RELAXED)) {
        told = __atomic_load_n(&t->s.told, __ATOMIC_ACQUIRE);
        n += ht_load_relaxed(&t->s.lost) +
             ht_load_relaxed(&t->s.lost_nested) - told;
    }
    return n;
}

int ht_trace_stamps(unsigned n)
{
    struct process *p = ht_this_process();
    struct thread_stream *own = ht_self.own;

    if (n < 1 || n > HT_STAMPS_MAX) {
        return -EINVAL;
    }
    __atomic_store_n(&stamps, n, __ATOMIC_RELAXED);
    /*
     * If the stream is not open, the next open_stream() passes @stamps to the
     * library's core.
     */
    if (p && own && own->owner == ht_self.tid) {
        (void)ht_stream_stamps(&own->s, n);
    }
    return 0;
}

static void stamps_by_environment(void)
{
    const char *s = secure_getenv("HYPERTRACE_STAMPS");
    char *end;
    unsigned long n;

    if (!stamps && s && *s >= '0' && *s <= '9') {
        n = strtoul(s, &end, 10);
        stamps = !*end && n <= HT_STAMPS_MAX ? n : 0;
    }
}

bool ht_trace_init(void)
{
    if (ht_process) {
        return ht_this_process();
    }
    ht_process = ht_new_process();
    if (!ht_process) {
        return false;
    }
    stamps_by_environment();
    ht_watch_forks();
    /*
     * Do not use a key above 31, for whose value glibc would allocate memory.
     */
    thread_end_works = pthread_key_create(&thread_end, end_thread) == 0 &&
                       thread_end < 32;
    ht_trace_builtin(&ht_class_context);
    return ht_this_process();
}
