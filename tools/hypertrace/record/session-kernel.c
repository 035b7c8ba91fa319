/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: read the kernel's log and its event formats
 */
#include "hypertrace/base.h"
#include "kernel/job.h"
#include "record/session.h"

/*
 * Maximum time in ns to read the log of one kernel: LOG_NS in a poll, or
 * LOG_LAST_POLLS times LOG_NS if the kernel has ended; LOG_LAST_NS in each of
 * at most LOG_LAST_POLLS polls when the recording ends
 */
#define LOG_NS          UINT64_C(1000000)
#define LOG_LAST_NS     UINT64_C(1000000000)
#define LOG_LAST_POLLS  10
/*
 * Time in ns after which ht_session_watch() leaves the other memories to the
 * next poll, unless the recording ends
 */
#define WATCH_NS        UINT64_C(3000000)

/*
 * Compare a record of the kernel's log with the matches, unless the record may
 * be older than the session (HtSessionPlace.log_old).
 */
static void match_line(void *opaque, const HtLogRecord *r)
{
    const HtSessionPlace *p = opaque;
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES && !p->log_old; i++) {
        ht_match_line(p->session->matches[i], r);
    }
}

/*
 * Formats of events that a job writes to the recording, and parses for the
 * matches
 */
struct HtSessionFormats {
    HtJob *job;
    /* use_formats() was called: @job now frees @list, @text and @parsed */
    bool written;
    const HtRecWriter *writer;
    const HtSessionPlace *place;
    const HtMatch *matches[HT_SESSION_MATCHES];
    HtKernelFormatsList *list;
    GBytes *text;
    HtMatchFormats *parsed[HT_SESSION_MATCHES];
    GError *error;
};

static void write_formats(HtJob *job, void *opaque)
{
    HtSessionFormats *f = opaque;
    gsize size;
    const char *text;
    unsigned i;

    f->text = g_string_free_to_bytes(ht_kernel_formats_list_text(f->list));
    ht_rec_writer_prepare(f->writer, "formats", f->text, &f->error);
    text = g_bytes_get_data(f->text, &size);
    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        f->parsed[i] = ht_match_formats_new(f->matches[i], text, size);
    }
}

static void clear_formats(HtJob *job, void *opaque)
{
    HtSessionFormats *f = opaque;
    unsigned i;

    ht_kernel_formats_list_free(f->list);
    g_clear_pointer(&f->text, g_bytes_unref);
    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        ht_match_formats_free(f->parsed[i]);
    }
}

/* Start a job that writes the formats of a memory's kernel. */
static void begin_formats(HtSession *s, HtSessionPlace *p)
{
    HtSessionFormats *f = g_new0(HtSessionFormats, 1);
    unsigned i;

    f->writer = s->writer;
    f->place = p;
    f->list = g_steal_pointer(&p->list);
    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        f->matches[i] = s->matches[i];
    }
    f->job = ht_job_start("ht-formats", write_formats, f);
    s->formats = f;
}

/* Use the formats that a job has written and parsed. */
static void use_formats(HtSession *s)
{
    HtSessionFormats *f = s->formats;
    unsigned i;

    if (!f->error) {
        ht_rec_writer_commit(s->writer, "formats", f->text, &f->error);
    }
    if (f->error && !s->error) {
        s->error = g_steal_pointer(&f->error);
    }
    g_clear_error(&f->error);
    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        f->parsed[i] = ht_match_formats_set(s->matches[i], f->parsed[i]);
    }
    s->has_formats = true;
    f->written = true;
    f->job = ht_job_start("ht-formats", clear_formats, f);
}

/*
 * If the job of s->formats has ended, go on: use the formats that it has
 * parsed, or drop them if they were used. @wait: wait for the job.
 */
static void end_job(HtSession *s, bool wait)
{
    HtSessionFormats *f = s->formats;

    while (f && (wait || ht_job_is_done(f->job))) {
        g_clear_pointer(&f->job, ht_job_end);
        if (f->written) {
            g_clear_pointer(&s->formats, g_free);
            f = NULL;
        } else {
            use_formats(s);
        }
    }
}

static HtSessionPlace *place_with_formats(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        HtSessionPlace *p = s->places->pdata[i];

        if (p->list) {
            return p;
        }
    }
    return NULL;
}

/*
 * Test whether there is a match and the formats of @p's kernel are not parsed
 * for it yet.
 */
static bool awaits_formats(const HtSession *s, const HtSessionPlace *p)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        any |= s->matches[i] != NULL;
    }
    return any && (p->list || (s->formats && !s->formats->written &&
                               s->formats->place == p));
}

void ht_session_poll_formats(HtSession *s, bool wait)
{
    HtSessionPlace *p;
    unsigned i;

    do {
        end_job(s, wait);
        p = s->formats ? NULL : place_with_formats(s);
        if (p) {
            begin_formats(s, p);
        }
    } while (wait && s->formats);
    for (i = 0; i < s->places->len; i++) {
        p = s->places->pdata[i];
        if (p->new_buffer && !awaits_formats(s, p)) {
            p->new_buffer = false;
            ht_session_follow_buffer(s, p);
        }
    }
}

void ht_session_end_formats(HtSession *s)
{
    end_job(s, true);
}

/*
 * Choose the number, from 0, of the boot of a new log. If the main buffer is
 * recorded, it is the present boot of the ring in the same memory; without such
 * a ring, it is a new boot. If boot-mapped rings are recorded, it is the boot
 * of the newest ring. The number is in any case higher than those of all
 * earlier logs.
 */
static uint32_t boot_of_log(const HtSession *s, const HtFtMem *mem)
{
    uint32_t boot = s->main_buffer ? s->epochs : MAX(s->epochs, 1) - 1;
    unsigned i;

    for (i = 0; s->main_buffer && i < s->rings->len; i++) {
        const HtSessionRing *ring = s->rings->pdata[i];

        if (ring->mem == mem) {
            boot = ring->epoch_base + ht_ft_follow_epoch(ring->follow);
        }
    }
    return MAX(s->log_boots, boot);
}

/*
 * Record the new part of a log. The first record fixes the log's boot.
 *
 * Return: true if the log may have more
 */
static bool poll_log(HtSession *s, HtSessionPlace *p, bool last, uint64_t ns)
{
    const HtBudget budget = { s->now, s->now() + ns };
    bool more, begun;

    if (!p->log || s->error) {
        return false;
    }
    begun = ht_record_log_records(p->log);
    if (!begun) {
        p->log_boot = boot_of_log(s, p->mem);
    }
    g_string_truncate(s->log_text, 0);
    more = ht_record_log_look(p->log, MIN(p->log_boot, HT_SESSION_BOOTS - 1),
                              last, &budget, s->log_text);
    if (s->log_text->len && ht_session_has_room(s, s->log_text->len)) {
        ht_rec_writer_log(s->writer, s->log_text->str, s->log_text->len,
                          &s->error);
    }
    if (!begun && ht_record_log_records(p->log)) {
        s->log_boots = p->log_boot + 1;
    }
    if (ht_record_log_panic(p->log)) {
        s->panic_boot = MAX(s->panic_boot, p->log_boot + 1);
    }
    p->log_old &= more;
    return more;
}

/*
 * Record the rest of a log, for at most @ns in each poll. Poll at most
 * LOG_LAST_POLLS times, because the guest may still print.
 */
static void poll_log_last(HtSession *s, HtSessionPlace *p, uint64_t ns)
{
    unsigned n = 0;
    bool more;

    do {
        more = poll_log(s, p, true, ns);
    } while (more && ++n < LOG_LAST_POLLS);
}

/* After a long pause between polls, a panic may be only in the log's rest. */
void ht_session_end_log(HtSession *s, HtSessionPlace *p)
{
    poll_log_last(s, p, LOG_NS);
    if (p->log) {
        s->logged += ht_record_log_records(p->log);
        g_clear_pointer(&p->log, ht_record_log_free);
    }
}

/*
 * Search for a memory's kernel, and read its log. If the kernel has ended, read
 * the rest of its log, and stop reading its main buffer: events that it wrote
 * there after the previous poll are not read.
 */
static void watch_place(HtSession *s, HtSessionPlace *p, bool last)
{
    unsigned flags = p->watch ? ht_kernel_watch_look(p->watch, last) : 0;

    s->more |= flags & HT_WATCH_MORE;
    if (flags & HT_WATCH_GONE) {
        ht_session_end_log(s, p);
        p->new_buffer = false;
        if (s->main_buffer) {
            ht_session_remove_rings(s, p->mem);
        }
    }
    if (flags & HT_WATCH_KERNEL) {
        p->log = ht_record_log_new(ht_kernel_watch_kernel(p->watch),
                                   match_line, p, NULL);
        p->log_boot = boot_of_log(s, p->mem);
        p->log_old = s->running && !s->log_boots;
    }
    if (flags & HT_WATCH_FORMATS) {
        ht_kernel_formats_list_free(p->list);
        p->list = ht_kernel_watch_formats(p->watch);
    }
    p->new_buffer |= flags & HT_WATCH_FOUND && s->main_buffer;
    s->more |= poll_log(s, p, false, LOG_NS);
}

void ht_session_watch(HtSession *s, bool last)
{
    unsigned n = s->places->len, i;

    ht_session_allow(s, WATCH_NS);
    for (i = 0; i < n; i++) {
        unsigned at = (s->next_place + i) % n;

        if (i && ht_budget_is_over(&s->budget)) {
            s->next_place = at;
            s->more = true;
            break;
        }
        watch_place(s, s->places->pdata[at], last);
    }
    s->next_place = i < n ? s->next_place : 0;
    ht_session_poll_formats(s, last || s->ending);
}

void ht_session_finish_logs(HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        poll_log_last(s, s->places->pdata[i], LOG_LAST_NS);
    }
}
