/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the PCI device that users specify
 *
 *   BAR0    hypercall, shm: registers      BAR4  hypercall, shm: stream RAM
 *   BAR1    MSI-X                                virtio: virtio's structures
 *   BAR2+3  hypercall, shm: virtio's structures
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "hw/qdev-properties.h"
#include "hw/virtio/virtio-pci.h"
#include "properties.h"

#define TYPE_HYPERTRACE_PCI_BASE "hypertrace-base"
#define TYPE_HYPERTRACE "hypertrace"
OBJECT_DECLARE_TYPE(HypertracePCI, HypertracePCIClass, HYPERTRACE_PCI_BASE)

struct HypertracePCI {
    VirtIOPCIProxy parent_obj;
    HypertraceDevice vdev;
};

struct HypertracePCIClass {
    VirtioPCIClass parent_class;
    DeviceRealize parent_realize;
};

/* Prepare the device first: QEMU leaks a PCI proxy if its realize fails late */
static void hypertrace_dc_realize(DeviceState *qdev, Error **errp)
{
    ERRP_GUARD();
    HypertracePCIClass *k = HYPERTRACE_PCI_BASE_GET_CLASS(qdev);
    HypertracePCI *pci = HYPERTRACE_PCI_BASE(qdev);
    VirtIOPCIProxy *proxy = VIRTIO_PCI(qdev);

    if (proxy->flags & VIRTIO_PCI_FLAG_MODERN_PIO_NOTIFY) {
        error_setg(errp, "modern-pio-notify=on is not possible: its BAR is in"
                   " use");
        return;
    }
    if (!hypertrace_device_prepare(&pci->vdev, errp)) {
        return;
    }
    k->parent_realize(qdev, errp);
    if (*errp) {
        /* The PCI proxy can fail after the device behind it was realized. */
        if (DEVICE(&pci->vdev)->realized) {
            qdev_unrealize(DEVICE(&pci->vdev));
        } else {
            hypertrace_device_unprepare(&pci->vdev);
        }
    }
}

static void hypertrace_pci_realize(VirtIOPCIProxy *proxy, Error **errp)
{
    HypertracePCI *pci = HYPERTRACE_PCI_BASE(proxy);
    HypertraceDevice *dev = &pci->vdev;

    virtio_pci_force_virtio_1(proxy);
    if (dev->channel->uses_ring) {
        proxy->modern_mem_bar_idx = 2;
    }
    if (proxy->nvectors == DEV_NVECTORS_UNSPECIFIED) {
        /*
         * Vectors: one for configuration changes; for channel=virtio, one for
         * all queues as well
         */
        proxy->nvectors = dev->channel->uses_ring ? 1 : 2;
    }
    if (!qdev_realize(DEVICE(dev), BUS(&proxy->bus), errp)) {
        return;
    }
    if (dev->channel->uses_ring) {
        pci_register_bar(&proxy->pci_dev, HT_PCI_BAR_REGS,
                         PCI_BASE_ADDRESS_SPACE_MEMORY, &dev->regs);
        pci_register_bar(&proxy->pci_dev, HT_PCI_BAR_RING,
                         PCI_BASE_ADDRESS_SPACE_MEMORY |
                         PCI_BASE_ADDRESS_MEM_PREFETCH |
                         PCI_BASE_ADDRESS_MEM_TYPE_64, dev->ring_mr);
    }
}

static const Property hypertrace_pci_properties[] = {
    DEFINE_PROP_BIT("ioeventfd", VirtIOPCIProxy, flags,
                    VIRTIO_PCI_FLAG_USE_IOEVENTFD_BIT, true),
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors,
                       DEV_NVECTORS_UNSPECIFIED),
};

static void hypertrace_pci_class_init(ObjectClass *klass, HtClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioPCIClass *k = VIRTIO_PCI_CLASS(klass);
    PCIDeviceClass *pcidev_k = PCI_DEVICE_CLASS(klass);
    HypertracePCIClass *hk = HYPERTRACE_PCI_BASE_CLASS(klass);

    device_class_set_parent_realize(dc, hypertrace_dc_realize,
                                    &hk->parent_realize);
    device_class_set_props(dc, hypertrace_pci_properties);
    dc->desc = "Tracing channel to the host";
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
    k->realize = hypertrace_pci_realize;
    pcidev_k->class_id = PCI_CLASS_OTHERS;
}

static void hypertrace_pci_init(Object *obj)
{
    HypertracePCI *pci = HYPERTRACE_PCI_BASE(obj);

    virtio_instance_init_common(obj, &pci->vdev, sizeof(pci->vdev),
                                TYPE_HYPERTRACE_DEVICE);
    pci->vdev.proxy = DEVICE(obj);
    object_property_add(obj, "classes", "HypertraceClasses", ht_classes_get,
                        NULL, NULL, &pci->vdev);
    object_property_set_description(obj, "classes",
                                    "classes that guests registered, and"
                                    " whether they are on");
}

static const VirtioPCIDeviceTypeInfo hypertrace_pci_info = {
    .base_name = TYPE_HYPERTRACE_PCI_BASE,
    .non_transitional_name = TYPE_HYPERTRACE,
    .instance_size = sizeof(HypertracePCI),
    .instance_init = hypertrace_pci_init,
    .class_size = sizeof(HypertracePCIClass),
    .class_init = hypertrace_pci_class_init,
};

static void hypertrace_pci_register(void)
{
    virtio_pci_types_register(&hypertrace_pci_info);
}

type_init(hypertrace_pci_register)
