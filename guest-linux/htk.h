/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace: internal declarations of the driver
 *
 * Each file uses only functions of files after it, except that virtio.c uses
 * htk_takeover():
 *
 * main.c     the module, and the driver of virtio devices
 * memory.c   the driver of memory-only devices
 * life.c     availability of a device to programs and the kernel
 * sysfs.c    attributes
 * emit.c     events of the kernel itself
 * chardev.c  /dev/hypertraceN
 * device.c   allocation and reference counts
 * port.c     operations that the guest library's core calls
 * control.c  control messages, permissions, and owners of streams
 * origin.c   origins, reserved names and quotas
 * enable.c   enable bytes, which say which classes the host wants
 * pci.c      hypercall and shm: registers and stream memory in BARs
 * virtio.c   virtio: the control queue, and memory of streams
 * virtio-queue.c  virtio: data queues and their timer
 */
#ifndef HTK_H
#define HTK_H

#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/virtio.h>
#include <linux/workqueue.h>

#include <uapi/linux/hypertrace.h>

#include "hypertrace/port.h"

struct htk;
struct htk_virtio;
struct htk_wait;
struct pci_dev;

/**
 * struct htk_transport - operations of a kind of device
 * @probe: set h->core.caps and all that the other functions need
 * @ready: after DRIVER_OK, let the host close the streams that an earlier
 *         driver left open
 * @remove: undo @probe; all streams are closed and mappings are revoked.  A
 *          memory-only device has none of @probe to @restore
 * @freeze: reset the device before a suspend or a shutdown of the machine; all
 *          streams are closed
 * @restore: undo @freeze; the caller then calls @ready
 * @exchange: as ht_port_ops.control(), for @room bytes of messages; called with
 *            h->control held, or before another thread uses the device
 * @ring_opened: the host has opened the stream; clear the packets of an earlier
 *               owner.  NULL if @ring_get returns zeroed memory
 * @ring_pfn: get the page frame number of page @index of the stream's ring; the
 *            control page is in page 0
 * @ring_addr: get the kernel's address of the ring
 * @read_caps: read the present capabilities
 *
 * Only virtio has these:
 *
 * @ring_get: allocate the stream's memory
 * @ring_put: free the stream's memory; the stream is closed and not mapped
 * @drain: submit all committed bytes, unless the stream is sealed; returns 0;
 *         -EAGAIN: every buffer is in use; or another negative errno
 * @seal: if @on, submit no bytes of the stream until a call without @on, or
 *        until the stream is opened again
 * @settle: wait until the device has returned all buffers of the stream, its
 *          queue is broken, or @wait is over
 * @ring_table: get the physical address of the table of the stream's pages; 0
 *              without HT_F_MEMORY.  After this kernel has ended, the host
 *              finds committed bytes by the table
 */
struct htk_transport {
	int (*probe)(struct htk *h);
	int (*ready)(struct htk *h);
	void (*remove)(struct htk *h);
	void (*freeze)(struct htk *h);
	int (*restore)(struct htk *h);
	void (*read_caps)(struct htk *h, struct ht_caps *caps);
	int (*exchange)(struct htk *h, struct ht_msg *msg, u32 room);
	void (*ring_opened)(struct htk *h, u32 stream);
	unsigned long (*ring_pfn)(struct htk *h, u32 stream,
				  unsigned long index);
	struct ht_ring_control *(*ring_addr)(struct htk *h, u32 stream);
	int (*ring_get)(struct htk *h, u32 stream);
	void (*ring_put)(struct htk *h, u32 stream);
	int (*drain)(struct htk *h, u32 stream);
	void (*seal)(struct htk *h, u32 stream, bool on);
	int (*settle)(struct htk *h, u32 stream, struct htk_wait *wait);
	u64 (*ring_table)(struct htk *h, u32 stream);
};

/**
 * struct htk_owner - owner of a stream: an open file, or the kernel
 * @h: the device
 * @uid: user who opened the file
 * @writable: the file was opened for writing
 * @closed: page, zeroed when it is allocated, that programs see in place of the
 *          control page of a stream that they may not use: the state is
 *          HT_STREAM_CLOSED, and the wake word 0 makes a commit check the state
 * @stray: page that programs see in place of the packets and the doorbell of a
 *         stream that they may not use
 * @open: number of the owner's streams; written with h->control held
 * @released: the file is closed, and a work item will close its streams
 * @orphan: link in h->orphans
 */
struct htk_owner {
	struct htk *h;
	kuid_t uid;
	bool writable;
	struct page *closed;
	struct page *stray;
	u32 open;
	bool released;
	struct llist_node orphan;
};

enum htk_phase {
	/* being opened; the host may still read packets of an earlier owner */
	HTK_OPENING,
	/* open; the owner may map and submit its memory */
	HTK_OPEN,
	/* being closed; the owner may no longer map or submit its memory */
	HTK_CLOSING,
};

/**
 * struct htk_claim - the owner of a stream
 * @owner: the owner, or NULL if the stream is closed
 * @instance: instance number, from the host's reply to STREAM_OPEN
 * @phase: valid only if there is an owner
 */
struct htk_claim {
	struct htk_owner *owner;
	u64 instance;
	enum htk_phase phase;
};

/**
 * struct htk - one device
 * @core: the guest library's part; kernel streams use it
 * @wq: htk_wq, for files that must not refer to device.c
 * @kref: references of the driver, and of each file until its streams are
 *        closed
 * @life: held for reading during htk_control() and between messages that belong
 *        together, and for writing to take the device away.  @control nests
 *        inside @life
 * @control: allows one control message at a time
 * @map_sem: held for reading by page faults and for writing to revoke mappings;
 *           while it is held, an open stream stays open and @gone does not
 *           change.  Nests inside @control
 * @gone: the device was removed or is suspended, or it is memory-only and the
 *        driver is not attached to a host.  If the host of such a device ends,
 *        @gone stays false until another host is found.  Written with @control
 *        and @map_sem held once programs can open the device
 * @generation: identifies the present state of the device; changes when the
 *              device comes back after a suspend, or with another host
 * @claims: the owner of each stream; written with @control and @map_sem held,
 *          read with one of them held
 * @mappings: an inode of the driver, whose address space all files of the
 *            device share, so that one call revokes a stream's mappings in all
 *            files.  The node's inode is not used, because it would pin its
 *            file system
 * @enable: the enable page: the host's, or @enable_copy
 * @enable_copy: copy for virtio, and for mappings while the device is away
 * @enable_on: a page of bytes that are all HT_ENABLE_ON
 * @enable_work: reads enable bytes and settings after a change
 * @enable_away, @enable_there: used by enable.c
 * @messages: protects the message buffer of @core; nests outside @life
 * @killable: a signal that kills the caller ends the present exchange
 *            (@control)
 * @orphans: owners whose files were closed
 * @orphan_work: closes the streams of @orphans
 * @link: connection to the host (@control)
 * @watch: work item that polls page 0 of a memory-only device; only this work
 *         item, or code that has cancelled it, uses @synced to @added
 * @synced: time of the last HT_MSG_TIME_SYNC messages, in jiffies
 * @enable_seq: enable_seq of the capabilities when @watch last ran
 * @beats: there was a host when @watch last ran
 * @attached: programs and the kernel may use the device
 * @added: htk_add() has succeeded
 * @abandoned: the host may have opened a stream, but its reply did not arrive
 *             (@control)
 * @known, @nr_known, @users, @user_classes: used by origin.c (@control)
 *
 * "(@control)" means that the member is used with @control held.
 */
struct htk {
	struct ht_device core;
	struct workqueue_struct *wq;
	struct list_head source;	/* emit.c */
	struct kref kref;
	struct device *dev;
	const struct htk_transport *transport;
	int id;
	char name[24];
	struct miscdevice misc;

	struct rw_semaphore life;
	struct mutex control;
	struct rw_semaphore map_sem;
	bool gone;
	u32 generation;
	struct htk_claim claims[HT_STREAMS_MAX];
	struct htk_owner kernel;
	struct inode *mappings;
	u32 mapping;
	const u8 *enable;
	u8 *enable_copy;
	struct page *enable_on;
	struct delayed_work enable_work;
	struct list_head enable_away;
	bool enable_there;
	struct mutex messages;
	bool killable;
	struct llist_head orphans;
	struct work_struct orphan_work;

	/* origin.c */
	u64 *known;
	unsigned int nr_known;
	struct hlist_head users;
	unsigned int user_classes;

	/* pci.c */
	void __iomem *regs;
	phys_addr_t regs_phys;
	void *ram;
	phys_addr_t ram_phys;

	/* memory.c */
	struct ht_link link;
	struct delayed_work watch;
	unsigned long synced;
	u32 enable_seq;
	bool beats;
	bool attached;
	bool added;
	bool abandoned;

	/* virtio.c */
	struct htk_virtio *virtio;
};

/**
 * struct htk_wait - a wait for the device, which ends after 5 s of counted time
 * @last: time of the last check, in jiffies
 * @left: remaining time, in jiffies
 * @killable: the wait also ends when the caller is killed
 *
 * The time between two checks counts as HTK_LOOK_MS at most.  So a pause of the
 * virtual machine or its host, in which the device could not run, does not end
 * the wait.  An exchange of messages between two checks has a wait of its own,
 * so both together may take longer than 5 s.
 */
struct htk_wait {
	unsigned long last;
	unsigned long left;
	bool killable;
};

#define HTK_WAIT_MS	5000
#define HTK_LOOK_MS	100

static inline void htk_wait_start(struct htk_wait *w, bool killable)
{
	w->killable = killable;
	w->last = jiffies;
	w->left = msecs_to_jiffies(HTK_WAIT_MS);
}

static inline bool htk_wait_over(struct htk_wait *w)
{
	unsigned long now = jiffies;
	unsigned long passed = min(now - w->last,
				   msecs_to_jiffies(HTK_LOOK_MS));

	w->last = now;
	w->left -= min(passed, w->left);
	return !w->left || (w->killable && fatal_signal_pending(current));
}

static inline struct virtio_device *htk_vdev(const struct htk *h)
{
	return dev_to_virtio(h->dev);
}

/*
 * Get the offset of the ring in its first page.  In guest memory, the first
 * packet begins at the second page, so that packets are physically contiguous.
 * The control page of 4 KiB is at the end of the first page.
 */
static inline unsigned long htk_ring_offset(const struct htk *h)
{
	return h->mapping == HT_MAPPING_GUEST_RAM ?
	       PAGE_SIZE - HT_PACKETS_OFFSET : 0;
}

static inline unsigned long htk_ring_pages(const struct htk *h)
{
	const struct ht_caps *caps = &h->core.caps;

	return DIV_ROUND_UP(htk_ring_offset(h) + HT_PACKETS_OFFSET +
			    (unsigned long)caps->packets * caps->packet_size,
			    PAGE_SIZE);
}

/*
 * Check whether an owner may use a stream's memory.
 *
 * Context: h->control or h->map_sem held
 */
static inline bool htk_owns(const struct htk *h, const struct htk_owner *owner,
			    u32 stream)
{
	return h->claims[stream].owner == owner &&
	       h->claims[stream].phase == HTK_OPEN;
}

/* enable.c */
bool htk_enable_get(const struct htk *h, u32 id);
void htk_enable_learn(struct htk *h, const struct ht_msg *msg, u32 room);
void htk_enable_changed(struct htk *h);
int htk_enable_new(struct htk *h);
void htk_enable_free(struct htk *h);
void htk_enable_keep(struct htk *h, bool all);
void htk_enable_add(struct htk *h);
void htk_enable_remove(struct htk *h);
int htk_enable_mmap(struct htk *h, struct vm_area_struct *vma);

/* origin.c */
void htk_origin_init(void);
void htk_origin_exit(void);
int htk_origin_new(struct htk *h);
void htk_origin_free(struct htk *h);
void htk_origin_forget(struct htk *h);
void htk_origin_reserve(const char *name);
unsigned int htk_origin_kernel_streams(const struct htk *h);
bool htk_origin_may_open(const struct htk *h, const struct htk_owner *owner);
void htk_origin_name(const struct htk_owner *owner, struct ht_msg_open *m);
int htk_origin_register(struct htk *h, const struct htk_owner *owner,
			struct ht_msg *msg, u32 room);

/* device.c */
extern struct workqueue_struct *htk_wq;
u32 htk_next_generation(void);
int htk_device_init(void);
void htk_device_exit(void);
struct htk *htk_new(struct device *dev);
void htk_put(struct htk *h);
struct htk *htk_get_by_misc(struct miscdevice *misc);

/* control.c */
int htk_takeover(struct htk *h);
int htk_control(struct htk *h, struct htk_owner *owner, struct ht_msg *msg,
		u32 room);
void htk_close_streams(struct htk *h, const struct htk_owner *owner);
void htk_close_owner(struct htk_owner *owner);
void htk_revoke_all(struct htk *h);

/* chardev.c */
extern const struct file_operations htk_fops;
void htk_orphan_work(struct work_struct *work);

/* life.c */
struct htk *htk_create(struct device *dev);
int htk_add(struct htk *h);
void htk_take_away(struct htk *h, bool back, bool renewed);
void htk_give_back(struct htk *h);

/* memory.c */
extern struct pci_driver htk_memory_driver;

/* pci.c, virtio.c */
extern const struct htk_transport htk_pci_transport;
extern const struct htk_transport htk_virtio_transport;
bool htk_pci_present(struct virtio_device *vdev);
int htk_pci_map_ram(struct htk *h, struct pci_dev *pdev, int bar);
void htk_pci_ring_opened(struct htk *h, u32 stream);
unsigned long htk_pci_ring_pfn(struct htk *h, u32 stream, unsigned long index);
struct ht_ring_control *htk_pci_ring_addr(struct htk *h, u32 stream);
phys_addr_t htk_pci_doorbell(struct htk *h, u32 stream);
unsigned long htk_pci_enable(const struct htk *h);
void htk_pci_ring(struct htk *h, u32 stream);
int htk_virtio_submit(struct htk *h, u32 stream, u64 *kicks);
void htk_virtio_queue_work(struct htk *h, u32 stream);
void htk_virtio_queue_reap(struct htk *h, u32 stream);

/* sysfs.c */
extern const struct attribute_group *htk_groups[];

/* port.c */
extern const struct ht_port_ops htk_port_ops;

/* emit.c */
void htk_emit_add(struct htk *h);
void htk_emit_remove(struct htk *h, bool back);
void htk_emit_lost(void);
void htk_emit_enabled(struct work_struct *work);
bool htk_emit_is(const struct htk *h);
int htk_emit_init(void);
void htk_emit_exit(void);

#endif /* HTK_H */
