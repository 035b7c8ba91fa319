/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest (what=virtqueues): use virtqueues that break virtio's
 * rules, and pass buffers in the registers of devices
 *
 * The attacker enables the interrupt pin of the device, because QEMU's code for
 * the pin needs the big QEMU lock, also if another thread than the vCPU's finds
 * the fault.
 */
#include "hostile.h"
#include "io.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"
#include "virtqueue.h"

#define DESC_F_NEXT             1
#define DESC_F_WRITE            2
#define DESC_F_INDIRECT         4

#define COMMON_STATUS           0x14
#define STATUS_NEEDS_RESET      0x40

#define PCI_INTERRUPT_LINE      0x3c
#define PIC_MASTER              0x20
#define PIC_SLAVE               0xa0
#define PIC_READ_IRR            0x0a

#define WAIT_MS                 5000
#define RANDOM_WAIT_MS          20
/*
 * number of descriptors in the indirect table: more than a queue of QEMU may
 * have
 */
#define TABLE                   2048

enum attack {
    ZERO_LENGTH, LOOP, NEXT_OUT, HEAD_OUT, INDEX_JUMP, INDIRECT_LENGTH,
    INDIRECT_LOOP, INDIRECT_LONG, WRONG_ORDER, LONG_CHAIN, WHOLE_MEMORY,
    NO_MEMORY, NO_TABLE, OWN_REGISTERS, OTHER_REGISTERS,
    ATTACKS,
};

enum outcome { BROKEN, TAKEN, EITHER, ANY };

static const struct {
    const char *name;
    enum outcome outcome;
} attacks[ATTACKS] = {
    [ZERO_LENGTH] = { "descriptor of length 0", BROKEN },
    [LOOP] = { "chain that is a loop", BROKEN },
    [NEXT_OUT] = { "next descriptor out of range", BROKEN },
    [HEAD_OUT] = { "first descriptor out of range", BROKEN },
    [INDEX_JUMP] = { "index ahead of the ring", EITHER },
    [INDIRECT_LENGTH] = { "indirect table of half a descriptor", BROKEN },
    [INDIRECT_LOOP] = { "indirect table that is a loop", BROKEN },
    [INDIRECT_LONG] = { "indirect table longer than can be", BROKEN },
    [WRONG_ORDER] = { "buffers in the wrong order", BROKEN },
    [LONG_CHAIN] = { "chain of the whole queue", TAKEN },
    [WHOLE_MEMORY] = { "buffers of 4 GiB", EITHER },
    [NO_MEMORY] = { "buffer where nothing is", EITHER },
    [NO_TABLE] = { "indirect table where nothing is", EITHER },
    /*
     * On the control queue, the device writes its reply to its own registers,
     * which may disable the queue or the device. So any outcome is right.
     */
    [OWN_REGISTERS] = { "buffer in the device's own registers", ANY },
    [OTHER_REGISTERS] = { "buffer in another device's registers", EITHER },
};

struct attacker {
    unsigned index;
    struct ht_bm_device *d;
    /*
     * the hypertrace device with the number @index + 1, which must have a ring,
     * so its registers are in BAR 0; NULL if there is no such device
     */
    struct ht_bm_device *other;
    struct ht_bm_desc *table;
    uint8_t *buffer;
    uint8_t irq;
};

static void desc_set(struct ht_bm_desc *d, uint64_t addr, uint32_t len,
                     uint16_t flags, uint16_t next)
{
    d->addr = addr;
    d->len = len;
    d->flags = flags;
    d->next = next;
}

/*
 * Get the address of a random register: of @a->other if @attack is
 * OTHER_REGISTERS and @a->other is not NULL, else of @a->d
 */
static uint64_t random_register(struct attacker *a, enum attack attack)
{
    struct ht_bm_device *d = a->d;

    if (attack == OTHER_REGISTERS && a->other) {
        uint64_t size = a->other->bar[HT_PCI_BAR_REGS].size;

        return a->other->bar[HT_PCI_BAR_REGS].base +
               (hostile_below(2) ? HT_REG_MAILBOX_GO : hostile_below(size));
    }
    switch (hostile_below(4)) {
    case 0:
        return (uintptr_t)d->common + hostile_below(0x38);
    case 1:
        return (uintptr_t)d->config + hostile_below(sizeof(struct ht_caps));
    case 2:
        return (uintptr_t)d->notify + hostile_below(d->notify_size);
    default:
        return (uintptr_t)d->common + COMMON_STATUS;
    }
}

static void write_descs(struct attacker *a, struct ht_bm_vq *vq,
                        enum attack attack)
{
    struct ht_bm_desc *desc = vq->desc;
    uint64_t buffer = (uintptr_t)a->buffer;
    uint64_t table = (uintptr_t)a->table;

    desc_set(&desc[0], buffer, 64, 0, 0);
    switch (attack) {
    case ZERO_LENGTH:
        desc[0].len = 0;
        break;
    case LOOP:
        for (unsigned i = 0; i < vq->size; i++) {
            desc_set(&desc[i], buffer, 64, DESC_F_NEXT, (i + 1) % vq->size);
        }
        break;
    case NEXT_OUT:
        desc[0].flags = DESC_F_NEXT;
        desc[0].next = vq->size + hostile_below(UINT16_MAX - vq->size);
        break;
    case INDIRECT_LENGTH:
        desc_set(&desc[0], table, sizeof(*desc) / 2, DESC_F_INDIRECT, 0);
        break;
    case INDIRECT_LOOP:
        desc_set(&desc[0], table, 2 * sizeof(*desc), DESC_F_INDIRECT, 0);
        desc_set(&a->table[0], buffer, 64, DESC_F_NEXT, 1);
        desc_set(&a->table[1], buffer, 64, DESC_F_NEXT, 0);
        break;
    case INDIRECT_LONG:
        desc_set(&desc[0], table, TABLE * sizeof(*desc), DESC_F_INDIRECT, 0);
        for (unsigned i = 0; i < TABLE; i++) {
            desc_set(&a->table[i], buffer, 1,
                     i + 1 < TABLE ? DESC_F_NEXT : 0, i + 1);
        }
        break;
    case WRONG_ORDER:
        desc_set(&desc[0], buffer, 64, DESC_F_WRITE | DESC_F_NEXT, 1);
        desc_set(&desc[1], buffer, 64, 0, 0);
        break;
    case LONG_CHAIN:
        for (unsigned i = 0; i < vq->size; i++) {
            desc_set(&desc[i], buffer + i, 1,
                     i + 1 < vq->size ? DESC_F_NEXT : 0, i + 1);
        }
        break;
    case WHOLE_MEMORY:
        for (unsigned i = 0; i < vq->size; i++) {
            desc_set(&desc[i], 0, UINT32_MAX,
                     i + 1 < vq->size ? DESC_F_NEXT : 0, i + 1);
        }
        break;
    case NO_MEMORY:
        desc[0].addr = 1ull << (40 + hostile_below(23));
        break;
    case NO_TABLE:
        desc_set(&desc[0], 1ull << (40 + hostile_below(23)),
                 4 * sizeof(*desc), DESC_F_INDIRECT, 0);
        break;
    case OWN_REGISTERS:
    case OTHER_REGISTERS:
        /*
         * The first descriptor points to the buffer or to registers, the second
         * one to registers. On the control queue, the device reads a message
         * from the first and writes the reply to the second; on a data queue,
         * it reads both.
         */
        desc_set(&desc[0], hostile_below(2) ? buffer :
                 random_register(a, attack), 64, DESC_F_NEXT, 1);
        desc_set(&desc[1], random_register(a, attack),
                 16 + hostile_below(64), DESC_F_WRITE, 0);
        if (vq->index != HT_VQ_CONTROL) {
            desc[1].flags = 0;
        }
        break;
    default:
        break;
    }
}

static void start(struct attacker *a, struct ht_bm_vq *vq, enum attack attack)
{
    uint16_t head = attack == HEAD_OUT ? vq->size + hostile_below(1000) : 0;
    uint16_t ahead = 1;

    write_descs(a, vq, attack);
    if (attack == INDEX_JUMP) {
        ahead += vq->size + hostile_below(1000);
    }
    for (unsigned i = 0; i < vq->size; i++) {
        vq->avail.ring[i] = head;
    }
    /* Store the ring before idx, which the device loads first. */
    __atomic_store_n(&vq->avail.idx, (uint16_t)(vq->avail_idx + ahead),
                     __ATOMIC_RELEASE);
    ht_bm_write16(vq->notify, vq->index);
}

static bool interrupt_pending(struct attacker *a)
{
    uint16_t port = a->irq < 8 ? PIC_MASTER : PIC_SLAVE;

    outb(port, PIC_READ_IRR);
    return inb(port) >> (a->irq % 8) & 1;
}

static void check_outcome(struct attacker *a, struct ht_bm_vq *vq,
                          enum attack attack)
{
    enum outcome outcome = attacks[attack].outcome;
    const char *name = attacks[attack].name;
    unsigned ms = outcome == ANY ? RANDOM_WAIT_MS : WAIT_MS;
    uint16_t before = vq->used_idx;
    struct ht_bm_wait wait;
    uint8_t status;
    bool taken;

    ht_bm_wait_start(&wait, a->d->dev.caps.clock_hz, ms);
    do {
        status = ht_bm_read8(a->d->common + COMMON_STATUS);
        taken = __atomic_load_n(&vq->used.idx, __ATOMIC_ACQUIRE) != before;
    } while (status && !(status & STATUS_NEEDS_RESET) && !taken &&
             !ht_bm_wait_over(&wait));
    if (outcome == ANY) {
        return;
    }
    if (status & STATUS_NEEDS_RESET) {
        hostile_check(name, outcome == TAKEN, false);
        hostile_check("the interrupt of a broken device",
                      interrupt_pending(a), true);
    } else {
        hostile_check(name, outcome == BROKEN, false);
        hostile_check(name, taken, true);
    }
}

static void take_over(struct attacker *a)
{
    uint32_t command;

    a->d = hostile_open(a->index);
    /* Enable the pin, which the bare-metal port disabled in ht_bm_open(). */
    command = ht_bm_pci_read(a->d, HT_BM_PCI_COMMAND) & 0xffff;
    ht_bm_pci_write(a->d, HT_BM_PCI_COMMAND,
                    command & ~HT_BM_PCI_CMD_NO_INTX);
}

static void attack_queue(struct attacker *a, enum attack attack,
                         unsigned queue, bool wait)
{
    struct honest *h = honest_new();
    struct ht_stream s;
    struct ht_msg *msg = (struct ht_msg *)a->buffer;
    struct ht_bm_vq *vq;

    take_over(a);
    hostile_stream(a->d, &s, "attacked");
    honest_open(h, a->d);
    honest_emit(h, 5);
    honest_flush(h);
    vq = queue == HT_VQ_CONTROL ? a->d->control : a->d->data[s.index];
    /*
     * Write a message of an unknown type. The reply begins with the same type.
     * If the device writes the reply to its own registers, this value may
     * disable or reset the device.
     */
    memset(a->buffer, 0, HT_MESSAGE_MAX);
    msg->type = 0x100 * hostile_below(2) + hostile_below(2) * sizeof(*msg);
    msg->size = 64;
    start(a, vq, attack);
    if (wait) {
        check_outcome(a, vq, attack);
    }
    honest_report(h, a->index, h->sent);
    /* This resets the device while it may be using the buffers. */
    ht_bm_close(a->d);
    hostile_check("the interrupt of a device that was reset",
                  interrupt_pending(a), false);

    take_over(a);
    honest_open(h, a->d);
    honest_emit(h, 5);
    honest_close(h, a->index);
}

void hostile_virtqueues(unsigned index)
{
    struct attacker a = { .index = index };
    struct honest *other = honest_new();
    unsigned rounds = hostile_rounds(8);

    a.table = mm_alloc(TABLE * sizeof(*a.table), HT_PAGE);
    a.buffer = mm_alloc(HT_MESSAGE_MAX, HT_PAGE);
    take_over(&a);
    if (!a.d->common) {
        payload_die(PAYLOAD_USAGE, "the device has no virtqueues", NULL);
    }
    a.irq = ht_bm_pci_read(a.d, PCI_INTERRUPT_LINE) & 0xff;
    if (a.irq > 15) {
        payload_die(PAYLOAD_USAGE, "the device has no interrupt", NULL);
    }
    /*
     * Unmask all interrupts in both PICs. They need no handler, because the
     * processor's interrupt flag is off.
     */
    outb(PIC_MASTER + 1, 0);
    outb(PIC_SLAVE + 1, 0);
    if (index + 1 < device_count()) {
        a.other = hostile_open(index + 1);
        honest_open(other, a.other);
    }
    for (unsigned attack = 0; attack < ATTACKS; attack++) {
        /*
         * An attack that uses registers chooses them at random, so repeat these
         * attacks.
         */
        unsigned times = attack >= OWN_REGISTERS ? rounds : 1;

        for (unsigned k = 0; k < times; k++) {
            attack_queue(&a, attack, HT_VQ_CONTROL, true);
            attack_queue(&a, attack, HT_VQ_CONTROL, false);
            attack_queue(&a, attack, HT_VQ_DATA(0), true);
            attack_queue(&a, attack, HT_VQ_DATA(0), false);
        }
    }
    if (a.other) {
        honest_emit(other, 5);
        honest_close(other, index + 1);
    }
}
