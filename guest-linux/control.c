// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: control messages, and the owners of streams
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/mm.h>

#include "htk.h"

/* Mappings ---------------------------------------------------------------- */

/* Context: h->map_sem held for writing */
static void htk_revoke(struct htk *h, u32 stream)
{
	unmap_mapping_range(h->mappings->i_mapping, HT_MMAP_RING(stream),
			    HT_MMAP_RING(1), 1);
}

/**
 * htk_revoke_all() - take all stream memory from the programs that map it
 * @h: the device
 *
 * Context: h->map_sem held for writing
 */
void htk_revoke_all(struct htk *h)
{
	unmap_mapping_range(h->mappings->i_mapping, 0, 0, 1);
}

/* Streams ----------------------------------------------------------------- */

/*
 * Virtio: have the device take all that was committed, so that what the
 * message asks for covers it.  Goes on when @wait is over in any case.
 *
 * Context: h->life held, h->control not: others need not wait
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
 * Virtio: hand over nothing behind STREAM_CLOSE, which the device would return
 * unread.  What the timer handed over since htk_settle() is waited for.
 *
 * Context: h->control held, or nobody else uses the stream: one that is opened
 * meanwhile would be sealed
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
 * Nothing is submitted by its owner any more: what the device still has only
 * gets less.
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
 * The stream is closed: no mapping of it may stay.
 *
 * Context: h->control held
 */
static void htk_disown(struct htk *h, u32 stream)
{
	struct htk_owner *owner = h->claims[stream].owner;

	down_write(&h->map_sem);
	h->claims[stream].owner = NULL;
	htk_revoke(h, stream);
	up_write(&h->map_sem);
	h->transport->ring_put(h, stream);
	/* Pairs with htk_close_owner(), which may free it from now on. */
	smp_store_release(&owner->open, owner->open - 1);
}

/*
 * What became of a message that opens, of which @claim says whose it is.
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
		h->transport->ring_opened(h, m->stream);
		down_write(&h->map_sem);
		claim->phase = HTK_OPEN;
		up_write(&h->map_sem);
		break;
	default:
		htk_disown(h, m->stream);
	}
}

/* Set the address of the stream's memory; a program could name any memory. */
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
 * The driver chooses the stream, since its memory comes first.  The host opens
 * it in its own time: the message then comes again, with the instance.
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
			ret = h->transport->ring_get(h, i);
		else if (READ_ONCE(claim->owner->released))
			closing = true;
		if (!ret) {
			*m = request;
			m->stream = i;
			htk_announce(h, m);
			/* Without the reply nobody could close the stream. */
			h->killable = false;
			ret = h->transport->exchange(h, &m->h, sizeof(*m));
			m->stream = i;
			m->memory = 0;
			if (!ret && m->instance) {
				h->claims[i].owner = owner;
				owner->open++;
				h->claims[i].instance = m->instance;
				h->claims[i].phase = HTK_OPENING;
				htk_open_reply(h, m);
				return 0;
			}
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
	/* Streams of closed files come free: BUSY without an instance. */
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
	/* Unless the device has the message, the stream is still open. */
	if (ret && ret != -ETIMEDOUT && h->transport->seal)
		h->transport->seal(h, stream, false);
	if (ret)
		return ret;
	switch (m->h.status) {
	case HT_STATUS_BUSY:
	case HT_STATUS_INVAL:
		break;
	default:
		/* Closed now, or was: after a takeover, for example. */
		htk_disown(h, stream);
	}
	return 0;
}

/*
 * STREAM_CLOSE, STREAM_FLUSH.  The device may take its time for what was
 * committed, so h->control is let go meanwhile; the claim is looked at again.
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
 * Tell whether an owner may send a message.  A program may not send TIME_SYNC,
 * which dates the events of others.  Only the driver sends ENABLED and TAKEOVER.
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
		if (owner != &h->kernel)
			ret = htk_origin_register(h, owner, msg, room);
		else
			ret = htk_origin_kernel(h, msg, room);
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
 * htk_takeover() - close the streams that an earlier driver has left
 * @h: the device, which no other thread uses yet, or with h->control held
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
 * htk_control() - exchange control messages, if @owner may
 * @h: the device
 * @owner: the sender
 * @msg: as ht_port_ops.control() has it.  The device accepts no messages after
 *       the first but those that register classes
 * @room: bytes at @msg
 *
 * A program that is killed does not wait for the host.  What unloads a module
 * does, since it has to close the kernel's streams.
 *
 * Return: 0, the status being in the message, or a negative errno.
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
 * Tell the host to close a stream, and ask how far that is: a message that is
 * sent again asks, since its instance says what it is about.
 *
 * Return: 0: closed; -EAGAIN: not yet; or why it cannot be told.
 *
 * Context: h->life held
 */
static int htk_send_close(struct htk *h, u32 stream)
{
	struct ht_ring_control *ring = h->transport->ring_addr(h, stream);
	struct ht_msg_stream m = {
		.h.type = HT_MSG_STREAM_CLOSE,
		.h.size = sizeof(m),
		.stream = stream,
		.instance = h->claims[stream].instance,
		.lost = READ_ONCE(ring->guest.lost),
	};
	int ret;

	mutex_lock(&h->control);
	ret = h->transport->exchange(h, &m.h, sizeof(m));
	mutex_unlock(&h->control);
	return !ret && m.h.status == HT_STATUS_BUSY ? -EAGAIN : ret;
}

/* The streams of @owner, or of all, from now on without a submitter */
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

/*
 * Nobody else uses what is closed: a file that is released has no user, and
 * with h->life held for writing nobody has.
 *
 * The host closes all of them at the same time, and is waited for once,
 * whatever their number.  If it hangs, it is told to close all in any case: it
 * does so in its own time, and the streams can be opened again afterwards.
 *
 * Context: h->life held
 */
static void htk_close_streams(struct htk *h, const struct htk_owner *owner)
{
	DECLARE_BITMAP(open, HT_STREAMS_MAX);
	struct htk_wait wait;
	bool over = false;
	u32 i;
	int ret;

	htk_closing_all(h, owner, open);
	/* What fits is handed over of all before one is waited for. */
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
			/* ENODEV: there is no host, or one without streams. */
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
 * htk_close_owner() - close what a file that is released, or the kernel, has
 * @owner: who does not use it any more
 *
 * What was committed is delivered first.
 * Context: may sleep for seconds, if the host does not answer
 */
void htk_close_owner(struct htk_owner *owner)
{
	struct htk *h = owner->h;

	/* Pairs with htk_disown().  Without streams there is no wait. */
	if (!smp_load_acquire(&owner->open))
		return;
	down_read(&h->life);
	htk_close_streams(h, owner);
	up_read(&h->life);
}

/**
 * htk_close_all() - close all streams: the device goes, or is suspended
 * @h: the device, whose @gone is set
 *
 * Context: h->life held for writing
 */
void htk_close_all(struct htk *h)
{
	htk_close_streams(h, NULL);
}
