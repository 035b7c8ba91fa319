// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: channel virtio, the data queues
 *
 * A stream's producer uses the ring as if it were in device memory.  The driver
 * consumes the ring in place of the host: it submits committed bytes to the
 * device, and advances host.tail when it reaps the buffers that the device has
 * returned.
 *
 * The control page may be mapped into user space, so its content cannot be
 * trusted.  After the driver has checked a value, it uses this value and does
 * not read the word again.  It computes addresses from the low bits of
 * positions and limits lengths to one packet, so a program can only damage its
 * own stream.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/timekeeping.h>

#include "htk-virtio.h"

/*
 * Minimum time in ns between two requests of a stream's producer to reap
 * buffers by the irq_work
 */
#define HTK_REAP_NS	(50 * NSEC_PER_USEC)

static void *htk_virtio_packet(struct htk *h, struct htk_vstream *s,
			       u64 position)
{
	const struct ht_caps *caps = &h->core.caps;
	u64 ring = (u64)caps->packets * caps->packet_size;

	return (u8 *)s->ring + HT_PACKETS_OFFSET + (position & (ring - 1));
}

/* Context: s->lock held */
static void htk_virtio_reap_locked(struct htk *h, struct htk_vstream *s)
{
	struct htk_slot *slot;
	unsigned int len;
	u64 oldest;

	while ((slot = virtqueue_get_buf(s->vq, &len)))
		slot->done = true;
	while (s->count && s->slots[s->first].done) {
		s->first = (s->first + 1) % HTK_SLOTS;
		s->count--;
	}
	if (!s->pages)
		return;
	oldest = s->count ? s->slots[s->first].header.from : s->submitted;
	/*
	 * Pairs with the load-acquire of tail in the producer, which then may
	 * overwrite the packets before the tail.
	 */
	smp_store_release(&s->ring->host.tail, oldest >> h->virtio->shift);
}

/*
 * Submit the bytes from @from to @to, which must be in one packet.  Set @kick
 * if the caller must notify the device.  This allocates no memory, since the
 * queue has no indirect descriptors.
 *
 * Context: s->lock held, interrupts off
 *
 * Return: 0; -EAGAIN: every buffer is in use; or another negative errno.
 */
static int htk_virtio_submit_locked(struct htk *h, struct htk_vstream *s,
				    u64 from, u64 to, bool *kick)
{
	unsigned int shift = h->virtio->shift, pos;
	struct scatterlist sg[2];
	struct htk_slot *slot;
	unsigned long offset;
	u32 size;
	int ret;

	if (!s->pages)
		return -ENODEV;
	from = max(from, s->submitted);
	if (to <= from)
		return 0;
	if (from >> shift != (to - 1) >> shift)
		return -EINVAL;

	htk_virtio_reap_locked(h, s);
	if (s->count == HTK_SLOTS || s->vq->num_free < 2)
		return -EAGAIN;
	pos = (s->first + s->count) % HTK_SLOTS;
	slot = &s->slots[pos];
	slot->header.from = from;
	slot->header.to = to;
	slot->header.lost = READ_ONCE(s->ring->guest.lost);
	slot->done = false;

	size = to - from;
	offset = (u8 *)htk_virtio_packet(h, s, from) - (u8 *)s->ring +
		 htk_ring_offset(h);
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], &slot->header, sizeof(slot->header));
	/* A packet is physically contiguous. */
	sg_set_page(&sg[1], s->pages[offset >> PAGE_SHIFT], size,
		    offset_in_page(offset));
	ret = virtqueue_add_outbuf(s->vq, sg, 2, slot, GFP_ATOMIC);
	if (ret)
		return ret == -ENOSPC ? -EAGAIN : ret;
	s->count++;
	s->submitted = to;
	if (virtqueue_kick_prepare(s->vq)) {
		s->kicks++;
		*kick = true;
	}
	return 0;
}

/*
 * Submit all closed packets and, if @open, the events of the open packet.  If
 * the stream is sealed, submit nothing.
 *
 * If guest.end is a position in a closed packet, it is the end of the packet's
 * events: the producer stores the end there when it has itself submitted a part
 * of the packet before it closed the packet.  Otherwise the packet's header has
 * its size.
 *
 * Context: s->lock held, interrupts off
 *
 * Return: 0; -EAGAIN: every buffer is in use; or another negative errno.
 */
static int htk_virtio_drain_locked(struct htk *h, struct htk_vstream *s,
				   bool open, bool *kick)
{
	const struct ht_caps *caps = &h->core.caps;
	unsigned int shift = h->virtio->shift;
	u64 ring = (u64)caps->packets << shift;
	/* Pairs with the store-release of head in the producer. */
	u64 head = smp_load_acquire(&s->ring->guest.head);
	u32 rounds;
	int ret;

	htk_virtio_reap_locked(h, s);
	if (s->sealed)
		return 0;
	/* A packet takes at most two rounds: submit it, skip its unused end. */
	for (rounds = 0; rounds < 2 * caps->packets + 2; rounds++) {
		u64 end = head, next;

		if (head <= s->submitted)
			return 0;
		if (head - s->submitted > ring)
			return -EINVAL;
		next = ((s->submitted >> shift) + 1) << shift;
		if (head >= next) {
			struct ht_packet *packet;

			packet = htk_virtio_packet(h, s, next -
						   caps->packet_size);
			end = READ_ONCE(s->ring->guest.end);
			if (end <= next - caps->packet_size || end > next)
				end = next - caps->packet_size +
				      min(READ_ONCE(packet->content),
					  caps->packet_size);
			if (end <= s->submitted) {
				s->submitted = next;
				continue;
			}
		} else if (!open) {
			return 0;
		}
		ret = htk_virtio_submit_locked(h, s, s->submitted, end, kick);
		if (ret)
			return ret;
	}
	return 0;
}

int htk_virtio_submit(struct htk *h, u32 stream, u64 *kicks)
{
	struct htk_vstream *s = h->virtio->streams[stream];
	unsigned long flags;
	bool kick = false;
	int ret = 0;

	spin_lock_irqsave(&s->lock, flags);
	if (s->pages)
		ret = htk_virtio_drain_locked(h, s, true, &kick);
	*kicks = s->kicks;
	spin_unlock_irqrestore(&s->lock, flags);
	if (kick)
		virtqueue_notify(s->vq);
	return ret;
}

int htk_virtio_drain(struct htk *h, u32 stream)
{
	u64 kicks;

	return htk_virtio_submit(h, stream, &kicks);
}

/*
 * Stop submitting the stream's bytes, or resume if @on is false.  While the
 * stream is being closed, its producer may still emit events, which the timer
 * must not submit.
 */
void htk_virtio_seal(struct htk *h, u32 stream, bool on)
{
	struct htk_vstream *s = h->virtio->streams[stream];

	spin_lock_irq(&s->lock);
	s->sealed = on;
	spin_unlock_irq(&s->lock);
}

/* Reap returned buffers.  Return: the number of buffers that the device has. */
unsigned int htk_virtio_reap(struct htk *h, u32 stream)
{
	struct htk_vstream *s = h->virtio->streams[stream];
	unsigned int count;

	spin_lock_irq(&s->lock);
	htk_virtio_reap_locked(h, s);
	count = s->count;
	spin_unlock_irq(&s->lock);
	return count;
}

/*
 * Submit the closed packets of a stream of the kernel, and reap buffers.  The
 * emit path cannot do so, because it may run under any lock or in an NMI.
 */
void htk_virtio_irq_work(struct irq_work *work)
{
	struct htk_vstream *s = container_of(work, struct htk_vstream, work);
	unsigned long flags;
	bool kick = false;

	spin_lock_irqsave(&s->lock, flags);
	if (s->pages)
		htk_virtio_drain_locked(s->h, s, false, &kick);
	spin_unlock_irqrestore(&s->lock, flags);
	if (kick)
		virtqueue_notify(s->vq);
}

/*
 * Queue the irq_work, except on a CPU that is going offline, where it would
 * never run.  The timer submits the packets of such a CPU.
 *
 * Context: any
 */
void htk_virtio_queue_work(struct htk *h, u32 stream)
{
	if (cpu_online(raw_smp_processor_id()))
		irq_work_queue(&h->virtio->streams[stream]->work);
}

/*
 * Queue the irq_work to reap returned buffers.  Limit the rate: while the ring
 * is full because the host is slow, each event calls this function.
 *
 * Context: any
 */
void htk_virtio_queue_reap(struct htk *h, u32 stream)
{
	struct htk_vstream *s = h->virtio->streams[stream];
	u64 now = ktime_get_mono_fast_ns();

	if (now - READ_ONCE(s->asked) < HTK_REAP_NS)
		return;
	WRITE_ONCE(s->asked, now);
	htk_virtio_queue_work(h, stream);
}

void htk_virtio_flush_work(struct work_struct *work)
{
	struct htk_virtio *v = container_of(to_delayed_work(work),
					    struct htk_virtio, flush);
	const struct ht_caps *caps = &v->h->core.caps;
	bool open = false;
	u32 i;

	for (i = 0; i < caps->streams; i++) {
		/*
		 * Read @pages without the lock: opening a stream restarts the
		 * timer, and draining a closed stream has no effect.
		 */
		if (!READ_ONCE(v->streams[i]->pages))
			continue;
		open = true;
		htk_virtio_drain(v->h, i);
	}
	if (open)
		schedule_delayed_work(&v->flush, htk_flush_delay(v->h));
}

int htk_virtio_settle(struct htk *h, u32 stream, struct htk_wait *wait)
{
	struct virtqueue *vq = h->virtio->streams[stream]->vq;

	while (htk_virtio_reap(h, stream)) {
		if (virtqueue_is_broken(vq))
			return -EIO;
		if (htk_wait_over(wait))
			return -ETIMEDOUT;
		usleep_range(50, 500);
	}
	return 0;
}
