/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The peers "pio" and "mmio", which cause one exit for each event, and the peer
 * "limit", which causes none
 */
#include "internal.h"
#include "io.h"
#include "peers.h"

/* open() of a struct peer that needs no device */
static int none_open(const struct ht_bm_platform *platform)
{
    (void)platform;
    return 0;
}

static uint64_t window[(1 << 20) / 8 + 8];

/*
 * The same loop as the row "limit" of emit-bench: read the clock, write 40
 * bytes to memory, store the head with a release.  The host does not read
 * the bytes.
 */
static void limit_emit(uint64_t n)
{
    static uint64_t head;
    uint64_t pos = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)window + (pos & ((1 << 20) - 1));

        ht_put64(p, ht_clock());
        ht_put64(p + 8, i);
        ht_put64(p + 16, n);
        ht_put64(p + 24, i + 1);
        ht_put64(p + 32, n + 1);
        pos += 40;
        ht_store_release(&head, pos);
    }
}

static const struct peer peer_limit = {
    .name = "limit",
    .open = none_open,
    .emit = limit_emit,
};

/*
 * The peer "pio": one write to an I/O port for each event, as guests report
 * steps of their boot to some other virtual machine monitors. A write to port
 * 0x80, to which firmware writes its progress codes, causes an exit to QEMU,
 * which ignores the write.
 */
static void pio_emit(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        outb(0x80, (uint8_t)i);
    }
}

static const struct peer peer_pio = {
    .name = "pio",
    .open = none_open,
    .emit = pio_emit,
};

/*
 * The peer "mmio": the design of the patches named "hypertrace" that were
 * posted for QEMU in 2016. The guest stores arguments in shared memory, then
 * writes a register, so that the host reads them.  Here the register belongs to
 * QEMU's educational device, and no host code reads the arguments: the measured
 * cost is a lower bound for an event of that design.
 */
#define EDU_VENDOR_DEVICE       0x11e81234u
#define EDU_FACTORIAL_STATUS    0x20

static uint8_t *mmio_register;
static uint64_t mmio_arguments[5];

static int mmio_open(const struct ht_bm_platform *platform)
{
    for (unsigned bdf = 0; bdf < 256; bdf++) {
        if (platform->pci_read(platform->opaque, bdf, 0) ==
            EDU_VENDOR_DEVICE) {
            uint32_t bar = platform->pci_read(platform->opaque, bdf, 0x10);
            uint32_t command = platform->pci_read(platform->opaque, bdf, 4);

            platform->pci_write(platform->opaque, bdf, 4,
                                (command & 0xffff) | HT_BM_PCI_CMD_MEMORY);
            mmio_register = platform->map(platform->opaque, bar & ~0xfu,
                                          0x1000, 0);
            return mmio_register ? 0 : -ENOMEM;
        }
    }
    return -ENODEV;
}

static void mmio_emit(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        mmio_arguments[0] = ht_clock();
        mmio_arguments[1] = i;
        mmio_arguments[2] = n;
        mmio_arguments[3] = i + 1;
        mmio_arguments[4] = n + 1;
        ht_compiler_barrier();
        ht_bm_write32(mmio_register + EDU_FACTORIAL_STATUS, 0);
    }
}

static const struct peer peer_mmio = {
    .name = "mmio",
    .open = mmio_open,
    .emit = mmio_emit,
};

const struct peer *const peers[] = {
    &peer_limit, &peer_pio, &peer_mmio, &peer_serial, &peer_serial_queued,
    NULL
};
