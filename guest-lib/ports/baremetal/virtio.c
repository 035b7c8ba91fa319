/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: a modern virtio-pci driver for channel=virtio
 */
#include "virtqueue.h"

/* PCI capabilities of virtio: their id, offsets in them, and their types */
#define CAP_VENDOR              0x09
/* bits 24 to 31 of the word at this offset: the capability's type */
#define CAP_TYPE                0
/* bits 0 to 7 of the word at this offset: the number of the BAR */
#define CAP_BAR                 4
#define CAP_OFFSET              8
#define CAP_LENGTH              12
#define CAP_NOTIFY_MULTIPLIER   16
#define CAP_TYPE_COMMON         1
#define CAP_TYPE_NOTIFY         2
#define CAP_TYPE_DEVICE         4

/* Offsets in virtio's common configuration */
#define COMMON_DEVICE_SELECT    0x00
#define COMMON_DEVICE_FEATURE   0x04
#define COMMON_DRIVER_SELECT    0x08
#define COMMON_DRIVER_FEATURE   0x0c
#define COMMON_MSIX             0x10
#define COMMON_NUM_QUEUES       0x12
#define COMMON_STATUS           0x14
#define COMMON_GENERATION       0x15
#define COMMON_QUEUE_SELECT     0x16
#define COMMON_QUEUE_SIZE       0x18
#define COMMON_QUEUE_MSIX       0x1a
#define COMMON_QUEUE_ENABLE     0x1c
#define COMMON_QUEUE_NOTIFY     0x1e
#define COMMON_QUEUE_DESC       0x20
#define COMMON_QUEUE_AVAIL      0x28
#define COMMON_QUEUE_USED       0x30
#define COMMON_LENGTH           0x38

#define STATUS_ACKNOWLEDGE      0x01
#define STATUS_DRIVER           0x02
#define STATUS_DRIVER_OK        0x04
#define STATUS_FEATURES_OK      0x08

/* a bit of the word with the features 0 to 31 */
#define FEATURE_EVENT_IDX       (1u << 29)
/* a bit of the word with the features 32 to 63 */
#define FEATURE_VERSION_1       (1u << 0)
#define NO_VECTOR               0xffff

#define RESET_MS                1000
#define CONTROL_MS              5000

static void notify(struct ht_bm_vq *vq)
{
    ht_bm_write16(vq->notify, vq->index);
}

static int virtio_control(struct ht_device *dev, struct ht_msg *msg,
                          uint32_t size)
{
    struct ht_bm_device *d = to_bm(dev);
    const struct ht_bm_platform *p = d->platform;
    struct ht_bm_vq *vq = d->control;
    uint8_t *reply = d->control_buf + HT_MAILBOX_SIZE;
    struct ht_bm_wait wait;
    uint32_t len = ht_request_bytes(msg, size);
    unsigned pair = ht_bm_vq_next(vq);

    if (len < sizeof(*msg) || len > size || size > HT_MAILBOX_SIZE) {
        return -EINVAL;
    }
    if (pair == vq->pairs) {
        /* @broken: the used ring had an invalid entry, or a wait timed out */
        return -EIO;
    }
    ht_copy(d->control_buf, msg, len);
    vq->desc[2 * pair].addr = p->phys(p->opaque, d->control_buf);
    vq->desc[2 * pair].len = len;
    vq->desc[2 * pair + 1].addr = p->phys(p->opaque, reply);
    vq->desc[2 * pair + 1].len = size;
    if (ht_bm_vq_add(vq, pair, 1)) {
        notify(vq);
    }
    ht_bm_wait_start(&wait, dev->caps.clock_hz, CONTROL_MS);
    while (vq->out) {
        if (!ht_bm_vq_reap(vq)) {
            ht_bm_pause();
            if (vq->broken) {
                return -EIO;
            }
            if (ht_bm_wait_over(&wait)) {
                /* Do not use the queue again: the reply may still come. */
                vq->broken = 1;
                return -ETIMEDOUT;
            }
        }
    }
    return ht_reply_take(msg, reply, size, size) ? 0 : -EIO;
}

static int virtio_map(struct ht_device *dev, uint32_t stream,
                      struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_bm_device *d = to_bm(dev);
    const struct ht_bm_platform *p = d->platform;
    struct ht_bm_vq *vq = d->data[stream];
    uint64_t size = HT_PACKETS_OFFSET +
                    (uint64_t)dev->caps.packet_size * dev->caps.packets;
    struct ht_bm_wait wait;

    if (!d->rings[stream]) {
        d->rings[stream] = p->alloc(p->opaque, size, HT_PAGE);
        if (!d->rings[stream]) {
            return -ENOMEM;
        }
    }
    /*
     * Wait until the device has returned all buffers of the previous stream
     * with this index.
     */
    ht_bm_wait_start(&wait, dev->caps.clock_hz, RESET_MS);
    while (vq->out) {
        ht_bm_vq_reap(vq);
        if (vq->broken || ht_bm_wait_over(&wait)) {
            return -EIO;
        }
    }
    *ring = (struct ht_ring_control *)d->rings[stream];
    ht_zero(*ring, sizeof(**ring));
    (*ring)->host.wake = HT_WAKE_NEVER;
    (*ring)->host.state = HT_STREAM_OPENED;
    *packets = d->rings[stream] + HT_PACKETS_OFFSET;
    return 0;
}

static void virtio_reap(struct ht_device *dev, struct ht_stream *s)
{
    struct ht_bm_vq *vq = to_bm(dev)->data[s->index];
    uint64_t position;

    if (!ht_bm_vq_reap(vq)) {
        return;
    }
    position = vq->out ? vq->submit[vq->oldest].from : s->submitted;
    s->ring->host.tail = position >> s->packet_shift;
}

static int virtio_submit(struct ht_device *dev, struct ht_stream *s,
                         uint64_t from, uint64_t to)
{
    struct ht_bm_device *d = to_bm(dev);
    const struct ht_bm_platform *p = d->platform;
    struct ht_bm_vq *vq = d->data[s->index];
    uint64_t ring_mask = ((uint64_t)dev->caps.packets << s->packet_shift) - 1;
    unsigned pair = ht_bm_vq_next(vq);
    struct ht_submit *sub;

    if (pair == vq->pairs) {
        return vq->broken ? -EIO : -EAGAIN;
    }
    sub = &vq->submit[pair];
    sub->from = from;
    sub->to = to;
    sub->lost = s->ring->guest.lost;
    sub->stream = s->index;
    vq->desc[2 * pair].addr = p->phys(p->opaque, sub);
    vq->desc[2 * pair].len = sizeof(*sub);
    vq->desc[2 * pair + 1].addr = p->phys(p->opaque,
                                          s->packets + (from & ring_mask));
    vq->desc[2 * pair + 1].len = to - from;
    if (ht_bm_vq_add(vq, pair, 0)) {
        s->doorbells++;
        notify(vq);
    }
    return 0;
}

static const struct ht_port_ops virtio_ops = {
    .control = virtio_control,
    .map = virtio_map,
    .submit = virtio_submit,
    .reap = virtio_reap,
    .relax = ht_bm_relax,
};

/*
 * Map the area that virtio capability @type describes.  Sets *@cap to the
 * offset of the capability, and *@length to the size of the area in bytes.
 * Returns NULL if no such area of at least @min bytes is inside its BAR, or if
 * map() fails.
 */
static uint8_t *find_area(struct ht_bm_device *d, uint8_t type,
                                   uint64_t min, unsigned *cap,
                                   uint64_t *length)
{
    const struct ht_bm_platform *p = d->platform;
    unsigned at = 0;

    while ((at = ht_bm_pci_cap(d, CAP_VENDOR, at))) {
        unsigned bar = ht_bm_pci_read(d, at + CAP_BAR) & 0xff;
        uint64_t offset = ht_bm_pci_read(d, at + CAP_OFFSET);
        uint64_t len = ht_bm_pci_read(d, at + CAP_LENGTH);

        if (ht_bm_pci_read(d, at + CAP_TYPE) >> 24 == type && bar < 6 &&
            offset <= d->bar[bar].size && len <= d->bar[bar].size - offset &&
            len >= min) {
            *cap = at;
            *length = len;
            return p->map(p->opaque, d->bar[bar].base + offset, len, 0);
        }
    }
    return NULL;
}

static int find_areas(struct ht_bm_device *d)
{
    uint64_t length;
    unsigned cap;

    d->config = find_area(d, CAP_TYPE_DEVICE, sizeof(struct ht_caps), &cap,
                          &length);
    d->notify = find_area(d, CAP_TYPE_NOTIFY, 2, &cap, &d->notify_size);
    if (d->notify) {
        d->notify_multiplier = ht_bm_pci_read(d, cap + CAP_NOTIFY_MULTIPLIER);
    }
    /* Set @common only if no area is missing: ht_bm_close() tests it. */
    if (d->config && d->notify) {
        d->common = find_area(d, CAP_TYPE_COMMON, COMMON_LENGTH, &cap,
                              &length);
    }
    return d->common ? 0 : -ENODEV;
}

int ht_bm_virtio_reset(struct ht_bm_device *d)
{
    struct ht_bm_wait wait;

    ht_bm_wait_start(&wait, d->dev.caps.clock_hz, RESET_MS);
    ht_bm_write8(d->common + COMMON_STATUS, 0);
    while (ht_bm_read8(d->common + COMMON_STATUS)) {
        if (ht_bm_wait_over(&wait)) {
            return -EIO;
        }
    }
    return 0;
}

static int negotiate(struct ht_bm_device *d)
{
    uint8_t *c = d->common;
    uint8_t status = STATUS_ACKNOWLEDGE | STATUS_DRIVER;
    uint32_t low, high;

    ht_bm_write8(c + COMMON_STATUS, STATUS_ACKNOWLEDGE);
    ht_bm_write8(c + COMMON_STATUS, status);
    ht_bm_write32(c + COMMON_DEVICE_SELECT, 0);
    low = ht_bm_read32(c + COMMON_DEVICE_FEATURE);
    ht_bm_write32(c + COMMON_DEVICE_SELECT, 1);
    high = ht_bm_read32(c + COMMON_DEVICE_FEATURE);
    /*
     * The port requires event indexes: by them the port suppresses interrupts,
     * and the device suppresses notifications that it does not need.
     */
    if (!(low & FEATURE_EVENT_IDX) || !(high & FEATURE_VERSION_1)) {
        return -EPROTO;
    }
    ht_bm_write32(c + COMMON_DRIVER_SELECT, 0);
    ht_bm_write32(c + COMMON_DRIVER_FEATURE, FEATURE_EVENT_IDX);
    ht_bm_write32(c + COMMON_DRIVER_SELECT, 1);
    ht_bm_write32(c + COMMON_DRIVER_FEATURE, FEATURE_VERSION_1);
    status |= STATUS_FEATURES_OK;
    ht_bm_write8(c + COMMON_STATUS, status);
    return ht_bm_read8(c + COMMON_STATUS) & STATUS_FEATURES_OK ? 0 : -EPROTO;
}

/* Read the capabilities, again if they have changed during the read */
static void read_config(struct ht_bm_device *d)
{
    uint8_t before;

    do {
        before = ht_bm_read8(d->common + COMMON_GENERATION);
        ht_bm_read_caps(&d->dev.caps, d->config);
    } while (before != ht_bm_read8(d->common + COMMON_GENERATION));
}

static void write_address(struct ht_bm_device *d, unsigned offset,
                          const void *area)
{
    const struct ht_bm_platform *p = d->platform;
    uint64_t phys = p->phys(p->opaque, area);

    ht_bm_write32(d->common + offset, (uint32_t)phys);
    ht_bm_write32(d->common + offset + 4, phys >> 32);
}

static int queue_setup(struct ht_bm_device *d, unsigned index,
                       struct ht_bm_vq **out)
{
    const struct ht_bm_platform *p = d->platform;
    uint8_t *c = d->common;
    struct ht_bm_vq *vq;
    uint64_t offset;
    uint16_t size;

    ht_bm_write16(c + COMMON_QUEUE_SELECT, index);
    size = ht_bm_read16(c + COMMON_QUEUE_SIZE);
    offset = (uint64_t)ht_bm_read16(c + COMMON_QUEUE_NOTIFY) *
             d->notify_multiplier;
    if (size < 2 || (size & (size - 1)) || offset + 2 > d->notify_size) {
        return -EPROTO;
    }
    if (size > HT_VQ_SIZE) {
        size = HT_VQ_SIZE;
        ht_bm_write16(c + COMMON_QUEUE_SIZE, size);
    }
    /* The descriptors, at the start of @vq, must be aligned to 16 bytes. */
    vq = p->alloc(p->opaque, sizeof(*vq), HT_PAGE);
    if (!vq) {
        return -ENOMEM;
    }
    ht_bm_vq_init(vq, index, size);
    vq->notify = d->notify + offset;
    ht_bm_write16(c + COMMON_QUEUE_MSIX, NO_VECTOR);
    write_address(d, COMMON_QUEUE_DESC, vq->desc);
    write_address(d, COMMON_QUEUE_AVAIL, &vq->avail);
    write_address(d, COMMON_QUEUE_USED, &vq->used);
    ht_bm_write16(c + COMMON_QUEUE_ENABLE, 1);
    *out = vq;
    return 0;
}

/* Make the host close streams that an earlier owner left open */
static int takeover(struct ht_bm_device *d)
{
    struct ht_msg msg = {
        .type = HT_MSG_TAKEOVER,
        .size = sizeof(msg),
    };
    int ret = virtio_control(&d->dev, &msg, sizeof(msg));

    if (ret) {
        return ret;
    }
    return msg.status == HT_STATUS_OK ? 0 : -EIO;
}

int ht_bm_virtio_open(struct ht_bm_device *d)
{
    const struct ht_bm_platform *p = d->platform;
    int ret = find_areas(d);

    if (ret) {
        return ret;
    }
    ret = ht_bm_virtio_reset(d);
    if (ret) {
        return ret;
    }
    ret = negotiate(d);
    if (ret) {
        return ret;
    }
    read_config(d);
    if (d->dev.caps.magic != HT_MAGIC) {
        return -ENODEV;
    }
    if (d->dev.caps.version != HT_VERSION ||
        d->dev.caps.channel != HT_CHANNEL_VIRTIO || !d->dev.caps.streams ||
        d->dev.caps.streams > HT_STREAMS_MAX ||
        ht_bm_read16(d->common + COMMON_NUM_QUEUES) <
        HT_VQ_DATA(d->dev.caps.streams)) {
        return -EPROTO;
    }
    d->control_buf = p->alloc(p->opaque, 2 * HT_MAILBOX_SIZE, HT_PAGE);
    if (!d->control_buf) {
        return -ENOMEM;
    }
    d->dev.enable_copy = p->alloc(p->opaque, HT_CLASSES_MAX + 1, 8);
    if (!d->dev.enable_copy) {
        return -ENOMEM;
    }
    d->dev.enable = d->dev.enable_copy;
    ht_bm_write16(d->common + COMMON_MSIX, NO_VECTOR);
    ret = queue_setup(d, HT_VQ_CONTROL, &d->control);
    for (unsigned i = 0; !ret && i < d->dev.caps.streams; i++) {
        ret = queue_setup(d, HT_VQ_DATA(i), &d->data[i]);
    }
    if (ret) {
        return ret;
    }
    ht_bm_write8(d->common + COMMON_STATUS,
                 STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK |
                 STATUS_DRIVER_OK);
    d->dev.ops = &virtio_ops;
    d->dev.mapping = "guest RAM";
    return takeover(d);
}

int ht_bm_update(struct ht_bm_device *d)
{
    uint32_t seq;
    int ret = 0;

    if (!d->common) {
        return 0;
    }
    seq = ht_bm_read32(d->config +
                       offsetof(struct ht_caps, enable_seq));
    if (seq != d->dev.caps.enable_seq) {
        ret = ht_enable_read(&d->dev, d->dev.enable_copy);
        if (!ret) {
            d->dev.caps.enable_seq = seq;
        }
    }
    return ret;
}
