/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: an index of stream RAM, for the case that QEMU is killed
 *
 * Costs a small write when a stream is opened or a class is registered, and
 * nothing when an event is emitted.  The file should be on a file system that
 * does not hang, like the memory's own file.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "hypertrace/dead-streams.h"
#include "hypertrace/backend.h"
#include "device.h"

/* Get the path of the memory's file; NULL with @errp set if it has no file */
static char *memory_path(HypertraceDevice *dev, Error **errp)
{
    HostMemoryBackend *m = dev->conf.memdev;
    g_autofree char *path = NULL;

    if (m && m->share && object_dynamic_cast(OBJECT(m),
                                             "memory-backend-file")) {
        path = object_property_get_str(OBJECT(m), "mem-path", NULL);
    }
    if (!path || !g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        error_setg(errp, "recover=%s needs memdev, a memory-backend-file with"
                   " share=on and the name of a file: other memory goes with"
                   " QEMU", dev->recover.file);
        return NULL;
    }
    return g_canonicalize_filename(path, NULL);
}

bool ht_recover_check(HypertraceDevice *dev, Error **errp)
{
    g_autofree char *path = NULL;

    if (!dev->recover.file) {
        return true;
    }
    path = memory_path(dev, errp);
    if (path && strlen(path) >= sizeof_field(HtDeadHead, memory)) {
        error_setg(errp, "recover=%s: the name of the memory's file has more"
                   " than %zu bytes", dev->recover.file,
                   sizeof_field(HtDeadHead, memory) - 1);
        return false;
    }
    return path;
}

/* Context: any thread */
static void put(HypertraceDevice *dev, uint64_t at, const void *data,
                size_t size)
{
    HtRecover *r = &dev->recover;
    const uint8_t *p = data;

    if (r->fd < 0 || qatomic_read(&r->failed)) {
        return;
    }
    while (size) {
        ssize_t n = pwrite(r->fd, p, size, at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            if (!qatomic_xchg(&r->failed, true)) {
                warn_report("hypertrace %s: cannot write to '%s': %s;"
                            " later events cannot be recovered", dev->info.name,
                            r->file, strerror(n ? errno : ENOSPC));
            }
            return;
        }
        p += n;
        at += n;
        size -= n;
    }
}

static void put_head(HypertraceDevice *dev, const char *memory)
{
    HtDeadHead h = {
        .magic = HT_DEAD_MAGIC,
        .version = HT_DEAD_VERSION,
        .streams = dev->conf.streams,
        .packet_size = dev->conf.packet_size,
        .packets = dev->conf.packets,
        .stride = dev->caps.ring_stride,
        .mult = dev->clock.guest.map.nominal,
        .wall_offset = hypertrace_wall_offset(),
    };
    const uint8_t end = 0;

    pstrcpy(h.trace, sizeof(h.trace), dev->info.name);
    pstrcpy(h.vm, sizeof(h.vm), dev->info.vm_name);
    pstrcpy(h.channel, sizeof(h.channel), dev->info.channel);
    pstrcpy(h.memory, sizeof(h.memory), memory);
    ht_dead_head_swap(&h);
    /* Unwritten parts of the file read as 0. */
    put(dev, HT_DEAD_CLASSES - 1, &end, sizeof(end));
    put(dev, 0, &h, sizeof(h));
}

/*
 * Open and empty the index.  The index of a running device of any QEMU, and the
 * file of the memory, are refused and stay unchanged.
 *
 * Returns: a descriptor that holds a lock on the file, or -1
 */
static int open_index(const char *file, const char *memory, Error **errp)
{
    int fd = qemu_create(file, O_RDWR, 0600, errp), ret;
    struct stat index, ram;

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &index) || stat(memory, &ram)) {
        error_setg_errno(errp, errno, "recover=%s: cannot compare it with the"
                         " memory's file '%s'", file, memory);
        goto fail;
    }
    if (index.st_dev == ram.st_dev && index.st_ino == ram.st_ino) {
        error_setg(errp, "recover=%s is the memory's own file '%s'; name"
                   " another file", file, memory);
        goto fail;
    }
    ret = qemu_lock_fd(fd, 0, 0, true);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "recover=%s: cannot lock the file",
                         file);
        error_append_hint(errp, "Each device needs an index of its own. Is"
                          " another QEMU using this one?\n");
        goto fail;
    }
    if (ftruncate(fd, 0)) {
        error_setg_errno(errp, errno, "recover=%s: cannot truncate the file",
                         file);
        goto fail;
    }
    return fd;

fail:
    close(fd);
    return -1;
}

bool ht_recover_begin(HypertraceDevice *dev, Error **errp)
{
    HtRecover *r = &dev->recover;
    g_autofree char *memory = NULL;

    r->fd = -1;
    if (!r->file) {
        return true;
    }
    memory = memory_path(dev, errp);
    r->fd = memory ? open_index(r->file, memory, errp) : -1;
    if (r->fd < 0) {
        return false;
    }
    r->failed = false;
    r->classes = 0;
    r->at = HT_DEAD_CLASSES;
    put_head(dev, memory);
    ht_recover_classes(dev);
    return true;
}

void ht_recover_end(HypertraceDevice *dev)
{
    if (dev->recover.fd >= 0) {
        close(dev->recover.fd);
        dev->recover.fd = -1;
    }
}

void ht_recover_classes(HypertraceDevice *dev)
{
    HtRecover *r = &dev->recover;
    uint32_t n = ht_class_table_count(dev->trace->classes);
    g_autofree uint8_t *entry = NULL;

    if (r->fd < 0 || r->classes == n) {
        return;
    }
    entry = g_malloc0(4 + HT_MESSAGE_MAX);
    while (r->classes < n) {
        const HtClass *c = ht_class_table_get(dev->trace->classes,
                                              ++r->classes);
        size_t size = ht_class_encode(c, (struct ht_msg_class *)(entry + 4));

        stl_le_p(entry, size);
        put(dev, r->at, entry, 4 + size);
        r->at += 4 + size;
    }
}

void ht_recover_stream(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);
    const HtStreamInfo *info = &s->consumer.info;
    HtDeadStream d = {
        .instance = s->consumer.instance,
        .vcpu = info->vcpu,
    };
    HtTimeSegment seg[HT_TIME_SEGMENTS];
    unsigned n;

    if (dev->recover.fd < 0) {
        return;
    }
    ht_guest_clock_sample(&dev->clock.guest, false);
    n = ht_guest_clock_save(&dev->clock.guest, seg);
    if (n) {
        d.counter = seg[n - 1].counter;
        d.ns = seg[n - 1].ns;
        d.mult = seg[n - 1].mult;
    }
    memcpy(d.name, info->name, sizeof(d.name));
    ht_dead_stream_swap(&d);
    put(dev, HT_DEAD_STREAMS + s->index * sizeof(d), &d, sizeof(d));
}
