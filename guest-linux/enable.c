// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: enable bytes, which say which classes the host wants
 *
 * There is one byte for each class, indexed by the class's id.  On virtio the
 * driver keeps a copy, which it updates from replies to CLASS_REGISTER and
 * after each configuration interrupt.  On the other channels the host writes
 * the bytes in stream memory, and the driver has a copy while the device is
 * away.  Programs map the host's bytes or the copy read-only.  A class of the
 * kernel has a copy of its byte in struct ht_class, since an emitter must not
 * access a device that may go away.
 *
 * Accesses to the bytes have no memory order.  Until an emitter sees a change,
 * it may emit events of a class that is off, or miss events of a class that is
 * on.
 */
#include <linux/mm.h>
#include <linux/virtio_config.h>
#include <linux/vmalloc.h>

#include "htk.h"
#include "compat.h"

/* Protects htk_enable_away, htk_enable_devices and htk.enable_there */
static DEFINE_MUTEX(htk_enable_mutex);
static LIST_HEAD(htk_enable_away);
static unsigned int htk_enable_devices;

/**
 * htk_enable_get() - check whether a class is on
 * @h: a device that is present
 * @id: id of the class, at most HT_CLASSES_MAX
 *
 * Context: any; the device must not be removed meanwhile
 *
 * Return: true if the host wants the class's events.
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
 * htk_enable_learn() - store enable bytes from replies of the host
 * @h: the device; nothing is stored unless its channel is virtio
 * @msg: the replies to CLASS_REGISTER or ENABLED
 * @room: size of all replies, in bytes
 *
 * A reply to CLASS_REGISTER is as long as its request, except that a request
 * that violates the protocol is answered by a header only.  After a header
 * only, the position of the next reply is unknown, so all further replies are
 * ignored.
 *
 * Replies must be stored in the order of the exchanges.  If an older ENABLED
 * reply overwrote a newer CLASS_REGISTER reply, the class could stay off.
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

/**
 * htk_enable_changed() - let a work item handle a change of the enable bytes or
 *                        the settings
 * @h: the device
 *
 * Context: any
 */
void htk_enable_changed(struct htk *h)
{
	mod_delayed_work(h->wq, &h->enable_work, 0);
}

/**
 * htk_enable_new() - set up the enable bytes, before the device can interrupt
 * @h: the device
 *
 * Context: may sleep
 *
 * Return: 0 or -ENOMEM.
 */
int htk_enable_new(struct htk *h)
{
	INIT_LIST_HEAD(&h->enable_away);
	h->enable_copy = vzalloc(HT_ENABLE_SIZE);
	h->enable_on = alloc_page(GFP_KERNEL);
	if (!h->enable_copy || !h->enable_on)
		return -ENOMEM;
	memset(page_address(h->enable_on), HT_ENABLE_ON, PAGE_SIZE);
	return 0;
}

/**
 * htk_enable_free() - free the enable bytes of a device
 * @h: the device, without any reference: it is not present, and no process
 *     maps its enable bytes
 *
 * Context: may sleep
 */
void htk_enable_free(struct htk *h)
{
	mutex_lock(&htk_enable_mutex);
	list_del(&h->enable_away);
	mutex_unlock(&htk_enable_mutex);
	vfree(h->enable_copy);
	if (h->enable_on)
		__free_page(h->enable_on);
}

static void htk_enable_all(struct htk *h)
{
	memset(h->enable_copy, HT_ENABLE_ON, HT_ENABLE_SIZE);
}

/**
 * htk_enable_add() - add a device that is new or came back
 * @h: the device
 *
 * Switch all classes on in the bytes of devices that are away.  A program that
 * traces to a device that is away (trace.h) then emits, finds its stream
 * closed, and looks for a device.
 *
 * Context: may sleep
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
	/* Read changes that happened while the driver got no interrupts. */
	htk_enable_changed(h);
}

/**
 * htk_enable_keep() - copy the enable bytes of a device that is going away
 * @h: the device
 * @all: switch all classes on instead: another host has attached, and the bytes
 *       are no longer those of the programs' classes
 *
 * Classes that are on stay on, so that their events are counted as discarded.
 *
 * Context: h->map_sem held for writing
 */
void htk_enable_keep(struct htk *h, bool all)
{
	if (all) {
		htk_enable_all(h);
	} else if (h->enable != h->enable_copy) {
		/*
		 * Do not copy the host's statistics: programs would take the
		 * old values for present ones.
		 */
		memset(h->enable_copy, 0, HT_ENABLE_SIZE);
		memcpy(h->enable_copy, h->enable, HT_CLASSES_MAX + 1);
	}
}

/**
 * htk_enable_remove() - remove a device that no longer interrupts
 * @h: the device; its @gone is set, or htk_enable_add() was not called
 *
 * If another device is present, switch all classes of @h on.  A program that
 * traces to @h (trace.h) then emits, finds its stream closed, and looks for a
 * device.
 *
 * Context: may sleep; h->life not held, since enable_work takes it
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

/*
 * Get the value that marks a mapping of the enable page with the device's
 * generation.  If the device came back after the mapping was made, the
 * generation has changed, so the mapping is out of date.
 */
static void *htk_enable_mark(const struct htk *h)
{
	return (void *)(unsigned long)h->generation;
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
	/*
	 * If the device came back after the mapping was made, switch all
	 * classes on: the program's next event finds its stream closed, and the
	 * program (trace.h) registers its classes again.
	 */
	if (vma->vm_private_data != htk_enable_mark(h))
		ret = vmf_insert_pfn_prot(vma, addr, page_to_pfn(h->enable_on),
					  vm_get_page_prot(vma->vm_flags));
	else if (h->gone || h->enable == h->enable_copy)
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
 * @vma: a shared mapping whose offset is HT_MMAP_ENABLE or greater
 *
 * Context: called by mmap()
 *
 * Return: 0; -EINVAL: the mapping exceeds the page; -EPERM: it is writable.
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
	/* The host must read and write device memory: do not encrypt it. */
	if (!h->virtio)
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	down_read(&h->map_sem);
	vma->vm_private_data = htk_enable_mark(h);
	up_read(&h->map_sem);
	vma->vm_ops = &htk_enable_vm_ops;
	return 0;
}
