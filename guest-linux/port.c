// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: the operations that the guest library's core calls
 */
#include <linux/delay.h>

#include "htk.h"

static struct htk *to_htk(struct ht_device *dev)
{
	return container_of(dev, struct htk, core);
}

static int htk_port_control(struct ht_device *dev, struct ht_msg *msg,
			    u32 size)
{
	struct htk *h = to_htk(dev);

	return htk_control(h, &h->kernel, msg, size);
}

static int htk_port_map(struct ht_device *dev, u32 stream,
			struct ht_ring_control **ring, u8 **packets)
{
	struct htk *h = to_htk(dev);

	*ring = h->transport->ring_addr(h, stream);
	*packets = (u8 *)*ring + HT_PACKETS_OFFSET;
	return 0;
}

/* Called only for the channels hypercall and shm, which have doorbells */
static void htk_port_doorbell(struct ht_device *dev, u32 stream)
{
	htk_pci_ring(to_htk(dev), stream);
}

/* Ignore @from and @to, since virtio-queue.c reads guest.head. */
static int htk_port_submit(struct ht_device *dev, struct ht_stream *s,
			   u64 from, u64 to)
{
	htk_virtio_queue_work(to_htk(dev), s->index);
	return 0;
}

static void htk_port_reap(struct ht_device *dev, struct ht_stream *s)
{
	htk_virtio_queue_reap(to_htk(dev), s->index);
}

/*
 * Sleep for 100 us if @tries is 0, and twice as long at each further try, but
 * at most 50 ms.  When the sleeps add up to about 5 s, return -ETIMEDOUT.
 */
static int htk_port_relax(struct ht_device *dev, unsigned int tries)
{
	if (tries > 108)
		return -ETIMEDOUT;
	fsleep(min(100ul << min(tries, 9u), 50000ul));
	return 0;
}

const struct ht_port_ops htk_port_ops = {
	.control	= htk_port_control,
	.map		= htk_port_map,
	.doorbell	= htk_port_doorbell,
	.submit		= htk_port_submit,
	.reap		= htk_port_reap,
	.relax		= htk_port_relax,
};
