/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: ht_trace(), a stream for each thread
 *
 * Everything below that an event may reach takes no lock it waits for long,
 * allocates nothing from a heap and makes system calls itself: it runs in
 * signal handlers, in allocators, and between a call and the look at errno.
 *
 * Streams lie in memory that is wiped when the process is forked, so in a
 * child every stream is one that is not open.  It stays until the process
 * ends: pointers to a stream, of which each module has one a thread, never
 * dangle.  A stream is a thread's until that is gone, even when closed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "hypertrace/port.h"
#include "linux-sys.h"
#include "linux-trace.h"

#define THREADS_MAX     256
#define SHARED          (-1)            /* owner of the stream for everybody */
#define SPINS           2000
#define RETRY_MS        500

/**
 * struct thread_stream - a stream, and whose it is
 * @s: the stream
 * @owner: thread id; 0: nobody's, SHARED: of those that have none
 * @holder: SHARED: the thread that emits, or 0
 * @last: SHARED: the thread of the event before
 * @failed: SHARED: when it could not be opened, in ms; 0: it could
 * @used: its thread has emitted to it, and may have pointers to it
 */
struct thread_stream {
    struct ht_stream s;
    struct ht_node_map map;
    int owner;
    int holder;
    int last;
    uint64_t failed;
    bool used;
} __attribute__((aligned(64)));

/* What a fork wipes */
struct process {
    int alive;                  /* 0: this is a child */
    int pid;
    int threads_seen;           /* that had a stream of their own, so far */
    uint64_t missed;            /* events without a stream, not told yet */
    struct thread_stream *shared;
    int sharing;                /* somebody opens that one, or did */
    struct thread_stream threads[THREADS_MAX] __attribute__((aligned(64)));
};

struct self {
    struct thread_stream *own;
    struct ht_stream *event_slot;       /* for ht_event_emit() */
    uint64_t failed;            /* when opening did, in ms; 0: it did not */
    int tid;
    bool opening;
    bool ended;
};

static struct process *process;
static uint32_t stamps;         /* of streams to come; 0 is 1 */
static __thread struct self self
    __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_end;
static bool thread_end_works;

/* Who shares a stream, when that changes */
HT_EVENT_NAMED(context, "hypertrace.thread", (s32, tid), (text, comm));

static void get_comm(char comm[17])
{
    unsigned i;

    comm[0] = comm[16] = '\0';
    ht_sys(__NR_prctl, PR_GET_NAME, (long)comm, 0, 0, 0, 0);
    for (i = 0; comm[i]; i++) {
        if (comm[i] < ' ' || comm[i] > '~') {
            comm[i] = '?';      /* the host allows no others */
        }
    }
}

static void missed(void)
{
    __atomic_fetch_add(&process->missed, 1, __ATOMIC_RELAXED);
}

/* Those that no stream will tell, unless one is opened after all */
static void report_missed(void)
{
    uint64_t n = __atomic_exchange_n(&process->missed, 0, __ATOMIC_RELAXED);

    if (n && !ht_trace_report(n)) {
        __atomic_fetch_add(&process->missed, n, __ATOMIC_RELAXED);
    }
}

/* Streams ------------------------------------------------------------------ */

/* A child of vfork() may ask, too. */
static bool is_gone(int tid)
{
    return ht_sys_thread_exists(process->pid, tid) == -ESRCH;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}

static bool may_try(uint64_t failed)
{
    return !failed || now_ms() - failed >= RETRY_MS;
}

/*
 * Tell the host of all events that were discarded; those of a stream that is
 * not open, others have to tell.  A device that goes in between may take the
 * count along.
 *
 * Context: the stream's producer, @busy set
 */
static void tell_discarded(struct thread_stream *t)
{
    uint64_t lost;

    if (t->s.slow && !ht_is_closed(&t->s)) {
        t->s.lost += __atomic_exchange_n(&process->missed, 0,
                                         __ATOMIC_RELAXED);
        ht_publish_lost(&t->s);
        return;
    }
    lost = t->s.lost + ht_load_relaxed(&t->s.lost_nested);
    __atomic_fetch_add(&process->missed, lost - t->s.told, __ATOMIC_RELAXED);
    t->s.told = lost;
}

/* What a signal handler must not do meanwhile */
static void tell_stream(struct thread_stream *t)
{
    if (!t->s.busy) {
        t->s.busy = 1;
        ht_compiler_barrier();
        tell_discarded(t);
        ht_compiler_barrier();
        t->s.busy = 0;
    }
}

/*
 * The driver delivers what was committed when the last mapping goes.  A signal
 * handler meanwhile finds the stream busy.
 */
static void close_stream(struct thread_stream *t)
{
    t->s.busy = 1;
    ht_compiler_barrier();
    tell_discarded(t);
    t->s.cur = NULL;
    t->s.end = NULL;
    t->s.slow = NULL;
    ht_node_unmap(&t->map);
    ht_compiler_barrier();
    t->s.busy = 0;
}

static struct thread_stream *claim(int tid)
{
    unsigned i;

    for (i = 0; i < THREADS_MAX; i++) {
        struct thread_stream *t = &process->threads[i];
        int owner = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

        /* A thread that is gone had this one's number. */
        if (owner == tid && tid > 0) {
            close_stream(t);
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

/* Take back what threads left that ended without saying so; how many */
static unsigned reclaim(void)
{
    unsigned i, n = 0;

    for (i = 0; i < THREADS_MAX; i++) {
        struct thread_stream *t = &process->threads[i];
        int owner = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

        if (owner > 0 && is_gone(owner) &&
            __atomic_compare_exchange_n(&t->owner, &owner, SHARED, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            close_stream(t);
            __atomic_store_n(&t->owner, 0, __ATOMIC_RELEASE);
            n++;
        }
    }
    return n;
}

static int open_stream(struct thread_stream *t)
{
    struct ht_stream_params params = {
        .stream = HT_STREAM_ANY,
        .vcpu = -1,
        .stamps = __atomic_load_n(&stamps, __ATOMIC_RELAXED),
    };
    char comm[17], name[HT_STREAM_NAME_MAX + 1];
    int r;

    close_stream(t);
    get_comm(comm);
    ht_trace_name(name, comm, t->owner);
    params.name = name;
    r = ht_trace_open(&t->s, &t->map, &params);
    if (r == -EBUSY && reclaim()) {
        r = ht_trace_open(&t->s, &t->map, &params);
    }
    if (r == 0) {
        t->s.lost = __atomic_exchange_n(&process->missed, 0,
                                        __ATOMIC_RELAXED);
    }
    return r;
}

/*
 * When a second thread has a stream, one is opened for threads that will find
 * none.  If no stream is left, that of @t becomes it, unless @t is @used: there
 * are pointers to it then.
 *
 * Return: whether it is that of @t.
 */
static bool open_shared(struct thread_stream *t, bool used)
{
    struct thread_stream *shared;

    if (__atomic_load_n(&process->threads_seen, __ATOMIC_RELAXED) < 2 ||
        __atomic_exchange_n(&process->sharing, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
    shared = claim(SHARED);
    if (shared && open_stream(shared)) {
        __atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
        shared = NULL;
    }
    if (!shared && used) {
        __atomic_store_n(&process->sharing, 0, __ATOMIC_RELEASE);
        return false;
    }
    if (!shared) {
        shared = t;
        t->owner = SHARED;
    }
    __atomic_store_n(&process->shared, shared, __ATOMIC_RELEASE);
    return shared == t;
}

/* Context: this thread's @opening is set */
static bool open_own(void)
{
    struct thread_stream *t = self.own;
    bool used;

    if (!t) {
        t = claim(self.tid);
        if (!t && reclaim()) {
            t = claim(self.tid);
        }
        if (!t) {
            return false;
        }
        self.own = t;
        t->used = false;
        if (thread_end_works) {
            pthread_setspecific(thread_end, t);
        }
    }
    if (open_stream(t)) {
        return false;
    }
    used = t->used;
    t->used = true;
    if (!used) {
        __atomic_fetch_add(&process->threads_seen, 1, __ATOMIC_RELAXED);
    }
    if (open_shared(t, used)) {
        self.own = NULL;
        if (thread_end_works) {
            pthread_setspecific(thread_end, NULL);
        }
        return false;
    }
    return true;
}

/* Key destructor: the thread ends, but other destructors may emit. */
static void end_thread(void *opaque)
{
    struct thread_stream *t = opaque;

    self.ended = true;
    if (process->alive && t->owner == self.tid) {
        close_stream(t);
    }
}

/* The stream that serves everybody ----------------------------------------- */

static void release_shared(struct thread_stream *t)
{
    __atomic_store_n(&t->holder, 0, __ATOMIC_RELEASE);
}

static bool hold_shared(struct thread_stream *t)
{
    unsigned spins;
    int none = 0;

    for (spins = 0; !__atomic_compare_exchange_n(&t->holder, &none, self.tid,
                                                 false, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED); spins++) {
        if (none != self.tid && spins == SPINS && is_gone(none)) {
            /* It ended between the fields of an event and the event. */
            __atomic_compare_exchange_n(&t->holder, &none, 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        /* A signal handler finds its own thread, which cannot go on. */
        if (none == self.tid || spins == SPINS) {
            return false;
        }
        none = 0;
        if (spins % 100 == 99) {
            ht_sys_yield();
        }
    }
    return true;
}

static struct ht_stream *take_shared(void)
{
    struct thread_stream *t = __atomic_load_n(&process->shared,
                                              __ATOMIC_ACQUIRE);
    char comm[17];

    if (!t) {
        missed();
        return NULL;
    }
    if (!hold_shared(t)) {
        ht_atomic_inc(&t->s.lost_nested);
        return NULL;
    }
    if (!t->s.slow) {
        t->last = 0;
        if (may_try(t->failed)) {
            self.opening = true;
            t->failed = open_stream(t) ? now_ms() : 0;
            if (t->failed) {
                tell_stream(t);
                report_missed();
            }
            self.opening = false;
        }
        if (!t->s.slow) {
            t->s.lost++;
            release_shared(t);
            return NULL;
        }
    }
    if (t->last != self.tid && ht_class_context.id) {
        get_comm(comm);
        t->last = 0;
        if (!ht_emit_context(&t->s, self.tid, comm)) {
            /* Counted once; the event would be another thread's. */
            release_shared(t);
            return NULL;
        }
        t->last = self.tid;
    }
    return &t->s;
}

/* For ht_trace() ----------------------------------------------------------- */

static struct ht_stream *begin(struct ht_stream **slot)
{
    bool open, wanted;

    if (!process->alive) {
        ht_trace_silence();
        return NULL;
    }
    if (self.opening || self.ended) {
        missed();
        return NULL;
    }
    open = self.own && self.own->s.slow;
    wanted = !open && may_try(self.failed);
    if ((wanted || !self.tid) && ht_sys_getpid() != process->pid) {
        missed();       /* a child of vfork(), in its parent's memory */
        return NULL;
    }
    if (!self.tid) {
        self.tid = ht_sys_gettid();
    }
    if (wanted) {
        self.opening = true;
        ht_compiler_barrier();
        open = open_own();
        if (!open && !__atomic_load_n(&process->shared, __ATOMIC_RELAXED)) {
            report_missed();
        }
        ht_compiler_barrier();
        self.opening = false;
        self.failed = open ? 0 : now_ms();
    }
    if (!open) {
        return take_shared();
    }
    *slot = &self.own->s;
    return &self.own->s;
}

static void end(struct ht_stream **slot, struct ht_stream *s)
{
    struct thread_stream *t = (struct thread_stream *)s;

    if (!process->alive) {
        ht_trace_silence();
    } else if (t->owner == SHARED) {
        if (t->holder == self.tid) {
            release_shared(t);
        }
    } else if (s->slow) {
        return;
    }
    *slot = NULL;               /* the next event looks for another one */
}

const struct ht_runtime ht_trace_runtime = {
    .begin = begin,
    .end = end,
    .remove = ht_trace_remove,
};

bool ht_event_emit(const struct ht_class *cls, const void *payload,
                   uint32_t size)
{
    struct ht_stream **slot = &self.event_slot, *s = *slot;
    bool own = s, done = false;
    void *p;

    if (!ht_event_is_on(cls)) {
        return false;
    }
    if (!own) {
        s = begin(slot);
    }
    if (s) {
        p = ht_get(s, cls->id, size);
        if (p) {
            ht_copy(p, payload, size);
            ht_commit(s);
            done = true;
        }
        if (!own || !done) {
            end(slot, s);
        }
    }
    return done;
}

void ht_trace_tell(void)
{
    struct thread_stream *shared;

    if (!process || !process->alive || self.opening ||
        ht_sys_getpid() != process->pid) {
        return;
    }
    shared = __atomic_load_n(&process->shared, __ATOMIC_ACQUIRE);
    if (self.own && self.own != shared) {
        tell_stream(self.own);
    }
    if (!self.tid) {
        self.tid = ht_sys_gettid();
    }
    /* Threads that could not get hold of it have counted there. */
    if (shared && hold_shared(shared)) {
        tell_stream(shared);
        release_shared(shared);
    }
    self.opening = true;
    ht_compiler_barrier();
    report_missed();
    ht_compiler_barrier();
    self.opening = false;
}

bool ht_trace_child(void)
{
    return process && !process->alive;
}

uint64_t ht_trace_discarded(void)
{
    return process ? __atomic_load_n(&process->missed, __ATOMIC_RELAXED) : 0;
}

int ht_trace_stamps(unsigned n)
{
    struct thread_stream *own = self.own;

    if (n < 1 || n > HT_STAMPS_MAX) {
        return -EINVAL;
    }
    __atomic_store_n(&stamps, n, __ATOMIC_RELAXED);
    /* One that is not open learns it when it is. */
    if (process && process->alive && own && own->owner == self.tid) {
        (void)ht_stream_stamps(&own->s, n);
    }
    return 0;
}

/* A user's choice; one that makes no sense is none */
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
    int error;

    if (process) {
        return true;
    }
    process = ht_sys_map(sizeof(*process), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0,
                         &error);
    if (error) {
        process = NULL;
        return false;
    }
    if (ht_sys_madvise(process, sizeof(*process), MADV_WIPEONFORK)) {
        ht_sys_unmap(process, sizeof(*process));
        process = NULL;
        return false;
    }
    stamps_by_environment();
    process->alive = 1;
    process->pid = ht_sys_getpid();
    /* Values of the first keys are not allocated; glibc has 32 of them. */
    thread_end_works = pthread_key_create(&thread_end, end_thread) == 0 &&
                       thread_end < 32;
    ht_trace_builtin(&ht_class_context);
    return true;
}
