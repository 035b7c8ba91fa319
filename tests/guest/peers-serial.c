/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The peers virtio-serial and virtio-serial-queued: for each event, send a
 * message of 8 bytes to a stock virtio-serial port, the transport of
 * virtio-trace and of many guest agents
 *
 * The driver below uses port 0 (-device virtconsole). It declines the feature
 * multiport: then the device assumes that the port is open.
 */
#include "mm.h"
#include "peers.h"
#include "virtqueue.h"

#define VIRTIO_SERIAL           0x10431af4u
#define QUEUE_TX                1

/*
 * PCI capability id and cfg_type values of struct virtio_pci_cap; offsets in
 * struct virtio_pci_common_cfg
 */
#define CAP_VENDOR              0x09
#define CAP_COMMON              1
#define CAP_NOTIFY              2
#define COMMON_DRIVER_SELECT    0x08
#define COMMON_DRIVER_FEATURE   0x0c
#define COMMON_STATUS           0x14
#define COMMON_QUEUE_SELECT     0x16
#define COMMON_QUEUE_SIZE       0x18
#define COMMON_QUEUE_ENABLE     0x1c
#define COMMON_QUEUE_NOTIFY     0x1e
#define COMMON_QUEUE_DESC       0x20
/* VIRTIO_RING_F_EVENT_IDX in bits 0 to 31 of the features */
#define FEATURE_EVENT_IDX       (1u << 29)
/* VIRTIO_F_VERSION_1 in bits 32 to 63 of the features */
#define FEATURE_VERSION_1       (1u << 0)
#define STATUS_DRIVER           0x03
#define STATUS_FEATURES_OK      0x08
#define STATUS_DRIVER_OK        0x04

static struct ht_bm_vq *tx;
static uint64_t *messages;

static uint8_t *area(struct ht_bm_device *d, unsigned type, unsigned *cap)
{
    unsigned at = 0;

    while ((at = ht_bm_pci_cap(d, CAP_VENDOR, at))) {
        unsigned bar = ht_bm_pci_read(d, at + 4) & 0xff;

        if (ht_bm_pci_read(d, at) >> 24 == type && bar < 6 &&
            d->bar[bar].base) {
            uint64_t offset = ht_bm_pci_read(d, at + 8);

            *cap = at;
            return d->platform->map(d->platform->opaque,
                                    d->bar[bar].base + offset,
                                    ht_bm_pci_read(d, at + 12), 0);
        }
    }
    return NULL;
}

static void write_address(uint8_t *p, const void *memory)
{
    ht_bm_write32(p, (uint32_t)(uintptr_t)memory);
    ht_bm_write32(p + 4, (uintptr_t)memory >> 32);
}

static int start(struct ht_bm_device *d, uint8_t *common, uint8_t *notify,
                 uint32_t multiplier)
{
    ht_bm_write8(common + COMMON_STATUS, 0);
    ht_bm_write8(common + COMMON_STATUS, STATUS_DRIVER);
    ht_bm_write32(common + COMMON_DRIVER_SELECT, 0);
    ht_bm_write32(common + COMMON_DRIVER_FEATURE, FEATURE_EVENT_IDX);
    ht_bm_write32(common + COMMON_DRIVER_SELECT, 1);
    ht_bm_write32(common + COMMON_DRIVER_FEATURE, FEATURE_VERSION_1);
    ht_bm_write8(common + COMMON_STATUS, STATUS_DRIVER | STATUS_FEATURES_OK);
    if (!(ht_bm_read8(common + COMMON_STATUS) & STATUS_FEATURES_OK)) {
        return -EPROTO;
    }
    tx = mm_alloc(sizeof(*tx), HT_PAGE);
    messages = mm_alloc(HT_BM_PAIRS * sizeof(*messages), 64);
    if (!tx || !messages) {
        return -ENOMEM;
    }
    ht_bm_write16(common + COMMON_QUEUE_SELECT, QUEUE_TX);
    if (ht_bm_read16(common + COMMON_QUEUE_SIZE) < HT_VQ_SIZE) {
        return -EPROTO;
    }
    ht_bm_write16(common + COMMON_QUEUE_SIZE, HT_VQ_SIZE);
    ht_bm_vq_init(tx, QUEUE_TX, HT_VQ_SIZE);
    for (unsigned i = 0; i < HT_BM_PAIRS; i++) {
        /* without the flag NEXT, because each message has one descriptor */
        tx->desc[2 * i].flags = 0;
        tx->desc[2 * i].addr = (uintptr_t)&messages[i];
        tx->desc[2 * i].len = sizeof(messages[i]);
    }
    tx->notify = notify + multiplier *
                 ht_bm_read16(common + COMMON_QUEUE_NOTIFY);
    write_address(common + COMMON_QUEUE_DESC, tx->desc);
    write_address(common + COMMON_QUEUE_DESC + 8, &tx->avail);
    write_address(common + COMMON_QUEUE_DESC + 16, &tx->used);
    ht_bm_write16(common + COMMON_QUEUE_ENABLE, 1);
    ht_bm_write8(common + COMMON_STATUS,
                 STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
    ht_bm_pci_write(d, HT_BM_PCI_COMMAND,
                    (ht_bm_pci_read(d, HT_BM_PCI_COMMAND) & 0xffff) |
                    HT_BM_PCI_CMD_MASTER);
    return 0;
}

static int serial_open(const struct ht_bm_platform *platform)
{
    static struct ht_bm_device d;
    uint8_t *common, *notify;
    unsigned cap;

    if (tx) {
        return 0;
    }
    d.platform = platform;
    for (unsigned bdf = 0; bdf < 256; bdf++) {
        if (platform->pci_read(platform->opaque, bdf, 0) == VIRTIO_SERIAL) {
            d.bdf = bdf;
            ht_bm_pci_bars(&d);
            ht_bm_pci_write(&d, HT_BM_PCI_COMMAND,
                            (ht_bm_pci_read(&d, HT_BM_PCI_COMMAND) & 0xffff) |
                            HT_BM_PCI_CMD_MEMORY | HT_BM_PCI_CMD_MASTER |
                            HT_BM_PCI_CMD_NO_INTX);
            common = area(&d, CAP_COMMON, &cap);
            notify = area(&d, CAP_NOTIFY, &cap);
            return common && notify ?
                   start(&d, common, notify, ht_bm_pci_read(&d, cap + 16)) :
                   -EPROTO;
        }
    }
    return -ENODEV;
}

static void wait_until(unsigned out)
{
    while (tx->out > out && !tx->broken) {
        if (!ht_bm_vq_reap(tx)) {
            ht_bm_pause();
        }
    }
}

/*
 * Send @n messages. Before each message, wait until the device holds at most
 * @queued earlier ones. If @queued is 0, also wait until the device has used
 * the message.
 */
static void serial_send(uint64_t n, unsigned queued)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned pair;

        wait_until(queued);
        pair = ht_bm_vq_next(tx);
        messages[pair] = i;
        if (ht_bm_vq_add(tx, pair, 0)) {
            ht_bm_write16(tx->notify, QUEUE_TX);
        }
        if (!queued) {
            wait_until(0);
        }
    }
}

/*
 * Wait for the device after each message, as Linux's driver does if the port is
 * a console
 */
static void serial_emit(uint64_t n)
{
    serial_send(n, 0);
}

/* Wait for the device only if the queue is full, and after the last message. */
static void queued_emit(uint64_t n)
{
    serial_send(n, HT_BM_PAIRS - 1);
    wait_until(0);
}

const struct peer peer_serial = {
    .name = "virtio-serial",
    .open = serial_open,
    .emit = serial_emit,
};

const struct peer peer_serial_queued = {
    .name = "virtio-serial-queued",
    .open = serial_open,
    .emit = queued_emit,
};
