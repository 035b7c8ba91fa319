/* SPDX-License-Identifier: GPL-2.0 */
/* hypertrace: differences between the supported kernels, 6.1 and later */
#ifndef HTK_COMPAT_H
#define HTK_COMPAT_H

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

#include "hypertrace/abi.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void htk_vm_flags_set(struct vm_area_struct *vma, vm_flags_t f)
{
	vma->vm_flags |= f;
}

static inline void htk_vm_flags_clear(struct vm_area_struct *vma,
				      vm_flags_t f)
{
	vma->vm_flags &= ~f;
}
#else
#define htk_vm_flags_clear vm_flags_clear
#define htk_vm_flags_set vm_flags_set
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define HTK_VIRTIO_SHUTDOWN
#endif

/*
 * Find @n virtqueues.  The first virtqueue has the callback @control, and so
 * causes interrupts; the others do not.  Changes of the configuration cause
 * interrupts, even if @n is 0.
 */
static inline int htk_find_vqs(struct virtio_device *vdev, unsigned int n,
			       struct virtqueue **vqs, const char **names,
			       vq_callback_t *control)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	vq_callback_t **callbacks;
	int ret;

	callbacks = kcalloc(max(n, 1u), sizeof(*callbacks), GFP_KERNEL);
	if (!callbacks)
		return -ENOMEM;
	callbacks[0] = control;
	ret = virtio_find_vqs(vdev, n, vqs, callbacks, names, NULL);
	kfree(callbacks);
	return ret;
#else
	struct virtqueue_info *info;
	unsigned int i;
	int ret;

	info = kcalloc(max(n, 1u), sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		info[i].name = names[i];
	info[0].callback = control;
	ret = virtio_find_vqs(vdev, n, vqs, info, NULL);
	kfree(info);
	return ret;
#endif
}

#endif /* HTK_COMPAT_H */
