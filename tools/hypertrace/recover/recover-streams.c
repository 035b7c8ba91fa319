/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: recover events from stream memory
 *
 * Each ring is read several times: to count its events, to write them, and to
 * show the last ones. The file is mapped privately. The guest, and the device
 * or recorder that used the memory, must have ended.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/escape.h"
#include "cli/number.h"
#include "cli/output.h"
#include "export/export.h"
#include "ht-channel.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/dead-streams.h"
#include "hypertrace/log-format.h"
#include "model/duration.h"
#include "recover/recover-streams.h"

/* Stream memory whose device or recorder has ended */
typedef struct Dead {
    HtDead *d;
    uint8_t *ram;
    /* name of the recovered trace: the file's name, escaped */
    char *name;
    HtDeadResult results[HT_STREAMS_MAX];
    bool opened[HT_STREAMS_MAX];
    uint64_t end_ns;
    uint64_t events;
} Dead;

static bool fail(GError **error, int code, const char *what, const char *path)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot %s %s: %s", what, path, g_strerror(code));
    return false;
}

bool ht_recover_is_streams(const char *path)
{
    uint32_t magic = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 &&
              pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
              ht_le32(magic) == HT_MAGIC;

    if (fd >= 0) {
        close(fd);
    }
    return is;
}

/*
 * Map a file privately: writes to the mapping do not change the file. Returns
 * NULL on failure.
 */
static void *map_file(const char *path, size_t *size, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    void *p;

    if (fd < 0 || fstat(fd, &st)) {
        fail(error, errno, "read", path);
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    if (!S_ISREG(st.st_mode) || !st.st_size) {
        close(fd);
        fail(error, EINVAL, "read", path);
        return NULL;
    }
    *size = st.st_size;
    p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        fail(error, errno, "map", path);
        p = NULL;
    }
    close(fd);
    return p;
}

/* HtDeliver: do nothing; the caller needs only the results of ht_dead_read() */
static void ignore(void *opaque, const HtRun *run)
{
}

static void measure(Dead *dead)
{
    uint32_t i;

    for (i = 0; i < dead->d->caps.streams; i++) {
        HtDeadResult *r = &dead->results[i];

        dead->opened[i] = ht_dead_read(dead->d, i, dead->ram, 0, ignore, NULL,
                                       r);
        dead->events += r->events;
        dead->end_ns = MAX(dead->end_ns, r->end_ns);
    }
}

typedef struct Writer {
    HtCtfWriter *w;
    int status;
} Writer;

static void write_run(void *opaque, const HtRun *run)
{
    Writer *writer = opaque;

    writer->status = writer->status ?: ht_ctf_writer_run(writer->w, run);
}

static int write_streams(Dead *dead, Writer *writer)
{
    const HtClassTable *classes = dead->d->classes;
    HtDeadResult r;
    uint32_t i;

    for (i = 1; i <= ht_class_table_count(classes) && !writer->status; i++) {
        writer->status = ht_ctf_writer_class(writer->w,
                                             ht_class_table_get(classes, i));
    }
    for (i = 0; i < dead->d->caps.streams && !writer->status; i++) {
        if (dead->results[i].events) {
            ht_dead_read(dead->d, i, dead->ram, dead->results[i].begin_ns,
                         write_run, writer, &r);
        }
    }
    return writer->status;
}

static char *write_trace(Dead *dead, const char *dir, GError **error)
{
    HtCtfInfo info = {
        .vm_name = dead->name,
        .device = dead->name,
        .channel = ht_channel_name(dead->d->caps.channel),
        .clock_offset_ns = dead->d->wall_offset,
    };
    Writer writer = { 0 };
    char *path = NULL;
    unsigned made;

    ht_ctf_uuid(info.uuid);
    ht_ctf_uuid(info.clock_uuid);
    if (!ht_rec_make_dir(dir, &made)) {
        fail(error, errno, "create the directory", dir);
        ht_rec_remove_dir(dir, made);
        return NULL;
    }
    writer.status = ht_ctf_writer_new(dir, dead->name, &info,
                                      dead->d->caps.streams, &writer.w);
    if (!writer.status) {
        path = g_strdup(ht_ctf_writer_path(writer.w));
        write_streams(dead, &writer);
        ht_ctf_writer_free(writer.w);
    }
    if (writer.status) {
        fail(error, -writer.status, "write the trace in", dir);
        if (path) {
            ht_export_remove(path);
        }
        ht_rec_remove_dir(dir, made);
        g_clear_pointer(&path, g_free);
    }
    return path;
}

/* State while the last events of a stream are printed */
typedef struct Tail {
    Dead *dead;
    /* number of events of the stream that are still to be left out */
    uint64_t skip;
    FILE *to;
} Tail;

static void show_run(void *opaque, const HtRun *run)
{
    Tail *t = opaque;
    HtRunIter it;
    HtEvent ev;

    if (run->events <= t->skip) {
        t->skip -= run->events;
        return;
    }
    ht_run_iter_init(&it, run, t->dead->d->classes);
    while (ht_run_next(&it, &ev)) {
        if (t->skip) {
            t->skip--;
        } else {
            fputs("  ", t->to);
            ht_log_event(t->to, t->dead->name, run->stream, &ev);
        }
    }
}

static void put_stream(HtOutput *o, Dead *dead, uint32_t i, unsigned lines)
{
    const HtStreamInfo *s = &dead->d->streams[i];
    const HtDeadResult *r = &dead->results[i];
    Tail tail = { dead, r->events - MIN(r->events, lines), NULL };
    HtDeadResult again;
    char *text = NULL;
    size_t size;

    ht_output_colour(o, HT_COLOUR_BOLD);
    g_string_append_printf(o->text, "\nstream %" PRIu32 " \"%s\"", i, s->name);
    ht_output_colour(o, HT_COLOUR_NONE);
    if (s->vcpu >= 0) {
        g_string_append_printf(o->text, ", vCPU %" PRId32, s->vcpu);
    }
    g_string_append_printf(o->text, ": %" PRIu64 " event%s, %" PRIu64
                           " before them, %" PRIu64 " lost", r->events,
                           ht_number_s(r->events), r->before, r->lost);
    if (r->events) {
        g_string_append(o->text, "; silent for ");
        ht_number_duration(o->text, ht_elapsed(r->end_ns, dead->end_ns), 0);
    }
    g_string_append_c(o->text, '\n');
    if (*r->why) {
        g_string_append_printf(o->text, "  the rest cannot be read: %s\n",
                               r->why);
    }
    tail.to = open_memstream(&text, &size);
    if (tail.to) {
        ht_dead_read(dead->d, i, dead->ram, 0, show_run, &tail, &again);
        fclose(tail.to);
        g_string_append_len(o->text, text, size);
        free(text);
    }
}

static bool put_page(Dead *dead, const char *trace, unsigned lines,
                     GError **error)
{
    HtOutput o;
    uint32_t i;

    ht_output_stdout(&o);
    g_string_append_printf(o.text, "%" PRIu64 " event%s of %s in %s\n",
                           dead->events, ht_number_s(dead->events),
                           dead->name, trace);
    if (dead->d->invalid) {
        g_string_append_printf(o.text, "%u more stream%s cannot be read: %s"
                               " description is not valid\n",
                               dead->d->invalid, ht_number_s(dead->d->invalid),
                               ht_number_form(dead->d->invalid, "its",
                                              "their"));
    }
    for (i = 0; i < dead->d->caps.streams && ht_output_room(&o); i++) {
        if (dead->opened[i]) {
            put_stream(&o, dead, i, lines);
        }
    }
    return ht_output_finish(&o, error);
}

bool ht_recover_streams(const char *path, const char *dir, unsigned lines,
                        bool quiet, GError **error)
{
    g_autofree Dead *dead = g_new0(Dead, 1);
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *name = ht_escape_file_name(base);
    g_autofree char *trace = NULL;
    size_t size = 0;
    bool ok = false;

    dead->name = name;
    dead->ram = map_file(path, &size, error);
    dead->d = dead->ram ? ht_dead_new(dead->ram, size, error) : NULL;
    if (dead->ram && !dead->d) {
        g_prefix_error(error, "%s: ", path);
    }
    if (dead->d) {
        measure(dead);
        if (dead->events) {
            trace = write_trace(dead, dir, error);
        } else {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                        "there are no events in the streams of %s", path);
        }
        ok = trace && (quiet || put_page(dead, trace, lines, error));
    }
    ht_dead_free(dead->d);
    if (dead->ram) {
        munmap(dead->ram, size);
    }
    return ok;
}
