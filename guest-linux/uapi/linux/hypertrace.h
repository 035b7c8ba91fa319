/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * hypertrace: interface of /dev/hypertraceN
 *
 * An open file owns the streams that were opened through it.  No other file can
 * map, flush or close the streams.  After the file's last descriptor was closed
 * and its last mapping removed, also by the end of the process, the driver
 * delivers the committed events and closes the streams, in the background.
 *
 * Structures have the same layout for 32-bit and 64-bit callers.
 */
#ifndef _UAPI_LINUX_HYPERTRACE_H
#define _UAPI_LINUX_HYPERTRACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HT_IOC_MAGIC		0xbe	/* ioctl type, unused in Linux 7.2 */

/* How a stream's memory is mapped into the caller */
enum ht_ioc_mapping {
	HT_MAPPING_WRITE_BACK		= 0,	/* cached device memory */
	HT_MAPPING_UNCACHED		= 2,
	HT_MAPPING_GUEST_RAM		= 3,	/* virtio: pages of the guest */
};

/**
 * struct ht_ioc_info - properties of the device
 * @caps: struct ht_caps of the specification with present values, then zeroes
 * @mapping: enum ht_ioc_mapping
 * @generation: never 0; differs for each device, and changes when the device
 *              comes back after a suspend or with another host.  If it has
 *              changed, the caller must register its classes again
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
 * @size: size of the memory at @msg in bytes, from the size in the message's
 *        header to 4096.  For consecutive CLASS_REGISTER messages: their total
 *        size, at most 65536
 * @reserved: 0
 *
 * Returns 0 if there is a reply, of the host or the driver, whatever its
 * status.
 *
 * The caller may send CLASS_REGISTER, CLASS_LIST, STREAM_OPEN, STREAM_CLOSE,
 * STREAM_FLUSH, STATS and DISCARDED, or only CLASS_LIST and STATS if the file
 * is not open for writing.  Only the file that opened a stream may flush or
 * close it.
 *
 * The driver sets the origin of a class and names a stream "COMM/TID/UID".  It
 * chooses the stream for HT_STREAM_ANY.  The status in the reply is the host's,
 * or one of these of the driver: HT_STATUS_INVAL for a class with a reserved
 * name, HT_STATUS_LIMIT if a quota or the streams are used up, HT_STATUS_EXIST
 * if the stream has an owner or the device still has its buffers,
 * HT_STATUS_NOENT if no stream has the index, and HT_STATUS_BUSY if no wanted
 * stream is free, but the driver is closing a wanted stream of a closed file.
 */
struct ht_ioc_control {
	__u64 msg;
	__u32 size;
	__u32 reserved;
};

/**
 * struct ht_ioc_submit - virtio: submit the committed bytes of a stream
 * @stream: index of an open stream
 * @reserved: 0
 * @instance: instance of the stream, from the reply to STREAM_OPEN
 * @kicks: out: how often the driver has notified the device for this stream
 *         since the stream was opened
 *
 * Take back the buffers that the device has returned, advance host.tail in the
 * control page, and submit all bytes up to guest.head, or until every buffer is
 * in use.  Any file of the device that is open for writing may do this, so that
 * a program need not keep the descriptor that opened the stream.
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
 * EFAULT	an address in an argument is not valid
 * ENOMEM	no memory in the kernel
 * EPERM	the file does not own the stream, the stream is not open, or the
 *		message is not allowed; mmap(): the enable page for writing
 * EBADF	submit: the file is not open for writing
 * EINTR	the caller was killed while it waited for the host
 * EAGAIN	submit: every buffer is in use
 * ENODEV	the device is gone or suspended, or has no host
 * ETIMEDOUT	no reply; the host may still execute the message
 * EBUSY	not sent, since the reply to an earlier message is missing
 * EIO		malformed reply, or the device has stopped after an error
 */
#define HT_IOC_GET_INFO	_IOR(HT_IOC_MAGIC, 0, struct ht_ioc_info)
#define HT_IOC_CONTROL	_IOW(HT_IOC_MAGIC, 1, struct ht_ioc_control)
#define HT_IOC_SUBMIT	_IOWR(HT_IOC_MAGIC, 2, struct ht_ioc_submit)

/*
 * mmap() offsets, MAP_SHARED and without PROT_EXEC only.
 *
 * The ring is the control page and the packets, 4096 + packets * packet_size
 * bytes, after ring_offset unused bytes.  ring_offset is 0, except on virtio in
 * a kernel whose pages are larger than 4096 bytes.  The doorbell is one page
 * that holds the stream's doorbell register (hypercall, shm).
 *
 * When the stream is closed or the device goes away, a mapping stays valid.  It
 * then shows pages of the open file that the host does not read; in these
 * pages, the stream's state is HT_STREAM_CLOSED.  In a child of fork(), the
 * mapping shows such pages, too.
 *
 * The enable page can be mapped for reading only, through any file of the
 * device, and stays valid in a child of fork().  The byte at a class's id is 1
 * if the host wants the class's events.  While the device is removed or
 * suspended, the bytes keep their last values, so that events are counted as
 * discarded.  But if another device is present then, all bytes are 1, so that
 * the program opens the other device.  While a memory-only device has no host,
 * the bytes do not change.  In a mapping that was made before the device's
 * generation changed, all bytes are 1.
 */
#define HT_MMAP_RING(stream)		(((__u64)(stream) * 2) << 31)
#define HT_MMAP_DOORBELL(stream)	(((__u64)(stream) * 2 + 1) << 31)
#define HT_MMAP_ENABLE			(1ull << 42)
#define HT_MMAP_ENABLE_SIZE		65536
#define HT_MMAP_STREAM_OF(offset)	((__u32)((__u64)(offset) >> 32))
#define HT_MMAP_IS_DOORBELL(offset)	(((__u64)(offset) >> 31) & 1)

#endif /* _UAPI_LINUX_HYPERTRACE_H */
