// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-ftrace: reading tracefs
 *
 * Modules cannot look an event up by its number, nor see the fields of a
 * kprobe.  Users can, in tracefs, whose texts are an interface that stays.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "ftrace.h"

#ifndef ITER_DEST		/* before 6.2 */
#define ITER_DEST READ
#endif

/* All formats of a kernel are a few megabytes, each is some kilobytes. */
#define HTF_READ_MAX	(4u << 20)

static struct vfsmount *htf_mnt;

/* Wherever users have mounted it, or not: a mount of our own. */
int htf_tracefs_init(void)
{
	/* Built in if it is there at all: there is no reference to put. */
	struct file_system_type *type = get_fs_type("tracefs");

	if (!type)
		return -ENODEV;
	htf_mnt = kern_mount(type);
	return PTR_ERR_OR_ZERO(htf_mnt);
}

void htf_tracefs_exit(void)
{
	kern_unmount(htf_mnt);
}

/*
 * htf_close() is at once: a file holds on to a trace instance, which may be
 * about to go.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
struct htf_closing {
	struct work_struct work;
	struct file *file;
};

static void htf_close_work(struct work_struct *work)
{
	__fput_sync(container_of(work, struct htf_closing, work)->file);
}

/* These kernels stop at a program that calls __fput_sync(). */
static void htf_close(struct file *file)
{
	struct htf_closing closing = { .file = file };

	if (current->flags & PF_KTHREAD) {
		__fput_sync(file);
		return;
	}
	INIT_WORK_ONSTACK(&closing.work, htf_close_work);
	schedule_work(&closing.work);
	flush_work(&closing.work);
	destroy_work_on_stack(&closing.work);
}
#else
#define htf_close __fput_sync
#endif

/**
 * htf_tracefs_exists() - is there a file that can be read?
 * @path: below tracefs
 */
bool htf_tracefs_exists(const char *path)
{
	struct file *file = file_open_root_mnt(htf_mnt, path, O_RDONLY, 0);

	if (IS_ERR(file))
		return false;
	htf_close(file);
	return true;
}

static ssize_t htf_read(struct file *file, char *to, size_t size)
{
	struct kvec vec = { .iov_base = to, .iov_len = size };
	struct iov_iter iter;
	struct kiocb kiocb;
	ssize_t ret;

	init_sync_kiocb(&kiocb, file);
	kiocb.ki_pos = file->f_pos;
	iov_iter_kvec(&iter, ITER_DEST, &vec, 1, size);
	ret = seq_read_iter(&kiocb, &iter);
	file->f_pos = kiocb.ki_pos;
	return ret;
}

/* All of a file, which grows while it is read only by whole reads */
static char *htf_read_all(struct file *file)
{
	size_t room = 8192, size = 0;
	char *text = kvmalloc(room, GFP_KERNEL);

	while (text) {
		ssize_t ret = htf_read(file, text + size, room - size - 1);
		char *more;

		if (ret <= 0) {
			text[size] = '\0';
			if (!ret)
				return text;
			break;
		}
		size += ret;
		if (size < room - 1)
			continue;
		if (room == HTF_READ_MAX)
			break;
		more = kvmalloc(2 * room, GFP_KERNEL);
		if (more)
			memcpy(more, text, size);
		kvfree(text);
		text = more;
		room *= 2;
	}
	kvfree(text);
	return NULL;
}

/**
 * htf_tracefs_read() - the text of a file
 * @path: below tracefs; one that the kernel makes as a sequence of records
 *
 * Context: may sleep
 *
 * Return: to be freed by kvfree(); NULL: it is not there, or no memory
 */
char *htf_tracefs_read(const char *path)
{
	struct file *file = file_open_root_mnt(htf_mnt, path, O_RDONLY, 0);
	char *text = NULL;

	if (IS_ERR(file))
		return NULL;
	/* kernel_read() refuses files whose buffers are meant to be a user's. */
	if (file->f_op->read == seq_read || file->f_op->read_iter == seq_read_iter)
		text = htf_read_all(file);
	htf_close(file);
	return text;
}
