/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: control messages through memory, without an exit
 *
 * The host polls the number of the last request.  Request and reply have
 * separate areas.  The guest clears the reply area before it sends a request;
 * else only the host writes to the reply area.  Guest and host can each end at
 * any instant.
 */
#include "core.h"

#define LOST_MS         HT_BEAT_LOST_MS
/* maximum wait for a reply from a host whose beat advances, in ms */
#define ANSWER_MS       5000u

/* Set @read_at to now; returns by how many ms it grew, at most LOST_MS / 2 */
static uint32_t passed(struct ht_device *dev, struct ht_link *l)
{
    const uint64_t now = l->now(dev), ms = now - l->read_at;

    l->read_at = now;
    return ms < LOST_MS / 2 ? ms : LOST_MS / 2;
}

/*
 * Read the host's beat, @ms after the last read.  Returns false if the beat has
 * not changed for LOST_MS, or not yet since ht_link_init().
 */
static bool beats(struct ht_link *l, uint32_t ms)
{
    const uint64_t beat = ht_load_relaxed(&l->mem->beat);

    if (beat != l->beat) {
        l->beat = beat;
        l->still_ms = 0;
    } else if (l->still_ms < LOST_MS) {
        l->still_ms += ms;
    }
    return l->still_ms < LOST_MS;
}

void ht_link_init(struct ht_device *dev, struct ht_link *l)
{
    l->epoch = 0;
    l->beat = ht_load_relaxed(&l->mem->beat);
    l->read_at = l->now(dev);
    l->still_ms = LOST_MS;
    l->go = 0;
    l->pending = false;
}

bool ht_link_beats(struct ht_device *dev, struct ht_link *l)
{
    return beats(l, passed(dev, l));
}

bool ht_link_renewed(const struct ht_link *l)
{
    return ht_load_relaxed(&l->mem->caps.epoch) != l->epoch;
}

void ht_link_caps(const struct ht_device *dev, const struct ht_link *l,
                    struct ht_caps *caps)
{
    const struct ht_caps *now = &l->mem->caps;

    ht_copy(caps, &dev->caps, sizeof(*caps));
    caps->epoch = ht_load_relaxed(&now->epoch);
    caps->clock_hz = ht_load_relaxed(&now->clock_hz);
    caps->enable_seq = ht_load_relaxed32(&now->enable_seq);
}

static bool equal(const struct ht_caps *a, const struct ht_caps *b)
{
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
    unsigned i;

    for (i = 0; i < sizeof(*a); i++) {
        if (x[i] != y[i]) {
            return false;
        }
    }
    return true;
}

int ht_link_attach(struct ht_device *dev, struct ht_link *l)
{
    struct ht_caps expected, caps;

    if (!ht_link_beats(dev, l)) {
        return -ENODEV;
    }
    /* Pairs with the host's store-release of the epoch. */
    l->epoch = ht_load_acquire(&l->mem->caps.epoch);
    ht_link_caps(dev, l, &expected);
    expected.epoch = l->epoch;
    ht_copy(&caps, &l->mem->caps, sizeof(caps));
    /* The host may change the capabilities: use the copy only. */
    ht_compiler_barrier();
    caps.epoch = expected.epoch;
    caps.clock_hz = expected.clock_hz;
    caps.enable_seq = expected.enable_seq;
    if (!equal(&caps, &expected)) {
        return -EPROTO;
    }
    ht_copy(&dev->caps, &expected, sizeof(expected));
    l->pending = false;
    return 0;
}

/* Wait until the host has executed request @go; 0, or a negative errno */
static int await(struct ht_device *dev, struct ht_link *l, uint32_t go)
{
    uint32_t waited = 0, ms;
    unsigned tries = 0;
    int r;

    for (;;) {
        /*
         * Pairs with the host's store-release of `done` after it has written
         * the reply.
         */
        const bool done = ht_load_acquire32(&l->mem->done) == go;

        /*
         * Load the epoch after `done`.  A host that attaches stores a new epoch
         * before it sets `done` for a request that it did not execute.
         */
        if (ht_link_renewed(l)) {
            return -ENODEV;
        }
        if (done) {
            return 0;
        }
        ms = passed(dev, l);
        waited += ms;
        if (!beats(l, ms)) {
            return -ENODEV;
        }
        if (waited >= ANSWER_MS) {
            return -ETIMEDOUT;
        }
        r = l->pause(dev, tries < 20 ? ++tries : tries);
        if (r) {
            return r;
        }
    }
}

/*
 * Wait until the host no longer uses the request and reply areas: it may be
 * executing an earlier request, for example from before the guest's last
 * reboot.
 */
static int await_earlier(struct ht_device *dev, struct ht_link *l)
{
    int r;

    if (!ht_link_beats(dev, l)) {
        return -ENODEV;
    }
    if (l->pending) {
        if (ht_link_renewed(l)) {
            return -ENODEV;
        }
        /* Pairs with the host's store-release of `done`. */
        if (ht_load_acquire32(&l->mem->done) != l->go) {
            return -EBUSY;
        }
        l->pending = false;
    }
    l->go = ht_load_relaxed32(&l->mem->go);
    r = await(dev, l, l->go);
    if (r == -ETIMEDOUT) {
        /* Until the host answers, further calls fail without another wait. */
        l->pending = true;
        return -EBUSY;
    }
    return r;
}

int ht_memory_exchange(struct ht_device *dev, struct ht_link *l,
                       struct ht_msg *msg, uint32_t size)
{
    uint8_t *box = (uint8_t *)l->mem + dev->caps.mailbox_offset;
    uint8_t *reply = box + dev->caps.mailbox_size;
    const uint32_t bytes = ht_request_check(dev, msg, &size);
    int r;

    if (!bytes) {
        return -EINVAL;
    }
    r = await_earlier(dev, l);
    if (r) {
        return r;
    }
    ht_copy(box, msg, bytes);
    /*
     * Clear the reply area, which holds an earlier reply: if the host ends now,
     * that reply must not be taken for the reply to this message.
     */
    ht_zero(reply, size);
    ht_store_relaxed32(&l->mem->bytes, bytes);
    ht_store_relaxed(&l->mem->to, l->epoch);
    l->go = ht_load_relaxed32(&l->mem->done) + 1;
    l->pending = true;
    /* Pairs with the host's load-acquire of `go` before it copies. */
    ht_store_release32(&l->mem->go, l->go);
    r = await(dev, l, l->go);
    if (r) {
        return r;
    }
    l->pending = false;
    return ht_reply_take(msg, reply, size, size) ? 0 : -EIO;
}
