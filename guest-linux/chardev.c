// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: the character device /dev/hypertraceN for programs
 *
 * devtmpfs creates the node with mode 0600.  60-hypertrace.rules gives a group
 * access to the node; the group's members can use disk space of the host.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "htk.h"
#include "compat.h"

/* Maximum number of a stream's pages that one page fault maps */
#define HTK_FAULT_AROUND	64

static void htk_free_owner(struct htk_owner *owner)
{
	if (owner->closed)
		__free_page(owner->closed);
	if (owner->stray)
		__free_page(owner->stray);
	kfree(owner);
}

static int htk_file_open(struct inode *inode, struct file *file)
{
	struct htk_owner *owner;

	owner = kzalloc(sizeof(*owner), GFP_KERNEL);
	if (!owner)
		return -ENOMEM;
	owner->closed = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	owner->stray = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!owner->closed || !owner->stray) {
		htk_free_owner(owner);
		return -ENOMEM;
	}
	/*
	 * The node is still registered: misc_open() holds a lock that
	 * misc_deregister() takes.
	 */
	owner->h = htk_get_by_misc(file->private_data);
	owner->uid = file->f_cred->euid;
	owner->writable = file->f_mode & FMODE_WRITE;
	file->private_data = owner;
	file->f_mapping = owner->h->mappings->i_mapping;
	return nonseekable_open(inode, file);
}

/**
 * htk_orphan_work() - close the streams of files that were released
 * @work: orphan_work of a device; each of these files still holds a reference
 *        to the device
 *
 * Context: work item; may sleep for seconds if the host does not answer
 */
void htk_orphan_work(struct work_struct *work)
{
	struct htk *h = container_of(work, struct htk, orphan_work);
	struct htk_owner *owner, *next;
	struct llist_node *list = llist_del_all(&h->orphans);

	llist_for_each_entry_safe(owner, next, list, orphan) {
		htk_close_owner(owner);
		htk_free_owner(owner);
		htk_put(h);
	}
}

/*
 * Let a work item close the file's streams, since a process that exits must not
 * wait for the host.  No mapping is left: each holds a reference to the file.
 */
static int htk_file_release(struct inode *inode, struct file *file)
{
	struct htk_owner *owner = file->private_data;
	struct htk *h = owner->h;

	WRITE_ONCE(owner->released, true);
	llist_add(&owner->orphan, &h->orphans);
	queue_work(h->wq, &h->orphan_work);
	return 0;
}

static long htk_ioctl_info(struct htk *h, void __user *arg)
{
	struct ht_ioc_info info = {
		.mapping = h->mapping,
		.ring_offset = htk_ring_offset(h),
	};
	long ret = -ENODEV;

	BUILD_BUG_ON(sizeof(struct ht_caps) > sizeof(info.caps));
	/* Do not take h->control: its holder may wait for the host. */
	down_read(&h->map_sem);
	if (!h->gone) {
		struct ht_caps caps;

		h->transport->read_caps(h, &caps);
		memcpy(info.caps, &caps, sizeof(caps));
		info.generation = h->generation;
		ret = 0;
	}
	up_read(&h->map_sem);
	if (!ret && copy_to_user(arg, &info, sizeof(info)))
		ret = -EFAULT;
	return ret;
}

static long htk_ioctl_control(struct htk_owner *owner, void __user *arg)
{
	struct ht_ioc_control ioc;
	void __user *user;
	struct ht_msg *msg;
	u32 bytes;
	long ret;

	if (copy_from_user(&ioc, arg, sizeof(ioc)))
		return -EFAULT;
	if (ioc.reserved || ioc.size < sizeof(*msg) ||
	    ioc.size > HT_MAILBOX_SIZE)
		return -EINVAL;
	user = u64_to_user_ptr(ioc.msg);
	msg = memdup_user(user, ioc.size);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	ret = htk_control(owner->h, owner, msg, ioc.size);
	/*
	 * Copy all replies to CLASS_REGISTER; else as many bytes as the reply's
	 * header says, but not more than the program's memory has.
	 */
	bytes = min(ht_request_bytes(msg, ioc.size), ioc.size);
	if (!ret && copy_to_user(user, msg, bytes))
		ret = -EFAULT;
	kfree(msg);
	return ret;
}

static long htk_ioctl_submit(struct htk *h, void __user *arg)
{
	struct ht_ioc_submit ioc;
	long ret = -EPERM;

	if (copy_from_user(&ioc, arg, sizeof(ioc)))
		return -EFAULT;
	if (ioc.reserved)
		return -EINVAL;
	/* While map_sem is held, an open stream stays open. */
	down_read(&h->map_sem);
	if (h->gone)
		ret = -ENODEV;
	else if (!h->virtio || ioc.stream >= h->core.caps.streams)
		ret = -EINVAL;
	else if (h->claims[ioc.stream].owner &&
		 h->claims[ioc.stream].phase == HTK_OPEN &&
		 h->claims[ioc.stream].instance == ioc.instance)
		ret = htk_virtio_submit(h, ioc.stream, &ioc.kicks);
	up_read(&h->map_sem);
	if (!ret && copy_to_user(arg, &ioc, sizeof(ioc)))
		ret = -EFAULT;
	return ret;
}

static long htk_file_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct htk_owner *owner = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case HT_IOC_GET_INFO:
		return htk_ioctl_info(owner->h, user);
	case HT_IOC_CONTROL:
		return htk_ioctl_control(owner, user);
	case HT_IOC_SUBMIT:
		return owner->writable ? htk_ioctl_submit(owner->h, user) :
					 -EBADF;
	default:
		return -ENOTTY;
	}
}

/* Context: h->map_sem held for reading */
static unsigned long htk_pfn(struct htk *h, u64 offset)
{
	u32 stream = HT_MMAP_STREAM_OF(offset);

	if (HT_MMAP_IS_DOORBELL(offset))
		return PHYS_PFN(htk_pci_doorbell(h, stream));
	return h->transport->ring_pfn(h, stream, (offset -
					HT_MMAP_RING(stream)) >> PAGE_SHIFT);
}

/*
 * Map a page of the owner in place of a page of a stream, because the file does
 * not own an open stream at @offset, the device is away, or the program is a
 * child of fork() and its parent made the mapping.  In the page that replaces
 * the control page, the stream's state is "closed".  Without a page, an access
 * would kill the program.
 */
static vm_fault_t htk_fault_closed(struct vm_fault *vmf,
				   const struct htk_owner *owner, u64 offset)
{
	bool ring = offset == HT_MMAP_RING(HT_MMAP_STREAM_OF(offset));
	struct page *page = ring ? owner->closed : owner->stray;

	return vmf_insert_pfn_prot(vmf->vma, vmf->address & PAGE_MASK,
				   page_to_pfn(page),
				   vm_get_page_prot(vmf->vma->vm_flags));
}

static vm_fault_t htk_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct htk_owner *owner = vma->vm_file->private_data;
	struct htk *h = owner->h;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = min(vma->vm_end,
				addr + HTK_FAULT_AROUND * PAGE_SIZE);
	vm_fault_t ret;

	down_read(&h->map_sem);
	if (h->gone || !htk_owns(h, owner, HT_MMAP_STREAM_OF(offset)) ||
	    vma->vm_private_data != vma->vm_mm) {
		ret = htk_fault_closed(vmf, owner, offset);
		goto out;
	}
	ret = vmf_insert_pfn(vma, addr, htk_pfn(h, offset));
	while (ret == VM_FAULT_NOPAGE && (addr += PAGE_SIZE) < end) {
		offset += PAGE_SIZE;
		/*
		 * Ignore an error: if the program uses this page, the page's
		 * own fault returns the error.
		 */
		if (vmf_insert_pfn(vma, addr, htk_pfn(h, offset)) !=
		    VM_FAULT_NOPAGE)
			break;
	}
out:
	up_read(&h->map_sem);
	return ret;
}

/*
 * Mark the copy of a mapping in a child of fork(), so that the child gets no
 * pages of the stream.  The kernel also calls this function for a mapping that
 * is split or moved, but that mapping keeps the mm that it had at mmap().
 */
static void htk_vm_open(struct vm_area_struct *vma)
{
	if (vma->vm_private_data != vma->vm_mm)
		vma->vm_private_data = NULL;
}

static const struct vm_operations_struct htk_vm_ops = {
	.open = htk_vm_open,
	.fault = htk_fault,
};

static int htk_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct htk_owner *owner = file->private_data;
	struct htk *h = owner->h;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	u32 stream = HT_MMAP_STREAM_OF(offset);
	bool doorbell = HT_MMAP_IS_DOORBELL(offset);
	u64 start = doorbell ? HT_MMAP_DOORBELL(stream) : HT_MMAP_RING(stream);
	u64 room = doorbell ? PAGE_SIZE : htk_ring_pages(h) * PAGE_SIZE;
	int ret = 0;

	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if (vma->vm_pgoff >= HT_MMAP_ENABLE >> PAGE_SHIFT)
		return htk_enable_mmap(h, vma);
	if (vma->vm_pgoff >> (64 - PAGE_SHIFT) ||
	    offset >= HT_MMAP_RING((u64)h->core.caps.streams) ||
	    offset - start >= room || size > room - (offset - start))
		return -EINVAL;

	down_read(&h->map_sem);
	if (h->gone)
		ret = -ENODEV;
	else if (!htk_owns(h, owner, stream))
		ret = -EPERM;
	else if (doorbell && h->core.caps.channel > HT_CHANNEL_SHM)
		ret = -EINVAL;
	up_read(&h->map_sem);
	if (ret)
		return ret;

	/*
	 * VM_WIPEONFORK: a child of fork() does not get the pages, because two
	 * producers would corrupt the stream; see htk_fault().
	 */
	htk_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP |
			      VM_WIPEONFORK);
	htk_vm_flags_clear(vma, VM_MAYEXEC);
	if (doorbell)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	/* The host must read and write device memory: do not encrypt it. */
	if (!h->virtio)
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vma->vm_private_data = vma->vm_mm;
	vma->vm_ops = &htk_vm_ops;
	return 0;
}

const struct file_operations htk_fops = {
	.owner		= THIS_MODULE,
	.open		= htk_file_open,
	.release	= htk_file_release,
	.unlocked_ioctl	= htk_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= htk_file_mmap,
};
