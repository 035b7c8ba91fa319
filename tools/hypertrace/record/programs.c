/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: record the events of the guest's programs
 */
#include "hypertrace/base.h"
#include <sched.h>

#include "cli/command.h"
#include "cli/number.h"
#include "host/host-record.h"
#include "host/host-tell.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/guest-clock.h"
#include "hypertrace/memory.h"
#include "hypertrace/thread.h"
#include "record/programs-link.h"
#include "record/programs.h"

/*
 * Maximum time in ms that ht_programs_start() waits until LTTng-UST is loaded
 */
#define LTTNG_LOAD_MS   1000
/*
 * Estimates of the bytes of the disk that a new file of the trace takes, and
 * that a packet takes in addition to its events
 */
#define FILE_BYTES      4096
#define PACKET_BYTES    64

struct HtPrograms {
    HtProgramsOptions options;
    HtMemory *m;
    HtThread thread;
    bool started;
    /*
     * ht_memory_start() has returned, so the events of the streams that were
     * open at the start are in the trace
     */
    bool serves;
    /* path of the trace of an earlier recorder, by its link; NULL: none */
    char *previous;
    HtHostPage page;            /* used only with HtProgramsOptions.tell */
    HtHostTell *tell;

    /*
     * The members from @writer to @known need no lock: they are used by
     * ht_programs_start(), then by the thread, and after the thread has ended
     * by ht_programs_end().
     */
    HtCtfWriter *writer;
    /* number of classes that were given to @writer */
    uint32_t classes;
    uint64_t bytes;
    uint64_t events;
    uint64_t dropped;
    uint64_t streams;
    /*
     * number of events that producers discarded in instances which are closed
     */
    uint64_t lost;
    bool full;
    /*
     * by stream: number of events of its open instance that were not written
     * because of @full
     */
    uint64_t skipped[HT_STREAMS_MAX];
    char *why;
    /* name of the guest's provider in LTTng; NULL without LTTng */
    char *provider;
    HtLttngSink *lttng;
    /* the buffer of @lttng to which the runs of all streams are appended */
    HtBuffer *fill;
    /* number of classes at the last call of ht_lttng_sink_wake() */
    uint32_t known;

    HtMutex lock;               /* protects @quit */
    HtCond wake;
    bool quit;
};

static void G_GNUC_PRINTF(2, 3) note(HtPrograms *p, const char *fmt, ...)
{
    va_list ap;

    if (!p->why) {
        va_start(ap, fmt);
        p->why = g_strdup_vprintf(fmt, ap);
        va_end(ap);
    }
}

/*
 * Get the maximum error of the times, in ns, with the present readings of the
 * clock; 0: not known
 */
static uint64_t precision_ns(HtPrograms *p)
{
    uint64_t bound;
    HtTimeMap map;

    ht_server_time(ht_memory_server(p->m), &map);
    bound = ht_time_map_bound(&map, ht_now_ns());
    return bound == UINT64_MAX ? 0 : bound;
}

/*
 * Let a successor find the trace by the link. If an earlier recorder was
 * killed, the link names the trace of that recorder until this trace has the
 * events of the open streams.
 */
static void publish_trace(HtPrograms *p)
{
    g_autoptr(GError) error = NULL;

    if (p->options.link && p->writer && p->serves &&
        !ht_programs_link_set(p->options.link, ht_ctf_writer_path(p->writer),
                              &error)) {
        note(p, "%s", error->message);
    }
}

/*
 * Create the trace. This is called when the first stream is opened, so that a
 * guest without a driver gets no trace.
 */
static void begin_trace(HtPrograms *p)
{
    g_autofree char *boot = ht_host_boot();
    HtCtfInfo info = {
        .vm_name = p->options.guest ? p->options.guest : "guest",
        .device = HT_PROGRAMS_FOLDER,
        .channel = "memory",
        .host_boot = boot,
        .clock_offset_ns = ht_wall_offset(),
        .precision_ns = precision_ns(p),
    };
    int ret;

    ht_ctf_uuid(info.uuid);
    ht_ctf_uuid(info.clock_uuid);
    ret = ht_ctf_writer_new(p->options.dir, HT_PROGRAMS_FOLDER, &info,
                            ht_memory_caps(p->m)->streams, &p->writer);
    if (ret) {
        p->writer = NULL;
        note(p, "cannot make a trace in '%s': %s", p->options.dir,
             g_strerror(-ret));
    }
    publish_trace(p);
}

static void add_classes(HtPrograms *p, uint32_t count)
{
    const HtClassTable *t = ht_server_classes(ht_memory_server(p->m));
    int ret;

    while (p->classes < count) {
        const HtClass *c = ht_class_table_get(t, ++p->classes);

        ret = ht_ctf_writer_class(p->writer, c);
        if (ret) {
            p->classes--;
            note(p, "cannot describe the event '%s': %s", c->name,
                 g_strerror(-ret));
            return;
        }
    }
}

/* Estimate how many bytes of the disk a run takes. */
static uint64_t cost(const HtRun *run)
{
    return run->flags & HT_RUN_OPEN ? FILE_BYTES : PACKET_BYTES + run->size;
}

static void check_limit(HtPrograms *p, const HtRun *run)
{
    if (!p->full && p->bytes + cost(run) > p->options.max_bytes) {
        p->full = true;
        note(p, "the programs' events have the size that they may have "
             "(--max-size, %" PRIu64 " MiB): nothing more is recorded",
             p->options.max_bytes >> 20);
    }
}

/*
 * Write a run to the trace. Returns 0 or -errno; @p->why has the first
 * reason.
 */
static int write_run(HtPrograms *p, const HtRun *run)
{
    HtRun counted = *run;
    int ret;

    if (!p->writer || (p->full && !(run->flags & HT_RUN_CLOSE))) {
        return -ENOSPC;
    }
    counted.discarded += p->skipped[run->stream->index];
    add_classes(p, run->classes);
    ret = p->classes < run->classes ? -EIO :
          ht_ctf_writer_run(p->writer, &counted);
    if (ret) {
        note(p, "cannot write '%s': %s", ht_ctf_writer_path(p->writer),
             g_strerror(-ret));
    }
    return ret;
}

/*
 * HtMemoryConfig.deliver. The events must be in the file when this returns,
 * because the guest may then overwrite them. LTTng gets a copy, also of events
 * that exceed the recording's limit.
 */
static void deliver(void *opaque, const HtRun *run)
{
    HtPrograms *p = opaque;

    if (run->flags & HT_RUN_OPEN) {
        p->streams++;
        p->skipped[run->stream->index] = 0;
        if (!p->writer && !p->why) {
            begin_trace(p);
        }
    }
    if (run->flags & HT_RUN_CLOSE) {
        p->lost += run->discarded;
    }
    check_limit(p, run);
    if (write_run(p, run)) {
        p->dropped += run->events;
        if (p->full) {
            p->skipped[run->stream->index] += run->events;
        }
    } else {
        p->events += run->events;
        p->bytes += cost(run);
    }
    if (p->lttng) {
        ht_lttng_sink_post(p->lttng, run, &p->fill);
    }
}

/*
 * HtMemoryConfig.wants: whether a class is on. LTTng decides, also for the
 * recording. Until LTTng has registered the class, @before is the answer.
 */
static bool wants(void *opaque, const HtClass *c, bool before)
{
    HtPrograms *p = opaque;

    return ht_lttng_sink_wants(p->lttng, c, before);
}

static bool recorded(void *opaque, const HtStreamInfo *info, HtRecorded *r)
{
    HtPrograms *p = opaque;

    return p->previous &&
           ht_ctf_recorded(p->previous, info->index, info->instance, r);
}

static void log_guest(void *opaque, const char *text)
{
    (void)opaque;
    ht_notice("guest: %s", text);
}

static void new_sink(HtPrograms *p)
{
    const HtLttngSinkConfig cfg = {
        .provider = p->provider,
        .classes = ht_server_classes(ht_memory_server(p->m)),
        .streams = ht_memory_caps(p->m)->streams,
        .run_max = ht_memory_caps(p->m)->packet_size,
    };

    p->lttng = ht_lttng_sink_new(&cfg);
}

HtPrograms *ht_programs_new(int fd, bool create,
                            const HtProgramsOptions *options, GError **error)
{
    HtPrograms *p;
    HtMemoryConfig cfg = {
        .deliver = deliver,
        .wants = options->lttng ? wants : NULL,
        .recorded = recorded,
        .log = log_guest,
    };

    if (options->lttng && !ht_lttng_module_find("ust", error)) {
        return NULL;
    }
    p = g_new0(HtPrograms, 1);
    p->options = *options;
    cfg.opaque = p;
    p->m = create ? ht_memory_create(fd, &cfg, error) :
                    ht_memory_attach(fd, &cfg, error);
    if (!p->m) {
        g_free(p);
        return NULL;
    }
    if (options->lttng) {
        p->provider = g_strconcat(options->lttng, HT_LTTNG_PROGRAMS, NULL);
        new_sink(p);
    }
    ht_mutex_init(&p->lock);
    ht_cond_init(&p->wake);
    return p;
}

/*
 * Wait for @ns or until ht_programs_end().  Returns false if the thread must
 * end.
 */
static bool pause_for(HtPrograms *p, int64_t ns)
{
    int64_t end = ht_now_ns() + ns;
    bool quit;

    if (!ns) {
        /* The guest may need this thread's processor: let it run. */
        sched_yield();
    }
    ht_mutex_lock(&p->lock);
    while (ns && !p->quit && ht_cond_wait_until(&p->wake, &p->lock, end)) {
        /* The thread was woken before @end: wait for the rest of the time. */
    }
    quit = p->quit;
    ht_mutex_unlock(&p->lock);
    return !quit;
}

/* Let LTTng register new classes now, not only with their first event. */
static void offer_classes(HtPrograms *p)
{
    uint32_t count = ht_class_table_count(
        ht_server_classes(ht_memory_server(p->m)));

    if (p->lttng && p->known != count) {
        p->known = count;
        ht_lttng_sink_wake(p->lttng);
    }
}

static void *poll_thread(void *opaque)
{
    HtPrograms *p = opaque;
    int64_t ns;

    do {
        ns = ht_memory_poll(p->m);
        offer_classes(p);
    } while (pause_for(p, ns));
    return NULL;
}

static void start_tell(HtPrograms *p)
{
    g_autofree char *part = NULL;

    if (p->options.tell) {
        part = g_build_filename(p->options.tell, HT_HOST_FOLDER, NULL);
        ht_memory_tell(p->m, &p->page);
        p->tell = ht_host_tell_new(part, &p->page);
    }
}

void ht_programs_process(HtPrograms *p, pid_t pid)
{
    if (p) {
        ht_host_tell_process(p->tell, pid);
    }
}

void ht_programs_start(HtPrograms *p)
{
    p->started = true;
    p->previous = p->options.link ? ht_programs_link_get(p->options.link) :
                                    NULL;
    if (p->lttng) {
        ht_lttng_sink_start(p->lttng);
        /*
         * Wait until LTTng is loaded, at most LTTNG_LOAD_MS, so that it decides
         * about classes from the first one on.
         */
        ht_lttng_sink_wait(p->lttng, LTTNG_LOAD_MS);
    }
    ht_memory_start(p->m);
    p->serves = true;
    publish_trace(p);
    start_tell(p);
    ht_thread_start(&p->thread, "ht-programs", poll_thread, p);
}

bool ht_programs_failed(const HtPrograms *p)
{
    return ht_memory_truncated(p->m);
}

void ht_programs_summary(const char *dir, const HtProgramsStats *n)
{
    g_autoptr(GString) lost = g_string_new(NULL);

    if (!n->streams && n->provider) {
        ht_notice("no program of the guest emitted events: did a session of "
                  "LTTng enable '%s:*', and has the guest the driver "
                  "(hypertrace.ko)?", n->provider);
        return;
    }
    if (!n->streams) {
        ht_notice("no program of the guest emitted events: has the guest the "
                  "driver (hypertrace.ko)?");
        return;
    }
    if (n->lost) {
        g_string_append_printf(lost, "%" PRIu64 " lost in the guest, whose "
                               "rings were full: give it a larger memory%s",
                               n->lost, n->dropped ? "; " : "");
    }
    if (n->dropped) {
        g_string_append_printf(lost, "%" PRIu64 " not written", n->dropped);
    }
    ht_notice("%" PRIu64 " event%s of programs in %s/" HT_PROGRAMS_FOLDER
              "; %s", n->events, ht_number_s(n->events), dir,
              lost->len ? lost->str : "none lost");
    if (n->provider) {
        ht_lttng_summary(n->provider, &n->lttng);
    }
}

void ht_programs_stats_clear(HtProgramsStats *stats)
{
    g_clear_pointer(&stats->why, g_free);
    g_clear_pointer(&stats->provider, g_free);
}

static void stop_polling(HtPrograms *p)
{
    ht_mutex_lock(&p->lock);
    p->quit = true;
    ht_cond_signal(&p->wake);
    ht_mutex_unlock(&p->lock);
    ht_thread_join(&p->thread);
}

/*
 * Deliver the runs queued for LTTng, before the classes that they refer to are
 * freed with the memory.
 */
static void end_lttng(HtPrograms *p, HtProgramsStats *stats)
{
    if (!p->lttng) {
        return;
    }
    ht_lttng_sink_release(p->lttng, &p->fill);
    stats->hangs = !ht_lttng_sink_end(p->lttng, &stats->lttng);
    if (stats->lttng.why) {
        ht_error("LTTng: %s", stats->lttng.why);
        stats->lttng.why = NULL;
    }
}

void ht_programs_end(HtPrograms *p, HtProgramsStats *stats)
{
    memset(stats, 0, sizeof(*stats));
    if (!p) {
        return;
    }
    /*
     * End the telling thread first: while it ends, the guest must see that
     * the recorder lives.
     */
    ht_host_tell_free(p->tell);
    if (p->started) {
        stop_polling(p);
    }
    if (ht_memory_truncated(p->m)) {
        note(p, "the file of the memory was truncated: nothing more can be "
             "recorded");
    }
    /*
     * Deliver the remaining events.  If a stream stays open, keep the link: a
     * successor can continue the stream.
     */
    if (!ht_memory_leave(p->m) && p->started && p->options.link) {
        ht_programs_link_remove(p->options.link);
    }
    *stats = (HtProgramsStats) {
        .events = p->events,
        .lost = p->lost,
        .dropped = p->dropped,
        .streams = p->streams,
        .why = p->why,
        .provider = p->provider,
    };
    ht_ctf_writer_free(p->writer);
    end_lttng(p, stats);
    if (stats->hangs) {
        return;
    }
    ht_lttng_sink_free(p->lttng);
    ht_memory_free(p->m);
    ht_mutex_destroy(&p->lock);
    ht_cond_destroy(&p->wake);
    g_free(p->previous);
    g_free(p);
}
