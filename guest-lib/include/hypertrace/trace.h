/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: ht_trace(), for programs on Linux
 *
 * Each program and shared object that includes this file looks for the library
 * when it starts, and registers its classes with it.  It need not be linked to
 * the library (-lhypertrace does no harm).  A program that is linked statically
 * uses the flags of "pkg-config --static hypertrace".
 *
 * The host chooses the classes that it wants, and may change that at any time.
 * An event of another class costs a load and a branch, and is not counted.
 *
 * Each thread has a stream, opened at its first event and closed at its end.
 * Unplugged devices, a suspend, closed descriptors and full rings do not
 * disturb the program.  The library counts the events that it discards and
 * tells the host, unless the process ends without ever having had a stream.
 * The event that a thread writes while its device goes is not counted.
 *
 * A child of fork() opens streams of its own.
 *
 * A signal handler may leave an event by siglongjmp(), or cancel its thread.
 * The thread loses that event and at most 64 more, or those of 100 ms, which
 * are counted; then it has another stream.
 *
 * The device is $HYPERTRACE_DEVICE, "/dev/hypertraceN" or "none", by default
 * the first that can be opened.  If there is none yet, or if its host does not
 * answer, events look for one every 500 ms, and meanwhile cost a function call
 * and their arguments.  On a machine that is not virtual the library does not
 * look again.
 */
#ifndef HYPERTRACE_TRACE_H
#define HYPERTRACE_TRACE_H

#ifdef __cplusplus
#pragma GCC system_header
#endif

#include "hypertrace/event.h"

#ifndef HT_LIBRARY
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct ht_module;

/**
 * enum ht_trace_state - is tracing on, and if not, why?
 * @HT_TRACE_ON: events of this program are recorded
 * @HT_TRACE_UNWANTED: the host wants none of them now
 * @HT_TRACE_NO_STREAM: every stream of the device is in use
 * @HT_TRACE_NO_LIBRARY: libhypertrace.so.0 was not found
 * @HT_TRACE_DISABLED: HYPERTRACE_DEVICE is "none"
 * @HT_TRACE_NO_DEVICE: there is no device, or its driver is not loaded
 * @HT_TRACE_DENIED: the device may not be opened
 * @HT_TRACE_NO_ANSWER: the device's host does not answer
 * @HT_TRACE_INCOMPATIBLE: the device is of another version
 */
enum ht_trace_state {
    HT_TRACE_ON,
    HT_TRACE_UNWANTED,
    HT_TRACE_NO_STREAM,
    HT_TRACE_NO_LIBRARY,
    HT_TRACE_DISABLED,
    HT_TRACE_NO_DEVICE,
    HT_TRACE_DENIED,
    HT_TRACE_NO_ANSWER,
    HT_TRACE_INCOMPATIBLE,
};

/**
 * struct ht_runtime - the library's functions for ht_trace()
 * @begin: find a stream for an event of @cls; set @slot to it if it is this
 *         thread's own.  NULL: the event is discarded and counted, or the host
 *         does not want it
 * @end: must be called after an event if @begin was, or if the event was
 *       discarded (@done is false).  Returns a stream to try again, or NULL
 * @remove: forget a module's classes, of which no event is under way
 * @status: ht_trace_status()
 */
struct ht_runtime {
    struct ht_stream *(*begin)(struct ht_stream **slot,
                               const struct ht_class *cls);
    struct ht_stream *(*end)(struct ht_stream **slot, struct ht_stream *s,
                             const struct ht_class *cls, bool done);
    void (*remove)(struct ht_module *module);
    enum ht_trace_state (*status)(const char **why);
};

/**
 * struct ht_module - a program or shared object that has classes
 * @begin: pointers to its classes
 * @end: behind the last
 * @next: the library's
 * @runtime: set by the library
 * @reserved: 0
 */
struct ht_module {
    struct ht_class *const *begin;
    struct ht_class *const *end;
    struct ht_module *next;
    const struct ht_runtime *runtime;
    void *reserved[4];
};

/**
 * ht_module_add() - make a module's classes known
 * @module: stays in place until it is removed; its runtime is set
 *
 * Called when the program starts, or a shared object is loaded.
 */
void ht_module_add(struct ht_module *module);

/* For programs in other languages ------------------------------------------ */

/**
 * ht_event_parse() - make an event class from a description
 * @text: a name, a level after a colon if it is not "debug", and fields, of
 *        which each has a kind and a name:
 *
 *            "hello u32 n; text who"
 *            "disk.error:err x64 sector; u8{read=0, write=1} op; u16[4] tags"
 *
 *        Kinds are those of event.h.  Also "u16[]" is a sequence, "u16[4]" an
 *        array, "chars[16]" text in an array, and labels in braces name values,
 *        or bits, if separated by "|".
 *
 * Context: may block; not in a signal handler.
 *
 * Return: the class, for good; NULL: not a valid description, out of memory,
 * or there are more than 1,023 such classes.
 */
struct ht_class *ht_event_parse(const char *text);

/**
 * enum ht_value_type - type of a value
 * @HT_VALUE_UNSIGNED: u
 * @HT_VALUE_SIGNED: s
 * @HT_VALUE_FLOAT: f
 * @HT_VALUE_MEMORY: p: text of @count bytes, or @count elements
 */
enum ht_value_type {
    HT_VALUE_UNSIGNED = 1,
    HT_VALUE_SIGNED   = 2,
    HT_VALUE_FLOAT    = 3,
    HT_VALUE_MEMORY   = 4,
};

/**
 * struct ht_value - the value of one field
 * @u: the value, as @type says
 * @count: of HT_VALUE_MEMORY
 * @type: enum ht_value_type
 */
struct ht_value {
    union {
        uint64_t u;
        int64_t s;
        double f;
        const void *p;
    };
    uint32_t count;
    uint32_t type;
};

/**
 * ht_event_values() - emit an event of checked values
 * @cls: the class
 * @values: one for each field
 * @n: their number
 *
 * The values are checked also if the event is off.
 *
 * Return: 1: committed; 0: discarded, or not wanted; -EINVAL: @n or a value
 * does not fit the class.
 */
int ht_event_values(const struct ht_class *cls, const struct ht_value *values,
                    unsigned n);

/**
 * ht_event_new() - make an event class at run time
 * @name: as &struct ht_class says
 * @fields: @nr_fields of them; they and their names are copied
 * @nr_fields: 0 to HT_FIELDS_MAX
 * @level: enum ht_level
 *
 * Context: may block; not in a signal handler.
 *
 * Return: the class, for good; NULL: out of memory, or too many fields.
 */
struct ht_class *ht_event_new(const char *name, const struct ht_field *fields,
                              unsigned nr_fields, unsigned level);

/**
 * ht_event_is_on() - would events of a class be recorded?
 * @cls: the class
 */
bool ht_event_is_on(const struct ht_class *cls);

/**
 * ht_event_emit() - emit an event of packed values, which are not checked
 * @cls: the class
 * @payload: the fields, packed as the specification says
 * @size: bytes
 *
 * Return: whether it was committed; if not, it was discarded or is not wanted.
 */
bool ht_event_emit(const struct ht_class *cls, const void *payload,
                   uint32_t size);

/**
 * ht_trace_discarded() - events for which this process had no stream
 *
 * The host is told when a stream can be opened, or by a message each 500 ms
 * that none can, and when the program exits.  One that is killed before, or may
 * not open the device, is the only one that knows.
 *
 * Return: how many are not told to the host yet.
 */
uint64_t ht_trace_discarded(void);

/**
 * ht_trace_stamps() - read the clock for some events only
 * @n: as ht_stream_stamps() says
 *
 * Of this thread's stream, whose next event reads it, and of streams that are
 * opened from now on.  To be called where a burst of events begins, and with 1
 * where it ends.  Before the first call @n is that of the environment variable
 * HYPERTRACE_STAMPS, or 1.
 *
 * Context: any thread; not in a signal handler.
 *
 * Return: 0; -EINVAL.
 */
int ht_trace_stamps(unsigned n);

/**
 * ht_trace_status() - is tracing on, and if not, why?
 * @why: set to a text, "on" or "off: ..."; or NULL
 *
 * Looks for a device, if there was none.  HYPERTRACE_DEBUG=1 has the library
 * print the text to stderr whenever it changes.
 *
 * Context: may block; not in a signal handler.
 */
enum ht_trace_state ht_trace_status(const char **why);

#ifndef HT_LIBRARY

/* Of each program and shared object ---------------------------------------- */

#define HT_PER_MODULE   __attribute__((weak, visibility("hidden")))

/* Set by the linker: the bounds of a section */
extern struct ht_class *const __start_ht_classes[] HT_PER_MODULE;
extern struct ht_class *const __stop_ht_classes[] HT_PER_MODULE;

extern struct ht_module ht_module HT_PER_MODULE;
HT_PER_MODULE struct ht_module ht_module = { 0, 0, 0, 0, { 0, 0, 0, 0 } };

/* This thread's stream, if it has one of its own */
extern __thread struct ht_stream *ht_thread_stream
    __attribute__((weak, visibility("hidden"))) HT_TLS_MODEL;
__attribute__((weak, visibility("hidden"))) HT_TLS_MODEL
__thread struct ht_stream *ht_thread_stream = 0;

/* The library's, if it is linked, or was loaded before */
extern __typeof__(ht_module_add) ht_module_add __attribute__((weak));
extern __typeof__(ht_trace_status) ht_trace_status __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

/* Each file of a module has these two; the first that runs does the work. */
static __attribute__((constructor)) void ht_module_start(void)
{
    static const char none[] = "hypertrace: tracing is off: libhypertrace.so.0 "
                               "was not found\n";
    void (*add)(struct ht_module *module) = ht_module_add;
    void *(*load)(const char *name, int flags) = 0;
    const char *debug;
    void *library;

    if (ht_module.begin || &__start_ht_classes[0] == &__stop_ht_classes[0]) {
        return;
    }
    ht_module.begin = __start_ht_classes;
    ht_module.end = __stop_ht_classes;
    /* A static program may have neither; a reference would link dlopen(). */
    if (!add && dlsym) {
        *(void **)&load = dlsym(0, "dlopen");           /* RTLD_DEFAULT */
    }
    if (load) {
        library = load("libhypertrace.so.0", RTLD_NOW);
        *(void **)&add = library ? dlsym(library, "ht_module_add") : 0;
    }
    if (add) {
        add(&ht_module);
        return;
    }
    debug = getenv("HYPERTRACE_DEBUG");
    if (debug && debug[0] == '1' && write(2, none, sizeof(none) - 1) < 0) {
        return;                 /* nobody is told */
    }
}

static inline enum ht_trace_state ht_module_status(const char **why)
{
    if (ht_module.runtime) {
        return ht_module.runtime->status(why);
    }
    if (ht_trace_status) {
        return ht_trace_status(why);
    }
    if (why) {
        *why = "off: libhypertrace.so.0 was not found";
    }
    return HT_TRACE_NO_LIBRARY;
}

/* A program need not be linked to the library for this either. */
#define ht_trace_status(why)    ht_module_status(why)

static __attribute__((destructor)) void ht_module_stop(void)
{
    if (ht_module.runtime) {
        ht_module.runtime->remove(&ht_module);
    }
}

/*
 * The first parameter is there for the comma before the next.  None of the
 * program's code runs between begin and end, so the stream is always released.
 */
#undef HT_EV_TRACE
#define HT_EV_TRACE(scope, ident, ...)                                      \
    __attribute__((unused))                                                 \
    HT_EV_CODE_##scope void ht_trace_##ident(int ht_unused_                 \
                                 HT_EV_EACH(HT_EV_PARAM, ##__VA_ARGS__))    \
    {                                                                       \
        struct ht_stream *ht_s_ = ht_thread_stream;                         \
        bool ht_end_ = !ht_s_;                                              \
                                                                            \
        (void)ht_unused_;                                                   \
        if (ht_unlikely(ht_end_)) {                                         \
            ht_s_ = ht_module.runtime->begin(&ht_thread_stream,             \
                                             &ht_class_##ident);            \
        }                                                                   \
        while (ht_likely(ht_s_)) {                                          \
            bool ht_done_ = ht_emit_##ident(ht_s_                           \
                                 HT_EV_EACH(HT_EV_ARG, ##__VA_ARGS__));     \
                                                                            \
            ht_end_ |= !ht_done_;                                           \
            if (ht_likely(!ht_end_)) {                                      \
                break;                                                      \
            }                                                               \
            ht_s_ = ht_module.runtime->end(&ht_thread_stream, ht_s_,        \
                                           &ht_class_##ident, ht_done_);    \
        }                                                                   \
    }

#endif /* HT_LIBRARY */

#ifdef __cplusplus
}
#endif

/* Tracing ------------------------------------------------------------------ */

/**
 * ht_event_enabled() - would an event be recorded?
 * @ident: of HT_EVENT()
 *
 * For what is expensive to find out and only there to be traced.  Loads a byte
 * that the host may change at any time, without order: it is a hint.
 */
#define ht_event_enabled(ident) \
    ht_unlikely(__atomic_load_n(__atomic_load_n(&ht_class_##ident.on,       \
                                                __ATOMIC_RELAXED),          \
                                __ATOMIC_RELAXED) == 1)

/**
 * ht_trace() - emit an event
 * @ident: of HT_EVENT()
 * @...: its fields, evaluated only if the event is wanted, and before anything
 *       else: they may throw, longjmp(), end the thread, emit events
 *
 * HT_EVENT() comes behind the inclusion of this file.
 *
 * Leaves errno alone.  The first event of a thread, and of a process after the
 * device was away, opens a stream, which waits for the device, for seconds if
 * its host hangs; no other event waits.
 * Context: any thread; a signal handler.
 */
#define ht_trace(ident, ...)                                                \
    do {                                                                    \
        if (ht_event_enabled(ident)) {                                      \
            ht_trace_##ident(0, ##__VA_ARGS__);                             \
        }                                                                   \
    } while (0)

#endif /* HYPERTRACE_TRACE_H */
