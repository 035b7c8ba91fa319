// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: make a device of any bus available to programs and the kernel,
 * and unavailable again
 */
#include <linux/device.h>
#include <linux/err.h>

#include "htk.h"

/**
 * htk_create() - allocate the structure of a device that was found
 * @dev: the device of the bus
 *
 * Context: may sleep
 *
 * Return: the structure with one reference, or an ERR_PTR().
 */
struct htk *htk_create(struct device *dev)
{
	struct htk *h;

	/*
	 * Rings begin at multiples of HT_MAP_ALIGN.  With a larger page, a
	 * program that maps its ring would also map a part of another ring.
	 */
	BUILD_BUG_ON(PAGE_SIZE > HT_MAP_ALIGN);
	h = htk_new(dev);
	if (IS_ERR(h))
		return h;
	INIT_DELAYED_WORK(&h->enable_work, htk_emit_enabled);
	INIT_WORK(&h->orphan_work, htk_orphan_work);
	h->core.ops = &htk_port_ops;
	return h;
}

/**
 * htk_add() - make a device available to programs and to the kernel
 * @h: the device; it answers messages
 *
 * Context: may sleep
 *
 * Return: 0, or a negative errno.
 */
int htk_add(struct htk *h)
{
	const struct ht_caps *caps = &h->core.caps;
	int ret;

	h->misc.minor = MISC_DYNAMIC_MINOR;
	h->misc.name = h->name;
	h->misc.fops = &htk_fops;
	h->misc.parent = h->dev;
	h->misc.groups = htk_groups;
	ret = misc_register(&h->misc);
	if (ret)
		return ret;
	htk_enable_add(h);
	htk_emit_add(h);
	dev_info(h->dev, "%s: channel %u, %u streams of %u x %u bytes\n",
		 h->name, caps->channel, caps->streams, caps->packets,
		 caps->packet_size);
	return 0;
}

/**
 * htk_take_away() - make a device unavailable to programs and to the kernel
 * @h: the device
 * @back: the device will come back: if no other device takes the kernel's
 *        events until then, count them as discarded
 * @renewed: another host has attached, which knows no class
 *
 * Files stay open and mappings stay in place, but no longer reach the device.
 * If the device still answers, it gets all committed events.
 *
 * Context: may sleep; returns with h->life held for writing
 */
void htk_take_away(struct htk *h, bool back, bool renewed)
{
	htk_emit_remove(h, back);

	mutex_lock(&h->control);
	down_write(&h->map_sem);
	h->gone = true;
	htk_enable_keep(h, renewed);
	htk_revoke_all(h);
	up_write(&h->map_sem);
	mutex_unlock(&h->control);

	down_write(&h->life);
	htk_close_streams(h, NULL);
}

/**
 * htk_give_back() - make a device available again after htk_take_away()
 * @h: the device; it answers messages and has no open stream
 *
 * If the device takes the kernel's events, a work item opens the kernel's
 * streams.  A program opens a new stream when it finds that its stream is
 * closed.
 *
 * Context: may sleep
 */
void htk_give_back(struct htk *h)
{
	mutex_lock(&h->control);
	down_write(&h->map_sem);
	h->gone = false;
	h->generation = htk_next_generation();
	htk_revoke_all(h);
	up_write(&h->map_sem);
	mutex_unlock(&h->control);
	htk_enable_add(h);
	htk_emit_add(h);
}
