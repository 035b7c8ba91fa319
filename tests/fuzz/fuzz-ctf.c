/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target ctf: pass runs of any times and sizes to the CTF writer, with
 * openings, closings and events in any order
 *
 * After each step, each stream's file consists of whole packets, ordered by
 * their first times; the packets together have as many event bytes as all
 * accepted runs; and the writer has counted the events of refused runs.
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include "output/ctf-stream.h"
#include "hypertrace/ctf-writer.h"
#include "fuzz.h"

#define STREAMS 2

typedef struct Stream {
    HtStreamInfo info;
    bool open;
    uint64_t ns;
    uint64_t discarded;
} Stream;

typedef struct Trace {
    HtCtfWriter *w;
    Stream streams[STREAMS];
    uint64_t bytes;
    uint64_t dropped;
} Trace;

static uint64_t check_packets(const char *path)
{
    uint64_t pos = 0, begin = 0, bytes = 0;
    int fd = open(path, O_RDONLY);
    struct stat st;

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fstat(fd, &st), ==, 0);
    while (pos < (uint64_t)st.st_size) {
        uint64_t content, packet;
        HtCtfHeader h;

        g_assert_cmpint(pread(fd, &h, sizeof(h), pos), ==, sizeof(h));
        g_assert_cmphex(ht_le32(h.magic), ==, 0xc1fc1fc1);
        content = ht_le64(h.content_bits);
        packet = ht_le64(h.packet_bits);
        g_assert_true(content % 8 == 0 && packet % 8 == 0);
        g_assert_cmpuint(content / 8, >=, sizeof(h));
        g_assert_cmpuint(content, <=, packet);
        g_assert_cmpuint(packet / 8, <=, st.st_size - pos);
        g_assert_cmpuint(ht_le64(h.timestamp_begin), >=, begin);
        g_assert_cmpuint(ht_le64(h.timestamp_end), >=,
                         ht_le64(h.timestamp_begin));
        begin = ht_le64(h.timestamp_begin);
        bytes += content / 8 - sizeof(h);
        pos += packet / 8;
    }
    g_assert_cmpuint(pos, ==, st.st_size);
    close(fd);
    return bytes;
}

static void check_trace(const Trace *t)
{
    const char *dir = ht_ctf_writer_path(t->w);
    DIR *d = opendir(dir);
    struct dirent *e;
    uint64_t bytes = 0;

    g_assert_nonnull(d);
    while ((e = readdir(d))) {
        if (g_str_has_prefix(e->d_name, "stream-")) {
            g_autofree char *path = g_strdup_printf("%s/%s", dir, e->d_name);

            bytes += check_packets(path);
        } else {
            /* no temporary file is left */
            g_assert_true(!strcmp(e->d_name, ".") ||
                          !strcmp(e->d_name, "..") ||
                          !strcmp(e->d_name, "metadata"));
        }
    }
    closedir(d);
    g_assert_cmpuint(bytes, ==, t->bytes);
    g_assert_cmpuint(ht_ctf_writer_dropped(t->w), ==, t->dropped);
}

static void mark(Trace *t, Stream *s, unsigned flag, FuzzInput *in)
{
    HtRun run = {
        .stream = &s->info,
        .flags = flag,
        .begin_ns = s->ns,
        .end_ns = s->ns,
        .discarded = s->discarded,
    };
    unsigned i;
    int ret;

    if (flag == HT_RUN_OPEN) {
        s->info.instance++;
        s->info.vcpu = fuzz_u8(in) - 1;
        for (i = 0; i < HT_STREAM_NAME_MAX; i++) {
            uint8_t c = fuzz_u8(in);

            s->info.name[i] = c >= ' ' && c <= '~' ? c : 0;
            if (!s->info.name[i]) {
                break;
            }
        }
    }
    ret = ht_ctf_writer_run(t->w, &run);
    g_assert_cmpint(ret, ==, flag == HT_RUN_OPEN || s->open ? 0 : -ENOENT);
    s->open = flag == HT_RUN_OPEN;
}

static void events(Trace *t, Stream *s, unsigned flags, FuzzInput *in)
{
    uint8_t count = fuzz_u8(in);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint64_t ns = s->ns, begin;
    HtRun run;
    int ret;

    if (count & 0xc0) {
        uint64_t by = fuzz_number(in);

        ns = count & 0x80 ? ns - MIN(ns, by) : MIN(ns + by, HT_TIME_MAX_NS);
    }
    begin = ns;
    for (count %= 32; count; count--) {
        uint64_t clock = ns;

        fuzz_event(in, bytes, &clock);
    }
    if (flags & 0x80) {
        /*
         * make the run larger than a usual packet, which has at most
         * HT_CTF_PACKET_SIZE bytes with its header
         */
        g_byte_array_set_size(bytes, HT_CTF_PACKET_SIZE +
                              fuzz_number(in) % (4 * HT_CTF_FILE_MIN));
        memset(bytes->data, 0, bytes->len);
    }
    if (!bytes->len) {
        return;
    }
    run = (HtRun) {
        .stream = &s->info,
        .flags = flags & HT_RUN_CUT,
        .events = 1 + fuzz_u8(in),
        .data = bytes->data,
        .size = bytes->len,
        .begin_ns = begin,
        .end_ns = begin + fuzz_u8(in),
        .counter = fuzz_number(in),
        .discarded = s->discarded,
    };
    ret = ht_ctf_writer_run(t->w, &run);
    if (ret) {
        g_assert_true(ret == -EINVAL || ret == -ENOENT);
        g_assert_true(!s->open || begin < s->ns);
        t->dropped += run.events;
    } else {
        g_assert_true(s->open);
        t->bytes += run.size;
        s->ns = run.end_ns;
    }
}

static void remove_trace(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while ((e = readdir(d))) {
        unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    rmdir(dir);
}

/* Folder of the traces: in /dev/shm if that is writable; removed at exit */
static char *base;

static void remove_base(void)
{
    rmdir(base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HtCtfInfo info = {
        .vm_name = "vm \"\\\n", .device = "ht0", .channel = "shm",
        .clock_offset_ns = -1, .precision_ns = 1,
    };
    FuzzInput in = fuzz_input(data, size);
    g_autofree char *path = NULL;
    Trace t = { };
    uint32_t id;

    if (!base) {
        base = g_strdup(access("/dev/shm", W_OK) == 0 ?
                        "/dev/shm/ht-fuzz-XXXXXX" : "/tmp/ht-fuzz-XXXXXX");
        g_assert_nonnull(g_mkdtemp(base));
        atexit(remove_base);
    }
    g_assert_cmpint(ht_ctf_writer_new(base, "t", &info, STREAMS, &t.w), ==, 0);
    path = g_strdup(ht_ctf_writer_path(t.w));
    for (id = 0; id < STREAMS; id++) {
        t.streams[id].info.index = id;
        t.streams[id].ns = 1000;
    }
    while (fuzz_more(&in)) {
        uint8_t action = fuzz_u8(&in);
        Stream *s = &t.streams[action >> 3 & 1];

        switch (action % 8) {
        case 0:
            mark(&t, s, HT_RUN_OPEN, &in);
            break;
        case 1:
            mark(&t, s, HT_RUN_CLOSE, &in);
            break;
        case 2:
            s->discarded += fuzz_u8(&in);
            break;
        case 3:
            id = fuzz_number(&in) % FUZZ_HUGE + 1;
            g_assert_cmpint(ht_ctf_writer_class(t.w,
                                ht_class_table_get(fuzz_classes(), id)),
                            ==, 0);
            break;
        default:
            events(&t, s, action, &in);
        }
        check_trace(&t);
    }
    ht_ctf_writer_free(t.w);
    remove_trace(path);
    return 0;
}
