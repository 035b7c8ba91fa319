/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a recording of an ftrace ring
 *
 * Of each processor one piece is in memory.  What a file says is not trusted:
 * it may have been cut off, and its records are a guest's.
 */
#include "hypertrace/recording.h"

/* Larger than any sub-buffer */
#define PIECE_MAX 65536u
/* Read at once */
#define BUFFER_SIZE (2 * (PIECE_MAX + sizeof(HtRecPieceHeader)))

/* A processor's file */
typedef struct Stream {
    char *path;
    int fd;                     /* -1: no such file */
    uint64_t offset;            /* of the file: where the buffer ends */
    uint8_t *buffer;
    size_t pos, end;            /* of the buffer: what is not used yet */
    bool ended;
    HtFtPiece piece;            /* the last one read */
    uint64_t last_ns;           /* where the one before ended */
    bool ahead;                 /* @piece was not used yet (pages) */
    /* events */
    HtFtIter it;
    HtFtRecord record;
    bool lost;
    uint64_t lost_estimate, lost_from_ns;
    uint64_t order_ns;          /* of the record, never less than before */
    /* pages */
    uint8_t *page;
} Stream;

struct HtRecording {
    char *dir;
    HtRecInfo info;
    Stream *streams;
    uint32_t *heap;             /* processors that have an event, the first */
    uint32_t waiting;           /* of the heap */
    bool merging;
    uint64_t damaged;
};

static void read_text(HtRecording *r, const char *name, char **text,
                      size_t *size)
{
    g_autofree char *path = g_build_filename(r->dir, name, NULL);

    if (!g_file_get_contents(path, text, size, NULL)) {
        *text = NULL;
        *size = 0;
    }
}

/* One more than the highest N of the files cpuN */
static uint32_t count_cpus(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;
    uint32_t cpus = 0;

    while (d && (name = g_dir_read_name(d))) {
        guint64 n;

        if (g_str_has_prefix(name, "cpu") &&
            g_ascii_string_to_unsigned(name + 3, 10, 0, HT_FT_CPUS_MAX - 1,
                                       &n, NULL)) {
            cpus = MAX(cpus, n + 1);
        }
    }
    return cpus;
}

HtRecording *ht_rec_open(const char *dir, GError **error)
{
    g_autoptr(GKeyFile) keys = g_key_file_new();
    g_autofree char *info = g_build_filename(dir, "info", NULL);
    g_autoptr(GError) local = NULL;
    HtRecording *r;
    int version;
    uint32_t i;

    if (!g_key_file_load_from_file(keys, info, G_KEY_FILE_NONE, &local)) {
        g_set_error(error, local->domain, local->code,
                    "%s is no recording: %s: %s", dir, info, local->message);
        return NULL;
    }
    version = g_key_file_get_integer(keys, "recording", "version", NULL);
    if (version != HT_REC_VERSION) {
        g_set_error(error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE,
                    "%s: version %d in [recording], this program reads %d",
                    info, version, HT_REC_VERSION);
        return NULL;
    }
    r = g_new0(HtRecording, 1);
    r->dir = g_strdup(dir);
    r->info.keys = g_steal_pointer(&keys);
    r->info.cpus = count_cpus(dir);
    r->info.subbuf_size = g_key_file_get_integer(r->info.keys, "guest",
                                                 "page-size", NULL);
    if (r->info.subbuf_size < 4096 || r->info.subbuf_size > PIECE_MAX) {
        r->info.subbuf_size = 4096;
    }
    read_text(r, "formats", &r->info.formats, &r->info.formats_size);
    read_text(r, "kallsyms", &r->info.kallsyms, &r->info.kallsyms_size);
    r->streams = g_new0(Stream, r->info.cpus);
    r->heap = g_new0(uint32_t, r->info.cpus);
    for (i = 0; i < r->info.cpus; i++) {
        Stream *s = &r->streams[i];

        s->path = g_strdup_printf("%s/cpu%u", dir, i);
        s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
        s->ended = s->fd < 0;
        s->buffer = s->ended ? NULL : g_malloc(BUFFER_SIZE);
    }
    return r;
}

void ht_rec_close(HtRecording *r)
{
    uint32_t i;

    if (!r) {
        return;
    }
    for (i = 0; i < r->info.cpus; i++) {
        Stream *s = &r->streams[i];

        if (s->fd >= 0) {
            close(s->fd);
        }
        g_free(s->path);
        g_free(s->buffer);
        g_free(s->page);
    }
    g_free(r->streams);
    g_free(r->heap);
    g_key_file_unref(r->info.keys);
    g_free(r->info.formats);
    g_free(r->info.kallsyms);
    g_free(r->dir);
    g_free(r);
}

const HtRecInfo *ht_rec_info(HtRecording *r)
{
    return &r->info;
}

uint64_t ht_rec_damaged(const HtRecording *r)
{
    return r->damaged;
}

void ht_rec_rewind(HtRecording *r)
{
    uint32_t i;

    for (i = 0; i < r->info.cpus; i++) {
        Stream *s = &r->streams[i];

        s->offset = 0;
        s->pos = s->end = 0;
        s->ended = s->fd < 0;
        s->last_ns = 0;
        s->ahead = false;
        s->lost = false;
        s->order_ns = 0;
        s->piece = (HtFtPiece) { 0 };
    }
    r->merging = false;
    r->damaged = 0;
}

/* Have @need bytes in the buffer; false at the end of the file */
static bool stream_fill(Stream *s, size_t need)
{
    if (s->end - s->pos >= need) {
        return true;
    }
    memmove(s->buffer, s->buffer + s->pos, s->end - s->pos);
    s->end -= s->pos;
    s->pos = 0;
    while (s->end < need) {
        ssize_t n = pread(s->fd, s->buffer + s->end, BUFFER_SIZE - s->end,
                          s->offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        s->end += n;
        s->offset += n;
    }
    return true;
}

/* Where a piece's records end, and how many events there are */
static bool piece_scan(HtFtPiece *p)
{
    HtFtRecord rec;
    HtFtIter it;
    HtFtStep step;

    p->events = 0;
    p->begin_ns = p->base_ns;
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while ((step = ht_ft_iter_next(&it, &rec)) == HT_FT_EVENT) {
        if (p->events++ == 0) {
            p->begin_ns = rec.ns;
        }
    }
    p->end_ns = it.ns;
    return step == HT_FT_END;
}

static bool header_ok(const HtRecPieceHeader *h)
{
    uint32_t size = ht_le32(h->size), from = ht_le32(h->from);

    return ht_le32(h->magic) == HT_REC_MAGIC && size % 4 == 0 && size != 0 &&
           size <= PIECE_MAX - HT_FT_PAGE_HEADER && from % 4 == 0 &&
           from <= PIECE_MAX - HT_FT_PAGE_HEADER - size;
}

/* The next piece; its data are in the buffer until the call after */
static bool stream_piece(HtRecording *r, uint32_t cpu)
{
    Stream *s = &r->streams[cpu];
    HtRecPieceHeader h;
    bool lost = false;

    s->last_ns = s->piece.end_ns;
    while (!s->ended) {
        HtFtPiece *p = &s->piece;

        if (!stream_fill(s, sizeof(h))) {
            break;
        }
        memcpy(&h, s->buffer + s->pos, sizeof(h));
        if (!header_ok(&h)) {
            s->pos += 4;
            r->damaged += 4;
            lost = true;
            continue;
        }
        if (!stream_fill(s, sizeof(h) + ht_le32(h.size))) {
            break;
        }
        *p = (HtFtPiece) {
            .cpu = cpu,
            .slot = ht_le32(h.slot),
            .from = ht_le32(h.from),
            .size = ht_le32(h.size),
            .data = s->buffer + s->pos + sizeof(h),
            .stamp = ht_le64(h.stamp),
            .base_ns = ht_le64(h.base_ns),
            .epoch = ht_le32(h.epoch),
            .segment = ht_le32(h.segment),
            .flags = ht_le32(h.flags) | (lost ? HT_FT_PIECE_LOST : 0),
            .lost_from_ns = s->last_ns,
            .lost_estimate = ht_le32(h.lost),
            .host_before = ht_le64(h.host_before),
            .host_after = ht_le64(h.host_after),
        };
        if (piece_scan(p)) {
            s->pos += sizeof(h) + p->size;
            return true;
        }
        s->pos += 4;
        r->damaged += 4;
        lost = true;
    }
    s->ended = true;
    return false;
}

bool ht_rec_next_piece(HtRecording *r, uint32_t cpu, HtFtPiece *p)
{
    if (cpu >= r->info.cpus || !stream_piece(r, cpu)) {
        return false;
    }
    *p = r->streams[cpu].piece;
    return true;
}

/* The processor's next event, in a piece that has one */
static bool stream_event(HtRecording *r, uint32_t cpu)
{
    Stream *s = &r->streams[cpu];

    while (ht_ft_iter_next(&s->it, &s->record) != HT_FT_EVENT) {
        uint32_t epoch = s->piece.epoch, segment = s->piece.segment;

        if (!stream_piece(r, cpu)) {
            return false;
        }
        if (s->piece.epoch != epoch || s->piece.segment != segment) {
            s->order_ns = 0;
        }
        if (s->piece.flags & HT_FT_PIECE_LOST) {
            s->lost_from_ns = s->lost ? s->lost_from_ns : s->last_ns;
            s->lost_estimate = s->piece.lost_estimate +
                               (s->lost ? s->lost_estimate : 0);
            s->lost = true;
        }
        ht_ft_iter_init(&s->it, s->piece.data, s->piece.size, 0,
                        s->piece.base_ns);
    }
    s->order_ns = MAX(s->order_ns, s->record.ns);
    return true;
}

/* Is processor @a's event before @b's? */
static bool before(const HtRecording *r, uint32_t a, uint32_t b)
{
    const Stream *s = &r->streams[a], *t = &r->streams[b];

    if (s->piece.epoch != t->piece.epoch) {
        return s->piece.epoch < t->piece.epoch;
    }
    if (s->piece.segment != t->piece.segment) {
        return s->piece.segment < t->piece.segment;
    }
    return s->order_ns != t->order_ns ? s->order_ns < t->order_ns : a < b;
}

static void heap_down(HtRecording *r, uint32_t i)
{
    uint32_t cpu = r->heap[i];

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= r->waiting) {
            break;
        }
        if (child + 1 < r->waiting &&
            before(r, r->heap[child + 1], r->heap[child])) {
            child++;
        }
        if (!before(r, r->heap[child], cpu)) {
            break;
        }
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = cpu;
}

static void merge_begin(HtRecording *r)
{
    uint32_t i;

    r->waiting = 0;
    for (i = 0; i < r->info.cpus; i++) {
        ht_ft_iter_init(&r->streams[i].it, NULL, 0, 0, 0);
        if (stream_event(r, i)) {
            r->heap[r->waiting++] = i;
        }
    }
    for (i = r->waiting / 2; i-- > 0; ) {
        heap_down(r, i);
    }
}

bool ht_rec_next(HtRecording *r, HtRecEvent *ev)
{
    const uint8_t *data;
    Stream *s;

    if (!r->merging) {
        merge_begin(r);
        r->merging = true;
    } else if (r->waiting) {
        /* Only now: the last event's data were valid until this call. */
        if (!stream_event(r, r->heap[0])) {
            r->heap[0] = r->heap[--r->waiting];
        }
        if (r->waiting) {
            heap_down(r, 0);
        }
    }
    if (r->waiting == 0) {
        return false;
    }
    s = &r->streams[r->heap[0]];
    data = s->record.data;
    *ev = (HtRecEvent) {
        .ns = s->record.ns,
        .cpu = r->heap[0],
        .epoch = s->piece.epoch,
        .segment = s->piece.segment,
        .type = ht_ft_event_type(data),
        .flags = ht_ft_event_flags(data),
        .preempt = ht_ft_event_preempt(data),
        .pid = ht_ft_event_pid(data),
        .size = s->record.size,
        .data = data,
        .lost_before = s->lost,
        .lost_estimate = s->lost ? s->lost_estimate : 0,
        .lost_from_ns = s->lost ? s->lost_from_ns : 0,
    };
    s->lost = false;
    return true;
}

/* Does @p go on where the page has @used bytes, without a step of the clock? */
static bool same_page(const HtFtPiece *p, const HtRecPage *page,
                      uint32_t slot, uint64_t stamp, uint32_t to)
{
    return p->slot == slot && p->stamp == stamp && p->from == to &&
           p->epoch == page->epoch && p->segment == page->segment &&
           !(p->flags & HT_FT_PIECE_LOST) && p->from != 0;
}

bool ht_rec_next_page(HtRecording *r, uint32_t cpu, HtRecPage *page)
{
    uint32_t slot, to;
    uint64_t stamp;
    Stream *s;

    if (cpu >= r->info.cpus) {
        return false;
    }
    s = &r->streams[cpu];
    if (!s->ahead && !stream_piece(r, cpu)) {
        return false;
    }
    if (!s->page) {
        s->page = g_malloc(PIECE_MAX);
    }
    slot = s->piece.slot;
    stamp = s->piece.stamp;
    to = s->piece.from;
    *page = (HtRecPage) {
        .stamp = s->piece.base_ns,
        .data = s->page,
        .epoch = s->piece.epoch,
        .segment = s->piece.segment,
        .lost_before = s->piece.flags & HT_FT_PIECE_LOST,
        .lost_estimate = s->piece.lost_estimate,
        .host_before = s->piece.host_before,
        .host_after = s->piece.host_after,
    };
    do {
        memcpy(s->page + page->size, s->piece.data, s->piece.size);
        page->size += s->piece.size;
        page->events += s->piece.events;
        to += s->piece.size;
        s->ahead = stream_piece(r, cpu);
    } while (s->ahead && same_page(&s->piece, page, slot, stamp, to));
    return true;
}
