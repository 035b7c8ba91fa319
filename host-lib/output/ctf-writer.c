/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write a directory with a CTF 1.8 trace
 *
 * Unfinished files and directories have hidden names, which readers skip: the
 * directory until its metadata exists, a new metadata file while it is written,
 * a stream's file while it is prepared.
 *
 * The metadata ends in a comment of blanks, which reserves space for further
 * classes.  To add a class, write it into the comment, and a new start of a
 * comment after it; then overwrite the old start by two blanks, which makes the
 * class visible to readers.  If the comment is too short, or the file was
 * deleted, write a new metadata file.  Its comment has as many blanks as the
 * text before it has bytes, but at least BLANKS_MIN.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "ctf-stream.h"
#include "hypertrace/ctf-writer.h"

struct HtCtfWriter {
    char *path;
    int dirfd;
    uint8_t uuid[16];
    bool lttng;
    uint64_t dropped;

    /* protects the members from @metadata to @known */
    GMutex lock;
    /* the metadata without the comment at its end */
    GString *metadata;
    int metadata_fd;
    /* offset in the file of the comment at the metadata's end */
    uint64_t comment;
    /* offset in the file of that comment's closing characters */
    uint64_t blanks_end;
    bool known[HT_CLASSES_MAX + 1];

    uint32_t nr_streams;
    HtCtfStream streams[];
};

/* Minimum number of blanks in the comment of a new metadata file */
#define BLANKS_MIN 4096

static const char comment_opens[] = { '/', '*' };
static const char comment_closes[] = { '*', '/', '\n' };

static int write_all(int fd, const char *p, size_t left, uint64_t pos)
{
    while (left) {
        ssize_t done = pwrite(fd, p, left, pos);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? -errno : -EIO;
        }
        p += done;
        pos += done;
        left -= done;
    }
    return 0;
}

/*
 * Return the first offset at or after @pos where a comment may start: both
 * characters of the start must be in one page, so that a process that is killed
 * has written both or none.
 */
static uint64_t comment_begin(uint64_t pos)
{
    return pos % 4096 == 4095 ? pos + 1 : pos;
}

static int write_metadata(HtCtfWriter *w)
{
    uint64_t text = w->metadata->len, begin = comment_begin(text);
    uint64_t end = begin + 2 + MAX(text, BLANKS_MIN);
    g_autofree char *all = g_malloc(end + 3);
    int fd, ret;

    memcpy(all, w->metadata->str, text);
    memset(all + text, ' ', end - text);
    memcpy(all + begin, comment_opens, 2);
    memcpy(all + end, comment_closes, 3);
    fd = openat(w->dirfd, ".metadata", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                0666);
    if (fd < 0) {
        return -errno;
    }
    ret = write_all(fd, all, end + 3, 0);
    if (!ret && renameat(w->dirfd, ".metadata", w->dirfd, "metadata") < 0) {
        ret = -errno;
    }
    if (ret) {
        unlinkat(w->dirfd, ".metadata", 0);
        close(fd);
        return ret;
    }
    if (w->metadata_fd >= 0) {
        close(w->metadata_fd);
    }
    w->metadata_fd = fd;
    w->comment = begin;
    w->blanks_end = end;
    return 0;
}

/* Make the last @added bytes of the metadata visible to readers of the trace */
static int append_metadata(HtCtfWriter *w, size_t added)
{
    g_autoptr(GString) in = g_string_new(NULL);
    const char *text = w->metadata->str + w->metadata->len - added;
    uint64_t pos = w->comment + 2, begin;
    struct stat st;
    int ret;

    begin = comment_begin(pos + added);
    if (begin + 2 > w->blanks_end || w->metadata_fd < 0 ||
        fstat(w->metadata_fd, &st) < 0 || st.st_nlink == 0) {
        return write_metadata(w);
    }
    g_string_append_len(in, text, added);
    while (pos + in->len < begin) {
        g_string_append_c(in, ' ');
    }
    g_string_append_len(in, comment_opens, 2);
    ret = write_all(w->metadata_fd, in->str, in->len, pos);
    if (!ret) {
        ret = write_all(w->metadata_fd, "  ", 2, w->comment);
    }
    if (!ret) {
        w->comment = begin;
    }
    return ret;
}

/*
 * Rename the directory of a new trace, which has its metadata, from @hidden to
 * @name.  If @name exists and is not an empty directory, try @name-2 and so on.
 * The names are relative to the directory @parent, which has the path @dir.  On
 * success, *@path is set to the new path.
 */
static int publish(int parent, const char *hidden, const char *dir,
                   const char *name, char **path)
{
    unsigned n;

    for (n = 1; n < 1000000; n++) {
        g_autofree char *to = n == 1 ? g_strdup(name) :
                                       g_strdup_printf("%s-%u", name, n);

        if (renameat(parent, hidden, parent, to) == 0) {
            *path = g_build_filename(dir, to, NULL);
            return 0;
        }
        if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
            break;
        }
    }
    return -errno;
}

int ht_ctf_writer_new(const char *dir, const char *name, const HtCtfInfo *info,
                      uint32_t streams, HtCtfWriter **out)
{
    int parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

    if (parent < 0) {
        return -errno;
    }
    ret = ht_ctf_writer_new_at(parent, dir, name, info, streams, out);
    close(parent);
    return ret;
}

int ht_ctf_writer_new_at(int parent, const char *dir, const char *name,
                         const HtCtfInfo *info, uint32_t streams,
                         HtCtfWriter **out)
{
    g_autofree char *hidden = g_strdup_printf(".%s", name);
    HtCtfWriter *w;
    int ret = 0;

    if (mkdirat(parent, hidden, 0777) < 0) {
        return -errno;
    }
    w = g_malloc0(sizeof(*w) + streams * sizeof(w->streams[0]));
    g_mutex_init(&w->lock);
    memcpy(w->uuid, info->uuid, sizeof(w->uuid));
    w->lttng = info->lttng;
    w->nr_streams = streams;
    w->metadata = g_string_new(NULL);
    w->metadata_fd = -1;
    ht_ctf_metadata_begin(w->metadata, info);

    w->dirfd = openat(parent, hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dirfd < 0) {
        ret = -errno;
    }
    if (!ret) {
        ret = write_metadata(w);
    }
    if (!ret) {
        ret = publish(parent, hidden, dir, name, &w->path);
    }
    if (ret) {
        if (w->dirfd >= 0) {
            unlinkat(w->dirfd, "metadata", 0);
        }
        unlinkat(parent, hidden, AT_REMOVEDIR);
        ht_ctf_writer_free(w);
        return ret;
    }
    *out = w;
    return 0;
}

void ht_ctf_writer_free(HtCtfWriter *w)
{
    uint32_t i;

    if (!w) {
        return;
    }
    for (i = 0; i < w->nr_streams; i++) {
        if (w->streams[i].open) {
            ht_ctf_stream_close(&w->streams[i], NULL);
        }
    }
    if (w->metadata_fd >= 0) {
        close(w->metadata_fd);
    }
    if (w->dirfd >= 0) {
        close(w->dirfd);
    }
    g_string_free(w->metadata, true);
    g_mutex_clear(&w->lock);
    g_free(w->path);
    g_free(w);
}

const char *ht_ctf_writer_path(const HtCtfWriter *w)
{
    return w->path;
}

int ht_ctf_writer_class(HtCtfWriter *w, const HtClass *c)
{
    size_t len;
    int ret = 0;

    g_mutex_lock(&w->lock);
    if (!w->known[c->id]) {
        len = w->metadata->len;
        ht_ctf_metadata_class(w->metadata, c, w->lttng);
        ret = append_metadata(w, w->metadata->len - len);
        if (ret) {
            g_string_truncate(w->metadata, len);
        } else {
            w->known[c->id] = true;
        }
    }
    g_mutex_unlock(&w->lock);
    return ret;
}

int ht_ctf_writer_run(HtCtfWriter *w, const HtRun *run)
{
    HtCtfStream *s;
    int ret;

    assert(run->stream->index < w->nr_streams);
    s = &w->streams[run->stream->index];

    if (run->flags & HT_RUN_OPEN) {
        if (s->open) {
            ht_ctf_stream_close(s, NULL);
        }
        return ht_ctf_stream_open(s, w->dirfd, w->uuid, run);
    }
    if (!s->open) {
        ret = -ENOENT;
    } else if (run->flags & HT_RUN_CLOSE) {
        return ht_ctf_stream_close(s, run);
    } else {
        ret = ht_ctf_stream_append(s, run);
    }
    if (ret) {
        __atomic_fetch_add(&w->dropped, run->events, __ATOMIC_RELAXED);
    }
    return ret;
}

uint64_t ht_ctf_writer_dropped(const HtCtfWriter *w)
{
    return ht_atomic_read(&w->dropped);
}
