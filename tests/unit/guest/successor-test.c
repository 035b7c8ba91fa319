/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kill hosts of the memory-only transport, one after the other
 *
 * Promise: each event is delivered or counted as discarded exactly once if a
 * host's process is killed before or after it records one of its first runs,
 * while the guest emits, discards, and changes to the next host.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/memory.h"
#include "hypertrace/thread.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "memory-guest.h"
#include "guest-events.h"

#define SIZE            (UINT64_C(2) << 20)
#define PACKET          4096
#define PACKETS         4
#define EVENTS_MAX      100000
#define INSTANCES_MAX   16
#define HOSTS           3
#define KILLS           40
/* Number of processes that share the KILLS calls of kill_hosts() */
#define KILLERS         5

/* What all hosts have recorded, in memory that outlives them */
typedef struct Recordings {
    uint8_t seen[EVENTS_MAX];
    struct {
        /* HtRecorded counts of the instance's last recorded run */
        HtRecorded last;
        uint64_t discarded[HOSTS];
    } instances[INSTANCES_MAX];
    int quit;
    int served;
} Recordings;

static Recordings *recordings;

/* The following variables are used only in the process of a host */
static HtMemory *m;
static unsigned host;           /* number of this process's host, from 0 */
/* number of calls of step() until the host kills itself; 0: it does not */
static unsigned steps;

static void step(void)
{
    if (steps && --steps == 0) {
        raise(SIGKILL);
    }
}

static void deliver(void *opaque, const HtRun *run)
{
    uint64_t instance = run->stream->instance;
    HtRunIter it;
    HtEvent ev;

    (void)opaque;
    g_assert_cmpuint(instance, <, INSTANCES_MAX);
    step();
    /*
     * Do not call step() from here to the end of the counts: a recorder writes
     * a run's events and counts at once, so a kill between them is not tested.
     */
    ht_run_iter_init(&it, run, ht_server_classes(ht_memory_server(m)));
    while (run->events && ht_run_next(&it, &ev)) {
        g_assert_cmpuint(ht_get_le64(ev.payload), <, EVENTS_MAX);
        recordings->seen[ht_get_le64(ev.payload)]++;
    }
    recordings->instances[instance].last.events = run->total;
    recordings->instances[instance].last.lost = run->lost;
    recordings->instances[instance].discarded[host] = run->discarded;
    step();
}

static bool recorded(void *opaque, const HtStreamInfo *info, HtRecorded *r)
{
    (void)opaque;
    g_assert_cmpuint(info->instance, <, INSTANCES_MAX);
    g_assert_cmpstr(info->name, ==, "name");
    *r = recordings->instances[info->instance].last;
    return true;
}

/*
 * Run host @number in a process of its own, until it is killed or
 * Recordings.quit is set.  @until: initial value of @steps
 */
static pid_t run_host(int fd, unsigned number, unsigned until)
{
    const HtMemoryConfig cfg = {
        .packet_size = PACKET,
        .packets = PACKETS,
        .deliver = deliver,
        .recorded = recorded,
    };
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    host = number;
    steps = until;
    m = number ? ht_memory_attach(fd, &cfg, NULL) :
                 ht_memory_create(fd, &cfg, NULL);
    if (!m) {
        _exit(1);
    }
    ht_memory_start(m);
    ht_atomic_store_release(&recordings->served, number + 1);
    while (!ht_atomic_load_acquire(&recordings->quit)) {
        ht_memory_poll(m);
        g_usleep(100);
    }
    ht_memory_free(m);
    _exit(0);
}

typedef struct Emitter {
    MgGuest g;
    struct ht_stream s;
    uint64_t next;
    uint64_t discarded;
    bool *kept;
} Emitter;

static bool running(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void emit(Emitter *e, unsigned n)
{
    while (n-- && e->next < EVENTS_MAX) {
        bool open = e->s.slow;
        bool kept = ht_emit_tick(&e->s, e->next);

        /*
         * if the host has closed the stream, the commit clears
         * ht_stream.slow: the event is lost although the emit returned true
         */
        kept &= !open || e->s.slow;
        e->kept[e->next++] = kept;
        e->discarded += !kept;
    }
}

/*
 * Connect to a new host, register the class and open a stream. Return false if
 * one of these fails, because the host was killed.
 */
static bool serve_guest(Emitter *e)
{
    static const struct ht_stream_params params = {
        .stream = HT_STREAM_ANY, .vcpu = -1, .name = "name",
    };

    uint64_t untold = e->s.lost - e->s.told;

    /*
     * As a driver does, take the ring away from the producer before
     * mg_try_connect() sends TAKEOVER.
     */
    e->s.slow = NULL;
    e->s.cur = NULL;
    e->s.end = NULL;
    if (!mg_try_connect(&e->g, 300) ||
        ht_register(&e->g.dev, &ht_class_tick) != 1 ||
        ht_stream_open(&e->g.dev, &e->s, &params)) {
        return false;
    }
    /* Report discards that no ring has counted, as ht_trace() does */
    e->s.lost = untold;
    ht_publish_lost(&e->s);
    return true;
}

/*
 * Emit until the host has killed itself, sometimes faster than the host reads.
 * After EVENTS_MAX / 2 events, kill it from here.
 */
static void emit_until(Emitter *e, pid_t pid)
{
    int64_t end = ht_now_ns() + 10 * INT64_C(1000000000);

    while (running(pid)) {
        emit(e, 700);
        g_usleep(e->next % 3 * 100);
        g_assert_cmpint(ht_now_ns(), <, end);
        if (e->next >= EVENTS_MAX / 2) {
            kill(pid, SIGKILL);
        }
    }
}

static void check(const Emitter *e)
{
    uint64_t counted = 0, n;
    unsigned i, k;

    for (n = 0; n < e->next; n++) {
        if (recordings->seen[n] != e->kept[n]) {
            g_error("event %" PRIu64 " is in %u recordings, not in %u", n,
                    recordings->seen[n], e->kept[n]);
        }
    }
    for (i = 0; i < INSTANCES_MAX; i++) {
        for (k = 0; k < HOSTS; k++) {
            counted += recordings->instances[i].discarded[k];
        }
    }
    g_assert_cmpuint(counted, ==, e->discarded);
}

/*
 * Let the first host kill itself after @first steps, and the second after
 * @second.  The third lives until the end.
 */
static void kill_hosts(unsigned first, unsigned second)
{
    const unsigned until[HOSTS] = { first, second, 0 };
    int fd = ht_memory_memfd(SIZE, NULL), i;
    g_autofree bool *kept = g_new0(bool, EVENTS_MAX);
    Emitter e = { .kept = kept };
    pid_t pid;

    g_assert_cmpint(fd, >=, 0);
    memset(recordings, 0, sizeof(*recordings));
    mg_new(&e.g, fd);
    for (i = 0; i < HOSTS; i++) {
        pid = run_host(fd, i, until[i]);
        while (ht_atomic_load_acquire(&recordings->served) <= i &&
               running(pid)) {
            g_usleep(100);
        }
        /*
         * From the second host on, the guest still emits to the stream that it
         * opened with the previous host.
         */
        emit(&e, 300);
        if (!serve_guest(&e)) {
            g_assert_cmpint(i, <, HOSTS - 1);
        }
        if (i < HOSTS - 1) {
            emit_until(&e, pid);
            emit(&e, 100);
        }
    }
    emit(&e, 1000);
    g_assert_cmpint(ht_stream_close(&e.s), ==, 0);
    ht_atomic_store_release(&recordings->quit, 1);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    check(&e);
    mg_free(&e.g);
    close(fd);
}

/*
 * Do every KILLERS-th of the KILLS calls of kill_hosts(), from number @first,
 * with recordings that only this process and its hosts use.
 */
static void kill_some(unsigned first)
{
    unsigned i;

    recordings = mmap(NULL, sizeof(*recordings), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(recordings != MAP_FAILED);
    for (i = first; i < KILLS; i += KILLERS) {
        kill_hosts(1 + i, 1 + i * 7 % 23);
    }
}

/* The processes wait most of the time, so KILLERS of them run at once. */
static void test_kills(void)
{
    pid_t pids[KILLERS];
    unsigned i;
    int status;

    fflush(NULL);
    for (i = 0; i < KILLERS; i++) {
        pids[i] = fork();
        g_assert_cmpint(pids[i], >=, 0);
        if (!pids[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            kill_some(i);
            _exit(0);
        }
    }
    for (i = 0; i < KILLERS; i++) {
        g_assert_cmpint(waitpid(pids[i], &status, 0), ==, pids[i]);
        g_assert_cmpint(status, ==, 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/successor/kills", test_kills);
    return g_test_run();
}
