// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: a device that carries trace events from a guest to its host
 *
 * Programs open streams of the device through /dev/hypertraceN, and the driver
 * emits events of the kernel itself.  docs/specs/hypertrace.rst specifies the
 * device.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/virtio_config.h>

#include <uapi/linux/virtio_ring.h>

#include "htk.h"

/*
 * Refuse indirect descriptors: without them a submission, which may run in an
 * interrupt, allocates no memory.
 */
static int htk_validate(struct virtio_device *vdev)
{
	__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	/*
	 * With HT_F_MEMORY, the device can read rings in guest memory by their
	 * physical addresses.  Refuse this feature if the rings are in stream
	 * memory of the device, or if the device must not use such addresses.
	 */
	if (htk_pci_present(vdev) ||
	    virtio_has_feature(vdev, VIRTIO_F_ACCESS_PLATFORM))
		__virtio_clear_bit(vdev, HT_F_MEMORY);
	return 0;
}

static int htk_probe(struct virtio_device *vdev)
{
	struct htk *h = htk_create(&vdev->dev);
	int ret;

	if (IS_ERR(h))
		return PTR_ERR(h);
	vdev->priv = h;

	h->transport = htk_pci_present(vdev) ? &htk_pci_transport :
					       &htk_virtio_transport;
	ret = h->transport->probe(h);
	if (ret)
		goto put;
	ret = ht_device_init(&h->core);
	if (ret) {
		dev_err(h->dev, "unusable capabilities\n");
		goto remove;
	}
	virtio_device_ready(vdev);
	ret = h->transport->ready(h);
	if (ret) {
		dev_err(h->dev, "takeover: error %d\n", ret);
		goto remove;
	}
	ret = htk_add(h);
	if (ret)
		goto remove;
	return 0;

remove:
	h->transport->remove(h);
	htk_enable_remove(h);
put:
	vdev->priv = NULL;
	htk_put(h);
	return ret;
}

static void htk_remove(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	misc_deregister(&h->misc);
	htk_take_away(h, false, false);
	h->transport->remove(h);
	up_write(&h->life);
	htk_enable_remove(h);
	vdev->priv = NULL;
	htk_put(h);
}

/*
 * Take the device away before a shutdown, reboot or kexec.  Interrupts still
 * work, so the driver can wait for the device.
 */
static void htk_shutdown(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	htk_take_away(h, false, false);
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

/* Close all streams before a suspend, in which the device loses its state. */
static int __maybe_unused htk_freeze(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	htk_take_away(h, true, false);
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
		dev_err(h->dev, "takeover: error %d\n", ret);
		goto lost;
	}
	htk_give_back(h);
	return 0;

lost:
	htk_emit_lost();
	return ret;
}

/* Context: interrupts off, usually in an interrupt */
static void htk_config_changed(struct virtio_device *vdev)
{
	if (vdev->priv)
		htk_enable_changed(vdev->priv);
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
	.config_changed	= htk_config_changed,
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
	ret = pci_register_driver(&htk_memory_driver);
	if (ret)
		goto virtio;
	return 0;

virtio:
	unregister_virtio_driver(&htk_driver);
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
	pci_unregister_driver(&htk_memory_driver);
	unregister_virtio_driver(&htk_driver);
	htk_emit_exit();
	htk_device_exit();
	htk_origin_exit();
}
module_exit(htk_exit);

MODULE_DESCRIPTION("hypertrace: trace events from a guest to its host");
MODULE_LICENSE("GPL");
