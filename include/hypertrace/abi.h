/* SPDX-License-Identifier: MIT */
/*
 * hypertrace: the contract between guest and host
 *
 * The device, the guest library, the kernel module and the tools share this
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
 * that claims to be more than an experiment.  No other place in the code names
 * the number.
 */
#define HT_VIRTIO_ID            63
#define HT_PCI_VENDOR_ID        0x1af4
#define HT_PCI_DEVICE_ID        (0x1040 + HT_VIRTIO_ID)

#define HT_MAGIC                0x43525448u     /* "HTRC" */
#define HT_VERSION              3u

#define HT_PCI_BAR_REGS         0       /* hypercall, shm: registers */
#define HT_PCI_BAR_RING         4       /* hypercall, shm: stream RAM */

/* The memory-only transport: a device ivshmem-plain of any emulator */
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
#define HT_MAP_ALIGN            65536u  /* parts mapped separately; any page */
#define HT_STREAMS_MAX          512u
#define HT_PACKET_SIZE_MIN      4096u
#define HT_PACKET_SIZE_MAX      (1u << 20)
#define HT_PACKETS_MIN          2u
#define HT_PACKETS_MAX          1024u
#define HT_CLASSES_MAX          8192u
#define HT_CLASS_VERSIONS_MAX   64u     /* of one name, with different fields */
#define HT_CLASS_NAME_MAX       127u    /* bytes, without a terminator */
#define HT_FIELD_NAME_MAX       63u
#define HT_FIELDS_MAX           32u
#define HT_STREAM_NAME_MAX      32u
#define HT_MESSAGE_MAX          4096u
#define HT_MAILBOX_SIZE         65536u  /* messages of one exchange */
#define HT_BATCH_MAX            65536u
#define HT_SETTINGS_MAX         2048u   /* bytes of text */

/*
 * Feature bits, negotiated as virtio specifies.  On the other channels a driver
 * may skip virtio's initialization; then no feature is negotiated.
 */
#define HT_F_MEMORY             0       /* virtio: STREAM_OPEN has memory */

/* Capabilities: BAR0 offset 0; stream RAM offset 0; virtio config space --- */

struct ht_caps {
    uint32_t magic;             /* 0x00 HT_MAGIC */
    uint32_t version;           /* 0x04 HT_VERSION */
    uint32_t channel;           /* 0x08 enum ht_channel */
    uint32_t mode;              /* 0x0c enum ht_mode */
    uint64_t ring_offset;       /* 0x10 of stream 0's ring, in stream RAM */
    uint32_t streams;           /* 0x18 streams, 1 to HT_STREAMS_MAX */
    uint32_t packet_size;       /* 0x1c bytes, a power of two */
    uint32_t packets;           /* 0x20 packets in a ring, a power of two */
    uint32_t batch;             /* 0x24 hypercall: commits per doorbell */
    uint32_t flush_ms;          /* 0x28 maximum time that an event waits */
    uint32_t max_gap;           /* 0x2c ticks; from it on: extended header */
    uint64_t clock_hz;          /* 0x30 guest counter, measured; 0: unknown */
    uint64_t epoch;             /* 0x38 changes when the host closes streams */
    uint64_t ring_stride;       /* 0x40 stream i: ring_offset + i * stride */
    uint32_t doorbell_offset;   /* 0x48 in BAR0 */
    uint32_t doorbell_stride;   /* 0x4c stream i: offset + i * stride */
    uint32_t mailbox_offset;    /* 0x50 in stream RAM */
    uint32_t mailbox_size;      /* 0x54 most bytes of an exchange; virtio too */
    uint32_t max_classes;       /* 0x58 */
    uint32_t max_message;       /* 0x5c bytes of a message */
    uint64_t enable_offset;     /* 0x60 in stream RAM: enable page */
    uint32_t enable_seq;        /* 0x68 changes with enable bytes, settings */
    uint32_t counter;           /* 0x6c enum ht_counter */
};

/* BAR0 registers after the capabilities; 4 bytes wide, write-only */
#define HT_REG_MAILBOX_GO       0x80    /* bytes of messages to execute */
#define HT_REG_TAKEOVER         0x84    /* HT_MAGIC: close every stream */

/* Page 0 of the memory-only transport ------------------------------------ */

/*
 * All offsets in @caps are from the start of this page.  The creator of the
 * memory writes it before the virtual machine starts; a driver takes the device
 * only if @caps is valid, and its probe writes nothing.
 *
 * An exchange has no exit.  The request area is at mailbox_offset, the reply
 * area after it at mailbox_offset + mailbox_size.  The guest writes the
 * request, @bytes and @to, store-releases go = done + 1, and touches neither
 * area until @done == @go or the epoch changed.  The host load-acquires @go,
 * copies the request once, writes the reply and store-releases done = go.  If
 * @to is not the host's epoch, it sets done = go without executing the request.
 *
 * A host that attaches loads @go, store-releases a new random caps.epoch, then
 * store-releases done = the loaded go.  The guest load-acquires @done, then
 * loads the epoch: if the new host has set @done, the guest sees its epoch, and
 * does not take the reply.
 *
 * The host advances @beat at least every HT_BEAT_MS.  A guest that sees no new
 * beat for HT_BEAT_LOST_MS answers its callers with "no host".  After a new
 * epoch the guest takes the streams away from their producers, sends TAKEOVER,
 * registers its classes and opens its streams again.  The streams stay open
 * until TAKEOVER.
 *
 * Between the mailbox and the rings is an area in which a host leaves to its
 * successor what the rings do not tell.  The guest must not write there.
 *
 * The host cannot read the guest's counter.  While a stream is open, the guest
 * sends rounds of HT_MSG_TIME_SYNC at least every HT_SYNC_MS.
 */
struct ht_memory {
    struct ht_caps caps;        /* 0x000 host */
    uint8_t  gap0[0x100 - sizeof(struct ht_caps)];
    uint64_t beat;              /* 0x100 host */
    uint32_t done;              /* 0x108 host: last request that it answered */
    uint8_t  gap1[0x200 - 0x10c];
    uint32_t go;                /* 0x200 guest: number of the request */
    uint32_t bytes;             /* 0x204 guest: size of the request */
    uint64_t to;                /* 0x208 guest: epoch of its host */
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
    HT_STATUS_BUSY   = 1,       /* not finished: send the reply as a message */
    HT_STATUS_INVAL  = 2,       /* malformed */
    HT_STATUS_LIMIT  = 3,       /* a documented limit is reached */
    HT_STATUS_NOENT  = 4,       /* no such stream, class or message type */
    HT_STATUS_EXIST  = 5,       /* name or stream in use */
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
    uint32_t size;              /* of request or reply in bytes, with header */
    uint32_t status;            /* reply: enum ht_status */
    uint32_t cookie;            /* returned unchanged */
};

enum ht_field_kind {
    HT_FIELD_U8 = 1, HT_FIELD_U16, HT_FIELD_U32, HT_FIELD_U64,
    HT_FIELD_S8, HT_FIELD_S16, HT_FIELD_S32, HT_FIELD_S64,
    HT_FIELD_F32, HT_FIELD_F64,
    HT_FIELD_TEXT = 16,         /* u16 length, then UTF-8, not terminated */
    HT_FIELD_SEQUENCE = 17,     /* u16 count, then count elements */
    HT_FIELD_ARRAY = 18,        /* a fixed count of elements */
};

#define HT_FIELD_HEX            0x01u   /* show in base 16 */
#define HT_FIELD_UTF8           0x02u   /* array of u8: text, padded with 0 */
#define HT_FIELD_LABELS         0x04u   /* integer: values have names */
#define HT_FIELD_BITS           0x08u   /* with LABELS: they are bits */

/*
 * A label: its value, 64 bits, sign-extended; its length, one byte; its name.
 * A field's labels follow the field's name.
 */
#define HT_LABEL_HEADER         9u
#define HT_LABEL_MAX            63u     /* bytes of a name */
#define HT_LABELS_MAX           64u     /* labels of a field */

/* One field in a class message, followed by its name */
struct ht_msg_field {
    uint8_t  kind;              /* enum ht_field_kind */
    uint8_t  elem;              /* sequence, array: an integer kind; else 0 */
    uint8_t  flags;             /* HT_FIELD_HEX and so on */
    uint8_t  name_len;          /* 1 to HT_FIELD_NAME_MAX */
    uint16_t count;             /* array: 1 to 4096; labels; else 0 */
};

struct ht_msg_class {
    struct ht_msg h;
    uint32_t id;                /* reply; ignored in a request */
    uint32_t index;             /* CLASS_LIST: number of the class, from 0 */
    uint8_t  nr_fields;         /* 0 to HT_FIELDS_MAX */
    uint8_t  name_len;          /* 1 to HT_CLASS_NAME_MAX */
    uint8_t  loglevel;          /* as syslog's, 0 to 14 */
    uint8_t  on;                /* reply: HT_ENABLE_ON, or 0: class is off */
    uint32_t origin;            /* HT_ORIGIN_KERNEL, or a user id */
    uint8_t  data[];            /* name, then nr_fields x (field, its name) */
};

/* The guest's kernel, which stamps the origin; no user has this id. */
#define HT_ORIGIN_KERNEL        0xffffffffu

#define HT_STREAM_ANY           0xffffffffu

struct ht_msg_open {
    struct ht_msg h;
    uint32_t stream;            /* index or HT_STREAM_ANY; reply: index */
    int32_t  vcpu;              /* the producer's vCPU, -1: not bound to one */
    uint64_t instance;          /* 0; reply: new, unique in the trace */
    uint8_t  name[HT_STREAM_NAME_MAX]; /* [ -~], padded with 0 */
    uint64_t memory;            /* HT_F_MEMORY: address of a table; 0: none */
};

/*
 * HT_F_MEMORY: a table of 64-bit guest-physical addresses: the stream's control
 * page, then the slot of each packet.  An entry is 0 if its page is not
 * present.  If no driver is left to submit committed events, the host reads
 * them there.
 */
#define HT_MEMORY_CONTROL       0u
#define HT_MEMORY_SLOT(n)       (1u + (n))

/* STREAM_CLOSE, STREAM_FLUSH; @stream of a flush may be HT_STREAM_ANY */
struct ht_msg_stream {
    struct ht_msg h;
    uint32_t stream;
    uint32_t ticket;            /* flush: 0; reply: identifies the flush */
    uint64_t instance;          /* as opened; 0 with HT_STREAM_ANY */
    uint64_t lost;              /* virtio: events discarded by the producer */
};

struct ht_msg_time {
    struct ht_msg h;
    uint64_t before;            /* guest counter before exchange @prev, or 0 */
    uint64_t after;             /* guest counter after exchange @prev, or 0 */
    uint32_t prev;              /* cookie of an earlier exchange */
    uint32_t reserved;
    uint64_t host_ns;           /* reply: host CLOCK_MONOTONIC */
    uint64_t bound_ns;          /* reply: error bound of the conversion */
};

/* Enable bytes of consecutive classes, if a guest cannot map the enable page */
struct ht_msg_enabled {
    struct ht_msg h;
    uint32_t first;             /* class id of the first byte */
    uint32_t count;             /* bytes of room; reply: bytes written */
    uint32_t seq;               /* reply: enable_seq of ht_caps */
    uint32_t reserved;
    uint8_t  on[];              /* reply */
};

/* The host's settings for event sources in a guest: "NAME=VALUE NAME=VALUE" */
struct ht_msg_settings {
    struct ht_msg h;
    uint32_t count;             /* bytes of room; reply: bytes of text */
    uint32_t seq;               /* reply: enable_seq of ht_caps */
    char     text[];            /* reply; not terminated */
};

struct ht_stats {
    uint64_t events;            /* valid events that the host read */
    uint64_t packets;           /* runs handed to the backends */
    uint64_t bytes;             /* of events, headers included */
    uint64_t lost;              /* events that the producer has discarded */
    uint64_t dropped;           /* events that the device discarded */
    uint64_t wakeups;           /* polls of the consumer */
    uint64_t errors;            /* malformed input */
};

struct ht_msg_stats {
    struct ht_msg h;
    uint32_t stream;            /* index, or HT_STREAM_ANY for the device */
    uint32_t reserved;
    struct ht_stats stats;      /* reply */
};

/* Events that producers discarded because they had no stream */
struct ht_msg_discarded {
    struct ht_msg h;
    uint64_t count;             /* events since the previous message */
};

/* The enable page ---------------------------------------------------------- */

/*
 * The page holds one byte for each class, indexed by class id.  The host writes
 * it and the guest only reads it.  The class is on if the byte is HT_ENABLE_ON.
 * Every other value means off.  So all classes are off after the BAR was
 * removed, which then reads as 0xff.
 */
#define HT_ENABLE_ON            1u
#define HT_ENABLE_SIZE          65536u  /* size and alignment, in bytes */

/* A stream's ring: one control page, then the packets ---------------------- */

/*
 * A position is a number of bytes since the stream was opened.  Packet n
 * starts at n * packet_size, so one 64-bit number holds packet and offset, and
 * it never wraps.  If the offset of head in its packet is 0, no packet is open.
 */
struct ht_guest_line {          /* written by the guest */
    uint64_t head;              /* end of the last committed event */
    uint64_t opening;           /* overwrite: number of packet being opened */
    uint64_t lost;              /* events discarded so far */
    /*
     * virtio: position of the end of the last closed packet of which a part was
     * submitted while the packet was open
     */
    uint64_t end;
    uint64_t reserved[12];
};

struct ht_host_line {           /* written by the host */
    uint64_t tail;              /* number of the first packet not released */
    uint64_t wake;              /* ring the doorbell once head >= wake */
    uint32_t state;             /* enum ht_stream_state */
    uint32_t reserved0;
    uint64_t instance;
    uint64_t reserved[12];
};

enum ht_stream_state {
    HT_STREAM_CLOSED  = 0,
    HT_STREAM_OPENED  = 1,
    HT_STREAM_STOPPED = 2,      /* malformed: the host no longer reads it */
};

#define HT_WAKE_NEVER           (~(uint64_t)0)  /* wake: no doorbell */
#define HT_GUEST_LINE_OFFSET    0x000
#define HT_HOST_LINE_OFFSET     0x100   /* a cache line pair apart */
#define HT_PACKETS_OFFSET       HT_PAGE /* first packet, in a stream's ring */

struct ht_ring_control {
    struct ht_guest_line guest;
    uint8_t              gap[HT_HOST_LINE_OFFSET - 128];
    struct ht_host_line  host;
};

/* Packets and events ------------------------------------------------------- */

#define HT_PACKET_MAGIC         0x4b505448u     /* "HTPK" */

struct ht_packet {
    uint32_t magic;             /* HT_PACKET_MAGIC */
    uint32_t stream;            /* index */
    uint64_t instance;
    uint64_t seq;               /* packet number */
    uint64_t clock_begin;       /* guest counter: time base of first event */
    uint64_t events;            /* events of the stream before this packet */
    uint64_t lost;              /* events discarded before this packet */
    uint64_t clock_end;         /* at close */
    uint32_t content;           /* at close: bytes, this header included */
    uint32_t reserved;
};

#define HT_EVENT_HEADER         4u      /* id, 24 bits of the clock */
#define HT_EVENT_HEADER_WIDE    6u      /* 254, u16 id, 24 bits of the clock */
#define HT_EVENT_HEADER_EXT     13u     /* 255, u32 id, u64 clock */
#define HT_ID_WIDE              254u
#define HT_ID_EXTENDED          255u
#define HT_CLOCK_BITS           24
#define HT_CLOCK_MASK           ((1u << HT_CLOCK_BITS) - 1)
/* Ids start at 1, so that zeroed memory is never an event. */

/*
 * virtio: each buffer on data queue 1 + stream holds this structure, then the
 * bytes [from, to) of the stream.  A buffer never crosses the end of a packet.
 * The buffers of a stream are contiguous, except that they skip the unused end
 * of a packet.
 */
struct ht_submit {
    uint64_t from;              /* position */
    uint64_t to;                /* position; to - from bytes follow */
    uint64_t lost;              /* events discarded so far */
    uint32_t stream;            /* index; must match the queue */
    uint32_t reserved;
};

#define HT_VQ_CONTROL           0
#define HT_VQ_DATA(stream)      (1 + (stream))
#define HT_VQ_SIZE              64

#endif /* HYPERTRACE_ABI_H */
