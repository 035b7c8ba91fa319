/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: act as a guest of the hypertrace device
 *
 * This code uses hypertrace/abi.h but not the guest library, so that a test can
 * break the protocol.  The device consumes many events in another thread, so a
 * test waits for such an effect with QHT_WAIT().
 */
#ifndef LIBQOS_HYPERTRACE_H
#define LIBQOS_HYPERTRACE_H

#include "../libqtest.h"
#include "pci.h"
#include "virtio.h"
#include "virtio-pci.h"
#include "hypertrace/abi.h"

#define QHT_TIMEOUT_US (60 * G_USEC_PER_SEC)

/**
 * QHT_WAIT: wait until a condition holds; after QHT_TIMEOUT_US the test fails
 */
#define QHT_WAIT(cond)                                          \
    do {                                                        \
        gint64 qht_end = g_get_monotonic_time() + QHT_TIMEOUT_US; \
                                                                \
        while (!(cond)) {                                       \
            if (g_get_monotonic_time() > qht_end) {             \
                g_error("%s:%d: timeout: %s", __FILE__, __LINE__, #cond); \
            }                                                   \
            g_usleep(200);                                      \
        }                                                       \
    } while (0)

#define QHT_SLOT 4

/**
 * QHt: a device and its QEMU
 * @qts, @bus, @alloc: the machine; devices of one machine share them
 * @owner: true if qht_quit() also ends QEMU
 * @slot: PCI slot
 * @pci: the function, enabled
 * @regs, @ring: BAR0 and BAR4, unless channel=virtio
 * @caps: capabilities, in host byte order
 * @declined: feature bits that qht_restart() does not negotiate
 * @control, @data: virtqueues, if channel=virtio
 * @control_buf: guest memory for messages and replies, if channel=virtio
 * @path: the device's path in QOM
 * @log: the log backend's file, or NULL
 */
typedef struct QHt {
    QTestState *qts;
    QPCIBus *bus;
    QGuestAllocator *alloc;
    bool owner;
    uint8_t slot;
    QVirtioPCIDevice *pci;
    QPCIBar regs;
    QPCIBar ring;
    struct ht_caps caps;
    uint64_t declined;
    QVirtQueue *control;
    QVirtQueue *data[HT_STREAMS_MAX];
    uint64_t control_buf;
    char *path;
    char *log;
} QHt;

/**
 * qht_boot: start QEMU with one device "ht" in slot QHT_SLOT
 * @machine: "pc" or "q35"
 * @backend: "log", which writes to a new temporary file, or another backend's
 *           type and properties, such as "null" or "ctf,dir=..."
 * @props: the device's properties, such as "channel=shm,streams=2"
 * @extra: more arguments for QEMU, or NULL
 */
QHt *qht_boot(const char *machine, const char *backend, const char *props,
              const char *extra);

/*
 * Start QEMU as qht_boot() does, but do not access the device.  Sets *@log to
 * the path of the log, which the caller frees, or to NULL for other backends.
 */
QTestState *qht_start(const char *machine, const char *backend,
                      const char *props, const char *extra, char **log);

/**
 * qht_attach: use a further device of the same machine
 * @h: the first device, which must be freed last
 * @id: id of the further device
 * @slot: its PCI slot
 */
QHt *qht_attach(QHt *h, const char *id, uint8_t slot);

/* Use the machine's first device; qht_quit() of the result also ends QEMU */
QHt *qht_attach_first(QTestState *qts, const char *id, uint8_t slot);

/* Initialize the device again, as a driver does after a reset */
void qht_restart(QHt *h);

/**
 * qht_wait_deleted: wait for the DEVICE_DELETED event of an unplugged device
 *
 * QEMU sends two of these events: for the virtio device, then for its PCI
 * proxy.  Each call waits for the event of a proxy.
 */
void qht_wait_deleted(QHt *h);

/**
 * qht_unplug: request the removal of a device, and confirm it as the guest
 *
 * On return the device is no longer in QOM.  Its DEVICE_DELETED event may
 * follow later: qht_wait_deleted().
 */
void qht_unplug(QHt *h);

/*
 * Delete an object; returns false if QEMU refuses, for example because the
 * object is in use
 */
bool qht_object_del(QTestState *qts, const char *id);

/*
 * Free @h and delete its log; if @h->owner is set, also end QEMU, which must
 * exit with status 0
 */
void qht_quit(QHt *h);

/**
 * qht_exchange: send @size bytes as a message, which may be malformed
 * @msg: buffer of HT_MESSAGE_MAX bytes; overwritten by the reply
 *
 * Returns: status of the reply
 */
uint32_t qht_exchange(QHt *h, void *msg, size_t size);

/**
 * qht_exchange_all: execute several CLASS_REGISTER messages in one buffer
 * @msgs: at most HT_MAILBOX_SIZE bytes; overwritten by the replies
 * @size: size of all messages
 *
 * If a reply is BUSY, send its message and all messages after it again.
 *
 * Returns: number of exchanges
 */
unsigned qht_exchange_all(QHt *h, void *msgs, size_t size);

/**
 * qht_call: fill in the header and send a message; while the reply's status is
 *           BUSY, send the reply back
 * @msg: overwritten by the first @size bytes of the last reply
 *
 * Returns: status of the last reply
 */
uint32_t qht_call(QHt *h, uint16_t type, void *msg, size_t size);

/* Register a class with this name and one field, u64 n; returns its id */
uint32_t qht_register_number(QHt *h, const char *name);

/**
 * qht_class_message: write a CLASS_REGISTER message for the class { u64 n; }
 *
 * Returns: its size
 */
size_t qht_class_message(void *msg, const char *name);

/**
 * QHtStream: an open stream and its producer's state
 * @packet, @offset: place of the next event: the number of its packet since the
 *                   opening, and a byte in it; offset 0: no packet is open
 * @events, @lost: events written, and events lost, since the opening
 * @clock: counter of the last event
 * @image: copy of the open packet; NULL while the stream is closed
 * @submitted: virtio: position up to which bytes were submitted
 * @memory: virtio: address of the announced table; 0 if none was announced
 * @held: virtio: do not submit packets when they end
 */
typedef struct QHtStream {
    QHt *h;
    uint32_t index;
    uint64_t instance;
    uint64_t packet;
    uint32_t offset;
    uint64_t events;
    uint64_t lost;
    uint64_t clock;
    uint64_t submitted;
    uint64_t memory;
    bool held;
    /* write events only at a commit or a packet's end, which is faster */
    bool late;
    uint8_t *image;
} QHtStream;

/* Open stream @index, or any free stream if @index is HT_STREAM_ANY */
void qht_stream_open(QHtStream *s, QHt *h, uint32_t index);
/*
 * virtio: open a stream and announce its memory, to which its events will be
 * written
 */
void qht_stream_announce(QHtStream *s, QHt *h, uint32_t index);
void qht_stream_close(QHtStream *s);
/* Write @lost as the count of lost events to the ring or announced memory */
void qht_stream_write_lost(QHtStream *s, uint64_t lost);
/* Free the producer's state of a stream, but do not close the stream */
void qht_stream_forget(QHtStream *s);
void qht_stream_flush(QHtStream *s);

/*
 * Write an event with a short header, and advance head unless @s->late is set.
 * Does not notify the host, except that with virtio a packet that ends is
 * submitted unless @s->held is set.
 */
void qht_write(QHtStream *s, uint32_t id, const void *payload, size_t size);
void qht_write_number(QHtStream *s, uint32_t id, uint64_t n);
void qht_close_packet(QHtStream *s);
/*
 * If @s->late is set, write the events first.  Then notify the host as the
 * channel demands.  hypercall: ring the doorbell.  shm: ring the doorbell if
 * the host asked for that.  virtio: submit the bytes that were not submitted.
 */
void qht_commit(QHtStream *s);
void qht_doorbell(QHtStream *s);

/*
 * Query the statistics of the device at a QOM path; the caller drops the
 * reference
 */
QDict *qht_query(QTestState *qts, const char *path);
uint64_t qht_stat(QHt *h, const char *name);
/* Read a counter or a flag of a stream that was opened at least once */
uint64_t qht_stream_stat(QHt *h, uint32_t stream, const char *name);
bool qht_stream_flag(QHt *h, uint32_t stream, const char *name);
/*
 * Read a counter of the device's sink for one backend.  @backend is its place
 * in the device's property "backend", from 0 on.
 */
uint64_t qht_backend_stat(QHt *h, unsigned backend, const char *name);

/*
 * Offset of the rings in stream memory, after page 0, enable bytes, mailbox,
 * reply area and directory
 */
#define QHT_RING_OFFSET (HT_MAP_ALIGN + HT_ENABLE_SIZE + 2 * HT_MAILBOX_SIZE + \
                         HT_MAP_ALIGN + (1u << 20))

/*
 * The size in bytes that the device requires of a memdev for @streams rings of
 * @ring bytes each: a power of two
 */
size_t qht_ram_size(uint32_t streams, uint64_t ring);

uint8_t qht_enabled(QHt *h, uint32_t id);
/*
 * Read up to @count enable bytes, from class id @first on, by a message;
 * returns the number read
 */
uint32_t qht_read_enabled(QHt *h, uint32_t first, uint32_t count, uint8_t *on);
uint32_t qht_enable_seq(QHt *h);

/* hypercall, shm: access a stream's ring in BAR4 */
void qht_ring_write(QHt *h, uint32_t stream, uint64_t offset,
                    const void *data, size_t size);
uint64_t qht_ring_readq(QHt *h, uint32_t stream, uint64_t offset);
void qht_ring_writeq(QHt *h, uint32_t stream, uint64_t offset, uint64_t v);
uint32_t qht_ring_state(QHt *h, uint32_t stream);
#define QHT_GUEST(field) \
    (HT_GUEST_LINE_OFFSET + offsetof(struct ht_guest_line, field))
#define QHT_HOST(field) \
    (HT_HOST_LINE_OFFSET + offsetof(struct ht_host_line, field))

/**
 * qht_submit: put a buffer on a stream's data queue and kick
 * @sub: header of the buffer
 * @data, @size: packet bytes after the header
 *
 * Does not wait until the device has used the buffer.  If the queue is full,
 * first waits until the device has used all earlier buffers.
 *
 * Returns: index of the buffer's descriptor
 */
uint32_t qht_submit(QHt *h, uint32_t queue, const struct ht_submit *sub,
                    const void *data, size_t size);
/*
 * Initialize a stream's data queue again, with @size entries; returns the queue
 */
QVirtQueue *qht_queue_resize(QHt *h, uint32_t index, uint16_t size);
/* Make a descriptor of qvirtqueue_add() available, and kick */
void qht_queue_kick(QHt *h, QVirtQueue *vq, uint32_t desc);
/* Wait until the device has used all buffers, and free their descriptors */
void qht_queue_wait(QHt *h, QVirtQueue *vq);

/*
 * Wait until the device's sinks are idle: each posted event is delivered or
 * discarded
 */
void qht_settle(QHt *h);
/*
 * Execute hypertrace-drain; returns the id that its event HYPERTRACE_DRAINED
 * will have
 */
uint64_t qht_drain(QHt *h);
/*
 * Wait for the event HYPERTRACE_DRAINED with this id; returns its member
 * "complete"
 */
bool qht_wait_drained(QHt *h, uint64_t id);
/*
 * Wait until the sinks are idle, then count the lines of the log that contain
 * @what
 */
unsigned qht_log_count(QHt *h, const char *what);
/* Count lines of a file that contain @what */
unsigned qht_file_count(const char *path, const char *what);

/**
 * QHtTarget: a QEMU that waits for an incoming migration
 * @log: file of its log backend, or NULL
 * @messages: file with its standard error
 */
typedef struct QHtTarget {
    QTestState *qts;
    char *log;
    char *messages;
} QHtTarget;

/* Start QEMU with the device; parameters as for qht_boot() */
QHtTarget *qht_target(const char *machine, const char *backend,
                      const char *props, const char *extra);
/*
 * Free @t and delete its files; end its QEMU, unless qht_move() has made that
 * the QEMU of a QHt
 */
void qht_target_free(QHtTarget *t);

/* Migrate to a file; returns true on success, and then the VM is stopped */
bool qht_save(QHt *h, const char *file);
/* Let a waiting QEMU load a migration from a file; returns true on success */
bool qht_load(QHtTarget *t, const char *file);
/* Migrate by a socket, which must succeed; the source VM is stopped then */
void qht_migrate(QHt *h, QHtTarget *t);
/**
 * qht_move: continue as the guest of the target after a migration
 * @running: wait until the VM runs there
 *
 * Ends the source QEMU.  @h->log becomes the target's log.
 *
 * Returns: the previous @h->log
 */
char *qht_move(QHt *h, QHtTarget *t, bool running);

char *qht_temporary(void);
/* Remove a file of qht_temporary() and free its path */
void qht_unlink(char *path);

/* Add a disk image for snapshots, without a device; returns its path */
char *qht_add_disk(QTestState *qts);
/* Save or load a snapshot, which is on the disk of qht_add_disk() */
void qht_snapshot(QTestState *qts, bool load, const char *tag);

/* Write events with the numbers @from to @to - 1 */
void qht_write_numbers(QHtStream *s, uint32_t id, uint64_t from, uint64_t to);
/*
 * Check that the events of class "number" of a stream have the numbers @from to
 * @to - 1 in a log, in this order
 */
void qht_assert_numbers(const char *log, uint32_t stream, uint64_t from,
                        uint64_t to);

/**
 * QHtFifo: a FIFO of one page; while it is full, a backend that writes to it
 *          blocks
 * @path: file for a backend to write to
 * @text: bytes read; owned by the thread @reader while that runs
 */
typedef struct QHtFifo {
    char *dir;
    char *path;
    GString *text;
    int fd;
    bool reading;
    GThread *reader;
} QHtFifo;

QHtFifo *qht_fifo_new(void);
/* Close and remove the FIFO; writes of a backend then fail */
void qht_fifo_free(QHtFifo *f);
/* Read at most a page from the FIFO; returns false if the FIFO was empty */
bool qht_fifo_read(QHtFifo *f);
/* Start a thread that reads all data of the FIFO */
void qht_fifo_go_on(QHtFifo *f);
/* Stop the reading thread after it has emptied the FIFO */
void qht_fifo_hang(QHtFifo *f);

#define QHT_HYPERCALL   (1u << 0)
#define QHT_SHM         (1u << 1)
#define QHT_VIRTIO      (1u << 2)
#define QHT_RINGS       (QHT_HYPERCALL | QHT_SHM)
#define QHT_CHANNELS    (QHT_RINGS | QHT_VIRTIO)

/**
 * QHtTest: a test that is run once for each channel in @channels
 * @name: last part of its path
 * @fn: the test; its argument is the channel's name
 * @channels: bits QHT_...
 */
typedef struct QHtTest {
    const char *name;
    void (*fn)(const void *channel);
    unsigned channels;
} QHtTest;

/* True for ./run check --long: run all cases of a test */
bool qht_long(void);

/*
 * For each of @nr tests and each of its channels, add the test
 * hypertrace/@suite/CHANNEL/NAME
 */
void qht_add_tests(const char *suite, const QHtTest *tests, unsigned nr);

#endif
