/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write packets and events of Perfetto's trace format
 *
 * The constants of the first enum are numbers of fields, and are named after
 * message and field. The messages are in Perfetto's protos/perfetto/trace/; for
 * PF_DESCRIPTOR_ and PF_FIELD_ they are google.protobuf.DescriptorProto and
 * FieldDescriptorProto.
 */
#ifndef HYPERTRACE_TOOL_PERFETTO_H
#define HYPERTRACE_TOOL_PERFETTO_H

#include "cli/output.h"
#include "model/model.h"

enum {
    PF_TRACE_PACKET = 1,

    PF_PACKET_FTRACE_EVENTS = 1,
    PF_PACKET_PROCESS_TREE = 2,
    PF_PACKET_CLOCK_SNAPSHOT = 6,
    PF_PACKET_TIMESTAMP = 8,
    PF_PACKET_SEQUENCE_ID = 10,
    PF_PACKET_TRACK_EVENT = 11,
    PF_PACKET_INTERNED_DATA = 12,
    PF_PACKET_SEQUENCE_FLAGS = 13,
    PF_PACKET_SYSTEM_INFO = 45,
    PF_PACKET_TRACK_DESCRIPTOR = 60,
    PF_PACKET_MACHINE_ID = 98,
    PF_PACKET_TRACE_ATTRIBUTES = 126,

    PF_CLOCKS = 1,
    PF_PRIMARY_TRACE_CLOCK = 2,
    PF_CLOCK_ID = 1,
    PF_CLOCK_TIMESTAMP = 2,

    PF_BUNDLE_CPU = 1,
    PF_BUNDLE_EVENT = 2,
    PF_BUNDLE_LOST_EVENTS = 3,
    PF_BUNDLE_GENERIC_DESCRIPTORS = 11,
    PF_GENERIC_FIELD_ID = 1,
    PF_GENERIC_DESCRIPTOR = 2,
    PF_GENERIC_GROUP = 3,
    PF_DESCRIPTOR_NAME = 1,
    PF_DESCRIPTOR_FIELD = 2,
    PF_FIELD_NAME = 1,
    PF_FIELD_NUMBER = 3,
    PF_FIELD_LABEL = 4,
    PF_FIELD_TYPE = 5,

    PF_EVENT_TIMESTAMP = 1,
    PF_EVENT_PID = 2,
    PF_EVENT_GENERIC = 327,
    PF_GENERIC_EVENT_NAME = 1,
    PF_GENERIC_EVENT_FIELD = 2,
    PF_GENERIC_EVENT_FIELD_NAME = 1,
    PF_GENERIC_EVENT_FIELD_STR = 3,

    PF_INTERNED_KERNEL_SYMBOLS = 26,
    PF_INTERNED_IID = 1,
    PF_INTERNED_STR = 2,

    PF_TREE_PROCESSES = 1,
    PF_TREE_THREADS = 2,
    PF_PROCESS_PID = 1,
    PF_PROCESS_PPID = 2,
    PF_PROCESS_CMDLINE = 3,
    PF_PROCESS_CMDLINE_IS_COMM = 9,
    PF_THREAD_TID = 1,
    PF_THREAD_NAME = 2,
    PF_THREAD_TGID = 3,

    PF_SYSTEM_UTSNAME = 1,
    PF_SYSTEM_PAGE_SIZE = 6,
    PF_SYSTEM_NUM_CPUS = 8,
    PF_SYSTEM_MACHINE_NAME = 17,
    PF_UTSNAME_SYSNAME = 1,
    PF_UTSNAME_RELEASE = 3,
    PF_UTSNAME_MACHINE = 4,

    PF_ATTRIBUTE = 1,
    PF_ATTRIBUTE_KEY = 1,
    PF_ATTRIBUTE_LONG = 2,
    PF_ATTRIBUTE_STRING = 3,

    PF_TRACK_UUID = 1,
    PF_TRACK_NAME = 2,
    PF_TRACK_PARENT = 5,
    PF_TRACK_EVENT_CATEGORIES = 22,
    PF_TRACK_EVENT_NAME = 23,
    PF_TRACK_EVENT_TYPE = 9,
    PF_TRACK_EVENT_UUID = 11,
    PF_TRACK_EVENT_ANNOTATIONS = 4,
    PF_ANNOTATION_NAME = 10,
    PF_ANNOTATION_BOOL = 2,
    PF_ANNOTATION_UINT = 3,
    PF_ANNOTATION_INT = 4,
    PF_ANNOTATION_DOUBLE = 5,
    PF_ANNOTATION_STRING = 6,
    PF_ANNOTATION_DICT = 11,
    PF_ANNOTATION_ARRAY = 12,
};

#define PF_CLOCK_REALTIME       1
#define PF_CLOCK_MONOTONIC      3
#define PF_CLOCK_BOOTTIME       6

#define PF_INCREMENTAL_STATE_CLEARED    1

#define PF_SLICE_BEGIN  1
#define PF_SLICE_END    2
#define PF_INSTANT      3

/*
 * The UUIDs of a sequence's tracks begin at (id of the sequence << 32) +
 * PF_TRACK_BASE.
 */
#define PF_TRACK_BASE   0x68740000

/*
 * Number of the first field of FtraceEvent that is not one of Perfetto's own
 * messages. The trace describes the fields from this number on: an event of
 * type N is the field PF_GENERIC_BASE + N.
 */
#define PF_GENERIC_BASE         65536

/* Maximum number of an event's fields that are described and written */
#define PF_GENERIC_FIELDS_MAX   31

/*
 * Number of CPUs whose events are written; events of CPUs with this number or a
 * higher one are left out. If a bundle has a CPU number above this, Perfetto
 * refuses the whole trace.
 */
#define PF_CPUS_MAX             1024

/**
 * PfSequence: packets of one sequence
 * @o: output
 * @packet: buffer for the current packet
 * @machine: number of the machine; 0: the host, or the only machine
 * @id: number of the sequence, from 1
 * @begun: pf_packet_begin() was called
 */
typedef struct PfSequence {
    HtOutput *o;
    GString *packet;
    uint32_t machine;
    uint32_t id;
    bool begun;
} PfSequence;

/**
 * pf_sequence_init: set up a sequence
 * @s: set up by the function
 * @o: output for its packets
 * @machine: number of the machine, or 0
 * @id: number of the sequence, from 1
 */
void pf_sequence_init(PfSequence *s, HtOutput *o, uint32_t machine,
                      uint32_t id);

/**
 * pf_sequence_end: free the members of a sequence, but not @s itself
 * @s: sequence
 */
void pf_sequence_end(PfSequence *s);

/**
 * pf_packet_begin: begin a packet in @s->packet
 * @ns: time of the packet
 *
 * Returns: position, for pf_packet_end()
 */
gsize pf_packet_begin(PfSequence *s, uint64_t ns);

/**
 * pf_packet_end: end a packet and append it to the output
 * @at: return value of pf_packet_begin()
 *
 * Returns: false if writing the output failed, now or before
 */
bool pf_packet_end(PfSequence *s, gsize at);

/**
 * pf_clocks: write the ClockSnapshot that defines the trace's clock, BOOTTIME
 * @ns: time of the packet
 * @host: the trace's times are the host's CLOCK_MONOTONIC, so define MONOTONIC
 *        with the same times
 * @wall: CLOCK_REALTIME - clock of the trace, in nanoseconds; NULL if not known
 *
 * This must be the first packet of the trace, because Perfetto accepts the
 * definition of a clock only before a packet uses that clock.
 */
void pf_clocks(PfSequence *s, uint64_t ns, bool host, const int64_t *wall);

/**
 * pf_machine: write the name of the sequence's machine
 * @ns: time of the packet
 * @name: name; may have any bytes
 */
void pf_machine(PfSequence *s, uint64_t ns, const char *name);

/**
 * pf_track: write the description of a track
 * @ns: time of the packet
 * @uuid: UUID of the track
 * @parent: UUID of the enclosing track, or 0
 * @name: name; may have any bytes
 */
void pf_track(PfSequence *s, uint64_t ns, uint64_t uuid, uint64_t parent,
              const char *name);

/**
 * pf_attribute: append an attribute of the trace
 * @s: sequence, whose packet must be inside TraceAttributes
 * @key: name
 * @text: value, which may have any bytes; or NULL
 * @number: value if @text is NULL
 */
void pf_attribute(PfSequence *s, const char *key, const char *text,
                  uint64_t number);

/**
 * pf_clock_attributes: append attributes that state that the trace has the
 *                      host's clock, and the error of the sequence's times
 * @s: sequence, whose packet must be inside TraceAttributes
 * @bound_ns: maximum error of the times in nanoseconds; NULL if not known
 */
void pf_clock_attributes(PfSequence *s, const uint64_t *bound_ns);

/**
 * PfWriter: state to write events
 * @m: model of the recording
 * @symbols: interning ids (iids) of kernel addresses, by address
 * @interned: InternedData that the caller must write with the next bundle
 * @descriptors: descriptors of event types that the caller must write in the
 *               next FtraceEventBundle
 * @described: bitmap of event types for which a descriptor was appended to
 *             @descriptors
 * @syscalls: the system, raw_syscalls or syscalls, whose events become slices
 *            of system calls; NULL until the first such event
 * @scratch: buffer for strings
 */
typedef struct PfWriter {
    HtModel *m;
    GHashTable *symbols;
    GString *interned;
    GString *descriptors;
    uint8_t described[(1 << 16) / 8];
    const char *syscalls;
    GString *scratch;
} PfWriter;

/**
 * pf_event: append an event to a bundle
 * @w: writer
 * @out: appended to: a FtraceEventBundle's field `event`
 */
void pf_event(PfWriter *w, const HtModelEvent *ev, GString *out);

#endif /* HYPERTRACE_TOOL_PERFETTO_H */
