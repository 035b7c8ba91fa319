/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write a recording of an ftrace ring
 *
 * Pieces are buffered; the recorder calls ht_rec_writer_flush() after each poll
 * to append them to the processors' files.  If the recorder is killed during a
 * write, readers ignore the incomplete piece.  Text files are replaced by
 * rename(), except "log", to which lines are appended.
 *
 * Recordings can hold secrets of the guest, so only their owner has access to
 * the files, and to a directory that the writer makes.  The directory may be in
 * a place where other users can write, under a name that they can guess.  Files
 * are therefore created with O_EXCL and O_NOFOLLOW: the writer does not open a
 * file or link that others have put there first.
 */
#include "hypertrace/recording.h"

/* Maximum size in bytes of a kernel's log that is kept in memory */
#define LOG_BYTES (4u << 20)

/*
 * Bytes that are reserved on the disk, and released when "info" cannot be
 * replaced because the disk is full
 */
#define SPARE_BYTES (32u << 10)

/* Buffered bytes of a processor that cause a write before the end of a poll */
#define KEEP_BYTES (1u << 20)

typedef struct CpuFile {
    bool made;
    /*
     * descriptor of the processor's file; -1: not made yet, or, for processors
     * from HT_REC_OPEN_MAX on, opened for each write
     */
    int fd;
    bool failed;
    uint64_t written;           /* bytes in the file, until @failed is set */
    GByteArray *kept;
} CpuFile;

struct HtRecWriter {
    /* path of the recording's directory; NULL if @queue is set */
    char *dir;
    int dir_fd;                 /* descriptor of @dir; -1 if @queue is set */
    HtRecQueue *queue;
    GArray *cpus;               /* array of CpuFile, indexed by processor */
    /* set of names of text files; with @queue: map from name to content */
    GHashTable *texts;
    /* descriptor of the log's file; -1: nothing was appended yet */
    int log_fd;
    bool log_failed;
    /* a file without a name that holds SPARE_BYTES; -1: not reserved */
    int spare_fd;
    /* newest part of the kernel's log, if @queue is set */
    GString *log;
    unsigned made_dirs;         /* as set by ht_rec_make_dir() */
    uint64_t bytes;
};

static bool fail(GError **error, int code, const char *what, const char *dir,
                 const char *name)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot %s %s%s%s: %s", what, dir, name ? "/" : "",
                name ? name : "", g_strerror(code));
    return false;
}

static void cpu_file_clear(gpointer p)
{
    CpuFile *c = p;

    if (c->fd >= 0) {
        close(c->fd);
    }
    g_byte_array_unref(c->kept);
}

/*
 * Check that the directory belongs to this process's user; @fd may be -1 with
 * errno set
 */
static bool check_owner(int fd, const char *dir, GError **error)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        return fail(error, errno, "make the directory", dir, NULL);
    }
    if (st.st_uid != geteuid()) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PERM,
                    "%s belongs to another user. That user could read and "
                    "change the recording: name another directory", dir);
        return false;
    }
    return true;
}

static bool exists(int dir, const char *name)
{
    struct stat st;

    return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

static int make_file(const HtRecWriter *w, const char *name, int flags)
{
    return openat(w->dir_fd, name, flags | O_WRONLY | O_CREAT | O_EXCL |
                  O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Check that the directory has none of the files in @names */
static bool check_empty(int fd, const char *dir, GError **error)
{
    /*
     * Names of a recording's files.  Those from "formats" on may also be files
     * of the user's own.
     */
    static const char * const names[] = { "info", "cpu0", "formats",
                                          "kallsyms", "log" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        if (exists(fd, names[i])) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                        i < 2 ? "%s has a recording already; remove it or name "
                        "another directory" :
                        "%s has a file %s already: name another directory",
                        dir, names[i]);
            return false;
        }
    }
    return true;
}

static int reserve(const HtRecWriter *w)
{
    static const char name[] = ".hypertrace-spare";
    int fd;

    unlinkat(w->dir_fd, name, 0);
    fd = make_file(w, name, 0);
    unlinkat(w->dir_fd, name, 0);
    if (fd >= 0 && posix_fallocate(fd, 0, SPARE_BYTES)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool ht_rec_make_dir(const char *dir, unsigned *made)
{
    g_autofree char *path = g_strdup(dir);

    *made = 0;
    while (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        char *parent = g_path_get_dirname(path);

        g_free(path);
        path = parent;
        (*made)++;
    }
    return !g_mkdir_with_parents(dir, 0700);
}

void ht_rec_remove_dir(const char *dir, unsigned made)
{
    g_autofree char *path = g_strdup(dir);

    while (made--) {
        char *parent = g_path_get_dirname(path);

        rmdir(path);
        g_free(path);
        path = parent;
    }
}

HtRecWriter *ht_rec_writer_new(const char *dir, GError **error)
{
    HtRecWriter *w;
    unsigned made;
    int fd = -1;

    if (ht_rec_make_dir(dir, &made)) {
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    w = ht_rec_writer_new_fd(fd, dir, error);
    if (w) {
        w->made_dirs = made;
    } else {
        ht_rec_remove_dir(dir, made);
    }
    return w;
}

static HtRecWriter *new_writer(int fd, const char *dir, HtRecQueue *queue)
{
    HtRecWriter *w = g_new0(HtRecWriter, 1);

    w->dir = g_strdup(dir);
    w->dir_fd = fd;
    w->queue = queue;
    w->log_fd = -1;
    w->spare_fd = fd >= 0 ? reserve(w) : -1;
    w->log = queue ? g_string_new(NULL) : NULL;
    w->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                     (GDestroyNotify)g_bytes_unref);
    w->cpus = g_array_new(false, false, sizeof(CpuFile));
    g_array_set_clear_func(w->cpus, cpu_file_clear);
    return w;
}

HtRecWriter *ht_rec_writer_new_memory(uint64_t size, GError **error)
{
    HtRecQueue *queue = ht_rec_queue_new(size, error);

    return queue ? new_writer(-1, NULL, queue) : NULL;
}

HtRecWriter *ht_rec_writer_new_fd(int fd, const char *dir, GError **error)
{
    if (!check_owner(fd, dir, error) || !check_empty(fd, dir, error)) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    return new_writer(fd, dir, NULL);
}

static bool write_all(int fd, const void *data, size_t size)
{
    const uint8_t *p = data;

    while (size) {
        ssize_t n = write(fd, p, size);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        p += n;
        size -= n;
    }
    return true;
}

/*
 * Get the name under which a text file is written before it gets its own name.
 * An older file with such a name is deleted: a recorder that was killed may
 * have left it.
 */
static char *hidden_name(const char *name)
{
    return g_strdup_printf(".hypertrace-%s", name);
}

/*
 * Write a text file under its hidden name. Returns 0, or an errno with @what
 * set.
 */
static int write_hidden(const HtRecWriter *w, const char *name,
                        const char *text, size_t bytes, const char **what)
{
    g_autofree char *hidden = hidden_name(name);
    int code = 0, fd;

    /* Remove the file of a recorder that was killed. */
    unlinkat(w->dir_fd, hidden, 0);
    *what = "make";
    fd = make_file(w, hidden, 0);
    if (fd < 0) {
        return errno;
    }
    *what = "write";
    if (!write_all(fd, text, bytes)) {
        code = errno;
    }
    close(fd);
    if (code) {
        unlinkat(w->dir_fd, hidden, 0);
    }
    return code;
}

/*
 * Give a file that write_hidden() wrote its own name; it replaces the previous
 * file. Returns 0 or an errno.
 */
static int show_hidden(const HtRecWriter *w, const char *name)
{
    g_autofree char *hidden = hidden_name(name);
    int code = 0;

    if (renameat(w->dir_fd, hidden, w->dir_fd, name)) {
        code = errno;
        unlinkat(w->dir_fd, hidden, 0);
    }
    return code;
}

/* Replace a text file. Returns 0, or an errno with @what set. */
static int replace(const HtRecWriter *w, const char *name, const char *text,
                   size_t bytes, const char **what)
{
    int code = write_hidden(w, name, text, bytes, what);

    return code ? code : show_hidden(w, name);
}

bool ht_rec_writer_prepare(const HtRecWriter *w, const char *name,
                           GBytes *text, GError **error)
{
    const char *what = NULL;
    gsize size;
    const char *data = g_bytes_get_data(text, &size);
    int code = w->queue ? 0 : write_hidden(w, name, data, size, &what);

    return !code || fail(error, code, what, w->dir, name);
}

bool ht_rec_writer_commit(HtRecWriter *w, const char *name, GBytes *text,
                          GError **error)
{
    int code = w->queue ? 0 : show_hidden(w, name);

    if (code) {
        return fail(error, code, "write", w->dir, name);
    }
    g_hash_table_insert(w->texts, g_strdup(name),
                        w->queue ? g_bytes_ref(text) : NULL);
    return true;
}

bool ht_rec_writer_file(HtRecWriter *w, const char *name, const char *text,
                        gssize size, GError **error)
{
    size_t bytes = size < 0 ? strlen(text) : (size_t)size;
    const char *what;
    int code;

    if (w->queue) {
        g_hash_table_insert(w->texts, g_strdup(name),
                            g_bytes_new(text, bytes));
        return true;
    }
    code = replace(w, name, text, bytes, &what);
    if ((code == ENOSPC || code == EDQUOT) && w->spare_fd >= 0 &&
        !strcmp(name, "info")) {
        close(w->spare_fd);
        w->spare_fd = -1;
        code = replace(w, name, text, bytes, &what);
    }
    if (code) {
        return fail(error, code, what, w->dir, name);
    }
    g_hash_table_insert(w->texts, g_strdup(name), NULL);
    return true;
}

/*
 * Append lines to the log in memory. If it then exceeds LOG_BYTES, keep about
 * the last LOG_BYTES / 2 bytes, from the start of a line on.
 */
static void keep_log(GString *log, const char *text, size_t size)
{
    const char *line;

    g_string_append_len(log, text, size);
    if (log->len > LOG_BYTES) {
        line = strchr(log->str + log->len - LOG_BYTES / 2, '\n');
        g_string_erase(log, 0, line ? line + 1 - log->str : -1);
    }
}

bool ht_rec_writer_log(HtRecWriter *w, const char *text, size_t size,
                       GError **error)
{
    if (w->queue) {
        keep_log(w->log, text, size);
        return true;
    }
    if (w->log_failed) {
        return true;                    /* the error was reported before */
    }
    if (w->log_fd < 0) {
        w->log_fd = make_file(w, "log", O_APPEND);
        if (w->log_fd >= 0) {
            g_hash_table_insert(w->texts, g_strdup("log"), NULL);
        }
    }
    if (w->log_fd < 0 || !write_all(w->log_fd, text, size)) {
        w->log_failed = true;
        return fail(error, errno, "write", w->dir, "log");
    }
    w->bytes += size;
    return true;
}

/*
 * Remove the incomplete piece that a failed write of @c->kept has left at the
 * end of a processor's file.  The file had @c->written bytes before that write.
 */
static void drop_incomplete(const CpuFile *c)
{
    uint64_t end = c->written;
    size_t at = 0, more;
    HtRecPieceHeader h;
    struct stat st;

    if (c->fd < 0 || fstat(c->fd, &st)) {
        return;
    }
    while (at + sizeof(h) <= c->kept->len) {
        memcpy(&h, c->kept->data + at, sizeof(h));
        more = sizeof(h) + ht_le32(h.size);
        if (end + more > (uint64_t)st.st_size) {
            break;
        }
        end += more;
        at += more;
    }
    if (end < (uint64_t)st.st_size && ftruncate(c->fd, end)) {
        /* Readers ignore an incomplete piece at the end. */
        return;
    }
}

static bool cpu_flush(HtRecWriter *w, guint cpu, GError **error)
{
    CpuFile *c = &g_array_index(w->cpus, CpuFile, cpu);
    g_autofree char *name = NULL;

    if (c->kept->len == 0 || c->failed) {
        return !c->failed;
    }
    name = g_strdup_printf("cpu%u", cpu);
    if (!c->made) {
        c->fd = make_file(w, name, O_APPEND);
        c->made = c->fd >= 0;
    } else if (c->fd < 0) {
        c->fd = openat(w->dir_fd, name, O_WRONLY | O_APPEND | O_NOFOLLOW |
                       O_CLOEXEC);
    }
    if (c->fd < 0 || !write_all(c->fd, c->kept->data, c->kept->len)) {
        /*
         * Write no more pieces of this processor: a reader could take the next
         * piece for the rest of this one.
         */
        c->failed = true;
        fail(error, errno, "write", w->dir, name);
        drop_incomplete(c);
    }
    c->written += c->kept->len;
    g_byte_array_set_size(c->kept, 0);
    if (c->fd >= 0 && cpu >= HT_REC_OPEN_MAX) {
        close(c->fd);
        c->fd = -1;
    }
    return !c->failed;
}

static CpuFile *cpu_file(HtRecWriter *w, uint32_t cpu)
{
    while (w->cpus->len <= cpu) {
        CpuFile new = { .fd = -1, .kept = g_byte_array_new() };

        g_array_append_val(w->cpus, new);
    }
    return &g_array_index(w->cpus, CpuFile, cpu);
}

uint8_t *ht_rec_writer_room(HtRecWriter *w, uint32_t cpu, size_t size)
{
    GByteArray *kept;
    guint len;

    if (w->queue) {
        return NULL;
    }
    kept = cpu_file(w, cpu)->kept;
    len = kept->len;
    /*
     * Grow the array to reserve the room, then set its old size again: the
     * array keeps its memory.
     */
    g_byte_array_set_size(kept, len + sizeof(HtRecPieceHeader) + size);
    g_byte_array_set_size(kept, len);
    return kept->data + len + sizeof(HtRecPieceHeader);
}

bool ht_rec_writer_piece(HtRecWriter *w, const HtFtPiece *p, GError **error)
{
    HtRecPieceHeader h = {
        .magic = ht_le32(HT_REC_MAGIC),
        .size = ht_le32(p->size),
        .slot = ht_le32(p->slot),
        .from = ht_le32(p->from),
        .stamp = ht_le64(p->stamp),
        .base_ns = ht_le64(p->base_ns),
        .epoch = ht_le32(p->epoch),
        .segment = ht_le32(p->segment),
        .flags = ht_le32(p->flags),
        .lost = ht_le32(MIN(p->lost_estimate, UINT32_MAX)),
        .host_before = ht_le64(p->host_before),
        .host_after = ht_le64(p->host_after),
    };
    bool in_room;
    CpuFile *c;

    if (w->queue) {
        ht_rec_queue_push(w->queue, p);
        return true;
    }
    c = cpu_file(w, p->cpu);
    if (c->failed) {
        return true;                    /* the error was reported before */
    }
    in_room = c->kept->data &&
              p->data == c->kept->data + c->kept->len + sizeof(h);
    g_byte_array_append(c->kept, (const uint8_t *)&h, sizeof(h));
    if (in_room) {
        g_byte_array_set_size(c->kept, c->kept->len + p->size);
    } else {
        g_byte_array_append(c->kept, p->data, p->size);
    }
    w->bytes += sizeof(h) + p->size;
    return c->kept->len < KEEP_BYTES || cpu_flush(w, p->cpu, error);
}

bool ht_rec_writer_flush(HtRecWriter *w, GError **error)
{
    bool ok = true;
    guint i;

    for (i = 0; i < w->cpus->len; i++) {
        CpuFile *c = &g_array_index(w->cpus, CpuFile, i);

        if (!c->failed && !cpu_flush(w, i, ok ? error : NULL)) {
            ok = false;
        }
    }
    return ok;
}

uint64_t ht_rec_writer_bytes(const HtRecWriter *w)
{
    return w->queue ? ht_rec_queue_bytes(w->queue) : w->bytes;
}

uint64_t ht_rec_writer_held(const HtRecWriter *w)
{
    return w->queue ? ht_rec_queue_events(w->queue) : 0;
}

typedef struct Save {
    HtRecWriter *to;
    GError **error;
} Save;

static bool save_piece(void *opaque, const HtFtPiece *p)
{
    Save *s = opaque;

    return ht_rec_writer_piece(s->to, p, s->error);
}

bool ht_rec_writer_save(const HtRecWriter *w, HtRecWriter *to, GError **error)
{
    Save s = { to, error };
    GHashTableIter iter;
    gpointer name, text;

    g_hash_table_iter_init(&iter, w->texts);
    while (g_hash_table_iter_next(&iter, &name, &text)) {
        gsize size;
        const char *data = g_bytes_get_data(text, &size);

        if (!ht_rec_writer_file(to, name, data, size, error)) {
            return false;
        }
    }
    if (w->log->len &&
        !ht_rec_writer_log(to, w->log->str, w->log->len, error)) {
        return false;
    }
    return ht_rec_queue_each(w->queue, save_piece, &s) &&
           ht_rec_writer_flush(to, error);
}

void ht_rec_writer_discard(HtRecWriter *w)
{
    GHashTableIter iter;
    gpointer name;
    guint cpu;

    if (w->queue) {
        return;
    }
    g_hash_table_iter_init(&iter, w->texts);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        unlinkat(w->dir_fd, name, 0);
    }
    for (cpu = 0; cpu < w->cpus->len; cpu++) {
        CpuFile *c = &g_array_index(w->cpus, CpuFile, cpu);
        g_autofree char *file = g_strdup_printf("cpu%u", cpu);

        if (c->made) {
            unlinkat(w->dir_fd, file, 0);
        }
        /* Drop buffered pieces: ht_rec_writer_free() must not write them. */
        c->failed = true;
        g_byte_array_set_size(c->kept, 0);
    }
    w->log_failed = true;
    ht_rec_remove_dir(w->dir, w->made_dirs);
}

void ht_rec_writer_free(HtRecWriter *w)
{
    if (w) {
        ht_rec_writer_flush(w, NULL);
        g_hash_table_unref(w->texts);
        g_array_unref(w->cpus);
        if (w->log_fd >= 0) {
            close(w->log_fd);
        }
        if (w->spare_fd >= 0) {
            close(w->spare_fd);
        }
        if (w->log) {
            g_string_free(w->log, true);
        }
        ht_rec_queue_free(w->queue);
        if (w->dir_fd >= 0) {
            close(w->dir_fd);
        }
        g_free(w->dir);
        g_free(w);
    }
}
