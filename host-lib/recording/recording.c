/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a recording of an ftrace ring
 *
 * Each processor has a buffer for two pieces.  The content of the files is not
 * trusted: they may be incomplete, and their records come from a guest.
 */
#include "hypertrace/ftrace-format.h"
#include "hypertrace/recording.h"
#include "hypertrace/symbols.h"

/* Maximum size of a sub-buffer, in bytes */
#define PIECE_MAX 65536u
/* Size of a stream's buffer: two pieces */
#define BUFFER_SIZE (2 * (PIECE_MAX + sizeof(HtRecPieceHeader)))

typedef struct Stream {
    char *path;
    bool exists;
    /*
     * descriptor of the file; -1: the file does not exist, or, for processors
     * from HT_REC_OPEN_MAX on, is opened for each read
     */
    int fd;
    uint64_t offset;
    uint8_t *buffer;
    /* range of @buffer that was read from the file and not parsed yet */
    size_t pos, end;
    bool ended;
    /* bytes of the file were skipped after the last valid piece */
    bool skipped;
    HtFtPiece piece;            /* the last valid piece; all 0: none yet */
    /* reading pages: @piece was parsed and is not part of a page yet */
    bool ahead;
    HtFtIter it;
    HtFtRecord record;
    bool lost;
    uint64_t lost_estimate, lost_from_ns;
    /* latest time of the events up to @record in its segment */
    uint64_t order_ns;
    /* reading pages: buffer in which the pieces of a page are joined */
    uint8_t *page;
} Stream;

/* A processor's next event: its place in the order of all events */
typedef struct Next {
    /* epoch (upper half) and segment of the event */
    uint64_t part;
    uint64_t ns;                /* Stream.order_ns of the event */
    uint32_t cpu;
} Next;

struct HtRecording {
    char *dir;
    HtRecInfo info;
    Stream *streams;
    /* heap of the processors that have a next event; the earliest is first */
    Next *heap;
    uint32_t waiting;
    bool merging;
    /* ht_rec_next() has returned the event of @heap[0] */
    bool returned;
    uint64_t damaged;
    /* number of bytes after the last whole piece, summed over the files */
    uint64_t unread;
    int error;                  /* errno of the first read that failed */
    /*
     * limits of ht_rec_until(): the last epoch, and the last time for events of
     * @last_part or later
     */
    uint32_t until_epoch;
    uint64_t until_ns;
    uint64_t last_part;         /* Next.part of the recording's end */
    /*
     * if @end_read: result of the search for the end, and whether that search
     * has found it
     */
    HtRecEnd end;
    bool end_found;
    bool end_read;
    /*
     * set by ht_rec_more(): ht_rec_next() returns no event at or after this
     * time, on the clock of the recorded ring
     */
    uint64_t before_ns;
    /* size in bytes of all processors' files when they were opened */
    uint64_t bytes;
};

static void fail(GError **error, const char *path, int code)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot read %s: %s", path, g_strerror(code));
}

/*
 * Open a file of a recording.  The recording is not trusted: only a regular
 * file is accepted, because others may have no end or may block.  Returns -1 if
 * the file does not exist (without @error) or cannot be opened.
 */
static int open_file(const char *path, struct stat *st, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        if (errno != ENOENT) {
            fail(error, path, errno);
        }
        return -1;
    }
    if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "cannot read %s: it is no regular file", path);
        close(fd);
        return -1;
    }
    return fd;
}

/*
 * Read a text of at most @max bytes.  Returns true with @text unchanged if
 * there is no such file; false with @error set on failure
 */
static bool read_text(const char *dir, const char *name, size_t max,
                      char **text, size_t *size, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) local = NULL;
    struct stat st;
    size_t end = 0;
    int fd = open_file(path, &st, &local);

    if (fd < 0) {
        if (local) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        return true;
    }
    if (st.st_size > (off_t)max) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "cannot read %s: it has %" PRId64 " bytes; at most %zu "
                    "are read", path, (int64_t)st.st_size, max);
        close(fd);
        return false;
    }
    *text = g_malloc(st.st_size + 1);
    while (end < (size_t)st.st_size) {
        ssize_t n = read(fd, *text + end, st.st_size - end);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            fail(error, path, errno);
            g_clear_pointer(text, g_free);
            close(fd);
            return false;
        }
        if (n == 0) {
            break;
        }
        end += n;
    }
    close(fd);
    (*text)[end] = 0;
    *size = end;
    return true;
}

static void count_cpus(const char *dir, HtRecInfo *info)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    info->cpus_left_out = 0;
    while (d && (name = g_dir_read_name(d))) {
        guint64 n;

        if (!g_str_has_prefix(name, "cpu") ||
            !g_ascii_string_to_unsigned(name + 3, 10, 0, UINT32_MAX, &n,
                                        NULL)) {
            continue;
        }
        if (n < HT_FT_CPUS_MAX) {
            info->cpus = MAX(info->cpus, n + 1);
        } else {
            info->cpus_left_out++;
        }
    }
}

static GKeyFile *read_info(const char *dir, GError **error)
{
    g_autoptr(GKeyFile) keys = g_key_file_new();
    g_autoptr(GError) local = NULL;
    g_autofree char *text = NULL;
    size_t size;
    int version;

    if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        bool there = g_file_test(dir, G_FILE_TEST_EXISTS);

        g_set_error(error, G_FILE_ERROR, there ? G_FILE_ERROR_NOTDIR :
                    G_FILE_ERROR_NOENT, "there is no directory '%s'%s", dir,
                    there ? ": this is a file, and a recording is a directory" :
                    "");
        return NULL;
    }
    if (!read_text(dir, "info", HT_REC_INFO_MAX, &text, &size, &local) ||
        !text || !g_key_file_load_from_data(keys, text, size, G_KEY_FILE_NONE,
                                            &local)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s is no recording: %s", dir,
                    local ? local->message : "it has no file \"info\"");
        return NULL;
    }
    version = g_key_file_get_integer(keys, "recording", "version", NULL);
    if (version != HT_REC_VERSION) {
        g_set_error(error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE,
                    "%s/info: version %d in [recording], this program reads "
                    "%d", dir, version, HT_REC_VERSION);
        return NULL;
    }
    return g_steal_pointer(&keys);
}

static bool open_stream(HtRecording *r, uint32_t i, GError **error)
{
    g_autoptr(GError) local = NULL;
    Stream *s = &r->streams[i];
    struct stat st;

    g_free(s->path);
    s->path = g_strdup_printf("%s/cpu%u", r->dir, i);
    s->fd = open_file(s->path, &st, &local);
    s->exists = s->fd >= 0;
    r->bytes += s->exists ? st.st_size : 0;
    s->ended = !s->exists;
    s->buffer = s->exists ? g_malloc(BUFFER_SIZE) : NULL;
    if (s->exists && i >= HT_REC_OPEN_MAX) {
        close(s->fd);
        s->fd = -1;
    }
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    return true;
}

/* Make room for all processors; @from: number of those that have room. */
static void grow_streams(HtRecording *r, uint32_t from)
{
    r->heap = g_renew(Next, r->heap, r->info.cpus);
    r->streams = g_renew(Stream, r->streams, r->info.cpus);
    for (; from < r->info.cpus; from++) {
        r->streams[from] = (Stream) { .fd = -1, .ended = true };
    }
}

static bool open_streams(HtRecording *r, GError **error)
{
    uint32_t i;

    for (i = 0; i < r->info.cpus; i++) {
        if (!open_stream(r, i, error)) {
            return false;
        }
    }
    return true;
}

HtRecording *ht_rec_open(const char *dir, GError **error)
{
    g_autoptr(HtRecording) r = NULL;
    GKeyFile *keys = read_info(dir, error);

    if (!keys) {
        return NULL;
    }
    r = g_new0(HtRecording, 1);
    r->dir = g_strdup(dir);
    r->info.keys = keys;
    count_cpus(dir, &r->info);
    r->info.subbuf_size = g_key_file_get_integer(keys, "guest", "page-size",
                                                 NULL);
    if (r->info.subbuf_size < 4096 || r->info.subbuf_size > PIECE_MAX) {
        r->info.subbuf_size = 4096;
    }
    r->until_epoch = UINT32_MAX;
    r->until_ns = UINT64_MAX;
    r->before_ns = UINT64_MAX;
    grow_streams(r, 0);
    if (!read_text(dir, "formats", HT_FT_FORMATS_MAX, &r->info.formats,
                   &r->info.formats_size, error) ||
        !read_text(dir, "kallsyms", HT_SYMBOLS_MAX, &r->info.kallsyms,
                   &r->info.kallsyms_size, error) ||
        !open_streams(r, error)) {
        return NULL;
    }
    return g_steal_pointer(&r);
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

char *ht_rec_text(HtRecording *r, const char *name, size_t max, size_t *size,
                  GError **error)
{
    char *text = NULL;

    read_text(r->dir, name, max, &text, size, error);
    return text;
}

uint64_t ht_rec_damaged(const HtRecording *r)
{
    return r->damaged;
}

uint64_t ht_rec_unread(const HtRecording *r)
{
    return r->unread;
}

int ht_rec_error(const HtRecording *r)
{
    return r->error;
}

void ht_rec_rewind(HtRecording *r)
{
    uint32_t i;

    for (i = 0; i < r->info.cpus; i++) {
        Stream *s = &r->streams[i];

        s->offset = 0;
        s->pos = s->end = 0;
        s->ended = !s->exists;
        s->skipped = false;
        s->ahead = false;
        s->lost = false;
        s->order_ns = 0;
        s->piece = (HtFtPiece) { 0 };
    }
    r->merging = r->returned = false;
    r->damaged = r->unread = 0;
    r->error = 0;
}

unsigned ht_rec_progress(const HtRecording *r)
{
    uint64_t read = 0;
    uint32_t i;

    for (i = 0; i < r->info.cpus; i++) {
        read += r->streams[i].offset;
    }
    return r->bytes ? MIN(read * 1.0 / r->bytes, 1) * 1000 : 1000;
}

/* Read on into the rest of the buffer; returns the number of bytes, or -1 */
static ssize_t stream_read(Stream *s)
{
    struct stat st;
    int fd = s->fd >= 0 ? s->fd : open_file(s->path, &st, NULL);
    ssize_t n = fd < 0 ? -1 : pread(fd, s->buffer + s->end,
                                    BUFFER_SIZE - s->end, s->offset);

    if (fd != s->fd) {
        close(fd);
    }
    return n;
}

/* Read until the buffer has @need bytes; false at the file's end or an error */
static bool stream_fill(HtRecording *r, Stream *s, size_t need)
{
    if (s->end - s->pos >= need) {
        return true;
    }
    memmove(s->buffer, s->buffer + s->pos, s->end - s->pos);
    s->end -= s->pos;
    s->pos = 0;
    while (s->end < need) {
        ssize_t n = stream_read(s);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && !r->error) {
            r->error = errno;
        }
        if (n <= 0) {
            return false;
        }
        s->end += n;
        s->offset += n;
    }
    return true;
}

/*
 * Set a piece's times and number of events; returns false if a record is
 * invalid
 */
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

    /*
     * Refuse the epoch UINT32_MAX: boots are shown as epoch + 1, which would
     * overflow.
     */
    return ht_le32(h->magic) == HT_REC_MAGIC &&
           ht_le32(h->epoch) != UINT32_MAX && size % 4 == 0 && size != 0 &&
           size <= PIECE_MAX - HT_FT_PAGE_HEADER && from % 4 == 0 &&
           from <= PIECE_MAX - HT_FT_PAGE_HEADER - size;
}

static uint64_t part_of(uint32_t epoch, uint32_t segment)
{
    return (uint64_t)epoch << 32 | segment;
}

/*
 * Test whether a piece is a copy of an earlier piece, which another program
 * than the recorder has appended to the file.  The recorder does not append a
 * piece of an earlier epoch or segment unless it was read later than the piece
 * before it: if the guest has two rings, a later poll may read pieces of an
 * earlier epoch.  In one segment, the recorder appends pieces in the order in
 * which it read them.
 */
static bool is_copy(const HtFtPiece *last, const HtFtPiece *p)
{
    uint64_t last_part = part_of(last->epoch, last->segment);
    uint64_t part = part_of(p->epoch, p->segment);

    return part < last_part ? p->host_after <= last->host_after :
           part == last_part && p->host_after < last->host_after;
}

/* Parse the next piece; its data stays in the buffer until the next call */
static bool stream_piece(HtRecording *r, uint32_t cpu)
{
    Stream *s = &r->streams[cpu];
    HtRecPieceHeader h;

    while (!s->ended) {
        HtFtPiece p;

        if (!stream_fill(r, s, sizeof(h))) {
            break;
        }
        memcpy(&h, s->buffer + s->pos, sizeof(h));
        if (!header_ok(&h)) {
            s->pos += 4;
            r->damaged += 4;
            s->skipped = true;
            continue;
        }
        if (!stream_fill(r, s, sizeof(h) + ht_le32(h.size))) {
            break;
        }
        p = (HtFtPiece) {
            .cpu = cpu,
            .slot = ht_le32(h.slot),
            .from = ht_le32(h.from),
            .size = ht_le32(h.size),
            .data = s->buffer + s->pos + sizeof(h),
            .stamp = ht_le64(h.stamp),
            .base_ns = ht_le64(h.base_ns),
            .epoch = ht_le32(h.epoch),
            .segment = ht_le32(h.segment),
            .flags = ht_le32(h.flags) | (s->skipped ? HT_FT_PIECE_LOST : 0),
            .lost_from_ns = s->piece.end_ns,
            .lost_estimate = ht_le32(h.lost),
            .host_before = ht_le64(h.host_before),
            .host_after = ht_le64(h.host_after),
        };
        if (!piece_scan(&p)) {
            s->pos += 4;
            r->damaged += 4;
            s->skipped = true;
            continue;
        }
        s->pos += sizeof(h) + p.size;
        if (!is_copy(&s->piece, &p)) {
            s->piece = p;
            s->skipped = false;
            return true;
        }
        r->damaged += sizeof(h) + p.size;
        s->skipped = true;
    }
    if (!s->ended) {
        r->unread += s->end - s->pos;
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

/* Go to the processor's next event, which may be in a later piece */
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
            s->lost_from_ns = s->lost ? s->lost_from_ns :
                              s->piece.lost_from_ns;
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

/* Test whether the next event of processor @a is before that of processor @b */
static bool before(const Next *a, const Next *b)
{
    return a->part != b->part ? a->part < b->part :
           a->ns != b->ns ? a->ns < b->ns : a->cpu < b->cpu;
}

static Next next_of(const HtRecording *r, uint32_t cpu)
{
    const Stream *s = &r->streams[cpu];

    return (Next) {
        .part = part_of(s->piece.epoch, s->piece.segment),
        .ns = s->order_ns,
        .cpu = cpu,
    };
}

static void heap_down(HtRecording *r, uint32_t i)
{
    Next next = r->heap[i];

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= r->waiting) {
            break;
        }
        if (child + 1 < r->waiting &&
            before(&r->heap[child + 1], &r->heap[child])) {
            child++;
        }
        if (!before(&r->heap[child], &next)) {
            break;
        }
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = next;
}

static void heapify(HtRecording *r)
{
    uint32_t i;

    for (i = r->waiting / 2; i-- > 0; ) {
        heap_down(r, i);
    }
}

static void merge_begin(HtRecording *r)
{
    uint32_t i;

    r->waiting = 0;
    for (i = 0; i < r->info.cpus; i++) {
        ht_ft_iter_init(&r->streams[i].it, NULL, 0, 0, 0);
        if (stream_event(r, i)) {
            r->heap[r->waiting++] = next_of(r, i);
        }
    }
    heapify(r);
    r->merging = true;
}

/*
 * Replace the first event of the heap, which was returned, by the next event of
 * its processor
 */
static void merge_next(HtRecording *r)
{
    uint32_t cpu = r->heap[0].cpu;

    r->heap[0] = stream_event(r, cpu) ? next_of(r, cpu) :
                 r->heap[--r->waiting];
    if (r->waiting) {
        heap_down(r, 0);
    }
    r->returned = false;
}

/*
 * If a processor's file is new, or had ended when it was last read, read on and
 * add its next event to the heap.  The heap already has the next events of the
 * other processors.
 */
static void stream_more(HtRecording *r, uint32_t cpu)
{
    Stream *s = &r->streams[cpu];

    if (!s->exists) {
        if (!open_stream(r, cpu, NULL) && !r->error) {
            r->error = EIO;
        }
        ht_ft_iter_init(&s->it, NULL, 0, 0, 0);
    } else if (!s->ended) {
        return;
    }
    s->ended = !s->exists;
    if (s->exists && stream_event(r, cpu)) {
        r->heap[r->waiting++] = next_of(r, cpu);
    }
}

void ht_rec_more(HtRecording *r, uint64_t ns)
{
    uint32_t cpus = r->info.cpus, i;

    r->before_ns = ns;
    r->unread = 0;
    r->end_read = false;
    if (!r->merging) {
        merge_begin(r);
    } else if (r->returned) {
        merge_next(r);
    }
    count_cpus(r->dir, &r->info);
    grow_streams(r, cpus);
    for (i = 0; i < r->info.cpus; i++) {
        stream_more(r, i);
    }
    heapify(r);
}

/*
 * Walk the pieces in @size bytes of @data, the end of a file, and set @last to
 * the last whole one.  Returns false if other data is there, no whole piece, or
 * an invalid record in the last whole piece.  Ignore an incomplete piece at the
 * end: it was being written when the recorder was killed, or is being written
 * now.
 */
static bool walk_tail(const uint8_t *data, size_t size, HtFtPiece *last)
{
    HtRecPieceHeader h;
    bool found = false;

    while (size >= sizeof(h)) {
        memcpy(&h, data, sizeof(h));
        if (!header_ok(&h)) {
            return false;
        }
        if (size - sizeof(h) < ht_le32(h.size)) {
            break;
        }
        *last = (HtFtPiece) {
            .size = ht_le32(h.size),
            .data = data + sizeof(h),
            .base_ns = ht_le64(h.base_ns),
            .epoch = ht_le32(h.epoch),
            .segment = ht_le32(h.segment),
        };
        data += sizeof(h) + last->size;
        size -= sizeof(h) + last->size;
        found = true;
    }
    return found && piece_scan(last);
}

/*
 * Find the last whole piece of a file. Returns 1 if it was found, 0 if the file
 * is empty, or -1 if the end of the file is damaged or cannot be read.
 */
static int last_piece(const Stream *s, uint8_t *buffer, HtFtPiece *p)
{
    struct stat st;
    int fd = s->fd >= 0 ? s->fd : open_file(s->path, &st, NULL);
    ssize_t n = fd < 0 || fstat(fd, &st) ? -1 : 0;
    size_t at, size = 0;

    if (n == 0 && st.st_size > 0) {
        /* Pieces begin at multiples of 4. */
        at = st.st_size <= (off_t)BUFFER_SIZE ? 0 :
             HT_ROUND_UP(st.st_size - BUFFER_SIZE, 4);
        size = st.st_size - at;
        n = pread(fd, buffer, size, at);
    }
    if (fd >= 0 && fd != s->fd) {
        close(fd);
    }
    if (n < 0 || (size_t)n != size) {
        return -1;
    }
    for (at = 0; at < size; at += 4) {
        if (walk_tail(buffer + at, size - at, p)) {
            return 1;
        }
    }
    return size ? -1 : 0;
}

static bool find_end(HtRecording *r, HtRecEnd *end)
{
    g_autofree uint8_t *buffer = g_malloc(BUFFER_SIZE);
    bool found = false;
    uint32_t i;

    *end = (HtRecEnd) { 0 };
    for (i = 0; i < r->info.cpus; i++) {
        HtFtPiece p;
        uint64_t part;
        int ret = r->streams[i].exists ?
                  last_piece(&r->streams[i], buffer, &p) : 0;

        if (ret < 0) {
            return false;
        }
        if (!ret) {
            continue;
        }
        part = part_of(p.epoch, p.segment);
        if (!found || part > part_of(end->epoch, end->segment)) {
            *end = (HtRecEnd) { p.epoch, p.segment, p.end_ns };
        } else if (part == part_of(end->epoch, end->segment)) {
            end->ns = MAX(end->ns, p.end_ns);
        }
        found = true;
    }
    return found;
}

bool ht_rec_end(HtRecording *r, HtRecEnd *end)
{
    if (!r->end_read) {
        r->end_found = find_end(r, &r->end);
        r->end_read = true;
    }
    *end = r->end;
    return r->end_found;
}

void ht_rec_until(HtRecording *r, uint32_t epoch, uint64_t ns)
{
    HtRecEnd end;

    r->until_epoch = epoch;
    r->until_ns = UINT64_MAX;
    if (ns < UINT64_MAX - HT_FT_EPOCH_NS && ht_rec_end(r, &end)) {
        /*
         * Leave a margin: read until events are HT_FT_EPOCH_NS later than @ns,
         * in case the times in a segment are not quite in order.
         */
        r->until_ns = ns + HT_FT_EPOCH_NS;
        r->last_part = part_of(end.epoch, end.segment);
    }
}

/* Test whether the next event is past the limits of ht_rec_until(). */
static bool is_past(const HtRecording *r)
{
    const Next *next = &r->heap[0];

    return next->part >> 32 > r->until_epoch ||
           (next->ns > r->until_ns && next->part >= r->last_part);
}

bool ht_rec_next(HtRecording *r, HtRecEvent *ev)
{
    Stream *s;

    if (!r->merging) {
        merge_begin(r);
    } else if (r->returned) {
        merge_next(r);
    }
    if (r->waiting == 0 || is_past(r) || r->heap[0].ns >= r->before_ns) {
        return false;
    }
    r->returned = true;
    s = &r->streams[r->heap[0].cpu];
    ht_rec_event(&s->piece, &s->record, ev);
    if (s->lost) {
        ev->lost_before = true;
        ev->lost_estimate = s->lost_estimate;
        ev->lost_from_ns = s->lost_from_ns;
    }
    s->lost = false;
    return true;
}

/* Test whether piece @p continues @page at @to, without a clock step or gap. */
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
