/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos: a guest's side of the hypertrace device
 *
 * Written from the contract (hypertrace/abi.h) alone, so that it can also do
 * what no guest library would.  One thread, no races: what the device does
 * meanwhile on its own thread is waited for with QHT_WAIT().
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
 * QHT_WAIT: until a condition holds, or the test fails
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
 * QHt: a device, and the QEMU it is in
 * @qts, @bus, @alloc: of the machine; devices of one machine share them
 * @pci: enabled, BARs mapped
 * @regs, @ring: BAR0 and BAR4, unless channel=virtio
 * @caps: as the device says
 * @declined: feature bits not to negotiate, from qht_restart() on
 * @control, @data: virtqueues, if channel=virtio
 * @path: of the device in QOM
 * @log: what the log backend writes, or NULL
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
 * @backend: "null", or "log" to a file of its own
 * @props: of the device, as "channel=shm,streams=2"
 * @extra: more arguments, or NULL
 */
QHt *qht_boot(const char *machine, const char *backend, const char *props,
              const char *extra);

/* Start that QEMU only; *@log is set to the backend's file, or to NULL */
QTestState *qht_start(const char *machine, const char *backend,
                      const char *props, const char *extra, char **log);

/**
 * qht_attach: use a further device of the same machine
 * @h: the first
 * @id: the device's
 * @slot: its PCI slot
 */
QHt *qht_attach(QHt *h, const char *id, uint8_t slot);

/* The first that is used of a machine; qht_quit() ends QEMU as well. */
QHt *qht_attach_first(QTestState *qts, const char *id, uint8_t slot);

/* Map the BARs and begin anew, as a driver does after a reset */
void qht_restart(QHt *h);

/**
 * qht_wait_deleted: until QEMU says that an unplugged device was deleted
 *
 * QEMU says it of the device behind the PCI proxy, too, and first: each call
 * waits for a proxy's.
 */
void qht_wait_deleted(QHt *h);

/**
 * qht_unplug: have the guest let go of a device
 *
 * It is gone then; that it was deleted is said later: qht_wait_deleted().
 */
void qht_unplug(QHt *h);

/* Whether an object could be deleted: nothing uses it any more */
bool qht_object_del(QTestState *qts, const char *id);

/* qht_quit: end QEMU if @h was booted; it must end well */
void qht_quit(QHt *h);

/**
 * qht_exchange: execute a message of @size bytes, whatever it says
 * @msg: HT_MESSAGE_MAX bytes; overwritten by the reply
 *
 * Returns: status of the reply
 */
uint32_t qht_exchange(QHt *h, void *msg, size_t size);

/**
 * qht_exchange_all: execute @size bytes of messages that register
 * @msgs: at most HT_MAILBOX_SIZE bytes; overwritten by the replies
 *
 * Those that the device had no time for are sent again.
 *
 * Returns: how many exchanges that took
 */
unsigned qht_exchange_all(QHt *h, void *msgs, size_t size);

/**
 * qht_call: fill in the header, execute, and send BUSY replies back
 */
uint32_t qht_call(QHt *h, uint16_t type, void *msg, size_t size);

/* Register the class { u64 n; } by name; returns its id */
uint32_t qht_register_number(QHt *h, const char *name);

/**
 * qht_class_message: write a HT_MSG_CLASS_REGISTER for { u64 n; }
 *
 * Returns: its bytes
 */
size_t qht_class_message(void *msg, const char *name);

/**
 * QHtStream: an open stream and its producer's state
 * @packet, @offset: where the next event goes; offset 0: no packet open
 * @image: the packet, as it is in guest memory
 * @submitted: virtio: position up to which all was handed over
 * @memory: virtio: what was announced: the table's address; or 0
 * @held: virtio: end packets without handing them over
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
    uint8_t *image;
} QHtStream;

/* @index may be HT_STREAM_ANY */
void qht_stream_open(QHtStream *s, QHt *h, uint32_t index);
/* virtio: also say where its memory is, and write all that is written there */
void qht_stream_announce(QHtStream *s, QHt *h, uint32_t index);
void qht_stream_close(QHtStream *s);
/* The producer's own count, in its ring or in what it announced */
void qht_stream_write_lost(QHtStream *s, uint64_t lost);
/* Forget a stream that the device closed */
void qht_stream_forget(QHtStream *s);
void qht_stream_flush(QHtStream *s);

/* Write an event with a compact header and move head past it; no notice */
void qht_write(QHtStream *s, uint32_t id, const void *payload, size_t size);
void qht_write_number(QHtStream *s, uint32_t id, uint64_t n);
/* End the packet */
void qht_close_packet(QHtStream *s);
/* What the channel does on a commit: doorbell, maybe one, or a buffer */
void qht_commit(QHtStream *s);
void qht_doorbell(QHtStream *s);

/* Statistics of the device or object at a QOM path; the caller frees them */
QDict *qht_query(QTestState *qts, const char *path);
/* Of the device: counters by name; a stream's, once it was opened */
uint64_t qht_stat(QHt *h, const char *name);
uint64_t qht_stream_stat(QHt *h, uint32_t stream, const char *name);
/* Of a backend, as the device uses it, in the order of its property */
uint64_t qht_backend_stat(QHt *h, unsigned backend, const char *name);
bool qht_stream_flag(QHt *h, uint32_t stream, const char *name);

/* Bytes of stream RAM, as a memdev must have them; @ring: of one's ring */
size_t qht_ram_size(uint32_t streams, uint64_t ring);

/* What the guest sees of a class: its byte */
uint8_t qht_enabled(QHt *h, uint32_t id);
/* Read @count bytes from @first with a message; returns how many there are */
uint32_t qht_read_enabled(QHt *h, uint32_t first, uint32_t count, uint8_t *on);
uint32_t qht_enable_seq(QHt *h);

/* Guest memory of a stream, by offset in its ring; virtio: if announced */
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
 * @sub: its header; @data, @size: what follows
 *
 * Returns: the descriptor; its use is not waited for
 */
uint32_t qht_submit(QHt *h, uint32_t queue, const struct ht_submit *sub,
                    const void *data, size_t size);
/* Set up a stream's data queue anew, of @size buffers; Returns: the queue */
QVirtQueue *qht_queue_resize(QHt *h, uint32_t index, uint16_t size);
/* Make a descriptor available that was added by hand, and kick */
void qht_queue_kick(QHt *h, QVirtQueue *vq, uint32_t desc);
/* Wait until all that was made available was given back; reuse descriptors */
void qht_queue_wait(QHt *h, QVirtQueue *vq);

/* Wait until the device's backends took all that was posted to them */
void qht_settle(QHt *h);
/* Ask for a HYPERTRACE_DRAINED event; returns its id */
uint64_t qht_drain(QHt *h);
/* Wait for that event; returns whether it says complete */
bool qht_wait_drained(QHt *h, uint64_t id);
/* Lines of the log that contain @what, then */
unsigned qht_log_count(QHt *h, const char *what);
unsigned qht_file_count(const char *path, const char *what);

/* hypertrace-migrate.c ----------------------------------------------------- */

/**
 * QHtTarget: a QEMU that waits for a migration
 * @log: of its log backend, or NULL
 * @messages: what it writes to standard error
 */
typedef struct QHtTarget {
    QTestState *qts;
    char *log;
    char *messages;
} QHtTarget;

/* As qht_boot() */
QHtTarget *qht_target(const char *machine, const char *backend,
                      const char *props, const char *extra);
/* End it if the guest did not move there */
void qht_target_free(QHtTarget *t);

/* Migrate to a file; whether that succeeded: the VM is stopped then */
bool qht_save(QHt *h, const char *file);
/* Migrate from a file; whether that succeeded */
bool qht_load(QHtTarget *t, const char *file);
/* Migrate by a socket; the VM is stopped here and runs there */
void qht_migrate(QHt *h, QHtTarget *t);
/**
 * qht_move: after a successful migration, be the guest there
 * @running: wait until the VM runs there
 *
 * The first QEMU ends.  What h->log was is returned, h->log is the target's.
 */
char *qht_move(QHt *h, QHtTarget *t, bool running);

/* An empty file; and an end of it */
char *qht_temporary(void);
void qht_unlink(char *path);

/* Where snapshots go: a disk that no device has; its file is returned */
char *qht_add_disk(QTestState *qts);
/* savevm or loadvm there */
void qht_snapshot(QTestState *qts, bool load, const char *tag);

/* Events with the numbers @from to @to - 1 */
void qht_write_numbers(QHtStream *s, uint32_t id, uint64_t from, uint64_t to);
/* A log holds just these of a stream, in order */
void qht_assert_numbers(const char *log, uint32_t stream, uint64_t from,
                        uint64_t to);

/* hypertrace-fifo.c -------------------------------------------------------- */

/**
 * QHtFifo: a file that nobody reads until the test says so
 * @path: for a backend to write to
 * @text: what was read; not to be looked at while a thread reads
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
/* Whoever writes there without a reader fails from now on */
void qht_fifo_free(QHtFifo *f);
/* Read a piece; whether there was one */
bool qht_fifo_read(QHtFifo *f);
/* Read all, in a thread */
void qht_fifo_go_on(QHtFifo *f);
/* Read no more, but for what is there */
void qht_fifo_hang(QHtFifo *f);

/* Channels a test is for */
#define QHT_HYPERCALL   (1u << 0)
#define QHT_SHM         (1u << 1)
#define QHT_VIRTIO      (1u << 2)
#define QHT_RINGS       (QHT_HYPERCALL | QHT_SHM)
#define QHT_CHANNELS    (QHT_RINGS | QHT_VIRTIO)

/**
 * QHtTest: a test that is run once for each channel
 * @name: last part of its path
 * @fn: its argument is the channel's name
 * @channels: QHT_...
 */
typedef struct QHtTest {
    const char *name;
    void (*fn)(const void *channel);
    unsigned channels;
} QHtTest;

/* Add hypertrace/@suite/CHANNEL/NAME for each of @nr tests */
void qht_add_tests(const char *suite, const QHtTest *tests, unsigned nr);

#endif
