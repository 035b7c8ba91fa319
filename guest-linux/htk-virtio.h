/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace: declarations shared by virtio.c (control queue, memory) and
 * virtio-queue.c (data queues)
 */
#ifndef HTK_VIRTIO_H
#define HTK_VIRTIO_H

#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "htk.h"

/*
 * A buffer of a data queue.  It uses two descriptors: one for @header, one for
 * the bytes of the ring.
 */
struct htk_slot {
	struct ht_submit header;
	bool done;
};

#define HTK_SLOTS	(HT_VQ_SIZE / 2)

/**
 * struct htk_vstream - a stream's queue and memory
 * @lock: protects @pages, @ring, @submitted, @kicks, @first, @count, @slots and
 *        @sealed; taken in process context and by the irq_work, never in the
 *        emit path
 * @h: the device
 * @work: submits the closed packets of a stream of the kernel, and reaps its
 *        buffers
 * @vq: the data queue
 * @pages: pages of the ring, or NULL when the stream is closed
 * @ring: the ring in the kernel's mapping of @pages
 * @table: physical addresses of the control page and the packets, for the host;
 *         zeroes when the stream is closed
 * @submitted: position up to which all bytes were submitted
 * @kicks: number of notifications of the device since the stream was opened
 * @asked: time of the last htk_virtio_queue_reap() that queued @work, in ns
 * @first: index in @slots of the oldest buffer that the device has
 * @count: number of buffers that the device has
 * @slots: the buffers, in the order of submission
 * @held: pages of a closed stream of which the device still has buffers, or
 *        NULL
 * @sealed: the stream is being closed, so submit no more of it
 */
struct htk_vstream {
	spinlock_t lock;
	struct htk *h;
	struct irq_work work;
	struct virtqueue *vq;
	struct page **pages;
	struct ht_ring_control *ring;
	__le64 *table;
	u64 submitted;
	u64 kicks;
	u64 asked;
	unsigned int first;
	unsigned int count;
	struct htk_slot slots[HTK_SLOTS];
	struct page **held;
	bool sealed;
};

/**
 * struct htk_virtio - the state of a device with the channel virtio
 * @h: the device
 * @control: the control queue; used with h->control held
 * @replied: completed when the control queue has a reply
 * @pending: the device has a message to which it has not replied
 * @stuck: the device did not reply to the pending message in time
 * @request: buffer of messages, HT_MAILBOX_SIZE bytes
 * @reply: buffer of replies, HT_MAILBOX_SIZE bytes
 * @shift: log2 of the size of a packet in bytes
 * @flush: submits the committed bytes of open streams every flush_ms
 * @streams: data queues and memory
 */
struct htk_virtio {
	struct htk *h;
	struct virtqueue *control;
	struct completion replied;
	bool pending;
	bool stuck;
	void *request;
	void *reply;
	unsigned int shift;
	struct delayed_work flush;
	struct htk_vstream *streams[HT_STREAMS_MAX];
};

void htk_virtio_flush_work(struct work_struct *work);
int htk_virtio_drain(struct htk *h, u32 stream);
void htk_virtio_seal(struct htk *h, u32 stream, bool on);
unsigned int htk_virtio_reap(struct htk *h, u32 stream);
int htk_virtio_settle(struct htk *h, u32 stream, struct htk_wait *wait);
void htk_virtio_irq_work(struct irq_work *work);

static inline unsigned long htk_flush_delay(const struct htk *h)
{
	return msecs_to_jiffies(max(h->core.caps.flush_ms, 1u));
}

#endif /* HTK_VIRTIO_H */
