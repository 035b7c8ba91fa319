/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace tests: recordings of a guest that never was
 *
 * Events are put together as Linux would, in sub-buffers of 4 KiB, and written
 * by the recording writer.
 */
#ifndef RECORDING_MAKE_H
#define RECORDING_MAKE_H

#include "hypertrace/recording.h"

/* Types of the events below; the formats say the same */
enum {
    MAKE_SWITCH = 300, MAKE_NEWTASK, MAKE_RENAME, MAKE_EXEC, MAKE_EXIT,
    MAKE_LEVEL, MAKE_START, MAKE_FINISH, MAKE_CONSOLE, MAKE_IRQ_ENTRY,
    MAKE_IRQ_EXIT, MAKE_SOFTIRQ_ENTRY, MAKE_SOFTIRQ_EXIT, MAKE_SYS_ENTER,
    MAKE_SYS_EXIT, MAKE_ODD, MAKE_WAKING, MAKE_ENTER_READ, MAKE_EXIT_READ,
    MAKE_KERNEL_STACK = 4,
    MAKE_FUNCTION = 1, MAKE_GRAPH_ENTRY = 11, MAKE_GRAPH_EXIT = 10,
    MAKE_UNKNOWN = 4000,        /* no format has it */
};

/**
 * Make: a recording in the making
 */
typedef struct Make Make;

/**
 * make_new: begin a recording, texts included
 * @dir: does not exist yet
 */
Make *make_new(const char *dir);

/**
 * make_event: add an event
 * @m: the recording
 * @cpu: whose
 * @ns: when, not before the one before of @cpu and epoch
 * @pid: who was running
 * @type: MAKE_*
 * @payload: its fields
 * @size: bytes of them
 */
void make_event(Make *m, unsigned cpu, uint64_t ns, int32_t pid, uint16_t type,
                const void *payload, size_t size);

/**
 * make_gap: events of a CPU are missing here
 * @m: the recording
 * @cpu: whose
 * @lost: about how many
 */
void make_gap(Make *m, unsigned cpu, unsigned lost);

/**
 * make_flags: the common_flags of the events that come
 * @m: the recording
 * @flags: the kernel's
 */
void make_flags(Make *m, uint8_t flags);

/**
 * make_boot: the guest boots once more
 * @m: the recording
 */
void make_boot(Make *m);

/**
 * make_step: the guest's clock goes back
 * @m: the recording
 */
void make_step(Make *m);

/**
 * make_look: the events that come are found by another look
 * @m: the recording
 * @before: the host's clock when the look before it began
 * @after: when it ends
 *
 * Without looks, clocks are as if the guest had been looked at all the time.
 */
void make_look(Make *m, uint64_t before, uint64_t after);

/**
 * make_end: write the rest
 * @m: the recording; freed
 */
void make_end(Make *m);

/* Events by their fields; texts may be any bytes of @len, 16 at most */
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

/* Whole recordings, that test_calls.py examines */
void make_pairs(const char *dir);
void make_hang(const char *dir);
void make_naps(const char *dir);
void make_functions(const char *dir);
/* DIR/index and DIR/ram of a device: see dead.c */
void make_dead(const char *dir);
/**
 * Device: a guest's device, which writes a trace
 */
typedef struct Device Device;

/**
 * device_new: begin a trace
 * @dir: to be made; the trace is DIR/ht0
 * @ns: by the host's clock
 */
Device *device_new(const char *dir, uint64_t ns);

/**
 * device_think: add an event
 * @d: the device
 * @host: when it is; its date is wrong by as much as the trace says
 * @n: its number
 */
void device_think(Device *d, uint64_t host, uint32_t n);

/**
 * device_end: write the rest, with an odd event in another stream
 * @d: the device; freed
 */
void device_end(Device *d);

/*
 * Two guests that talk to each other: DIR/ping and DIR/pong; DIR/device has
 * the trace of a device of pong's
 */
void make_talk(const char *dir);

#endif /* RECORDING_MAKE_H */
