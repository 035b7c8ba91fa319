/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: copy events from a guest's memory into a recording
 */
#include "hypertrace/base.h"
#include "hypertrace/thread.h"
#include "record/session.h"

/*
 * If no boot-mapped ring was found, number of pages of 4 KiB that are tested in
 * each memory at the end: 16 GiB
 */
#define ANYWHERE_LAST   (UINT64_C(4) << 20)

bool ht_session_has_room(HtSession *s, uint64_t bytes)
{
    if (s->max_bytes - ht_rec_writer_bytes(s->writer) >= bytes) {
        return true;
    }
    g_set_error(&s->error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "the recording "
                "has the size that it may have (--max-size, %" PRIu64 " MiB): "
                "the guest goes on, but nothing more is recorded",
                s->max_bytes >> 20);
    return false;
}

void ht_session_allow(HtSession *s, uint64_t ns)
{
    s->budget.end = s->ending ? UINT64_MAX : s->now() + ns;
}

static void free_place(void *opaque)
{
    HtSessionPlace *p = opaque;

    ht_record_log_free(p->log);
    ht_kernel_formats_list_free(p->list);
    ht_kernel_watch_free(p->watch);
    ht_ft_search_clear(&p->search);
    ht_ft_search_clear(&p->anywhere);
    g_free(p);
}

void ht_session_process(HtSession *s, pid_t pid)
{
    if (pid && pid != s->process) {
        s->process = pid;
        ht_record_info_process(&s->info, pid);
    }
}

bool ht_session_look(HtSession *s, GError **error)
{
    s->more = false;
    if (s->image) {
        ht_session_watch(s, false);
    }
    ht_session_poll_search(s);
    ht_session_poll_rings(s);
    if (s->error) {
        ht_rec_writer_flush(s->writer, NULL);
        g_propagate_error(error, g_steal_pointer(&s->error));
        return false;
    }
    return ht_record_info_poll(&s->info, s->writer, s->now(), error) &&
           ht_rec_writer_flush(s->writer, error);
}

bool ht_session_more(const HtSession *s)
{
    return s->more;
}

bool ht_session_log_hint(const HtSession *s, HtKernelLogHint *hint)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const HtSessionPlace *p = s->places->pdata[i];

        if (p->log && ht_record_log_hint(p->log, hint)) {
            return true;
        }
    }
    return false;
}

HtSession *ht_session_new(const HtSessionInfo *info, GError **error)
{
    g_autoptr(HtSession) s = g_new0(HtSession, 1);
    unsigned i;

    s->rings = g_ptr_array_new_with_free_func(ht_session_free_ring);
    ht_record_info_init(&s->info, info);
    s->kernel = info->kernel;
    s->max_bytes = info->max_bytes && !info->memory ? info->max_bytes :
                   UINT64_MAX;
    s->ring_at = info->ring_at;
    s->runs = info->runs;
    memcpy(s->matches, info->matches, sizeof(s->matches));
    s->running = info->running;
    s->image = info->image ? ht_kernel_image_ref(info->image) : NULL;
    s->main_buffer = s->image && info->main_buffer;
    s->has_formats = s->kernel && s->kernel->formats;
    for (i = 0; s->has_formats && i < HT_SESSION_MATCHES; i++) {
        ht_match_formats(s->matches[i], s->kernel->formats,
                         s->kernel->formats_size);
    }
    s->log_text = g_string_new(NULL);
    s->now = info->now ? info->now : ht_now_ns;
    s->budget = (HtBudget) { s->now, UINT64_MAX };
    s->pace.started = s->now();
    s->places = g_ptr_array_new_with_free_func(free_place);
    s->writer = info->memory ? ht_rec_writer_new_memory(info->memory, error) :
                ht_rec_writer_new(info->dir, error);
    if (!s->writer) {
        return NULL;
    }
    if (!ht_record_info_kernel(s->writer, s->kernel, error) ||
        !ht_record_info_write(&s->info, s->writer, error)) {
        ht_session_discard(s);
        return NULL;
    }
    return g_steal_pointer(&s);
}

void ht_session_add(HtSession *s, const HtFtMem *mem, unsigned what)
{
    HtSessionPlace *p = g_new0(HtSessionPlace, 1);

    p->session = s;
    p->mem = mem;
    p->rings = what & HT_SESSION_RINGS;
    if (s->image && what & HT_SESSION_KERNEL) {
        p->watch = ht_kernel_watch_new(mem, s->image,
                                       s->main_buffer || !s->has_formats,
                                       s->now);
    }
    ht_ft_search_init(&p->search, mem, HT_FT_SEARCH_FAST);
    ht_ft_search_init(&p->anywhere, mem, HT_FT_SEARCH_FULL);
    g_ptr_array_add(s->places, p);
}

void ht_session_remove(HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    ht_session_remove_rings(s, mem);
    for (i = s->places->len; i-- > 0;) {
        HtSessionPlace *p = s->places->pdata[i];

        if (p->mem == mem) {
            ht_session_end_log(s, p);
            p->new_buffer = false;
            if (p->list) {
                ht_session_poll_formats(s, true);
            }
            g_ptr_array_remove_index(s->places, i);
        }
    }
}

bool ht_session_has_kernel(const HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const HtSessionPlace *p = s->places->pdata[i];

        if (p->mem == mem && p->log) {
            return true;
        }
    }
    return false;
}

HtSessionStats ht_session_stats(const HtSession *s)
{
    HtFtStats sum = s->past;
    uint64_t logged = s->logged;
    uint32_t kernel_boot = 0;
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const HtSessionPlace *p = s->places->pdata[i];

        if (p->log) {
            kernel_boot = MAX(kernel_boot, p->log_boot + 1);
            logged += ht_record_log_records(p->log);
        }
    }
    for (i = 0; i < s->rings->len; i++) {
        ht_session_add_stats(&sum, s->rings->pdata[i]);
    }
    return (HtSessionStats) {
        .found = s->epochs != 0,
        .events = sum.events,
        .held = ht_rec_writer_held(s->writer),
        .bytes = ht_rec_writer_bytes(s->writer),
        .gaps = sum.gaps,
        .lost = sum.lost,
        .late = sum.late,
        .errors = sum.errors,
        .cut = s->cut,
        .boots = MAX(s->epochs, s->log_boots),
        .logged = logged,
        .kernel_boot = kernel_boot,
        .panic_boot = s->panic_boot,
    };
}

/* Poll until a poll has recorded all that it saw, or *@rounds is 0. */
static bool poll_until_empty(HtSession *s, uint64_t *rounds, GError **error)
{
    for (; ht_session_look(s, error); --*rounds) {
        if (!s->more || !*rounds) {
            return true;
        }
    }
    return false;
}

/*
 * Record the remaining events. The number of polls has a limit, because a guest
 * that still runs may write faster than the recorder reads.
 */
static bool poll_last(HtSession *s, GError **error)
{
    uint64_t rounds = 2;
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        const HtSessionRing *ring = s->rings->pdata[i];

        rounds += ht_ft_follow_polls(ring->follow);
    }
    /*
     * On a host with weak memory ordering, a poll records only the events that
     * the previous poll saw, see ht_ft_follow_look(): so empty the rings twice.
     */
    return poll_until_empty(s, &rounds, error) &&
           poll_until_empty(s, &rounds, error);
}

bool ht_session_finish(HtSession *s, const char *end, GError **error)
{
    unsigned i;

    s->ending = true;
    s->pace.next = 0;
    if (s->image && (s->main_buffer ? !s->rings->len :
                     !s->log_boots || !s->has_formats)) {
        ht_session_watch(s, true);
    }
    if (!poll_last(s, error)) {
        return false;
    }
    ht_session_finish_logs(s);
    ht_session_poll_formats(s, true);
    if (s->error) {
        g_propagate_error(error, g_steal_pointer(&s->error));
        return false;
    }
    if (!s->rings->len && !s->main_buffer) {
        ht_session_search(s, ANYWHERE_LAST);
    }
    /*
     * A boot-mapped ring is recorded only after it has changed, but the memory
     * of an ended guest does not change: record its first ring that can be
     * read.
     */
    for (i = 0; !ht_session_any_taken(s) && !s->epochs && i < s->rings->len;
         i++) {
        if (ht_session_follow_again(s, s->rings->pdata[i]) &&
            !poll_last(s, error)) {
            return false;
        }
    }
    ht_rec_info_end(s->info.keys, end, s->now());
    return ht_record_info_write(&s->info, s->writer, error);
}

const char *ht_session_why(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const HtSessionPlace *p = s->places->pdata[i];
        const char *why = p->watch ? ht_kernel_watch_why(p->watch) : NULL;

        if (why) {
            return why;
        }
    }
    return NULL;
}

void ht_session_stop(HtSession *s, const char *why)
{
    g_key_file_set_string(s->info.keys, "recording", "cut", why);
    ht_record_info_write(&s->info, s->writer, NULL);
}

void ht_session_write_formats(HtSession *s)
{
    ht_session_poll_formats(s, true);
}

bool ht_session_save(HtSession *s, HtRecWriter *to, const char *cause,
                     const char *end, GError **error)
{
    g_key_file_set_string(s->info.keys, "recording", "cause", cause);
    ht_rec_info_end(s->info.keys, end, s->now());
    return ht_record_info_write(&s->info, s->writer, error) &&
           ht_rec_writer_save(s->writer, to, error);
}

void ht_session_discard(HtSession *s)
{
    ht_session_end_formats(s);
    ht_rec_writer_discard(s->writer);
}

void ht_session_free(HtSession *s)
{
    if (s) {
        ht_session_end_formats(s);
        g_ptr_array_free(s->rings, true);
        g_ptr_array_free(s->places, true);
        g_string_free(s->log_text, true);
        ht_rec_writer_free(s->writer);
        ht_kernel_image_unref(s->image);
        ht_record_info_clear(&s->info);
        g_clear_error(&s->error);
        g_free(s);
    }
}
