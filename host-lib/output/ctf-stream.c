/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write one stream instance of a CTF trace
 *
 * Readers reject a whole trace because of one incomplete packet, and a process
 * can be killed between any two instructions.  A file that readers can see
 * therefore keeps its size.  A new file first has a hidden name; it gets its
 * full size, and packets that cover all of it; then it is renamed.  The last
 * packet covers the unused space of the file:
 *
 *  - to add events, write them to the unused space of the last packet, then
 *    overwrite the packet's header with one that includes the events;
 *  - to start another packet, write it to the unused space, then overwrite the
 *    header of the packet before it, so that this old packet ends where the new
 *    packet begins.
 *
 * Unused space is a hole, for which most file systems use no space on disk.
 * The recorder does not truncate the file at the end, because a reader may
 * already know its size.
 *
 * Each of these two changes becomes visible by a single write of one header,
 * which is within one page because packets start at multiples of ALIGN.
 * Headers are not written by a mapping: if the file was truncated, a store to
 * the mapping would raise SIGBUS and end the process, which may be QEMU.
 */
#include "hypertrace/base.h"
#include <sys/uio.h>
#include "ctf-stream.h"

#define CTF_MAGIC       0xc1fc1fc1u
#define HEADER          sizeof(HtCtfHeader)
#define ALIGN           128u

/*
 * Event time in ns (10 ms) after which the stream checks again whether its file
 * still exists, when the next run arrives
 */
#define CHECK_NS        10000000

static uint64_t content(const HtCtfStream *s)
{
    return ht_le64(s->h.content_bits) / 8;
}

/* Return the offset at which a packet after the open one would start */
static uint64_t next_start(const HtCtfStream *s)
{
    return HT_ROUND_UP(s->start + content(s), ALIGN);
}

static int write_at(int fd, struct iovec *iov, int n, uint64_t pos)
{
    while (n) {
        ssize_t done;

        if (!iov->iov_len) {
            /* skip an element without bytes: the run has no events */
            iov++;
            n--;
            continue;
        }
        done = pwritev(fd, iov, n, pos);
        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -errno;
        }
        if (done == 0) {
            return -EIO;
        }
        pos += done;
        while (n && (size_t)done >= iov->iov_len) {
            done -= iov->iov_len;
            iov++;
            n--;
        }
        if (n) {
            iov->iov_base = (uint8_t *)iov->iov_base + done;
            iov->iov_len -= done;
        }
    }
    return 0;
}

static int write_header(int fd, HtCtfHeader *h, uint64_t pos)
{
    struct iovec iov = { h, HEADER };

    return write_at(fd, &iov, 1, pos);
}

static void leave_file(HtCtfStream *s)
{
    if (s->fd >= 0) {
        close(s->fd);
    }
    s->fd = -1;
}

static void take_file(HtCtfStream *s, int fd, uint64_t size)
{
    leave_file(s);
    s->fd = fd;
    s->size = size;
}

static int write_packet(int fd, HtCtfHeader *h, const HtRun *run, uint64_t pos)
{
    struct iovec iov[2] = {
        { h, HEADER },
        { run ? (void *)run->data : NULL, run ? run->size : 0 },
    };

    return write_at(fd, iov, run ? 2 : 1, pos);
}

/*
 * Store the producer's counts in the header.  ht_ctf_recorded() reads them if
 * another recorder continues the stream.
 */
static void set_counts(HtCtfHeader *h, const HtRun *run)
{
    if (run->total) {
        h->total = ht_le64(run->total);
    }
    h->lost = ht_le64(MAX(ht_le64(h->lost), run->lost));
}

/*
 * Make the header of a packet that extends from offset @start to offset @size,
 * usually the end of the file.  The packet holds the events of @run, or no
 * events if @run is NULL.
 */
static HtCtfHeader make_header(const HtCtfStream *s, uint64_t start,
                               uint64_t size, uint64_t seq, const HtRun *run,
                               uint64_t discarded)
{
    /*
     * An empty packet must start later than the packet before it, see
     * must_grow().
     */
    uint64_t after = MAX(s->last_ns, ht_le64(s->h.timestamp_begin) + 1);
    HtCtfHeader h = s->h;

    h.timestamp_begin = ht_le64(run ? run->begin_ns : after);
    h.timestamp_end = ht_le64(run ? run->end_ns : after);
    h.counter = run ? ht_le64(run->counter) : h.counter;
    h.discarded = ht_le64(discarded);
    h.seq = ht_le64(seq);
    h.content_bits = ht_le64((HEADER + (run ? run->size : 0)) * 8);
    h.packet_bits = ht_le64((size - start) * 8);
    if (run) {
        set_counts(&h, run);
    }
    return h;
}

static int shrink_packet(HtCtfStream *s, uint64_t to)
{
    HtCtfHeader h = s->h;

    h.packet_bits = ht_le64((to - s->start) * 8);
    return write_header(s->fd, &h, s->start);
}

/* A new file under its hidden name: a dot and the final name */
typedef struct NewFile {
    char hidden[100];
    int fd;
} NewFile;

static int new_file(const HtCtfStream *s, unsigned part, uint64_t size,
                    NewFile *f)
{
    char name[sizeof(s->info.name)];

    g_strlcpy(name, s->info.name, sizeof(name));
    g_strcanon(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-.", '_');
    snprintf(f->hidden, sizeof(f->hidden),
             "." HT_CTF_STREAM_FILE "%s%s-%04u",
             s->info.index, s->info.instance, name[0] ? "-" : "", name, part);
    f->fd = openat(s->dirfd, f->hidden,
                   O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return f->fd < 0 || ftruncate(f->fd, size) < 0 ? -errno : 0;
}

/*
 * If @ret is 0, rename the new file and make it the stream's file.  If @ret is
 * an error, or the rename fails, delete the new file.  Returns 0 or -errno.
 */
static int use_file(HtCtfStream *s, const NewFile *f, uint64_t size, int ret)
{
    if (!ret && renameat(s->dirfd, f->hidden, s->dirfd, f->hidden + 1) < 0) {
        ret = -errno;
    }
    if (!ret) {
        take_file(s, f->fd, size);
    } else if (f->fd >= 0) {
        unlinkat(s->dirfd, f->hidden, 0);
        close(f->fd);
    }
    return ret;
}

/* Date a stream's empty first packet 1 ns before @ns, or at 0 if @ns is 0 */
static void date_first(HtCtfHeader *h, uint64_t ns)
{
    h->timestamp_begin = ht_le64(ns - MIN(ns, 1));
    h->timestamp_end = h->timestamp_begin;
}

/*
 * Continue in a new file, with a packet that holds @run, or with an empty
 * packet if @run is NULL.  In the first file of a stream instance, a further
 * empty packet precedes that packet, because readers show discarded events only
 * as a difference to the previous packet.
 */
static int next_file(HtCtfStream *s, const HtRun *run, uint64_t discarded)
{
    uint64_t seq = s->part ? ht_le64(s->h.seq) + 1 : 0;
    uint64_t size = MIN((uint64_t)HT_CTF_FILE_MIN << MIN(s->part, 16),
                        HT_CTF_FILE_MAX);
    uint64_t need = ALIGN + HEADER + (run ? run->size : 0);
    uint64_t start = 0;
    HtCtfHeader first, h;
    NewFile f;
    int ret;

    size = MAX(size, HT_ROUND_UP(need, HT_CTF_FILE_MIN));
    ret = new_file(s, s->part, size, &f);
    if (!ret && !s->part) {
        if (run) {
            /*
             * No file could be made when the stream was opened.  In this first
             * file, the empty packet must not be later than the events.
             */
            s->last_ns = MIN(s->last_ns, run->begin_ns);
        }
        start = ALIGN;
        first = make_header(s, 0, ALIGN, seq++, NULL, s->base);
        date_first(&first, s->last_ns);
        ret = write_header(f.fd, &first, 0);
    }
    if (!ret) {
        h = make_header(s, start, size, seq, run, discarded);
        ret = write_packet(f.fd, &h, run, start);
    }
    ret = use_file(s, &f, size, ret);
    if (!ret) {
        s->part++;
        s->start = start;
        s->h = h;
    }
    return ret;
}

static int copy_bytes(int to, int from, uint64_t size)
{
    off_t pos_from = 0, pos_to = 0;

    while ((uint64_t)pos_to < size) {
        ssize_t n = copy_file_range(from, &pos_from, to, &pos_to,
                                    size - pos_to, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
    }
    return 0;
}

static int grow_file(HtCtfStream *s, uint64_t need)
{
    uint64_t used = next_start(s);
    uint64_t size = HT_ROUND_UP(MAX(2 * s->size, used + need), HT_CTF_FILE_MIN);
    HtCtfHeader h = s->h;
    NewFile f;
    int ret;

    h.packet_bits = ht_le64((size - s->start) * 8);
    ret = new_file(s, s->part - 1, size, &f);
    if (!ret) {
        ret = copy_bytes(f.fd, s->fd, used);
    }
    if (!ret) {
        ret = write_header(f.fd, &h, s->start);
    }
    ret = use_file(s, &f, size, ret);
    if (!ret) {
        s->h = h;
    }
    return ret;
}

/*
 * Write a packet after the open packet, with the events of @run or, if @run is
 * NULL, with none.  If there is no file, or it has no room, make a new file.
 */
static int next_packet(HtCtfStream *s, const HtRun *run, uint64_t discarded)
{
    uint64_t start = next_start(s);
    uint64_t need = HEADER + (run ? run->size : 0);
    HtCtfHeader h;
    int ret;

    if (s->fd < 0 || start + need > s->size) {
        return next_file(s, run, discarded);
    }
    h = make_header(s, start, s->size, ht_le64(s->h.seq) + 1, run,
                    discarded);
    ret = write_packet(s->fd, &h, run, start);
    if (!ret) {
        ret = shrink_packet(s, start);
    }
    if (!ret) {
        s->start = start;
        s->h = h;
    }
    return ret;
}

/*
 * Test whether the run must go into the open packet, because it does not begin
 * later than this packet: readers sort a stream's packets by their first times,
 * so no two may start at the same time.  After a guest's clock went back, many
 * events have the same time.
 */
static bool must_grow(const HtCtfStream *s, const HtRun *run)
{
    return s->fd >= 0 && content(s) > HEADER &&
           run->begin_ns <= ht_le64(s->h.timestamp_begin);
}

static bool can_grow(const HtCtfStream *s, const HtRun *run,
                     uint64_t discarded)
{
    uint64_t used = content(s);

    if (s->fd < 0 || s->start + used + run->size > s->size) {
        return false;
    }
    return used == HEADER ||
           (!s->cut && !(run->flags & HT_RUN_CUT) &&
            discarded == ht_le64(s->h.discarded) &&
            used + run->size <= HT_CTF_PACKET_SIZE);
}

static int grow_packet(HtCtfStream *s, const HtRun *run, uint64_t discarded)
{
    struct iovec iov = { (void *)run->data, run->size };
    HtCtfHeader h = s->h;
    uint64_t used = content(s);
    int ret;

    h.timestamp_end = ht_le64(run->end_ns);
    h.discarded = ht_le64(discarded);
    if (used == HEADER) {
        h.timestamp_begin = ht_le64(run->begin_ns);
        h.counter = ht_le64(run->counter);
    }
    h.content_bits = ht_le64((used + run->size) * 8);
    set_counts(&h, run);

    ret = write_at(s->fd, &iov, 1, s->start + used);
    if (!ret) {
        ret = write_header(s->fd, &h, s->start);
    }
    if (!ret) {
        s->h = h;
    }
    return ret;
}

int ht_ctf_stream_open(HtCtfStream *s, int dirfd, const uint8_t uuid[16],
                       const HtRun *run)
{
    *s = (HtCtfStream) {
        .dirfd = dirfd,
        .info = *run->stream,
        .open = true,
        .fd = -1,
        .last_ns = run->begin_ns,
        .base = run->discarded,
        .cut = true,
        .h = {
            .magic = ht_le32(CTF_MAGIC),
            .instance = ht_le64(run->stream->instance),
            .counter = ht_le64(run->counter),
            .discarded = ht_le64(run->discarded),
            .total = ht_le64(run->total),
            .lost = ht_le64(run->lost),
            .cpu = ht_le32(run->stream->vcpu),
            .stream = ht_le32(run->stream->index),
        },
    };
    memcpy(s->h.uuid, uuid, sizeof(s->h.uuid));
    return next_file(s, NULL, run->discarded);
}

/*
 * Close a file that was deleted or truncated, so that the next run makes a new
 * file.  A write to a deleted file succeeds and is lost; a write past the end
 * of a truncated file leaves zeros before it that no reader accepts.
 */
static void leave_deleted(HtCtfStream *s)
{
    struct stat st;

    if (s->fd >= 0 && fstat(s->fd, &st) == 0 &&
        (st.st_nlink == 0 || (uint64_t)st.st_size < s->size)) {
        leave_file(s);
    }
    s->unchecked = 0;
}

/*
 * Check whether the file still exists: after CHECK_NS of event time or
 * HT_CTF_CHECK_RUNS runs, whichever comes first
 */
static void check_file(HtCtfStream *s, const HtRun *run)
{
    /* If the time went back, the unsigned difference is large, too. */
    if (++s->unchecked >= HT_CTF_CHECK_RUNS ||
        run->end_ns - s->checked_ns >= CHECK_NS) {
        s->checked_ns = run->end_ns;
        leave_deleted(s);
    }
}

/*
 * The stream's first event, at @ns, is earlier than the stream's opening: date
 * the empty first packet before this event
 */
static int open_earlier(HtCtfStream *s, uint64_t ns)
{
    HtCtfHeader h = s->h;

    leave_deleted(s);
    if (s->fd < 0) {
        return 0;               /* no file could be made, or it was deleted */
    }
    date_first(&h, ns);
    h.discarded = ht_le64(s->base);
    h.seq = 0;
    h.packet_bits = ht_le64(ALIGN * 8);
    s->last_ns = ns;
    return write_header(s->fd, &h, 0);
}

int ht_ctf_stream_append(HtCtfStream *s, const HtRun *run)
{
    uint64_t discarded = run->discarded + s->dropped;
    int ret = 0;

    s->upstream = run->discarded;
    check_file(s, run);
    if (run->begin_ns < s->last_ns) {
        if (s->any) {
            ret = -EINVAL;
        } else {
            ret = open_earlier(s, run->begin_ns);
        }
    }
    if (ret) {
        goto drop;
    }

    if (must_grow(s, run)) {
        if (next_start(s) + run->size > s->size) {
            ret = grow_file(s, run->size);
        }
        if (!ret) {
            ret = grow_packet(s, run, discarded);
        }
    } else if (can_grow(s, run, discarded)) {
        ret = grow_packet(s, run, discarded);
    } else {
        ret = next_packet(s, run, discarded);
    }
    if (ret) {
        goto drop;
    }
    s->last_ns = run->end_ns;
    s->any = true;
    s->cut = false;
    return 0;

drop:
    s->dropped += run->events;
    s->cut = true;
    return ret;
}

int ht_ctf_stream_close(HtCtfStream *s, const HtRun *run)
{
    uint64_t discarded;
    bool empty;
    int ret = 0;

    leave_deleted(s);
    empty = s->fd >= 0 && content(s) == HEADER;
    if (run) {
        s->last_ns = MAX(s->last_ns, run->begin_ns);
        s->upstream = run->discarded;
        set_counts(&s->h, run);
    }
    discarded = s->upstream + s->dropped;
    if (!empty) {
        ret = next_packet(s, NULL, discarded);
    }
    if (s->fd >= 0 && (empty || ret)) {
        /*
         * Overwrite the count of discarded events in the header.  This needs no
         * new space on most file systems, so it works if the disk is full.
         */
        HtCtfHeader h = s->h;

        /*
         * last_ns can be earlier than the packet's begin: at time 0, or if a
         * run was dropped after the call of open_earlier()
         */
        h.timestamp_end = ht_le64(MAX(s->last_ns,
                                          ht_le64(h.timestamp_begin)));
        h.discarded = ht_le64(discarded);
        ret = write_header(s->fd, &h, s->start);
        if (!ret) {
            s->h = h;
        }
    }
    leave_file(s);
    s->open = false;
    return ret;
}
