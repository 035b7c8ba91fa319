/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: serve a guest over memory alone
 *
 * A file or a memfd is the memory of a device ivshmem-plain of an emulator.
 * There are no registers, exits and interrupts: the host polls.  abi.h defines
 * page 0 and the mailbox, memory-layout.h the parts of the memory.  The guest
 * may write all of the memory at any time: the host computes the layout from a
 * checked private copy of page 0.
 *
 * After a host has ended or was killed, a successor can attach to the memory.
 * The successor continues the open streams, with the classes, names and clock
 * of the directory, and chooses a new random epoch.  The guest notices the
 * epoch, takes the streams away from their producers, sends TAKEOVER, which
 * closes these streams, and registers and opens everything again.
 */
#ifndef HYPERTRACE_MEMORY_H
#define HYPERTRACE_MEMORY_H

#include "hypertrace/host-page.h"
#include "hypertrace/server.h"

/*
 * Default size of the memory and limits of the size, in bytes; default geometry
 * of a ring: 64 packets of 64 KiB
 */
#define HT_MEMORY_SIZE          (UINT64_C(256) << 20)
#define HT_MEMORY_SIZE_MIN      (UINT64_C(2) << 20)
#define HT_MEMORY_SIZE_MAX      (UINT64_C(1) << 36)
#define HT_MEMORY_PACKET_SIZE   65536u
#define HT_MEMORY_PACKETS       64u

/*
 * Pause in ns after a poll, unless the poll has consumed much or the last
 * exchange was less than HT_MEMORY_EAGER_NS ago
 */
#define HT_MEMORY_IDLE_NS       INT64_C(10000000)
/* Time in ns after an exchange in which the polls do not pause */
#define HT_MEMORY_EAGER_NS      INT64_C(2000000)
/*
 * A poll starts no further packet of a stream once it has consumed
 * HT_MEMORY_STREAM_BYTES of this stream, and no further stream once it has
 * consumed HT_MEMORY_POLL_BYTES of all streams.
 */
#define HT_MEMORY_STREAM_BYTES  (UINT64_C(1) << 20)
#define HT_MEMORY_POLL_BYTES    (UINT64_C(8) << 20)

typedef struct HtMemory HtMemory;

/**
 * HtMemoryConfig: settings of a host
 * @packet_size: for ht_memory_create(): size of a packet in bytes, a power of
 *               two; 0: the default
 * @packets: for ht_memory_create(): packets in a ring, a power of two; 0: the
 *           default
 * @mode: for ht_memory_create(): enum ht_mode
 * @deliver: take a run, and return when its events are safe.  Their packet is
 *           given back to the guest after that
 * @wants: return whether to switch a class on; NULL: all classes are on.
 *         ht_memory_poll() asks again about all classes, at most every 20 ms.
 *         @before is the previous host's decision if the class is inherited
 *         from that host (the guest can forge it), else true
 * @recorded: find out how far the previous host has recorded an open instance.
 *            Returns false if that host's recording is not known; may be NULL
 * @log: report misbehaviour of the guest, at a limited rate, or that classes or
 *       streams of the previous host cannot be continued; may be NULL
 * @opaque: first argument of the four callbacks
 *
 * Context of the callbacks: called by ht_memory_start(), ht_memory_poll(),
 * ht_memory_leave() and ht_memory_free()
 */
typedef struct HtMemoryConfig {
    uint32_t packet_size;
    uint32_t packets;
    uint32_t mode;
    HtDeliver *deliver;
    bool (*wants)(void *opaque, const HtClass *c, bool before);
    bool (*recorded)(void *opaque, const HtStreamInfo *info, HtRecorded *r);
    void (*log)(void *opaque, const char *text);
    void *opaque;
} HtMemoryConfig;

/**
 * ht_memory_memfd: make a memfd for ht_memory_create()
 * @size: bytes, a power of two, HT_MEMORY_SIZE_MIN to HT_MEMORY_SIZE_MAX
 * @error: set on failure
 *
 * The memfd's size is sealed, so no process can truncate it while this process
 * accesses its pages.
 *
 * Returns: a descriptor, closed on exec; -1 on failure
 */
int ht_memory_memfd(uint64_t size, GError **error);

/**
 * ht_memory_make_file: make a file for ht_memory_create()
 * @path: must not exist
 * @size: as for ht_memory_memfd(); disk space is allocated now
 * @error: set on failure
 *
 * Returns: a descriptor, closed on exec; -1 on failure
 */
int ht_memory_make_file(const char *path, uint64_t size, GError **error);

/**
 * ht_memory_create: lay out memory, to serve it
 * @fd: from ht_memory_memfd() or ht_memory_make_file(); may be closed after the
 *      call
 * @cfg: copied
 * @error: set on failure
 *
 * Call it before the virtual machine starts: a driver checks page 0 when it
 * probes the device.
 *
 * Returns: the host, or NULL
 */
HtMemory *ht_memory_create(int fd, const HtMemoryConfig *cfg, GError **error);

/**
 * ht_memory_attach: lock memory that another host has laid out, to serve it
 * @fd: the memory; may be closed after the call
 * @cfg: copied; the geometry is that of the memory
 * @error: set on failure, for example if page 0 is not valid or another host
 *         serves the memory
 *
 * Returns: the host, or NULL
 */
HtMemory *ht_memory_attach(int fd, const HtMemoryConfig *cfg, GError **error);

/**
 * ht_memory_start: become the guest's host
 * @m: from ht_memory_create() or ht_memory_attach(); call this once, before the
 *     first poll
 *
 * After ht_memory_attach(), this delivers an HT_RUN_OPEN run of each stream of
 * the previous host that it continues, maybe a run that reports discarded
 * events, and no event.  A request that the guest has sent to that host is not
 * executed.
 */
void ht_memory_start(HtMemory *m);

/**
 * ht_memory_poll: advance the beat, and serve the mailbox and the streams once
 * @m: the host
 *
 * A poll executes at most one exchange, and starts no further stream once it
 * has consumed HT_MEMORY_POLL_BYTES.  The beat also advances when a run is
 * delivered.  It advances at most every 2 ms.
 *
 * Returns: ns to wait until the next poll, at most HT_MEMORY_IDLE_NS; 0: poll
 * again at once
 *
 * Context: one thread at a time for all functions with @m
 */
int64_t ht_memory_poll(HtMemory *m);

/**
 * ht_memory_leave: consume the events that are committed now, and stop serving
 * the guest
 * @m: the host; no poll may follow
 *
 * Runs that were delivered may still be used: their classes stay until
 * ht_memory_free().
 *
 * Returns: the number of streams that are left open, for a successor
 */
unsigned ht_memory_leave(HtMemory *m);

/*
 * ht_memory_free: free the host or NULL; calls ht_memory_leave() if the caller
 * has not called it
 */
void ht_memory_free(HtMemory *m);

/**
 * ht_memory_truncated: test whether this process has accessed a page that is
 * missing because another process has truncated the file
 * @m: the host
 *
 * The first HtMemory of a process installs a handler of SIGBUS.  At such an
 * access the handler replaces the mapped file by zeroed memory.  No event
 * arrives from then on.  The handler knows 16 files at a time.  For a further
 * file, this function returns false, and the signal has its previous effect.
 */
bool ht_memory_truncated(const HtMemory *m);

/**
 * ht_memory_tell: begin to tell the guest what the host does with its vCPUs
 * @m: the host, after ht_memory_start()
 * @p: filled in; valid until ht_memory_leave(), after which the guest finds no
 *     data.  Another thread than that of the polls may use @p
 */
void ht_memory_tell(HtMemory *m, HtHostPage *p);

/* ht_memory_server: get the server, for its statistics, classes and clock */
HtServer *ht_memory_server(HtMemory *m);

/* ht_memory_caps: get the private copy of the capabilities */
const struct ht_caps *ht_memory_caps(const HtMemory *m);

#endif /* HYPERTRACE_MEMORY_H */
