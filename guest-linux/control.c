// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: control messages, and the owners of streams
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/mm.h>

#include "htk.h"

/**
 * htk_revoke_all() - remove all pages of the device from the page tables of
 *                    programs: stream memory, doorbells and enable bytes
 * @h: the device
 *
 * The mappings stay.  When a program accesses one again, the fault handler
 * chooses the page by the present state of the device and stream.
 *
 * Context: h->map_sem held for writing
 */
void htk_revoke_all(struct htk *h)
{
	unmap_mapping_range(h->mappings->i_mapping, 0, 0, 1);
}

/*
 * Virtio: submit all committed bytes, so that the host has them before it
 * executes STREAM_CLOSE or STREAM_FLUSH, which the caller sends next.  Wait
 * until the device has returned all buffers, the stream's queue is broken, or
 * @wait is over.
 *
 * Context: h->life held; h->control not held, so that other threads can send
 * messages meanwhile
 */
static void htk_settle(struct htk *h, u32 stream, struct htk_wait *wait)
{
	if (!h->transport->drain)
		return;
	while (h->transport->drain(h, stream) == -EAGAIN &&
	       !htk_wait_over(wait))
		usleep_range(50, 500);
	h->transport->settle(h, stream, wait);
}

/*
 * Virtio: submit no further buffers, since after STREAM_CLOSE the device
 * returns a buffer unread.  Wait until the device has returned the buffers that
 * the timer has submitted since htk_settle().
 *
 * Context: h->control held, or the stream has no other user: no caller can open
 * the stream during the call
 */
static void htk_seal(struct htk *h, u32 stream, struct htk_wait *wait)
{
	if (!h->transport->seal)
		return;
	h->transport->seal(h, stream, true);
	h->transport->settle(h, stream, wait);
}

/* Context: h->control held */
static int htk_check_stream(struct htk *h, const struct htk_owner *owner,
			    u32 stream, u64 instance)
{
	if (stream >= h->core.caps.streams)
		return -EINVAL;
	if (h->claims[stream].owner != owner ||
	    h->claims[stream].instance != instance)
		return -EPERM;
	return 0;
}

/*
 * Mark a stream as being closed: programs can no longer map it, or submit its
 * bytes by HT_IOC_SUBMIT.  With virtio, the driver submits the bytes until
 * htk_seal().
 *
 * Context: h->control held
 */
static void htk_closing(struct htk *h, u32 stream)
{
	down_write(&h->map_sem);
	h->claims[stream].phase = HTK_CLOSING;
	up_write(&h->map_sem);
}

/*
 * Remove the owner of a closed stream.  Revoke all mappings of the stream and,
 * with virtio, release its memory.
 *
 * Context: h->control held
 */
static void htk_disown(struct htk *h, u32 stream)
{
	struct htk_owner *owner = h->claims[stream].owner;

	down_write(&h->map_sem);
	h->claims[stream].owner = NULL;
	unmap_mapping_range(h->mappings->i_mapping, HT_MMAP_RING(stream),
			    HT_MMAP_RING(1), 1);
	up_write(&h->map_sem);
	if (h->transport->ring_put)
		h->transport->ring_put(h, stream);
	/*
	 * Pairs with the load-acquire in htk_close_owner(): if that function
	 * loads 0, its caller htk_orphan_work() frees the owner.
	 */
	smp_store_release(&owner->open, owner->open - 1);
}

/*
 * Update the claim of a stream by the status of a reply to STREAM_OPEN.  BUSY
 * changes nothing.  OK marks the stream as open if it was being opened.  After
 * any other status the stream has no owner and no memory.
 *
 * Context: h->control held
 */
static void htk_open_reply(struct htk *h, const struct ht_msg_open *m)
{
	struct htk_claim *claim = &h->claims[m->stream];

	switch (m->h.status) {
	case HT_STATUS_BUSY:
		break;
	case HT_STATUS_OK:
		if (claim->phase != HTK_OPENING)
			break;
		if (h->transport->ring_opened)
			h->transport->ring_opened(h, m->stream);
		down_write(&h->map_sem);
		claim->phase = HTK_OPEN;
		up_write(&h->map_sem);
		break;
	default:
		htk_disown(h, m->stream);
	}
}

/*
 * Set ht_msg_open.memory to the address of the stream's table, or to 0.  A
 * program must not choose the address: the host would read memory of others.
 */
static void htk_announce(struct htk *h, struct ht_msg_open *m)
{
	m->memory = h->transport->ring_table ?
		    h->transport->ring_table(h, m->stream) : 0;
}

/* Context: h->control held */
static int htk_open_again(struct htk *h, struct htk_owner *owner,
			  struct ht_msg_open *m)
{
	u32 stream = m->stream;
	int ret = htk_check_stream(h, owner, stream, m->instance);

	if (ret)
		return ret;
	htk_announce(h, m);
	ret = h->transport->exchange(h, &m->h, sizeof(*m));
	m->memory = 0;
	if (ret)
		return ret;
	m->stream = stream;
	htk_open_reply(h, m);
	return 0;
}

/*
 * Open a stream.  For HT_STREAM_ANY the driver chooses the index, since the
 * memory of the stream must exist before the host opens it.  If the host needs
 * time, it replies BUSY and an instance, with which the caller sends the
 * message again.
 *
 * Context: h->control held
 */
static int htk_open_stream(struct htk *h, struct htk_owner *owner,
			   struct ht_msg_open *m)
{
	bool any = m->stream == HT_STREAM_ANY, closing = false;
	struct ht_msg_open request;
	u32 i, last = h->core.caps.streams;
	int ret;

	if (owner != &h->kernel)
		htk_origin_name(owner, m);
	request = *m;
	if (request.instance)
		return htk_open_again(h, owner, m);
	if (!any && request.stream >= last) {
		m->h.status = HT_STATUS_NOENT;
		return 0;
	}
	if (!htk_origin_may_open(h, owner)) {
		m->h.status = HT_STATUS_LIMIT;
		return 0;
	}
	for (i = any ? 0 : request.stream; i < last; i++) {
		const struct htk_claim *claim = &h->claims[i];

		ret = -EBUSY;
		if (!claim->owner)
			ret = h->transport->ring_get ?
			      h->transport->ring_get(h, i) : 0;
		else if (READ_ONCE(claim->owner->released))
			closing = true;
		if (!ret) {
			*m = request;
			m->stream = i;
			htk_announce(h, m);
			/*
			 * Let no signal end the exchange: a later close needs
			 * the instance in the reply.
			 */
			h->killable = false;
			ret = h->transport->exchange(h, &m->h, sizeof(*m));
			m->stream = i;
			m->memory = 0;
			if (!ret && m->instance) {
				down_write(&h->map_sem);
				h->claims[i] = (struct htk_claim) {
					.owner = owner,
					.instance = m->instance,
					.phase = HTK_OPENING,
				};
				up_write(&h->map_sem);
				owner->open++;
				htk_open_reply(h, m);
				return 0;
			}
			if (h->transport->ring_put)
				h->transport->ring_put(h, i);
			m->stream = request.stream;
			if (ret || m->h.status != HT_STATUS_EXIST)
				return ret;
		} else if (ret != -EBUSY) {
			return ret;
		}
		if (!any)
			break;
	}
	/*
	 * If a stream of a released file is being closed, answer BUSY without
	 * an instance, so that the caller tries again.
	 */
	*m = request;
	m->h.status = closing ? HT_STATUS_BUSY :
		      any ? HT_STATUS_LIMIT : HT_STATUS_EXIST;
	return 0;
}

/* Context: h->control held */
static int htk_close_stream(struct htk *h, struct ht_msg_stream *m,
			    struct htk_wait *wait)
{
	u32 stream = m->stream;
	int ret;

	htk_seal(h, stream, wait);
	ret = h->transport->exchange(h, &m->h, sizeof(*m));
	/*
	 * After a timeout the host may still close the stream.  Another error
	 * usually means that the message was not sent: then the stream stays
	 * open, so submit its bytes again.
	 */
	if (ret && ret != -ETIMEDOUT && h->transport->seal)
		h->transport->seal(h, stream, false);
	if (ret)
		return ret;
	switch (m->h.status) {
	case HT_STATUS_BUSY:
	case HT_STATUS_INVAL:
		break;
	default:
		/*
		 * This message or an earlier one, for example TAKEOVER, has
		 * closed the stream, or the device is being unplugged.
		 */
		htk_disown(h, stream);
	}
	return 0;
}

/*
 * Send STREAM_CLOSE or STREAM_FLUSH.  The device may need long to consume the
 * committed bytes: release h->control meanwhile, and then check again that the
 * owner has the stream.
 *
 * Context: h->life and h->control held
 */
static int htk_control_stream(struct htk *h, struct htk_owner *owner,
			      struct ht_msg_stream *m)
{
	int ret = htk_check_stream(h, owner, m->stream, m->instance);
	struct htk_wait wait;

	if (ret)
		return ret;
	if (m->h.type == HT_MSG_STREAM_CLOSE)
		htk_closing(h, m->stream);
	mutex_unlock(&h->control);
	htk_wait_start(&wait, owner != &h->kernel);
	htk_settle(h, m->stream, &wait);
	mutex_lock(&h->control);
	h->killable = owner != &h->kernel;
	if (h->gone)
		return -ENODEV;
	ret = htk_check_stream(h, owner, m->stream, m->instance);
	if (ret)
		return ret;
	if (m->h.type == HT_MSG_STREAM_CLOSE)
		return htk_close_stream(h, m, &wait);
	return h->transport->exchange(h, &m->h, sizeof(*m));
}

/*
 * Check whether an owner may send a message.  A program must not send
 * TIME_SYNC, which changes the dates of other programs' events, and also not
 * ENABLED, SETTINGS and TAKEOVER.  The driver sends TAKEOVER by htk_takeover().
 * A file that is open only for reading may send only CLASS_LIST and STATS.
 */
static bool htk_may_send(const struct htk *h, const struct htk_owner *owner,
			 u16 type)
{
	if (owner == &h->kernel)
		return type != HT_MSG_TAKEOVER;
	switch (type) {
	case HT_MSG_CLASS_LIST:
	case HT_MSG_STATS:
		return true;
	case HT_MSG_CLASS_REGISTER:
	case HT_MSG_STREAM_OPEN:
	case HT_MSG_STREAM_CLOSE:
	case HT_MSG_STREAM_FLUSH:
	case HT_MSG_DISCARDED:
		return owner->writable;
	default:
		return false;
	}
}

/* Context: h->life and h->control held */
static int htk_dispatch(struct htk *h, struct htk_owner *owner,
			struct ht_msg *msg, u32 room)
{
	int ret;

	switch (msg->type) {
	case HT_MSG_STREAM_OPEN:
		if (msg->size != sizeof(struct ht_msg_open))
			return -EINVAL;
		return htk_open_stream(h, owner, (struct ht_msg_open *)msg);
	case HT_MSG_STREAM_CLOSE:
	case HT_MSG_STREAM_FLUSH:
		if (msg->size != sizeof(struct ht_msg_stream))
			return -EINVAL;
		return htk_control_stream(h, owner, (struct ht_msg_stream *)msg);
	case HT_MSG_CLASS_REGISTER:
		ret = htk_origin_register(h, owner, msg, room);
		break;
	default:
		ret = h->transport->exchange(h, msg, room);
	}
	if (!ret && (msg->type == HT_MSG_CLASS_REGISTER ||
		     msg->type == HT_MSG_ENABLED))
		htk_enable_learn(h, msg, room);
	return ret;
}

/**
 * htk_takeover() - let the host close all streams that are open, such as those
 *                  of an earlier driver
 * @h: the device
 *
 * Context: no other thread uses the device yet, or h->control held
 *
 * Return: 0, or a negative errno.
 */
int htk_takeover(struct htk *h)
{
	struct ht_msg msg = {
		.type = HT_MSG_TAKEOVER,
		.size = sizeof(msg),
	};
	int ret = h->transport->exchange(h, &msg, sizeof(msg));

	if (!ret && msg.status != HT_STATUS_OK)
		ret = -EIO;
	return ret;
}

/**
 * htk_control() - exchange control messages, if their sender may send them
 * @h: the device
 * @owner: the sender
 * @msg: a message, or consecutive CLASS_REGISTER messages; the replies
 *       overwrite them
 * @room: size of @msg in bytes
 *
 * If a program is killed, it stops waiting for the host, except for the first
 * reply to STREAM_OPEN.  The kernel keeps waiting, even if the process that
 * unloads a module is killed, since the kernel's streams must be closed.
 *
 * Context: may sleep for seconds
 *
 * Return: 0, with the host's or the driver's status in the message, or a
 * negative errno: -EINVAL: a size, or the index of a stream to flush or close,
 * is out of range; -EPERM: the owner may not send the message, or does not own
 * the stream; -EINTR: killed before the exchange; -ENODEV: the device is away;
 * or an error of the exchange.
 */
int htk_control(struct htk *h, struct htk_owner *owner, struct ht_msg *msg,
		u32 room)
{
	u32 most;
	int ret = 0;

	if (room < sizeof(*msg))
		return -EINVAL;
	most = msg->type == HT_MSG_CLASS_REGISTER ? HT_MAILBOX_SIZE :
						    HT_MESSAGE_MAX;
	if (room > most || msg->size < sizeof(*msg) || msg->size > room)
		return -EINVAL;
	if (!htk_may_send(h, owner, msg->type))
		return -EPERM;
	if (owner == &h->kernel)
		down_read(&h->life);
	else if (down_read_killable(&h->life))
		return -EINTR;
	if (owner == &h->kernel)
		mutex_lock(&h->control);
	else
		ret = mutex_lock_killable(&h->control);
	if (!ret) {
		h->killable = owner != &h->kernel;
		ret = h->gone ? -ENODEV : htk_dispatch(h, owner, msg, room);
		h->killable = false;
		mutex_unlock(&h->control);
	}
	up_read(&h->life);
	return ret;
}

/*
 * Send STREAM_CLOSE: the first call asks the host to close the stream, and a
 * further call asks whether the stream is closed.
 *
 * Context: h->life held
 *
 * Return: 0: a reply other than BUSY; -EAGAIN: not yet; or another negative
 * errno.
 */
static int htk_send_close(struct htk *h, u32 stream)
{
	struct ht_ring_control *ring = h->transport->ring_addr(h, stream);
	struct ht_msg_stream m = {
		.h.type = HT_MSG_STREAM_CLOSE,
		.h.size = sizeof(m),
		.stream = stream,
		.lost = READ_ONCE(ring->guest.lost),
	};
	int ret;

	mutex_lock(&h->control);
	m.instance = h->claims[stream].instance;
	ret = h->transport->exchange(h, &m.h, sizeof(m));
	mutex_unlock(&h->control);
	return !ret && m.h.status == HT_STATUS_BUSY ? -EAGAIN : ret;
}

/*
 * Mark the streams of an owner, or all streams if @owner is NULL, as being
 * closed, and set their bits in @streams.
 */
static void htk_closing_all(struct htk *h, const struct htk_owner *owner,
			    unsigned long *streams)
{
	u32 i;

	bitmap_zero(streams, HT_STREAMS_MAX);
	mutex_lock(&h->control);
	for (i = 0; i < h->core.caps.streams; i++) {
		if (h->claims[i].owner &&
		    (!owner || h->claims[i].owner == owner)) {
			htk_closing(h, i);
			__set_bit(i, streams);
		}
	}
	mutex_unlock(&h->control);
}

/**
 * htk_close_streams() - close the streams of an owner, or all streams
 * @h: the device
 * @owner: the owner; NULL: all streams of a device whose @gone is set
 *
 * The streams have no other user: the owner's file was released, the kernel no
 * longer uses them, or h->life is held for writing.
 *
 * The host closes the streams concurrently.  While it replies BUSY for a
 * stream, repeat the request, until a wait of 5 s (struct htk_wait) is over.
 * Then, or after an error, give up: remove the stream's owner.  A host that
 * continues later closes the stream.
 *
 * Context: h->life held
 */
void htk_close_streams(struct htk *h, const struct htk_owner *owner)
{
	DECLARE_BITMAP(open, HT_STREAMS_MAX);
	struct htk_wait wait;
	bool over = false;
	u32 i;
	int ret;

	htk_closing_all(h, owner, open);
	/* Submit as much of all streams as possible before the first wait. */
	for_each_set_bit(i, open, HT_STREAMS_MAX) {
		if (h->transport->drain)
			h->transport->drain(h, i);
	}
	htk_wait_start(&wait, false);
	for_each_set_bit(i, open, HT_STREAMS_MAX) {
		htk_settle(h, i, &wait);
		htk_seal(h, i, &wait);
	}

	while (!bitmap_empty(open, HT_STREAMS_MAX)) {
		for_each_set_bit(i, open, HT_STREAMS_MAX) {
			ret = htk_send_close(h, i);
			if (ret == -EAGAIN && !over)
				continue;
			/*
			 * ENODEV: the host has ended, or a new host has
			 * attached.  The next host reads the ring's events and
			 * the number of discarded events at the takeover, so
			 * this needs no warning.
			 */
			if (ret && ret != -ENODEV)
				dev_warn_ratelimited(h->dev,
						     "stream %u: the host did not close it (%d)\n",
						     i, ret);
			mutex_lock(&h->control);
			htk_disown(h, i);
			mutex_unlock(&h->control);
			__clear_bit(i, open);
		}
		if (bitmap_empty(open, HT_STREAMS_MAX))
			break;
		usleep_range(100, 1000);
		over = htk_wait_over(&wait);
	}
}

/**
 * htk_close_owner() - close all streams of an owner
 * @owner: a file that was released, or the kernel, which no longer uses its
 *         streams
 *
 * A host that answers in time gets all committed events first.
 *
 * Context: may sleep for seconds if the host does not answer
 */
void htk_close_owner(struct htk_owner *owner)
{
	struct htk *h = owner->h;

	/*
	 * Do not wait for h->life if the owner has no streams.  Pairs with the
	 * store-release in htk_disown().
	 */
	if (!smp_load_acquire(&owner->open))
		return;
	down_read(&h->life);
	htk_close_streams(h, owner);
	up_read(&h->life);
}
