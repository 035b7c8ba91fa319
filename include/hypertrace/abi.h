/* SPDX-License-Identifier: MIT */
/*
 * hypertrace: the contract between guest and host
 *
 * The device, the guest library, the kernel modules and the tools use this
 * header.  docs/specs/ describes the same contract in prose; a difference
 * between the header and the prose is a bug.  All numbers are little-endian.
 * In each structure, every number is at a multiple of its size, and there is no
 * implicit padding.
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

/*
 * BAR of the registers with channels hypercall and shm: struct ht_caps,
 * HT_REG_*, then the doorbells
 */
#define HT_PCI_BAR_REGS         0
/* BAR of the stream RAM with channels hypercall and shm */
#define HT_PCI_BAR_RING         4

/*
 * The memory-only transport uses the PCI device ivshmem-plain, which several
 * emulators have.
 */
#define HT_IVSHMEM_DEVICE_ID    0x1110
/* BAR that is the stream RAM, see struct ht_memory */
#define HT_IVSHMEM_BAR          2

enum ht_channel {
    HT_CHANNEL_HYPERCALL = 0,
    HT_CHANNEL_SHM       = 1,
    HT_CHANNEL_VIRTIO    = 2,
    /* memory-only transport: stream RAM, without registers */
    HT_CHANNEL_MEMORY    = 3,
};

enum ht_mode {
    /* while its ring is full, a producer discards its new events */
    HT_MODE_DISCARD   = 0,
    /* if its ring is full, a producer overwrites the oldest packet */
    HT_MODE_OVERWRITE = 1,
};

/* The guest counter that events carry as their time */
enum ht_counter {
    HT_COUNTER_TSC    = 1,      /* x86: RDTSC */
    HT_COUNTER_CNTVCT = 2,      /* Arm: CNTVCT_EL0 */
};

/* Limits that do not depend on properties -------------------------------- */

#define HT_PAGE                 4096u
/*
 * Alignment in bytes of the parts of stream RAM that a guest maps separately:
 * the largest base page size of x86 and Arm
 */
#define HT_MAP_ALIGN            65536u
#define HT_STREAMS_MAX          512u
#define HT_PACKET_SIZE_MIN      4096u
#define HT_PACKET_SIZE_MAX      (1u << 20)
#define HT_PACKETS_MIN          2u
#define HT_PACKETS_MAX          1024u
#define HT_CLASSES_MAX          8192u
/*
 * maximum number of classes that are registered with the same name: they differ
 * in their fields, or one is the kernel's and the other a program's
 */
#define HT_CLASS_VERSIONS_MAX   64u
/* maximum length of a class's name in bytes, without a NUL */
#define HT_CLASS_NAME_MAX       127u
#define HT_FIELD_NAME_MAX       63u
#define HT_FIELDS_MAX           32u
#define HT_STREAM_NAME_MAX      32u
#define HT_MESSAGE_MAX          4096u
/* maximum size of all messages of one exchange, in bytes */
#define HT_MAILBOX_SIZE         65536u
#define HT_BATCH_MAX            65536u
/* maximum length of ht_msg_settings.text in bytes */
#define HT_SETTINGS_MAX         2048u

/*
 * Feature bits, negotiated as virtio specifies.  With channels hypercall and
 * shm, a driver may skip virtio's initialization; then no feature is
 * negotiated.
 */
/* feature bit 0, channel virtio: the host can use ht_msg_open.memory */
#define HT_F_MEMORY             0

/*
 * Capabilities of a device.  A driver reads them at the start of BAR0 (channels
 * hypercall and shm), in virtio's configuration space (these channels and
 * virtio), or at the start of stream RAM (memory).  With hypercall and shm, the
 * copy at the start of stream RAM is only for the host's tools.
 */

struct ht_caps {
    uint32_t magic;             /* 0x00: HT_MAGIC */
    uint32_t version;           /* 0x04: HT_VERSION */
    uint32_t channel;           /* 0x08: enum ht_channel */
    uint32_t mode;              /* 0x0c: enum ht_mode */
    /* 0x10: offset of stream 0's ring in stream RAM */
    uint64_t ring_offset;
    /* 0x18: number of streams, up to HT_STREAMS_MAX */
    uint32_t streams;
    /* 0x1c: size of a packet in bytes, a power of two */
    uint32_t packet_size;
    /* 0x20: number of packets in a ring, a power of two */
    uint32_t packets;
    /* 0x24: hypercall: number of commits for each doorbell */
    uint32_t batch;
    /*
     * 0x28: longest time in ms that a committed event should wait for the host
     */
    uint32_t flush_ms;
    /*
     * 0x2c: an event needs an extended header if the counter has advanced or
     * gone back by this many ticks or more since the packet's previous event
     * or, for the packet's first event, since ht_packet.clock_begin
     */
    uint32_t max_gap;
    /* 0x30: frequency in Hz that the host expects of the counter; 0: unknown */
    uint64_t clock_hz;
    /*
     * 0x38: number that changes at a reset of the system or of PCI, and at a
     * TAKEOVER; memory-only transport: changes when a host attaches, and at no
     * other time
     */
    uint64_t epoch;
    /* 0x40: stream i's ring is at ring_offset + i * ring_stride */
    uint64_t ring_stride;
    /* 0x48: offset of stream 0's doorbell in BAR0 */
    uint32_t doorbell_offset;
    /*
     * 0x4c: bytes from a stream's doorbell to the next stream's; 0: all streams
     * have the same doorbell.  If the channel is hypercall, a write anywhere in
     * these bytes rings the stream's doorbell.
     */
    uint32_t doorbell_stride;
    uint32_t mailbox_offset;    /* 0x50: offset of the mailbox in stream RAM */
    /*
     * 0x54: maximum total size in bytes of the requests of an exchange, and
     * that of its replies; it also applies to virtio, which has no mailbox
     */
    uint32_t mailbox_size;
    uint32_t max_classes;       /* 0x58: maximum class id */
    /* 0x5c: maximum size of a control message in bytes */
    uint32_t max_message;
    /* 0x60: offset of the enable page in stream RAM */
    uint64_t enable_offset;
    /*
     * 0x68: number that changes when the settings change, or when an enable
     * byte changes that no reply to HT_MSG_CLASS_REGISTER contained
     */
    uint32_t enable_seq;
    uint32_t counter;           /* 0x6c: enum ht_counter */
};

/* Registers of BAR0 after the capabilities: 4 bytes wide, write-only */
/* write the total size in bytes of the mailbox's messages, to execute them */
#define HT_REG_MAILBOX_GO       0x80
/* write HT_MAGIC, to close all streams */
#define HT_REG_TAKEOVER         0x84

/* Page 0 of the memory-only transport ------------------------------------ */

/*
 * All offsets in @caps are from the start of this page.  A driver uses the
 * device only if @caps is valid, and writes nothing before it has checked that.
 *
 * An exchange causes no exit.  The request area is at mailbox_offset, the reply
 * area after it at mailbox_offset + mailbox_size.  The guest writes the
 * request, @bytes and @to, store-releases go = done + 1, and accesses neither
 * area until @done == @go or the epoch has changed.  The host load-acquires
 * @go, copies the request once, writes the reply and store-releases done = go.
 * If @to is not the host's epoch, the host only sets done = go.
 *
 * A host that attaches loads @go, store-releases a new random caps.epoch, then
 * store-releases done = the loaded go.  The guest load-acquires @done, then
 * loads the epoch.  If the new host has set @done, the guest sees the new epoch
 * and ignores the reply area.
 *
 * The host advances @beat at least every HT_BEAT_MS.  A guest that sees no new
 * beat for HT_BEAT_LOST_MS takes the host as absent and fails its callers.
 * After a new epoch the guest takes the streams away from their producers,
 * sends TAKEOVER, registers its classes and opens its streams again.  The new
 * host may go on reading the rings that the previous host left open; the
 * streams of these rings stay open until TAKEOVER.
 *
 * Between the reply area and the rings is an area in which the host keeps the
 * state that the next host needs.  The guest must not write to the area.
 *
 * The host cannot read the guest's counter.  While a stream is open, the guest
 * sends at least two messages HT_MSG_TIME_SYNC in every HT_SYNC_MS.
 */
struct ht_memory {
    struct ht_caps caps;        /* 0x000: capabilities, written by the host */
    uint8_t  gap0[0x100 - sizeof(struct ht_caps)];
    /* 0x100: written by the host, which increases it while it serves */
    uint64_t beat;
    /*
     * 0x108: written by the host: number of the last request that the host has
     * executed or skipped
     */
    uint32_t done;
    uint8_t  gap1[0x200 - 0x10c];
    /* 0x200: written by the guest: number of its last request */
    uint32_t go;
    /* 0x204: written by the guest: size of its last request in bytes */
    uint32_t bytes;
    /*
     * 0x208: written by the guest: epoch of the host that must answer the
     * request
     */
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
    /* not finished, or not begun: send the reply back to get the result */
    HT_STATUS_BUSY   = 1,
    HT_STATUS_INVAL  = 2,       /* the message or a value in it is invalid */
    HT_STATUS_LIMIT  = 3,       /* a documented limit is reached */
    /* the stream, class or message type does not exist */
    HT_STATUS_NOENT  = 4,
    HT_STATUS_EXIST  = 5,       /* the stream is in use */
    HT_STATUS_IO     = 6,       /* the device is being unplugged */
    HT_STATUS_STOPPED = 7,      /* the stream was stopped as corrupt */
};

/*
 * The header of every message and of its reply.  With channels hypercall and
 * shm, the reply overwrites the message.  An exchange is one message with its
 * reply, or several HT_MSG_CLASS_REGISTER with theirs, each at a multiple of
 * HT_MESSAGE_ALIGN bytes.
 */
#define HT_MESSAGE_ALIGN        8u

struct ht_msg {
    uint16_t type;              /* enum ht_msg_type */
    uint16_t reserved;          /* 0 */
    /* size of the request or reply with this header, in bytes */
    uint32_t size;
    uint32_t status;            /* reply: enum ht_status */
    /* number that the request's sender chooses; the reply has the same */
    uint32_t cookie;
};

enum ht_field_kind {
    HT_FIELD_U8 = 1, HT_FIELD_U16, HT_FIELD_U32, HT_FIELD_U64,
    HT_FIELD_S8, HT_FIELD_S16, HT_FIELD_S32, HT_FIELD_S64,
    HT_FIELD_F32, HT_FIELD_F64,
    /* u16 length in bytes, then UTF-8, not terminated by a NUL */
    HT_FIELD_TEXT = 16,
    HT_FIELD_SEQUENCE = 17,     /* u16 number of elements, then the elements */
    HT_FIELD_ARRAY = 18,        /* ht_msg_field.count elements */
};

/* flag: show an integer, or a sequence's or array's integers, in base 16 */
#define HT_FIELD_HEX            0x01u
/* flag of an array of u8: show it as text, which ends at the first 0 */
#define HT_FIELD_UTF8           0x02u
/* flag of an integer field: its values have names */
#define HT_FIELD_LABELS         0x04u
/* flag, with HT_FIELD_LABELS: labels name bits of the integer, not values */
#define HT_FIELD_BITS           0x08u

/*
 * Size of a label without its name.  A label has its value (64 bits,
 * sign-extended if the field is signed), the length of its name (one byte), and
 * its name.  The labels of a field follow the field's name.
 */
#define HT_LABEL_HEADER         9u
#define HT_LABEL_MAX            63u     /* maximum length of a label's name */
#define HT_LABELS_MAX           64u     /* maximum number of a field's labels */

/* One field in a class message, followed by its name and its labels */
struct ht_msg_field {
    uint8_t  kind;              /* the field's kind, enum ht_field_kind */
    /* a sequence's or array's kind of elements; else 0 */
    uint8_t  elem;
    uint8_t  flags;             /* flags HT_FIELD_HEX to HT_FIELD_BITS */
    /* length of the field's name, 1 to HT_FIELD_NAME_MAX */
    uint8_t  name_len;
    /*
     * array: number of elements, 1 to 4096; with HT_FIELD_LABELS: number of
     * labels; else 0
     */
    uint16_t count;
};

struct ht_msg_class {
    struct ht_msg h;
    uint32_t id;                /* class id in a reply; ignored in a request */
    /* HT_MSG_CLASS_LIST: the class's position in the list, from 0 */
    uint32_t index;
    uint8_t  nr_fields;         /* number of fields, 0 to HT_FIELDS_MAX */
    /* length of the class's name, 1 to HT_CLASS_NAME_MAX */
    uint8_t  name_len;
    /* the class's level, 0 (emergency) to 14 (debug), as enum ht_level */
    uint8_t  loglevel;
    /*
     * reply to HT_MSG_CLASS_REGISTER: HT_ENABLE_ON if the class is on, 0 if it
     * is off
     */
    uint8_t  on;
    /* HT_ORIGIN_KERNEL, or the id of the user who registered the class */
    uint32_t origin;
    /* the class's name, then each field followed by its name and labels */
    uint8_t  data[];
};

/* ht_msg_class.origin of the guest kernel's own classes; no user has this id */
#define HT_ORIGIN_KERNEL        0xffffffffu

#define HT_STREAM_ANY           0xffffffffu

struct ht_msg_open {
    struct ht_msg h;
    /*
     * request: wanted index of the stream, or HT_STREAM_ANY; reply: its index
     */
    uint32_t stream;
    /* number that the guest gives the producer's vCPU; -1: bound to no vCPU */
    int32_t  vcpu;
    /*
     * first request: 0; reply: number that identifies this opening, or 0 with
     * HT_STATUS_BUSY if the host has not begun it
     */
    uint64_t instance;
    /* the stream's name: printable ASCII, padded with 0 */
    uint8_t  name[HT_STREAM_NAME_MAX];
    /*
     * with HT_F_MEMORY: guest-physical address of the table described below, or
     * 0
     */
    uint64_t memory;
};

/*
 * The table at ht_msg_open.memory has 64-bit guest-physical addresses: that of
 * the stream's control page, then that of each slot of a packet.  The driver
 * stores 0 to the first entry when the host must no longer read the memory.  If
 * the VM is stopped, or the device is reset or unplugged, before all committed
 * events were submitted, the host reads these events at the addresses.
 */
#define HT_MEMORY_CONTROL       0u
#define HT_MEMORY_SLOT(n)       (1u + (n))

/*
 * HT_MSG_STREAM_CLOSE and _FLUSH; for a flush, @stream may be HT_STREAM_ANY,
 * which means all streams
 */
struct ht_msg_stream {
    struct ht_msg h;
    uint32_t stream;
    /* flush: 0 in the first request; reply with BUSY: number of the flush */
    uint32_t ticket;
    /* instance from the reply to STREAM_OPEN; 0 for all streams */
    uint64_t instance;
    /* close: number of events that the producer has discarded in all */
    uint64_t lost;
};

struct ht_msg_time {
    struct ht_msg h;
    /* guest counter read before the request of exchange @prev, or 0 */
    uint64_t before;
    /* guest counter read after the reply to exchange @prev, or 0 */
    uint64_t after;
    /* cookie of the exchange between @before and @after */
    uint32_t prev;
    uint32_t reserved;
    uint64_t host_ns;           /* reply: the host's CLOCK_MONOTONIC in ns */
    /*
     * reply: maximum error in ns of the dates of events of the next second (or
     * 25 ms, if the host reads the guest's counter); all ones: unknown
     */
    uint64_t bound_ns;
};

/*
 * Read the enable bytes of consecutive classes, for a guest that cannot map the
 * enable page
 */
struct ht_msg_enabled {
    struct ht_msg h;
    uint32_t first;             /* class id of the first byte of @on */
    /* room in @on, in bytes; reply: number of bytes written to @on */
    uint32_t count;
    uint32_t seq;               /* reply: value of ht_caps.enable_seq */
    uint32_t reserved;
    /* reply: the enable bytes of consecutive classes */
    uint8_t  on[];
};

/* The host's settings for event sources in a guest: "NAME=VALUE NAME=VALUE" */
struct ht_msg_settings {
    struct ht_msg h;
    /* room in @text, in bytes; reply: number of bytes written to @text */
    uint32_t count;
    uint32_t seq;               /* reply: value of ht_caps.enable_seq */
    char     text[];            /* reply: the settings, without a NUL */
};

struct ht_stats {
    uint64_t events;            /* valid events that the host has read */
    /* runs of consecutive events that were passed to the backends */
    uint64_t packets;
    /* size in bytes of the events that the host has read, with their headers */
    uint64_t bytes;
    /* events that producers have discarded, as far as the host knows */
    uint64_t lost;
    /*
     * events lost before the host read them: overwritten (HT_MODE_OVERWRITE);
     * memory-only transport: also events that an earlier host released without
     * recording them
     */
    uint64_t dropped;
    /*
     * number of times that the host checked a stream for new events and found
     * some; virtio: number of buffers that the host took from a data queue
     */
    uint64_t wakeups;
    /* malformed inputs, and messages answered with HT_STATUS_LIMIT */
    uint64_t errors;
};

struct ht_msg_stats {
    struct ht_msg h;
    /* index of the stream, or HT_STREAM_ANY for the whole device */
    uint32_t stream;
    uint32_t reserved;
    struct ht_stats stats;      /* reply */
};

/*
 * HT_MSG_DISCARDED: the guest reports events that its producers discarded
 * because they had no stream.
 */
struct ht_msg_discarded {
    struct ht_msg h;
    /* number of events discarded since the previous message HT_MSG_DISCARDED */
    uint64_t count;
};

/* The enable page ---------------------------------------------------------- */

/*
 * The enable page begins with one byte for each class, indexed by class id.
 * The host writes the page and the guest only reads it.  A class is on if its
 * byte is HT_ENABLE_ON, and off if it has any other value.  After a removal of
 * the device, its BAR reads as 0xff or 0, so all classes are off.
 */
#define HT_ENABLE_ON            1u
/* size of the enable page in bytes, and its alignment */
#define HT_ENABLE_SIZE          65536u

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
/* offset of the host's statistics in the enable page */
#define HT_HOST_OFFSET          0x3000u
#define HT_HOST_MAGIC           0x54534f48u     /* "HOST" */
#define HT_HOST_VERSION         1u
#define HT_HOST_VCPUS           64u
#define HT_HOST_EXITS           16u

/* Exits of a vCPU for one reason */
struct ht_host_exit {
    /* number of the exit's reason, as VMX or SVM defines it */
    uint32_t reason;
    /* the host kernel's name of the reason, at most 19 bytes, padded with 0 */
    char     name[20];
    uint64_t count;             /* number of exits */
    /* total time of these exits in ns, without times off the CPU */
    uint64_t ns;
};

/* Times in ns.  The eight from @guest_ns to @unknown_ns do not overlap. */
struct ht_host_stats {
    /* changes with each update; odd during an update; 0: no data */
    uint64_t seq;
    /*
     * host's CLOCK_MONOTONIC at the start and the end of the period of the sums
     */
    uint64_t from_ns;
    uint64_t to_ns;
    /* number of the vCPU; -1: sums of the one thread that runs all vCPUs */
    int32_t  vcpu;
    uint32_t nr_exits;          /* number of valid elements of @exits */
    /* time in which the vCPU ran the guest's code */
    uint64_t guest_ns;
    /* time in which the host's kernel handled the vCPU's exits */
    uint64_t exits_ns;
    /*
     * time in which the emulator's code ran in the vCPU's thread; without KVM,
     * this includes the guest's code
     */
    uint64_t vmm_ns;
    /* stolen time: waiting for a CPU after another task had taken the CPU */
    uint64_t preempted_ns;
    /* stolen time: waiting for a CPU after a wake-up */
    uint64_t woken_ns;
    /* time for which the guest had halted the vCPU */
    uint64_t halted_ns;
    /* time for which the vCPU's thread was blocked for another reason */
    uint64_t waiting_ns;
    /* time of unknown use, for example because the host has lost events */
    uint64_t unknown_ns;
    /* The next four are parts of the stolen time, by what the CPU did then. */
    uint64_t machines_ns;       /* stolen by other virtual machines */
    uint64_t tasks_ns;          /* stolen by tasks of the host */
    uint64_t own_ns;            /* stolen by threads of this virtual machine */
    uint64_t idle_ns;           /* stolen while the CPU was idle, waking up */
    /* number and time in ns of the exits for reasons that are not in @exits */
    uint64_t other_exits;
    uint64_t other_exits_ns;
    /* the reasons with the longest times, in falling order */
    struct ht_host_exit exits[HT_HOST_EXITS];
};

struct ht_host_page {
    /* HT_HOST_MAGIC; with any other value there are no statistics */
    uint32_t magic;
    uint32_t version;           /* HT_HOST_VERSION */
    uint64_t reserved[7];
    struct ht_host_stats vcpus[HT_HOST_VCPUS];
};

/* A stream's ring: one control page, then the packets ---------------------- */

/*
 * A position is the number of a byte in the packets of a stream, counted since
 * the stream was opened: packet n starts at position n * packet_size, and the
 * unused bytes of a packet count, too.  A position has 64 bits and never wraps.
 * If head is a multiple of packet_size, no packet is open.
 */
/* the part of the control page that the guest writes */
struct ht_guest_line {
    /*
     * position after the last committed event; after a packet is closed, the
     * start of the next packet
     */
    uint64_t head;
    /* mode overwrite: number of the newest packet, stored before its header */
    uint64_t opening;
    /* number of events that the producer has discarded so far */
    uint64_t lost;
    /*
     * virtio: position after the last event of the newest packet that was
     * submitted in part before the guest closed it
     */
    uint64_t end;
    uint64_t reserved[12];
};

/*
 * the part of the control page that the host writes; with virtio, which has the
 * page in guest RAM, the guest's driver and library write it
 */
struct ht_host_line {
    /* number of the oldest packet that the host has not released */
    uint64_t tail;
    /*
     * position: once head >= wake, the guest kicks the host (shm); 0 once the
     * stream is closed
     */
    uint64_t wake;
    uint32_t state;             /* enum ht_stream_state */
    uint32_t reserved0;
    uint64_t instance;
    uint64_t reserved[12];
};

enum ht_stream_state {
    HT_STREAM_CLOSED  = 0,
    HT_STREAM_OPENED  = 1,
    /* the host has found malformed data and no longer reads the ring */
    HT_STREAM_STOPPED = 2,
};

/*
 * value of ht_host_line.wake that no head reaches: over shm and memory, no
 * commit kicks.  Over hypercall and virtio, the word does not decide about
 * kicks.
 */
#define HT_WAKE_NEVER           (~(uint64_t)0)
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
    /* number of the packet in its instance, from 0 */
    uint64_t seq;
    /*
     * guest counter when the packet was opened; the time of the packet's first
     * event is relative to it, unless that event's header has all 64 bits
     */
    uint64_t clock_begin;
    /* number of events in the instance's earlier packets */
    uint64_t events;
    /* number of events that the producer discarded before this packet */
    uint64_t lost;
    /*
     * guest counter when the packet was closed.  The guest writes clock_end and
     * content then, except to a header that was submitted before (virtio).
     */
    uint64_t clock_end;
    /* number of the packet's used bytes, with this header */
    uint32_t content;
    uint32_t reserved;
};

/* size in bytes of a header of u8 id (1 to 253) and 24 bits of the clock */
#define HT_EVENT_HEADER         4u
/* size in bytes of a header of u8 254, u16 id, and 24 bits of the clock */
#define HT_EVENT_HEADER_WIDE    6u
/* size in bytes of a header of u8 255, u32 id, and u64 clock */
#define HT_EVENT_HEADER_EXT     13u
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
    /* position of the first byte that the buffer has of the stream */
    uint64_t from;
    /* position after the last byte that the buffer has of the stream */
    uint64_t to;
    /* number of events that the producer has discarded so far */
    uint64_t lost;
    uint32_t stream;            /* index of the stream; must match the queue */
    uint32_t reserved;
};

#define HT_VQ_CONTROL           0
#define HT_VQ_DATA(stream)      (1 + (stream))
#define HT_VQ_SIZE              64

#endif /* HYPERTRACE_ABI_H */
