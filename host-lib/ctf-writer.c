/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a directory with a CTF 1.8 trace
 *
 * What is not finished has a hidden name, which readers skip: the directory
 * until its metadata are there, metadata while they are written (and they are
 * always written anew), a stream's file while it is prepared.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "ctf-stream.h"
#include "hypertrace/ctf-writer.h"

struct HtCtfWriter {
    char *path;
    int dirfd;
    uint8_t uuid[16];
    uint64_t dropped;

    GMutex lock;                /* for @metadata, @known */
    GString *metadata;
    bool known[HT_CLASSES_MAX + 1];

    uint32_t nr_streams;
    HtCtfStream streams[];
};

static int write_metadata(HtCtfWriter *w)
{
    const char *p = w->metadata->str;
    size_t left = w->metadata->len;
    int fd, ret = 0;

    fd = openat(w->dirfd, ".metadata", O_WRONLY | O_CREAT | O_TRUNC |
                O_CLOEXEC, 0666);
    if (fd < 0) {
        return -errno;
    }
    while (left && !ret) {
        ssize_t done = write(fd, p, left);

        if (done < 0) {
            ret = errno == EINTR ? 0 : -errno;
        } else {
            p += done;
            left -= done;
        }
    }
    if (close(fd) < 0 && !ret) {
        ret = -errno;
    }
    if (!ret && renameat(w->dirfd, ".metadata", w->dirfd, "metadata") < 0) {
        ret = -errno;
    }
    if (ret) {
        unlinkat(w->dirfd, ".metadata", 0);
    }
    return ret;
}

/* Give a finished directory its name. */
static int publish(const char *hidden, const char *dir, const char *name,
                   char **path)
{
    unsigned n;

    for (n = 1; n < 1000000; n++) {
        g_autofree char *to = n == 1 ?
            g_strdup_printf("%s/%s", dir, name) :
            g_strdup_printf("%s/%s-%u", dir, name, n);

        if (rename(hidden, to) == 0) {
            *path = g_steal_pointer(&to);
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
    g_autofree char *hidden = g_strdup_printf("%s/.%s", dir, name);
    HtCtfWriter *w;
    int ret = 0;

    if (mkdir(hidden, 0777) < 0) {
        return -errno;
    }
    w = g_malloc0(sizeof(*w) + streams * sizeof(w->streams[0]));
    g_mutex_init(&w->lock);
    memcpy(w->uuid, info->uuid, sizeof(w->uuid));
    w->nr_streams = streams;
    w->metadata = g_string_new(NULL);
    ht_ctf_metadata_begin(w->metadata, info);

    w->dirfd = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dirfd < 0) {
        ret = -errno;
    }
    if (!ret) {
        ret = write_metadata(w);
    }
    if (!ret) {
        ret = publish(hidden, dir, name, &w->path);
    }
    if (ret) {
        if (w->dirfd >= 0) {
            unlinkat(w->dirfd, "metadata", 0);
        }
        rmdir(hidden);
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
        ht_ctf_metadata_class(w->metadata, c);
        ret = write_metadata(w);
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
