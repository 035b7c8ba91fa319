/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: properties that both sides of a migration must have in common
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "device.h"

/* What both sides must have in common; the guest relies on it */
struct HtSavedConf {
    uint32_t channel;
    uint32_t mode;
    uint32_t streams;
    uint32_t packets;
    uint32_t batch;
    uint32_t flush_ms;
    uint64_t packet_size;
    uint8_t memdev[128];        /* its id */
};

static void conf_fill(HypertraceDevice *dev, HtSavedConf *c)
{
    *c = (HtSavedConf) {
        .channel = dev->conf.channel,
        .mode = dev->conf.mode,
        .streams = dev->conf.streams,
        .packets = dev->conf.packets,
        .batch = dev->conf.batch,
        .flush_ms = dev->conf.flush_ms,
        .packet_size = dev->conf.packet_size,
    };
    if (dev->conf.memdev) {
        const char *id = object_get_canonical_path_component(
            OBJECT(dev->conf.memdev));

        g_strlcpy((char *)c->memdev, id, sizeof(c->memdev));
    }
}

static int conf_pre_save(void *opaque)
{
    HypertraceDevice *dev = opaque;

    conf_fill(dev, dev->saved_conf);
    return 0;
}

static bool conf_differs(HypertraceDevice *dev, const char *property,
                         const char *here, const char *there)
{
    if (!strcmp(here, there)) {
        return false;
    }
    error_report("hypertrace %s: %s is %s here and %s where the VM comes from;"
                 " it must be the same", dev->trace->name, property,
                 here[0] ? here : "not set", there[0] ? there : "not set");
    return true;
}

static bool conf_number_differs(HypertraceDevice *dev, const char *property,
                                uint64_t here, uint64_t there)
{
    g_autofree char *h = g_strdup_printf("%" PRIu64, here);
    g_autofree char *t = g_strdup_printf("%" PRIu64, there);

    return conf_differs(dev, property, h, t);
}

static bool conf_name_differs(HypertraceDevice *dev, const char *property,
                              uint32_t here, uint32_t there,
                              const char *const names[], uint32_t count)
{
    return conf_differs(dev, property, names[here],
                        there < count ? names[there] : "(unknown)");
}

static int conf_post_load(void *opaque, int version_id)
{
    static const char *const channels[] = { "hypercall", "shm", "virtio" };
    static const char *const modes[] = { "discard", "overwrite" };
    HypertraceDevice *dev = opaque;
    HtSavedConf *there = dev->saved_conf, here;
    bool bad;

    conf_fill(dev, &here);
    there->memdev[sizeof(there->memdev) - 1] = 0;
    bad = conf_name_differs(dev, "channel", here.channel, there->channel,
                            channels, ARRAY_SIZE(channels));
    bad |= conf_name_differs(dev, "mode", here.mode, there->mode,
                             modes, ARRAY_SIZE(modes));
    bad |= conf_number_differs(dev, "streams", here.streams, there->streams);
    bad |= conf_number_differs(dev, "packet-size", here.packet_size,
                               there->packet_size);
    bad |= conf_number_differs(dev, "packets", here.packets, there->packets);
    bad |= conf_number_differs(dev, "batch", here.batch, there->batch);
    bad |= conf_number_differs(dev, "flush-ms", here.flush_ms,
                               there->flush_ms);
    bad |= conf_differs(dev, "memdev", (char *)here.memdev,
                        (char *)there->memdev);
    return bad ? -EINVAL : 0;
}

static const VMStateDescription vmstate_conf_fields = {
    .name = "hypertrace/properties",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(channel, HtSavedConf),
        VMSTATE_UINT32(mode, HtSavedConf),
        VMSTATE_UINT32(streams, HtSavedConf),
        VMSTATE_UINT32(packets, HtSavedConf),
        VMSTATE_UINT32(batch, HtSavedConf),
        VMSTATE_UINT32(flush_ms, HtSavedConf),
        VMSTATE_UINT64(packet_size, HtSavedConf),
        VMSTATE_BUFFER(memdev, HtSavedConf),
        VMSTATE_END_OF_LIST()
    },
};

/*
 * Before all else: a PCI configuration or memory that differs would be refused
 * without telling which property is to blame.
 */
static const VMStateDescription vmstate_conf = {
    .name = "hypertrace-properties",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .priority = MIG_PRI_PCI_BUS,
    .pre_save = conf_pre_save,
    .post_load = conf_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved_conf, HypertraceDevice,
                               vmstate_conf_fields, HtSavedConf),
        VMSTATE_END_OF_LIST()
    },
};

void ht_migration_conf_register(HypertraceDevice *dev)
{
    dev->saved_conf = g_new0(HtSavedConf, 1);
    vmstate_register_any(VMSTATE_IF(dev), &vmstate_conf, dev);
}

void ht_migration_conf_unregister(HypertraceDevice *dev)
{
    vmstate_unregister(VMSTATE_IF(dev), &vmstate_conf, dev);
    g_clear_pointer(&dev->saved_conf, g_free);
}
