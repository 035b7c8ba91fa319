// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: channel virtio, the control queue and the memory of streams
 *
 * Packets are in guest RAM, with the layout of a ring in device memory.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <uapi/linux/virtio_ring.h>

#include "htk-virtio.h"
#include "compat.h"

static void htk_virtio_read_caps(struct htk *h, struct ht_caps *caps)
{
	virtio_cread_bytes(htk_vdev(h), 0, caps, sizeof(*caps));
}

static void htk_virtio_replied(struct virtqueue *vq)
{
	struct htk *h = vq->vdev->priv;

	complete(&h->virtio->replied);
}

/*
 * Wait for the reply to the message in the control queue, and update @pending
 * and @stuck of struct htk_virtio.
 *
 * Context: h->control held
 *
 * Return: 0; -EIO: the queue is broken; -ETIMEDOUT: no reply within 5 s, or the
 * caller was killed.
 */
static int htk_virtio_await(struct htk *h, unsigned int *len)
{
	const unsigned long look = msecs_to_jiffies(HTK_LOOK_MS);
	struct htk_virtio *v = h->virtio;
	struct htk_wait wait;

	v->pending = true;
	htk_wait_start(&wait, h->killable);
	while (!virtqueue_get_buf(v->control, len)) {
		if (virtqueue_is_broken(v->control))
			return -EIO;
		if (htk_wait_over(&wait)) {
			v->stuck = !wait.left;
			return -ETIMEDOUT;
		}
		if (h->killable)
			wait_for_completion_killable_timeout(&v->replied, look);
		else
			wait_for_completion_timeout(&v->replied, look);
	}
	v->pending = false;
	v->stuck = false;
	return 0;
}

/*
 * If the reply to an earlier message is missing because the sender was killed,
 * wait for this reply, so that the buffers can be used again.  If the host has
 * already exceeded the time for that message, only look for the reply.
 *
 * Context: h->control held
 *
 * Return: 0, or -EBUSY if the reply is still missing.
 */
static int htk_virtio_await_earlier(struct htk *h)
{
	struct htk_virtio *v = h->virtio;
	unsigned int len;

	if (v->pending && v->stuck && virtqueue_get_buf(v->control, &len))
		v->pending = v->stuck = false;
	if (!v->pending)
		return 0;
	return v->stuck || htk_virtio_await(h, &len) ? -EBUSY : 0;
}

static int htk_virtio_exchange(struct htk *h, struct ht_msg *msg, u32 room)
{
	struct htk_virtio *v = h->virtio;
	struct scatterlist out, in, *sgs[] = { &out, &in };
	u32 bytes = ht_request_bytes(msg, room);
	unsigned int len;
	int ret;

	ret = htk_virtio_await_earlier(h);
	if (ret)
		return ret;
	memcpy(v->request, msg, bytes);
	/*
	 * Clear an earlier reply, since a device may claim to have written more
	 * bytes than it did.
	 */
	memset(v->reply, 0, room);
	sg_init_one(&out, v->request, bytes);
	sg_init_one(&in, v->reply, HT_MAILBOX_SIZE);
	reinit_completion(&v->replied);
	ret = virtqueue_add_sgs(v->control, sgs, 1, 1, v, GFP_KERNEL);
	if (ret)
		return ret;
	virtqueue_kick(v->control);
	ret = htk_virtio_await(h, &len);
	if (ret)
		return ret;

	return ht_reply_take(msg, v->reply, room, len) ? 0 : -EIO;
}

static void htk_virtio_free_pages(struct htk *h, struct page **pages)
{
	unsigned long i;

	for (i = 0; i < htk_ring_pages(h); i++) {
		if (pages[i])
			__free_page(pages[i]);
	}
	kvfree(pages);
}

/*
 * Allocate the pages of a ring: a page with the control page, then physically
 * contiguous blocks.  Each block has one packet; but if packets are smaller
 * than a page, each block is a page with several packets.
 */
static struct page **htk_virtio_alloc_pages(struct htk *h)
{
	unsigned int order = get_order(h->core.caps.packet_size);
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct page **pages, *block;
	unsigned long i, j, last = htk_ring_pages(h);

	pages = kvcalloc(last, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	pages[0] = alloc_page(gfp);
	if (!pages[0])
		goto fail;
	for (i = 1; i < last; i += 1ul << order) {
		block = alloc_pages(gfp, order);
		if (!block)
			goto fail;
		split_page(block, order);
		for (j = 0; j < 1ul << order; j++)
			pages[i + j] = block + j;
	}
	return pages;

fail:
	htk_virtio_free_pages(h, pages);
	return NULL;
}

static void htk_virtio_fill_table(struct htk *h, struct htk_vstream *s,
				  struct page **pages)
{
	const struct ht_caps *caps = &h->core.caps;
	unsigned long at;
	u32 i;

	for (i = 0; i < caps->packets; i++) {
		at = (unsigned long)i * caps->packet_size;
		s->table[HT_MEMORY_SLOT(i)] =
			cpu_to_le64(page_to_phys(pages[1 + PFN_DOWN(at)]) +
				    offset_in_page(at));
	}
	s->table[HT_MEMORY_CONTROL] = cpu_to_le64(page_to_phys(pages[0]) +
						  htk_ring_offset(h));
}

static void htk_virtio_clear_table(struct htk *h, struct htk_vstream *s)
{
	memset(s->table, 0,
	       HT_MEMORY_SLOT(h->core.caps.packets) * sizeof(*s->table));
}

/* Free an earlier owner's pages; the device has returned all of its buffers */
static void htk_virtio_free_held(struct htk *h, struct htk_vstream *s)
{
	if (s->held)
		htk_virtio_free_pages(h, s->held);
	s->held = NULL;
}

static int htk_virtio_ring_get(struct htk *h, u32 stream)
{
	struct htk_vstream *s = h->virtio->streams[stream];
	struct ht_ring_control *ring;
	struct page **pages;
	void *at;

	/*
	 * Return -EBUSY if the device still has buffers of an earlier stream
	 * with this index.
	 */
	if (htk_virtio_reap(h, stream))
		return -EBUSY;
	htk_virtio_free_held(h, s);
	pages = htk_virtio_alloc_pages(h);
	if (!pages)
		return -ENOMEM;
	at = vmap(pages, htk_ring_pages(h), VM_MAP, PAGE_KERNEL);
	if (!at) {
		htk_virtio_free_pages(h, pages);
		return -ENOMEM;
	}
	ring = at + htk_ring_offset(h);
	ring->host.wake = HT_WAKE_NEVER;
	ring->host.state = HT_STREAM_OPENED;
	htk_virtio_fill_table(h, s, pages);

	spin_lock_irq(&s->lock);
	s->ring = ring;
	s->submitted = 0;
	s->kicks = 0;
	s->sealed = false;
	WRITE_ONCE(s->pages, pages);
	spin_unlock_irq(&s->lock);
	schedule_delayed_work(&h->virtio->flush, htk_flush_delay(h));
	return 0;
}

static void htk_virtio_ring_put(struct htk *h, u32 stream)
{
	struct htk_vstream *s = h->virtio->streams[stream];
	struct ht_ring_control *ring;
	struct page **pages;

	spin_lock_irq(&s->lock);
	pages = s->pages;
	ring = s->ring;
	/* While @pages is NULL, no packet of this stream is submitted. */
	WRITE_ONCE(s->pages, NULL);
	s->ring = NULL;
	spin_unlock_irq(&s->lock);
	if (!pages)
		return;
	irq_work_sync(&s->work);
	vunmap((void *)ring - htk_ring_offset(h));
	/*
	 * A host that has not closed the stream finds the pages by the table.
	 * Clear the table, so that the host does not read pages that are freed.
	 */
	htk_virtio_clear_table(h, s);
	/*
	 * If the device has not returned all buffers, keep the pages, which the
	 * device may still read.
	 */
	if (htk_virtio_reap(h, stream)) {
		dev_err_ratelimited(h->dev,
				    "stream %u: buffers not returned\n",
				    stream);
		s->held = pages;
		return;
	}
	htk_virtio_free_pages(h, pages);
}

static unsigned long htk_virtio_ring_pfn(struct htk *h, u32 stream,
					 unsigned long index)
{
	return page_to_pfn(h->virtio->streams[stream]->pages[index]);
}

static u64 htk_virtio_ring_table(struct htk *h, u32 stream)
{
	if (!virtio_has_feature(htk_vdev(h), HT_F_MEMORY))
		return 0;
	return virt_to_phys(h->virtio->streams[stream]->table);
}

static struct ht_ring_control *htk_virtio_ring_addr(struct htk *h, u32 stream)
{
	return h->virtio->streams[stream]->ring;
}

static void htk_virtio_free(struct htk *h)
{
	struct htk_virtio *v = h->virtio;
	u32 i;

	for (i = 0; i < HT_STREAMS_MAX; i++) {
		if (v->streams[i])
			kfree(v->streams[i]->table);
		kfree(v->streams[i]);
	}
	kfree(v->request);
	kfree(v->reply);
	kfree(v);
	h->virtio = NULL;
}

static int htk_virtio_find_queues(struct htk *h)
{
	u32 streams = h->core.caps.streams, i;
	struct htk_virtio *v = h->virtio;
	struct virtqueue **vqs;
	const char **names;
	int ret = -ENOMEM;

	vqs = kcalloc(1 + streams, sizeof(*vqs), GFP_KERNEL);
	names = kcalloc(1 + streams, sizeof(*names), GFP_KERNEL);
	if (!vqs || !names)
		goto out;
	names[HT_VQ_CONTROL] = "control";
	for (i = 0; i < streams; i++)
		names[HT_VQ_DATA(i)] = "data";
	ret = htk_find_vqs(htk_vdev(h), 1 + streams, vqs, names,
			   htk_virtio_replied);
	if (ret)
		goto out;
	v->control = vqs[HT_VQ_CONTROL];
	for (i = 0; i < streams; i++) {
		v->streams[i]->vq = vqs[HT_VQ_DATA(i)];
		virtqueue_disable_cb(vqs[HT_VQ_DATA(i)]);
	}
out:
	kfree(names);
	kfree(vqs);
	return ret;
}

static int htk_virtio_probe(struct htk *h)
{
	const struct ht_caps *caps = &h->core.caps;
	struct htk_virtio *v;
	u32 i, j;
	int ret;

	if (!virtio_has_feature(htk_vdev(h), VIRTIO_F_VERSION_1) ||
	    !virtio_has_feature(htk_vdev(h), VIRTIO_RING_F_EVENT_IDX)) {
		dev_err(h->dev, "no VERSION_1, or no EVENT_IDX\n");
		return -ENODEV;
	}
	htk_virtio_read_caps(h, &h->core.caps);
	/* Check the sizes before memory of these sizes is allocated. */
	ret = ht_device_init(&h->core);
	if (!ret && caps->channel != HT_CHANNEL_VIRTIO)
		ret = -EPROTO;
	if (ret) {
		dev_err(h->dev, "unusable capabilities\n");
		return ret;
	}

	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v)
		return -ENOMEM;
	v->h = h;
	h->virtio = v;
	h->mapping = HT_MAPPING_GUEST_RAM;
	v->shift = ilog2(caps->packet_size);
	init_completion(&v->replied);
	INIT_DELAYED_WORK(&v->flush, htk_virtio_flush_work);
	ret = -ENOMEM;
	h->enable = h->enable_copy;
	v->request = kmalloc(HT_MAILBOX_SIZE, GFP_KERNEL);
	v->reply = kmalloc(HT_MAILBOX_SIZE, GFP_KERNEL);
	if (!v->request || !v->reply)
		goto fail;
	for (i = 0; i < caps->streams; i++) {
		v->streams[i] = kzalloc(sizeof(*v->streams[i]), GFP_KERNEL);
		if (!v->streams[i])
			goto fail;
		v->streams[i]->table = kcalloc(HT_MEMORY_SLOT(caps->packets),
					       sizeof(__le64), GFP_KERNEL);
		if (!v->streams[i]->table)
			goto fail;
		spin_lock_init(&v->streams[i]->lock);
		init_irq_work(&v->streams[i]->work, htk_virtio_irq_work);
		v->streams[i]->h = h;
		for (j = 0; j < HTK_SLOTS; j++)
			v->streams[i]->slots[j].header.stream = i;
	}
	ret = htk_virtio_find_queues(h);
	if (ret)
		goto fail;
	return 0;

fail:
	htk_virtio_free(h);
	return ret;
}

/*
 * Reset the device, delete its queues, and free all pages of streams, which the
 * caller has closed.  htk_virtio_find_queues() creates the queues again.
 */
static void htk_virtio_stop(struct htk *h)
{
	struct htk_virtio *v = h->virtio;
	unsigned int len;
	u32 i;

	/* If the device has failed to resume, there is no control queue. */
	if (!v->control)
		return;
	cancel_delayed_work_sync(&v->flush);
	virtio_reset_device(htk_vdev(h));
	/* After the reset, the device uses no buffer: take all of them back. */
	for (i = 0; i < h->core.caps.streams; i++) {
		struct htk_vstream *s = v->streams[i];

		while (virtqueue_get_buf(s->vq, &len))
			;
		while (virtqueue_detach_unused_buf(s->vq))
			;
		s->count = 0;
		htk_virtio_ring_put(h, i);
		htk_virtio_free_held(h, s);
		s->first = 0;
	}
	htk_vdev(h)->config->del_vqs(htk_vdev(h));
	v->control = NULL;
	v->pending = false;
	v->stuck = false;
}

static void htk_virtio_remove(struct htk *h)
{
	htk_virtio_stop(h);
	htk_virtio_free(h);
}

const struct htk_transport htk_virtio_transport = {
	.probe		= htk_virtio_probe,
	.ready		= htk_takeover,
	.remove		= htk_virtio_remove,
	.freeze		= htk_virtio_stop,
	.restore	= htk_virtio_find_queues,
	.read_caps	= htk_virtio_read_caps,
	.exchange	= htk_virtio_exchange,
	.ring_get	= htk_virtio_ring_get,
	.ring_put	= htk_virtio_ring_put,
	.ring_pfn	= htk_virtio_ring_pfn,
	.ring_addr	= htk_virtio_ring_addr,
	.drain		= htk_virtio_drain,
	.seal		= htk_virtio_seal,
	.settle		= htk_virtio_settle,
	.ring_table	= htk_virtio_ring_table,
};
