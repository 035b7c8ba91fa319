// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: a device that carries trace events from a guest to its host
 *
 * The driver gives programs streams of the device (/dev/hypertraceN) and
 * emits events of the kernel itself; the specification of the device is
 * docs/specs/hypertrace.rst.
 */
#include <linux/module.h>
#include <linux/virtio_config.h>

#include <uapi/linux/virtio_ring.h>

#include "htk.h"

/*
 * Without indirect descriptors submitting allocates nothing, so that it may be
 * done wherever the kernel emits an event.
 */
static int htk_validate(struct virtio_device *vdev)
{
	__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	/* A device with rings of its own has none of ours to be told of. */
	if (htk_pci_present(vdev) ||
	    virtio_has_feature(vdev, VIRTIO_F_ACCESS_PLATFORM))
		__virtio_clear_bit(vdev, HT_F_MEMORY);
	return 0;
}

static int htk_probe(struct virtio_device *vdev)
{
	struct htk *h;
	int ret;

	/* Else a mapping would show a program more than its own stream. */
	BUILD_BUG_ON(PAGE_SIZE > HT_MAP_ALIGN);
	h = htk_new(vdev, htk_emit_enabled, htk_orphan_work);
	if (IS_ERR(h))
		return PTR_ERR(h);
	h->core.ops = &htk_port_ops;
	vdev->priv = h;

	h->transport = htk_pci_present(vdev) ? &htk_pci_transport :
					       &htk_virtio_transport;
	ret = h->transport->probe(h);
	if (ret)
		goto put;
	ret = ht_device_init(&h->core);
	if (ret) {
		dev_err(&vdev->dev, "unusable capabilities\n");
		goto remove;
	}
	virtio_device_ready(vdev);
	ret = h->transport->ready(h);
	if (ret) {
		dev_err(&vdev->dev, "takeover: error %d\n", ret);
		goto remove;
	}

	h->misc.minor = MISC_DYNAMIC_MINOR;
	h->misc.name = h->name;
	h->misc.fops = &htk_fops;
	h->misc.parent = &vdev->dev;
	h->misc.groups = htk_groups;
	ret = misc_register(&h->misc);
	if (ret)
		goto remove;
	htk_enable_add(h);
	htk_emit_add(h);
	dev_info(&vdev->dev, "%s: channel %u, %u streams of %u x %u bytes\n",
		 h->name, h->core.caps.channel, h->core.caps.streams,
		 h->core.caps.packets, h->core.caps.packet_size);
	return 0;

remove:
	h->transport->remove(h);
	htk_enable_remove(h);
put:
	vdev->priv = NULL;
	htk_put(h);
	return ret;
}

/*
 * Open files stay, and so do mappings, but nothing behind them reaches the
 * device any more.  It still answers: what was committed is delivered.
 *
 * Return with h->life held for writing.
 */
static void htk_take_away(struct htk *h, bool back)
{
	htk_emit_remove(h, back);

	mutex_lock(&h->control);
	down_write(&h->map_sem);
	h->gone = true;
	htk_enable_keep(h);
	htk_revoke_all(h);
	up_write(&h->map_sem);
	mutex_unlock(&h->control);

	down_write(&h->life);
	htk_close_all(h);
}

static void htk_remove(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	misc_deregister(&h->misc);
	htk_take_away(h, false);
	h->transport->remove(h);
	up_write(&h->life);
	htk_enable_remove(h);
	vdev->priv = NULL;
	htk_put(h);
}

/*
 * For good: a reboot, or another kernel by kexec.  Interrupts still come, so
 * the device can be waited for.
 */
static void htk_shutdown(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	htk_take_away(h, false);
	h->transport->freeze(h);
	up_write(&h->life);
	htk_enable_remove(h);
}

#ifndef HTK_VIRTIO_SHUTDOWN
static void htk_dev_shutdown(struct device *dev)
{
	htk_shutdown(dev_to_virtio(dev));
}
#endif

/*
 * Suspended, the device forgets its streams.  Programs learn that theirs are
 * closed when they emit again; the kernel's are opened again.
 */
static int __maybe_unused htk_freeze(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	htk_take_away(h, true);
	h->transport->freeze(h);
	up_write(&h->life);
	htk_enable_remove(h);
	return 0;
}

static int __maybe_unused htk_restore(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;
	int ret = h->transport->restore(h);

	if (ret)
		goto lost;
	virtio_device_ready(vdev);
	ret = h->transport->ready(h);
	if (ret) {
		dev_err(&vdev->dev, "takeover: error %d\n", ret);
		goto lost;
	}
	mutex_lock(&h->control);
	down_write(&h->map_sem);
	h->gone = false;
	h->generation = htk_next_generation();
	htk_revoke_all(h);
	up_write(&h->map_sem);
	mutex_unlock(&h->control);
	htk_enable_add(h);
	htk_emit_add(h);
	return 0;

lost:
	htk_emit_lost();
	return ret;
}

static const struct virtio_device_id htk_ids[] = {
	{ HT_VIRTIO_ID, VIRTIO_DEV_ANY_ID },
	{ 0 },
};
MODULE_DEVICE_TABLE(virtio, htk_ids);

static const unsigned int htk_features[] = { HT_F_MEMORY };

static struct virtio_driver htk_driver = {
	.driver.name	= KBUILD_MODNAME,
	.driver.owner	= THIS_MODULE,
	.id_table	= htk_ids,
	.feature_table	= htk_features,
	.feature_table_size = ARRAY_SIZE(htk_features),
	.validate	= htk_validate,
	.probe		= htk_probe,
	.remove		= htk_remove,
	.config_changed	= htk_enable_changed,
#ifdef HTK_VIRTIO_SHUTDOWN
	.shutdown	= htk_shutdown,
#else
	.driver.shutdown = htk_dev_shutdown,
#endif
#ifdef CONFIG_PM_SLEEP
	.freeze		= htk_freeze,
	.restore	= htk_restore,
#endif
};

static int __init htk_init(void)
{
	int ret;

	ret = htk_device_init();
	if (ret)
		return ret;
	htk_origin_init();
	ret = htk_emit_init();
	if (ret)
		goto device;
	ret = register_virtio_driver(&htk_driver);
	if (ret)
		goto emit;
	return 0;

emit:
	htk_emit_exit();
device:
	htk_device_exit();
	htk_origin_exit();
	return ret;
}
module_init(htk_init);

static void __exit htk_exit(void)
{
	unregister_virtio_driver(&htk_driver);
	htk_emit_exit();
	htk_device_exit();
	htk_origin_exit();
}
module_exit(htk_exit);

MODULE_DESCRIPTION("hypertrace: trace events from a guest to its host");
MODULE_LICENSE("GPL");
