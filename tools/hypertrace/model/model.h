/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a recording as the commands see it
 *
 * Over the reader of host-lib: events in the order of time, each with its
 * class, the fields that commands ask for, and the task that was running,
 * by the name it had at that time.  What it keeps is bounded; a recording may
 * have any number of events.
 */
#ifndef HYPERTRACE_TOOL_MODEL_H
#define HYPERTRACE_TOOL_MODEL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hypertrace/ftrace-format.h"
#include "hypertrace/recording.h"
#include "model/kinds.h"
#include "print/print-fmt.h"

#define HT_COMM_MAX     16

/**
 * HtTask: a thread of the guest
 * @id: number of the task in this recording: PIDs are used again, and each boot
 *      begins with them anew.  0 if there are too many tasks.
 * @boot: the boot it belongs to, counted from 1
 * @start_ns: time of its creation; 0 if that was not recorded
 * @pid: the thread, as the kernel's events call it
 * @tgid: its process; 0 if it was made before the recording
 * @ppid: the process that made its process; -1 if not known
 * @comm: its name, "<...>" if not known; any bytes
 * @named: @comm was learnt
 */
typedef struct HtTask {
    int32_t pid;
    int32_t tgid;
    int32_t ppid;
    char comm[HT_COMM_MAX + 1];
    bool named;
    uint32_t id;
    unsigned boot;
    uint64_t start_ns;
} HtTask;

/**
 * HtEventClass: what is known of a type of events
 * @type: its number in the ring
 * @kind: what commands know it as
 * @format: its fields; NULL if the recording has none for this type
 * @name: of the event; "type-N" without a format
 * @system: of the event; "" without a format
 * @print: its print format as a program, or NULL; made when first needed
 * @tried: @print was tried
 * @field: the fields of ht_kinds[@kind], NULL where this kernel has none
 */
typedef struct HtEventClass {
    uint16_t type;
    HtKind kind;
    const HtFtEvent *format;
    const char *name;
    const char *system;
    const HtFtField *field[HT_KIND_FIELDS];
    HtPrint *print;
    bool tried;
} HtEventClass;

/**
 * HtModelEvent: one event; valid until the next call of ht_model_next()
 * @rec: as the reader has it
 * @boot: which boot of the guest it belongs to, from 1
 * @class: its type
 * @task: who was running
 * @bound_ns: with --clock=host: how wrong its time may be
 */
typedef struct HtModelEvent {
    HtRecEvent rec;
    unsigned boot;
    HtEventClass *class;
    const HtTask *task;
    uint64_t bound_ns;
} HtModelEvent;

typedef struct HtModel HtModel;

/**
 * ht_model_open: open a recording
 * @dir: its directory
 * @errp: why it cannot be read, and what to do about it
 *
 * Returns: the model, or NULL
 */
HtModel *ht_model_open(const char *dir, GError **errp);

/**
 * ht_model_free: close a recording
 * @m: model or NULL
 */
void ht_model_free(HtModel *m);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtModel, ht_model_free)

/**
 * ht_model_next: the next event in the order of boots, segments and time
 * @m: model
 * @ev: filled in
 *
 * What the event says of tasks is known from then on; a task that ends or
 * changes its name with this event has its old name in it.
 *
 * Returns: false after the last event
 */
bool ht_model_next(HtModel *m, HtModelEvent *ev);

/**
 * ht_model_rewind: begin again; nothing is known of tasks
 * @m: model
 */
void ht_model_rewind(HtModel *m);

/**
 * ht_model_recording: the reader below
 * @m: model
 */
HtRecording *ht_model_recording(HtModel *m);

/**
 * ht_model_formats: what the fields of events are
 * @m: model
 */
const HtFtFormats *ht_model_formats(const HtModel *m);

/**
 * ht_model_info: what the recording says about itself
 * @m: model
 * @group: "recording", "guest" or "kernel"
 * @key: in it
 *
 * Returns: a text of the model's, "" if there is none
 */
const char *ht_model_info(HtModel *m, const char *group, const char *key);

/**
 * ht_model_guest_ended: is the end of the recording that of the guest?
 * @m: model; read to its end
 */
bool ht_model_guest_ended(HtModel *m);

/**
 * ht_model_trouble: what the recording lacks
 * @m: model; read to its end
 * @out: a line for each trouble is appended: a full disk, a recorder that was
 *       killed, damage, an error of a disk, a ring without events
 */
void ht_model_trouble(HtModel *m, GString *out);

/**
 * ht_model_shift: how far the kernel of a boot lies from where its symbols say
 * @m: model
 * @boot: which boot, from 1
 * @shift: set to what to subtract from an address before it is looked up
 *
 * Returns: whether that is known
 */
bool ht_model_shift(HtModel *m, unsigned boot, uint64_t *shift);

/**
 * ht_model_class: what is known of a type of events
 * @m: model
 * @type: its number
 *
 * Returns: the class, also of a type that is not known
 */
HtEventClass *ht_model_class(HtModel *m, uint16_t type);

/**
 * ht_model_task: what is known of a thread now
 * @m: model
 * @pid: thread
 *
 * Returns: the task, or NULL if nothing is known
 */
const HtTask *ht_model_task(const HtModel *m, int32_t pid);

/**
 * ht_model_task_id: the number of the task that has a PID now
 * @m: model
 * @pid: thread
 * @cpu: processor; each has an idle task of its own, and all of them are PID 0
 *
 * Returns: a number that no other task of the recording has
 */
uint64_t ht_model_task_id(HtModel *m, int32_t pid, uint32_t cpu);

/**
 * ht_model_tasks: all threads that are known
 * @m: model
 * @boot: of the boot of the last event, now, or of the one before, at its end
 *
 * Returns: a table of HtTask by pid, the model's; NULL for other boots
 */
GHashTable *ht_model_tasks(const HtModel *m, unsigned boot);

/**
 * ht_model_symbol: append the name of a kernel address
 * @m: model
 * @boot: of which boot; addresses differ
 * @addr: address
 * @out: appended to: "name", "name+0x12", or the address in hexadecimal
 */
void ht_model_symbol(HtModel *m, unsigned boot, uint64_t addr, GString *out);

/**
 * ht_model_function: the function that has an address
 * @m: model
 * @boot: of which boot; addresses differ
 * @addr: address in it
 * @out: its name is appended to, as by ht_model_symbol(); or NULL
 *
 * Returns: where it begins; @addr if that is not known
 */
uint64_t ht_model_function(HtModel *m, unsigned boot, uint64_t addr,
                           GString *out);

/**
 * ht_event_has_lines: does ht_model_print() give several lines?
 * @ev: event; a stack has a line for each frame
 */
bool ht_event_has_lines(const HtModelEvent *ev);

/**
 * ht_model_print: append an event's fields as the kernel would print them
 * @m: model
 * @ev: event
 * @out: appended to; not escaped
 *
 * Without a print format: as ht_fields_text().
 */
void ht_model_print(HtModel *m, const HtModelEvent *ev, GString *out);

/**
 * ht_event_task_id: ht_model_task_id() of the task of an event
 * @ev: event
 */
uint64_t ht_event_task_id(const HtModelEvent *ev);

/**
 * ht_event_uint: a field's value
 * @ev: event
 * @field: HT_F_*
 *
 * Returns: the value, extended by its sign if it has one; 0 if there is none
 */
uint64_t ht_event_uint(const HtModelEvent *ev, unsigned field);

/**
 * ht_event_text: a field's text
 * @ev: event
 * @field: HT_F_*
 * @len: set to its length
 *
 * Returns: bytes of any value in the event, not ended by NUL; never NULL
 */
const char *ht_event_text(const HtModelEvent *ev, unsigned field, gsize *len);

#endif /* HYPERTRACE_TOOL_MODEL_H */
