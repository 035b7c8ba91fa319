// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: allocation and reference counts of devices
 */
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "htk.h"

#define HTK_FS_MAGIC	0x48545243

static DEFINE_IDA(htk_ida);
static atomic_t htk_generation;
static struct vfsmount *htk_mnt;

/* Workqueue for work that may wait for a host; frozen during a suspend */
struct workqueue_struct *htk_wq;

static int htk_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, HTK_FS_MAGIC) ? 0 : -ENOMEM;
}

/*
 * File system of the inodes htk.mappings, mounted while the module is loaded.
 * Its .owner is not set: otherwise the mount would keep the module from
 * being unloaded.  The file system is not registered, so user space cannot
 * mount it.
 */
static struct file_system_type htk_fs = {
	.name		 = KBUILD_MODNAME,
	.init_fs_context = htk_fs_init,
	.kill_sb	 = kill_anon_super,
};

static void htk_release(struct kref *kref)
{
	struct htk *h = container_of(kref, struct htk, kref);

	if (h->mappings)
		iput(h->mappings);
	htk_origin_free(h);
	htk_enable_free(h);
	ida_free(&htk_ida, h->id);
	kvfree(h);
}

/**
 * htk_put() - drop a reference to a device
 * @h: the device
 *
 * Context: may sleep
 */
void htk_put(struct htk *h)
{
	kref_put(&h->kref, htk_release);
}

/**
 * htk_get_by_misc() - get a reference to the device of a node
 * @misc: the node; it must stay registered during the call
 *
 * Context: any
 */
struct htk *htk_get_by_misc(struct miscdevice *misc)
{
	struct htk *h = container_of(misc, struct htk, misc);

	kref_get(&h->kref);
	return h;
}

/**
 * htk_next_generation() - get a generation number that no device had before,
 *                         until the number wraps
 *
 * Context: any
 */
u32 htk_next_generation(void)
{
	return atomic_inc_return(&htk_generation);
}

/**
 * htk_new() - allocate a device
 * @dev: the device of the bus
 *
 * Return: the device with one reference, or an ERR_PTR().  htk_create()
 * initializes its work items.
 */
struct htk *htk_new(struct device *dev)
{
	struct htk *h = kvzalloc(sizeof(*h), GFP_KERNEL);
	int ret;

	if (!h)
		return ERR_PTR(-ENOMEM);
	h->id = ida_alloc(&htk_ida, GFP_KERNEL);
	if (h->id < 0) {
		ret = h->id;
		kvfree(h);
		return ERR_PTR(ret);
	}
	snprintf(h->name, sizeof(h->name), "hypertrace%d", h->id);
	kref_init(&h->kref);
	init_rwsem(&h->life);
	mutex_init(&h->control);
	mutex_init(&h->messages);
	init_rwsem(&h->map_sem);
	init_llist_head(&h->orphans);
	INIT_LIST_HEAD(&h->source);
	h->wq = htk_wq;
	h->kernel.h = h;
	h->generation = htk_next_generation();
	h->dev = dev;
	ret = htk_enable_new(h);
	if (!ret)
		ret = htk_origin_new(h);
	if (ret)
		goto put;
	h->mappings = alloc_anon_inode(htk_mnt->mnt_sb);
	if (!IS_ERR(h->mappings))
		return h;
	ret = PTR_ERR(h->mappings);
	h->mappings = NULL;
put:
	htk_put(h);
	return ERR_PTR(ret);
}

int htk_device_init(void)
{
	htk_wq = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND | WQ_FREEZABLE, 0);
	if (!htk_wq)
		return -ENOMEM;
	htk_mnt = kern_mount(&htk_fs);
	if (IS_ERR(htk_mnt)) {
		destroy_workqueue(htk_wq);
		return PTR_ERR(htk_mnt);
	}
	return 0;
}

/*
 * Undo htk_device_init().  Destroying the workqueue first waits for its work,
 * which closes the streams of closed files.
 */
void htk_device_exit(void)
{
	destroy_workqueue(htk_wq);
	kern_unmount(htk_mnt);
}
