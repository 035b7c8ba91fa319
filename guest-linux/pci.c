// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: the channels hypercall and shm, with registers in BAR0 and stream
 * memory in BAR4.  memory.c also uses the functions for rings.
 */
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/string.h>
#include <linux/virtio_config.h>

#include "htk.h"
#include "compat.h"

#define HTK_PCI_BARS	(BIT(HT_PCI_BAR_REGS) | BIT(HT_PCI_BAR_RING))

static struct pci_dev *htk_pci_dev(const struct virtio_device *vdev)
{
	if (!vdev->dev.parent || !dev_is_pci(vdev->dev.parent))
		return NULL;
	return to_pci_dev(vdev->dev.parent);
}

/*
 * Test whether the channel is hypercall or shm.  On channel virtio the device
 * has no memory in BAR0, or is not a PCI device.
 */
bool htk_pci_present(struct virtio_device *vdev)
{
	struct pci_dev *pdev = htk_pci_dev(vdev);

	return pdev &&
	       (pci_resource_flags(pdev, HT_PCI_BAR_REGS) & IORESOURCE_MEM) &&
	       (pci_resource_flags(pdev, HT_PCI_BAR_RING) & IORESOURCE_MEM);
}

/*
 * Read registers by aligned words of four bytes.  readl() swaps no bytes, since
 * arch.h accepts only little-endian processors.
 */
static void htk_regs_read(struct htk *h, u32 offset, void *to, u32 size)
{
	u32 i, word;

	for (i = 0; i < size; i += 4) {
		word = readl(h->regs + offset + i);
		memcpy(to + i, &word, min(size - i, 4u));
	}
}

static void htk_pci_read_caps(struct htk *h, struct ht_caps *caps)
{
	htk_regs_read(h, 0, caps, sizeof(*caps));
}

/* Check the capabilities: magic, version, doorbells and sizes of the BARs */
static int htk_pci_check(struct htk *h, u64 regs_size, u64 ram_size)
{
	const struct ht_caps *caps = &h->core.caps;

	if (caps->magic != HT_MAGIC)
		return -ENODEV;
	if (caps->version != HT_VERSION)
		return -EPROTO;
	if (!ht_caps_fit(caps, ram_size)) {
		dev_err(h->dev, "rings, enable page and mailbox do not fit in BAR4\n");
		return -EPROTO;
	}
	if (caps->doorbell_offset % PAGE_SIZE || !caps->doorbell_offset ||
	    caps->doorbell_stride % PAGE_SIZE ||
	    caps->doorbell_offset +
		    (u64)(caps->streams - 1) * caps->doorbell_stride + 4 >
		    regs_size) {
		dev_err(h->dev, "registers do not fit in BAR0\n");
		return -EPROTO;
	}
	return 0;
}

/*
 * Get the type of the mapping of stream memory.  On x86, memremap() may map it
 * uncached although cached memory was requested: a BAR below 4 GiB is usually
 * inside an uncachable MTRR.  On other processors, assume a cached mapping.
 */
static u32 htk_pci_mapping(struct htk *h)
{
#ifdef CONFIG_X86
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)h->ram, &level);
	unsigned long mask = _PAGE_CACHE_MASK;

	/* In an entry for a large page, the bit PAT has another position. */
	if (level != PG_LEVEL_4K)
		mask = _PAGE_PWT | _PAGE_PCD | _PAGE_PAT_LARGE;
	if (pte && (pte_flags(*pte) & mask))
		return HT_MAPPING_UNCACHED;
#endif
	return HT_MAPPING_WRITE_BACK;
}

/**
 * htk_pci_map_ram() - map stream memory
 * @h: the device; the call sets @ram, @ram_phys and @mapping
 * @pdev: its PCI device
 * @bar: number of the BAR
 *
 * Return: 0 or -ENOMEM.
 */
int htk_pci_map_ram(struct htk *h, struct pci_dev *pdev, int bar)
{
	h->ram_phys = pci_resource_start(pdev, bar);
	/* The host reads the memory, so it must not be encrypted. */
	h->ram = memremap(h->ram_phys, pci_resource_len(pdev, bar),
			  MEMREMAP_WB | MEMREMAP_DEC);
	if (!h->ram)
		return -ENOMEM;
	h->mapping = htk_pci_mapping(h);
	return 0;
}

static int htk_pci_probe(struct htk *h)
{
	struct pci_dev *pdev = htk_pci_dev(htk_vdev(h));
	u64 regs_size = pci_resource_len(pdev, HT_PCI_BAR_REGS);
	u64 ram_size = pci_resource_len(pdev, HT_PCI_BAR_RING);
	int ret;

	/*
	 * Claim the regions exclusively, so that programs of root cannot map
	 * them through the PCI resource files of sysfs, unless the kernel has
	 * iomem=relaxed on its command line.
	 */
	ret = pci_request_selected_regions_exclusive(pdev, HTK_PCI_BARS,
						     h->name);
	if (ret)
		return ret;

	ret = -EIO;
	if (regs_size < PAGE_SIZE)
		goto release;
	h->regs_phys = pci_resource_start(pdev, HT_PCI_BAR_REGS);
	h->regs = ioremap(h->regs_phys, regs_size);
	if (!h->regs)
		goto release;
	htk_pci_read_caps(h, &h->core.caps);
	ret = htk_pci_check(h, regs_size, ram_size);
	if (ret)
		goto unmap_regs;

	ret = htk_pci_map_ram(h, pdev, HT_PCI_BAR_RING);
	if (ret)
		goto unmap_regs;
	h->enable = h->ram + h->core.caps.enable_offset;
	ret = htk_find_vqs(htk_vdev(h), 0, NULL, NULL, NULL);
	if (ret)
		goto unmap_ram;
	return 0;

unmap_ram:
	memunmap(h->ram);
unmap_regs:
	iounmap(h->regs);
release:
	pci_release_selected_regions(pdev, HTK_PCI_BARS);
	return ret;
}

static int htk_pci_ready(struct htk *h)
{
	writel(HT_MAGIC, h->regs + HT_REG_TAKEOVER);
	return 0;
}

/* Reset the device; its registers and stream memory stay mapped. */
static void htk_pci_freeze(struct htk *h)
{
	struct virtio_device *vdev = htk_vdev(h);

	virtio_reset_device(vdev);
	vdev->config->del_vqs(vdev);
}

static void htk_pci_remove(struct htk *h)
{
	struct pci_dev *pdev = htk_pci_dev(htk_vdev(h));

	htk_pci_freeze(h);
	memunmap(h->ram);
	iounmap(h->regs);
	pci_release_selected_regions(pdev, HTK_PCI_BARS);
}

static int htk_pci_restore(struct htk *h)
{
	return htk_find_vqs(htk_vdev(h), 0, NULL, NULL, NULL);
}

static void htk_pci_go(struct ht_device *dev, u32 bytes)
{
	struct htk *h = container_of(dev, struct htk, core);

	/*
	 * writel() orders the stores of the request before its write.  The
	 * device executes the request during the write, so the reply is
	 * complete when writel() returns.  mb() orders the loads of the reply
	 * after the write.
	 */
	writel(bytes, h->regs + HT_REG_MAILBOX_GO);
	mb();
}

static int htk_pci_exchange(struct htk *h, struct ht_msg *msg, u32 room)
{
	return ht_mailbox_exchange(&h->core,
				   h->ram + h->core.caps.mailbox_offset, msg,
				   room, htk_pci_go);
}

/* Return the page frame number of the start of the enable page */
unsigned long htk_pci_enable(const struct htk *h)
{
	return PHYS_PFN(h->ram_phys + h->core.caps.enable_offset);
}

static void *htk_pci_stream(struct htk *h, u32 stream)
{
	return h->ram + ht_ring_at(&h->core.caps, stream);
}

/*
 * Clear the packets, and the rest of the last page that a program can map, so
 * that a program cannot read events of an earlier owner of the stream.  Call
 * this after the host has opened the stream: before, the host may still read
 * these events.
 */
void htk_pci_ring_opened(struct htk *h, u32 stream)
{
	memset(htk_pci_stream(h, stream) + HT_PACKETS_OFFSET, 0,
	       htk_ring_pages(h) * PAGE_SIZE - HT_PACKETS_OFFSET);
}

unsigned long htk_pci_ring_pfn(struct htk *h, u32 stream, unsigned long index)
{
	return PHYS_PFN(h->ram_phys + ht_ring_at(&h->core.caps, stream)) + index;
}

struct ht_ring_control *htk_pci_ring_addr(struct htk *h, u32 stream)
{
	return htk_pci_stream(h, stream);
}

static u32 htk_pci_doorbell_offset(const struct htk *h, u32 stream)
{
	const struct ht_caps *caps = &h->core.caps;

	return caps->doorbell_offset + stream * caps->doorbell_stride;
}

phys_addr_t htk_pci_doorbell(struct htk *h, u32 stream)
{
	return h->regs_phys + htk_pci_doorbell_offset(h, stream);
}

void htk_pci_ring(struct htk *h, u32 stream)
{
	writel(stream, h->regs + htk_pci_doorbell_offset(h, stream));
}

const struct htk_transport htk_pci_transport = {
	.probe		= htk_pci_probe,
	.ready		= htk_pci_ready,
	.remove		= htk_pci_remove,
	.freeze		= htk_pci_freeze,
	.restore	= htk_pci_restore,
	.read_caps	= htk_pci_read_caps,
	.exchange	= htk_pci_exchange,
	.ring_opened	= htk_pci_ring_opened,
	.ring_pfn	= htk_pci_ring_pfn,
	.ring_addr	= htk_pci_ring_addr,
};
