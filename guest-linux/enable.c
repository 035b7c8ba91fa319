// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: which classes the host wants
 *
 * A byte for each class, by id.  With hypercall and shm the host writes it in
 * stream memory; with virtio the driver has a copy, which it reads anew when
 * the host says by a configuration interrupt that something changed.  Programs
 * map either for reading.  The kernel's own classes have a copy each, since
 * what emits may not look at a device that could go.
 *
 * A byte is a hint, loaded and stored without any order: seen late, an event
 * that nobody wants is emitted, and left out by the host, or the first ones
 * after a class was switched on are missed.
 */
#include <linux/mm.h>
#include <linux/virtio_config.h>
#include <linux/vmalloc.h>

#include "htk.h"
#include "compat.h"

/* Guards the copies of devices that are away, and how many are there */
static DEFINE_MUTEX(htk_enable_mutex);
static LIST_HEAD(htk_enable_away);
static unsigned int htk_enable_devices;

/**
 * htk_enable_get() - is a class on?
 * @h: its device, which is there
 * @id: of the class
 */
bool htk_enable_get(const struct htk *h, u32 id)
{
	return READ_ONCE(h->enable[id]) == HT_ENABLE_ON;
}

static void htk_enable_registered(struct htk *h, const struct ht_msg *msg,
				  u32 room)
{
	const struct ht_msg_class *m;
	u32 pos;

	for (pos = 0; pos + sizeof(*m) <= room;
	     pos = ALIGN(pos + m->h.size, HT_MESSAGE_ALIGN)) {
		m = (const void *)msg + pos;
		if (m->h.size < sizeof(*m) || m->h.size > room - pos)
			break;
		if (m->h.status == HT_STATUS_OK && m->id <= HT_CLASSES_MAX)
			WRITE_ONCE(h->enable_copy[m->id], m->on);
	}
}

static void htk_enable_bytes(struct htk *h, const struct ht_msg *msg, u32 room)
{
	const struct ht_msg_enabled *m = (const void *)msg;
	u32 i;

	room = min(room, (u32)msg->size);
	if (msg->status != HT_STATUS_OK || room < sizeof(*m))
		return;
	for (i = 0; i < m->count && i < room - sizeof(*m) &&
	     m->first <= HT_CLASSES_MAX - i; i++)
		WRITE_ONCE(h->enable_copy[m->first + i], m->on[i]);
}

/**
 * htk_enable_learn() - the host's replies to CLASS_REGISTER or ENABLED
 * @h: the device
 * @msg: the replies
 * @room: bytes of all of them
 *
 * Each has the size of its message, but a bare header: where the next one would
 * be is not known then, and only what broke the protocol is behind it.
 *
 * Stored in the order in which the host said it: bytes from before a class was
 * registered, stored after its reply, would switch it off for good.
 *
 * Context: h->control held since the exchange
 */
void htk_enable_learn(struct htk *h, const struct ht_msg *msg, u32 room)
{
	if (!h->virtio)
		return;
	if (msg->type == HT_MSG_ENABLED)
		htk_enable_bytes(h, msg, room);
	else
		htk_enable_registered(h, msg, room);
}

/* Context: interrupt */
void htk_enable_changed(struct virtio_device *vdev)
{
	struct htk *h = vdev->priv;

	if (h)
		mod_delayed_work(h->wq, &h->enable_work, 0);
}

/**
 * htk_enable_new() - set up the enable bytes, before the device can interrupt
 * @h: the device
 * @changed: called from a work item when the bytes may have changed
 *
 * Return: 0 or -ENOMEM.
 */
int htk_enable_new(struct htk *h, work_func_t changed)
{
	INIT_DELAYED_WORK(&h->enable_work, changed);
	INIT_LIST_HEAD(&h->enable_away);
	h->enable_copy = vzalloc(HT_ENABLE_SIZE);
	return h->enable_copy ? 0 : -ENOMEM;
}

/**
 * htk_enable_free() - no mapping is left
 * @h: the device, which was added and removed, or neither
 */
void htk_enable_free(struct htk *h)
{
	mutex_lock(&htk_enable_mutex);
	list_del(&h->enable_away);
	mutex_unlock(&htk_enable_mutex);
	vfree(h->enable_copy);
}

static void htk_enable_all(struct htk *h)
{
	memset(h->enable_copy, HT_ENABLE_ON, HT_ENABLE_SIZE);
}

/**
 * htk_enable_add() - a device is there, maybe again
 * @h: the device
 *
 * Programs whose device is away emit, and so look for this one.
 */
void htk_enable_add(struct htk *h)
{
	struct htk *away;

	mutex_lock(&htk_enable_mutex);
	list_del_init(&h->enable_away);
	h->enable_there = true;
	htk_enable_devices++;
	list_for_each_entry(away, &htk_enable_away, enable_away)
		htk_enable_all(away);
	mutex_unlock(&htk_enable_mutex);
	/* Learn what changed while no interrupt could say so. */
	mod_delayed_work(h->wq, &h->enable_work, 0);
}

/**
 * htk_enable_keep() - a device is about to go
 * @h: the device
 *
 * What is on stays so, since its events are to be counted as discarded.
 * Context: h->map_sem held for writing
 */
void htk_enable_keep(struct htk *h)
{
	if (h->enable != h->enable_copy)
		memcpy(h->enable_copy, h->enable, HT_ENABLE_SIZE);
}

/**
 * htk_enable_remove() - a device has gone; nothing interrupts any more
 * @h: the device, whose @gone is set, or which was not added
 *
 * Context: h->life not held: the works that this waits for may wait for it
 */
void htk_enable_remove(struct htk *h)
{
	cancel_delayed_work_sync(&h->enable_work);
	mutex_lock(&htk_enable_mutex);
	if (h->enable_there) {
		h->enable_there = false;
		list_add(&h->enable_away, &htk_enable_away);
		if (--htk_enable_devices)
			htk_enable_all(h);
	}
	mutex_unlock(&htk_enable_mutex);
}

static vm_fault_t htk_enable_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct htk_owner *owner = vma->vm_file->private_data;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long index = vmf->pgoff - (HT_MMAP_ENABLE >> PAGE_SHIFT);
	struct htk *h = owner->h;
	void *copy = h->enable_copy + index * PAGE_SIZE;
	vm_fault_t ret;

	down_read(&h->map_sem);
	if (h->gone || h->enable == h->enable_copy)
		ret = vmf_insert_pfn_prot(vma, addr, vmalloc_to_pfn(copy),
					  vm_get_page_prot(vma->vm_flags));
	else
		ret = vmf_insert_pfn(vma, addr, htk_pci_enable(h) + index);
	up_read(&h->map_sem);
	return ret;
}

static const struct vm_operations_struct htk_enable_vm_ops = {
	.fault = htk_enable_fault,
};

/**
 * htk_enable_mmap() - map the enable page
 * @h: the device
 * @vma: where, at HT_MMAP_ENABLE or behind it, shared
 */
int htk_enable_mmap(struct htk *h, struct vm_area_struct *vma)
{
	u64 at = ((u64)vma->vm_pgoff << PAGE_SHIFT) - HT_MMAP_ENABLE;

	BUILD_BUG_ON(HT_MMAP_ENABLE_SIZE != HT_ENABLE_SIZE);
	BUILD_BUG_ON(HT_MMAP_ENABLE < HT_MMAP_RING(HT_STREAMS_MAX));
	if (at >= HT_ENABLE_SIZE ||
	    vma->vm_end - vma->vm_start > HT_ENABLE_SIZE - at)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	htk_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	htk_vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	/* Memory of the device is the host's: never encrypted. */
	if (!h->virtio)
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vma->vm_ops = &htk_enable_vm_ops;
	return 0;
}
