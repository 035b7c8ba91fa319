/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: make a FIFO; a backend that writes to it hangs while it is full
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "hypertrace.h"

QHtFifo *qht_fifo_new(void)
{
    QHtFifo *f = g_new0(QHtFifo, 1);

    f->dir = g_dir_make_tmp("hypertrace-fifo-XXXXXX", NULL);
    g_assert_nonnull(f->dir);
    f->path = g_strdup_printf("%s/log", f->dir);
    f->text = g_string_new(NULL);
    g_assert_cmpint(mkfifo(f->path, 0600), ==, 0);
    f->fd = open(f->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    g_assert_cmpint(f->fd, >=, 0);
    g_assert_cmpint(fcntl(f->fd, F_SETPIPE_SZ, 4096), >=, 0);
    return f;
}

void qht_fifo_free(QHtFifo *f)
{
    qht_fifo_hang(f);
    close(f->fd);
    unlink(f->path);
    rmdir(f->dir);
    g_string_free(f->text, true);
    g_free(f->path);
    g_free(f->dir);
    g_free(f);
}

bool qht_fifo_read(QHtFifo *f)
{
    char buf[4096];
    ssize_t n = read(f->fd, buf, sizeof(buf));

    if (n > 0) {
        g_string_append_len(f->text, buf, n);
    }
    return n > 0;
}

static void *read_all(void *opaque)
{
    QHtFifo *f = opaque;
    bool last;

    /* After f->reading has become false, empty the FIFO once more. */
    for (last = false; ; ) {
        if (qht_fifo_read(f)) {
            continue;
        }
        if (last) {
            return NULL;
        }
        last = !qatomic_read(&f->reading);
        g_usleep(1000);
    }
}

void qht_fifo_go_on(QHtFifo *f)
{
    if (!f->reader) {
        f->reading = true;
        f->reader = g_thread_new("reader", read_all, f);
    }
}

void qht_fifo_hang(QHtFifo *f)
{
    if (f->reader) {
        qatomic_set(&f->reading, false);
        g_thread_join(f->reader);
        f->reader = NULL;
    }
}
