/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest (what=registers): access the registers in BAR 0 and the
 * mailbox as no driver does, and send random messages
 */
#include "hostile.h"
#include "internal.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"

/* number of access widths: 1, 2, 4 and 8 bytes */
#define WIDTHS          4
/*
 * number of message types to try: those of all known messages, 0, and the first
 * number that is no type
 */
#define TYPES           (HT_MSG_SETTINGS + 2)

/* types to access a register at any address, also at a misaligned one */
typedef volatile struct ht_packed16 any_reg16_t;
typedef volatile struct ht_packed32 any_reg32_t;
typedef volatile struct ht_packed64 any_reg64_t;

static uint64_t read_any(const uint8_t *p, unsigned width)
{
    switch (width) {
    case 0:
        return ht_bm_read8(p);
    case 1:
        return ((const any_reg16_t *)p)->v;
    case 2:
        return ((const any_reg32_t *)p)->v;
    default:
        return ((const any_reg64_t *)p)->v;
    }
}

static void write_any(uint8_t *p, unsigned width, uint64_t v)
{
    switch (width) {
    case 0:
        ht_bm_write8(p, v);
        break;
    case 1:
        ((any_reg16_t *)p)->v = v;
        break;
    case 2:
        ((any_reg32_t *)p)->v = v;
        break;
    default:
        ((any_reg64_t *)p)->v = v;
        break;
    }
}

static void read_bytes(uint8_t *to, const uint8_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        to[i] = ht_bm_read8(from + i);
    }
}

/*
 * Check at every @step-th offset of BAR 0, aligned or not, that reads of 2, 4
 * and 8 bytes return the same values as reads of single bytes
 */
static void check_reads(struct ht_bm_device *d, unsigned step)
{
    uint64_t size = d->bar[HT_PCI_BAR_REGS].size;
    uint8_t caps[sizeof(d->dev.caps)];
    unsigned wrong = 0;

    read_bytes(caps, d->regs, sizeof(caps));
    hostile_check("the capabilities",
                  memcmp(caps, &d->dev.caps, sizeof(caps)), 0);
    for (uint64_t i = 0; i < size; i += step) {
        uint8_t bytes[8] = { 0 };
        uint64_t left = size - i < 8 ? size - i : 8;

        read_bytes(bytes, d->regs + i, left);
        for (unsigned w = 0; w < WIDTHS && (1u << w) <= left; w++) {
            uint64_t want = 0;

            memcpy(&want, bytes, 1u << w);
            wrong += read_any(d->regs + i, w) != want;
        }
    }
    hostile_check("reads that differ", wrong, 0);
}

static void check_writes(struct ht_bm_device *d, unsigned step)
{
    uint64_t size = d->bar[HT_PCI_BAR_REGS].size;

    for (unsigned w = 0; w < WIDTHS; w++) {
        for (uint64_t i = 0; i + (1u << w) <= size; i += step) {
            write_any(d->regs + i, w, hostile_random());
        }
    }
}

static void check_mailbox(struct ht_bm_device *d)
{
    uint8_t *mailbox = d->ram + d->dev.caps.mailbox_offset;
    unsigned wrong = 0;

    for (unsigned i = 0; i < 1000; i++) {
        unsigned w = hostile_below(WIDTHS);
        unsigned at = hostile_below(HT_MESSAGE_MAX - (1u << w) + 1);
        uint64_t v = hostile_random();

        write_any(mailbox + at, w, v);
        if (w < 3) {
            v &= (1ull << (8u << w)) - 1;
        }
        wrong += read_any(mailbox + at, w) != v;
    }
    hostile_check("mailbox bytes that differ", wrong, 0);
}

/*
 * Make a random message, of which some parts may be valid. Return the size to
 * write to the register `go`: the message's size, or in one case of eight a
 * random number
 */
static uint32_t random_message(uint8_t *msg)
{
    static const uint8_t sizes[TYPES] = {
        [HT_MSG_CLASS_REGISTER] = sizeof(struct ht_msg_class) + 4,
        [HT_MSG_CLASS_LIST] = sizeof(struct ht_msg_class),
        [HT_MSG_STREAM_OPEN] = sizeof(struct ht_msg_open),
        [HT_MSG_STREAM_CLOSE] = sizeof(struct ht_msg_stream),
        [HT_MSG_STREAM_FLUSH] = sizeof(struct ht_msg_stream),
        [HT_MSG_TIME_SYNC] = sizeof(struct ht_msg_time),
        [HT_MSG_STATS] = sizeof(struct ht_msg_stats),
        [HT_MSG_TAKEOVER] = sizeof(struct ht_msg),
        [HT_MSG_DISCARDED] = sizeof(struct ht_msg_discarded),
        /*
         * With these types, the reply may need more bytes than the request's
         * header: leave room for 32 more bytes.
         */
        [HT_MSG_ENABLED] = sizeof(struct ht_msg_enabled) + 32,
        [HT_MSG_SETTINGS] = sizeof(struct ht_msg_settings) + 32,
    };
    struct ht_msg *h = (struct ht_msg *)msg;

    hostile_fill(msg, 128);
    if (hostile_below(2)) {
        /*
         * In half of the cases use small numbers: the message may then have
         * valid indexes, counts and lengths.
         */
        for (unsigned i = sizeof(*h); i < 128; i++) {
            msg[i] = i % 4 ? 0 : hostile_below(4);
        }
    }
    h->type = hostile_below(TYPES);
    h->size = sizes[h->type];
    if (hostile_below(4) == 0) {
        h->size += hostile_below(64) - 32;
    }
    return hostile_below(8) ? h->size : hostile_random();
}

static void check_messages(struct ht_bm_device *d)
{
    static const uint32_t sizes[] = {
        0, 1, sizeof(struct ht_msg) - 1, HT_MESSAGE_MAX - 1, HT_MESSAGE_MAX,
        HT_MESSAGE_MAX + 1, INT32_MAX, 0x80000000u, UINT32_MAX,
    };
    uint8_t *mailbox = d->ram + d->dev.caps.mailbox_offset;
    uint8_t *go = d->regs + HT_REG_MAILBOX_GO;
    uint64_t msg[16];

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        /*
         * Write the size to the message's header, then to the register `go`,
         * which sends the message.
         */
        ht_bm_write32(mailbox + 4, sizes[i]);
        ht_bm_write32(go, sizes[i]);
    }
    for (unsigned i = hostile_rounds(500); i; i--) {
        uint32_t size = random_message((uint8_t *)msg);

        for (unsigned k = 0; k < sizeof(msg) / 8; k++) {
            *(volatile uint64_t *)(mailbox + 8 * k) = msg[k];
        }
        ht_bm_write32(go, size);
    }
}

void hostile_registers(unsigned index)
{
    struct ht_bm_device *d = hostile_open(index);
    struct honest *h = honest_new();
    struct ht_stats before, after;

    if (!d->regs) {
        payload_die(PAYLOAD_USAGE, "the device has no registers", NULL);
    }
    honest_open(h, d);
    honest_emit(h, 10);
    hostile_check("statistics",
                  ht_get_stats(&d->dev, HT_STREAM_ANY, &before), 0);
    check_reads(d, hostile_step());
    check_writes(d, hostile_step());
    check_mailbox(d);
    hostile_check("statistics",
                  ht_get_stats(&d->dev, HT_STREAM_ANY, &after), 0);
    hostile_check("errors are counted", after.errors > before.errors, true);
    honest_emit(h, 10);
    honest_close(h, index);
    /*
     * No stream is open here, because a random message may be a valid takeover,
     * which would close it.
     */
    check_messages(d);

    d = hostile_open(index);
    honest_open(h, d);
    honest_emit(h, 10);
    honest_close(h, index);
    ht_bm_close(d);
}
