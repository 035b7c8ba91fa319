/* SPDX-License-Identifier: MIT */
/*
 * hypertrace: the contract between guest and host
 *
 * The device, the guest library, the kernel module and the tools use this
 * header.  docs/specs/hypertrace.rst describes it in prose; a difference
 * between the two is a bug.  All numbers are little-endian; every structure is
 * naturally aligned and has no implicit padding.
 */
#ifndef HYPERTRACE_ABI_H
#define HYPERTRACE_ABI_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/* Identity ------------------------------------------------------------- */

/*
 * VIRTIO_ID 63 is the last id Linux's virtio_pci accepts (PCI 0x107f) and is
 * not assigned.  It must be reserved with the VIRTIO committee before a release
 * that claims to be more than an experiment.
 */
#define HT_VIRTIO_ID            63
#define HT_PCI_VENDOR_ID        0x1af4
#define HT_PCI_DEVICE_ID        (0x1040 + HT_VIRTIO_ID)

#define HT_MAGIC                0x43525448u     /* "HTRC" */
#define HT_VERSION              3u

/* hypercall, shm: registers, struct ht_caps and HT_REG_* */
#define HT_PCI_BAR_REGS         0
#define HT_PCI_BAR_RING         4       /* hypercall, shm: stream RAM */

/*
 * The memory-only transport uses the PCI device ivshmem-plain, which several
 * emulators have.
 */
#define HT_IVSHMEM_DEVICE_ID    0x1110
#define HT_IVSHMEM_BAR          2       /* stream RAM, see struct ht_memory */

enum ht_channel {
    HT_CHANNEL_HYPERCALL = 0,
    HT_CHANNEL_SHM       = 1,
    HT_CHANNEL_VIRTIO    = 2,
    HT_CHANNEL_MEMORY    = 3,   /* stream RAM only: no registers, no exits */
};

enum ht_mode {
    HT_MODE_DISCARD   = 0,      /* a full ring discards the newest event */
    HT_MODE_OVERWRITE = 1,      /* a full ring loses its oldest packet */
};

/* The guest counter that events carry as their time */
enum ht_counter {
    HT_COUNTER_TSC    = 1,      /* x86: RDTSC */
    HT_COUNTER_CNTVCT = 2,      /* Arm: CNTVCT_EL0 */
};

/* Limits that do not depend on properties -------------------------------- */

#define HT_PAGE                 4096u
/*
 * Alignment in bytes of the parts of stream RAM that a guest maps separately.
 * 64 KiB is a multiple of the page size of every guest.
 */
#define HT_MAP_ALIGN            65536u
#define HT_STREAMS_MAX          512u
#define HT_PACKET_SIZE_MIN      4096u
#define HT_PACKET_SIZE_MAX      (1u << 20)
#define HT_PACKETS_MIN          2u
#define HT_PACKETS_MAX          1024u
#define HT_CLASSES_MAX          8192u
/* maximum number of classes that have the same name, with different fields */
#define HT_CLASS_VERSIONS_MAX   64u
#define HT_CLASS_NAME_MAX       127u    /* maximum length, without a NUL */
#define HT_FIELD_NAME_MAX       63u
#define HT_FIELDS_MAX           32u
#define HT_STREAM_NAME_MAX      32u
#define HT_MESSAGE_MAX          4096u
/* maximum size of all messages of one exchange, in bytes */
#define HT_MAILBOX_SIZE         65536u
#define HT_BATCH_MAX            65536u
#define HT_SETTINGS_MAX         2048u   /* maximum length of the settings */

/*
 * Feature bits, negotiated as virtio specifies.  On the other channels a driver
 * may skip virtio's initialization; then no feature is negotiated.
 */
/* channel virtio: the device reads ht_msg_open.memory */
#define HT_F_MEMORY             0

/*
 * Capabilities of a device.  The structure is at the start of BAR0, at the
 * start of stream RAM, and in virtio's configuration space.
 */

struct ht_caps {
    uint32_t magic;             /* 0x00 HT_MAGIC */
    uint32_t version;           /* 0x04 HT_VERSION */
    uint32_t channel;           /* 0x08 enum ht_channel */
    uint32_t mode;              /* 0x0c enum ht_mode */
    uint64_t ring_offset;       /* 0x10 offset of ring 0 in stream RAM */
    /* 0x18 number of streams, up to HT_STREAMS_MAX */
    uint32_t streams;
    uint32_t packet_size;       /* 0x1c bytes, a power of two */
    uint32_t packets;           /* 0x20 packets per ring, a power of two */
    uint32_t batch;             /* 0x24 hypercall: commits per doorbell */
    uint32_t flush_ms;          /* 0x28 ms that an event may wait in a packet */
    /* 0x2c after a gap of this many ticks, an event has an extended header */
    uint32_t max_gap;
    uint64_t clock_hz;          /* 0x30 guest counter's frequency; 0: unknown */
    /*
     * 0x38 changes at a reset and at a TAKEOVER; memory-only transport: changes
     * when a host attaches
     */
    uint64_t epoch;
    uint64_t ring_stride;       /* 0x40 ring i is at ring_offset + i * stride */
    uint32_t doorbell_offset;   /* 0x48 offset of doorbell 0 in BAR0 */
    uint32_t doorbell_stride;   /* 0x4c bytes from a doorbell to the next */
    uint32_t mailbox_offset;    /* 0x50 offset of the mailbox in stream RAM */
    /* 0x54 maximum size of an exchange in bytes, also on virtio */
    uint32_t mailbox_size;
    uint32_t max_classes;       /* 0x58 highest class id */
    uint32_t max_message;       /* 0x5c maximum size of a message in bytes */
    uint64_t enable_offset;     /* 0x60 offset of enable page in stream RAM */
    /* 0x68 number that changes when enable bytes or settings change */
    uint32_t enable_seq;
    uint32_t counter;           /* 0x6c enum ht_counter */
};

/* Registers of BAR0 after the capabilities: 4 bytes wide, write-only */
/* execute the mailbox's messages, whose total size in bytes is written */
#define HT_REG_MAILBOX_GO       0x80
#define HT_REG_TAKEOVER         0x84    /* close all streams: write HT_MAGIC */

/* Page 0 of the memory-only transport ------------------------------------ */

/*
 * All offsets in @caps are from the start of this page.  The creator of the
 * memory writes the page before the virtual machine starts.  A driver uses the
 * device only if @caps is valid, and writes nothing while it probes.
 *
 * An exchange causes no exit.  The request area is at mailbox_offset, the reply
 * area after it at mailbox_offset + mailbox_size.  The guest writes the
 * request, @bytes and @to, store-releases go = done + 1, and touches neither
 * area until @done == @go or the epoch changed.  The host load-acquires @go,
 * copies the request once, writes the reply and store-releases done = go.  If
 * @to is not the host's epoch, the host only sets done = go.
 *
 * A host that attaches loads @go, store-releases a new random caps.epoch, then
 * store-releases done = the loaded go.  The guest load-acquires @done, then
 * loads the epoch.  If the new host has set @done, the guest sees the new epoch
 * and ignores the reply area.
 *
 * The host advances @beat at least every HT_BEAT_MS.  A guest that sees no new
 * beat for HT_BEAT_LOST_MS answers its callers with "no host".  After a new
 * epoch the guest takes the streams away from their producers, sends TAKEOVER,
 * registers its classes and opens its streams again.  The streams stay open
 * until TAKEOVER.
 *
 * Between the mailbox and the rings is an area in which the host keeps the
 * state that the next host needs.  The guest must not write to the area.
 *
 * The host cannot read the guest's counter.  While a stream is open, the guest
 * sends rounds of HT_MSG_TIME_SYNC at least every HT_SYNC_MS.
 */
struct ht_memory {
    struct ht_caps caps;        /* 0x000 written by the host */
    uint8_t  gap0[0x100 - sizeof(struct ht_caps)];
    uint64_t beat;              /* 0x100 host: increases while the host runs */
    /* 0x108 host: number of the last request that the host answered */
    uint32_t done;
    uint8_t  gap1[0x200 - 0x10c];
    uint32_t go;                /* 0x200 guest: number of the last request */
    /* 0x204 guest: size of the request @go in bytes */
    uint32_t bytes;
    /* 0x208 guest: epoch of the host that must answer the request @go */
    uint64_t to;
};

#define HT_BEAT_MS              20u
#define HT_BEAT_LOST_MS         200u
#define HT_SYNC_MS              1000u

/* Control messages: mailbox, or virtqueue 0 -------------------------------- */

enum ht_msg_type {
    HT_MSG_CLASS_REGISTER = 1,
    HT_MSG_CLASS_LIST     = 2,
    HT_MSG_STREAM_OPEN    = 3,
    HT_MSG_STREAM_CLOSE   = 4,
    HT_MSG_STREAM_FLUSH   = 5,
    HT_MSG_TIME_SYNC      = 6,
    HT_MSG_STATS          = 7,
    HT_MSG_TAKEOVER       = 8,
    HT_MSG_DISCARDED      = 9,
    HT_MSG_ENABLED        = 10,
    HT_MSG_SETTINGS       = 11,
};

enum ht_status {
    HT_STATUS_OK     = 0,
    /* not finished: send the message again, with the reply's content */
    HT_STATUS_BUSY   = 1,
    HT_STATUS_INVAL  = 2,       /* malformed */
    HT_STATUS_LIMIT  = 3,       /* a documented limit is reached */
    HT_STATUS_NOENT  = 4,       /* no such stream, class or message type */
    HT_STATUS_EXIST  = 5,       /* the stream is in use */
    HT_STATUS_IO     = 6,       /* the device is being unplugged */
    HT_STATUS_STOPPED = 7,      /* the stream was stopped as corrupt */
};

/*
 * The header of every message.  The reply overwrites the message in place.  An
 * exchange is one message, or several HT_MSG_CLASS_REGISTER, each at a
 * multiple of HT_MESSAGE_ALIGN bytes.
 */
#define HT_MESSAGE_ALIGN        8u

struct ht_msg {
    uint16_t type;              /* enum ht_msg_type */
    uint16_t reserved;          /* 0 */
    /* size of the request or reply with this header, in bytes */
    uint32_t size;
    uint32_t status;            /* reply: enum ht_status */
    /* number that the sender chooses; the reply has the same */
    uint32_t cookie;
};

enum ht_field_kind {
    HT_FIELD_U8 = 1, HT_FIELD_U16, HT_FIELD_U32, HT_FIELD_U64,
    HT_FIELD_S8, HT_FIELD_S16, HT_FIELD_S32, HT_FIELD_S64,
    HT_FIELD_F32, HT_FIELD_F64,
    HT_FIELD_TEXT = 16,         /* u16 length, then UTF-8, not terminated */
    HT_FIELD_SEQUENCE = 17,     /* u16 count, then @count elements */
    HT_FIELD_ARRAY = 18,        /* @count elements */
};

#define HT_FIELD_HEX            0x01u   /* integer: show in base 16 */
/* array of u8: show as text, which ends at the first 0 */
#define HT_FIELD_UTF8           0x02u
#define HT_FIELD_LABELS         0x04u   /* integer: its values have names */
/* with HT_FIELD_LABELS: labels name bits of the integer, not values */
#define HT_FIELD_BITS           0x08u

/*
 * Size of a label without its name.  A label has its value (64 bits,
 * sign-extended), the length of its name (one byte), and its name.  The labels
 * of a field follow the field's name.
 */
#define HT_LABEL_HEADER         9u
#define HT_LABEL_MAX            63u     /* maximum length of a label's name */
#define HT_LABELS_MAX           64u     /* maximum number of a field's labels */

/* One field in a class message, followed by its name */
struct ht_msg_field {
    uint8_t  kind;              /* enum ht_field_kind */
    /* kind of the elements of a sequence or array; else 0 */
    uint8_t  elem;
    uint8_t  flags;             /* HT_FIELD_HEX to HT_FIELD_BITS */
    uint8_t  name_len;          /* 1 to HT_FIELD_NAME_MAX */
    /* array: elements, 1 to 4096; HT_FIELD_LABELS: number of labels; else 0 */
    uint16_t count;
};

struct ht_msg_class {
    struct ht_msg h;
    uint32_t id;                /* in the reply; ignored in a request */
    /* HT_MSG_CLASS_LIST: position in the list, from 0 */
    uint32_t index;
    uint8_t  nr_fields;         /* 0 to HT_FIELDS_MAX */
    uint8_t  name_len;          /* 1 to HT_CLASS_NAME_MAX */
    uint8_t  loglevel;          /* 0 (emergency) to 14 (debug), as HT_LEVEL_* */
    uint8_t  on;                /* reply: HT_ENABLE_ON, or 0: off */
    /* HT_ORIGIN_KERNEL, or the id of the user who registered the class */
    uint32_t origin;
    /* the name of the class, then each field followed by its name */
    uint8_t  data[];
};

/* ht_msg_class.origin of the guest kernel's own classes; no user has this id */
#define HT_ORIGIN_KERNEL        0xffffffffu

#define HT_STREAM_ANY           0xffffffffu

struct ht_msg_open {
    struct ht_msg h;
    /* requested index, or HT_STREAM_ANY; reply: index of the stream */
    uint32_t stream;
    /* number that the guest gives the producer's vCPU; -1: not bound to one */
    int32_t  vcpu;
    /* first request: 0; reply: number that identifies this opening */
    uint64_t instance;
    uint8_t  name[HT_STREAM_NAME_MAX]; /* printable ASCII, padded with 0 */
    /* with HT_F_MEMORY: address of a table of addresses, or 0 */
    uint64_t memory;
};

/*
 * The table at ht_msg_open.memory has 64-bit guest-physical addresses: that of
 * the stream's control page, then that of each packet.  An entry is 0 if its
 * page is not present.  If the guest has ended without submitting all committed
 * events, the host reads these events at the addresses.
 */
#define HT_MEMORY_CONTROL       0u
#define HT_MEMORY_SLOT(n)       (1u + (n))

/* HT_MSG_STREAM_CLOSE and _FLUSH; for a flush, @stream may be HT_STREAM_ANY */
struct ht_msg_stream {
    struct ht_msg h;
    uint32_t stream;
    uint32_t ticket;            /* flush: 0; reply: number of the flush */
    /* instance in the reply to STREAM_OPEN; 0 with HT_STREAM_ANY */
    uint64_t instance;
    uint64_t lost;              /* close: events discarded by the producer */
};

struct ht_msg_time {
    struct ht_msg h;
    /* guest counter before the request of exchange @prev, or 0 */
    uint64_t before;
    /* guest counter after the reply to exchange @prev, or 0 */
    uint64_t after;
    /* cookie of the exchange between @before and @after */
    uint32_t prev;
    uint32_t reserved;
    uint64_t host_ns;           /* reply: CLOCK_MONOTONIC of the host in ns */
    uint64_t bound_ns;          /* reply: error bound of the conversion in ns */
};

/*
 * Read the enable bytes of consecutive classes, for a guest that cannot map the
 * enable page
 */
struct ht_msg_enabled {
    struct ht_msg h;
    uint32_t first;             /* class id of the first byte */
    /* room in @on, in bytes; reply: number of bytes written */
    uint32_t count;
    uint32_t seq;               /* reply: enable_seq of ht_caps */
    uint32_t reserved;
    uint8_t  on[];              /* reply: the enable bytes */
};

/* The host's settings for event sources in a guest: "NAME=VALUE NAME=VALUE" */
struct ht_msg_settings {
    struct ht_msg h;
    /* room in @text, in bytes; reply: number of bytes written */
    uint32_t count;
    uint32_t seq;               /* reply: enable_seq of ht_caps */
    char     text[];            /* reply: the settings, without a NUL */
};

struct ht_stats {
    uint64_t events;            /* valid events that the host has read */
    uint64_t packets;           /* runs of events passed to the backends */
    uint64_t bytes;             /* bytes of these events, with headers */
    uint64_t lost;              /* events that the producer has discarded */
    uint64_t dropped;           /* events overwritten before they were read */
    /* number of times that the host polled the stream's ring or queue */
    uint64_t wakeups;
    uint64_t errors;            /* pieces of malformed input */
};

struct ht_msg_stats {
    struct ht_msg h;
    uint32_t stream;            /* index, or HT_STREAM_ANY for the device */
    uint32_t reserved;
    struct ht_stats stats;      /* reply */
};

/*
 * HT_MSG_DISCARDED: the guest reports events that its producers discarded
 * because they had no stream.
 */
struct ht_msg_discarded {
    struct ht_msg h;
    /* number of these events since the previous message DISCARDED */
    uint64_t count;
};

/* The enable page ---------------------------------------------------------- */

/*
 * The enable page begins with one byte for each class, indexed by class id.
 * The host writes the page and the guest only reads it.  A class is on if its
 * byte is HT_ENABLE_ON, and off if it has any other value.  After a removal of
 * the device, its BAR reads as 0xff, so all classes are off.
 */
#define HT_ENABLE_ON            1u
#define HT_ENABLE_SIZE          65536u  /* size and alignment, in bytes */

/* The host's statistics, in the enable page ------------------------------- */

/*
 * Memory-only transport: with the operator's consent, the host tells the guest
 * what it does with the guest's vCPUs.  The host writes and never reads this
 * area, the guest only reads it.  The slot of vCPU number n is vcpus[n].
 *
 * The host makes @seq odd, writes the other words of the slot, and makes @seq
 * even again; 0 means that the slot has no data.  Each word of a slot is loaded
 * and stored as a whole, 8 bytes, with acquire and release order: a guest that
 * sees a new word then sees the odd @seq that the host stored before it.
 */
#define HT_HOST_OFFSET          0x3000u         /* in the enable page */
#define HT_HOST_MAGIC           0x54534f48u     /* "HOST" */
#define HT_HOST_VERSION         1u
#define HT_HOST_VCPUS           64u
#define HT_HOST_EXITS           16u

/* Exits of a vCPU for one reason */
struct ht_host_exit {
    uint32_t reason;            /* number that VMX or SVM defines */
    char     name[20];          /* the host kernel's name, padded with 0 */
    uint64_t count;
    uint64_t ns;                /* total time, without times off the CPU */
};

/* Times are in ns.  The eight parts from @guest_ns on do not overlap. */
struct ht_host_stats {
    uint64_t seq;               /* changes with each update */
    /* host's CLOCK_MONOTONIC at the start and the end of the sums */
    uint64_t from_ns;
    uint64_t to_ns;
    int32_t  vcpu;              /* number; -1: the sums are of all vCPUs */
    uint32_t nr_exits;          /* valid elements of @exits */
    uint64_t guest_ns;          /* the vCPU ran the guest's code */
    uint64_t exits_ns;          /* the host's kernel handled exits */
    uint64_t vmm_ns;            /* the emulator's code ran in its thread */
    /* stolen: waited for a CPU after another task had taken its CPU */
    uint64_t preempted_ns;
    uint64_t woken_ns;          /* stolen: waited for a CPU after a wake-up */
    uint64_t halted_ns;         /* the guest had halted the vCPU */
    uint64_t waiting_ns;        /* its thread waited for something else */
    uint64_t unknown_ns;        /* the host has lost events */
    /* parts of the stolen time, by the tasks that the CPU ran meanwhile */
    uint64_t machines_ns;       /* other virtual machines */
    uint64_t tasks_ns;          /* tasks of the host */
    uint64_t own_ns;            /* threads of this virtual machine */
    uint64_t idle_ns;           /* nothing: the CPU was waking up */
    /* exits for reasons that @exits has no room for, and their time */
    uint64_t other_exits;
    uint64_t other_exits_ns;
    /* by falling time */
    struct ht_host_exit exits[HT_HOST_EXITS];
};

struct ht_host_page {
    uint32_t magic;             /* HT_HOST_MAGIC; else the host tells nothing */
    uint32_t version;           /* HT_HOST_VERSION */
    uint64_t reserved[7];
    struct ht_host_stats vcpus[HT_HOST_VCPUS];
};

/* A stream's ring: one control page, then the packets ---------------------- */

/*
 * A position is a number of bytes since the stream was opened.  Packet n
 * starts at position n * packet_size.  A position has 64 bits and never wraps.
 * If head is a multiple of packet_size, no packet is open.
 */
/* the part of the control page that the guest writes */
struct ht_guest_line {
    uint64_t head;              /* position after the last committed event */
    /* mode overwrite: number of the newest packet, stored before its header */
    uint64_t opening;
    uint64_t lost;              /* number of events discarded so far */
    /*
     * virtio: end of the last closed packet whose header was submitted before
     * the packet was closed; a position
     */
    uint64_t end;
    uint64_t reserved[12];
};

/* the part of the control page that the host writes */
struct ht_host_line {
    /* number of the oldest packet that the host has not released */
    uint64_t tail;
    uint64_t wake;              /* the guest must kick once head >= wake */
    uint32_t state;             /* enum ht_stream_state */
    uint32_t reserved0;
    uint64_t instance;
    uint64_t reserved[12];
};

enum ht_stream_state {
    HT_STREAM_CLOSED  = 0,
    HT_STREAM_OPENED  = 1,
    /* malformed data: the host no longer reads it */
    HT_STREAM_STOPPED = 2,
};

#define HT_WAKE_NEVER           (~(uint64_t)0)  /* value of wake: do not kick */
#define HT_GUEST_LINE_OFFSET    0x000
/* between the guest's line and the host's, two cache lines are unused */
#define HT_HOST_LINE_OFFSET     0x100
/* offset of the first packet in a ring */
#define HT_PACKETS_OFFSET       HT_PAGE

struct ht_ring_control {
    struct ht_guest_line guest;
    uint8_t              gap[HT_HOST_LINE_OFFSET - 128];
    struct ht_host_line  host;
};

/* Packets and events ------------------------------------------------------- */

#define HT_PACKET_MAGIC         0x4b505448u     /* "HTPK" */

struct ht_packet {
    uint32_t magic;             /* HT_PACKET_MAGIC */
    uint32_t stream;            /* index of the stream */
    uint64_t instance;
    uint64_t seq;               /* packet number */
    /* guest counter at the opening; the first event's time is relative to it */
    uint64_t clock_begin;
    uint64_t events;            /* number of events in earlier packets */
    uint64_t lost;              /* number of events discarded before */
    /* guest counter, written when the packet is closed */
    uint64_t clock_end;
    /* bytes of the packet with this header, written when it is closed */
    uint32_t content;
    uint32_t reserved;
};

/* size of the header: u8 id (0 to 253), 24 bits of the clock */
#define HT_EVENT_HEADER         4u
/* size of the header: u8 254, u16 id, 24 bits of the clock */
#define HT_EVENT_HEADER_WIDE    6u
#define HT_EVENT_HEADER_EXT     13u     /* u8 255, u32 id, u64 clock */
#define HT_ID_WIDE              254u
#define HT_ID_EXTENDED          255u
#define HT_CLOCK_BITS           24
#define HT_CLOCK_MASK           ((1u << HT_CLOCK_BITS) - 1)
/* Class ids start at 1, so that zeroed memory is never an event. */

/*
 * virtio: each buffer on data queue 1 + stream holds this structure, then the
 * bytes [from, to) of the stream.  A buffer never crosses the end of a packet.
 * The buffers of a stream are contiguous, except that they skip the unused end
 * of a packet.
 */
struct ht_submit {
    uint64_t from;              /* position of the first byte */
    uint64_t to;                /* position after the last byte */
    uint64_t lost;              /* number of events discarded so far */
    uint32_t stream;            /* index of the stream; must match the queue */
    uint32_t reserved;
};

#define HT_VQ_CONTROL           0
#define HT_VQ_DATA(stream)      (1 + (stream))
#define HT_VQ_SIZE              64

#endif /* HYPERTRACE_ABI_H */
