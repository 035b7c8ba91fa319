/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the last packet of a stream in a CTF trace
 *
 * The recorder may have been killed at any time.  It first writes events, then
 * the header of their packet, which makes them part of the trace (see
 * ctf-stream.c).  The header of the last packet therefore has the counts up to
 * the last event that is part of the trace.
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include "hypertrace/ctf-writer.h"
#include "ctf-stream.h"

/*
 * Return 1 plus the number at the end of a file's name, or 0 if the file is not
 * of the stream instance.  The names of its files are @prefix, then the
 * stream's name and '-' unless that name is empty, then the number.
 */
static unsigned part_of(const char *name, const char *prefix)
{
    const char *part = strrchr(name, '-');
    uint64_t n;

    if (!g_str_has_prefix(name, prefix) || !part ||
        !g_ascii_string_to_unsigned(part + 1, 10, 0, UINT32_MAX - 1, &n,
                                    NULL)) {
        return 0;
    }
    return n + 1;
}

/* Open the newest file of an instance; returns -1 if none can be opened */
static int open_newest(int dirfd, uint32_t stream, uint64_t instance)
{
    g_autofree char *prefix =
        g_strdup_printf(HT_CTF_STREAM_FILE "-", stream, instance);
    g_autofree char *newest = NULL;
    unsigned best = 0, part;
    struct dirent *entry;
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    while ((entry = readdir(dir))) {
        part = part_of(entry->d_name, prefix);
        if (part > best) {
            best = part;
            g_free(newest);
            newest = g_strdup(entry->d_name);
        }
    }
    fd = best ? openat(dirfd, newest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
                       O_CLOEXEC) : -1;
    closedir(dir);
    return fd;
}

/*
 * Find the last packet in the newest file of a stream instance.  Stop at the
 * first header that is not of this instance.  Return false if there is no such
 * file, or if it does not begin with a packet of the instance.
 */
static bool last_packet(int dirfd, uint32_t stream, uint64_t instance,
                        HtCtfHeader *h)
{
    int fd = open_newest(dirfd, stream, instance);
    uint64_t start = 0, size;
    bool found = false;
    HtCtfHeader next;

    while (fd >= 0 && pread(fd, &next, sizeof(next), start) == sizeof(next) &&
           ht_le32(next.stream) == stream &&
           ht_le64(next.instance) == instance) {
        *h = next;
        found = true;
        size = ht_le64(next.packet_bits) / 8;
        if (size < sizeof(next) || size > INT64_MAX - start) {
            break;
        }
        start += size;
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}

bool ht_ctf_recorded(const char *dir, uint32_t stream, uint64_t instance,
                     HtRecorded *r)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HtCtfHeader h = { };

    memset(r, 0, sizeof(*r));
    if (fd < 0) {
        return false;
    }
    if (last_packet(fd, stream, instance, &h)) {
        *r = (HtRecorded) {
            .events = ht_le64(h.total),
            .lost = ht_le64(h.lost),
            .end_ns = ht_le64(h.timestamp_end),
        };
    }
    close(fd);
    return true;
}
