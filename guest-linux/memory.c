// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: memory-only devices
 *
 * The device is the emulator's ivshmem-plain, whose BAR2 is memory that a
 * recorder on the host shares.  There is no register, interrupt or exit: the
 * recorder polls.  The recorder may be absent when the guest boots, and may end
 * at any time.  Another recorder may follow.  A work item of the driver polls
 * whether there is a recorder, and attaches to each new recorder.
 *
 * Other drivers use the same PCI id.  The module exports no alias for this id,
 * and takes a device only if page 0 of its memory has the magic number, version
 * and channel of a memory-only hypertrace device.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>

#include "htk.h"

/* Time between two polls of page 0 in ms: with a host, and without one */
#define HTK_WATCH_MS	20
#define HTK_ABSENT_MS	100
#define HTK_SYNC_ROUNDS	4

static u64 htk_memory_now(struct ht_device *dev)
{
	return jiffies64_to_msecs(get_jiffies_64());
}

static int htk_memory_pause(struct ht_device *dev, unsigned int tries)
{
	struct htk *h = container_of(dev, struct htk, core);

	if (h->killable && fatal_signal_pending(current))
		return -EINTR;
	usleep_range(50 * tries, 75 * tries);
	return 0;
}

static int htk_memory_exchange(struct htk *h, struct ht_msg *msg, u32 room)
{
	bool opens = msg->type == HT_MSG_STREAM_OPEN;
	int ret = ht_memory_exchange(&h->core, &h->link, msg, room);

	/*
	 * The host has not answered STREAM_OPEN and may open the stream later:
	 * note that a TAKEOVER must close this stream.
	 */
	if (ret && ret != -EBUSY && opens && h->link.pending)
		h->abandoned = true;
	return ret;
}

static void htk_memory_read_caps(struct htk *h, struct ht_caps *caps)
{
	ht_link_caps(&h->core, &h->link, caps);
}

static const struct htk_transport htk_memory_transport = {
	.read_caps	= htk_memory_read_caps,
	.exchange	= htk_memory_exchange,
	.ring_opened	= htk_pci_ring_opened,
	.ring_pfn	= htk_pci_ring_pfn,
	.ring_addr	= htk_pci_ring_addr,
};

/* Context: the work item htk.watch, or after it was cancelled */
static void htk_memory_detach(struct htk *h, bool back)
{
	htk_take_away(h, back, ht_link_renewed(&h->link));
	up_write(&h->life);
	htk_enable_remove(h);
	h->attached = false;
}

/* Context: h->control held */
static int htk_memory_take_over(struct htk *h)
{
	u64 epoch = h->link.epoch;
	int ret = ht_link_attach(&h->core, &h->link);

	if (ret)
		return ret;
	if (h->link.epoch != epoch)
		htk_origin_forget(h);
	h->abandoned = false;
	return htk_takeover(h);
}

static void htk_memory_attach(struct htk *h)
{
	int ret;

	mutex_lock(&h->control);
	ret = htk_memory_take_over(h);
	mutex_unlock(&h->control);
	if (ret == -EPROTO)
		dev_warn_once(h->dev, "the layout of the memory has changed; load the module again\n");
	if (ret)
		return;
	if (h->added) {
		htk_give_back(h);
	} else {
		h->gone = false;
		ret = htk_add(h);
		h->gone = ret;
		h->added = !ret;
	}
	h->attached = h->added;
	h->synced = jiffies - msecs_to_jiffies(HT_SYNC_MS);
}

static bool htk_memory_used(struct htk *h)
{
	bool used = false;
	u32 i;

	down_read(&h->map_sem);
	for (i = 0; i < h->core.caps.streams && !used; i++)
		used = h->claims[i].owner;
	up_read(&h->map_sem);
	return used;
}

/*
 * While a stream has an owner, send readings of the guest's counter, which the
 * host cannot read itself, a little more often than every HT_SYNC_MS.
 */
static void htk_memory_sync(struct htk *h)
{
	unsigned long period = msecs_to_jiffies(HT_SYNC_MS - 5 * HTK_WATCH_MS);

	if (time_before(jiffies, h->synced + period) || !htk_memory_used(h))
		return;
	h->synced = jiffies;
	ht_time_sync(&h->core, HTK_SYNC_ROUNDS);
}

/*
 * Poll for changes of enable bytes and settings, for which there is no
 * interrupt.  Read them also when a host's beat has resumed, because an attempt
 * to read them during the pause would have failed.
 */
static void htk_memory_changes(struct htk *h, bool beats)
{
	u32 seq = READ_ONCE(h->link.mem->caps.enable_seq);

	if (beats && h->attached && (seq != h->enable_seq || !h->beats))
		htk_enable_changed(h);
	h->enable_seq = seq;
	h->beats = beats;
}

static void htk_memory_watch(struct work_struct *work)
{
	struct htk *h = container_of(to_delayed_work(work), struct htk, watch);
	bool beats, renewed;

	mutex_lock(&h->control);
	beats = ht_link_beats(&h->core, &h->link);
	renewed = ht_link_renewed(&h->link) || h->abandoned;
	mutex_unlock(&h->control);
	if (beats && renewed && h->attached)
		htk_memory_detach(h, true);
	if (beats && !h->attached)
		htk_memory_attach(h);
	htk_memory_changes(h, beats);
	if (beats && h->attached)
		htk_memory_sync(h);
	queue_delayed_work(htk_wq, &h->watch,
			   msecs_to_jiffies(beats ? HTK_WATCH_MS :
					    HTK_ABSENT_MS));
}

/*
 * Read and check page 0.  The driver claims no region of the device before,
 * since the device may belong to another driver.
 */
static int htk_memory_check(struct pci_dev *pdev, struct ht_caps *caps)
{
	void *page;

	if (pci_resource_len(pdev, HT_IVSHMEM_BAR) < PAGE_SIZE ||
	    !(pci_resource_flags(pdev, HT_IVSHMEM_BAR) & IORESOURCE_MEM))
		return -ENODEV;
	page = memremap(pci_resource_start(pdev, HT_IVSHMEM_BAR), PAGE_SIZE,
			MEMREMAP_WB | MEMREMAP_DEC);
	if (!page)
		return -ENOMEM;
	memcpy(caps, page, sizeof(*caps));
	memunmap(page);
	if (caps->magic != HT_MAGIC || caps->version != HT_VERSION ||
	    caps->channel != HT_CHANNEL_MEMORY)
		return -ENODEV;
	if (!ht_caps_fit(caps, pci_resource_len(pdev, HT_IVSHMEM_BAR))) {
		dev_err(&pdev->dev, "rings, enable page and mailbox do not fit in BAR2\n");
		return -ENODEV;
	}
	return 0;
}

static int htk_memory_map(struct htk *h, struct pci_dev *pdev)
{
	int ret = pci_request_selected_regions_exclusive(pdev,
							 BIT(HT_IVSHMEM_BAR),
							 h->name);

	if (ret)
		return ret;
	ret = htk_pci_map_ram(h, pdev, HT_IVSHMEM_BAR);
	if (ret)
		pci_release_selected_regions(pdev, BIT(HT_IVSHMEM_BAR));
	return ret;
}

static int htk_memory_probe(struct pci_dev *pdev,
			    const struct pci_device_id *id)
{
	struct ht_caps caps;
	struct htk *h;
	int ret;

	ret = pci_enable_device(pdev);
	if (ret)
		return ret;
	ret = htk_memory_check(pdev, &caps);
	if (ret)
		goto disable;
	h = htk_create(&pdev->dev);
	ret = PTR_ERR_OR_ZERO(h);
	if (ret)
		goto disable;
	ret = htk_memory_map(h, pdev);
	if (ret)
		goto put;
	h->transport = &htk_memory_transport;
	h->core.caps = caps;
	h->enable = h->ram + caps.enable_offset;
	ret = ht_device_init(&h->core);
	if (ret)
		goto unmap;
	/* Without a host, the device counts as away. */
	h->gone = true;
	h->link.mem = h->ram;
	h->link.now = htk_memory_now;
	h->link.pause = htk_memory_pause;
	ht_link_init(&h->core, &h->link);
	INIT_DELAYED_WORK(&h->watch, htk_memory_watch);
	pci_set_drvdata(pdev, h);
	queue_delayed_work(htk_wq, &h->watch, msecs_to_jiffies(HT_BEAT_MS));
	return 0;

unmap:
	memunmap(h->ram);
	pci_release_selected_regions(pdev, BIT(HT_IVSHMEM_BAR));
put:
	htk_enable_remove(h);
	htk_put(h);
disable:
	pci_disable_device(pdev);
	return ret;
}

static void htk_memory_remove(struct pci_dev *pdev)
{
	struct htk *h = pci_get_drvdata(pdev);

	cancel_delayed_work_sync(&h->watch);
	if (h->added)
		misc_deregister(&h->misc);
	if (h->attached)
		htk_memory_detach(h, false);
	else
		htk_emit_lost();
	/* Wait for callers that are sending a message. */
	down_write(&h->life);
	memunmap(h->ram);
	up_write(&h->life);
	htk_enable_remove(h);
	pci_release_selected_regions(pdev, BIT(HT_IVSHMEM_BAR));
	pci_disable_device(pdev);
	htk_put(h);
}

static void htk_memory_shutdown(struct pci_dev *pdev)
{
	struct htk *h = pci_get_drvdata(pdev);

	cancel_delayed_work_sync(&h->watch);
	if (h->attached)
		htk_memory_detach(h, false);
}

static int __maybe_unused htk_memory_suspend(struct device *dev)
{
	struct htk *h = dev_get_drvdata(dev);

	cancel_delayed_work_sync(&h->watch);
	if (h->attached)
		htk_memory_detach(h, true);
	return 0;
}

static int __maybe_unused htk_memory_resume(struct device *dev)
{
	struct htk *h = dev_get_drvdata(dev);

	/* The host may have ended during the suspend: wait for a new beat. */
	mutex_lock(&h->control);
	ht_link_init(&h->core, &h->link);
	mutex_unlock(&h->control);
	queue_delayed_work(htk_wq, &h->watch, msecs_to_jiffies(HT_BEAT_MS));
	return 0;
}

static SIMPLE_DEV_PM_OPS(htk_memory_pm, htk_memory_suspend, htk_memory_resume);

/* No MODULE_DEVICE_TABLE: other drivers use this id as well. */
static const struct pci_device_id htk_memory_ids[] = {
	{ PCI_DEVICE(HT_PCI_VENDOR_ID, HT_IVSHMEM_DEVICE_ID) },
	{ 0 },
};

struct pci_driver htk_memory_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= htk_memory_ids,
	.probe		= htk_memory_probe,
	.remove		= htk_memory_remove,
	.shutdown	= htk_memory_shutdown,
	.driver.pm	= &htk_memory_pm,
};
