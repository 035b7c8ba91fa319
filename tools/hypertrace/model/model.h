/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the events of a recording, with their classes and tasks
 *
 * The model uses the reader of host-lib. It returns events in the order of
 * boots, of segments of the guest's clock, and of time. Each event has its
 * class, and the task that was running, with the name that the task had then.
 * Memory use does not grow with the number of events, and the number of tasks
 * is limited.
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
 * @id: unique number of the task in this recording; 0 for an idle task, or if
 *      there are too many tasks. The PID is not unique: the kernel reuses it,
 *      also in later boots.
 * @boot: boot in which the task ran, counted from 1; 0 for an idle task
 * @start_ns: guest time of its creation; 0 if that was not recorded
 * @pid: number of the thread; the kernel's events call it pid
 * @tgid: number of its process; 0 if not known, as for a thread that was
 *        created before the recording began
 * @ppid: number of the process that was the parent of its process when the
 *        task was created; of the creating thread, if that thread's process is
 *        not known; -1 if not known
 * @comm: its name, which may have any bytes; "<...>" if not known
 * @named: @comm is known
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
 * HtEventClass: a type of events
 * @type: its number in the ring
 * @kind: the kind, if commands interpret such events; else HT_KIND_OTHER
 * @format: its format; NULL if the recording has none for this type
 * @name: its name; "type-N" without a format
 * @system: its system; "" without a format
 * @print: its compiled print format, or NULL; compiled when first needed
 * @tried: the print format was compiled, perhaps without success
 * @field: the fields of @format that have the names of ht_kind_field(), by
 *         HT_F_*; NULL for a field that the event does not have
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
 * @rec: the record from the reader
 * @boot: boot of the guest, counted from 1
 * @class: its type
 * @task: the task that was running
 * @bound_ns: maximum error of @rec.ns in nanoseconds, set by
 *            ht_host_clock_date(); ht_model_next() does not set it
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
 * @errp: set on failure
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
 * ht_model_next: get the next event in the order of boots, segments and time
 * @ev: filled in
 *
 * If the event creates, ends or renames a task, the model keeps the state from
 * before the event until the next call.
 *
 * Returns: false after the last event that can be read
 */
bool ht_model_next(HtModel *m, HtModelEvent *ev);

/** ht_model_rewind: go back to the first event and forget all tasks */
void ht_model_rewind(HtModel *m);

/** ht_model_recording: get the reader that the model uses */
HtRecording *ht_model_recording(HtModel *m);

/**
 * ht_model_formats: get the formats of events
 *
 * Returns: the formats; NULL if the recording has none, or if they are damaged
 */
const HtFtFormats *ht_model_formats(const HtModel *m);

/**
 * ht_model_info: get a value of the recording's info file
 * @group: "recording", "guest", "kernel" or "host"
 * @key: key in the group
 *
 * Returns: the value, owned by the model; "" if the group has no such key
 */
const char *ht_model_info(HtModel *m, const char *group, const char *key);

/**
 * ht_model_guest_ended: whether the recording reaches to the guest's end, and
 *                       its info file and pieces show no damage
 * @m: model, after all events were read
 */
bool ht_model_guest_ended(HtModel *m);

/**
 * ht_model_trouble: describe what the recording lacks
 * @m: model, after all events were read
 * @out: a line is appended for each problem: a recorder that stopped early, was
 *       killed or still records; a damaged file, a read error, processors left
 *       out, no events, missing or damaged formats, damaged symbols or those of
 *       another kernel
 */
void ht_model_trouble(HtModel *m, GString *out);

/**
 * ht_model_shift: get the difference between a boot's addresses of the kernel
 *                 and the addresses in the symbols, as caused by KASLR
 * @boot: boot, counted from 1
 * @shift: set to the number to subtract from an address before it is looked up
 *
 * Returns: false if the difference is not known
 */
bool ht_model_shift(HtModel *m, unsigned boot, uint64_t *shift);

/**
 * ht_event_class_new: make the class of a type of events
 * @formats: formats of the events, which must outlive the class; or NULL
 * @type: number of the type
 *
 * Returns: the class, for ht_event_class_free()
 */
HtEventClass *ht_event_class_new(const HtFtFormats *formats, uint16_t type);

/** ht_event_class_free: free the result of ht_event_class_new() */
void ht_event_class_free(HtEventClass *c);

/**
 * ht_model_class: get the class of a type of events
 * @type: number of the type
 *
 * Returns: the class; never NULL, also if the recording has no format for it
 */
HtEventClass *ht_model_class(HtModel *m, uint16_t type);

/**
 * ht_model_task: find the task that has a PID at the last event that was read
 * @pid: thread; 0 for an idle task
 *
 * Returns: the task, which may have ended; NULL if it is not known
 */
const HtTask *ht_model_task(const HtModel *m, int32_t pid);

/**
 * ht_model_task_id: get the unique number of the task that has a PID, or had it
 *                   last, at the last event that was read
 * @pid: thread
 * @cpu: processor; distinguishes the idle tasks, which all have PID 0
 *
 * Returns: a number that no other task of the recording has. There are two
 * exceptions: the idle tasks of one processor have the same number in all
 * boots; and the number of a task without &HtTask.id depends only on the PID.
 */
uint64_t ht_model_task_id(HtModel *m, int32_t pid, uint32_t cpu);

/**
 * ht_model_tasks: get the threads of a boot, except the idle tasks
 * @boot: the boot of the last event that was read, or the boot before it
 *
 * Returns: a table of HtTask by PID, owned by the model; NULL for other boots.
 * For each PID, it has the last thread that was seen with that PID, also if the
 * thread has ended.
 */
GHashTable *ht_model_tasks(const HtModel *m, unsigned boot);

/**
 * ht_model_symbol: append the name of a kernel address
 * @boot: boot, counted from 1; the address of the kernel differs by boot
 * @addr: address
 * @out: appended to: "name", "name+0x12", or the address in hexadecimal
 */
void ht_model_symbol(HtModel *m, unsigned boot, uint64_t addr, GString *out);

/**
 * ht_model_function: find the function at an address
 * @boot: boot, counted from 1; the address of the kernel differs by boot
 * @addr: address in the function
 * @out: appended to: the name without an offset, or the address in hexadecimal;
 *       or NULL
 *
 * Returns: address of the function's begin; @addr if the function is not known
 */
uint64_t ht_model_function(HtModel *m, unsigned boot, uint64_t addr,
                           GString *out);

/**
 * ht_event_has_lines: whether ht_model_print() ends lines by '\n': it prints a
 *                     stack as a title and a line for each frame
 * @ev: event; the text of any other event is one line, and a '\n' in it is a
 *      byte to escape
 */
bool ht_event_has_lines(const HtModelEvent *ev);

/**
 * ht_model_print: append an event's text as the kernel would print it
 * @out: appended to; not escaped
 *
 * A stack is printed with all frames that the record has. For another event
 * without a usable print format, the text is that of ht_fields_text().
 */
void ht_model_print(HtModel *m, const HtModelEvent *ev, GString *out);

/** ht_event_task_id: get ht_model_task_id() of the task that ran at an event */
uint64_t ht_event_task_id(const HtModelEvent *ev);

/**
 * ht_event_uint: get the value of a number
 * @field: HT_F_* of the event's kind
 *
 * Returns: the value, sign-extended if the field is signed; 0 if the event has
 * no such field, or if the field is not an integer
 */
static inline uint64_t ht_event_uint(const HtModelEvent *ev, unsigned field)
{
    const HtFtField *f = ev->class->field[field];

    return f ? ht_ft_field_uint(f, ev->rec.data, ev->rec.size) : 0;
}

/**
 * ht_event_text: get the value of a string
 * @field: HT_F_* of the event's kind
 * @len: set to its length
 *
 * Returns: pointer into the event; may have any bytes, has no NUL at its end.
 * "" if the event has no such string; never NULL
 */
const char *ht_event_text(const HtModelEvent *ev, unsigned field, gsize *len);

#endif /* HYPERTRACE_TOOL_MODEL_H */
