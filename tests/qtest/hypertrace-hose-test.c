/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test virtqueues that a driver refills before they are empty, and
 * many kicks at once
 *
 * The descriptors of a refilled queue are set up once and point to the same
 * memory, so one write of the available index refills the queue, faster than
 * the device can empty it. Most buffers are so large that the device takes only
 * one of them in a turn, which is one iteration of the main loop.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define BUFFER (256 * KiB)
#define SMALL 16
#define LONG 1024u
#define KICKED 16
/*
 * Maximum number of buffers, however small, that a device takes in one
 * iteration of the main loop
 */
#define TURN 16

typedef struct Hose {
    QHt *h;
    QVirtQueue *vq;
    uint16_t avail;
} Hose;

static void hose_init(Hose *hose, QHt *h, QVirtQueue *vq, uint64_t mem,
                      uint32_t len)
{
    const unsigned size = vq->size;
    g_autofree struct vring_desc *desc = g_new0(struct vring_desc, size);
    g_autofree uint16_t *ring = g_new(uint16_t, size);
    unsigned i;

    *hose = (Hose) { .h = h, .vq = vq };
    for (i = 0; i < size; i++) {
        desc[i].addr = cpu_to_le64(mem);
        desc[i].len = cpu_to_le32(len);
        ring[i] = cpu_to_le16(i);
    }
    qtest_memwrite(h->qts, hose->vq->desc, desc, size * sizeof(*desc));
    qtest_memwrite(h->qts, hose->vq->avail + 4, ring, size * sizeof(*ring));
}

static uint16_t hose_used(Hose *hose)
{
    return qtest_readw(hose->h->qts, hose->vq->used + 2);
}

/* Make all used buffers of the queue available again; returns their number */
static unsigned hose_fill(Hose *hose)
{
    uint16_t avail = hose_used(hose) + hose->vq->size;
    uint16_t nr = avail - hose->avail;

    qtest_writew(hose->h->qts, hose->vq->avail + 2, avail);
    hose->avail = avail;
    return nr;
}

static void hose_kick(Hose *hose)
{
    QVirtioDevice *vdev = &hose->h->pci->vdev;

    vdev->bus->virtqueue_kick(vdev, hose->vq);
}

/*
 * An event of one stream is consumed and a flush of that stream ends, although
 * the queues of other streams are never empty.
 */
static void test_flush(const void *opaque)
{
    const bool open = *(const bool *)opaque;
    QHt *h = qht_boot("pc", "null", "channel=virtio,streams=3", NULL);
    uint32_t id = qht_register_number(h, "number");
    uint64_t mem = guest_alloc(h->alloc, BUFFER);
    /*
     * The device overwrites @m with the reply, so @m must have room for the
     * largest one.
     */
    struct ht_msg_stream *m = g_malloc0(HT_MESSAGE_MAX);
    unsigned buffers = 0, i;
    QHtStream s, others[2];
    Hose hoses[2];

    qht_stream_open(&s, h, 0);
    for (i = 0; i < G_N_ELEMENTS(hoses); i++) {
        hose_init(&hoses[i], h, qht_queue_resize(h, 1 + i, LONG), mem,
                  BUFFER);
        if (open) {
            qht_stream_open(&others[i], h, 1 + i);
        }
        hose_fill(&hoses[i]);
        hose_kick(&hoses[i]);
    }
    qht_write_number(&s, id, 0);
    qht_commit(&s);
    m->h.type = cpu_to_le16(HT_MSG_STREAM_FLUSH);
    m->stream = cpu_to_le32(0);
    m->instance = cpu_to_le64(s.instance);
    do {
        g_assert_cmpuint(buffers, <, 16 * LONG);
        for (i = 0; i < G_N_ELEMENTS(hoses); i++) {
            buffers += hose_fill(&hoses[i]);
            hose_kick(&hoses[i]);
        }
        m->h.size = cpu_to_le32(sizeof(*m));
    } while (qht_exchange(h, m, sizeof(*m)) == HT_STATUS_BUSY);
    g_assert_cmpuint(le32_to_cpu(m->h.status), ==, HT_STATUS_OK);
    g_free(m);
    g_test_message("after %u buffers of other streams", buffers);
    g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, 1);
    qht_stream_forget(&s);
    for (i = 0; open && i < G_N_ELEMENTS(hoses); i++) {
        g_assert_true(qht_stream_flag(h, 1 + i, "stopped"));
        qht_stream_forget(&others[i]);
    }
    qht_quit(h);
}

/*
 * A flush of all streams ends after the device has used all buffers that the
 * queue of stream 1 held at the request, although the queue of stream 0, which
 * is closed or closing, is never empty.
 */
static void test_flush_whole(const void *opaque)
{
    const bool closing = *(const bool *)opaque;
    QHt *h = qht_boot("pc", "null", "channel=virtio,streams=2", NULL);
    uint64_t mem = guest_alloc(h->alloc, BUFFER);
    struct ht_msg_stream *m = g_malloc0(HT_MESSAGE_MAX);
    uint64_t instance = 0;
    Hose few, hose;

    hose_init(&hose, h, qht_queue_resize(h, 0, LONG), mem, BUFFER);
    hose_init(&few, h, qht_queue_resize(h, 1, LONG), mem, SMALL);
    if (closing) {
        QHtStream s;

        qht_stream_open(&s, h, 0);
        instance = s.instance;
        qht_stream_forget(&s);
    }
    hose_fill(&hose);
    hose_kick(&hose);
    hose_fill(&few);
    if (closing) {
        m->h.type = cpu_to_le16(HT_MSG_STREAM_CLOSE);
        m->h.size = cpu_to_le32(sizeof(*m));
        m->instance = cpu_to_le64(instance);
        g_assert_cmpuint(qht_exchange(h, m, sizeof(*m)), ==, HT_STATUS_BUSY);
        memset(m, 0, sizeof(*m));
    }
    m->h.type = cpu_to_le16(HT_MSG_STREAM_FLUSH);
    m->stream = cpu_to_le32(HT_STREAM_ANY);
    do {
        hose_fill(&hose);
        hose_kick(&hose);
        m->h.size = cpu_to_le32(sizeof(*m));
    } while (qht_exchange(h, m, sizeof(*m)) == HT_STATUS_BUSY);
    g_assert_cmpuint(le32_to_cpu(m->h.status), ==, HT_STATUS_OK);
    g_assert_cmpuint(hose_used(&few), ==, few.avail);
    g_free(m);
    qht_quit(h);
}

/*
 * One write kicks all queues before the main loop runs again.  The device must
 * take one buffer for all these kicks, not one for each.  If the device took
 * one for each kick, each queue's used index would change.  The main loop may
 * take further buffers before this program reads an index, so the program
 * repeats the write until it finds the index of a queue unchanged.
 */
static void test_kicks(void)
{
    QHt *h = qht_boot("pc", "null",
                      "channel=virtio,streams=16,ioeventfd=off", NULL);
    QVirtioPCIDevice *pci = h->pci;
    uint64_t mem = guest_alloc(h->alloc, BUFFER);
    const size_t size = (HT_VQ_DATA(0) + KICKED) *
                        pci->notify_off_multiplier;
    g_autofree uint8_t *zeros = g_malloc0(size);
    Hose hoses[KICKED];
    unsigned tries = 0, i;
    uint16_t before;
    Hose *one;

    for (i = 0; i < KICKED; i++) {
        hose_init(&hoses[i], h, h->data[i], mem, BUFFER);
    }
    do {
        g_assert_cmpuint(tries, <, 1000);
        one = &hoses[tries++ % KICKED];
        for (i = 0; i < KICKED; i++) {
            QHT_WAIT(hose_used(&hoses[i]) == hoses[i].avail);
            hose_fill(&hoses[i]);
        }
        before = hose_used(one);
        qtest_memwrite(h->qts, pci->bar.addr + pci->notify_cfg_offset, zeros,
                       size);
    } while (before == one->avail || hose_used(one) != before);
    /* all buffers are used without another kick */
    for (i = 0; i < KICKED; i++) {
        QHT_WAIT(hose_used(&hoses[i]) == hoses[i].avail);
    }
    g_test_message("%u tries", tries);
    qht_quit(h);
}

/* Count occurrences of @word in @text, up to @end if that is not NULL */
static unsigned count_words(const char *text, const char *word,
                            const char *end)
{
    unsigned n = 0;

    while ((text = strstr(text, word)) && (!end || text < end)) {
        text++;
        n++;
    }
    return n;
}

/*
 * Many kicks with one event each: all kicks that the main loop serves in one
 * iteration share the limit of one turn.
 */
static void test_kicks_share(void)
{
    static const char run[] = " events 1 ", bell[] = "hypertrace_doorbell ";
    g_autofree char *path = qht_temporary();
    g_autofree char *extra =
        g_strdup_printf("-trace hypertrace_run -trace hypertrace_doorbell "
                        "-trace hypertrace_timer -D %s", path);
    QHt *h = qht_boot("pc", "null", "channel=virtio,streams=1,ioeventfd=off",
                      extra);
    uint32_t id = qht_register_number(h, "number");
    g_autofree char *log = NULL;
    const char *p, *next;
    unsigned most = 0, i;
    QHtStream s;

    qht_stream_open(&s, h, 0);
    for (i = 0; i < 4 * TURN; i++) {
        qht_write_number(&s, id, i);
        qht_commit(&s);
    }
    QHT_WAIT(qht_stream_stat(h, 0, "events") == i);
    qht_stream_close(&s);
    qht_quit(h);
    g_assert_true(g_file_get_contents(path, &log, NULL, NULL));
    g_assert_cmpuint(count_words(log, run, NULL), ==, 4 * TURN);
    g_assert_null(strstr(log, "hypertrace_timer"));
    for (p = log; p; p = next) {
        next = strstr(p + 1, bell);
        most = MAX(most, count_words(p, run, next));
    }
    g_test_message("%u at most", most);
    g_assert_cmpuint(most, <=, TURN);
    qht_unlink(g_steal_pointer(&path));
}

int main(int argc, char **argv)
{
    static const bool closed, open = true, closing = true;

    g_test_init(&argc, &argv, NULL);
    qtest_add_data_func("hypertrace/hose/flush-open", &open, test_flush);
    qtest_add_data_func("hypertrace/hose/flush-closed", &closed, test_flush);
    qtest_add_data_func("hypertrace/hose/flush-whole", &closed,
                        test_flush_whole);
    qtest_add_data_func("hypertrace/hose/flush-closing", &closing,
                        test_flush_whole);
    qtest_add_func("hypertrace/hose/kicks", test_kicks);
    qtest_add_func("hypertrace/hose/kicks-share", test_kicks_share);
    return g_test_run();
}
