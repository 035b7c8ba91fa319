/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: open and close a device, and drive devices of the
 * channels hypercall and shm, which have registers and stream RAM
 */
#include "internal.h"

#define SYNC_ROUNDS     8
/*
 * Time in ms for which a message, a registration of classes, or a flush is
 * retried; wait.h says when a wait is longer
 */
#define RELAX_MS        5000

int ht_bm_relax(struct ht_device *dev, unsigned tries)
{
    struct ht_bm_device *d = to_bm(dev);

    if (!tries) {
        ht_bm_wait_start(&d->relax, dev->caps.clock_hz, RELAX_MS);
    }
    for (unsigned i = 0; i < 1000; i++) {
        ht_bm_pause();
    }
    return ht_bm_wait_over(&d->relax) ? -ETIMEDOUT : 0;
}

void ht_bm_read_caps(struct ht_caps *caps, const uint8_t *p)
{
    uint8_t *to = (uint8_t *)caps;

    for (unsigned i = 0; i < sizeof(*caps); i += 4) {
        ht_put32(to + i, ht_bm_read32(p + i));
    }
}

static void regs_go(struct ht_device *dev, uint32_t bytes)
{
    ht_bm_write32(to_bm(dev)->regs + HT_REG_MAILBOX_GO, bytes);
}

static int regs_control(struct ht_device *dev, struct ht_msg *msg,
                        uint32_t size)
{
    return ht_mailbox_exchange(dev, to_bm(dev)->ram + dev->caps.mailbox_offset,
                               msg, size, regs_go);
}

static int regs_map(struct ht_device *dev, uint32_t stream,
                    struct ht_ring_control **ring, uint8_t **packets)
{
    uint8_t *at = to_bm(dev)->ram + ht_ring_at(&dev->caps, stream);

    *ring = (struct ht_ring_control *)at;
    *packets = at + HT_PACKETS_OFFSET;
    return 0;
}

/*
 * Return 1 if the CPUID instruction says that QEMU's TCG emulates this
 * processor, and 0 otherwise or if this is not x86-64.  Source: cpu_x86_cpuid()
 * in QEMU, leaf 0x40000000
 */
static int is_tcg(void)
{
#if defined(__x86_64__)
    uint32_t a = 0x40000000, b, c = 0, d;

    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    /* "TCGT", "CGTC", "GTCG" */
    return b == 0x54474354 && c == 0x43544743 && d == 0x47435447;
#else
    return 0;
#endif
}

static void regs_doorbell(struct ht_device *dev, uint32_t stream)
{
    uint8_t *at = to_bm(dev)->doorbells +
                  (size_t)stream * dev->caps.doorbell_stride;

#if defined(__x86_64__)
    if (to_bm(dev)->tcg) {
        uint64_t count = 1;

        /*
         * TCG lets only the last instruction of a block of code access a
         * device.  If another instruction does, TCG leaves the block, and
         * begins the instruction again in a block of its own:
         * docs/performance.md has the cost.  A string instruction with a repeat
         * prefix ends a block, so ring the doorbell by this kind.  (Source:
         * translator_loop(), cpu_io_recompile() and do_gen_rep() in QEMU 10.0)
         */
        __asm__ volatile("rep stosl" : "+D"(at), "+c"(count) : "a"(stream)
                         : "memory");
        return;
    }
#endif
    ht_bm_write32(at, stream);
}

static const struct ht_port_ops regs_ops = {
    .control = regs_control,
    .map = regs_map,
    .doorbell = regs_doorbell,
    .relax = ht_bm_relax,
};

/*
 * Set @d->doorbells.  Returns 1 on success.  A hostile device may have chosen
 * the capabilities: returns 0 if they place a doorbell outside of BAR0, or at
 * an offset that is not a multiple of 4.
 */
static int find_doorbells(struct ht_bm_device *d)
{
    const struct ht_caps *caps = &d->dev.caps;
    uint64_t first = caps->doorbell_offset;

    /*
     * If a hypercall doorbell has 64 KiB, write to its last page.  QEMU's TCG
     * chooses an entry of its TLB by the low bits of a page's number.  If the
     * TLB has 64 entries, pages with addresses that are equal modulo 256 KiB
     * share an entry.  The first page of a doorbell and the control page of a
     * ring are at multiples of 64 KiB.  If map() keeps the low bits of
     * addresses, these pages would share an entry in one of four cases, and
     * each access to one page would evict the other page.
     */
    if (caps->channel == HT_CHANNEL_HYPERCALL &&
        caps->doorbell_stride == HT_MAP_ALIGN) {
        first += HT_MAP_ALIGN - HT_PAGE;
    }
    if ((caps->doorbell_offset | caps->doorbell_stride) % 4 ||
        first + (uint64_t)(caps->streams - 1) * caps->doorbell_stride + 4 >
        d->bar[HT_PCI_BAR_REGS].size) {
        return 0;
    }
    d->doorbells = d->regs + first;
    return 1;
}

int ht_bm_regs_open(struct ht_bm_device *d)
{
    const struct ht_bm_platform *p = d->platform;
    const struct ht_bm_bar *regs = &d->bar[HT_PCI_BAR_REGS];
    const struct ht_bm_bar *ram = &d->bar[HT_PCI_BAR_RING];
    struct ht_caps *caps = &d->dev.caps;

    if (!ram->base || regs->size < HT_PAGE) {
        return -ENODEV;
    }
    d->regs = p->map(p->opaque, regs->base, regs->size, 0);
    if (!d->regs) {
        return -ENOMEM;
    }
    ht_bm_read_caps(caps, d->regs);
    if (caps->magic != HT_MAGIC) {
        return -ENODEV;
    }
    if (caps->version != HT_VERSION) {
        return -EPROTO;
    }
    /* Make the host close an earlier owner's streams and change the epoch. */
    ht_bm_write32(d->regs + HT_REG_TAKEOVER, HT_MAGIC);
    ht_bm_read_caps(caps, d->regs);
    if (!ht_caps_fit(caps, ram->size) || !find_doorbells(d)) {
        return -EPROTO;
    }
    d->ram = p->map(p->opaque, ram->base, ram->size, 1);
    if (!d->ram) {
        return -ENOMEM;
    }
    d->tcg = is_tcg();
    d->dev.ops = &regs_ops;
    d->dev.enable = d->ram + caps->enable_offset;
    d->dev.mapping = "write-back";
    return 0;
}

int ht_bm_open(struct ht_bm_device *d, const struct ht_bm_platform *platform,
               uint16_t bdf)
{
    uint32_t command;
    int ret;

    ht_zero(d, sizeof(*d));
    d->platform = platform;
    d->bdf = bdf;
    ht_bm_pci_bars(d);
    command = ht_bm_pci_read(d, HT_BM_PCI_COMMAND) & 0xffff;
    ht_bm_pci_write(d, HT_BM_PCI_COMMAND,
                    command | HT_BM_PCI_CMD_MEMORY | HT_BM_PCI_CMD_MASTER |
                    HT_BM_PCI_CMD_NO_INTX);
    if (d->bar[HT_PCI_BAR_REGS].base) {
        ret = ht_bm_regs_open(d);
    } else {
        ret = ht_bm_virtio_open(d);
    }
    if (!ret) {
        ret = ht_device_init(&d->dev);
    }
    if (!ret) {
        /* Relate the clocks: some hosts cannot read the guest's counter. */
        ret = ht_time_sync(&d->dev, SYNC_ROUNDS);
    }
    if (ret < 0) {
        ht_bm_close(d);
        return ret;
    }
    return 0;
}

void ht_bm_close(struct ht_bm_device *d)
{
    if (d->common) {
        ht_bm_virtio_reset(d);
    }
}
