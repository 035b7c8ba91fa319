/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: declarations shared by the files of the core
 */
#ifndef HT_CORE_H
#define HT_CORE_H

#include "hypertrace/port.h"

static inline uint32_t ht_packet_bytes(const struct ht_stream *s)
{
    return 1u << s->packet_shift;
}

static inline struct ht_packet *ht_packet_at(const struct ht_stream *s,
                                             uint64_t packet)
{
    return (struct ht_packet *)
        (s->packets + ((packet & s->packets_mask) << s->packet_shift));
}

/* switch.c: slow paths of emits to the streams that ht_stream_open() opens */
extern const struct ht_slow ht_slow;

/**
 * ht_head() - get the position after the last event of the open packet; if no
 *             packet is open, the start of the next packet
 * @s: an open stream whose @busy the caller has set
 */
static inline uint64_t ht_head(const struct ht_stream *s)
{
    return s->cur ? s->base + (uintptr_t)s->cur :
                    s->packet << s->packet_shift;
}

/**
 * ht_no_packet() - set the members that say that no packet is open
 * @s: a stream whose @busy the caller has set
 */
static inline void ht_no_packet(struct ht_stream *s)
{
    s->cur = NULL;
    s->end = NULL;
    s->packet_end = NULL;
}

/* control.c: convert an enum ht_status to 0 or a negative errno */
int ht_status_errno(int status);

/*
 * control.c: get the number of bytes of a request, and limit *@size, the room
 * for the reply, to the mailbox's size.  Returns 0 if the request is invalid.
 */
uint32_t ht_request_check(const struct ht_device *dev,
                          const struct ht_msg *msg, uint32_t *size);

/**
 * ht_ring_doorbell() - kick the host to poll a stream now
 * @s: an open stream of channel hypercall or shm whose @busy the caller has set
 */
static inline void ht_ring_doorbell(struct ht_stream *s)
{
    s->doorbells++;
    s->dev->ops->doorbell(s->dev, s->index);
}

#endif /* HT_CORE_H */
