/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: act as a guest of the hypertrace device: start the machine, send
 * messages, read statistics
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "pci-pc.h"
#include "malloc-pc.h"
#include "hypertrace.h"
#include "standard-headers/linux/virtio_config.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

static void map(QHt *h)
{
    QPCIDevice *pdev = h->pci->pdev;
    struct ht_caps le;

    qvirtio_pci_device_enable(h->pci);
    h->regs = h->ring = (QPCIBar) { 0 };
    if (h->pci->bar_idx == 2) {
        h->regs = qpci_iomap(pdev, HT_PCI_BAR_REGS, NULL);
        h->ring = qpci_iomap(pdev, HT_PCI_BAR_RING, NULL);
        qpci_memread(pdev, h->regs, 0, &le, sizeof(le));
    } else {
        qpci_memread(pdev, h->pci->bar, h->pci->device_cfg_offset, &le,
                     sizeof(le));
    }
    h->caps = (struct ht_caps) {
        .magic = le32_to_cpu(le.magic),
        .version = le32_to_cpu(le.version),
        .channel = le32_to_cpu(le.channel),
        .mode = le32_to_cpu(le.mode),
        .ring_offset = le64_to_cpu(le.ring_offset),
        .streams = le32_to_cpu(le.streams),
        .packet_size = le32_to_cpu(le.packet_size),
        .packets = le32_to_cpu(le.packets),
        .batch = le32_to_cpu(le.batch),
        .flush_ms = le32_to_cpu(le.flush_ms),
        .max_gap = le32_to_cpu(le.max_gap),
        .clock_hz = le64_to_cpu(le.clock_hz),
        .epoch = le64_to_cpu(le.epoch),
        .ring_stride = le64_to_cpu(le.ring_stride),
        .enable_offset = le64_to_cpu(le.enable_offset),
        .doorbell_offset = le32_to_cpu(le.doorbell_offset),
        .doorbell_stride = le32_to_cpu(le.doorbell_stride),
        .mailbox_offset = le32_to_cpu(le.mailbox_offset),
        .mailbox_size = le32_to_cpu(le.mailbox_size),
        .max_classes = le32_to_cpu(le.max_classes),
        .max_message = le32_to_cpu(le.max_message),
        .counter = le32_to_cpu(le.counter),
    };
    g_assert_cmphex(h->caps.magic, ==, HT_MAGIC);
}

/*
 * Set up a virtqueue, and write all its descriptors at once. libqos would write
 * them one by one, which is slow for hundreds of queues.
 */
static QVirtQueue *setup_queue(QHt *h, uint16_t index)
{
    QVirtioPCIDevice *pci = h->pci;
    QVirtioDevice *vdev = &pci->vdev;
    uint64_t features = vdev->bus->get_guest_features(vdev);
    QVirtQueuePCI *q = g_new0(QVirtQueuePCI, 1);
    QVirtQueue *vq = &q->vq;
    g_autofree struct vring_desc *desc = NULL;
    uint32_t size, i;
    uint16_t notify;

    vdev->bus->queue_select(vdev, index);
    vq->vdev = vdev;
    vq->index = index;
    vq->size = vq->num_free = vdev->bus->get_queue_size(vdev);
    g_assert_cmpuint(vq->size & (vq->size - 1), ==, 0);
    vq->align = VIRTIO_PCI_VRING_ALIGN;
    vq->indirect = features & (1ull << VIRTIO_RING_F_INDIRECT_DESC);
    vq->event = features & (1ull << VIRTIO_RING_F_EVENT_IDX);
    q->msix_entry = -1;

    size = qvring_size(vq->size, vq->align);
    vq->desc = guest_alloc(h->alloc, size);
    vq->avail = vq->desc + vq->size * sizeof(*desc);
    vq->used = ROUND_UP(vq->avail + sizeof(uint16_t) * (3 + vq->size),
                        vq->align);
    desc = g_malloc0(size);
    for (i = 0; i < vq->size - 1; i++) {
        desc[i].next = cpu_to_le16(i + 1);
    }
    qtest_memwrite(h->qts, vq->desc, desc, size);
    vdev->bus->set_queue_address(vdev, vq);

    notify = qpci_io_readw(pci->pdev, pci->bar, pci->common_cfg_offset +
                           offsetof(struct virtio_pci_common_cfg,
                                    queue_notify_off));
    q->notify_offset = pci->notify_cfg_offset +
                       notify * pci->notify_off_multiplier;
    qpci_io_writew(pci->pdev, pci->bar, pci->common_cfg_offset +
                   offsetof(struct virtio_pci_common_cfg, queue_enable), 1);
    return vq;
}

static void start_virtio(QHt *h)
{
    QVirtioDevice *vdev = &h->pci->vdev;
    uint32_t i;

    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, qvirtio_get_features(vdev) &
                         (1ull << VIRTIO_F_VERSION_1 |
                          1ull << VIRTIO_F_IOMMU_PLATFORM |
                          1ull << VIRTIO_RING_F_EVENT_IDX |
                          1ull << HT_F_MEMORY) & ~h->declined);
    h->control = setup_queue(h, HT_VQ_CONTROL);
    for (i = 0; i < h->caps.streams; i++) {
        h->data[i] = setup_queue(h, HT_VQ_DATA(i));
    }
    qvirtio_set_driver_ok(vdev);
    if (!h->control_buf) {
        h->control_buf = guest_alloc(h->alloc, 2 * HT_MAILBOX_SIZE);
    }
}

QHt *qht_attach(QHt *first, const char *id, uint8_t slot)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(slot, 0) };
    QHt *h = g_new0(QHt, 1);

    h->qts = first->qts;
    h->bus = first->bus;
    h->alloc = first->alloc;
    h->slot = slot;
    h->path = g_strdup_printf("/machine/peripheral/%s", id);
    h->pci = virtio_pci_new(h->bus, &addr);
    g_assert_nonnull(h->pci);
    map(h);
    if (h->caps.channel == HT_CHANNEL_VIRTIO) {
        start_virtio(h);
    }
    return h;
}

QTestState *qht_start(const char *machine, const char *backend,
                      const char *props, const char *extra, char **log)
{
    g_autofree char *object = NULL;

    *log = NULL;
    if (!strcmp(backend, "log")) {
        int fd = g_file_open_tmp("hypertrace-test-XXXXXX", log, NULL);

        g_assert_cmpint(fd, >=, 0);
        close(fd);
        object = g_strdup_printf("hypertrace-backend-log,id=be,file=%s", *log);
    } else {
        object = g_strdup_printf("hypertrace-backend-%s,id=be", backend);
    }
    return qtest_initf("-machine %s -nodefaults %s -object %s "
                       "-device hypertrace,id=ht,addr=%d,backend=be,%s",
                       machine, extra ?: "", object, QHT_SLOT, props);
}

QHt *qht_attach_first(QTestState *qts, const char *id, uint8_t slot)
{
    QHt machine_only = { .qts = qts }, *h;

    machine_only.alloc = g_new0(QGuestAllocator, 1);
    pc_alloc_init(machine_only.alloc, qts, 0);
    machine_only.bus = qpci_new_pc(qts, machine_only.alloc);
    h = qht_attach(&machine_only, id, slot);
    h->owner = true;
    return h;
}

QHt *qht_boot(const char *machine, const char *backend, const char *props,
              const char *extra)
{
    g_autofree char *log = NULL;
    QHt *h = qht_attach_first(qht_start(machine, backend, props, extra, &log),
                              "ht", QHT_SLOT);

    h->log = g_steal_pointer(&log);
    return h;
}

static void drop_queues(QHt *h)
{
    uint32_t i;

    for (i = 0; i < HT_STREAMS_MAX; i++) {
        if (h->data[i]) {
            qvirtqueue_cleanup(h->pci->vdev.bus, h->data[i], h->alloc);
            h->data[i] = NULL;
        }
    }
    if (h->control) {
        qvirtqueue_cleanup(h->pci->vdev.bus, h->control, h->alloc);
        h->control = NULL;
    }
}

void qht_restart(QHt *h)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(h->slot, 0) };

    drop_queues(h);
    qos_object_destroy((QOSGraphObject *)h->pci);
    h->pci = virtio_pci_new(h->bus, &addr);
    g_assert_nonnull(h->pci);
    map(h);
    if (h->caps.channel == HT_CHANNEL_VIRTIO) {
        start_virtio(h);
    }
}

void qht_quit(QHt *h)
{
    drop_queues(h);
    qos_object_destroy((QOSGraphObject *)h->pci);
    if (h->owner) {
        qpci_free_pc(h->bus);
        alloc_destroy(h->alloc);
        g_free(h->alloc);
        qtest_quit(h->qts);
    }
    if (h->log) {
        unlink(h->log);
    }
    g_free(h->log);
    g_free(h->path);
    g_free(h);
}

/*
 * Send a message on the control queue, with room for @room bytes of reply, and
 * wait until the device has replied. The caller reads the reply.
 */
static void exchange_virtio(QHt *h, const void *msg, size_t size, size_t room)
{
    uint32_t desc;

    qtest_memwrite(h->qts, h->control_buf, msg, size);
    desc = qvirtqueue_add(h->qts, h->control, h->control_buf, size, false,
                          true);
    qvirtqueue_add(h->qts, h->control, h->control_buf + HT_MAILBOX_SIZE,
                   room, true, false);
    qht_queue_kick(h, h->control, desc);
    qht_queue_wait(h, h->control);
}

static void read_reply(QHt *h, void *buf, size_t size)
{
    if (h->control) {
        qtest_memread(h->qts, h->control_buf + HT_MAILBOX_SIZE, buf, size);
    } else {
        qpci_memread(h->pci->pdev, h->ring, h->caps.mailbox_offset, buf, size);
    }
}

uint32_t qht_exchange(QHt *h, void *msg, size_t size)
{
    QPCIDevice *pdev = h->pci->pdev;
    struct ht_msg *m = msg;

    if (h->control) {
        exchange_virtio(h, msg, size, HT_MESSAGE_MAX);
    } else {
        qpci_memwrite(pdev, h->ring, h->caps.mailbox_offset, msg,
                      MIN(size, h->caps.mailbox_size));
        qpci_io_writel(pdev, h->regs, HT_REG_MAILBOX_GO, size);
    }
    read_reply(h, m, sizeof(*m));
    size = ldl_le_p(&m->size);
    g_assert_cmpuint(size, >=, sizeof(*m));
    g_assert_cmpuint(size, <=, HT_MESSAGE_MAX);
    read_reply(h, m, size);
    return ldl_le_p(&m->status);
}

static void exchange_some(QHt *h, void *msgs, size_t size)
{
    QPCIDevice *pdev = h->pci->pdev;

    if (h->control) {
        exchange_virtio(h, msgs, size, size);
    } else {
        qpci_memwrite(pdev, h->ring, h->caps.mailbox_offset, msgs, size);
        qpci_io_writel(pdev, h->regs, HT_REG_MAILBOX_GO, size);
    }
    read_reply(h, msgs, size);
}

/*
 * Get the offset, from @at on, of the first message whose reply is BUSY, or
 * @size if no reply is BUSY
 */
static size_t first_busy(const uint8_t *sent, const uint8_t *replies, size_t at,
                         size_t size)
{
    while (at < size && size - at >= sizeof(struct ht_msg)) {
        const struct ht_msg *m = (const struct ht_msg *)(sent + at);
        const struct ht_msg *r = (const struct ht_msg *)(replies + at);
        uint32_t length = ldl_le_p(&m->size);

        if (ldl_le_p(&r->status) == HT_STATUS_BUSY) {
            return at;
        }
        if (lduw_le_p(&m->type) != HT_MSG_CLASS_REGISTER ||
            length < sizeof(*m) || length > size - at) {
            break;
        }
        at = ROUND_UP(at + length, HT_MESSAGE_ALIGN);
    }
    return size;
}

unsigned qht_exchange_all(QHt *h, void *msgs, size_t size)
{
    g_autofree uint8_t *sent = g_memdup2(msgs, size);
    unsigned n = 0;
    size_t at = 0;

    while (at < size) {
        memcpy(msgs + at, sent + at, size - at);
        exchange_some(h, msgs + at, size - at);
        at = first_busy(sent, msgs, at, size);
        n++;
    }
    return n;
}

uint32_t qht_call(QHt *h, uint16_t type, void *msg, size_t size)
{
    g_autofree uint8_t *buf = g_malloc0(HT_MESSAGE_MAX);
    struct ht_msg *m = (struct ht_msg *)buf;
    uint32_t status, replied;

    memcpy(buf, msg, size);
    stw_le_p(&m->type, type);
    stl_le_p(&m->size, size);
    stl_le_p(&m->cookie, 0x5eed);
    QHT_WAIT((status = qht_exchange(h, buf, size)) != HT_STATUS_BUSY ||
             (stl_le_p(&m->size, size), false));
    g_assert_cmpuint(lduw_le_p(&m->type), ==, type);
    g_assert_cmpuint(ldl_le_p(&m->cookie), ==, 0x5eed);
    replied = ldl_le_p(&m->size);
    g_assert_cmpuint(replied, >=, sizeof(*m));
    g_assert_cmpuint(replied, <=, HT_MESSAGE_MAX);
    memcpy(msg, buf, size);
    return status;
}

size_t qht_class_message(void *msg, const char *name)
{
    struct ht_msg_class *m = msg;
    struct ht_msg_field f = { .kind = HT_FIELD_U64, .name_len = 1 };
    size_t len = strlen(name);

    memset(m, 0, sizeof(*m));
    m->nr_fields = 1;
    m->name_len = len;
    m->loglevel = 13;
    memcpy(m->data, name, len);
    memcpy(m->data + len, &f, sizeof(f));
    m->data[len + sizeof(f)] = 'n';
    len += sizeof(*m) + sizeof(f) + 1;
    stw_le_p(&m->h.type, HT_MSG_CLASS_REGISTER);
    stl_le_p(&m->h.size, len);
    return len;
}

uint32_t qht_register_number(QHt *h, const char *name)
{
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    size_t size = qht_class_message(m, name);

    g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m, size), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->id), >, 0);
    return ldl_le_p(&m->id);
}

QDict *qht_query(QTestState *qts, const char *path)
{
    QDict *rsp = qtest_qmp(qts, "{'execute': 'query-hypertrace', 'arguments':"
                           " {'object': %s}}", path);
    QList *list = qdict_get_qlist(rsp, "return");
    QDict *d;

    g_assert_nonnull(list);
    g_assert_cmpuint(qlist_size(list), ==, 1);
    d = qobject_to(QDict, qlist_entry_obj(qlist_first(list)));
    g_assert_cmpstr(qdict_get_str(d, "object"), ==, path);
    qobject_ref(d);
    qobject_unref(rsp);
    return d;
}

static QDict *stats(QHt *h)
{
    return qht_query(h->qts, h->path);
}

static uint64_t get_uint(const QDict *d, const char *name)
{
    return qnum_get_uint(qobject_to(QNum, qdict_get(d, name)));
}

uint64_t qht_stat(QHt *h, const char *name)
{
    QDict *rsp = stats(h);
    uint64_t v = get_uint(rsp, name);

    qobject_unref(rsp);
    return v;
}

static QDict *stream_entry(QDict *rsp, uint32_t stream)
{
    QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "streams"), e) {
        QDict *d = qobject_to(QDict, qlist_entry_obj(e));

        if (get_uint(d, "stream") == stream) {
            return d;
        }
    }
    g_error("stream %u was never opened", stream);
}

uint64_t qht_stream_stat(QHt *h, uint32_t stream, const char *name)
{
    QDict *rsp = stats(h);
    uint64_t v = get_uint(stream_entry(rsp, stream), name);

    qobject_unref(rsp);
    return v;
}

uint64_t qht_backend_stat(QHt *h, unsigned backend, const char *name)
{
    QDict *rsp = stats(h);
    const QListEntry *e = qlist_first(qdict_get_qlist(rsp, "backends"));
    uint64_t v;

    while (backend--) {
        e = qlist_next(e);
    }
    v = get_uint(qobject_to(QDict, qlist_entry_obj(e)), name);
    qobject_unref(rsp);
    return v;
}

bool qht_stream_flag(QHt *h, uint32_t stream, const char *name)
{
    QDict *rsp = stats(h);
    bool v = qdict_get_bool(stream_entry(rsp, stream), name);

    qobject_unref(rsp);
    return v;
}

void qht_settle(QHt *h)
{
    bool idle;

    QHT_WAIT(({
        QDict *rsp = stats(h);
        QListEntry *e;

        idle = true;
        QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "backends"), e) {
            idle &= qdict_get_bool(qobject_to(QDict, qlist_entry_obj(e)),
                                   "idle");
        }
        qobject_unref(rsp);
        idle;
    }));
}

uint64_t qht_drain(QHt *h)
{
    QDict *rsp = qtest_qmp_assert_success_ref(
        h->qts, "{'execute': 'hypertrace-drain', 'arguments': {'object': %s}}",
        h->path);
    uint64_t id = get_uint(rsp, "id");

    qobject_unref(rsp);
    return id;
}

bool qht_wait_drained(QHt *h, uint64_t id)
{
    bool complete, found;

    do {
        QDict *rsp = qtest_qmp_eventwait_ref(h->qts, "HYPERTRACE_DRAINED");
        QDict *data = qdict_get_qdict(rsp, "data");

        found = get_uint(data, "id") == id;
        complete = qdict_get_bool(data, "complete");
        qobject_unref(rsp);
    } while (!found);
    return complete;
}

unsigned qht_log_count(QHt *h, const char *what)
{
    qht_settle(h);
    return qht_file_count(h->log, what);
}

unsigned qht_file_count(const char *path, const char *what)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned i, n = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        n += strstr(lines[i], what) != NULL;
    }
    return n;
}

void qht_wait_deleted(QHt *h)
{
    bool proxy;

    do {
        QDict *event = qtest_qmp_eventwait_ref(h->qts, "DEVICE_DELETED");

        /*
         * Two DEVICE_DELETED events arrive; only that of the PCI proxy has a
         * member "device".
         */
        proxy = qdict_haskey(qdict_get_qdict(event, "data"), "device");
        qobject_unref(event);
    } while (!proxy);
}

static bool exists(QHt *h)
{
    QDict *rsp = qtest_qmp(h->qts, "{'execute': 'qom-list', 'arguments':"
                           " {'path': %s}}", h->path);
    bool found = qdict_haskey(rsp, "return");

    qobject_unref(rsp);
    return found;
}

void qht_unplug(QHt *h)
{
    qtest_qmp_device_del_send(h->qts, strrchr(h->path, '/') + 1);
    qtest_outl(h->qts, 0xae08, 1u << h->slot);
    g_assert_false(exists(h));
}

bool qht_object_del(QTestState *qts, const char *id)
{
    QDict *rsp = qtest_qmp(qts, "{'execute': 'object-del', 'arguments':"
                           " {'id': %s}}", id);
    bool done = qdict_haskey(rsp, "return");

    qobject_unref(rsp);
    return done;
}

bool qht_long(void)
{
    return !g_strcmp0(g_getenv("HT_LONG"), "1");
}

void qht_add_tests(const char *suite, const QHtTest *tests, unsigned nr)
{
    static const char *const channels[] = { "hypercall", "shm", "virtio" };
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(channels); i++) {
        for (j = 0; j < nr; j++) {
            g_autofree char *path =
                g_strdup_printf("hypertrace/%s/%s/%s", suite, channels[i],
                                tests[j].name);

            if (tests[j].channels & 1u << i) {
                qtest_add_data_func(path, channels[i], tests[j].fn);
            }
        }
    }
}
