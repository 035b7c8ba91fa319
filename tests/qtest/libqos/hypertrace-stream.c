/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: act as a guest of the hypertrace device: write to its streams
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hypertrace.h"
#include "standard-headers/linux/virtio_pci.h"

size_t qht_ram_size(uint32_t streams, uint64_t ring)
{
    size_t used = streams * ROUND_UP(ring, HT_MAP_ALIGN) + QHT_RING_OFFSET;
    size_t size = 1;

    while (size < used) {
        size *= 2;
    }
    return size;
}

uint32_t qht_read_enabled(QHt *h, uint32_t first, uint32_t count, uint8_t *on)
{
    g_autofree struct ht_msg_enabled *m = g_malloc0(HT_MESSAGE_MAX);

    stl_le_p(&m->first, first);
    stl_le_p(&m->count, count);
    g_assert_cmpuint(qht_call(h, HT_MSG_ENABLED, m, sizeof(*m) + count), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->h.size), ==,
                     sizeof(*m) + ldl_le_p(&m->count));
    g_assert_cmpuint(ldl_le_p(&m->count), <=, count);
    memcpy(on, m->on, ldl_le_p(&m->count));
    return ldl_le_p(&m->count);
}

uint8_t qht_enabled(QHt *h, uint32_t id)
{
    uint8_t on;

    if (h->control) {
        return qht_read_enabled(h, id, 1, &on) ? on : 0;
    }
    return qpci_io_readb(h->pci->pdev, h->ring, h->caps.enable_offset + id);
}

uint32_t qht_enable_seq(QHt *h)
{
    unsigned at = offsetof(struct ht_caps, enable_seq);

    return h->control ? qvirtio_config_readl(&h->pci->vdev, at) :
                        qpci_io_readl(h->pci->pdev, h->regs, at);
}

static uint64_t ring_offset(QHt *h, uint32_t stream, uint64_t offset)
{
    g_assert_cmpuint(offset, <, h->caps.ring_stride);
    return h->caps.ring_offset + stream * h->caps.ring_stride + offset;
}

void qht_ring_write(QHt *h, uint32_t stream, uint64_t offset,
                    const void *data, size_t size)
{
    qpci_memwrite(h->pci->pdev, h->ring, ring_offset(h, stream, offset), data,
                  size);
}

uint64_t qht_ring_readq(QHt *h, uint32_t stream, uint64_t offset)
{
    return qpci_io_readq(h->pci->pdev, h->ring,
                         ring_offset(h, stream, offset));
}

void qht_ring_writeq(QHt *h, uint32_t stream, uint64_t offset, uint64_t v)
{
    qpci_io_writeq(h->pci->pdev, h->ring, ring_offset(h, stream, offset), v);
}

uint32_t qht_ring_state(QHt *h, uint32_t stream)
{
    return qpci_io_readl(h->pci->pdev, h->ring,
                         ring_offset(h, stream, QHT_HOST(state)));
}

static void stream_open(QHtStream *s, QHt *h, uint32_t index, uint64_t memory)
{
    struct ht_msg_open m = {
        .vcpu = cpu_to_le32(-1),
        .name = "qtest",
        .memory = cpu_to_le64(memory),
    };

    memset(s, 0, sizeof(*s));
    s->memory = memory;
    m.stream = cpu_to_le32(index);
    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    s->h = h;
    s->index = le32_to_cpu(m.stream);
    s->instance = le64_to_cpu(m.instance);
    g_assert_cmpuint(s->index, <, h->caps.streams);
    g_assert_true(index == HT_STREAM_ANY || s->index == index);
    g_assert_cmpuint(s->instance, >, 0);
    s->image = g_malloc0(h->caps.packet_size);
    if (h->control) {
        return;
    }
    g_assert_cmpuint(qht_ring_state(h, s->index), ==, HT_STREAM_OPENED);
    g_assert_cmpuint(qht_ring_readq(h, s->index, QHT_HOST(instance)), ==,
                     s->instance);
    g_assert_cmpuint(qht_ring_readq(h, s->index, QHT_GUEST(head)), ==, 0);
    g_assert_cmpuint(qht_ring_readq(h, s->index, QHT_HOST(tail)), ==, 0);
}

void qht_stream_open(QHtStream *s, QHt *h, uint32_t index)
{
    stream_open(s, h, index, 0);
}

void qht_stream_announce(QHtStream *s, QHt *h, uint32_t index)
{
    const uint32_t size = h->caps.packet_size;
    uint64_t table = guest_alloc(h->alloc, 8 * HT_MEMORY_SLOT(h->caps.packets));
    uint64_t control = guest_alloc(h->alloc, HT_PAGE);
    uint32_t i;

    qtest_memset(h->qts, control, 0, HT_PAGE);
    qtest_writeq(h->qts, table + 8 * HT_MEMORY_CONTROL, control);
    for (i = 0; i < h->caps.packets; i++) {
        /*
         * Give the packets descending addresses, so that the host cannot treat
         * them as one piece of memory.
         */
        qtest_writeq(h->qts,
                     table + 8 * HT_MEMORY_SLOT(h->caps.packets - 1 - i),
                     guest_alloc(h->alloc, size));
    }
    stream_open(s, h, index, table);
}

/*
 * virtio: return the address in entry @entry of the table that was announced
 * when the stream was opened
 */
static uint64_t announced(QHtStream *s, unsigned entry)
{
    return qtest_readq(s->h->qts, s->memory + 8 * entry);
}

static void write_packet(QHtStream *s, uint32_t from, uint32_t to)
{
    uint32_t slot = s->packet & (s->h->caps.packets - 1);

    if (s->memory) {
        qtest_memwrite(s->h->qts, announced(s, HT_MEMORY_SLOT(slot)) + from,
                       s->image + from, to - from);
    } else if (!s->h->control) {
        qht_ring_write(s->h, s->index, HT_PACKETS_OFFSET +
                       slot * s->h->caps.packet_size + from, s->image + from,
                       to - from);
    }
}

static void write_head(QHtStream *s, uint64_t head)
{
    if (s->memory) {
        qtest_writeq(s->h->qts, announced(s, HT_MEMORY_CONTROL) +
                     QHT_GUEST(head), head);
    } else if (!s->h->control) {
        qht_ring_writeq(s->h, s->index, QHT_GUEST(head), head);
    }
}

void qht_stream_write_lost(QHtStream *s, uint64_t lost)
{
    if (s->memory) {
        qtest_writeq(s->h->qts, announced(s, HT_MEMORY_CONTROL) +
                     QHT_GUEST(lost), lost);
    } else {
        qht_ring_writeq(s->h, s->index, QHT_GUEST(lost), lost);
    }
}

void qht_stream_forget(QHtStream *s)
{
    g_free(s->image);
    s->image = NULL;
}

void qht_stream_close(QHtStream *s)
{
    struct ht_msg_stream m = {
        .stream = cpu_to_le32(s->index),
        .instance = cpu_to_le64(s->instance),
        .lost = cpu_to_le64(s->lost),
    };

    g_assert_cmpuint(qht_call(s->h, HT_MSG_STREAM_CLOSE, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    qht_stream_forget(s);
}

void qht_stream_flush(QHtStream *s)
{
    struct ht_msg_stream m = {
        .stream = cpu_to_le32(s->index),
        .instance = cpu_to_le64(s->instance),
        .lost = cpu_to_le64(s->lost),
    };

    g_assert_cmpuint(qht_call(s->h, HT_MSG_STREAM_FLUSH, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
}

static uint64_t position(const QHtStream *s)
{
    return s->packet * s->h->caps.packet_size + s->offset;
}

/*
 * Unless @s->late is set, write the events of the open packet from offset @from
 * on, then head, which makes them visible to the host. With virtio, there is
 * nothing to write unless memory was announced.
 */
static void publish(QHtStream *s, uint32_t from)
{
    if (!s->late) {
        write_packet(s, from, s->offset);
        write_head(s, position(s));
    }
}

static void submit(QHtStream *s)
{
    uint32_t from = s->submitted % s->h->caps.packet_size;
    struct ht_submit sub = {
        .from = cpu_to_le64(s->submitted),
        .to = cpu_to_le64(position(s)),
        .lost = cpu_to_le64(s->lost),
        .stream = cpu_to_le32(s->index),
    };

    if (s->submitted < position(s)) {
        qht_submit(s->h, s->index, &sub, s->image + from, s->offset - from);
        s->submitted = position(s);
    }
}

void qht_close_packet(QHtStream *s)
{
    struct ht_packet *p = (struct ht_packet *)s->image;

    if (s->offset == 0) {
        return;
    }
    if (s->submitted > s->packet * s->h->caps.packet_size) {
        /*
         * The device already has the packet's header, which must not change:
         * if memory was announced, write the packet's end to its guest line.
         */
        if (s->memory) {
            qtest_writeq(s->h->qts, announced(s, HT_MEMORY_CONTROL) +
                         QHT_GUEST(end), position(s));
        }
    } else {
        stq_le_p(&p->clock_end, s->clock);
        stl_le_p(&p->content, s->offset);
        write_packet(s, 0, s->late ? s->offset : sizeof(*p));
    }
    if (s->h->control && !s->held) {
        submit(s);
    }
    s->packet++;
    s->offset = 0;
    if (s->h->control && !s->held) {
        s->submitted = position(s);
    }
    write_head(s, position(s));
}

static void open_packet(QHtStream *s)
{
    struct ht_packet *p = (struct ht_packet *)s->image;

    if (s->h->caps.mode == HT_MODE_OVERWRITE) {
        qht_ring_writeq(s->h, s->index, QHT_GUEST(opening), s->packet);
    } else if (!s->h->control) {
        QHT_WAIT(s->packet - qht_ring_readq(s->h, s->index, QHT_HOST(tail)) <
                 s->h->caps.packets);
    }
    memset(p, 0, sizeof(*p));
    stl_le_p(&p->magic, HT_PACKET_MAGIC);
    stl_le_p(&p->stream, s->index);
    stq_le_p(&p->instance, s->instance);
    stq_le_p(&p->seq, s->packet);
    stq_le_p(&p->clock_begin, s->clock);
    stq_le_p(&p->events, s->events);
    stq_le_p(&p->lost, s->lost);
    s->offset = sizeof(*p);
}

void qht_write(QHtStream *s, uint32_t id, const void *payload, size_t size)
{
    const uint32_t room = s->h->caps.packet_size;
    uint32_t from;

    g_assert_cmpuint(id, <, HT_ID_EXTENDED);
    s->clock += 100;
    if (s->offset && room - s->offset < HT_EVENT_HEADER + size) {
        qht_close_packet(s);
    }
    from = s->offset;
    if (s->offset == 0) {
        open_packet(s);
    }
    stl_le_p(s->image + s->offset, id | (uint32_t)s->clock << 8);
    memcpy(s->image + s->offset + HT_EVENT_HEADER, payload, size);
    s->offset += HT_EVENT_HEADER + size;
    s->events++;
    if (s->offset == room) {
        write_packet(s, from, s->offset);
        qht_close_packet(s);
    } else {
        publish(s, from);
    }
}

void qht_write_number(QHtStream *s, uint32_t id, uint64_t n)
{
    n = cpu_to_le64(n);
    qht_write(s, id, &n, sizeof(n));
}

void qht_doorbell(QHtStream *s)
{
    const struct ht_caps *c = &s->h->caps;

    qpci_io_writel(s->h->pci->pdev, s->h->regs,
                   c->doorbell_offset + s->index * c->doorbell_stride,
                   s->index);
}

void qht_commit(QHtStream *s)
{
    if (s->late && s->offset) {
        write_packet(s, 0, s->offset);
        write_head(s, position(s));
    }
    switch (s->h->caps.channel) {
    case HT_CHANNEL_HYPERCALL:
        qht_doorbell(s);
        break;
    case HT_CHANNEL_SHM:
        if (position(s) >= qht_ring_readq(s->h, s->index, QHT_HOST(wake))) {
            qht_doorbell(s);
        }
        break;
    case HT_CHANNEL_VIRTIO:
        submit(s);
        break;
    }
}

QVirtQueue *qht_queue_resize(QHt *h, uint32_t index, uint16_t size)
{
    QVirtioPCIDevice *pci = h->pci;

    qvirtqueue_cleanup(pci->vdev.bus, h->data[index], h->alloc);
    pci->vdev.bus->queue_select(&pci->vdev, HT_VQ_DATA(index));
    qpci_io_writew(pci->pdev, pci->bar, pci->common_cfg_offset +
                   offsetof(struct virtio_pci_common_cfg, queue_size), size);
    h->data[index] = qvirtqueue_setup(&pci->vdev, h->alloc, HT_VQ_DATA(index));
    g_assert_cmpuint(h->data[index]->size, ==, size);
    return h->data[index];
}

void qht_queue_kick(QHt *h, QVirtQueue *vq, uint32_t desc)
{
    qvirtqueue_kick(h->qts, &h->pci->vdev, vq, desc);
}

void qht_queue_wait(QHt *h, QVirtQueue *vq)
{
    uint16_t avail = qtest_readw(h->qts, vq->avail + 2);

    QHT_WAIT(qtest_readw(h->qts, vq->used + 2) == avail);
    vq->last_used_idx = avail;
    vq->free_head = 0;
    vq->num_free = vq->size;
}

uint32_t qht_submit(QHt *h, uint32_t queue, const struct ht_submit *sub,
                    const void *data, size_t size)
{
    QVirtQueue *vq = h->data[queue];
    uint64_t addr;
    uint32_t desc;

    if (vq->free_head == vq->size) {
        qht_queue_wait(h, vq);
    }
    addr = guest_alloc(h->alloc, sizeof(*sub) + size);
    qtest_memwrite(h->qts, addr, sub, sizeof(*sub));
    if (size) {
        qtest_memwrite(h->qts, addr + sizeof(*sub), data, size);
    }
    desc = qvirtqueue_add(h->qts, vq, addr, sizeof(*sub) + size, false, false);
    qht_queue_kick(h, vq, desc);
    return desc;
}
