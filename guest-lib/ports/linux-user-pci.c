/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: use a device by its PCI resource files
 *
 * For root, in a guest without the kernel module.  Stream memory is uncached
 * here, which makes shm slow and does not affect hypercall.  If a process is
 * killed, its streams stay open; opening the device closes them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux-user.h"

#define PCI_DEVICES     "/sys/bus/pci/devices"
#define PCI_COMMAND     4
#define PCI_MEMORY      2

/* Open a file of the device; returns a file descriptor or a negative errno */
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

static bool pci_is_hypertrace(const char *address)
{
    uint8_t id[4];

    return pci_read(address, "config", 0, id, sizeof(id)) == 0 &&
           (id[0] | id[1] << 8) == HT_PCI_VENDOR_ID &&
           (id[2] | id[3] << 8) == HT_PCI_DEVICE_ID;
}

int ht_linux_scan_pci(int (*try)(void *opaque, const char *address),
                      void *opaque)
{
    struct dirent **names;
    int n = scandir(PCI_DEVICES, &names, NULL, alphasort);
    int first = -ENODEV, i;
    bool found = false;

    for (i = 0; i < n; i++) {
        if (!found && pci_is_hypertrace(names[i]->d_name)) {
            int r = try(opaque, names[i]->d_name);

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

/* Without a driver, and after hot-plug, the BARs may not be decoded. */
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
 * EINVAL: the module has claimed the region; use the device by the module.
 * EPERM: the kernel is locked down.
 */
static void *pci_map(int fd, size_t *size, int *error)
{
    struct stat st;
    void *p = NULL;

    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        *size = (size_t)st.st_size;
        p = ht_linux_map(fd, *size, 0);
    } else {
        errno = ENODEV;
    }
    *error = p ? 0 : errno == EINVAL ? -EBUSY :
                     errno == EPERM ? -EACCES : -errno;
    return p;
}

static uint32_t regs_read(struct ht_linux *l, uint32_t offset)
{
    return *(volatile uint32_t *)(l->regs + offset);
}

static void regs_write(struct ht_linux *l, uint32_t offset, uint32_t v)
{
    *(volatile uint32_t *)(l->regs + offset) = v;
}

/* Registers must be accessed by four bytes at a time. */
static void regs_copy_from(struct ht_linux *l, uint32_t offset, void *to,
                           uint32_t size)
{
    uint32_t i, word;

    for (i = 0; i < size; i += 4) {
        word = regs_read(l, offset + i);
        memcpy((uint8_t *)to + i, &word, size - i < 4 ? size - i : 4);
    }
}

static void pci_go(struct ht_device *dev, uint32_t bytes)
{
    regs_write(to_linux(dev), HT_REG_MAILBOX_GO, bytes);
}

static int pci_control(struct ht_device *dev, struct ht_msg *msg,
                       uint32_t size)
{
    struct ht_linux *l = to_linux(dev);
    int r;

    pthread_mutex_lock(&l->mailbox);
    r = ht_mailbox_exchange(dev, l->ram + dev->caps.mailbox_offset, msg, size,
                            pci_go);
    pthread_mutex_unlock(&l->mailbox);
    return r;
}

static int pci_map_stream(struct ht_device *dev, uint32_t stream,
                          struct ht_ring_control **ring, uint8_t **packets)
{
    uint8_t *at = to_linux(dev)->ram + stream * dev->caps.ring_stride;

    *ring = (struct ht_ring_control *)at;
    *packets = at + HT_PACKETS_OFFSET;
    return 0;
}

static const struct ht_port_ops pci_ops = {
    .control = pci_control,
    .map = pci_map_stream,
    .doorbell = ht_linux_doorbell,
    .relax = ht_linux_relax,
    .lock = ht_linux_lock,
    .unlock = ht_linux_unlock,
};

static void pci_close(struct ht_linux *l)
{
    if (l->ram) {
        munmap(l->ram, l->ram_size);
    }
    if (l->regs) {
        munmap((void *)l->regs, l->regs_size);
    }
    close(l->fd);
}

/* The offsets in the capabilities must be within the mappings. */
static int pci_check(struct ht_linux *l)
{
    const struct ht_caps *c = &l->dev.caps;
    const uint64_t last = c->streams - 1;
    const uint64_t ring = HT_PACKETS_OFFSET +
                          (uint64_t)c->packets * c->packet_size;
    int r = ht_device_init(&l->dev);

    if (r) {
        return r;
    }
    if (c->channel == HT_CHANNEL_VIRTIO ||
        c->ring_stride > l->ram_size || c->ring_stride % HT_PAGE ||
        last * c->ring_stride + ring > l->ram_size ||
        l->ram_size < HT_ENABLE_SIZE ||
        c->enable_offset > l->ram_size - HT_ENABLE_SIZE ||
        c->mailbox_offset % HT_MESSAGE_ALIGN || c->doorbell_offset % 4 ||
        c->doorbell_stride % 4 || c->mailbox_size < HT_MESSAGE_MAX ||
        (uint64_t)c->mailbox_offset + c->mailbox_size > l->ram_size ||
        c->doorbell_offset + last * c->doorbell_stride + 4 > l->regs_size) {
        return -EPROTO;
    }
    return 0;
}

static int pci_open_regs(struct ht_linux *l, const char *address)
{
    int r;

    /* Channel virtio has no registers: EINVAL or ENODEV. */
    l->fd = pci_file(address, "resource0", O_RDWR);
    if (l->fd < 0) {
        return l->fd;
    }
    /* There is one mailbox, which two processes must not use. */
    if (flock(l->fd, LOCK_EX | LOCK_NB)) {
        r = errno == EWOULDBLOCK ? -EBUSY : -errno;
    } else {
        l->regs = pci_map(l->fd, &l->regs_size, &r);
        if (!r && l->regs_size < HT_PAGE) {
            r = -EPROTO;
        }
    }
    return r;
}

static int pci_open_ram(struct ht_linux *l, const char *address)
{
    int fd = pci_file(address, "resource4", O_RDWR);
    int r;

    if (fd < 0) {
        return fd;
    }
    l->ram = pci_map(fd, &l->ram_size, &r);
    close(fd);
    return r;
}

int ht_linux_open_pci(struct ht_linux *l, const char *address)
{
    uint32_t i;
    int r;

    if (!pci_is_hypertrace(address)) {
        return -ENODEV;
    }
    r = pci_enable(address);
    if (r) {
        return r;
    }
    r = pci_open_regs(l, address);
    if (!r) {
        regs_copy_from(l, 0, &l->dev.caps, sizeof(l->dev.caps));
        r = pci_open_ram(l, address);
    }
    if (!r) {
        l->dev.ops = &pci_ops;
        l->dev.mapping = "uncached";
        l->close = pci_close;
        r = pci_check(l);
    }
    if (r) {
        if (l->fd >= 0) {
            pci_close(l);
        }
        return r;
    }
    l->dev.enable = l->ram + l->dev.caps.enable_offset;
    for (i = 0; i < l->dev.caps.streams; i++) {
        l->doorbells[i] = (volatile uint32_t *)
            (l->regs + l->dev.caps.doorbell_offset +
             i * l->dev.caps.doorbell_stride);
    }
    regs_write(l, HT_REG_TAKEOVER, HT_MAGIC);
    return 0;
}
