/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * hypertrace: /dev/hypertraceN
 *
 * One open file owns the streams that were opened through it.  Nobody else
 * can map them, submit to them or close them; closing the file, as the end
 * of its process does, hands over what was committed and closes them.
 *
 * Structures are the same for 32-bit and 64-bit callers.
 */
#ifndef _UAPI_LINUX_HYPERTRACE_H
#define _UAPI_LINUX_HYPERTRACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HT_IOC_MAGIC		0xbe	/* unassigned as of Linux 7.2 */

/* How a stream's memory is mapped into the caller */
enum ht_ioc_mapping {
	HT_MAPPING_WRITE_BACK		= 0,	/* device memory, cached */
	HT_MAPPING_WRITE_COMBINING	= 1,
	HT_MAPPING_UNCACHED		= 2,
	HT_MAPPING_GUEST_RAM		= 3,	/* virtio: pages of the guest */
};

/**
 * struct ht_ioc_info - what the device is
 * @caps: struct ht_caps of the specification, as read now, then zeroes
 * @mapping: enum ht_ioc_mapping
 * @generation: never 0; another one for each device, and after a suspend:
 *              classes have to be registered again
 * @ring_offset: bytes from HT_MMAP_RING() of a stream to its ring
 * @reserved: 0
 */
struct ht_ioc_info {
	__u8  caps[128];
	__u32 mapping;
	__u32 generation;
	__u32 ring_offset;
	__u32 reserved;
};

/**
 * struct ht_ioc_control - exchange control messages
 * @msg: address of the message, which the reply overwrites
 * @size: bytes of room there, at most 4096; at least what the message says it
 *        has.  Of messages that register classes: bytes of all of them, at most
 *        65536
 * @reserved: 0
 *
 * Allowed are CLASS_REGISTER, CLASS_LIST, STREAM_OPEN, STREAM_CLOSE,
 * STREAM_FLUSH, STATS and DISCARDED.  A file that is not open for writing may
 * send CLASS_LIST and STATS.  A stream is opened for the file, and closed or
 * flushed only by the file that has it.  The driver sets the origin of a class,
 * and names a stream "COMM/TID/UID".  The status in the reply is the host's, with
 * these exceptions: the driver chooses the stream for HT_STREAM_ANY, and answers
 * HT_STATUS_INVAL to a class with a name of the kernel's and HT_STATUS_LIMIT,
 * HT_STATUS_EXIST and HT_STATUS_BUSY itself.
 */
struct ht_ioc_control {
	__u64 msg;
	__u32 size;
	__u32 reserved;
};

/**
 * struct ht_ioc_submit - virtio: hand over what was committed
 * @stream: a stream
 * @reserved: 0
 * @instance: of the stream, as it was opened
 * @kicks: out: notifications sent for this stream since it was opened
 *
 * Takes back the buffers that the device is done with, advances host.tail in
 * the control page, and hands over everything up to guest.head.  The stream may
 * be another file's: a program that keeps no descriptor opens the device anew.
 */
struct ht_ioc_submit {
	__u32 stream;
	__u32 reserved;
	__u64 instance;
	__u64 kicks;
};

/*
 * Errors:
 * EINVAL	invalid argument
 * EPERM	not one of the caller's streams, not open, or not allowed
 * EBADF	submit: the file is not open for writing
 * EINTR	the caller was killed while it waited for the host
 * EAGAIN	submit: every buffer is in use
 * ENODEV	the device is gone, or suspended
 * ETIMEDOUT	no reply; the host may still execute the message
 * EBUSY	not sent, since the reply to an earlier message is missing
 * EIO		malformed reply
 */
#define HT_IOC_GET_INFO	_IOR(HT_IOC_MAGIC, 0, struct ht_ioc_info)
#define HT_IOC_CONTROL	_IOW(HT_IOC_MAGIC, 1, struct ht_ioc_control)
#define HT_IOC_SUBMIT	_IOWR(HT_IOC_MAGIC, 2, struct ht_ioc_submit)

/*
 * mmap() offsets, MAP_SHARED only.  The ring is the control page and the
 * packets, 4096 + packets * packet_size bytes, behind ring_offset bytes that
 * mean nothing: 0, but for virtio in a kernel whose pages are larger than 4096
 * bytes.  The doorbell is one page that holds the stream's doorbell register
 * (hypercall, shm).
 *
 * When the stream is closed or the device goes, a mapping is not torn out
 * from under its user: it then shows private pages, of which the control page
 * says that the stream is closed.  So does a mapping inherited by fork().
 *
 * The enable page can be mapped for reading only, by any file of the device,
 * and stays valid for a child of fork(): the byte at a class's id is 1 if its
 * events are wanted.  While the device is away the bytes stay what they were,
 * so that events are counted as discarded, until there is another device, maybe
 * this one again under a new node: then all are 1, which is the time to look
 * for it.
 */
#define HT_MMAP_RING(stream)		(((__u64)(stream) * 2) << 31)
#define HT_MMAP_DOORBELL(stream)	(((__u64)(stream) * 2 + 1) << 31)
#define HT_MMAP_ENABLE			(1ull << 42)
#define HT_MMAP_ENABLE_SIZE		65536
#define HT_MMAP_STREAM_OF(offset)	((__u32)((__u64)(offset) >> 32))
#define HT_MMAP_IS_DOORBELL(offset)	(((__u64)(offset) >> 31) & 1)

#endif /* _UAPI_LINUX_HYPERTRACE_H */
