// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: attributes of /sys/class/misc/hypertraceN, one value each
 *
 * misc_deregister() removes the attributes and waits for readers, so the device
 * exists while an attribute is read.  Values that never change need no lock.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "htk.h"

static struct htk *htk_of(struct device *dev)
{
	struct miscdevice *misc = dev_get_drvdata(dev);

	return container_of(misc, struct htk, misc);
}

static ssize_t channel_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	static const char *const names[] = {
		[HT_CHANNEL_HYPERCALL]	= "hypercall",
		[HT_CHANNEL_SHM]	= "shm",
		[HT_CHANNEL_VIRTIO]	= "virtio",
		[HT_CHANNEL_MEMORY]	= "memory",
	};

	/* ht_device_init() has checked the range. */
	return sysfs_emit(buf, "%s\n", names[htk_of(dev)->core.caps.channel]);
}
static DEVICE_ATTR_RO(channel);

static ssize_t mode_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  htk_of(dev)->core.caps.mode == HT_MODE_OVERWRITE ?
			  "overwrite" : "discard");
}
static DEVICE_ATTR_RO(mode);

static ssize_t mapping_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	switch (htk_of(dev)->mapping) {
	case HT_MAPPING_WRITE_BACK:
		return sysfs_emit(buf, "write-back\n");
	case HT_MAPPING_GUEST_RAM:
		return sysfs_emit(buf, "guest-ram\n");
	default:
		return sysfs_emit(buf, "uncached\n");
	}
}
static DEVICE_ATTR_RO(mapping);

#define HTK_CAPS_ATTR(name)						\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%u\n", htk_of(dev)->core.caps.name);	\
}									\
static DEVICE_ATTR_RO(name)

HTK_CAPS_ATTR(packet_size);
HTK_CAPS_ATTR(packets);
HTK_CAPS_ATTR(streams);

static ssize_t streams_used_show(struct device *dev,
				 struct device_attribute *attr, char *buf)
{
	struct htk *h = htk_of(dev);
	unsigned int used = 0;
	u32 i;

	/* Do not take h->control: its holder may wait for the host. */
	down_read(&h->map_sem);
	for (i = 0; i < h->core.caps.streams; i++)
		used += !!h->claims[i].owner;
	up_read(&h->map_sem);
	return sysfs_emit(buf, "%u\n", used);
}
static DEVICE_ATTR_RO(streams_used);

static ssize_t kernel_events_show(struct device *dev,
				  struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", htk_emit_is(htk_of(dev)));
}
static DEVICE_ATTR_RO(kernel_events);

static struct attribute *htk_attrs[] = {
	&dev_attr_channel.attr,
	&dev_attr_kernel_events.attr,
	&dev_attr_mapping.attr,
	&dev_attr_mode.attr,
	&dev_attr_packet_size.attr,
	&dev_attr_packets.attr,
	&dev_attr_streams.attr,
	&dev_attr_streams_used.attr,
	NULL
};

static const struct attribute_group htk_group = {
	.attrs = htk_attrs,
};

const struct attribute_group *htk_groups[] = {
	&htk_group,
	NULL
};
