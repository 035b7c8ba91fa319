/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace tests: make recordings of an invented guest
 *
 * Events are encoded as Linux encodes them in sub-buffers of 4 KiB, and written
 * by HtRecWriter.  If that fails, the program exits with a message.
 */
#ifndef RECORDING_MAKE_H
#define RECORDING_MAKE_H

#include "hypertrace/recording.h"

/* Event types, which are the ids of their formats */
enum {
    MAKE_SWITCH = 300, MAKE_NEWTASK, MAKE_RENAME, MAKE_EXEC, MAKE_EXIT,
    MAKE_LEVEL, MAKE_START, MAKE_FINISH, MAKE_CONSOLE, MAKE_IRQ_ENTRY,
    MAKE_IRQ_EXIT, MAKE_SOFTIRQ_ENTRY, MAKE_SOFTIRQ_EXIT, MAKE_SYS_ENTER,
    MAKE_SYS_EXIT, MAKE_ODD, MAKE_WAKING, MAKE_ENTER_READ, MAKE_EXIT_READ,
    MAKE_KERNEL_STACK = 4,
    MAKE_FUNCTION = 1, MAKE_GRAPH_ENTRY = 11, MAKE_GRAPH_EXIT = 10,
    MAKE_UNKNOWN = 4000,        /* an id without a format */
};

/* Make: a recording under construction */
typedef struct Make Make;

/**
 * make_new: begin a recording and write its texts
 * @dir: path of the recording; must not have a recording
 */
Make *make_new(const char *dir);

/**
 * make_event: add an event
 * @cpu: CPU of the event
 * @ns: guest's clock, ns; not before the CPU's previous event of the segment
 * @pid: the running task
 * @type: MAKE_*
 * @payload: the event's fields
 * @size: size of @payload in bytes
 */
void make_event(Make *m, unsigned cpu, uint64_t ns, int32_t pid, uint16_t type,
                const void *payload, size_t size);

/**
 * make_gap: record a gap before a processor's next event
 * @cpu: processor whose events are missing
 * @lost: estimated number of missing events
 */
void make_gap(Make *m, unsigned cpu, unsigned lost);

/**
 * make_flags: set the common_flags of later events
 * @flags: the kernel's value
 */
void make_flags(Make *m, uint8_t flags);

/* make_boot: begin the guest's next boot */
void make_boot(Make *m);

/* make_step: begin a new segment; the guest's clock may have gone back */
void make_step(Make *m);

/**
 * make_look: begin another poll, which finds the events that are added next
 * @before: host's clock at the start of the previous poll, ns
 * @after: host's clock at the end of this poll, ns
 *
 * Before the first call, the host's clock is 5 s ahead of the guest's, and each
 * piece has its own times: @before is the host's time of its first event, and
 * @after is 1 us after the host's time of its last event.
 */
void make_look(Make *m, uint64_t before, uint64_t after);

/**
 * make_end: write the remaining events
 * @m: the recording; freed
 */
void make_end(Make *m);

/*
 * Add an event of a given type by its fields. A text is @len arbitrary bytes.
 * Of a task's name the first 16 bytes are written.
 */
void make_switch(Make *m, unsigned cpu, uint64_t ns, int32_t prev,
                 const char *prev_comm, uint64_t state, int32_t next,
                 const char *next_comm);
void make_newtask(Make *m, unsigned cpu, uint64_t ns, int32_t by, int32_t pid,
                  const char *comm, uint64_t flags);
void make_text(Make *m, unsigned cpu, uint64_t ns, int32_t pid, uint16_t type,
               const void *before, size_t before_size, const void *text,
               size_t len, const void *after, size_t after_size);
void make_exec(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
               const char *file);
void make_console(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
                  const void *text, size_t len);

/* Write whole recordings: see calls.c, and the list in story.c */
void make_pairs(const char *dir);
void make_hang(const char *dir);
void make_naps(const char *dir);
void make_functions(const char *dir);
void make_deep(const char *dir);
void make_full(const char *dir, unsigned single);
void make_inside(const char *dir);
/*
 * Write DIR/ht0, stream memory as a killed QEMU leaves it, and DIR/short, a
 * copy without the last byte (see dead.c).
 */
void make_dead(const char *dir);
/* Device: a guest's device that writes a trace */
typedef struct Device Device;

/**
 * device_new: begin the trace of a device
 * @dir: directory to create; the trace is DIR/ht0
 * @ns: date of the begin by the host's clock, ns
 */
Device *device_new(const char *dir, uint64_t ns);

/**
 * device_think: add an event "think" to stream 0
 * @d: the device
 * @host: true date of the event, ns; the trace has a date that is wrong by up
 *        to the trace's clock precision
 * @n: number of the event
 */
void device_think(Device *d, uint64_t host, uint32_t n);

/**
 * device_end: end a trace: write the remaining events to stream 0, and two
 * events with hostile texts to stream 1, which also has 5 discarded events
 * @d: the device; freed
 */
void device_end(Device *d);

/**
 * device_end_quiet: end a trace that has no events, and in which stream 1 has
 * 5 discarded events
 * @d: the device; freed
 */
void device_end_quiet(Device *d);

/*
 * Write recordings of two guests that exchange messages, DIR/ping and
 * DIR/pong, and DIR/device, the trace of pong's device.
 */
void make_talk(const char *dir);

#endif
