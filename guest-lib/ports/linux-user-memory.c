/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: use a memory-only device without the module
 *
 * This is for root on x86-64.  The library maps the device's memory through the
 * file resource2 of sysfs, uncached: an event takes far longer than with the
 * module.  The file resource2_wc is not usable, because release stores do not
 * order accesses to write-combining memory.  On Arm, unaligned stores to
 * uncached memory fault.
 *
 * If a process ends without ht_close(), its streams stay open until a program
 * or the module opens the device again.  If another host starts to serve the
 * memory, a program must close the device and open it again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "linux-sys.h"
#include "linux-user.h"

#define PCI_DEVICES     "/sys/bus/pci/devices"
#define PCI_COMMAND     4
#define PCI_MEMORY      2
#define RESOURCE        "resource2"     /* the file of BAR2, HT_IVSHMEM_BAR */
#define SYNC_ROUNDS     8

/* Open a sysfs file of a PCI device; returns a descriptor or negative errno */
static int pci_file(const char *address, const char *name, int flags)
{
    char path[128];
    int fd;

    if (snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, name) >=
        (int)sizeof(path) || strchr(address, '/')) {
        return -ENODEV;
    }
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? -ENODEV : -errno;
    }
    return fd;
}

static int pci_read(const char *address, const char *name, off_t offset,
                    void *to, size_t size)
{
    int fd = pci_file(address, name, O_RDONLY);
    ssize_t n;

    if (fd < 0) {
        return fd;
    }
    n = pread(fd, to, size, offset);
    close(fd);
    return n == (ssize_t)size ? 0 : -EIO;
}

static bool pci_is_ivshmem(const char *address)
{
#ifdef __x86_64__
    const bool supported = true;
#else
    const bool supported = false;
#endif
    uint8_t id[4];

    return supported &&
           pci_read(address, "config", 0, id, sizeof(id)) == 0 &&
           (id[0] | id[1] << 8) == HT_PCI_VENDOR_ID &&
           (id[2] | id[3] << 8) == HT_IVSHMEM_DEVICE_ID;
}

int ht_linux_scan_pci(int (*try)(const char *address, struct ht_device **dev),
                      struct ht_device **dev)
{
    struct dirent **names;
    int n = scandir(PCI_DEVICES, &names, NULL, alphasort);
    int first = -ENODEV, i;
    bool found = false;

    for (i = 0; i < n; i++) {
        if (!found && pci_is_ivshmem(names[i]->d_name)) {
            int r = try(names[i]->d_name, dev);

            found = r == 0;
            if (first == -ENODEV) {
                first = r;
            }
        }
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return found ? 0 : first;
}

/* Enable the device's memory BARs, unless firmware or a driver has done so */
static int pci_enable(const char *address)
{
    uint8_t command[2];
    int fd, r = pci_read(address, "config", PCI_COMMAND, command, 2);

    if (r || command[0] & PCI_MEMORY) {
        return r;
    }
    fd = pci_file(address, "enable", O_WRONLY);
    if (fd < 0) {
        return fd;
    }
    r = write(fd, "1", 1) == 1 ? 0 : -errno;
    close(fd);
    return r;
}

/*
 * Map the device's memory.  mmap() fails with EINVAL if the module has claimed
 * the region, and with EPERM if the kernel is locked down.
 */
static int pci_map(struct ht_linux *l)
{
    struct stat st;
    void *p;

    if (fstat(l->fd, &st) || st.st_size < HT_PAGE) {
        return -ENODEV;
    }
    l->ram_size = (size_t)st.st_size;
    p = mmap(NULL, l->ram_size, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
    l->ram = p == MAP_FAILED ? NULL : p;
    /* Two producers would corrupt a stream: a fork's child gets no mapping. */
    if (l->ram && !madvise(p, l->ram_size, MADV_DONTFORK)) {
        return 0;
    }
    return errno == EINVAL ? -EBUSY : errno == EPERM ? -EACCES : -errno;
}

static uint64_t memory_now(struct ht_device *dev)
{
    struct timespec t = { 0, 0 };

    (void)dev;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int memory_pause(struct ht_device *dev, unsigned tries)
{
    (void)dev;
    ht_sys_sleep_ns(50000l * tries);
    return 0;
}

static int memory_control(struct ht_device *dev, struct ht_msg *msg,
                          uint32_t size)
{
    struct ht_linux *l = to_linux(dev);
    int r;

    pthread_mutex_lock(&l->mailbox);
    r = ht_memory_exchange(dev, &l->link, msg, size);
    pthread_mutex_unlock(&l->mailbox);
    return r;
}

static int memory_map(struct ht_device *dev, uint32_t stream,
                      struct ht_ring_control **ring, uint8_t **packets)
{
    uint8_t *at = to_linux(dev)->ram + ht_ring_at(&dev->caps, stream);

    *ring = (struct ht_ring_control *)at;
    *packets = at + HT_PACKETS_OFFSET;
    return 0;
}

static const struct ht_port_ops memory_ops = {
    .control = memory_control,
    .map = memory_map,
    .relax = ht_linux_relax,
    .lock = ht_linux_lock,
    .unlock = ht_linux_unlock,
};

static void memory_close(struct ht_linux *l)
{
    if (l->ram) {
        munmap(l->ram, l->ram_size);
    }
    close(l->fd);
}

/* Read the capabilities once, and check the copy */
static int memory_check(struct ht_linux *l)
{
    struct ht_caps *caps = &l->dev.caps;

    memcpy(caps, l->ram, sizeof(*caps));
    if (caps->magic != HT_MAGIC || caps->channel != HT_CHANNEL_MEMORY) {
        return -ENODEV;
    }
    return caps->version == HT_VERSION && ht_caps_fit(caps, l->ram_size) ?
           ht_device_init(&l->dev) : -EPROTO;
}

/*
 * Wait for a host's beat, make the host close the streams that an earlier user
 * of the device left open, and relate the clocks
 */
static int memory_attach(struct ht_linux *l)
{
    struct ht_msg m = { .type = HT_MSG_TAKEOVER, .size = sizeof(m) };
    unsigned waited;
    int r;

    l->link.mem = (struct ht_memory *)l->ram;
    l->link.now = memory_now;
    l->link.pause = memory_pause;
    ht_link_init(&l->dev, &l->link);
    for (waited = 0; waited < HT_BEAT_LOST_MS; waited++) {
        r = ht_link_attach(&l->dev, &l->link);
        if (r != -ENODEV) {
            break;
        }
        ht_sys_sleep_ns(1000000);
    }
    r = r ? r : ht_control(&l->dev, &m);
    if (!r) {
        r = ht_time_sync(&l->dev, SYNC_ROUNDS);
    }
    return r < 0 ? r : 0;
}

static int memory_open(struct ht_linux *l)
{
    int r;

    /* Refuse a second open: its messages would use the same mailbox. */
    if (flock(l->fd, LOCK_EX | LOCK_NB)) {
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    }
    r = pci_map(l);
    if (!r) {
        r = memory_check(l);
    }
    if (!r) {
        l->dev.ops = &memory_ops;
        l->dev.mapping = "uncached";
        l->dev.enable = l->ram + l->dev.caps.enable_offset;
        l->close = memory_close;
        r = memory_attach(l);
    }
    return r;
}

int ht_linux_open_memory(struct ht_linux *l, const char *address)
{
    int r;

    if (!pci_is_ivshmem(address)) {
        return -ENODEV;
    }
    r = pci_enable(address);
    if (r) {
        return r;
    }
    l->fd = pci_file(address, RESOURCE, O_RDWR);
    if (l->fd < 0) {
        return l->fd;
    }
    r = memory_open(l);
    if (r) {
        memory_close(l);
    }
    return r;
}
